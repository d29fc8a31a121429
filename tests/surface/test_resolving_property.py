"""Whatever way a list of ops is written down, the same ops are found, and hostile sources never stop the reader."""

import ast
import os

from hypothesis import given, settings
from hypothesis import strategies as st

from debug_spyre.surface.registry import read_cpp, read_rows, read_surface

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
OPS = ["mm", "bmm", "exp", "sin", "cos", "tril", "relu", "where", "cat", "sum"]


def literal(names):
    return "[" + ", ".join(f"aten.{name}" for name in names) + "]"


STYLES = {
    "plain": lambda names, n: ("", literal(names)),
    "constant": lambda names, n: (f"L{n} = {literal(names)}\n", f"L{n}"),
    "annotated": lambda names, n: (f"L{n}: list = {literal(names)}\n", f"L{n}"),
    "halves": lambda names, n: ("", f"{literal(names[::2])} + {literal(names[1::2])}"),
    "starred": lambda names, n: (f"L{n} = tuple({literal(names)})\n", f"[*L{n}]"),
    "getattr": lambda names, n: ("", f"[getattr(aten, name) for name in {names!r}]"),
    "grown": lambda names, n: (f"L{n} = []\n" + "".join(f"L{n}.append(aten.{x})\n" for x in names), f"L{n}"),
    "added": lambda names, n: (f"L{n} = []\n" + "".join(f"L{n} += [aten.{x}]\n" for x in names), f"L{n}"),
    "function": lambda names, n: (f"def f{n}():\n    return {literal(names)}\n", f"f{n}()"),
    "yielded": lambda names, n: (f"def f{n}():\n    for x in {literal(names)}:\n        yield x\n", f"list(f{n}())"),
    "dict": lambda names, n: (f"D{n} = {{x: 1 for x in {literal(names)}}}\n", f"list(D{n})"),
    "fstring": lambda names, n: ("", f"[f'aten::{{x}}' for x in {names!r}]"),
    "alias": lambda names, n: (f"other{n} = torch.ops\na{n} = other{n}.aten\n", literal(names).replace("aten.", f"a{n}.")),
}  # fmt: skip


@settings(max_examples=60 * FUZZ, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(STYLES)), st.lists(st.sampled_from(OPS), min_size=1, max_size=4, unique=True)),
        max_size=4,
    )
)
def test_property_every_way_of_writing_a_list_gives_its_ops(parts):
    text = "import torch\naten = torch.ops.aten\n"
    for number, (style, names) in enumerate(parts):
        before, expression = STYLES[style](names, number)
        text += f"{before}register_fallback_default({expression})\n"
    ast.parse(text)
    surface = read_surface({"torch_spyre/ops/fallbacks.py": text})
    assert {s.op.packet for s in surface.sites} == {name for _, names in parts for name in names}, text
    assert surface.unresolved == (), text


@settings(max_examples=150 * FUZZ, deadline=None)
@given(st.text(max_size=200))
def test_property_no_source_stops_the_reader(text):
    surface = read_surface(
        {"torch_spyre/a.py": f"register_fallback({text}", "torch_spyre/b.py": text, "torch_spyre/c.cpp": text}
    )
    assert surface.files == 2
    read_cpp("a.cpp", f'TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {{ m.impl("view", {text}')
    read_rows("a.yaml", f"- operator_name: {text}\n  template_name: {text}\n{text}", templates=None, python=False)


@settings(max_examples=40 * FUZZ, deadline=None)
@given(
    st.lists(
        st.sampled_from(["def f(x):", "for x in y:", "if a:", "try:", "class C:", "with z as q:", "while 1:"]),
        min_size=1,
        max_size=25,
    )
)
def test_property_deep_nesting_is_read(heads):
    lines = ["import torch"]
    for depth, head in enumerate(heads):
        lines.append("    " * depth + head)
    lines.append("    " * len(heads) + "torch.library.register_kernel('aten::mm', 'spyre')(g)")
    for depth in reversed([d for d, head in enumerate(heads) if head == "try:"]):
        lines.append("    " * depth + "finally:")
        lines.append("    " * (depth + 1) + "pass")
    surface = read_surface({"torch_spyre/a.py": "\n".join(lines) + "\n"})
    assert not surface.warnings
    assert {str(s.op) for s in surface.sites} <= {"aten.mm.default"}
