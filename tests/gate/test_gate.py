"""The gate's conformance table: every condition both ways, and what a person may and may not set aside."""

from types import SimpleNamespace

import pytest
from tests.gate.conftest import BACKEND, FIXED, OTHER, REBUILT, START, Story, good_story

from debug_spyre.gate.before_after import BeforeAfter
from debug_spyre.gate.close_request import CloseRequest, Retrospective
from debug_spyre.gate.gate import OVERRIDABLE, judge, judge_blocked
from debug_spyre.gate.validation import matrix_record
from debug_spyre.page.gate_view import matrix_words
from debug_spyre.page.page_context import outcomes
from debug_spyre.runs.transitions import RunOutcomes
from debug_spyre.session import events as ev
from debug_spyre.tree.changes import Changes
from debug_spyre.vocabulary.evidence import Evidence, Outcome, TestRecord
from debug_spyre.vocabulary.words import GateState

TOLD = Retrospective("a partial reduction", "the dtype rows", "the 64-element period")
PLAIN = Changes(files=("spyre_inference/ops.py",))


def gate(story, **kw):
    if not any(e.kind == "run_started" and e.name.startswith("work-") for e in story.events):
        patched = [e.tree_digest for e in story.events if e.kind == "run_started" and e.name == "post-fix"]
        story.count(fixed=patched[-1] if patched else FIXED)
    claim = {"tree_digest": START, "backend": BACKEND, "changes": PLAIN, "retrospective": TOLD, **kw}
    return judge(story.session, story.evidence, CloseRequest(**claim))


def codes(found):
    return {reason.code for reason in found.reasons}


def test_the_good_story_opens_the_gate_and_every_condition_says_so():
    found = gate(good_story())
    assert found.state is GateState.OPEN
    assert found.reasons == ()
    assert {c.state for c in found.conditions} == {GateState.OPEN}
    assert len({c.code for c in found.conditions}) == len(found.conditions) == 20
    assert all(c.text for c in found.conditions)


def test_an_empty_session_is_not_open_and_every_reason_names_its_next_command():
    found = gate(Story())
    assert found.state is not GateState.OPEN
    assert all(r.next and r.text for r in found.reasons)


@pytest.mark.parametrize("first", list(Outcome))
@pytest.mark.parametrize("second", list(Outcome))
def test_page_and_gate_say_the_same_of_a_test_that_has_two_records(first, second):
    tests = (TestRecord("t::a", first), TestRecord("t::a", second))
    evidence = Evidence(sources=(), counts=None, complete=True, tests=tests)
    assert outcomes(evidence)["t::a"] is RunOutcomes(evidence).of("t::a").outcome


def test_the_numbers_of_a_large_matrix_are_whole_where_its_lists_are_cut():
    many = {f"t::m[{n}]": "passed" for n in range(300)}
    story = Story(members=("t::a",))
    story.run("full-matrix", {"t::a": "failed", **many})
    story.run("baseline", {"t::a": "failed"})
    story.run("post-fix", {"t::a": "passed"}, tree=FIXED)
    story.run("post-fix-matrix", {"t::a": "passed", **dict.fromkeys(many, "failed")}, tree=FIXED)
    record = matrix_record(BeforeAfter(story.session, story.evidence), None)
    assert record["numbers"]["new"] == 300 and len(record["new"]) < 300
    assert record["numbers"]["gone"] == len(record["gone"]) == 1
    frame = SimpleNamespace(line=lambda text, _width: text)
    assert "300 new failures" in matrix_words(frame, record)[0]


A, B, C, D = "t::a", "t::b", "t::c", "t::d"


def variant(*, members=(A, B), matrix=("tests",), pre_matrix=None, pre=None, post=None, post_matrix=None,
            pre_kw=None, pre_matrix_kw=None, post_kw=None, post_matrix_kw=None, revert=True, row="confirmed",
            start=START):  # fmt: skip
    """The good story with one thing changed."""
    story = Story(members=members, matrix=matrix, start=start)
    ids = [m.nodeid for m in story.session.members]
    wide = {**dict.fromkeys(ids, "failed"), C: "passed", D: "skipped"}
    fixed = {**dict.fromkeys(ids, "passed"), C: "passed", D: "skipped"}
    if pre_matrix != "none":
        story.run("full-matrix", {**wide, **(pre_matrix or {})}, **(pre_matrix_kw or {}))
    if pre != "none":
        story.run("baseline", {**dict.fromkeys(ids, "failed"), **(pre or {})}, **(pre_kw or {}))
    if row:
        story.row(row)
    runs = []
    if post != "none":
        tests = {**dict.fromkeys(ids, "passed"), **(post or {})}
        runs.append(story.run("post-fix", tests, **{"tree": FIXED, **(post_kw or {})}))
    if post_matrix != "none":
        tests = {**fixed, **(post_matrix or {})}
        runs.append(story.run("post-fix-matrix", tests, **{"tree": FIXED, **(post_matrix_kw or {})}))
    story.table(runs)
    if revert:
        story.add(ev.TreeReverted(patch="fix.patch", files=("a.py",), digest=start or "", patched=FIXED))
    return story


def fails(outcome="failed", **kw):
    return {"outcome": outcome, **kw}


SHUT, UNKNOWN, OPEN = GateState.SHUT, GateState.UNKNOWN, GateState.OPEN
FALLS = {"nodeid": A, "predicate": {"kind": "falls-back", "op": "aten.mm"}}
SLOW = {"nodeid": A, "predicate": {"kind": "slower", "seconds": 5.0}}
SLOW_MATRIX = {"pre_matrix": {A: fails("passed", seconds=9.0)}, "post_matrix": {A: fails("passed", seconds=2.0)}}
FALLS_MATRIX = {"pre_matrix": {A: fails("passed", fallbacks=["aten.mm"])}, "post_matrix": {A: "passed"}}

TABLE = [
    # pre
    ("a member passes before in both scopes", {"pre": {A: "passed"}, "pre_matrix": {A: "passed"}}, SHUT, "failed-before"),
    ("a member passes alone and fails in the matrix", {"pre": {A: "passed"}}, OPEN, None),
    ("a member fails alone and passes in the matrix", {"pre_matrix": {A: "passed"}}, OPEN, None),
    ("a member was skipped before", {"pre": {A: "skipped"}}, SHUT, "failed-before"),
    ("a member crashed before", {"pre": {A: "crashed"}}, OPEN, None),
    ("the members were never run before", {"pre": "none"}, UNKNOWN, "failed-before"),
    ("the members' first run is invalid", {"pre_kw": {"valid": False}}, UNKNOWN, "failed-before"),
    ("the probe alone is no run of the members", {"pre_kw": {"members_only": False, "selected": [A]}}, UNKNOWN, "failed-before"),
    ("a run of just the members needs no other name", {"pre_kw": {"members_only": False}}, OPEN, None),
    ("another environment", {"post_kw": {"env": {"SPYRE_X": "1"}}}, SHUT, "same-tests"),
    ("another place for the compile cache", {"post_kw": {"env": {"TORCHINDUCTOR_CACHE_DIR": "/x"}}}, OPEN, None),
    # post, members
    ("a member still fails alone", {"post": {A: "failed"}}, SHUT, "members-pass"),
    ("a member still fails in the matrix", {"post_matrix": {A: "failed"}}, SHUT, "members-pass"),
    ("a member errors in its setup", {"post": {A: "error"}}, SHUT, "members-pass"),
    ("a member crashes", {"post": {A: "crashed"}}, SHUT, "members-pass"),
    ("a member hangs", {"post": {A: "timeout"}}, SHUT, "members-pass"),
    ("a member is newly skipped", {"post": {A: "skipped"}}, SHUT, "members-pass"),
    ("a member is newly xfailed", {"post": {A: "xfailed"}}, SHUT, "members-pass"),
    ("a member passes under a new xfail mark", {"post": {A: "xpassed"}}, SHUT, "members-pass"),
    ("a member has no outcome", {"post": {A: "missing"}}, SHUT, "members-pass"),
    ("a member is skipped in the matrix", {"post_matrix": {A: "skipped"}}, SHUT, "members-pass"),
    ("a member that passed alone still fails in the matrix", {"pre": {A: "passed"}, "post_matrix": {A: "failed"}}, SHUT, "members-pass"),
    ("no run with the fix", {"post": "none", "post_matrix": "none"}, UNKNOWN, "members-pass"),
    ("the run with the fix is invalid", {"post_kw": {"valid": False}}, UNKNOWN, "members-pass"),
    # scope
    ("a test is deselected", {"post_matrix_kw": {"selected": [A, B, C]}}, SHUT, "same-tests"),
    ("a test is added", {"post_matrix_kw": {"selected": [A, B, C, D, "t::new"]}}, SHUT, "same-tests"),
    ("another order", {"post_matrix_kw": {"selected": [B, A, C, D]}}, SHUT, "same-tests"),
    ("other options", {"post_matrix_kw": {"options": ["--maxfail=1"]}}, SHUT, "same-tests"),
    ("other members", {"post_kw": {"selected": [A]}}, SHUT, "same-tests"),
    ("an unknown scope", {"post_matrix_kw": {"selected": []}}, UNKNOWN, "same-tests"),
    # matrix
    ("no matrix is named", {"matrix": None, "pre_matrix": "none", "post_matrix": "none"}, UNKNOWN, "matrix-complete"),
    ("no matrix before", {"pre_matrix": "none"}, UNKNOWN, "matrix-complete"),
    ("no matrix after", {"post_matrix": "none"}, UNKNOWN, "matrix-complete"),
    ("the matrix did not end", {"post_matrix_kw": {"complete": False}}, SHUT, "matrix-complete"),
    ("a new failure", {"post_matrix": {C: "failed"}}, SHUT, "no-regression"),
    ("a test newly skipped", {"post_matrix": {C: "skipped"}}, SHUT, "no-regression"),
    ("a test newly xfailed", {"post_matrix": {C: "xfailed"}}, SHUT, "no-regression"),
    ("a test gone missing", {"post_matrix": {C: "missing"}}, SHUT, "no-regression"),
    ("a skipped test that fails now", {"post_matrix": {D: "failed"}}, SHUT, "no-regression"),
    ("a skipped test that passes now", {"post_matrix": {D: "passed"}}, OPEN, None),
    ("an old failure elsewhere stays", {"pre_matrix": {C: "failed"}, "post_matrix": {C: "failed"}}, OPEN, None),
    ("an old failure elsewhere is gone", {"pre_matrix": {C: "failed"}}, OPEN, None),
    ("mismatch turns into a crash", {"pre_matrix": {C: "failed"}, "post_matrix": {C: fails("crashed", kind="crash")}}, SHUT, "no-regression"),
    ("mismatch turns into an exception", {"pre_matrix": {C: "failed"}, "post_matrix": {C: fails(kind="exception")}}, SHUT, "no-regression"),
    ("exception turns into a mismatch", {"pre_matrix": {C: fails(kind="exception")}, "post_matrix": {C: "failed"}}, OPEN, None),
    ("noise turns structural", {"pre_matrix": {C: fails(severity="accumulation")}, "post_matrix": {C: fails(severity="structural")}}, SHUT, "no-regression"),
    ("structural turns into noise", {"pre_matrix": {C: fails(severity="structural")}, "post_matrix": {C: fails(severity="accumulation")}}, OPEN, None),
    ("a failure with no outcome before", {"pre_matrix": {C: "missing"}, "post_matrix": {C: "failed"}}, UNKNOWN, "no-regression"),
    # tree
    ("measured before on another tree", {"pre_kw": {"tree": OTHER}}, SHUT, "measured-at-start"),
    ("the matrix measured on another tree", {"pre_matrix_kw": {"tree": OTHER}}, SHUT, "measured-at-start"),
    ("the tree changed under the first run", {"pre_kw": {"tree_after": OTHER}}, UNKNOWN, "measured-at-start"),
    ("the digest at open is unknown", {"start": None}, UNKNOWN, "measured-at-start"),
    ("two trees after the fix", {"post_kw": {"tree": OTHER}}, SHUT, "one-tree"),
    ("the tree changed under the last run", {"post_matrix_kw": {"tree_after": OTHER}}, UNKNOWN, "one-tree"),
    ("no patch of the tree was saved", {"revert": False}, SHUT, "one-tree"),
    ("nothing was changed", {"post_kw": {"tree": START}, "post_matrix_kw": {"tree": START}}, SHUT, "something-changed"),
    # backend
    ("another torch-spyre after the fix", {"post_kw": {"backend": REBUILT}, "post_matrix_kw": {"backend": REBUILT}}, SHUT, "one-backend"),
    ("two torch-spyres after the fix", {"post_kw": {"backend": REBUILT}}, SHUT, "one-backend"),
    ("an unknown torch-spyre", {"post_kw": {"backend": None}, "post_matrix_kw": {"backend": None}}, UNKNOWN, "one-backend"),
    # fallbacks
    ("a member passes with a new fallback", {"post": {A: fails("passed", fallbacks=["aten.mm"])}}, SHUT, "no-new-fallback"),
    ("another test passes with a new fallback", {"post_matrix": {C: fails("passed", fallbacks=["aten.mm"])}}, SHUT, "no-new-fallback"),
    ("an old fallback stays", {"pre_matrix": {C: fails("passed", fallbacks=["aten.mm"])}, "post_matrix": {C: fails("passed", fallbacks=["torch.ops.aten.mm"])}}, OPEN, None),
    ("one fallback for another", {"pre_matrix": {C: fails("passed", fallbacks=["aten.mm"])}, "post_matrix": {C: fails("passed", fallbacks=["aten.bmm"])}}, SHUT, "no-new-fallback"),
    # predicates
    ("the op's name may be written in other ways", {"members": ({"nodeid": A, "predicate": {"kind": "falls-back", "op": "torch.ops.aten::mm.default"}},), "pre": {A: fails("passed", fallbacks=["aten.mm"])}, **FALLS_MATRIX}, OPEN, None),
    ("a fallback is gone", {"members": (FALLS,), "pre": {A: fails("passed", fallbacks=["aten.mm"])}, **FALLS_MATRIX}, OPEN, None),
    ("a fallback is still there", {"members": (FALLS,), "pre": {A: fails("passed", fallbacks=["aten.mm"])}, "post": {A: fails("passed", fallbacks=["aten.mm"])}, **FALLS_MATRIX}, SHUT, "members-pass"),
    ("a fallback is gone because the test fails", {"members": (FALLS,), "pre": {A: fails("passed", fallbacks=["aten.mm"])}, "post": {A: "failed"}, **FALLS_MATRIX}, SHUT, "members-pass"),
    ("the fallback was never there", {"members": (FALLS,), "pre": {A: "passed"}, "pre_matrix": {A: "passed"}}, SHUT, "failed-before"),
    ("slow before and fast now", {"members": (SLOW,), "pre": {A: fails("passed", seconds=9.0)}, "post": {A: fails("passed", seconds=2.0)}, **SLOW_MATRIX}, OPEN, None),
    ("slow before and slow now", {"members": (SLOW,), "pre": {A: fails("passed", seconds=9.0)}, "post": {A: fails("passed", seconds=8.0)}, **SLOW_MATRIX}, SHUT, "members-pass"),
    ("slow before and no figure now", {"members": (SLOW,), "pre": {A: fails("passed", seconds=9.0)}, "post": {A: "passed"}, **SLOW_MATRIX}, UNKNOWN, "members-pass"),
    # queue
    ("a row is queued", {"row": "queued"}, SHUT, "rows-concluded"),
    ("a row is in progress", {"row": "in-progress"}, SHUT, "rows-concluded"),
    ("a row was dropped", {"row": "dropped"}, OPEN, None),
    ("no row was ever written", {"row": None}, SHUT, "rows-concluded"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "state", "code"), [case[1:] for case in TABLE], ids=[case[0] for case in TABLE])
def test_one_thing_changed_gives_this_answer_and_this_reason(changed, state, code):
    found = gate(variant(**changed))
    assert (code is None) == (state is OPEN)
    if code is not None:
        assert code in codes(found), found.reasons
    if state is UNKNOWN:
        assert found.state is not OPEN
        assert next(c.state for c in found.conditions if c.code == code) is UNKNOWN
    else:
        assert found.state is state, found.reasons


def test_the_tree_must_be_back_unless_the_patch_is_approved():
    story = variant(revert=False)
    assert codes(gate(story, tree_digest=FIXED)) == {"tree-at-start"}
    assert gate(story, tree_digest=FIXED, approved="goes in as it is").state is OPEN
    assert codes(gate(story, tree_digest=None)) == {"tree-at-start"}


def test_an_approval_holds_for_the_tree_that_it_was_given_for_only():
    story = variant(revert=False)
    story.add(ev.PatchApproved(reason="good", digest=FIXED))
    assert gate(story, tree_digest=FIXED).state is OPEN
    assert codes(gate(story, tree_digest=OTHER)) == {"one-tree", "tree-at-start"}


def test_an_approved_tree_that_was_not_validated_does_not_open_the_gate():
    story = variant()  # validated, reverted, then something else put on and approved
    assert codes(gate(story, tree_digest=OTHER, approved="better still")) == {"one-tree"}


def test_reverting_afterwards_does_not_make_the_runs_stale():
    assert gate(variant(revert=True)).state is OPEN


def test_a_declared_change_of_torch_spyre_opens_and_one_declared_too_late_does_not():
    story = Story()
    wide, fixed = {A: "failed", B: "failed", C: "passed"}, {A: "passed", B: "passed", C: "passed"}
    story.run("full-matrix", wide), story.run("baseline", {A: "failed", B: "failed"}), story.row()
    late = Story()
    late.events, late.evidence = list(story.events), dict(story.evidence)
    story.add(ev.FindingNoted(text="rebuilt with the fix", expect_change="torch-spyre"))
    for told in (story, late):
        runs = [
            told.run("post-fix", {A: "passed", B: "passed"}, backend=REBUILT),
            told.run("post-fix-matrix", fixed, backend=REBUILT),
        ]
        told.table(runs)
    late.add(ev.FindingNoted(text="oh, and it was rebuilt", expect_change="torch-spyre"))
    assert gate(story, backend=REBUILT).state is OPEN
    assert gate(story, backend=BACKEND).state is OPEN
    assert codes(gate(late, backend=REBUILT)) == {"one-backend"}


def test_a_backend_that_changed_since_the_runs_is_seen():
    assert codes(gate(good_story(), backend=REBUILT)) == {"one-backend"}


@pytest.mark.parametrize(
    "changes",
    [
        Changes(files=("tests/test_a.py",), tests=("tests/test_a.py",)),
        Changes(files=("spyre_inference/ops.py",), tolerances=("spyre_inference/ops.py: -atol=1e-2",)),
    ],
    ids=["edited test", "moved tolerance"],
)
def test_an_edited_test_or_tolerance_is_refused_without_a_reason(changes):
    assert codes(gate(good_story(), changes=changes)) == {"no-edited-test"}
    found = gate(good_story(), changes=changes, overrides={"no-edited-test": "the reference was wrong"})
    assert found.state is OPEN
    assert [c.code for c in found.overridden] == ["no-edited-test"]
    assert codes(gate(good_story(), changes=changes, overrides={"no-edited-test": "  "})) == {"no-edited-test"}


def test_a_patch_that_nobody_looked_at_is_unknown():
    found = gate(good_story(), changes=None)
    assert found.state is UNKNOWN
    assert codes(found) == {"no-edited-test"}


def test_what_validate_noted_of_the_patch_counts_for_its_own_tree_only():
    def told(tree):
        story = variant()
        story.table(["r3", "r4"], changes={"tree": tree, "files": ["a.py"], "tests": [], "tolerances": []})
        return gate(story, changes=None)

    assert told(FIXED).state is OPEN
    assert told(OTHER).state is UNKNOWN


@pytest.mark.parametrize("part", ["cause", "wasted", "signal"])
def test_each_part_of_the_retrospective_is_asked_for(part):
    told = {"cause": "a", "wasted": "b", "signal": "c", part: " "}
    found = gate(good_story(), retrospective=Retrospective(**told))
    assert codes(found) == {"retrospective"}
    assert part in found.reasons[0].text


def test_the_table_must_speak_of_these_members_and_these_runs():
    story = variant()
    story.run("post-fix", {A: "passed", B: "passed"}, tree=FIXED)
    assert codes(gate(story)) == {"table-filled"}
    story = variant()
    story.add(ev.MemberAdded(nodeid="t::e", predicate={"kind": "fails"}, reason="same symptom"))
    assert {"table-filled", "failed-before", "members-pass"} <= codes(gate(story))
    story = Story()
    assert "table-filled" in codes(gate(story))


def test_a_member_that_was_carved_out_is_no_longer_asked_for():
    story = variant(post={B: "failed"}, post_matrix={B: "failed"})
    assert "members-pass" in codes(gate(story))
    story.add(ev.MemberRemoved(nodeid=B, reason="another cause", moved_to="debug-y"))
    assert "members-pass" not in codes(gate(story))


def test_a_reopened_session_needs_a_new_validation():
    story = good_story()
    story.add(ev.SessionClosed(status="resolved", cause="a", wasted="b", signal="c"))
    story.add(ev.SessionReopened(reason="it came back"))
    assert codes(gate(story)) == {"table-filled"}


def test_a_lucky_pass_of_a_member_does_not_count():
    story = variant(post={A: "failed"})
    again = story.run("post-fix", {A: "passed", B: "passed"}, tree=FIXED)
    story.table([again, "r4"])
    assert codes(gate(story)) == {"members-pass"}


def test_a_failure_because_somebody_held_the_card_does_not_count_once_it_was_run_again():
    story = variant(post={A: "failed"}, post_kw={"busy": True})
    assert "members-pass" in codes(gate(story))
    again = story.run("post-fix", {A: "passed", B: "passed"}, tree=FIXED)
    story.table([again, "r4"])
    assert gate(story).state is OPEN


WIDE = {A: "failed", B: "failed", C: "passed", D: "skipped"}
GOOD = {A: "passed", B: "passed", C: "passed", D: "skipped"}


@pytest.mark.parametrize(
    ("before_again", "after_again", "state"),
    [
        (None, None, SHUT),  # fails, never repeated
        (None, "passed", SHUT),  # flips now, but the old tree only passed it
        ("failed", "failed", SHUT),  # flaked before, fails for good now
        ("failed", "passed", OPEN),  # flips in both trees
        ("passed", "passed", SHUT),
    ],
)
def test_a_new_failure_is_a_flake_only_if_both_trees_pass_and_fail_it(before_again, after_again, state):
    story = variant(post_matrix={C: "failed"}, revert=False)
    runs = ["r3", "r4"]
    if after_again:
        runs.append(story.run("post-fix-matrix", {**GOOD, C: after_again}, tree=FIXED))
    story.table(runs)
    story.add(ev.TreeReverted(patch="fix.patch", files=("a.py",), digest=START, patched=FIXED))
    if before_again:
        story.run("full-matrix", {**WIDE, C: before_again})
    found = gate(story)
    assert found.state is state, found.reasons
    if state is SHUT:
        assert codes(found) == {"no-regression"}
        assert C in found.reasons[0].nodeids


def test_a_flake_in_another_scope_proves_nothing():
    story = variant(post_matrix={C: "failed"})
    again = story.run("post-fix-matrix", GOOD, tree=FIXED)
    story.table(["r3", "r4", again])
    story.run("full-matrix", {C: "failed"})
    story.run("full-matrix", WIDE)
    assert "no-regression" in codes(gate(story))


@pytest.mark.parametrize(
    "code", ["members-pass", "no-regression", "failed-before", "table-filled", "rows-concluded", "retrospective"]
)
def test_what_can_be_done_cannot_be_set_aside(code):
    assert code not in OVERRIDABLE
    story = variant(post={A: "failed"}, post_matrix={C: "failed"}, row="queued")
    overrides = dict.fromkeys(c.code for c in gate(story).conditions)
    found = gate(story, overrides=dict.fromkeys(overrides, "because"), retrospective=None)
    assert found.state is SHUT
    assert {"members-pass", "no-regression", "rows-concluded", "retrospective"} <= codes(found)


def test_an_override_is_worth_something_for_the_table_it_was_given_for_only():
    story = variant(post_kw={"backend": REBUILT}, post_matrix_kw={"backend": REBUILT})
    story.add(ev.GateOverridden(code="one-backend", reason="known"))
    assert gate(story, backend=REBUILT).state is OPEN
    story.table(["r3", "r4"])
    assert codes(gate(story, backend=REBUILT)) == {"one-backend"}


def test_a_workaround_needs_approval():
    assert codes(gate(good_story(), workaround=True)) == {"workaround-approved"}
    assert gate(good_story(), workaround=True, approved="until torch-spyre is fixed").state is OPEN


def proved_in_torch_spyre(story, stamp="VERIFIED: 3 of 3 fresh processes, the CPU control passes"):
    story.add(ev.ReportMade(verb="repro", lines=("proved",), data={"stamp": stamp}))
    return story


def test_a_change_that_goes_round_a_proved_bug_of_torch_spyre_needs_approval_without_any_flag():
    story = proved_in_torch_spyre(good_story())
    assert codes(gate(story)) == {"workaround-approved"}
    assert gate(story, approved="until torch-spyre is fixed").state is OPEN
    assert gate(proved_in_torch_spyre(good_story(), stamp="UNVERIFIED: 1 of 3")).state is OPEN


def test_a_torch_spyre_that_was_mended_is_no_workaround():
    story = variant(post_kw={"backend": REBUILT}, post_matrix_kw={"backend": REBUILT})
    assert "workaround-approved" not in codes(gate(proved_in_torch_spyre(story), backend=REBUILT))


def commands_of(text):
    """The debug-spyre commands in a `next`, as words."""
    import re
    import shlex

    for part in re.split(r", then |; then |; |, or ", text):
        if part.startswith("debug-spyre "):
            yield shlex.split(part)[1:]


def test_every_next_command_of_a_reason_is_one_that_its_verb_takes():
    from argparse import ArgumentParser

    from debug_spyre.verbs import table

    stories = [variant(**case[1]) for case in TABLE] + [Story(), Story(members=(), matrix=None)]
    found = {r.next for story in stories for r in gate(story, retrospective=None, tree_digest=OTHER).reasons}
    found |= {r.next for r in judge_blocked(stories[0].session, CloseRequest(tree_digest=OTHER)).reasons}
    commands = [words for text in found for words in commands_of(text)]
    assert len(commands) >= 10
    for name, *words in commands:
        parser = ArgumentParser(exit_on_error=False)
        verb = table.load(name)
        verb.add_arguments(parser)
        filled = ["confirmed" if w == "VERDICT" else "1" if w == "N" else w for w in words]
        if name == "hypothesis":
            assert filled[0] in {"list", "add", "start", "conclude", "drop"}
            continue
        _, left = parser.parse_known_args(filled)
        assert verb.rest or not left, (name, words)


def test_unknown_evidence_is_unknown():
    story = good_story()
    for run in list(story.evidence):
        kept = story.evidence.pop(run)
        found = gate(story)
        assert found.state is UNKNOWN, run
        story.evidence[run] = kept


def test_the_page_can_ask_without_looking_at_the_world():
    found = judge(good_story().session, good_story().evidence)
    assert codes(found) == {"retrospective", "no-edited-test"}
    assert found.to_json()["gate"] == "shut"


def test_blocked_needs_the_tree_back_and_a_concrete_next_action():
    story = Story()
    ask = "decide whether the padded width may change"
    assert judge_blocked(story.session, CloseRequest(tree_digest=START, next_action=ask)).state is OPEN
    assert codes(judge_blocked(story.session, CloseRequest(tree_digest=START))) == {"next-action"}
    assert codes(judge_blocked(story.session, CloseRequest(tree_digest=START, next_action="later"))) == {"next-action"}
    assert codes(judge_blocked(story.session, CloseRequest(tree_digest=OTHER, next_action=ask))) == {"tree-at-start"}
    assert judge_blocked(story.session, CloseRequest(tree_digest=OTHER, next_action=ask, approved="ok")).state is OPEN


def test_blocked_waits_for_the_row_in_progress_and_asks_for_the_next_tier_when_all_are_tested():
    story = Story()
    story.row("in-progress")
    assert "rows-settled" in codes(judge_blocked(story.session, CloseRequest(tree_digest=START)))
    story = Story()
    story.row("ruled-out"), story.row("inconclusive")
    found = judge_blocked(story.session, CloseRequest(tree_digest=START))
    assert "next tier" in found.reasons[0].text
    story.add(ev.NextNoted(text="instrument torch_spyre/_inductor and escalate"))
    assert judge_blocked(story.session, CloseRequest(tree_digest=START)).state is OPEN


class Counted(str):
    """A node id that counts how often it is looked at."""

    looks = 0

    def __hash__(self):
        Counted.looks += 1
        return super().__hash__()


def looks_of(size):
    ids = [Counted(f"tests/t.py::t[{n}]") for n in range(size)]
    members = ids[: size // 10]
    story = Story(members=tuple(members))
    story.run("full-matrix", {**dict.fromkeys(ids, "passed"), **dict.fromkeys(members, "failed")})
    story.run("baseline", dict.fromkeys(members, "failed"))
    story.row()
    runs = [story.run("post-fix", dict.fromkeys(members, "passed"), tree=FIXED)]
    runs += [story.run("post-fix-matrix", dict.fromkeys(ids, "passed"), tree=FIXED) for _ in range(2)]
    story.table(runs)
    session = story.session
    Counted.looks = 0
    assert judge(session, story.evidence).state is not GateState.OPEN
    return Counted.looks


def test_the_work_grows_with_the_matrix_and_not_with_its_square():
    assert looks_of(2000) <= 5 * looks_of(500)
