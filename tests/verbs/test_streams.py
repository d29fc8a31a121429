"""Closed, full and broken output, in every verb: the statuses of docs/exit-statuses.md, the event written once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gate.conftest import Story

from debug_spyre.verbs import table
from debug_spyre.vocabulary.errors import Exit

ROOT = Path(__file__).parents[2]
COMMAND = ROOT / "scripts/debug-spyre"
STEM = "debug-20261130-010203-x"
# words of each verb that end by themselves without a card; {n} is another number at each call
CALLS = {
    "doctor": ["doctor"], "triage": ["triage", "--from", "log.txt"], "investigate": ["investigate", "--help"], "open": ["open", "No Slug"],
    "run": ["run", "--session", STEM, "tests/test_none.py"], "exec": ["exec", "--session", STEM, "--", "true"], "wait": ["wait", "r99"],
    "stop": ["stop", "r99"], "hypothesis": ["hypothesis", "add", "row {n}", "--test", "c"], "note": ["note", "finding", "text {n}"],
    "save": ["save", "kept-{n}.txt"], "cluster": ["cluster", "probe", "t::a"], "revert": ["revert"], "validate": ["validate"],
    "close": ["close", "resolved", "--check"], "finish": ["finish"], "reopen": ["reopen", "again"], "escalate": ["escalate", "--dry-run"],
    "op": ["op", "aten.mm"], "compare": ["compare", "a.npy", "b.npy"], "status": ["status"], "shadow": ["shadow", "--help"],
    "sweep": ["sweep", "--help"], "ladder": ["ladder", "--help"], "repro": ["repro", "--help"], "limits": ["limits"],
    "similar": ["similar"], "render": ["render"], "index": ["index"], "prune": ["prune", "--older", "9000"], "lock": ["lock"],
    "install": ["install", "--help"], "bisect": ["bisect", "--help"], "demo": ["demo", "--help"],
}  # fmt: skip
RECORDS = {"hypothesis": 1, "note": 1, "save": 1, "cluster": 1, "exec": 2}  # events of a call that goes well
QUICK = {*RECORDS, "status", "close", "open"}
WAYS = {
    "stdout closed": ">&- 2>err",
    "stdout full": ">/dev/full 2>err",
    "stdout without a reader": "2>err | true",
    "stderr closed": ">out 2>&-",
    "stderr full": ">out 2>/dev/full",
    "both closed": ">&- 2>&-",
    "both full": ">/dev/full 2>/dev/full",
}


def test_every_verb_is_called_here():
    assert set(CALLS) == set(table.BY_NAME)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A checkout with a session; verbs without a reason to change it are called again and again."""
    checkout = tmp_path_factory.mktemp("streams")
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    (checkout / "log.txt").write_text("FAILED t.py::a - AssertionError\n1 failed in 1s\n")
    folder = checkout / ".claude/skills/debug-spyre/logs" / STEM
    folder.mkdir(parents=True)
    story = Story(checkout=str(checkout))
    from debug_spyre.session import events as ev

    (folder / "journal.jsonl").write_text("".join(ev.to_line(e) + "\n" for e in story.events))
    return checkout, folder / "journal.jsonl"


def call(checkout, name, way, number):
    words = [w.format(n=number) for w in CALLS[name]]
    env = {**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable, "DEBUG_SPYRE_LOCK_DIR": str(checkout / "locks")}
    env.pop("CLAUDECODE", None)
    for file in ("out", "err"):
        (checkout / file).write_text("")
    script = (
        f'{{ "$0" "$@" < log.txt; echo $? > status; }} {way}'
        if "|" in way
        else f'"$0" "$@" {way} < log.txt; echo $? > status'
    )
    subprocess.run(["bash", "-c", script, str(COMMAND), *words], cwd=checkout, env=env, timeout=120, check=False)
    return int((checkout / "status").read_text()), (checkout / "out").read_text(), (checkout / "err").read_text()


def lines_of(journal):
    text = journal.read_text()
    found = [json.loads(line) for line in text.splitlines()]  # nothing but events in it
    return [e for e in found if e["kind"] != "run_progressed"]


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in CALLS])
def test_statuses_and_events_are_those_of_the_table(world, name):
    checkout, journal = world
    before = len(lines_of(journal))
    usual, text, _ = call(checkout, name, ">out 2>err", 0)
    recorded = len(lines_of(journal)) - before
    assert usual != Exit.BUG
    if name in RECORDS:
        assert (usual, recorded) == (0, RECORDS[name])
    for number, (way, words) in enumerate(WAYS.items(), start=1):
        before = len(lines_of(journal))
        status, out, err = call(checkout, name, words, number)
        is_lost = way.startswith(("stdout closed", "stdout full", "both")) and text
        assert status == ((usual or Exit.LOST) if is_lost else usual), (way, status, usual, err)
        assert len(lines_of(journal)) - before == recorded, way
        assert "Traceback" not in err and "Exception ignored" not in err, err
        if way in {"stdout closed", "stdout full"} and text:
            assert "do not repeat it" in err and "next: debug-spyre status" in err
        if way == "stdout without a reader":
            assert "do not repeat it" not in err
        if way.startswith("stderr"):
            assert bool(out) is bool(text)


def test_the_table_in_the_docs_has_every_status():
    told = (ROOT / "docs/exit-statuses.md").read_text()
    assert [int(s) for s in Exit if s is not Exit.SIGNALLED and f"| {int(s)} |" not in told] == []


def test_a_watcher_ends_with_its_reader(world):
    checkout, _ = world
    env = {**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable}
    done = subprocess.Popen(
        ["bash", "-c", '"$0" status --watch | head -1', str(COMMAND)], cwd=checkout, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    first = done.stdout.readline()
    assert first
    for n in range(40):  # it notices at its next change
        subprocess.run([COMMAND, "note", "finding", f"x {n}"], cwd=checkout, env=env, capture_output=True, check=True)
        if done.poll() is not None:
            break
    assert done.wait(timeout=30) == 0
    assert b"Traceback" not in done.stderr.read()
