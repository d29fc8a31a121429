"""Rules for the card and its runtime: RAS errors, hangs, stale artefacts, memory, processes that died; and the last resorts."""

from __future__ import annotations

from debug_spyre.triage.rule import make_rule
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
