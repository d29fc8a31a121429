"""Kernel names of failures mapped to ops and source lines, from wrappers of both kinds."""

import os

import pytest

from debug_spyre.triage.ffdc import Origin, kernels_in, origins, said
from debug_spyre.triage.io.ffdc_reports import kernel_lines
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind

HEAD = (
    "# Topologically Sorted Source Nodes: [y], Original ATen: [aten.add, aten.mul]\n# Graph fragment:\n#   %y = call\n"
)


def wrapper(name, *handles, head=HEAD):
    specs = "".join(f"        OpSpec(\n            op='add',\n            {handle}\n        ),\n" for handle in handles)
    return f"import x\n\n\n{head}{name} = async_compile.sdsc('{name}',\n    [\n{specs}    ]\n)\n\n\nclass Runner: ...\n"


def handle(op, file=None, line=0, number=7):
    source = (
        f"SourceLoc(file='{file}', start_line={line}, start_col=0, end_line=None, end_col=None)" if file else "None"
    )
    return f"debug_handle=DebugHandle(id={number}, source={source}, aten_op='{op}', ir_chain=('add', 'buf0')),"


def test_a_debug_handle_gives_op_and_source_line():
    text = wrapper("sdsc_fused_add_0", handle("aten.add.Tensor", "/m/model.py", 12), handle("aten.mul.Tensor"))
    assert origins(text) == {
        "sdsc_fused_add_0": (Origin("aten.add.Tensor", "/m/model.py:12", "7"), Origin("aten.mul.Tensor", None, "7"))
    }


def test_without_handles_the_comment_above_names_the_ops():
    text = wrapper("sdsc_fused_exp_1", head=HEAD.replace("aten.add, aten.mul", "aten.exp")) + wrapper(
        "sdsc_fused_add_0"
    )
    assert origins(text) == {
        "sdsc_fused_exp_1": (Origin("aten.exp"),),
        "sdsc_fused_add_0": (Origin("aten.add"), Origin("aten.mul")),
    }


@pytest.mark.parametrize(
    "text", ["", "sdsc = 1\n", "x = async_compile.sdsc('y',\n)\n", "sdsc_a = async_compile.sdsc('sdsc_a',\n"]
)
def test_what_is_no_wrapper_gives_nothing(text):
    assert origins(text) == {}


def test_two_graphs_with_a_kernel_of_one_name_are_both_said():
    assert (
        said("k", [(Origin("aten.add", "a.py:1"),), (Origin("aten.mul"),)])
        == "kernel k: aten.add at a.py:1; or aten.mul"
    )


def test_names_are_found_in_messages():
    assert kernels_in("Invoked sdsc_fused_pow_0 which, again sdsc_fused_pow_0; sdsc_fused_add_mul_12.run") == [
        "sdsc_fused_pow_0", "sdsc_fused_add_mul_12",
    ]  # fmt: skip


def test_the_newest_wrapper_of_the_runs_own_cache_comes_first(tmp_path):
    for age, (name, line) in enumerate({"old": 3, "new": 9}.items()):
        path = tmp_path / f"a{age}/{name}.py"
        path.parent.mkdir()
        path.write_text(wrapper("sdsc_fused_pow_0", handle("aten.pow.Tensor_Scalar", "m.py", line)))
        os.utime(path, (age + 1, age + 1))
    output = tmp_path / "out.txt"
    output.write_text("nothing\n")
    failure = Failure(
        "t.py::t", "call", Kind.EXCEPTION, message="Invoked sdsc_fused_pow_0 which contains unimplemented operation pow"
    )
    evidence = Evidence(sources=("x",), failures=(failure,), counts=None, complete=True)
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    assert kernel_lines(evidence, output, env) == [
        "kernel sdsc_fused_pow_0: aten.pow.Tensor_Scalar at m.py:9; or aten.pow.Tensor_Scalar at m.py:3"
    ]
    assert kernel_lines(evidence, output, {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "other")}) == []
