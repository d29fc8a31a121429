"""The classification rules in their order (the first that matches a failure counts), and those for the way from Python to the card.

Each rule carries an example that it must match first (a test holds that). Hardware and environment come before the
compiler, the compiler before the runtime; general rules stand last.
"""

from __future__ import annotations

from debug_spyre.triage.rule import ANY_KIND, NOT_A_CRASH, Rule, make_rule
from debug_spyre.triage.rules_environment import ENVIRONMENT_RULES, LATE_RULES, RUNTIME_RULES, TEST_RULES
from debug_spyre.vocabulary.evidence import Kind, Stage

ENV, TEST, RUN = Stage.ENVIRONMENT, Stage.TEST_BUG, Stage.RUNTIME
LAYOUT, LOWER, GEN = Stage.LAYOUT, Stage.LOWERING, Stage.CODEGEN

FALLBACK_RULES = (
    make_rule(
        "fallback-as-error",
        Stage.FALLBACK,
        "a fallback to the CPU, raised as an error by a filter",
        "torch_spyre.ops.fallbacks.FallbackWarning: aten.cumsum.default is falling back to cpu",
        r"FallbackWarning: (?!\S*FallbackWarning)(?P<key>.{1,200}?) is falling back to \w+",
        tags=("fallback-as-error",),
        kinds=ANY_KIND,
    ),
    make_rule(
        "fallback-asserted",
        Stage.FALLBACK,
        "the test asserts that nothing falls back to the CPU, and an op does",
        "AssertionError: assert 1 == 0\n +  where 1 = len(['aten.sin.default is falling back to cpu'])",
        r"assert\b[\s\S]{0,1500}?(?:(?P<key>[\w:]+(?:\.\w+)+) is falling back to \w+|FallbackWarning)",
        kinds=(Kind.MISMATCH, Kind.EXCEPTION),
    ),
)


DISPATCH_RULES = (
    make_rule(
        "python-too-old",
        Stage.ENVIRONMENT,
        "Python before 3.12 can't give the warning of a fallback: every fallback raises this (debug-spyre doctor)",
        "TypeError: warn() got an unexpected keyword argument 'skip_file_prefixes'",
        r"unexpected keyword argument '(?P<key>skip_file_prefixes)'|'(?:skip_file_prefixes)' is an invalid keyword argument",
        kinds=ANY_KIND,
    ),
    make_rule(
        "no-kernel",
        Stage.DISPATCH,
        "the op has no kernel, decomposition or fallback for this device",
        "NotImplementedError: Could not run 'aten::roll' with arguments from the 'spyre' backend.",
        r"Could not run '(?P<key>[\w:.]+)' with arguments from the|There were no tensor arguments to this function|not (?:currently )?implemented for the '?spyre|no (?:spyre )?kernel (?:is )?registered",
        kinds=(Kind.EXCEPTION, Kind.COMPILE),
    ),
    make_rule(
        "devices-mixed",
        Stage.DISPATCH,
        "tensors of different devices meet in one op",
        "RuntimeError: Expected all tensors to be on the same device, but found: cpu, spyre:0",
        r"Expected all tensors to be on the same device|inputs (?:being )?on a different device|argument 'out' must be Tensor|Cannot copy out of meta tensor",
    ),
    make_rule(
        "no-dtype",
        Stage.DISPATCH,
        "the dtype has no form on the device",
        "RuntimeError: Spyre backend does not support dtype Double",
        r"Spyre backend does not support dtype (?P<key>\S+)|has no Spyre device representation|does not support type conversion yet|Unsupported (?:CPU|Spyre) tensor dtype for DMA|can't be cast to the desired output type|does not support complex fill",
    ),
    make_rule(
        "written-twice",
        Stage.DISPATCH,
        "an op writes into an expanded view, several of whose elements are one place in memory: clone() the tensor first",
        "RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location",
        r"more than one element of the written-to tensor",
    ),
    make_rule(
        "retile",
        LAYOUT,
        "a compiled graph assumes another device layout than the eager result has, which is re-tiled through the host: values are right,"
        " time is lost; make the tensor inside the compiled function, or restickify it once",
        "RetileWarning: re-tiling a torch.Size([4, 64]) torch.float16 eager result whose device layout is not the one a compiled graph assumes",
        r"RetileWarning|re-tiling a .{1,200}? eager result",
        kinds=ANY_KIND,
    ),
    make_rule(
        "not-contiguous",
        Stage.DISPATCH,
        "the device allocator takes contiguous memory only",
        "Spyre backend only supports contiguous memory format, got: ChannelsLast",
        r"only supports contiguous memory format|Pin memory can only be on CPU|aten::resize_",
    ),
    make_rule(
        "fallback-registration",
        Stage.DISPATCH,
        "an op reached a body that its CPU fallback should have replaced",
        "spyre::max_dim_int64_fallback should be handled by CPU fallback registration",
        r"should be handled by CPU fallback registration",
    ),
)

DYNAMO_RULES = (
    make_rule(
        "recompile-limit",
        Stage.DYNAMO,
        "the graph was compiled again and again until the limit",
        "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached",
        r"recompile_limit|cache_size_limit|FailOnRecompileLimit|accumulated_recompile_limit|RecompileError|Recompiling function",
    ),
    make_rule(
        "eager-forms",
        Stage.DYNAMO,
        "eager kernels call themselves: more forms of them in one process than dynamo's accumulated_recompile_limit (256), or one was compiled under a dispatch mode; raise the limit, or run fewer tests in a process",
        "RecursionError: maximum recursion depth exceeded",
        where="kernel",
    ),
    make_rule(
        "dynamo",
        Stage.DYNAMO,
        "the tracer can't follow the Python code",
        "torch._dynamo.exc.Unsupported: Data-dependent branching",
        r"torch\._dynamo\.exc\.(?!BackendCompilerFailed|InternalTorchDynamoError: Unsupported: Spyre)\w+|graph break|torch\.fx\.experimental\.symbolic_shapes\.\w+|GuardOnDataDependentSymNode|UserDefinedObjectVariable|ConstraintViolationError",
    ),
    make_rule(
        "tracer-recursion",
        Stage.DYNAMO,
        "recursion while tracing",
        "RecursionError: maximum recursion depth exceeded",
        r"RecursionError",
        kinds=(Kind.COMPILE,),
    ),
)

LAYOUT_RULES = tuple(
    make_rule(f"layout-{name}", LAYOUT, reason, example, pattern)
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
        ("storage-size", "a storage has another item size than its tensor: a wrong dtype reached the layout; look at what sets dtype or itemsize before setStorage", "setStorage: sizes [1, 1, 855], strides [855, 855, 1], storage offset 0, and itemsize 8 requiring a storage size of 6840 are out of bounds for storage of size 3456", r"setStorage: sizes [^\n]{0,300}(?P<key>itemsize \d+)[^\n]{0,80}out of bounds for storage"),
        ("tensor-layout", "a device tensor has no or a wrong layout", "Error: Device tensor does not have SpyreTensorLayout", r"(?P<key>does not have SpyreTensorLayout|Invalid device sizes and stride map|Invalid tiling for dimension|re-tiling a)"),
    )
)  # fmt: skip

LOWERING_RULES = tuple(
    make_rule(f"lowering-{name}", LOWER, reason, example, pattern)
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
    make_rule(f"codegen-{name}", GEN, reason, example, pattern, where=where, kinds=NOT_A_CRASH)
    for name, reason, example, pattern, where in (
        ("dt-exception", "the backend compiler gave up; its own text stands in the captured stderr", "DtException: Illegal ddl, file x.cpp line 12", r"DtException:? (?P<key>(?!what)[^\n]{3,300})", "any"),
        ("work-division", "the work can't be divided over the cores", "Cannot satisfy hardware memory span limit (256MB)", r"(?P<key>Cannot satisfy hardware memory span|No valid split for variable|symbolic stick dim|symbolic dim\(s\)|work_division_hint|mark_dynamic\(min|No valid granularity)", "error"),
        ("span-limit", "a core's part of a tensor is larger than the hardware's span: no split of the work makes it smaller; split or reshape the tensor, or shard its largest dimension", "buf0: per-core tensor span 960.000 MB (shape=[1, 262144]) exceeds hardware limit of 256.000 MB", r"(?P<key>per-core tensor span) [\d.]+ \w?B[^\n]{0,400}exceeds hardware limit", "error"),
        ("tiling", "coarse tiling failed", "coarse_tile: loop bound", r"(?P<key>coarse_tile|Loop group .{0,60} is not contiguous|appears in both group|Named dim '[^']*' used)", "error"),
        ("memory-plan", "intermediates don't fit the planned memory", "HBM intermediate pool peak usage (1) exceeds segment size", r"(?P<key>intermediate pool peak usage|exceeds segment size|scratchpad|LX logout)", "any"),
        ("type-conversion", "no conversion between these types in a kernel", "type conversion from torch.int64 to torch.float16", r"(?P<key>type conversion from \S+ to \S+)", "error"),
        ("op-dtype", "the kernel writer has no form of this op for the data format", "rsqrt on DataFormats.IEEE_FP32", r"(?P<key>\w+ on DataFormats\.\w+)", "error"),
        ("missing-op", "the kernel writer has no form of this op", "'SpyreOpFuncs' has no attribute 'erf'", r"SpyreOpFuncs' (?:object )?has no attribute '(?P<key>\w+)'", "error"),
        ("unimplemented", "an op was compiled to a run-time error: a gap of the compiler that shows when run", "Invoked sdsc_fused_0 which contains unimplemented operation aten.erf", r"unimplemented operation (?P<key>\S+)|Compiling unimplemented (?P<op>\S+)|UnimplementedOp\b[^\n]{0,20}?(?P<name>aten[.:]+[\w.]+|\w+)?", "any"),
        ("kernel", "the kernel writer met something it can't write", "sdsc_spec is malformed", r"(?P<key>sdsc_spec is malformed|sub-byte dataformat|cannot be statically unrolled|Symbolic loop counts are not yet|unexpected argument \S+ to|store value of unexpected type|invalid \w+ arguments|reduction operands:|OpSpec->KTIR)", "error"),
        ("backend-text", "the backend compiler gave up", "L3_ADDEARIMM overflow", r"(?P<key>Error in codegen|Illegal ddl|L3_ADDEARIMM overflow|Unknown primary dimension kind|Missing producer|Exceeded max iterations)", "any"),
        ("backend-abort", "the backend compiler process died", "Command '['dxp_standalone', '-d', '/tmp/x']' died with <Signals.SIGABRT: 6>.", r"'dxp\w*'[^\n]{0,300}(?P<key>died with <Signals\.\w+|returned non-zero exit status \d+)", "error"),
    )
)  # fmt: skip


RULES: tuple[Rule, ...] = (
    *FALLBACK_RULES,
    *ENVIRONMENT_RULES[:4],
    *TEST_RULES,
    *RUNTIME_RULES,
    *ENVIRONMENT_RULES[4:8],
    *DISPATCH_RULES,
    *LAYOUT_RULES,
    *LOWERING_RULES,
    *CODEGEN_RULES,
    *DYNAMO_RULES,
    *ENVIRONMENT_RULES[8:],
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
