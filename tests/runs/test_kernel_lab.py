"""The failing kernel apart from the compiler's front end, by a lab in the installed source tree."""

import pytest

LAB = """
import argparse, pathlib, runpy
parser = argparse.ArgumentParser()
parser.add_argument("script"); parser.add_argument("--out"); parser.add_argument("--save-inputs", action="store_true")
given = parser.parse_args()
try:
    runpy.run_path(given.script, run_name="__main__")
except RuntimeError:
    pass
made = pathlib.Path("{made}")
if made.exists():
    pathlib.Path(given.out).mkdir()
    pathlib.Path(given.out, "sdsc_fused_pow_0.py").write_text(made.read_text())
"""


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("raise RuntimeError('contains unimplemented operation pow')", "1 of them fail without the front end"),
        ("print('arg0')", "each runs alone: the fault lies in the front end"),
        (None, "none was reached"),
    ],
)
def test_front_end_and_back_end_are_told_apart(kernel, said, place):
    made = place.checkout.parent / "made.py"
    if kernel is not None:
        made.write_text(kernel + "\n")
    tree = place.packages
    (tree / "torch_spyre").mkdir()
    (tree / "torch_spyre/__init__.py").write_text("")
    (tree / "tests/op_specs").mkdir(parents=True)
    (tree / "tests/op_specs/capture.py").write_text(LAB.format(made=made))
    place.write(
        "test_it.py",
        "import os, sys\ndef test_it():\n    if not os.environ.get('DEBUG_SPYRE_LADDER'): raise RuntimeError('refused')\n",
    )
    done = place.call("ladder", "--rungs", "op-by-op,eager,aot_eager", "test_it.py::test_it", timeout=300)
    assert said in done.stdout, done.stdout + done.stderr
    assert ("unimplemented operation pow" in done.stdout) is (said.startswith("1 of"))


def test_without_a_lab_nothing_is_said_of_kernels(place):
    place.write(
        "test_it.py",
        "import os\ndef test_it():\n    if not os.environ.get('DEBUG_SPYRE_LADDER'): raise RuntimeError('refused')\n",
    )
    done = place.call("ladder", "--rungs", "op-by-op,eager,aot_eager", "test_it.py::test_it", timeout=300)
    assert "it enters in the backend's own compiler" in done.stdout and "kernels:" not in done.stdout
