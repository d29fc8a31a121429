"""Scopes: equal, part of each other, different; an unknown one equals nothing."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from debug_spyre.runs.pytest_words import Relation, relation, says, scope_of

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
IDS = st.lists(st.sampled_from(["a.py::t", "a.py::t[x y]", "b::c::d[(q=1,kv=2)]", "ü.py::t[\u202e]"]), unique=True)
OPTIONS = st.lists(st.sampled_from(["-x", "--upstream", "-p=no:randomly"]), unique=True)


def test_the_same_ids_in_the_same_order_are_one_scope():
    one, other = scope_of(["a", "b"], ["-x", "-y"]), scope_of(["a", "b"], ["-y", "-x"])
    assert relation(one, other) is Relation.EQUAL
    assert one.digest == other.digest


def test_order_is_part_of_a_scope():
    assert relation(scope_of(["a", "b"]), scope_of(["b", "a"])) is Relation.REORDERED
    assert scope_of(["a", "b"]).digest != scope_of(["b", "a"]).digest


def test_narrower_wider_and_different():
    assert relation(scope_of(["a"]), scope_of(["a", "b"])) is Relation.SUBSET
    assert relation(scope_of(["a", "b"]), scope_of(["a"])) is Relation.SUPERSET
    assert relation(scope_of(["a", "c"]), scope_of(["a", "b"])) is Relation.DIFFERENT


def test_an_option_that_changes_behaviour_makes_scopes_different():
    assert relation(scope_of(["a"]), scope_of(["a"], ["--upstream"])) is Relation.DIFFERENT


def test_an_unknown_scope_is_not_even_equal_to_itself():
    assert relation(scope_of([]), scope_of([])) is Relation.UNKNOWN
    assert scope_of([]).digest is None


def test_ids_are_never_run_together():
    assert scope_of(["ab", "c"]).digest != scope_of(["a", "bc"]).digest
    assert scope_of(['a","b']).digest != scope_of(["a", "b"]).digest


@given(IDS, OPTIONS, IDS, OPTIONS)
@settings(max_examples=100 * FUZZ)
def test_property_relation_mirrors_itself(ids, options, other_ids, other_options):
    one, other = scope_of(ids, options), scope_of(other_ids, other_options)
    mirror = {Relation.SUBSET: Relation.SUPERSET, Relation.SUPERSET: Relation.SUBSET}
    there, back = relation(one, other), relation(other, one)
    assert mirror.get(there, there) is back
    assert (there is Relation.EQUAL) == (one.digest is not None and one.digest == other.digest)
    assert says(there)
