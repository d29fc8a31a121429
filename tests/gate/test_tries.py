"""A narrowed matrix, forgotten retries and lucky passes: each way they come about, and the honest way beside it."""

import pytest
from tests.gate.conftest import FIXED, START, Story

from debug_spyre.gate.before_after import BeforeAfter
from debug_spyre.gate.close_request import CloseRequest, Retrospective
from debug_spyre.gate.gate import judge
from debug_spyre.gate.validation import Present, next_step
from debug_spyre.session import events as ev
from debug_spyre.tree.changes import Changes
from debug_spyre.triage.results import Results
from debug_spyre.vocabulary.evidence import TestRecord
from debug_spyre.vocabulary.words import GateState

A, B, C, D = "t::a", "t::b", "t::c", "u::d"
WIDE = {A: "failed", B: "failed", C: "passed", D: "passed"}
FIXED_WIDE = dict.fromkeys(WIDE, "passed")


def told(matrices=({},), reds=(), passes=1, *, fixed_matrix=FIXED_WIDE):
    """A session: matrices before (each over WIDE), red tries (tree, backend), then `passes` runs of the fix."""
    story = Story()
    for matrix in matrices:
        story.run("full-matrix", {k: v for k, v in WIDE.items() if matrix.get(k, True)})
    story.run("baseline", {A: "failed", B: "failed"})
    story.row()
    for tree, backend in reds:
        story.run("post-fix", {A: "passed", B: "failed"}, tree=tree, backend=backend)
    runs = [story.run("post-fix", {A: "passed", B: "passed"}, tree=FIXED) for _ in range(passes)]
    runs.append(story.run("post-fix-matrix", fixed_matrix, tree=FIXED))
    story.table(runs)
    story.add(ev.TreeReverted(patch="fix.patch", files=("a.py",), digest=START, patched=FIXED))
    story.count()
    return story


def answer(story):
    claim = CloseRequest(changes=Changes(("a.py",), (), ()), retrospective=Retrospective("a", "b", "c"))
    return judge(story.session, story.evidence, claim)


def codes(story):
    return [r.code for r in answer(story).reasons]


def narrowed(*without):
    return {k: v for k, v in FIXED_WIDE.items() if k not in without}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(({}, {D: False}), narrowed(D), id="another file left out"),
        pytest.param(({}, {C: False, D: False}), narrowed(C, D), id="members only"),
        pytest.param(({}, {C: False}), narrowed(C), id="one test deselected"),
        pytest.param(({D: False}, {C: False}), narrowed(C), id="two halves that cover each other's gap"),
    ],
)
def test_a_narrowed_matrix_shuts_and_says_what_it_leaves_out(before, after):
    story = told(before, fixed_matrix=after)
    found = answer(story)
    assert [r.code for r in found.reasons] == ["matrix-covers"]
    assert "leaves out" in found.reasons[0].text
    assert set(found.reasons[0].nodeids) <= {C, D}


def test_the_same_matrix_twice_and_a_wider_one_later_open():
    assert answer(told(({}, {}))).state is GateState.OPEN
    assert answer(told(({D: False}, {}))).state is GateState.OPEN


@pytest.mark.parametrize(
    ("reds", "needed"),
    [
        ([("try-1", "backend-1")], 2),
        ([("try-1", "backend-1"), ("try-2", "backend-1")], 3),
        ([(f"try-{n}", "backend-1") for n in range(5)], 3),
        ([("try-1", "backend-1"), (START, "backend-2")], 3),
    ],
    ids=["a comment edited", "two trees", "five trees", "a rebuilt backend"],
)
def test_red_tries_on_any_tree_ask_for_more_passes(reds, needed):
    for passes in range(1, needed):
        story = told(reds=reds, passes=passes)
        found = answer(story)
        assert [r.code for r in found.reasons] == ["tries"]
        assert f"{len(reds) + 1}" in found.reasons[0].text
        step = next_step(BeforeAfter(story.session, story.evidence), Present(FIXED, "backend-1"))
        assert step is not None
        assert "earlier tries were red" in step.why  # validate does it by itself
    assert answer(told(reds=reds, passes=needed)).state is GateState.OPEN


def test_tries_are_told_in_words():
    text = next(
        c.text
        for c in answer(told(reds=[(f"t{n}", "backend-1") for n in range(3)], passes=3)).conditions
        if c.code == "tries"
    )
    assert text.startswith("4th try; 3 red (r3, r4, r5)")
    assert next(c.text for c in answer(told()).conditions if c.code == "tries").startswith("1st try")


def report(outcome, phase="call", event="report"):
    return {"e": event, "nodeid": A, "phase": phase, "outcome": outcome, "seconds": 0.1, "text": "AssertionError: x"}


@pytest.mark.parametrize(
    ("lines", "flaky"),
    [
        pytest.param([report("rerun", event="rerun"), report("passed")], True, id="rerunfailures"),
        pytest.param([report("retried", event="retried"), report("passed")], True, id="pytest-retry"),
        pytest.param([report("failed"), report("passed")], True, id="two reports of one call"),
        pytest.param([report("rerun", event="rerun")] * 30 + [report("passed")], True, id="thirty times"),
        pytest.param([report("passed")], False, id="a pass"),
        pytest.param(
            [report("passed", "setup"), report("passed"), report("passed", "teardown")], False, id="three phases"
        ),
    ],
)
def test_a_pass_after_a_rerun_is_flaky_and_never_a_pass(lines, flaky):
    reader = Results("results.jsonl")
    for number, line in enumerate(({"e": "collected", "ids": [A]}, *lines), start=1):
        reader.feed(line, number)
    seen = reader.evidence().tests
    assert (seen[0].reruns > 0) is flaky
    story = told()
    run = next(e.run for e in story.events if e.kind == "run_started" and e.name == "post-fix")
    kept = story.evidence[run]
    tests = tuple(
        TestRecord(t.nodeid, t.outcome, t.seconds, reruns=seen[0].reruns if t.nodeid == A else 0) for t in kept.tests
    )
    object.__setattr__(kept, "tests", tests)
    assert codes(story) == (["members-pass"] if flaky else [])
    if flaky:
        assert "flaky" in answer(story).reasons[0].text
