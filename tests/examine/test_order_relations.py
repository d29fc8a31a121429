"""A call that is wrong only after an earlier one: how the earlier one has to differ, dimension by dimension."""

import random

import pytest

from debug_spyre.examine.dossier import sentence_of
from debug_spyre.examine.features import tensor_specs
from debug_spyre.examine.io.one_call import CallCause, _relations, places_at


def call(*shapes, op="aten.mul.Tensor"):
    return {"op": op, "args": [{"tensor": {"shape": list(s), "dtype": "float16"}} for s in shapes], "kwargs": {}}


class Card:
    """Answers like a card whose state is left by the call before: `spoils(earlier shape, shape)`."""

    def __init__(self, spoils):
        self.spoils = spoils

    def points(self, calls, *, before=(), **_):
        def shape(of):
            return max((s["shape"] for s in tensor_specs(of)), key=len)

        return [
            {"verdict": "wrong" if any(self.spoils(shape(b), shape(c)) for b in before) else "right"} for c in calls
        ]


def relations(spoils, earlier, later):
    cause = CallCause(later, "order", before=(earlier,))
    return _relations(Card(spoils), cause)


@pytest.mark.parametrize("seed", range(12))
def test_a_plan_for_fewer_rows_of_the_same_width_is_told_in_both_dimensions(seed):
    rng = random.Random(seed)
    width, rows, few = rng.randint(2, 400), rng.randint(2, 40), 1
    few = rng.randint(1, rows - 1)
    found = relations(
        lambda b, c: b[-1] == c[-1] and b[-2] < c[-2],
        call((few, width), (few, width)),
        call((rows, width), (rows, width)),
    )
    assert found == ["last dimension is equal", "dimension -2 is shorter"]
    cause = CallCause(call((rows, width)), "order", before=(call((few, width)),), relations=tuple(found))
    assert "whose last dimension is equal and whose dimension -2 is shorter" in sentence_of("aten.mul.Tensor", cause)


def test_an_earlier_call_of_any_size_has_no_relation():
    assert relations(lambda b, c: True, call((3, 8)), call((5, 8))) == []


def test_sizes_that_a_broadcast_argument_does_not_have_are_left_as_they_are():
    assert places_at(call((5, 1), (5, 64)), -1) == ([(1, 1)], 64)
    assert places_at(call((64,), (5, 64)), -2) == ([(1, 0)], 5)
    assert places_at(call((1, 64), (1, 64)), -2) == ([(0, 0), (1, 0)], 1)
    assert places_at(call((64,)), -2) == ([], None)
