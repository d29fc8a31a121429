"""Ways round a fault: which are tried for a condition, and that each computes what the op does."""

import sys
from pathlib import Path

import pytest
import torch

from debug_spyre.examine.condition import Condition, Term
from debug_spyre.examine.variation import Space
from debug_spyre.examine.ways import ways_round

INSIDE = Path(__file__).parents[2] / "scripts/debug_spyre/inside"


def call(op, *values):
    args = [{"tensor": {"shape": list(v), "dtype": "float16"}} if isinstance(v, tuple) else v for v in values]
    return {"op": op, "args": args, "kwargs": {}}


def space(of, *groups):
    return Space(call=of, groups=groups, forms=(), dim_place=None, is_list=False, rank=2)


def suggested(of, groups, *terms):
    return {
        text: way["way"] for text, way in ways_round(of, space(of, *groups), Condition(tuple(terms))) if way.get("way")
    }


MEAN = call("aten.mean.dim", (4, 256), [-1], True)
MUL = call("aten.mul.Tensor", (3, 50), (3, 50))


@pytest.mark.parametrize(
    ("of", "groups", "term", "kind", "size"),
    [
        (MEAN, [((0, 1),)], Term("reduced", ">", 128), "chunks", 128),
        (MEAN, [((0, 1),)], Term("reduced", ">", 100), "chunks", 64),  # equal parts, so that a mean of means is a mean
        (MUL, [((0, 1), (1, 1))], Term("size(0,-1)", ">", 32), "chunks", 25),
        (MUL, [((0, 1), (1, 1))], Term("numel(0)", ">", 75), "chunks", 25),
        (MUL, [((0, 1), (1, 1))], Term("ragged64(any)", "==", True), "padded", 64),
        (MUL, [((0, 1), (1, 1))], Term("size(0,-1)", "!%", 64), "padded", 64),
    ],
)
def test_a_condition_suggests_chunks_below_the_limit_or_padding_up_to_a_multiple(of, groups, term, kind, size):
    ((text, way),) = suggested(of, groups, term).items()
    assert (way["kind"], way["size"], way["places"]) == (kind, size, [*groups[0]])
    assert str(size) in text


@pytest.mark.parametrize(
    "term",
    [
        Term("size(0,-2)", ">", 2),  # of another dimension than can be varied here
        Term("size(0,-1)", ">", 4096),  # the call is below it
        Term("strided(0)", "==", True),
        Term("dtype(0)", "==", "float16"),
        Term("ragged64(any)", "==", False),
        Term("size(0,-1)", "%", 64),
    ],
)
def test_what_chunks_and_padding_can_not_go_round_suggests_neither(term):
    assert not suggested(MUL, [((0, 1), (1, 1))], term)


@pytest.fixture
def ways(monkeypatch):
    monkeypatch.syspath_prepend(str(INSIDE))
    yield __import__("debug_spyre_ways")
    for name in [n for n in sys.modules if n.startswith("debug_spyre_")]:
        del sys.modules[name]


OPS = [
    (torch.ops.aten.mul.Tensor, ((3, 50), (3, 50)), (), [(0, 1), (1, 1)]),
    (torch.ops.aten.add.Tensor, ((2, 1, 50), (3, 50)), (), [(0, 2), (1, 1)]),
    (torch.ops.aten.mean.dim, ((4, 96),), ([-1], True), [(0, 1)]),
    (torch.ops.aten.mean.dim, ((4, 96),), ([-1], False), [(0, 1)]),
    (torch.ops.aten.sum.dim_IntList, ((96, 4),), ([0], False), [(0, 0)]),
    (torch.ops.aten.amax.default, ((2, 3, 96),), ([-1], False), [(0, 2)]),
    (torch.ops.aten.mm.default, ((5, 7), (7, 96)), (), [(1, 1)]),
    (torch.ops.aten.silu.default, ((5, 7),), (), [(0, 0)]),
]


@pytest.mark.parametrize(("op", "shapes", "rest", "places"), OPS, ids=lambda v: str(v)[:24])
@pytest.mark.parametrize("size", [2, 7, 32, 1000])
def test_in_chunks_an_op_computes_what_it_does_at_once(ways, op, shapes, rest, places, size):
    tensors = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    if "mean" in str(op) and 96 % size:
        size = 96
    torch.testing.assert_close(ways.in_chunks(op, places, size)(*tensors, *rest), op(*tensors, *rest))


@pytest.mark.parametrize(
    ("op", "shapes", "rest", "places"), [o for o in OPS if "mean" not in str(o[0])], ids=lambda v: str(v)[:24]
)
@pytest.mark.parametrize("multiple", [1, 64])
def test_padded_an_op_computes_what_it_does_without(ways, op, shapes, rest, places, multiple):
    tensors = [torch.randn(shape, dtype=torch.float64).abs() for shape in shapes]
    torch.testing.assert_close(ways.padded(op, places, multiple)(*tensors, *rest), op(*tensors, *rest))
