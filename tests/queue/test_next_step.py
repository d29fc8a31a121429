"""What comes next: a table of situations, each with the one command that an engineer would type."""

import dataclasses
import shlex

import pytest

from debug_spyre.cli import table
from debug_spyre.queue.queue_words import next_step
from debug_spyre.session import events as ev
from debug_spyre.session.replay import replay

NODE = "tests/t.py::test_a[1-'quoted'-x=(2,3)]"
START, CHANGED = "start000", "changed0"


def session(*events, members=(NODE,)):
    opened = ev.SessionOpened(
        stem="debug-x", slug="x", symptom="s", members=tuple({"nodeid": m} for m in members), checkout="/c",
        probe=members[0] if members else None, tree={"digest": START},
    )  # fmt: skip
    flat = [e for given in (opened, *events) for e in (given if isinstance(given, tuple) else (given,))]
    return replay(
        dataclasses.replace(e, seq=n, at=f"2026-01-01T00:{n // 60:02d}:{n % 60:02d}.000Z")
        for n, e in enumerate(flat, 1)
    )


def started(run, name=None, row=None):
    return ev.RunStarted(run=run, verb="run", name=name, argv=(), output=f"{run}.txt", hypothesis=row)


def run(run, name=None, row=None, status="failed", tree=START):
    ended = ev.RunFinished(run=run, status=status, valid=True, seconds=1.0, exit=1, tree_digest=tree)
    return (started(run, name, row), ended)


def row(number, verdict=None, run=None):
    added = ev.HypothesisAdded(number=number, text=f"h{number}", test=f"debug-spyre shadow {number}")
    begun = ev.HypothesisStarted(number=number, command="debug-spyre shadow X")
    if verdict is None:
        return (added,)
    if verdict == "in-progress":
        return (added, begun)
    if verdict == "dropped":
        return (added, ev.HypothesisDropped(number=number, reason="r"))
    return (added, begun, ev.HypothesisConcluded(number=number, verdict=verdict, sentence="s", runs=("r1",)))


def report(verb, **data):
    return ev.ReportMade(verb=verb, lines=("x",), data=data)


BASE = run("r1", "baseline")
PROVED = report("repro", stamp="VERIFIED: 3 of 3")


def table_of(gate):
    return ev.ValidationRecorded(rows=({"nodeid": NODE},), gate={"gate": gate}, runs=("r9",))


SITUATIONS = {
    "nothing was done": ((), f"debug-spyre run --as baseline {shlex.quote(NODE)}"),
    "a run is in flight": ((BASE, started("r2")), "debug-spyre wait r2"),
    "the queue is empty": ((BASE,), "debug-spyre hypothesis seed"),
    "rows are queued": ((BASE, row(1), row(2)), "debug-spyre hypothesis start 1"),
    "a row is in progress": ((BASE, row(1, "in-progress")), "debug-spyre shadow X"),
    "the row in progress was tested": (
        (BASE, row(1, "in-progress"), run("r2", row=1)),
        "debug-spyre hypothesis conclude 1 VERDICT 'SENTENCE' --run r2",
    ),
    "an older run of another row does not answer it": (
        (BASE, run("r2", row=1), row(1, "in-progress")),
        "debug-spyre shadow X",
    ),
    "a cause is confirmed, rows are left": ((BASE, row(1, "confirmed"), row(2)), "debug-spyre finish"),
    "a cause is confirmed and the tree is changed": (
        (BASE, row(1, "confirmed"), run("r2", tree=CHANGED)),
        "debug-spyre finish",
    ),
    "a script proves it": ((BASE, PROVED), "debug-spyre finish"),
    "investigate made the runs before": ((report("investigate"), PROVED), "debug-spyre finish"),
    "validated, all met": ((BASE, row(1, "confirmed"), table_of("open")), "debug-spyre finish"),
    "validated, not all met": ((BASE, row(1, "confirmed"), table_of("shut")), "debug-spyre close resolved --check"),
    "none explains, nothing looked": ((BASE, row(1, "ruled-out")), "debug-spyre shadow"),
    "none explains, shadow looked": ((BASE, row(1, "ruled-out"), report("shadow")), "debug-spyre ladder"),
    "none explains, shadow and ladder looked": (
        (BASE, row(1, "ruled-out"), report("shadow"), report("ladder")),
        "debug-spyre repro",
    ),
    "none explains, all looked": (
        (BASE, row(1, "ruled-out"), report("shadow"), report("ladder"), report("repro")),
        "debug-spyre close blocked --next 'TEXT'",
    ),
    "all rows were dropped": ((BASE, row(1, "dropped")), "debug-spyre shadow"),
    "closed": ((BASE, ev.SessionClosed(status="blocked", next_action="x")), ""),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_situation_has_its_command(name):
    events, command = SITUATIONS[name]
    step = next_step(session(*events))
    assert step.command == command and step.why


@pytest.mark.parametrize("name", [n for n, (_, command) in SITUATIONS.items() if command])
def test_each_command_begins_with_a_verb_that_exists(name):
    words = shlex.split(next_step(session(*SITUATIONS[name][0])).command)
    assert words[0] == "debug-spyre" and words[1] in table.BY_NAME


def test_rows_that_a_known_cause_answers_can_be_dropped_in_one_call():
    step = next_step(session(BASE, row(1, "confirmed"), row(2), row(3)))
    assert "debug-spyre hypothesis drop 2 3 'REASON'" in step.why


def test_a_tree_that_was_changed_and_reverted_is_not_changed():
    reverted = ev.TreeReverted(patch="fix.patch", files=("a.py",), digest=START, patched=CHANGED)
    changed = session(BASE, row(1, "confirmed"), run("r2", tree=CHANGED))
    assert "the tree is changed" in next_step(changed).why
    back = session(BASE, row(1, "confirmed"), run("r2", tree=CHANGED), reverted)
    assert "the tree is changed" not in next_step(back).why
