"""Each way in which some torch-spyre registered an op is read, at its line, and the right one wins."""

import pytest

TORCH = "import torch\naten = torch._ops.ops.aten\n"
LISTS = TORCH + "fallback_ops = []\n"
INSTALLS = (
    "def install():\n"
    "    lib = torch.library.Library('aten', 'IMPL', 'PrivateUse1')\n"
    "    for op, wrapper in spyre_decompositions_via_dispatchkey.items():\n"
    "        lib.impl(op._name, wrapper)\n"
)
DECOMPOSITIONS = TORCH + "spyre_decompositions = {}\nspyre_decompositions_via_dispatchkey = {}\n" + INSTALLS

# number of the form: files, op asked, (eager, compiled), site's form, (file, line) of a site of that form
FORMS = {
    "1 compiled kernels in a list": (
        {"ops/eager.py": TORCH + "register_torch_compile_kernel(\n    [\n        aten.exp,\n        aten.ne.Tensor_out,\n    ]\n)\n"},
        "aten.exp", ("kernel", "unknown"), "compiled-kernel", ("ops/eager.py", 5),
    ),
    "1 an overload in that list": (
        {"ops/eager.py": TORCH + "register_torch_compile_kernel([aten.exp, aten.ne.Tensor_out])\n"},
        "aten.ne.Tensor_out", ("kernel", "unknown"), "compiled-kernel", ("ops/eager.py", 3),
    ),
    "2 compiled kernels by a constant": (
        {"ops/eager.py": TORCH + "COMPILED_OPS = [\n    aten.amax,\n]\nregister_torch_compile_kernel(COMPILED_OPS)\n"},
        "amax", ("kernel", "unknown"), "compiled-kernel", ("ops/eager.py", 4),
    ),
    "2 by a constant of another module": (
        {
            "ops/lists.py": TORCH + "BASE = [aten.exp]\nCOMPILED_OPS = [*BASE] + [aten.amax]\nCOMPILED_OPS += [aten.log]\n",
            "ops/eager.py": "from .lists import COMPILED_OPS as OPS\nregister_torch_compile_kernel(OPS)\n",
        },
        "aten.log", ("kernel", "unknown"), "compiled-kernel", ("ops/lists.py", 5),
    ),
    "3 derived in-place kernels": (
        {"ops/eager.py": TORCH + "OPS = [aten.relu]\nregister_torch_compile_kernel(OPS)\nregister_inplace_kernels(OPS)\n"},
        "aten.relu_", ("kernel", "unknown"), "inplace-kernel", ("ops/eager.py", 3),
    ),
    "4 a hand-written kernel, device as a list": (
        {"ops/eager.py": TORCH + '@torch.library.register_kernel("aten::mm", ["spyre"])\ndef mm(a, b):\n    return a\n'},
        "mm", ("kernel", "unknown"), "kernel", ("ops/eager.py", 3),
    ),
    "4 a hand-written kernel, device as a word": (
        {"ops/eager.py": TORCH + '@torch.library.register_kernel("aten::uniform_", "spyre")\ndef uniform_(self):\n    return self\n'},
        "uniform_", ("kernel", "unknown"), "kernel", ("ops/eager.py", 3),
    ),
    "4 stacked over compile_once": (
        {"ops/eager.py": TORCH + '@torch.library.register_kernel("aten::mm.out", ["spyre"])\n@compile_once(torch.mm)\ndef mm(a, b, out):\n    return a\n'},
        "mm.out", ("kernel", "unknown"), "kernel", ("ops/eager.py", 3),
    ),
    "6 default CPU fallbacks": (
        {"ops/fallbacks.py": LISTS + "register_fallback_default(\n    [\n        aten.cumsum,\n        aten.where.default,\n    ]\n)\n"},
        "cumsum", ("fallback", "fallback"), "fallback", ("ops/fallbacks.py", 6),
    ),
    "7 a custom fallback by words": (
        {"ops/fallbacks.py": LISTS + 'fallback_ops.append(aten.sin.default)\n@register_fallback(["spyre::thing"])\ndef f(x):\n    return x\n'},
        "spyre.thing", ("fallback", "fallback"), "fallback", ("ops/fallbacks.py", 5),
    ),
    "7 a custom fallback by attributes, old place": (
        {"fallbacks.py": LISTS + "@register_fallback([aten.sin.default, aten.sin.out], device='cpu')\ndef f(x):\n    return x\n"},
        "sin.out", ("fallback", "fallback"), "fallback", ("fallbacks.py", 4),
    ),
    "8 listed only": (
        {"ops/fallbacks.py": LISTS + 'fallback_ops.append(aten.normal_.default)\nfallback_ops.append(getattr(aten.random_, "from"))\n'},
        "aten.random_.from", ("unknown", "fallback"), "fallback", ("ops/fallbacks.py", 5),
    ),
    "9 a decomposition, eager kernel included": (
        {"_inductor/decompositions.py": DECOMPOSITIONS + "@register_spyre_decomposition(\n    [torch.ops.aten.layer_norm.default]\n)\ndef f(x):\n    return x\n"},
        "layer_norm", ("decomposition", "decomposition"), "decomposition", ("_inductor/decompositions.py", 10),
    ),
    "9 a decomposition of a packet": (
        {"_inductor/decompositions.py": DECOMPOSITIONS + "@register_spyre_decomposition([torch.ops.aten.topk])\ndef f(x):\n    return x\n"},
        "topk", ("decomposition", "decomposition"), "decomposition", ("_inductor/decompositions.py", 9),
    ),
    "10 the new name, packets expanded": (
        {
            "_inductor/decompositions.py": TORCH
            + "def install():\n    lib = torch.library.Library('aten', 'IMPL', 'PrivateUse1')\n    for op, fn in spyre_decompositions.items():\n"
            "        if op.namespace != 'aten':\n            continue\n        lib.impl(op._name, fn)\n"
            "@register_spyre_decompositions([torch.ops.aten.topk])\ndef f(x):\n    return x\n"
        },
        "topk", ("decomposition", "decomposition"), "decomposition", ("_inductor/decompositions.py", 9),
    ),
    "11 a raw decomposition": (
        {"_inductor/decompositions.py": TORCH + "import torch._decomp as decomp\n@decomp.register_decomposition([torch.ops.spyre.unscale], spyre_decompositions)\ndef f(x):\n    return x\n"},
        "spyre.unscale", ("unknown", "decomposition"), "decomposition", ("_inductor/decompositions.py", 4),
    ),
    "12 an excluded decomposition": (
        {"_inductor/decompositions.py": TORCH + "spyre_decompositions_to_exclude = [\n    torch.ops.aten.triu,\n]\n"},
        "triu", ("unknown", "unknown"), "excluded", ("_inductor/decompositions.py", 4),
    ),
    "13 stacked lowerings": (
        {"_inductor/lowering.py": TORCH + "@register_spyre_lowering(torch.ops.spyre.batched.default)\n@register_spyre_lowering(torch.ops.aten.bmm.default, type_promotion_kind=None)\ndef f(x):\n    return x\n"},
        "bmm", ("unknown", "lowering"), "lowering", ("_inductor/lowering.py", 4),
    ),
    "13 a lowering of a collective": (
        {"_inductor/lowering.py": TORCH + "@register_spyre_lowering(torch.ops._c10d_functional.all_reduce.default)\ndef f(x):\n    return x\n"},
        "_c10d_functional.all_reduce", ("unknown", "lowering"), "lowering", ("_inductor/lowering.py", 3),
    ),
    "14 a raw lowering": (
        {"_inductor/lowering.py": "import torch\nimport torch._inductor.lowering as lowering\n@lowering.register_lowering(torch.ops.aten.mm.default)\ndef f(x):\n    return x\n"},
        "mm", ("unknown", "lowering"), "lowering", ("_inductor/lowering.py", 3),
    ),
    "16 lowerings taken out, one by one": (
        {"_inductor/lowering.py": "import torch\nfrom torch._inductor import lowering\nout = [torch.ops.aten.cos.default]\nfor op in out:\n    unregister_lowering(op)\n"},
        "cos", ("unknown", "unknown"), "excluded", ("_inductor/lowering.py", 3),
    ),
    "17 a custom op over several lines": (
        {"_inductor/customops.py": 'import torch\n@torch.library.custom_op(\n    "spyre::copy_over", mutates_args=("dst",), device_types="spyre"\n)\ndef f(src, dst):\n    pass\n\n@f.register_fake\ndef _(src, dst):\n    pass\n'},
        "spyre::copy_over", ("custom-op", "custom-op"), "custom-op", ("_inductor/customops.py", 3),
    ),
    "18 a custom op compiled once": (
        {"_inductor/customops.py": 'import torch\n@torch.library.custom_op("spyre::over", mutates_args=())\n@compile_once("spyre.over", dynamic=False)\ndef f(x, compiled):\n    return compiled(x)\n'},
        "over", ("custom-op", "custom-op"), "custom-op", ("_inductor/customops.py", 2),
    ),
    "19 a kernel for the CPU is none for the card": (
        {"_inductor/customops.py": 'import torch\n@torch.library.register_kernel("spyre::over", ["cpu"])\ndef f(x):\n    return x\n'},
        "spyre.over", ("unknown", "unknown"), "other-device", ("_inductor/customops.py", 2),
    ),
    "19 a kernel by the custom op's own method": (
        {"_inductor/customops.py": 'import torch\n@torch.library.custom_op("spyre::over", mutates_args=(), device_types="cpu")\ndef over(x):\n    return x\n@over.register_kernel("spyre")\ndef _(x):\n    return x\n'},
        "spyre.over", ("kernel", "custom-op"), "kernel", ("_inductor/customops.py", 5),
    ),
    "20 marks": (
        {"_inductor/customops.py": "import torch\nfrom torch._inductor.fx_passes.reinplace import inplaceable_ops\ninplaceable_ops[torch.ops.spyre.put.default] = object()\nmark_lx_safe(torch.ops.spyre.put.default)\n"},
        "spyre.put", ("unknown", "unknown"), "mark", ("_inductor/customops.py", 3),
    ),
    "21 a graph pattern": (
        {"_inductor/temp_passes.py": "import torch\naten = torch.ops.aten\n@register_graph_pattern(\n    CallFunction(aten.mm.default, Arg(), Arg()),\n    pass_dict=p,\n)\ndef f(m):\n    pass\n"},
        "mm.default", ("unknown", "unknown"), "pattern", ("_inductor/temp_passes.py", 4),
    ),
    "24 C++": (
        {"csrc/views.cpp": '// m.impl("sin", f);\nTORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {\n  m.impl("view", TORCH_FN(f)); /* m.impl("cos", f) */\n  m.impl("set_.source_Storage", &g);\n  m.impl("sum", torch::CppFunction::makeFallthrough());\n}\n'},
        "view", ("kernel", "unknown"), "cpp", ("csrc/views.cpp", 3),
    ),
    "25 autocast": (
        {"csrc/cast.cpp": "TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {\n  KERNEL_PRIVATEUSEONE(pow, Tensor_Scalar, fp32)\n}\n"},
        "pow.Tensor_Scalar", ("unknown", "unknown"), "autocast", ("csrc/cast.cpp", 2),
    ),
    "26 a function replaced": (
        {"_inductor/decompositions.py": "import torch\ndef spyre_gelu(x):\n    return x\ntorch.nn.functional.gelu = spyre_gelu\n"},
        "gelu", ("unknown", "unknown"), "patch", ("_inductor/decompositions.py", 4),
    ),
    "27 a table of shape functions": (
        {"_inductor/fake_ops.py": "import torch\naten = torch.ops.aten\n_meta_ops = {\n    aten.amax.default: f,\n    **{op: g for op in (aten.exp.default,)},\n}\n"},
        "amax", ("unknown", "unknown"), "fake", ("_inductor/fake_ops.py", 4),
    ),
    "28 rows of a table": (
        {"codegen/inputs/Metadata.yaml": "- operator_name: abs\n  sendnn_func_name: Abs\n  template_name: base\n- operator_name: arange\n  template_name: custom\n"},
        "abs", ("kernel", "unknown"), "cpp", ("codegen/inputs/Metadata.yaml", 1),
    ),
    "29 a fallback for one model": (
        {"ops/model_fallbacks.py": 'register_model_fallback("mistral", "reshape")\nregister_model_fallback("gpt2", "cat", target_module="torch")\n'},
        "aten.cat", ("unknown", "unknown"), "model-fallback", ("ops/model_fallbacks.py", 2),
    ),
    "30 an asynchronous collective": (
        {"_inductor/distributed/spyre_library.py": 'import torch\nlib = torch.library.Library("spyre", "DEF")\nlib.define("all_reduce_async(Tensor x) -> Tensor")\nlib.impl("all_reduce_async", f, "PrivateUse1")\n'},
        "spyre.all_reduce_async", ("kernel", "custom-op"), "kernel", ("_inductor/distributed/spyre_library.py", 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_every_form_is_found_at_its_line_and_judged(case, reading):
    files, op, verdicts, form, place = FORMS[case]
    read = reading(files)
    assert read.verdicts(op) == verdicts, [read(op).summary.eager.why, read(op).summary.compiled.why]
    assert place in [(file, line) for _, file, line in read.sites(form)]
    assert not read.surface.unresolved
    assert not read.surface.warnings


def test_5_and_23_a_helpers_own_body_registers_nothing_by_itself(reading):
    body = (
        "def helper(ops):\n    for op in _get_op_overloads(ops):\n        torch.library.register_kernel(op.name(), ['spyre'])(f)\n"
        "def register_fallback(ops, device='cpu'):\n    def decorate(fn):\n        for op in ops:\n            fallback_ops.append(op)\n"
        "            torch.library.register_kernel(op, ['spyre'])(fn)\n        return fn\n    return decorate\n"
    )
    read = reading({"ops/fallbacks.py": LISTS + body})
    assert not read.surface.sites
    assert not read.surface.unresolved


def test_what_the_text_does_not_tell_is_listed_with_its_place(reading):
    body = "register_torch_compile_kernel(load_list('ops.json'))\nregister_torch_compile_kernel([aten.exp, *more()])\n"
    read = reading({"ops/eager.py": TORCH + body})
    assert read.sites() == [("aten.exp", "ops/eager.py", 4)]
    assert [(u.file, u.line) for u in read.surface.unresolved] == [("torch_spyre/ops/eager.py", 3)]


@pytest.mark.parametrize(
    "text",
    [
        "OPS = [aten.sin, aten.cos]\nregister_torch_compile_kernel(OPS)",
        "register_torch_compile_kernel([getattr(aten, n) for n in ('sin', 'cos')])",
        "register_torch_compile_kernel([aten.sin] + [aten.cos])",
        "register_torch_compile_kernel([*(aten.sin, aten.cos)])",
        "names = 'sin cos'.split(' ')\nregister_torch_compile_kernel([getattr(aten, n) for n in names if n != 'tan'])",
        "OPS = []\nOPS.append(aten.sin)\nOPS.extend([aten.cos])\nregister_torch_compile_kernel(OPS)",
        "OPS = {'a': aten.sin, 'b': aten.cos}\nregister_torch_compile_kernel(list(OPS.values()))",
        "for op in (aten.sin, aten.cos):\n    register_torch_compile_kernel([op])",
        "def ops():\n    yield aten.sin\n    yield aten.cos\nregister_torch_compile_kernel(list(ops()))",
        "try:\n    register_torch_compile_kernel([aten.sin])\nexcept RuntimeError:\n    register_torch_compile_kernel([aten.cos])",
        "for name in ('sin',) if torch.cuda else ('cos',):\n    register_torch_compile_kernel([getattr(aten, name)])",
        "if torch.cuda:\n    OPS = [aten.sin]\nelse:\n    OPS = [aten.cos]\nregister_torch_compile_kernel(OPS)",
        "def late():\n    register_torch_compile_kernel([aten.sin, aten.cos])",
    ],
)
def test_constants_are_resolved_however_they_are_written(text, reading):
    read = reading({"ops/eager.py": TORCH + text + "\n"})
    assert {op for op, _, _ in read.sites("compiled-kernel")} == {"aten.sin", "aten.cos"}
    assert not read.surface.unresolved


def test_the_shipped_list_stands_in_for_a_compiled_part_and_says_so(reading):
    uses = "from torch_spyre._C import copy_tensor\n"
    read = reading({"ops/eager.py": uses}, compiled=True)
    answer = read("aten.view")
    assert answer.summary.eager.verdict == "kernel"
    assert "assumed" in answer.summary.eager.why
    assert reading({"ops/eager.py": uses})("aten.view").summary.eager.verdict == "unknown"
    assert reading({"ops/eager.py": "\n"}, compiled=True)("aten.view").summary.eager.verdict == "unknown"
    older = reading({"__init__.py": uses}, compiled=True)
    assert older("aten.view").summary.eager.verdict == "unknown"
    assert "compiled part" in older.surface.warnings[0]


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("    tmp = torch.ones(self.size(), dtype=self.dtype)\n    self.copy_(tmp)\n    return self", "SILENT"),
        ("    return self.cpu().item()", "SILENT"),
        ("    t = torch.empty_like(self, device='cpu')\n    self.copy_(t)", "SILENT"),
        ("    if odd:\n        return self.to('cpu')\n    return self", "one branch"),
        ("    warn_fallback('x')\n    return self.cpu()", "warns"),
        ("    fill_tensor(self, 1.0)\n    return self", ""),
    ],
)
def test_silent_work_on_the_host_is_marked(body, note, reading):
    read = reading(
        {
            "ops/eager.py": f'{TORCH}@torch.library.register_kernel("aten::fill_.Scalar", ["spyre"])\ndef f(self, v):\n{body}\n'
        }
    )
    why = read("aten.fill_.Scalar").summary.eager.why
    assert note in why
    assert bool(note) == (";" in why)


def test_int64_by_another_way_is_marked(reading):
    read = reading(
        {
            "_inductor/lowering.py": TORCH
            + "@register_spyre_lowering(torch.ops.aten.add.Tensor)\ndef f(x, y):\n    return with_int64_fallback(g, x, y)\n"
        }
    )
    assert "int64" in read("add").summary.compiled.why


def test_places_on_the_cpu_are_listed_for_programs(reading):
    from debug_spyre.surface.op_verdict import op_json

    text = (
        TORCH
        + '@torch.library.register_kernel("aten::zero_", ["spyre"])\ndef f(self):\n    self.copy_(torch.zeros(3, device="cpu"))\n'
    )
    read = reading({"ops/eager.py": text})
    assert op_json(read("aten.zero_"))["cpu"]["silent"] == ["torch_spyre/ops/eager.py:3"]
    assert op_json(read("aten.mm"))["cpu"] == {"silent": [], "sometimes": [], "warns": [], "int64": []}


NEWER = {
    "ops/fallbacks.py": LISTS + "register_fallback_default([aten.tril, aten.arange])\nfallback_ops.append(getattr(aten.random_, 'from'))\n",
    "ops/eager.py": (
        "import torch\nfrom .fallbacks import _get_op_overloads\naten = torch.ops.aten\n"
        "def _with_kernel(ops):\n    for op in _get_op_overloads(ops):\n        if 'Tensor' not in str(op._schema):\n            continue\n"
        "        if 'dtype' in op.name():\n            continue\n        yield op\n"
        "def register_torch_compile_kernel(ops):\n    for op in _with_kernel(ops):\n        torch.library.register_kernel(op.name(), ['spyre'])(f)\n"
        "COMPILED_OPS = [aten.mul, aten.mean, aten.pow, aten.embedding.default]\n"
        "register_torch_compile_kernel(COMPILED_OPS)\n"
        "def _sibling(op):\n    packet, _, overload = op.name().partition('.')\n    name = packet.split('::')[1][:-1]\n"
        "    return getattr(getattr(aten, name, None), overload or 'default')\n"
        "def register_inplace_kernels(ops):\n    compiled = {op.name() for op in _with_kernel(ops)}\n"
        "    names = {name.partition('.')[0].split('::')[1] for name in compiled}\n    for name in sorted(names):\n"
        "        packet = getattr(aten, name + '_', None)\n        for overload in packet.overloads():\n"
        "            op = getattr(packet, overload)\n            if _sibling(op) is None:\n                continue\n"
        "            torch.library.register_kernel(op.name(), ['spyre'])(g)\n"
        "register_inplace_kernels(COMPILED_OPS)\n"
    ),
    "_inductor/decompositions.py": (
        "import torch\nimport torch._decomp as decomp\nspyre_decompositions: dict = {}\n"
        "spyre_decompositions_to_exclude = [\n    torch.ops.aten.triu,\n    torch.ops.aten.mm,\n]\n"
        "def register_spyre_decompositions(ops):\n    return decomp.register_decomposition(ops, spyre_decompositions)\n"
        "def table():\n    t = dict(select())\n    for op in spyre_decompositions_to_exclude:\n        drop(op)\n    t.update(spyre_decompositions)\n    return t\n"
        "def install():\n    lib = Library('aten', 'IMPL', 'PrivateUse1')\n    auto = Library('aten', 'IMPL', 'AutogradPrivateUse1')\n"
        "    for op, fn in spyre_decompositions.items():\n        if op.namespace != 'aten' or has(op._name, 'PrivateUse1'):\n            continue\n"
        "        auto.impl(op._name, fallthrough_kernel)\n        lib.impl(op._name, wrap(fn))\n"
        "@register_spyre_decompositions([torch.ops.aten.topk])\ndef f(x):\n    return x\n"
        "@register_spyre_decompositions([torch.ops.aten.flip.default])\ndef g(x):\n    return x\n"
    ),
    "_inductor/lowering.py": (
        "import torch\nimport torch._inductor.lowering as lowering\nfrom torch_spyre.ops.fallbacks import fallback_ops\nspyre_lowerings: dict = {}\n"
        "def register_spyre_lowering(op, name=None, lowering_dict=spyre_lowerings):\n    return lowering.register_lowering(op, lowering_dict=lowering_dict)\n"
        "def register_fallback_over_decomp(ops):\n    for op in ops:\n        for overload in lowering.get_overloads(op):\n            lowering.make_fallback(overload, override_decomp=True)\n"
        "def enable():\n    removed = unregister_lowerings(fallback_ops, lowering.lowerings, allow_missing=True)\n"
        "    added = register_fallback_over_decomp(fallback_ops)\n"
        "    for op, impl in spyre_lowerings.items():\n        lowering.lowerings[op] = impl\n"
        "    saved = getattr(enable, '_saved', {})\n    for op, old in saved.items():\n        lowering.lowerings[op] = old\n"
        "    for overload in getattr(enable, '_added', []):\n        lowering.lowerings.pop(overload, None)\n"
        "@register_spyre_lowering(torch.ops.aten.mm.default)\n@register_spyre_lowering(torch.ops._c10d_functional.wait_tensor.default)\ndef h(x):\n    return x\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "verdicts"),
    [
        ("aten.mul_", ("kernel", "unknown")),
        ("aten.embedding", ("kernel", "unknown")),
        ("aten.topk", ("decomposition", "decomposition")),
        ("aten.flip", ("decomposition", "decomposition")),
        ("aten.triu", ("unknown", "unknown")),
        ("aten.mm", ("unknown", "lowering")),
        ("aten.tril", ("fallback", "fallback")),
        ("aten.random_.from", ("unknown", "fallback")),
        ("_c10d_functional.wait_tensor", ("unknown", "lowering")),
    ],
)
def test_the_newest_layout_as_a_whole_leaves_nothing_open(name, verdicts, reading):
    read = reading(NEWER)
    assert read.surface.unresolved == ()
    assert read.verdicts(name) == verdicts, [read(name).summary.eager.why, read(name).summary.compiled.why]
