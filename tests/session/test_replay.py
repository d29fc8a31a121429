"""How facts become state."""

from pathlib import Path

import pytest

from debug_spyre.session import events as ev
from debug_spyre.session.replay import NoSessionError, member_from, member_to, replay
from debug_spyre.session.state import Member
from debug_spyre.vocabulary.words import HypothesisStatus, RunStatus, Status


def opened(**changes):
    values = {
        "seq": 1,
        "at": "2026-11-30T10:00:00.000Z",
        "by": "agent",
        "stem": "debug-20261130-100000-x",
        "slug": "x",
        "symptom": "97 % wrong",
        "members": (
            {"nodeid": "t.py::a"},
            {"nodeid": "t.py::b", "predicate": {"kind": "falls-back", "op": "aten.sin"}},
        ),
        "checkout": "/c",
    }
    return ev.SessionOpened(**(values | changes))


def story(*events):
    return replay([opened(), *events])


def test_a_journal_that_does_not_begin_with_an_opening_is_no_session():
    with pytest.raises(NoSessionError):
        replay([])
    with pytest.raises(NoSessionError):
        replay([ev.NextNoted(text="x")])


@pytest.mark.parametrize(
    "member", [Member("a"), Member("b", "falls-back", op="aten.sin"), Member("c", "slower", seconds=2)]
)
def test_a_member_survives_its_journal_form(member):
    assert member_from(member_to(member)) == member
    assert member.says()


def test_a_run_goes_from_running_to_its_end():
    begun = ev.RunStarted(run="r1", verb="run", name="baseline", argv=("pytest",), output="baseline.txt", at="t1")
    session = story(begun)
    assert session.runs["r1"].status is RunStatus.RUNNING
    assert not session.runs["r1"].is_finished
    assert session.last_run("baseline") is None
    session = story(begun, ev.RunProgressed(run="r1", done=3, failed=1, collected=9, current="t.py::c"))
    assert (session.runs["r1"].done, session.runs["r1"].current) == (3, "t.py::c")
    session = story(begun, ev.RunFinished(run="r1", status="failed", valid=True, seconds=1.5, exit=1, at="t2"))
    assert session.last_run("baseline").exit == 1
    invalid = story(begun, ev.RunFinished(run="r1", status="invalid", valid=False, seconds=1.5))
    assert invalid.last_run("baseline") is None
    assert invalid.last_run("baseline", valid=False).id == "r1"


def test_a_run_taken_over_keeps_the_times_at_which_it_really_ran():
    session = story(
        ev.RunStarted(run="r1", verb="triage", name=None, argv=(), output="o", at="later", began_at="earlier"),
        ev.RunFinished(run="r1", status="failed", valid=True, seconds=1, at="later", ended_at="then"),
    )
    assert (session.runs["r1"].started_at, session.runs["r1"].finished_at) == ("earlier", "then")


def test_a_row_goes_through_its_states():
    add = ev.HypothesisAdded(number=1, text="mean", test="cmd")
    assert story(add).queued[0].number == 1
    start = ev.HypothesisStarted(number=1, command="cmd")
    assert story(add, start).in_progress.command == "cmd"
    end = ev.HypothesisConcluded(number=1, verdict="ruled-out", sentence="no", runs=("r1",))
    row = story(add, start, end).hypothesis(1)
    assert row.status is HypothesisStatus.RULED_OUT
    assert row.is_concluded
    dropped = story(add, ev.HypothesisDropped(number=1, reason="dup")).hypothesis(1)
    assert (dropped.status, dropped.outcome) == (HypothesisStatus.DROPPED, "dup")


def test_members_leave_and_come_back_and_take_the_probe_with_them():
    session = story(
        ev.ProbeChosen(nodeid="t.py::a", reason="small"),
        ev.MemberRemoved(nodeid="t.py::a", reason="other", moved_to="debug-z"),
    )
    assert [m.nodeid for m in session.members] == ["t.py::b"]
    assert session.probe is None
    assert session.departed[0].moved_to == "debug-z"
    again = story(
        ev.MemberRemoved(nodeid="t.py::a", reason="other"),
        ev.MemberAdded(nodeid="t.py::a", predicate={"kind": "fails"}, reason="back"),
    )
    assert not again.departed
    assert [m.nodeid for m in again.members] == ["t.py::b", "t.py::a"]


def test_closing_and_reopening_change_the_status():
    close = ev.SessionClosed(status="resolved", cause="c", wasted="w", signal="s")
    assert story(close).status is Status.RESOLVED
    again = story(close, ev.SessionReopened(reason="came back"))
    assert again.status is Status.INVESTIGATING
    assert again.closing is None


def test_unknown_events_are_counted_and_harmless():
    session = story(ev.UnknownEvent(original={"kind": "later"}), ev.NextNoted(text="n"))
    assert session.unknown_events == 1
    assert session.nexts[0].text == "n"


def test_every_kind_of_event_has_its_step():
    from debug_spyre.session.replay import _STEPS, KEPT

    assert {*ev.KINDS.values(), ev.UnknownEvent} - {*_STEPS, *KEPT} == {ev.SessionOpened}


def test_a_journal_that_an_earlier_version_wrote_replays_to_the_same_state():
    lines = (Path(__file__).parent / "data/journal-before-the-rooms.jsonl").read_text(encoding="utf-8").splitlines()
    session = replay([ev.from_line(line) for line in lines])
    assert (session.status, session.last_seq, len(session.members)) == (Status.RESOLVED, 47, 12)
    assert (len(session.runs), sum(r.failing for r in session.runs.values())) == (10, 26)
    assert [(h.status.value, h.runs) for h in session.hypotheses] == [
        ("ruled-out", ("r4",)),
        ("ruled-out", ("r5",)),
        ("inconclusive", ("r6",)),
        ("ruled-out", ("r7",)),
        ("confirmed", ("r7",)),
        ("confirmed", ("r9", "r10")),
    ]
    assert session.validation.runs == ("r9", "r10")
    assert session.closing.cause.startswith("The mean's cross-core reduction")
    assert len(session.findings) == len(session.artifacts) == len(session.reports) == len(session.reverts) == 1
