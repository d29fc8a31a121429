"""The validation table: which members are cleared is a field of their rows, whatever their notes say."""

import pytest
from tests.gate.conftest import FIXED, Story

from debug_spyre.gate.before_after import BeforeAfter, Tries
from debug_spyre.gate.gate import Gate
from debug_spyre.gate.validation import table
from debug_spyre.session.events import ValidationRecorded
from debug_spyre.verbs.validation import _says
from debug_spyre.vocabulary.words import GateState

A, B = "t::a[it is cleared]", "t::b"


def rows(*, alone, wide=None, before="failed", members=(A, B)):
    """The table where the members were `before` and are `alone` and `wide` with the fix."""
    story = Story(members=members)
    story.run("full-matrix", {A: "failed", B: "failed"})
    story.run("baseline", {A: before, B: before})
    if alone is not None:
        story.run("post-fix", {A: alone, B: "passed"}, tree=FIXED)
    if wide is not None:
        story.run("post-fix-matrix", {A: wide, B: "passed"}, tree=FIXED)
    return table(BeforeAfter(story.session, story.evidence))


@pytest.mark.parametrize(
    ("told", "cleared"),
    [
        ({"alone": "passed"}, True),
        ({"alone": "passed", "wide": "passed"}, True),
        ({"alone": "passed", "wide": "failed"}, False),
        ({"alone": "failed", "wide": "passed"}, False),
        ({"alone": "skipped"}, False),
        ({"alone": None}, False),
        ({"alone": "passed", "wide": "passed", "before": "passed"}, True),
        ({"alone": "passed", "wide": "failed", "before": "passed"}, False),
    ],
    ids=str,
)
def test_a_row_says_whether_its_member_is_cleared(told, cleared):
    first, second = rows(**told)
    assert first["cleared"] is cleared
    assert second["cleared"] is (told["alone"] is not None)
    assert first["note"].endswith("cleared") is cleared


def test_the_answer_counts_the_field_and_not_the_words_of_a_note():
    made = (
        {"nodeid": A, "pre": "failed", "post": "failed", "note": "it is not cleared", "cleared": False},
        {"nodeid": B, "pre": "failed", "post": "passed", "note": "cleared by the fix, says a person", "cleared": True},
    )
    lines = _says(ValidationRecorded(rows=made), Gate(GateState.SHUT, (), ()), Tries(1, 0, ""), regressions=0)
    assert lines[0] == "members: 1 of 2 cleared"
