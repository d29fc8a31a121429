"""The state kept beside a long journal is a cache: never another answer than the journal's own."""

import json
import os
import random

import pytest
from tests.session.test_replay import opened

from debug_spyre.session import events as ev
from debug_spyre.session.io import checkpoint
from debug_spyre.session.io.journal import Journal
from debug_spyre.session.io.workspace import Folder, load_session
from debug_spyre.vocabulary.words import VERDICTS

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))


@pytest.fixture(autouse=True)
def _short_journals_too(monkeypatch):
    monkeypatch.setattr(checkpoint, "LEAST_BYTES", 0)
    monkeypatch.setattr(checkpoint, "BEHIND_BYTES", 1)


def some_event(chance, rows, runs):
    """A legal event of any kind, numbers as a session would give them."""
    row, run = chance.randint(1, max(rows, 1)), f"r{chance.randint(1, max(runs, 1))}"
    nodeid = f"t.py::{chance.choice('abcd')}"
    return chance.choice(
        [
            ev.HypothesisAdded(number=rows + 1, text=f"row {rows}", test="c", cost_seconds=2.5),
            ev.HypothesisStarted(number=row, command="c"),
            ev.HypothesisConcluded(
                number=row, verdict=chance.choice(list(VERDICTS)).value, sentence="s", excerpt=("a", "b"), runs=(run,)
            ),
            ev.HypothesisDropped(number=row, reason="r"),
            ev.RunStarted(
                run=f"r{runs + 1}", verb="run", name="baseline", argv=("p", "t"), output="o", env={"A": "1"},
                pytest_args=chance.choice([None, ("t",)]), provenance={"a": [1, {"b": None}]},
            ),
            ev.RunProgressed(run=run, done=1, failed=0, current="t"),
            ev.RunFinished(
                run=run, status="failed", valid=True, seconds=1.5, exit=1, scope={"options": ["-x"]}, counts={"failed": 1},
                digest=("d",), warnings=("w",), holders=("h",),
            ),
            ev.SummaryNoted(text="s"), ev.FindingNoted(text="f"), ev.NextNoted(text="n"),
            ev.ExperimentNoted(text="e", hypothesis=row, tail=("x",)), ev.ArtifactSaved(path="a", sha256="0", size=1),
            ev.MemberAdded(nodeid=nodeid, predicate={"kind": "slower", "seconds": 2}, reason="r"),
            ev.MemberRemoved(nodeid=nodeid, reason="r", moved_to="debug-x"), ev.ProbeChosen(nodeid=nodeid, reason="r"),
            ev.TreeReverted(patch="p", files=("a",), digest="d", patched="q"),
            ev.ValidationRecorded(rows=({"nodeid": "a"},), matrix={"new": ["x"]}, runs=("r1",)),
            ev.PatchApproved(reason="r", digest="d"), ev.GateOverridden(code="c", reason="r"),
            ev.SessionClosed(status="blocked", next_action="n"), ev.SessionReopened(reason="r"),
            ev.SessionLinked(stem="debug-y", relation="similar"), ev.ReportMade(verb="sweep", lines=("l",), data={"a": 1}),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(12 * FUZZ))
def test_property_the_state_is_the_journals_own_wherever_it_was_kept(tmp_path, seed):
    chance, journal, rows, runs = random.Random(seed), Journal(tmp_path), 0, 0
    journal.append(opened())
    for _ in range(60):
        event = some_event(chance, rows, runs)
        rows += isinstance(event, ev.HypothesisAdded)
        runs += isinstance(event, ev.RunStarted)
        after = journal.record(lambda _, event=event: [event])
        if chance.random() < 0.2:
            journal.keep_state()
        whole = load_session(Folder(tmp_path))
        assert repr(after) == repr(whole) == repr(journal.now())


def kept(tmp_path):
    journal = Journal(tmp_path)
    journal.append(opened())
    for number in range(1, 6):
        journal.append(ev.HypothesisAdded(number=number, text=f"row {number}", test="c"))
    journal.keep_state()
    assert (tmp_path / checkpoint.NAME).exists()
    return journal


def test_a_journal_that_was_changed_is_read_whole(tmp_path):
    journal = kept(tmp_path)
    path = tmp_path / "journal.jsonl"
    path.write_text(path.read_text().replace("row 3", "row X"))
    assert [h.text for h in journal.now().hypotheses] == ["row 1", "row 2", "row X", "row 4", "row 5"]


@pytest.mark.parametrize("seed", range(30 * FUZZ))
def test_a_damaged_or_foreign_state_is_left_aside(tmp_path, seed):
    journal, chance, path = kept(tmp_path), random.Random(seed), tmp_path / checkpoint.NAME
    expected = repr(load_session(Folder(tmp_path)))
    head, _, body = path.read_bytes().partition(b"\n")
    damages = [
        lambda: b"",
        lambda: head,
        lambda: head + b"\n" + body[: chance.randrange(len(body))],
        lambda: json.dumps(json.loads(head) | {"form": "of another version"}).encode() + b"\n" + body,
        lambda: json.dumps(json.loads(head) | {"bytes": 10**9}).encode() + b"\n" + body,
        lambda: json.dumps(json.loads(head) | {"digest": None}).encode() + b"\n" + body,
        lambda: head + b"\n" + json.dumps({k: None for k in json.loads(body)}).encode(),
        lambda: b"\xff\xfe" + path.read_bytes(),
    ]
    path.write_bytes(damages[seed % len(damages)]())
    assert repr(journal.now()) == expected


def test_lines_after_the_kept_state_count_and_a_torn_one_does_not(tmp_path):
    journal = kept(tmp_path)
    journal.append(ev.HypothesisDropped(number=2, reason="r"))
    with (tmp_path / "journal.jsonl").open("a") as stream:
        stream.write('{"v":1,"seq":99')
    after = journal.record(lambda s: [ev.HypothesisAdded(number=len(s.hypotheses) + 1, text="row 6", test="c")])
    assert [str(h.status) for h in after.hypotheses] == ["queued", "dropped", *["queued"] * 4]
    assert after.last_seq == 8
    assert load_session(Folder(tmp_path)) == after
