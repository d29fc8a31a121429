"""Which sizes of a call a search varies: those of 1 too, unless they are broadcast."""

import sys
from pathlib import Path

import pytest
import torch  # noqa: F401  before what runs inside it

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts/debug_spyre/inside"))
import debug_spyre_points


def call(op, *values):
    args = [{"tensor": {"shape": list(v), "dtype": "float16"}} if isinstance(v, tuple) else v for v in values]
    return {"op": op, "args": args, "kwargs": {}}


@pytest.mark.parametrize(
    ("of", "groups"),
    [
        (call("aten.mm.default", (4, 64), (64, 1)), [[(0, 0)], [(1, 1)], [(0, 1), (1, 0)]]),
        (call("aten.mm.default", (1, 64), (64, 1)), [[(0, 0)], [(1, 1)], [(0, 1), (1, 0)]]),
        (call("aten.add.Tensor", (4, 64), (1, 64)), [[(0, 0)], [(0, 1), (1, 1)]]),
        (call("aten.add.Tensor", (1, 64), (1, 64)), [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]),
        (call("aten.bmm.default", (1, 8, 64), (1, 64, 1)), [[(0, 1)], [(1, 2)], [(0, 0), (1, 0)], [(0, 2), (1, 1)]]),
        (call("aten.mean.dim", (1, 1), [-1], True), [[(0, 0)], [(0, 1)]]),
    ],
)
def test_sizes_of_one_are_varied_unless_they_are_broadcast(of, groups):
    before = str(of)
    assert sorted(debug_spyre_points.space_of(of)["groups"]) == sorted(groups)
    assert str(of) == before
