"""The whole loop with real runs: a small repository of plain tests, real pytest, supervisors, lock, git."""

import json
import os
import time
from pathlib import Path

import pytest
from tests.gate.conftest import git, state_of

from debug_spyre.cli import main
from debug_spyre.session.io.workspace import find_session, load_session, logs_folder
from debug_spyre.tree.io.snapshot import tree_digest
from debug_spyre.vocabulary.words import Status

OPS = """\
import os
def scale(x):
    return x + 1
def other(x):
    return x
"""
FIXED = OPS.replace("x + 1", "x * 2")
TESTS = """\
import pytest
from spyre_inference import ops
@pytest.mark.parametrize("width", [4, 256])
def test_scale(width):
    assert ops.scale(width) == 2 * width
@pytest.mark.parametrize("mode", ["eager(x=1,y)", "compiled"])
def test_other(mode):
    assert ops.other(3) == 3
def test_skipped():
    pytest.skip("always")
"""
TOLD = (
    "--cause",
    "adds instead of multiplying",
    "--wasted",
    "row 2",
    "--signal",
    "the difference grows with the width",
)


@pytest.fixture
def loop(tmp_path, monkeypatch, capsys, interpreter):
    """A checkout with the user's own uncommitted work; verbs are called in this process, runs are real."""

    class Loop:
        checkout = tmp_path / "plugin"
        backend = interpreter[1]

        def write(self, name, text):
            place = self.checkout / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

        def run(self, *words, status=0):
            capsys.readouterr()
            found = main([str(w) for w in words])
            seen = capsys.readouterr()
            assert found == status, (words, found, seen.out, seen.err)
            return seen.out + seen.err

        def json(self, *words, status=0):
            capsys.readouterr()
            found = main([*(str(w) for w in words), "--json"])
            seen = capsys.readouterr()
            assert status in {found, None}, (words, found, seen.out, seen.err)
            return json.loads(seen.out)

        @property
        def session(self):
            return load_session(find_session(logs_folder(self.checkout), stem=self.stem))

        stem = None

        def opened(self, slug="scale-wrong", matrix=("tests",)):
            """Up to the baseline: triage, open, the members alone."""
            self.run("triage", *matrix)
            self.stem = self.json("open", slug, "--cluster", "c1")["session"]
            self.run("run", "--as", "baseline", "--members", status=1)
            return self.session

        def explained(self):
            """One row, confirmed."""
            self.run("hypothesis", "add", "scale adds instead of multiplying", "--test", "debug-spyre run tests")
            self.run("hypothesis", "start", "1")
            self.run("run", "tests/test_ops.py::test_scale[4]", status=1)
            self.run("hypothesis", "conclude", "1", "confirmed", "4 gives 5")

        def codes(self):
            data = self.json("close", "resolved", *TOLD, "--check", status=None)
            return {r["code"] for r in data["reasons"]}

    loop = Loop()
    loop.write("spyre_inference/__init__.py", "")
    loop.write("spyre_inference/ops.py", OPS)
    loop.write("tests/test_ops.py", TESTS)
    loop.write("tests/conftest.py", "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parents[1]))\n")
    loop.write("pyproject.toml", "[tool.pytest.ini_options]\nmarkers = ['upstream']\n")
    loop.write("README.md", "read me\n")
    git(loop.checkout, "init", "-q", "-b", "main")
    git(loop.checkout, "add", "-A")
    git(loop.checkout, "commit", "-q", "-m", "start")
    loop.write("README.md", "read me\nmy own unfinished words\n")
    loop.write("spyre_inference/mine.py", "mine = 1\n")
    git(loop.checkout, "add", "spyre_inference/mine.py")
    loop.write("spyre_inference/mine.py", "mine = 2\n")
    monkeypatch.chdir(loop.checkout)
    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", str(interpreter[0]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return loop


def test_from_a_dirty_tree_to_resolved_and_the_user_misses_nothing(loop):
    before, start = state_of(loop.checkout), tree_digest(loop.checkout)
    loop.opened()
    assert loop.session.tree["digest"] == start
    loop.explained()
    loop.write("spyre_inference/ops.py", FIXED)
    patched = tree_digest(loop.checkout)
    data = loop.json("validate")
    assert [row["post"] for row in data["rows"]] == ["passed", "passed"]
    assert all(row["pre"].startswith("failed") for row in data["rows"])
    assert (data["matrix"]["new"], data["matrix"]["scope_equal"]) == ([], True)
    assert {r["code"] for r in data["reasons"]} == {"tree-at-start", "retrospective", "work-on-the-card"}
    loop.run("revert")
    assert state_of(loop.checkout) == before
    assert tree_digest(loop.checkout) == start
    assert loop.session.reverts[-1].patched == patched
    out = loop.run("close", "resolved", *TOLD)
    assert "log: " + str(logs_folder(loop.checkout)) in out
    assert loop.session.status is Status.RESOLVED
    assert {r.name for r in loop.session.runs.values()} >= {"full-matrix", "baseline", "post-fix", "post-fix-matrix"}
    assert state_of(loop.checkout) == before


def test_a_fix_that_breaks_another_test_stays_out_and_becomes_a_row(loop):
    loop.opened()
    loop.explained()
    loop.write("spyre_inference/ops.py", FIXED.replace("return x\n", "return x + 1\n"))
    data = loop.json("validate", status=1)
    assert len(data["matrix"]["new"]) == 2
    assert data["regressions"] == 1
    row = loop.session.hypotheses[-1]
    assert row.origin == "regression"
    assert "test_other" in row.text
    assert [r.name for r in loop.session.runs.values()].count("post-fix-matrix") == 2  # once more: is it a flake?
    assert {"no-regression", "rows-concluded"} <= loop.codes()
    assert loop.session.status is Status.INVESTIGATING
    assert loop.json("validate", status=1)["regressions"] == 0  # the row is not queued twice

    loop.write("spyre_inference/ops.py", FIXED)
    loop.json("validate")
    loop.run("hypothesis", "drop", str(row.number), "the second fix leaves it alone")
    loop.run("revert")
    loop.run("close", "resolved", *TOLD)


def test_a_flake_of_both_trees_does_not_shut_the_gate_and_one_of_the_fix_alone_does(loop):
    flaky = (
        "\ndef test_flaky(request):\n"
        "    import pathlib\n"
        "    place = pathlib.Path(request.config.rootpath).parent / 'flips'\n"
        "    turns = place.read_text().split() if place.exists() else []\n"
        "    now, rest = (turns[0], turns[1:]) if turns else ('pass', [])\n"
        "    place.write_text(' '.join(rest))\n"
        "    assert now == 'pass'\n"
    )
    loop.write("tests/test_ops.py", TESTS + flaky)
    turns = loop.checkout.parent / "flips"
    loop.opened()
    loop.explained()
    loop.write("spyre_inference/ops.py", FIXED)
    turns.write_text("fail pass")
    data = loop.json("validate", status=1)
    assert data["matrix"]["unsteady"] == ["tests/test_ops.py::test_flaky"]
    assert data["regressions"] == 1
    assert "no-regression" in loop.codes()
    loop.run("revert")
    turns.write_text("fail")
    loop.run("run", "--as", "full-matrix", "tests", status=1)
    assert "no-regression" not in loop.codes()


def test_a_member_that_fails_only_behind_another_test_is_judged_in_the_matrix(loop):
    loop.write("tests/test_before.py", "from spyre_inference import ops\ndef test_warms_up():\n    ops.warm = True\n")
    warm = "def scale(x):\n    return x + 1 if globals().get('warm') else x * 2\n"
    loop.write("spyre_inference/ops.py", OPS.replace("def scale(x):\n    return x + 1\n", warm))
    loop.run("triage", "tests")
    loop.stem = loop.json("open", "scale-after-warm-up", "--cluster", "c1")["session"]
    loop.run("run", "--as", "baseline", "--members", status=0)  # they pass alone
    loop.run("hypothesis", "add", "a warm-up changes the sum", "--test", "debug-spyre run tests")
    loop.run("hypothesis", "start")
    loop.run("run", "tests", status=1)
    loop.run("hypothesis", "conclude", "1", "confirmed", "only behind the warm-up")
    loop.write("spyre_inference/ops.py", FIXED)
    data = loop.json("validate")
    assert all("judged in the matrix" in row["note"] for row in data["rows"])
    assert all(row["pre"].startswith("failed") and row["post"] == "passed" for row in data["rows"])
    loop.run("revert")
    loop.run("close", "resolved", *TOLD)


def test_a_validation_that_is_left_goes_on_where_it_was(loop, monkeypatch):
    loop.opened()
    loop.explained()
    loop.write("tests/conftest.py", (loop.checkout / "tests/conftest.py").read_text())
    loop.write("spyre_inference/ops.py", FIXED)
    answers = []
    for _ in range(60):
        status = main(["validate", "--foreground", "0.3"])
        answers.append(status)
        if status != 79:
            break
    assert answers[0] == 79
    assert answers[-1] == 0
    names = [r.name for r in loop.session.runs.values()]
    assert (names.count("post-fix"), names.count("post-fix-matrix")) == (1, 1)
    loop.json("validate")  # nothing is left to run, so nothing runs
    assert len(loop.session.runs) == len(names)


def test_a_torch_spyre_that_changes_is_seen_unless_it_was_declared(loop):
    loop.opened()
    loop.explained()
    loop.write("spyre_inference/ops.py", FIXED)
    (loop.backend / "rebuilt.py").write_text("x = 1\n")
    try:
        loop.json("validate")
        assert "one-backend" in loop.codes()
        loop.run("note", "finding", "rebuilt with a patched reduction", "--expect-change", "torch-spyre")
        assert "one-backend" in loop.codes()  # declared after the runs: too late
        loop.json("validate", "--again")
        assert "one-backend" not in loop.codes()
    finally:
        (loop.backend / "rebuilt.py").unlink()


def test_a_pass_with_a_new_fallback_is_flagged(loop):
    loop.opened()
    loop.explained()
    falling = "def scale(x):\n    from torch_spyre.ops.fallbacks import fall_back\n    fall_back('aten.mul')\n    return x * 2\n"
    loop.write("spyre_inference/ops.py", OPS.replace("def scale(x):\n    return x + 1\n", falling))
    loop.json("validate")
    loop.run("revert")
    assert loop.codes() == {"no-new-fallback", "work-on-the-card"}
    loop.run("close", "resolved", *TOLD, "--override", "no-new-fallback", "accepted until the kernel is there")
    assert loop.session.overrides[0].code == "no-new-fallback"


def test_an_edited_test_is_flagged_and_a_skipped_member_is_no_pass(loop):
    loop.opened()
    loop.explained()
    loop.write("tests/test_ops.py", TESTS.replace("2 * width", "width + 1"))
    loop.json("validate")
    loop.run("revert")
    assert loop.codes() == {"no-edited-test", "work-on-the-card"}
    loop.write(
        "tests/test_ops.py", TESTS.replace("    assert ops.scale", "    pytest.skip('later')\n    assert ops.scale")
    )
    loop.json("validate", status=1)
    assert {"members-pass", "no-edited-test"} <= loop.codes()


def test_nothing_to_validate_and_nothing_measured_are_refused(loop):
    loop.run("open", "scale-wrong", "--members", "tests/test_ops.py::test_scale[4]")
    loop.stem = find_session(logs_folder(loop.checkout)).stem
    out = loop.run("validate", status=1)
    assert "run --as baseline --members" in out
    assert "run --as full-matrix" in out
    loop.run("run", "--as", "baseline", "--members", status=1)
    loop.run("run", "--as", "full-matrix", "tests", status=1)
    assert "nothing to validate" in loop.run("validate", status=1)
    loop.write("spyre_inference/ops.py", FIXED)
    assert "2 files" not in loop.run("validate", "--members-only", status=1)
    loop.run("validate")


def test_a_supervisor_that_is_killed_costs_a_run_and_no_more(loop):
    loop.opened()
    loop.explained()
    loop.write("tests/conftest.py", (loop.checkout / "tests/conftest.py").read_text() + "import time\ntime.sleep(1)\n")
    loop.write("spyre_inference/ops.py", FIXED)
    assert main(["validate", "--foreground", "0.5"]) == 79
    for _ in range(600):  # on a busy machine the run begins after the verb has answered
        run = next((r for r in loop.session.runs.values() if r.name == "post-fix"), None)
        if run is not None:
            break
        time.sleep(0.1)
    os.kill(run.supervisor, 9)
    for _ in range(10):
        status = main(["validate"])
        if status == 0:
            break
    assert status == 0
    assert loop.session.validation is not None
    assert Path(logs_folder(loop.checkout), loop.stem, "journal.jsonl").exists()
