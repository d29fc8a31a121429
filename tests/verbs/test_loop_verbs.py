"""The verbs of the loop on real folders: what they record, refuse and print."""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.gate.conftest import Story, good_story, state_of

from debug_spyre.cli import main
from debug_spyre.session import events as ev
from debug_spyre.session.io.journal import Journal
from debug_spyre.tree.io.snapshot import tree_digest
from debug_spyre.vocabulary.words import HypothesisStatus, Status

SCRIPTS = Path(__file__).parents[2] / "scripts"
FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))


def with_baseline():
    story = Story()
    story.run("full-matrix", {"t::a": "failed", "t::b": "failed", "t::c": "passed"})
    story.run("baseline", {"t::a": "failed", "t::b": "failed"})
    return story


def ran(story_or_place, run="r9"):
    """What a supervisor would append for a run that ended."""
    journal = story_or_place.folder.journal
    journal.append(ev.RunStarted(run=run, verb="run", name=None, argv=("x",), output=f"{run}.txt"))
    (story_or_place.folder.path / f"{run}.txt").write_text("".join(f"line {n}\n" for n in range(1, 31)))
    journal.append(
        ev.RunFinished(run=run, status="failed", valid=True, seconds=1.0, digest=("Mismatched elements: 5 / 10",))
    )


def test_a_row_from_queued_to_its_verdict(place):
    place.tell(with_baseline())
    assert (
        place.run("hypothesis", "add", "the layout is off", "--test", "debug-spyre shadow t::a", "--cost", "9")[0] == 0
    )
    status, out, err = place.run("hypothesis", "start")
    assert status == 0
    assert "next: debug-spyre shadow t::a" in out
    assert "1 rows are few" in err
    assert place.run("hypothesis", "conclude", "1", "confirmed", "yes")[0] == 1
    ran(place)
    status, out, _ = place.run(
        "hypothesis", "conclude", "1", "confirmed", "the stride is lost", "--run", "r9", "--lines", "3-5"
    )
    assert status == 0
    row = place.session.hypotheses[0]
    assert (row.status, row.excerpt, row.runs) == (HypothesisStatus.CONFIRMED, ("line 3", "line 4", "line 5"), ("r9",))
    assert row.command == "debug-spyre shadow t::a"
    assert "next: debug-spyre finish" in out


def test_without_an_excerpt_the_runs_own_digest_is_the_evidence(place):
    place.tell(with_baseline())
    place.run("hypothesis", "add", "h", "--test", "c")
    place.run("hypothesis", "start", "1")
    ran(place)
    place.run("hypothesis", "conclude", "1", "inconclusive", "not clear")
    assert place.session.hypotheses[0].excerpt == ("Mismatched elements: 5 / 10",)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--lines", "1-11", "--run", "r9"), 64, "at most 10"),
        (("--lines", "5-3", "--run", "r9"), 64, "not A-B"),
        (("--lines", "x", "--run", "r9"), 64, "not A-B"),
        (("--lines", "40", "--run", "r9"), 64, "no line 40"),
        (("--excerpt", "\n".join("x" * 11)), 64, "at most 10"),
        (("--run", "r99"), 64, "r99"),
        (("--lines", "1-2", "--excerpt", "x"), 64, "not allowed"),
    ],
)
def test_bad_excerpts_are_refused_and_nothing_is_written(place, words, status, says):
    place.tell(with_baseline())
    place.run("hypothesis", "add", "h", "--test", "c")
    place.run("hypothesis", "start", "1")
    ran(place)
    before = place.folder.journal.path.read_bytes()
    found = place.run("hypothesis", "conclude", "1", "confirmed", "s", *words)
    assert found[0] == status
    assert says in found[2]
    assert place.folder.journal.path.read_bytes() == before


def test_no_row_starts_before_a_baseline_and_the_refusal_names_the_command(place):
    place.tell(Story())
    place.run("hypothesis", "add", "h", "--test", "c")
    status, _, err = place.run("hypothesis", "start", "1")
    assert status == 1
    assert "next: debug-spyre run --as baseline" in err
    assert place.session.in_progress is None


def test_the_starter_set_is_queued_once_and_a_dry_run_queues_nothing(place):
    place.tell(with_baseline())
    status, data = place.json("hypothesis", "seed", "--dry-run")
    assert status == 0
    assert len(data["seeds"]) >= 3
    assert place.session.hypotheses == ()
    place.run("hypothesis", "seed")
    first = place.session.hypotheses
    assert len(first) == len(data["seeds"])
    assert {h.origin for h in first} == {"seed"}
    status, out, _ = place.run("hypothesis", "seed")
    assert "nothing new" in out
    assert place.session.hypotheses == first


def test_when_every_row_is_tested_and_none_explains_the_next_tier_is_asked_for(place):
    story = with_baseline()
    story.row("ruled-out")
    place.tell(story)
    _, out, _ = place.run("hypothesis", "list")
    assert "none explains" in out and "next: debug-spyre shadow" in out
    assert place.json("hypothesis", "list")[1]["nothing_explains"] is True


def test_a_hostile_text_is_kept_as_it_is(place, hostile):
    place.tell(with_baseline())
    status, _, err = place.run("hypothesis", "add", hostile, "--test", hostile)
    assert status == 0, err
    assert place.session.hypotheses[0].text == hostile.strip()


def test_answers_that_only_record_are_short(place):
    story = with_baseline()
    for _ in range(30):
        story.row("ruled-out")
    place.tell(story)
    long = "the layout is off in a long sentence " * 20
    assert len(place.run("hypothesis", "add", long, "--test", "debug-spyre run 'x'" * 30)[1]) <= 600
    assert len(place.run("hypothesis", "seed")[1]) <= 600
    assert len(place.run("hypothesis", "start")[1]) <= 600
    ran(place)
    number = place.session.in_progress.number
    assert len(place.run("hypothesis", "conclude", number, "confirmed", long)[1]) <= 600
    assert len(place.run("hypothesis", "drop", place.session.queued[0].number, long)[1]) <= 600


def test_close_resolved_goes_through_the_gate_and_records_it(place):
    place.tell(good_story())
    status, out, _ = place.run("close", "resolved")
    assert status == 1
    assert "retrospective" in out
    assert place.session.status is Status.INVESTIGATING
    told = ("--cause", "half a row", "--wasted", "row 2", "--signal", "the factor")
    (place.folder.path / "fix.patch").write_bytes(
        b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    )
    status, out, err = place.run("close", "resolved", *told)
    assert status == 0, (out, err)
    assert str(place.folder.html) in out
    session = place.session
    assert session.status is Status.RESOLVED
    assert (session.closing.cause, session.closing.wasted, session.closing.signal) == told[1::2]
    assert session.validation.gate["gate"] == "open"
    assert place.run("close", "resolved", *told, "--session", place.folder.stem)[0] == 1


def test_a_check_says_every_condition_and_writes_nothing(place):
    place.tell(Story())
    before = place.folder.journal.path.read_bytes()
    status, data = place.json("close", "resolved", "--check")
    assert status == 1
    assert len(data["conditions"]) == 20
    assert all(set(r) == {"code", "text", "nodeids", "next"} for r in data["reasons"])
    assert place.folder.journal.path.read_bytes() == before


def test_a_patch_that_edits_a_test_needs_a_persons_reason_which_is_kept(place):
    place.tell(good_story())
    patch = (
        b"diff --git a/tests/t.py b/tests/t.py\n--- a/tests/t.py\n+++ b/tests/t.py\n@@ -1 +1 @@\n-rtol=1e-3\n+rtol=1\n"
    )
    (place.folder.path / "fix.patch").write_bytes(patch)
    told = ("close", "resolved", "--cause", "a", "--wasted", "b", "--signal", "c")
    status, data = place.json(*told)
    assert status == 1
    assert [r["code"] for r in data["reasons"]] == ["no-edited-test"]
    assert place.session.overrides == ()
    status, out, _ = place.run(*told, "--override", "no-edited-test", "the reference was wrong")
    assert status == 0
    assert f"set aside by {place.session.overrides[0].by}: no-edited-test" in out
    assert place.session.overrides[0].reason == "the reference was wrong"


@pytest.mark.parametrize("code", ["members-pass", "nonsense"])
def test_what_cannot_be_set_aside_is_usage(place, code):
    place.tell(good_story())
    status, _, err = place.run("close", "resolved", "--override", code, "because")
    assert status == 64
    assert "can't be set aside" in err


def test_the_patch_stays_only_with_approval(place):
    place.tell(Story())
    (place.checkout / "spyre_inference/ops.py").write_text("changed\n")
    ask = "decide whether the padded width may change"
    status, out, _ = place.run("close", "blocked", "--next", ask)
    assert status == 1
    assert "tree-at-start" in out
    status, out, _ = place.run("close", "blocked", "--next", ask, "--patch-approved", "it helps meanwhile")
    assert status == 0
    assert "escalate" in out
    assert place.session.approval.digest == tree_digest(place.checkout)
    assert place.session.closing.next_action == ask
    assert (place.checkout / "spyre_inference/ops.py").read_text() == "changed\n"


def test_blocked_refuses_vague_words(place):
    place.tell(Story())
    assert place.run("close", "blocked")[0] == 1
    assert place.run("close", "blocked", "--next", "tbd")[0] == 1
    assert place.session.status is Status.INVESTIGATING


def test_reopen_and_its_refusal(place):
    place.tell(Story())
    assert place.run("reopen", "because")[0] == 1
    place.run("close", "blocked", "--next", "a person decides on the width")
    status, out, _ = place.run("reopen", "decided: keep it", "--session", place.folder.stem)
    assert status == 0
    assert str(place.folder.html) in out
    assert place.session.status is Status.INVESTIGATING
    assert place.session.reopened[-1].reason == "decided: keep it"


def test_revert_records_the_patch_and_the_digests(place):
    tree = place.tell(Story())
    before = state_of(place.checkout)
    (place.checkout / "spyre_inference/ops.py").write_text("changed\n")
    patched = tree_digest(place.checkout)
    status, data = place.json("revert")
    assert status == 0
    assert state_of(place.checkout) == before
    done = place.session.reverts[-1]
    assert (done.patch, done.patched, done.digest) == ("fix.patch", patched, tree["digest"])
    assert data["files"] == [{"path": "spyre_inference/ops.py", "was": "edited"}]
    assert place.session.artifacts[-1].path == "fix.patch"
    assert not (place.folder.path / "revert-pending.json").exists()


def test_what_changes_after_a_session_was_closed_is_not_its_experiment(place):
    place.tell(Story())
    assert place.run("close", "blocked", "--next", "a person decides on the width")[0] == 0
    (place.checkout / "spyre_inference/ops.py").write_text("the user's later work\n")
    status, _, err = place.run("revert", "--session", place.folder.stem)
    assert status == 1
    assert "reopen" in err
    assert (place.checkout / "spyre_inference/ops.py").read_text() == "the user's later work\n"
    assert place.run("revert", "--dry-run", "--session", place.folder.stem)[0] == 0


def test_revert_waits_for_a_run_in_flight(place):
    story = Story()
    story.add(ev.RunStarted(run="r1", verb="run", name=None, argv=("x",), output="r1.txt", supervisor=os.getpid()))
    place.tell(story)
    (place.checkout / "spyre_inference/ops.py").write_text("changed\n")
    job = place.folder.path / "runs/r1/job.json"
    job.parent.mkdir(parents=True)
    with job.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # as its supervisor holds it
        for words in (("revert",), ("close", "blocked", "--next", "a person decides on the width")):
            status, _, err = place.run(*words)
            assert status == 1
            assert "debug-spyre wait r1" in err
        assert place.run("revert", "--dry-run")[0] == 0
    assert place.run("revert")[0] == 0, "the supervisor is gone, somebody else may have its pid"


def test_a_killed_revert_is_recorded_by_the_next_one_with_the_tree_that_was_validated(place):
    place.tell(Story())
    (place.checkout / "spyre_inference/ops.py").write_text("changed\n")
    patched = tree_digest(place.checkout)
    from debug_spyre.tree.io.revert import revert

    revert(place.checkout, place.session.tree, place.folder.path)  # and killed before the journal
    assert place.session.reverts == ()
    place.run("revert")
    assert place.session.reverts[-1].patched == patched
    assert place.session.reverts[-1].patch == "fix.patch"


@pytest.mark.parametrize(
    "words", [("validate",), ("revert",), ("close", "resolved"), ("hypothesis", "list"), ("reopen", "x")]
)
def test_no_session_is_usage_and_says_how_to_get_one(words, repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    assert main(list(words)) == 64
    assert "next: debug-spyre investigate" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["add", "seed", "start", "conclude", "drop", "list"])
def test_every_action_has_help(action, capsys):
    assert main(["hypothesis", action, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


# several writers, and the kill ----------------------------------------------------------------------------------------


def verb(place, *words, **kw):
    command = [sys.executable, "-m", "debug_spyre", *words]
    env = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    return subprocess.Popen(
        command, cwd=place.checkout, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **kw
    )


def test_writers_at_once_get_numbers_of_their_own(place):
    place.tell(with_baseline())
    running = [verb(place, "hypothesis", "add", f"row {n}", "--test", "c") for n in range(6)]
    assert [r.wait() for r in running] == [0] * 6, [r.stderr.read() for r in running]
    assert sorted(h.number for h in place.session.hypotheses) == list(range(1, 7))
    assert len({h.text for h in place.session.hypotheses}) == 6


def test_of_two_who_start_a_row_one_is_refused(place):
    story = with_baseline()
    story.row("queued"), story.row("queued")
    place.tell(story)
    running = [verb(place, "hypothesis", "start", str(n)) for n in (1, 2)]
    assert sorted(r.wait() for r in running) == [0, 1]
    assert sum(h.status is HypothesisStatus.IN_PROGRESS for h in place.session.hypotheses) == 1


def test_a_kill_at_any_moment_leaves_a_journal_that_reads_and_a_next_command_that_works(place):
    place.tell(with_baseline())
    chance = random.Random(5)
    acknowledged = 0
    for n in range(8 * FUZZ):
        running = verb(place, "hypothesis", "add", f"row {n}", "--test", "c" * 5000)
        time.sleep(chance.uniform(0.02, 0.6))
        running.send_signal(signal.SIGKILL)
        acknowledged += running.wait() == 0
        session = place.session
        assert len(session.hypotheses) >= acknowledged
        assert [h.number for h in session.hypotheses] == list(range(1, len(session.hypotheses) + 1))
        html = place.folder.html
        assert not html.exists() or html.read_bytes().rstrip().endswith(b"</html>")
    before = len(place.session.hypotheses)
    assert place.run("hypothesis", "add", "the last", "--test", "c")[0] == 0
    assert len(place.session.hypotheses) == before + 1


def test_a_torn_last_line_is_dropped_and_the_next_verb_goes_on(place):
    place.tell(with_baseline())
    with place.folder.journal.path.open("ab") as stream:
        stream.write(b'{"v":1,"seq":99,"at":"2026')
    assert place.run("hypothesis", "add", "h", "--test", "c")[0] == 0
    assert Journal(place.folder.path).read().torn is None
    assert place.session.hypotheses[0].text == "h"


def test_a_row_whose_test_is_to_look_an_op_up_can_be_concluded(place, monkeypatch, tmp_path):
    package = tmp_path / "torch_spyre"
    (package / "ops").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    place.tell(with_baseline())
    place.run("hypothesis", "add", "aten.mm has no kernel", "--test", "debug-spyre op aten.mm")
    place.run("hypothesis", "start", "1")
    assert "aten.mm" in place.run("op", "aten.mm", "--package", package)[1]
    status, out, err = place.run("hypothesis", "conclude", "1", "ruled-out", "it has one")
    assert status == 0, err
    assert place.session.reports[-1].verb == "op" and place.session.reports[-1].hypothesis == 1
    before = place.folder.journal.path.read_bytes()
    place.run("op", "aten.mm", "--package", package)
    assert place.folder.journal.path.read_bytes() == before, "no row is in progress: nothing to keep"


def test_the_list_of_rows_shows_them_whole_and_status_a_command_that_can_be_pasted(place):
    long = (
        "a view whose stride the backend does not honour is read in the order of its storage, row by row, until the end"
    )
    place.tell(with_baseline())
    for text in (long, "b", "c"):
        place.run("hypothesis", "add", text, "--test", "debug-spyre shadow 't::a[x (1)]'")
    assert long in place.run("hypothesis", "list")[1]
    out = place.run("status")[1]
    assert "\nnext: debug-spyre hypothesis start 1\n" in out
    ran(place)  # a run that tests no row is said, and hides nothing
    out = place.run("status")[1]
    assert "belongs to no hypothesis" in out and "\nnext: debug-spyre hypothesis start 1\n" in out


def test_rows_that_came_later_are_not_the_only_ones(place):
    place.tell(with_baseline())
    assert "the only one" in place.run("hypothesis", "add", "a", "--test", "c")[1]
    place.run("hypothesis", "drop", "1", "no longer plausible")
    assert "the only one" not in place.run("hypothesis", "add", "b", "--test", "c")[1]


def test_the_hand_over_that_a_blocked_session_proposes_names_the_session(place):
    place.tell(with_baseline())
    status, out, _ = place.run("close", "blocked", "--next", "torch-spyre team: a kernel for aten.mm")
    assert status == 0
    assert f"next: debug-spyre escalate --session {place.folder.stem}" in out


def test_several_rows_by_one_earlier_run_and_several_dropped_in_one_call(ds):
    ds("open", "x", "--members", "tests/test_a.py::test_b")
    ds("run", "--as", "baseline", "tests/test_a.py::test_b")
    for n in range(5):
        ds("hypothesis", "add", f"idea {n}", "--test", "debug-spyre shadow")
    done = ds("hypothesis", "conclude", "1", "2", "ruled-out", "it passes alone", "--run", "r1")
    assert "row 1 ruled-out (r1)" in done.stdout and "row 2 ruled-out" in done.stdout
    assert "row 3 and row 4 dropped" in ds("hypothesis", "drop", "3", "4", "--reason", "the CPU does the same").stdout
    rows = {h["number"]: h["status"] for h in ds.json("hypothesis", "list")["hypotheses"]}
    assert rows == {1: "ruled-out", 2: "ruled-out", 3: "dropped", 4: "dropped", 5: "queued"}


def test_start_run_and_conclude_in_one_call_with_the_meaning_said_beforehand(ds):
    ds("open", "x", "--members", "tests/test_a.py::test_b")
    ds("run", "--as", "baseline", "tests/test_a.py::test_b")
    ds("hypothesis", "add", "it fails alone", "--test", "debug-spyre run tests/test_a.py::test_b")
    refused = ds("run", "--hypothesis", "1", "--if-passes", "perhaps", "x", "tests/test_a.py::test_b", status=64)
    assert "no verdict" in refused.stderr
    told = ("--if-passes", "ruled-out", "it passes alone", "--if-fails", "confirmed", "it fails alone")
    said = ds("run", "--hypothesis", "1", *told, "tests/test_a.py::test_b").stdout
    assert "hypothesis 1 is ruled-out: it passes alone" in said and "hypothesis conclude" not in said
    (row,) = ds.json("hypothesis", "list")["hypotheses"]
    assert (row["status"], row["outcome"], row["runs"]) == ("ruled-out", "it passes alone", ["r2"])


def test_finish_without_a_change_and_without_a_proved_cause_says_what_is_missing_and_keeps_the_texts(ds):
    ds("open", "x", "--members", "tests/test_a.py::test_b")
    done = ds("finish", "--wasted", "row 3", status=1)
    assert "nothing was changed" in done.stdout and done.stdout.rstrip().splitlines()[-1].startswith("next: ")
    folder = next(iter((ds.cwd / ".claude/skills/debug-spyre/logs").glob("debug-*-x")))
    assert json.loads((folder / "finish.json").read_text()) == {"wasted": "row 3"}
    data = json.loads(ds("finish", "--json", status=1).stdout)
    assert (data["stopped_at"], data["status"], data["steps"]) == ("validate", "investigating", [])


def test_the_texts_that_are_missing_are_asked_for_by_name():
    from pathlib import Path

    from debug_spyre.session.io.workspace import Folder
    from debug_spyre.verbs.finishing import _missing_texts

    said = _missing_texts(Folder(Path("debug-x")), {"wasted": "row 3", "cause": None})
    assert said == "debug-spyre finish --session debug-x --cause TEXT --signal TEXT"
    assert _missing_texts(Folder(Path("debug-x")), dict.fromkeys(("wasted", "cause", "signal"), "x")) is None


def test_finish_asks_for_the_texts_before_it_spends_minutes_on_runs(ds):
    ds("open", "x", "--members", "tests/test_a.py::test_b")
    (ds.cwd / "changed.py").write_text("x = 1\n")
    data = json.loads(ds("finish", "--cause", "a", "--json", status=1).stdout)
    assert (data["stopped_at"], data["steps"]) == ("retrospective", [])
    assert data["next"].endswith("--wasted TEXT --signal TEXT")
