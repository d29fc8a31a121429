"""Rules for what is no fault of the backend: card held, settings, upgrades, missing files; mocks and other test bugs."""

from __future__ import annotations

from debug_spyre.triage.rule import ANY_KIND, make_rule
from debug_spyre.vocabulary.evidence import Kind, Stage

ENV, TEST, RUN = Stage.ENVIRONMENT, Stage.TEST_BUG, Stage.RUNTIME
LAYOUT, LOWER, GEN = Stage.LAYOUT, Stage.LOWERING, Stage.CODEGEN

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
        r"cannot import name (?P<key>'[^']+')|No module named (?:'?\"?)(?P<module>[\w.]+)|undefined symbol|module '?[\w.]+'? has no attribute"
        r"|Cannot unregister. Missing lowerings for|both a fallback and a decomp for same op|version mismatch|requires torch|was compiled against|partially initialized module",
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
