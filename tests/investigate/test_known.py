"""What an investigation knows already of an op: limitations that hold and name it."""

import pytest

from debug_spyre.investigate.causes import known_limits
from debug_spyre.surface.io.limits_probe import load_limits
from debug_spyre.surface.limits import Limit, Reading


def limit(statement, state="holds"):
    return Limit(
        id="x", group="general", statement=statement, workaround="", where="", since="", state=Reading(state), source="", seen="",
        lifted="2026-08" if state != "holds" else "", why_no_probe="none",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("op", "statement", "is_named"),
    [
        ("aten.index.Tensor", "No kernel for aten::index.Tensor", True),
        ("aten.index.Tensor", "index_add has no kernel", False),
        ("aten.index_add_.default", "index_add has no kernel", True),
        ("aten.mm.default", "Matrix products in float32 are refused", True),
        ("aten.add.Tensor", "An added head is padded", False),
        ("aten.constant_pad_nd.default", "cat and pad are refused", True),
        ("aten.cat.default", "Each category of the cache", False),
    ],
)
def test_a_limitation_is_known_where_it_names_the_op_and_not_a_part_of_a_word(op, statement, is_named):
    assert known_limits(op, [limit(statement)]) == [statement] * is_named


def test_what_was_lifted_is_not_told_and_of_many_three_are():
    assert known_limits("aten.cat.default", [limit("cat is refused", "lifted")]) == []
    assert len(known_limits("aten.cat.default", [limit(f"cat is refused {n}") for n in range(5)])) == 3


def test_the_shipped_limitations_are_found_by_the_ops_that_they_name():
    shipped = load_limits()
    for op in ("aten.mm.default", "aten.index.Tensor", "aten.cat.default", "aten._to_copy.default"):
        assert known_limits(op, shipped), op
    assert known_limits("aten.mean.dim", shipped) == []
