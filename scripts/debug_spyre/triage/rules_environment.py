"""Rules for the card and its runtime, and for what is no fault of the backend: settings, upgrades, missing files, mocks."""

from __future__ import annotations

from debug_spyre.triage.rule import ANY_KIND, make_rule
from debug_spyre.vocabulary.evidence import Kind, Stage

ENV, TEST, RUN = Stage.ENVIRONMENT, Stage.TEST_BUG, Stage.RUNTIME
LAYOUT, LOWER, GEN = Stage.LAYOUT, Stage.LOWERING, Stage.CODEGEN

RUNTIME_RULES = (
    make_rule(
        "host-memory",
        ENV,
        "the host or its container ran out of memory and the kernel killed the process; the card is not the cause",
        "Killed (out of memory)",
        kinds=(Kind.CRASH,),
    ),
    make_rule(
        "dma-map",
        RUN,
        "no more memory could be mapped for the card: too many live tensors",
        '{"name":"RAS::VFIO::MapDMAFailed"}',
        r"(?P<key>RAS::VFIO::MapDMAFailed)",
        where="any",
        tags=("device-error",),
    ),
    make_rule(
        "ras",
        RUN,
        "the card or its driver reports an error (RAS)",
        '{"category":"hardware","name":"RAS::CBRB::ResponseTimeout"}',
        r"(?P<state>ComputeHardwareError|StreamInErrorState)|\"name\"\s*:\s*\"(?P<key>RAS::(?!VFMSG::UnsupportedMessageType)[\w:]+)\"|(?P<name>RAS::(?!VFMSG::UnsupportedMessageType)\w+::\w+)",
        where="any",
        tags=("device-error",),
        kinds=(Kind.EXCEPTION, Kind.CRASH, Kind.TIMEOUT, Kind.COMPILE),
    ),
    make_rule(
        "hang",
        RUN,
        "no answer within the time limit",
        "Failed: Timeout (>300.0s) from pytest-timeout.",
        r".*",
        kinds=(Kind.TIMEOUT,),
    ),
)

LATE_RULES = (
    make_rule(
        "stale-artefacts",
        RUN,
        "compiled artefacts are missing, stale or cut off: try a fresh cache folder",
        "Required file spyrecode.json not found",
        r"(?P<key>SpyreCode directory does not exist|spyrecode\.json|Unknown SpyreCode command|Step ordering violation|Incomplete step sequence|Failed to import Hcm|Bundle not found|readHexEncodedFile|No data decoded from file)",
        where="any",
    ),
    make_rule(
        "device-memory",
        RUN,
        "the card's memory is used up or an address lies outside",
        "Program size (12) exceeds allocated device memory",
        r"(?P<key>exceeds allocated device memory|out of program segment bounds|out of memory|OutOfMemory\w*|failed to allocate)",
        where="any",
    ),
    make_rule(
        "runtime",
        RUN,
        "the device runtime failed",
        "Failed to initialize Spyre runtime.",
        r"(?P<key>Failed to initialize Spyre runtime|Host compute stream|SpyreStream|no flex handle for stream|Unsupported copy types|SpyreStreamError\w*|SpyreDeviceState\w*|SpyreCCL\w*|spyreccl|device is in an? (?:error|unrecoverable) state|launch_jobplan|launch_kernel|ncclSystem)",
        where="any",
    ),
    make_rule(
        "process-died",
        RUN,
        "the process was ended by a signal",
        "Fatal Python error: Segmentation fault",
        r".*",
        kinds=(Kind.CRASH,),
    ),
    make_rule(
        "server-exited",
        None,
        "a server process that the test started has ended; its own output, which says why, is not in this text: read the server's log",
        "RuntimeError: Server exited unexpectedly.",
        r"Server (?:process )?exited|[Ss]erver failed to start",
    ),
    make_rule(
        "engine-core",
        RUN,
        "a vLLM engine process died; its own text stands above",
        "RuntimeError: Engine core initialization failed. See root cause above.",
        r"Engine core (?:initialization failed|died)|EngineDeadError|EngineCore (?:encountered|failed)|Worker\w* (?:died|failed)",
    ),
    make_rule(
        "backend-unsupported",
        LOWER,
        "the backend says that it does not support this",
        "Unsupported: Spyre backend does not support: conv with groups",
        r"Spyre backend does not support: (?P<key>[^\n]{3,200})",
    ),
    make_rule(
        "moved-signature",
        ENV,
        "a call does not fit an interface any more: an upgrade moved it",
        "TypeError: forward() got an unexpected keyword argument 'kv_cache'",
        r"(?P<key>[\w.]+\(\) (?:got an unexpected keyword argument '\w+'|missing \d+ required (?:positional|keyword-only) arguments?|takes \d+ positional arguments? but)"
        r"|'\w*(?:Config|Output|Metadata|Request|Params|Builder|Runner|Scheduler|Platform|Parallel\w*|Graph\w*)' object has no attribute '\w+')",
        where="outside",
    ),
    make_rule(
        "test-signature",
        TEST,
        "a call does not fit the function's signature: test and code have drifted apart",
        "TypeError: forward() got an unexpected keyword argument 'x'",
        r"got an unexpected keyword argument|missing \d+ required (?:positional|keyword-only) argument|takes \d+ positional arguments? but|got multiple values for argument",
    ),
)


ENVIRONMENT_RULES = (
    make_rule(
        "card-busy",
        ENV,
        "another process holds the card (errno says busy); an exclusivity failure, not hardware",
        '{"errno":"Device or resource busy","name":"RAS::VFIO::DeviceOpenFail"}',
        r"DeviceOpenFail[^\n]{0,2000}resource busy|resource busy[^\n]{0,2000}DeviceOpenFail"
        r"|(?:vfio|spyre|card)[^\n]{0,200}Device or resource busy|Device or resource busy[^\n]{0,100}vfio|card[^\n]{0,40}(?:is )?still held",
        where="any",
        tags=("card-busy",),
    ),
    make_rule(
        "device-open",
        ENV,
        "the device file could not be opened",
        '{"name":"RAS::VFIO::DeviceOpenFail"}',
        r"(?P<key>RAS::VFIO::DeviceOpenFail)",
        where="any",
        tags=("device-error",),
    ),
    make_rule(
        "no-device",
        ENV,
        "the process sees no card",
        "No Spyre devices available. Cannot create generator.",
        r"No Spyre devices? (?:available|found)|Device index out of bounds|Device index \S+ out of range|FLEX_DEVICE|/dev/vfio[^\n]{0,80}No such file",
    ),
    make_rule(
        "setting",
        ENV,
        "an environment variable or setting has a value that is not accepted",
        "ValueError: invalid SENCORES value '64'",
        r"(?-i:[Ii]nvalid (?P<key>[A-Z][A-Z0-9_]{3,}) value)|Invalid log settings|Invalid layout_solver config option|environment variable|LIB_VERSION_FILE is not set"
        r"|(?-i:\b(?:SENCORES|(?:AIU|SPYRE|TORCH|TORCHINDUCTOR|VLLM|DT[A-Z]*|FLEX)_[A-Z0-9_]+|LX_PLANNING|SENLIB[A-Z_]*)\b[^\n]{0,60}"
        r"(?:must|invalid|not set|unset|expected|should|out of range|unsupported|unknown|not a|cannot|can't|not (?:supported|valid|known|recogni[sz]ed|allowed)))"
        r"|(?-i:(?:[Ii]nvalid|[Uu]nknown|[Uu]nsupported|[Bb]ad|KeyError:)[^\n]{0,40}\b(?:SENCORES|(?:AIU|SPYRE|TORCHINDUCTOR|VLLM|DT[A-Z]*|FLEX)_[A-Z0-9_]+|LX_PLANNING|SENLIB[A-Z_]*)\b)",
        where="error",
    ),
    make_rule(
        "toolchain",
        ENV,
        "the backend compiler is not on the path: the toolchain environment was not sourced",
        "FileNotFoundError: [Errno 2] No such file or directory: 'dxp_standalone'",
        r"No such file or directory: '?\"?(?P<key>dxp_standalone|dxp\w*|deeptools\S*)",
    ),
    make_rule(
        "moved-api",
        ENV,
        "an interface moved or vanished with an upgrade: versions do not fit together",
        "ImportError: cannot import name 'ComboKernel' from 'torch._inductor'",
        r"cannot import name (?P<key>'[^']+')|No module named (?:'?\"?)(?P<module>\w+\.[\w.]+)|undefined symbol|module '?[\w.]+'? has no attribute"
        r"|Cannot unregister. Missing lowerings for|both a fallback and a decomp for same op|version mismatch|requires torch|was compiled against|partially initialized module",
        tags=("import",),
    ),
    make_rule(
        "module-missing",
        ENV,
        "a module can't be imported here: it is not installed in this environment, or its folder is not on sys.path",
        "ModuleNotFoundError: No module named 'test_torchinductor'",
        r"No module named '?\"?(?P<key>\w+)['\"]?$",
        tags=("import",),
    ),
    make_rule(
        "backend-load",
        ENV,
        "the backend extension does not load: its own error stands in the chain above, or comes with TORCH_DEVICE_BACKEND_AUTOLOAD=0",
        "RuntimeError: Failed to load the backend extension: torch_spyre.",
        r"Failed to load the backend extension: (?P<key>\w+)",
    ),
    make_rule(
        "network",
        ENV,
        "a download or a service was not reachable",
        "OSError: We couldn't connect to 'https://hub' to load the files",
        r"couldn't connect to|Connection(?:Error| refused| reset| timed out)|Max retries exceeded|Name or service not known|LocalEntryNotFoundError|offline mode|Temporary failure in name resolution|401 Client Error|GatedRepoError|403 Forbidden",
    ),
    make_rule(
        "resources",
        ENV,
        "the host has no room left: disk, memory or descriptors",
        "OSError: [Errno 28] No space left on device",
        r"No space left on device|Cannot allocate memory|Too many open files|ENOMEM|Disk quota exceeded|Killed process|\bOOM\b|mlock",
    ),
    make_rule(
        "missing-file",
        ENV,
        "a file that the test needs is not there",
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.pt'",
        r"FileNotFoundError|No such file or directory|PermissionError|Permission denied|Read-only file system|NotADirectoryError",
    ),
)

TEST_RULES = (
    make_rule(
        "mocked-device",
        TEST,
        "the test replaces parts of the device path by mocks, so nothing ran on the card and the compared output is not a result",
        "with patch(_LAUNCH_JOBPLAN), patch(_PREPARE_KERNEL):",
        r"patch\(|Mock\(|mocker\.|monkeypatch\.",
        where="mock",
        kinds=(Kind.MISMATCH, Kind.EXCEPTION, Kind.COMPILE),
        tags=("mock",),
    ),
    make_rule(
        "mock",
        TEST,
        "a mock of the test, not the backend",
        "AssertionError: Expected 'launch' to have been called once. Called 0 times.",
        r"Expected '[^']*' to (?:have been|be) |(?-i:Actual: [a-z]\w*\()|\bMagicMock\b|\bMock object|<(?:Magic|Async)?Mock |expected call not found|call_count|assert_called|assert_not_called|has_calls|Calls not found|Mock' object|'(?:Magic|Async|NonCallable)*Mock'",
        kinds=ANY_KIND,
        tags=("mock",),
    ),
    make_rule(
        "strict-xpass",
        TEST,
        "an expected failure passes: the limitation no longer shows, or never did; take the mark off after checking",
        "[XPASS(strict)] #1234 not supported",
        r"\[XPASS\(strict\)\]|Unexpected success",
        where="any",
        kinds=ANY_KIND,
        tags=("strict-xpass",),
    ),
    make_rule(
        "check-missing",
        Stage.DISPATCH,
        "an op takes tensors of two devices without the error that the test expects: the dispatcher's check is not reached",
        'AssertionError: RuntimeError not raised\nwith self.assertRaisesRegex(RuntimeError, "Expected all tensors to be on the same device"):',
        r"(?:DID NOT RAISE|not raised)[\s\S]{0,3000}(?:raises|assertRaises\w*)\([^\n]{0,200}same device",
        where="source",
    ),
    make_rule(
        "did-not-raise",
        TEST,
        "an error or warning that the test expects does not come: the limitation was lifted, or the code takes another way",
        "Failed: DID NOT RAISE <class 'NotImplementedError'>",
        r"DID NOT (?:RAISE|WARN)|AssertionError: \w+(?:Error|Exception|Warning|Unsupported) not (?:raised|triggered)",
        tags=("limit-lifted",),
    ),
    make_rule(
        "fixture",
        TEST,
        "the test asks for a fixture or mark that does not exist",
        "fixture 'spyre_card' not found",
        r"fixture '[^']+' not found|ScopeMismatch|recursive dependency involving fixture|not found in `markers`|Unknown pytest\.mark|uses no argument|duplicate parametrization|in \"parametrize\" the number of names",
        where="any",
    ),
    make_rule(
        "test-code",
        TEST,
        "the test's own code is wrong",
        "NameError: name 'atoll' is not defined",
        r"^(?:NameError|SyntaxError|IndentationError|UnboundLocalError|TabError)|\bSyntaxError: ",
    ),
)
