"""The tensors that a failed comparison saw: found in the frames, written so that others can read them."""

import json
import re
import shlex

import pytest
from tests.runs.test_recorder import Target

from debug_spyre.verbs.table import load

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")


@pytest.fixture
def target(tmp_path):
    return Target(tmp_path)


def kept(target, test="test_it"):
    line = next(e for e in target.of("tensors") if e["nodeid"].endswith(f"::{test}"))
    pair = line["pairs"][0]
    held = safetensors.load_file(target.results.parent / pair["file"])
    return line, pair, held


def test_assert_close_gives_its_pair_its_tolerances_and_the_selectors_of_the_test(target):
    target.run(
        "import torch\n"
        "def test_it():\n"
        "    mask, index = torch.tensor([True, False]), torch.arange(3)\n"
        "    got = torch.arange(8, dtype=torch.float16).reshape(2, 4).t()\n"
        "    torch.testing.assert_close(got, got + 1, rtol=0.0, atol=0.5)\n"
    )
    line, pair, held = kept(target)
    got = torch.arange(8, dtype=torch.float16).reshape(2, 4).t()
    assert torch.equal(held[pair["actual"]], got) and torch.equal(held[pair["expected"]], got + 1)
    assert (pair["rtol"], pair["atol"]) == (0.0, 0.5)
    example = shlex.split(load("compare").example)
    assert [word.rpartition(":")[2] for word in example[2:4]] == [pair["actual"], pair["expected"]], "as the help says"
    assert re.fullmatch(r"tensors/\d{3}-[\w-]+\.safetensors", pair["file"])
    assert all(re.fullmatch(r"runs/r\d+/tensors/\d{3}-[\w-]+\.safetensors:\w+", word) for word in example[2:4])
    assert {o["name"] for o in line["others"]} == {"mask", "index"}
    assert torch.equal(held[next(o["key"] for o in line["others"] if o["name"] == "mask")], torch.tensor([True, False]))
    mismatch = target.reports()["test_it"]["mismatch"]
    assert (mismatch["mismatched"], mismatch["total"]) == (8, 8) and mismatch["max_abs"] == 1.0


def test_a_projects_own_helper_gives_the_pair_of_its_frame(target):
    target.run(
        "import torch\n"
        "def assert_close_outliers(actual, expected, max_outliers=5, atol=0.2, rtol=0.2):\n"
        "    difference = (actual - expected).abs()\n"
        "    count = int((difference > atol).sum())\n"
        "    assert count <= max_outliers, f'{count} elements exceed atol={atol}'\n"
        "def test_it():\n"
        "    seq_lens = torch.tensor([3, 4])\n"
        "    assert_close_outliers(torch.zeros(3, 4), torch.ones(3, 4))\n"
    )
    line, pair, held = kept(target)
    assert pair["names"] == ["actual", "expected"] and pair["atol"] == 0.2
    assert held[pair["actual"]].sum() == 0 and held[pair["expected"]].sum() == 12
    assert [o["name"] for o in line["others"]] == ["seq_lens"]
    assert target.reports()["test_it"]["mismatch"]["mismatched"] == 12


def test_a_bare_assertion_in_the_test_gives_its_pair(target):
    statements = [
        "assert torch.equal(out, ref)",
        "assert torch.allclose(out, ref), 'not close'",
        "import numpy; numpy.testing.assert_allclose(out, ref)",
    ]
    body = "\n".join(
        f"def test_{n}():\n    out, ref = torch.zeros(5), torch.ones(5)\n    {s}" for n, s in enumerate(statements)
    )
    target.run(f"import torch\n{body}\n")
    for n in range(len(statements)):
        _, pair, held = kept(target, f"test_{n}")
        assert pair["names"] == ["out", "ref"] and held[pair["actual"]].sum() == 0


def test_containers_are_taken_apart(target):
    target.run(
        "import torch\ndef test_it():\n"
        "    torch.testing.assert_close({'k': [torch.zeros(2)]}, {'k': [torch.ones(2)]})\n"
    )
    assert kept(target)[1]["names"] == ["actual['k'][0]", "expected['k'][0]"]


def test_every_usual_dtype_and_an_empty_shape_survive(target):
    dtypes = ["float64", "float32", "float16", "bfloat16", "int64", "int8", "uint8", "bool"]
    target.run(
        "import pytest, torch\n"
        f"@pytest.mark.parametrize('name', {dtypes})\n"
        "def test_it(name):\n"
        "    dtype = getattr(torch, name)\n"
        "    empty, one, other = torch.zeros(2, 0, 3, dtype=dtype), torch.zeros((), dtype=dtype), torch.ones((), dtype=dtype)\n"
        "    torch.testing.assert_close([empty, one], [empty, other])\n"
    )
    for dtype in dtypes:
        line, _, held = kept(target, f"test_it[{dtype}]")
        assert [tuple(held[p["actual"]].shape) for p in line["pairs"]] == [(2, 0, 3), ()]
        assert held["expected1"].dtype == getattr(torch, dtype) and bool(held["expected1"] == 1)


def test_a_passing_test_and_an_ordinary_error_keep_nothing(target):
    target.run(
        "import torch\n"
        "def test_ok():\n    torch.testing.assert_close(torch.ones(2), torch.ones(2))\n"
        "def test_error():\n    a, b = torch.ones(2), torch.ones(2)\n    raise RuntimeError('device gone')\n"
        "def test_plain():\n    a, b = torch.ones(2), torch.ones(2)\n    assert 1 == 2\n"
    )
    assert {e["nodeid"] for e in target.of("tensors")} <= {"test_it.py::test_plain"}


def test_the_budget_is_kept_and_what_is_left_out_is_said(target):
    target.run(
        "import torch\ndef test_it():\n    torch.testing.assert_close(torch.zeros(1000), torch.ones(1000))\n",
        env={"DEBUG_SPYRE_TENSOR_BUDGET": "5000"},
    )
    line = target.of("tensors")[0]
    assert line["pairs"] == [] and "used up" in line["omitted"][0]["reason"]


def test_a_tensor_that_cannot_be_read_is_said_and_fails_nothing(target):
    target.run(
        "import torch\ndef test_it():\n    a, b = torch.zeros(2, device='meta'), torch.ones(2, device='meta')\n    assert False\ndef test_b(): pass\n"
    )
    assert "no bytes" in json.dumps(target.of("tensors")[0]["omitted"])
    assert target.reports()["test_b"]["outcome"] == "passed" and not target.of("recorder_fault")


def test_the_files_are_private(target):
    target.run("import torch\ndef test_it():\n    torch.testing.assert_close(torch.zeros(2), torch.ones(2))\n")
    _, pair, _ = kept(target)
    assert (target.results.parent / pair["file"]).stat().st_mode & 0o077 == 0
