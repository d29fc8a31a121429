"""The classification rules as ordered data: the first that matches a failure gives its stage, tags and reason.

Each rule carries an example that it must match (a test holds that). Hardware and environment come before the compiler,
the compiler before the runtime; general rules stand last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from debug_spyre.core.evidence import Kind, Stage


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `where`: error, captured, any (both), class (innermost class), frame (innermost frames),
    outside (error, where the innermost frame is not a test's), mock (a source line that replaces parts of the device).
    """

    id: str
    stage: Stage
    reason: str
    example: str
    pattern: re.Pattern[str]
    where: str = "error"
    tags: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()  # only for failures of these kinds; empty: any but a mismatch

    @property
    def key_group(self) -> bool:
        """The part of the match called `key` is what tells two causes of this rule apart."""
        return "key" in self.pattern.groupindex


NOT_A_CRASH = (Kind.COMPILE, Kind.EXCEPTION)


def _rule(
    id: str,
    stage: Stage,
    reason: str,
    example: str,
    pattern: str | None = None,
    *,
    where: str = "error",
    tags: tuple[str, ...] = (),
    kinds: tuple[Kind, ...] = (),
) -> Rule:
    compiled = re.compile(pattern if pattern is not None else re.escape(example), re.IGNORECASE)
    return Rule(id, stage, reason, example, compiled, where, tags, kinds)


ENV, TEST, RUN = Stage.ENVIRONMENT, Stage.TEST_BUG, Stage.RUNTIME
LAYOUT, LOWER, GEN = Stage.LAYOUT, Stage.LOWERING, Stage.CODEGEN
ANY_KIND = tuple(Kind)

ENVIRONMENT_RULES = (
    _rule(
        "card-busy",
        ENV,
        "another process holds the card (errno says busy); an exclusivity failure, not hardware",
        '{"errno":"Device or resource busy","name":"RAS::VFIO::DeviceOpenFail"}',
        r"DeviceOpenFail[^\n]{0,2000}resource busy|resource busy[^\n]{0,2000}DeviceOpenFail"
        r"|(?:vfio|spyre|card)[^\n]{0,200}Device or resource busy|Device or resource busy[^\n]{0,100}vfio|card[^\n]{0,40}(?:is )?still held",
        where="any",
        tags=("card-busy",),
    ),
    _rule(
        "device-open",
        ENV,
        "the device file could not be opened",
        '{"name":"RAS::VFIO::DeviceOpenFail"}',
        r"(?P<key>RAS::VFIO::DeviceOpenFail)",
        where="any",
        tags=("device-error",),
    ),
    _rule(
        "no-device",
        ENV,
        "the process sees no card",
        "No Spyre devices available. Cannot create generator.",
        r"No Spyre devices? (?:available|found)|Device index out of bounds|Device index \S+ out of range|FLEX_DEVICE|/dev/vfio[^\n]{0,80}No such file",
    ),
    _rule(
        "setting",
        ENV,
        "an environment variable or setting has a value that is not accepted",
        "ValueError: invalid SENCORES value '64'",
        r"(?-i:[Ii]nvalid (?P<key>[A-Z][A-Z0-9_]{3,}) value)|Invalid log settings|Invalid layout_solver config option|environment variable|LIB_VERSION_FILE is not set"
        r"|(?-i:\b(?:SENCORES|AIU_[A-Z_]+|SPYRE_[A-Z_]+|TORCH_[A-Z_]+|TORCHINDUCTOR_[A-Z_]+|DT[A-Z]*_[A-Z_]+|LX_PLANNING|SENLIB[A-Z_]*|FLEX_[A-Z_]+)\b[^\n]{0,60}"
        r"(?:must|invalid|not set|unset|expected|should|out of range|unsupported|unknown|not a|cannot|can't))"
        r"|(?-i:(?:[Ii]nvalid|[Uu]nknown|[Uu]nsupported|[Bb]ad|KeyError:)[^\n]{0,40}\b(?:SENCORES|AIU_[A-Z_]+|SPYRE_[A-Z_]+|TORCHINDUCTOR_[A-Z_]+|DT[A-Z]*_[A-Z_]+|LX_PLANNING|SENLIB[A-Z_]*|FLEX_[A-Z_]+)\b)",
        where="error",
    ),
    _rule(
        "toolchain",
        ENV,
        "the backend compiler is not on the path: the toolchain environment was not sourced",
        "FileNotFoundError: [Errno 2] No such file or directory: 'dxp_standalone'",
        r"No such file or directory: '?\"?(?P<key>dxp_standalone|dxp\w*|deeptools\S*)",
    ),
    _rule(
        "moved-api",
        ENV,
        "an interface moved or vanished with an upgrade: versions do not fit together",
        "ImportError: cannot import name 'ComboKernel' from 'torch._inductor'",
        r"cannot import name (?P<key>'[^']+')|No module named (?:'?\"?)(?P<module>[\w.]+)|undefined symbol|module '?[\w.]+'? has no attribute"
        r"|Cannot unregister. Missing lowerings for|both a fallback and a decomp for same op|version mismatch|requires torch|was compiled against|partially initialized module",
        tags=("import",),
    ),
    _rule(
        "backend-load",
        ENV,
        "the backend extension does not load: its own error stands in the chain above, or comes with TORCH_DEVICE_BACKEND_AUTOLOAD=0",
        "RuntimeError: Failed to load the backend extension: torch_spyre.",
        r"Failed to load the backend extension: (?P<key>\w+)",
    ),
    _rule(
        "network",
        ENV,
        "a download or a service was not reachable",
        "OSError: We couldn't connect to 'https://hub' to load the files",
        r"couldn't connect to|Connection(?:Error| refused| reset| timed out)|Max retries exceeded|Name or service not known|LocalEntryNotFoundError|offline mode|Temporary failure in name resolution|401 Client Error|GatedRepoError|403 Forbidden",
    ),
    _rule(
        "resources",
        ENV,
        "the host has no room left: disk, memory or descriptors",
        "OSError: [Errno 28] No space left on device",
        r"No space left on device|Cannot allocate memory|Too many open files|ENOMEM|Disk quota exceeded|Killed process|\bOOM\b|mlock",
    ),
    _rule(
        "missing-file",
        ENV,
        "a file that the test needs is not there",
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.pt'",
        r"FileNotFoundError|No such file or directory|PermissionError|Permission denied|Read-only file system|NotADirectoryError",
    ),
)

TEST_RULES = (
    _rule(
        "mocked-device",
        TEST,
        "the test replaces parts of the device path by mocks, so nothing ran on the card and the compared output is not a result",
        "with patch(_LAUNCH_JOBPLAN), patch(_PREPARE_KERNEL):",
        r"patch\(|Mock\(|mocker\.|monkeypatch\.",
        where="mock",
        kinds=(Kind.MISMATCH, Kind.EXCEPTION, Kind.COMPILE),
        tags=("mock",),
    ),
    _rule(
        "mock",
        TEST,
        "a mock of the test, not the backend",
        "AssertionError: Expected 'launch' to have been called once. Called 0 times.",
        r"Expected '[^']*' to (?:have been|be) |(?-i:Actual: [a-z]\w*\()|\bMagicMock\b|\bMock object|<(?:Magic|Async)?Mock |expected call not found|call_count|assert_called|assert_not_called|has_calls|Calls not found|Mock' object|MagicMock'",
        kinds=ANY_KIND,
        tags=("mock",),
    ),
    _rule(
        "strict-xpass",
        TEST,
        "an expected failure passes: the limitation no longer shows, or never did; take the mark off after checking",
        "[XPASS(strict)] #1234 not supported",
        r"\[XPASS\(strict\)\]|Unexpected success",
        where="any",
        kinds=ANY_KIND,
        tags=("strict-xpass",),
    ),
    _rule(
        "fixture",
        TEST,
        "the test asks for a fixture or mark that does not exist",
        "fixture 'spyre_card' not found",
        r"fixture '[^']+' not found|ScopeMismatch|recursive dependency involving fixture|not found in `markers`|Unknown pytest\.mark|uses no argument|duplicate parametrization|in \"parametrize\" the number of names",
        where="any",
    ),
    _rule(
        "test-code",
        TEST,
        "the test's own code is wrong",
        "NameError: name 'atoll' is not defined",
        r"^(?:NameError|SyntaxError|IndentationError|UnboundLocalError|TabError)|\bSyntaxError: ",
    ),
)

RUNTIME_RULES = (
    _rule(
        "dma-map",
        RUN,
        "no more memory could be mapped for the card: too many live tensors",
        '{"name":"RAS::VFIO::MapDMAFailed"}',
        r"(?P<key>RAS::VFIO::MapDMAFailed)",
        where="any",
        tags=("device-error",),
    ),
    _rule(
        "ras",
        RUN,
        "the card or its driver reports an error (RAS)",
        '{"category":"hardware","name":"RAS::CBRB::ResponseTimeout"}',
        r"(?P<state>ComputeHardwareError|StreamInErrorState)|\"name\"\s*:\s*\"(?P<key>RAS::(?!VFMSG::UnsupportedMessageType)[\w:]+)\"|(?P<name>RAS::(?!VFMSG::UnsupportedMessageType)\w+::\w+)",
        where="any",
        tags=("device-error",),
        kinds=(Kind.EXCEPTION, Kind.CRASH, Kind.TIMEOUT, Kind.COMPILE),
    ),
    _rule(
        "hang",
        RUN,
        "no answer within the time limit",
        "Failed: Timeout (>300.0s) from pytest-timeout.",
        r".*",
        kinds=(Kind.TIMEOUT,),
    ),
)

FALLBACK_RULES = (
    _rule(
        "fallback-as-error",
        Stage.FALLBACK,
        "a fallback to the CPU, raised as an error by a filter",
        "torch_spyre.ops.fallbacks.FallbackWarning: aten.cumsum.default is falling back to cpu",
        r"FallbackWarning: (?P<key>.{1,200}?) is falling back to \w+",
        tags=("fallback-as-error",),
        kinds=ANY_KIND,
    ),
)

DISPATCH_RULES = (
    _rule(
        "no-kernel",
        Stage.DISPATCH,
        "the op has no kernel, decomposition or fallback for this device",
        "NotImplementedError: Could not run 'aten::roll' with arguments from the 'spyre' backend.",
        r"Could not run '(?P<key>[\w:.]+)' with arguments from the|There were no tensor arguments to this function|not (?:currently )?implemented for the '?spyre|no (?:spyre )?kernel (?:is )?registered",
        kinds=(Kind.EXCEPTION, Kind.COMPILE),
    ),
    _rule(
        "devices-mixed",
        Stage.DISPATCH,
        "tensors of different devices meet in one op",
        "RuntimeError: Expected all tensors to be on the same device, but found: cpu, spyre:0",
        r"Expected all tensors to be on the same device|inputs (?:being )?on a different device|argument 'out' must be Tensor|Cannot copy out of meta tensor",
    ),
    _rule(
        "no-dtype",
        Stage.DISPATCH,
        "the dtype has no form on the device",
        "RuntimeError: Spyre backend does not support dtype Double",
        r"Spyre backend does not support dtype (?P<key>\S+)|has no Spyre device representation|does not support type conversion yet|Unsupported (?:CPU|Spyre) tensor dtype for DMA|can't be cast to the desired output type|does not support complex fill",
    ),
    _rule(
        "not-contiguous",
        Stage.DISPATCH,
        "the device allocator takes contiguous memory only",
        "Spyre backend only supports contiguous memory format, got: ChannelsLast",
        r"only supports contiguous memory format|Pin memory can only be on CPU|aten::resize_",
    ),
    _rule(
        "fallback-registration",
        Stage.DISPATCH,
        "an op reached a body that its CPU fallback should have replaced",
        "spyre::max_dim_int64_fallback should be handled by CPU fallback registration",
        r"should be handled by CPU fallback registration",
    ),
)

DYNAMO_RULES = (
    _rule(
        "recompile-limit",
        Stage.DYNAMO,
        "the graph was compiled again and again until the limit",
        "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached",
        r"recompile_limit|cache_size_limit|FailOnRecompileLimit|accumulated_recompile_limit|RecompileError|Recompiling function",
    ),
    _rule(
        "dynamo",
        Stage.DYNAMO,
        "the tracer can't follow the Python code",
        "torch._dynamo.exc.Unsupported: Data-dependent branching",
        r"torch\._dynamo\.exc\.(?!BackendCompilerFailed|InternalTorchDynamoError: Unsupported: Spyre)\w+|graph break|torch\.fx\.experimental\.symbolic_shapes\.\w+|GuardOnDataDependentSymNode|UserDefinedObjectVariable|ConstraintViolationError",
    ),
    _rule(
        "tracer-recursion",
        Stage.DYNAMO,
        "recursion while tracing",
        "RecursionError: maximum recursion depth exceeded",
        r"RecursionError",
        kinds=(Kind.COMPILE,),
    ),
)

LAYOUT_RULES = tuple(
    _rule(f"layout-{name}", LAYOUT, reason, example, pattern)
    for name, reason, example, pattern in (
        ("stick-expression", "an index expression does not fall on whole 64-element sticks", "Unexpected stick expression 2*d1", r"(?P<key>Unexpected stick expression)"),
        ("no-output", "no layout of the output fits those of the inputs", "no supported output layout found", None),
        ("no-stick-layout", "no layout fits the stick expression", "No supported layout found for stick expression", None),
        ("no-fixed-tiled", "a buffer reached the device path without a device layout", "buf3 does not have FixedTiledLayout", r"(?P<key>does not have (?:a )?Fixed(?:Tiled)?Layout)"),
        ("restickify", "an input can't be re-laid out for the op", "cannot restickify any input layout of buf3 to carry", r"(?P<key>cannot restickify|(?:no mechanism|unable) to resolve stick incompatibility)"),
        ("stick-offset", "a slice of the stick dimension leaves an offset inside a stick", "has stick expression with offset 32 (likely from slicing the stick dimension)", r"(?P<key>has stick expression with offset|likely from slicing the stick dimension)"),
        ("slice-offset", "a sliced view does not begin on a stick boundary", "spyre::copy_from_d2d of a sliced view requires a stick-aligned storage_offset", r"(?P<key>stick-aligned storage_offset|requires a stick-aligned)"),
        ("graph-input", "a graph input came without its device layout", "missing device_tensor_layout on graph input", r"(?P<key>missing device_tensor_layout|is not a TensorBox)"),
        ("coordinates", "input and output coordinates don't match", "could not identify Input1", r"(?P<key>could not identify Input\d|not found in output coords|has no matching stride|Unsupported coordinate expression|Incompatible host_size and dim_order)"),
        ("element-arrangement", "inputs of one op have different element arrangements", "All inputs to an op must have same element arrangement", None),
        ("views", "a view is not supported here", "views not supported for spyre.layernormnorm", r"(?P<key>views not supported for|FallbackKernel must be followed by MultiOutput)"),
        ("invariant", "the graph breaks an invariant after a pass", "GraphLowering validation failed: INV-3:", r"(?P<key>GraphLowering validation failed: INV-\d+|invariant violations? detected)"),
        ("tensor-layout", "a device tensor has no or a wrong layout", "Error: Device tensor does not have SpyreTensorLayout", r"(?P<key>does not have SpyreTensorLayout|Invalid device sizes and stride map|Invalid tiling for dimension|re-tiling a)"),
    )
)  # fmt: skip

LOWERING_RULES = tuple(
    _rule(f"lowering-{name}", LOWER, reason, example, pattern)
    for name, reason, example, pattern in (
        ("norm-shape", "only one normalised dimension is supported", "spyre_rms_norm: only supports spyre device with normalized_shape of length 1", r"(?P<key>spyre_(?:rms|layer)_norm): only supports|spyre\.layernorm: unsupported reduction shape"),
        ("topk", "this top-k form is not supported", "Topk is not supported for this config", r"(?P<key>topk)[^\n]{0,40}(?:not supported|only implemented)"),
        ("dropout", "attention dropout has no form", "Attention dropout not implemented for Spyre", None),
        ("conv", "this convolution form is not supported", "conv2d_via_bmm: groups", r"(?P<key>conv2d_via_bmm|conv2d direct lowering|avg_pool2d \w+)"),
        ("scaled-mm", "this fp8 matrix product is not supported", "Expected FP8 input for mat1", r"(?P<key>_scaled_mm|Expected FP8 input for mat)"),
        ("matmul-shape", "the matrix product's shapes have no form", "Unsupported tensor dimensions for mm:", r"(?P<key>Unsupported tensor dimensions for \w+|BMM with input shapes)"),
        ("reduction", "the reduction has an unexpected number of variables", "expected exactly 1 reduction variable", r"(?P<key>expected exactly 1 (?:reduction|generated) variable)"),
        ("scatter", "this scatter or slice form is not supported", "slice_scatter with step=2", r"(?P<key>slice_scatter with step|masked_scatter needs a mask)"),
        ("missing-lowering", "inductor has no lowering for the op", "MissingOperatorWithoutDecomp: missing lowering", r"MissingOperatorWith(?:out)?Decomp|missing lowering|target: (?P<key>aten\.[\w.]+)\b[^\n]*no lowering"),
    )
)  # fmt: skip

CODEGEN_RULES = tuple(
    _rule(f"codegen-{name}", GEN, reason, example, pattern, where=where, kinds=NOT_A_CRASH)
    for name, reason, example, pattern, where in (
        ("dt-exception", "the backend compiler gave up; its own text stands in the captured stderr", "DtException: Illegal ddl, file x.cpp line 12", r"DtException:? (?P<key>(?!what)[^\n]{3,300})", "any"),
        ("work-division", "the work can't be divided over the cores", "Cannot satisfy hardware memory span limit (256MB)", r"(?P<key>Cannot satisfy hardware memory span|No valid split for variable|symbolic stick dim|symbolic dim\(s\)|work_division_hint|mark_dynamic\(min|No valid granularity)", "error"),
        ("tiling", "coarse tiling failed", "coarse_tile: loop bound", r"(?P<key>coarse_tile|Loop group .{0,60} is not contiguous|appears in both group|Named dim '[^']*' used)", "error"),
        ("memory-plan", "intermediates don't fit the planned memory", "HBM intermediate pool peak usage (1) exceeds segment size", r"(?P<key>intermediate pool peak usage|exceeds segment size|scratchpad|LX logout)", "any"),
        ("type-conversion", "no conversion between these types in a kernel", "type conversion from torch.int64 to torch.float16", r"(?P<key>type conversion from \S+ to \S+)", "error"),
        ("op-dtype", "the kernel writer has no form of this op for the data format", "rsqrt on DataFormats.IEEE_FP32", r"(?P<key>\w+ on DataFormats\.\w+)", "error"),
        ("missing-op", "the kernel writer has no form of this op", "'SpyreOpFuncs' has no attribute 'erf'", r"SpyreOpFuncs' (?:object )?has no attribute '(?P<key>\w+)'", "error"),
        ("unimplemented", "an op was compiled to a run-time error: a gap of the compiler that shows when run", "Invoked sdsc_fused_0 which contains unimplemented operation aten.erf", r"unimplemented operation (?P<key>\S+)|Compiling unimplemented (?P<op>\S+)", "any"),
        ("kernel", "the kernel writer met something it can't write", "sdsc_spec is malformed", r"(?P<key>sdsc_spec is malformed|sub-byte dataformat|cannot be statically unrolled|Symbolic loop counts are not yet|unexpected argument \S+ to|store value of unexpected type|invalid \w+ arguments|reduction operands:|OpSpec->KTIR)", "error"),
        ("backend-text", "the backend compiler gave up", "L3_ADDEARIMM overflow", r"(?P<key>Error in codegen|Illegal ddl|L3_ADDEARIMM overflow|Unknown primary dimension kind|Missing producer|Exceeded max iterations)", "any"),
        ("backend-abort", "the backend compiler process died", "Command '['dxp_standalone', '-d', '/tmp/x']' died with <Signals.SIGABRT: 6>.", r"'dxp\w*'[^\n]{0,300}(?P<key>died with <Signals\.\w+|returned non-zero exit status \d+)", "error"),
    )
)  # fmt: skip

LATE_RULES = (
    _rule(
        "stale-artefacts",
        RUN,
        "compiled artefacts are missing, stale or cut off: try a fresh cache folder",
        "Required file spyrecode.json not found",
        r"(?P<key>SpyreCode directory does not exist|spyrecode\.json|Unknown SpyreCode command|Step ordering violation|Incomplete step sequence|Failed to import Hcm|Bundle not found|readHexEncodedFile|No data decoded from file)",
        where="any",
    ),
    _rule(
        "device-memory",
        RUN,
        "the card's memory is used up or an address lies outside",
        "Program size (12) exceeds allocated device memory",
        r"(?P<key>exceeds allocated device memory|out of program segment bounds|out of memory|OutOfMemory\w*|failed to allocate)",
        where="any",
    ),
    _rule(
        "runtime",
        RUN,
        "the device runtime failed",
        "Failed to initialize Spyre runtime.",
        r"(?P<key>Failed to initialize Spyre runtime|Host compute stream|SpyreStream|no flex handle for stream|Unsupported copy types|SpyreStreamError\w*|SpyreDeviceState\w*|SpyreCCL\w*|spyreccl|device is in an? (?:error|unrecoverable) state|launch_jobplan|launch_kernel|ncclSystem)",
        where="any",
    ),
    _rule(
        "process-died",
        RUN,
        "the process was ended by a signal",
        "Fatal Python error: Segmentation fault",
        r".*",
        kinds=(Kind.CRASH,),
    ),
    _rule(
        "engine-core",
        RUN,
        "a vLLM engine process died; its own text stands above",
        "RuntimeError: Engine core initialization failed. See root cause above.",
        r"Engine core (?:initialization failed|died)|EngineDeadError|EngineCore (?:encountered|failed)|Worker\w* (?:died|failed)",
    ),
    _rule(
        "backend-unsupported",
        LOWER,
        "the backend says that it does not support this",
        "Unsupported: Spyre backend does not support: conv with groups",
        r"Spyre backend does not support: (?P<key>[^\n]{3,200})",
    ),
    _rule(
        "moved-signature",
        ENV,
        "a call does not fit an interface any more: an upgrade moved it",
        "TypeError: forward() got an unexpected keyword argument 'kv_cache'",
        r"(?P<key>[\w.]+\(\) (?:got an unexpected keyword argument '\w+'|missing \d+ required (?:positional|keyword-only) arguments?|takes \d+ positional arguments? but)"
        r"|'\w*(?:Config|Output|Metadata|Request|Params|Builder|Runner|Scheduler|Platform|Parallel\w*|Graph\w*)' object has no attribute '\w+')",
        where="outside",
    ),
    _rule(
        "test-signature",
        TEST,
        "a call does not fit the function's signature: test and code have drifted apart",
        "TypeError: forward() got an unexpected keyword argument 'x'",
        r"got an unexpected keyword argument|missing \d+ required (?:positional|keyword-only) argument|takes \d+ positional arguments? but|got multiple values for argument",
    ),
)

RULES: tuple[Rule, ...] = (
    *FALLBACK_RULES,
    *ENVIRONMENT_RULES[:4],
    *TEST_RULES,
    *RUNTIME_RULES,
    *ENVIRONMENT_RULES[4:7],
    *DISPATCH_RULES,
    *LAYOUT_RULES,
    *LOWERING_RULES,
    *CODEGEN_RULES,
    *DYNAMO_RULES,
    *ENVIRONMENT_RULES[7:],
    *LATE_RULES,
)

# where the innermost backend frame lies says the stage when no text does
FRAME_STAGES: tuple[tuple[str, Stage], ...] = (
    ("ops/fallbacks", Stage.FALLBACK),
    ("propagate_layouts", LAYOUT),
    ("pass_utils", LAYOUT),
    ("restickify", LAYOUT),
    ("stickify", LAYOUT),
    ("_inductor/views", LAYOUT),
    ("graph_validation", LAYOUT),
    ("split_multi_ops", LAYOUT),
    ("padding", LAYOUT),
    ("decompositions", LOWER),
    ("lowering", LOWER),
    ("customops", LOWER),
    ("temp_passes", LOWER),
    ("spyre_kernel", GEN),
    ("_inductor/codegen", GEN),
    ("async_compile", GEN),
    ("work_division", GEN),
    ("coarse_tile", GEN),
    ("memory_planning", GEN),
    ("scratchpad", GEN),
    ("scheduler", GEN),
    ("kernel_runner", RUN),
    ("csrc/", RUN),
    ("torch_spyre/streams", RUN),
    ("ops/eager", Stage.DISPATCH),
    ("_monkey_patch", Stage.DISPATCH),
    ("torch/_dynamo", Stage.DYNAMO),
    ("torch/_inductor", LOWER),
)
