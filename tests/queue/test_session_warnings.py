"""What a session warns about, and the one-screen overview."""

import dataclasses

import pytest

from debug_spyre.page.overview import MOST_LINES, brief, overview
from debug_spyre.queue.session_warnings import is_summary_stale, nothing_explains, session_warnings
from debug_spyre.session import events as ev
from debug_spyre.session.replay import replay
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind

NODE = "tests/t.py::test_a[1-'quoted'-x=(2,3)]"


def story(*events, kind="mismatch", members=1):
    opened = ev.SessionOpened(
        stem="debug-x",
        slug="x",
        symptom="97 % wrong",
        members=({"nodeid": NODE}, *({"nodeid": f"t.py::b[{n}]"} for n in range(1, members))),
        checkout="/c",
        probe=NODE,
        cluster={"kind": kind, "signature": "v1|x"},
        at="2026-01-01T00:00:00Z",
    )
    stamped = [
        dataclasses.replace(e, at=e.at or f"2026-01-01T00:{n // 60:02d}:{n % 60:02d}Z") for n, e in enumerate(events, 1)
    ]
    return replay([opened, *stamped])


def baseline(run="r1"):
    return (
        ev.RunStarted(run=run, verb="run", name="baseline", argv=(), output="baseline.txt"),
        ev.RunFinished(run=run, status="failed", valid=True, seconds=1.0, exit=1, digest=("97 % wrong",)),
    )


def row(number, verdict=None):
    made = [ev.HypothesisAdded(number=number, text=f"idea {number}", test="cmd")]
    if verdict:
        made += [
            ev.HypothesisStarted(number=number, command="cmd"),
            ev.HypothesisConcluded(number=number, verdict=verdict, sentence="so"),
        ]
    return made


def seen(kind):
    return {"r1": Evidence((), None, True, failures=(Failure(NODE, "call", Kind(kind)),))}


def codes(session, evidence=None):
    return [c.code for c in session_warnings(session, evidence or {})]


def test_without_a_baseline_the_command_for_one_is_quoted_for_the_shell():
    (concern,) = session_warnings(story(), {})
    assert concern.code == "no-baseline"
    assert """'tests/t.py::test_a[1-'"'"'quoted'"'"'-x=(2,3)]'""" in concern.next


def test_a_baseline_of_another_kind_than_the_cluster_is_warned_about():
    session = story(*baseline())
    assert "probe-unlike-cluster" in codes(session, seen("compile"))
    assert "probe-unlike-cluster" not in codes(session, seen("mismatch"))


def test_a_probe_that_passes_in_its_own_scope_is_said():
    assert "probe-passes" in codes(story(*baseline()), {"r1": Evidence((), None, True)})


def test_a_probe_that_passes_is_not_said_once_the_experiment_was_made():
    made = ev.ReportMade(verb="run --alone", lines=("carry-over",), run="r2")
    assert "probe-passes" not in codes(story(*baseline(), made), {"r1": Evidence((), None, True)})


def test_a_probe_that_passes_among_the_members_alone_is_said_too():
    started, finished = baseline()
    among = (dataclasses.replace(started, members_only=True), finished)
    assert "probe-passes" in codes(story(*among), {"r1": Evidence((), None, True)})
    assert "probe-unlike-cluster" not in codes(story(*among), seen("compile"))


def test_an_old_summary_is_stale_and_a_new_one_is_not():
    before = [ev.SummaryNoted(text="theory"), *row(1, "ruled-out")]
    assert is_summary_stale(story(*before))
    assert not is_summary_stale(story(*before, ev.SummaryNoted(text="new")))
    assert not is_summary_stale(story(*row(1)))


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([], False), (["ruled-out"], True), (["ruled-out", None], False), (["confirmed", "ruled-out"], False)],
)
def test_nothing_explains_once_all_were_tested_and_none_is_confirmed(verdicts, expected):
    session = story(*[e for n, v in enumerate(verdicts, 1) for e in row(n, v)])
    assert nothing_explains(session) is expected
    assert ("none-explains" in codes(session)) is expected


def test_a_run_without_a_row_is_unattributed_unless_its_name_says_what_it_is():
    plain = [
        ev.RunStarted(run="r2", verb="run", name=None, argv=(), output="r2.txt"),
        ev.RunStarted(run="r3", verb="repro", name=None, argv=(), output="r3.txt"),
    ]
    session = story(*baseline(), *plain)
    found = [c for c in session_warnings(session, seen("mismatch")) if c.code == "unattributed"]
    assert len(found) == 1
    assert "r2" in found[0].text
    assert "r3" not in found[0].text


def test_a_closed_session_worries_about_nothing():
    assert codes(story(ev.SessionClosed(status="blocked", next_action="decide"))) == []


def test_the_overview_fits_a_screen_however_much_there_is():
    events = [*baseline(), ev.SummaryNoted(text="word " * 400)]
    events += [e for n in range(1, 60) for e in row(n, "ruled-out" if n % 2 else None)]
    lines = overview(story(*events, members=400), seen("mismatch"), page="/p.html")
    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("investigating: x")
    assert lines[-1] == "log: /p.html"
    assert all("\n" not in line for line in lines)


def test_the_brief_has_what_a_lost_memory_needs():
    text = "\n".join(brief(story(*baseline(), *row(1), ev.HypothesisStarted(number=1, command="c")), page="/p.html"))
    for word in ("debug-x", "97 % wrong", NODE, "#1 idea 1", "/p.html"):
        assert word in text
