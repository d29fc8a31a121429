"""The one way between frozen dataclasses and JSON."""

import json
import math
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_spyre.vocabulary.codec import FormError, from_json, to_json


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Leaf:
    name: str
    size: float | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    leaf: Leaf
    leaves: tuple[Leaf, ...]
    pair: tuple[str, int]
    colour: Colour = Colour.RED
    where: Path | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    is_old: bool = False


LEAVES = st.builds(Leaf, st.text(max_size=20), st.none() | st.floats())
TREES = st.builds(
    Tree,
    LEAVES,
    st.lists(LEAVES, max_size=4).map(tuple),
    st.tuples(st.text(max_size=5), st.integers()),
    st.sampled_from(Colour),
    st.none() | st.sampled_from([Path("/a b"), Path("x/ü")]),
    st.dictionaries(st.text(max_size=4), st.integers()),
    st.booleans(),
)


@given(TREES)
def test_what_is_written_as_json_text_is_read_back(tree):
    back = from_json(Tree, json.loads(json.dumps(to_json(tree), allow_nan=False)))
    assert repr(back) == repr(tree)  # NaN is not equal to itself


def test_a_number_that_json_lacks_is_its_word():
    assert to_json(Leaf("a", math.inf)) == {"name": "a", "size": "inf"}
    assert math.isnan(from_json(Leaf, {"name": "a", "size": "nan"}).size)


def test_keys_of_a_later_version_are_ignored_and_missing_ones_take_their_default():
    assert from_json(Leaf, {"name": "a", "later": 1}) == Leaf("a")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"leaf": None}, "Tree.leaf is not an object"),
        ({"leaf": {}}, "Tree.leaf has no name"),
        ({"leaf": {"name": 1}}, "Tree.leaf.name is int, not str"),
        ({"leaves": {"name": "a"}}, "Tree.leaves is not a list"),
        ({"pair": ["a"]}, "Tree.pair has 1 items, not 2"),
        ({"colour": "green"}, "Tree.colour is 'green'"),
        ({"is_old": 1}, "Tree.is_old is int, not bool"),
        ({"facts": []}, "Tree.facts is not an object"),
        ({"leaf": {"name": "a", "size": "big"}}, "Tree.leaf.size is str, not float"),
        ({"leaf": {"name": "a", "size": True}}, "Tree.leaf.size is bool, not float"),
    ],
)
def test_another_form_is_refused_with_the_place_and_what_stands_there(change, words):
    good = to_json(Tree(Leaf("a"), (), ("a", 1)))
    with pytest.raises(FormError) as refused:
        from_json(Tree, good | change)
    assert str(refused.value) == words
