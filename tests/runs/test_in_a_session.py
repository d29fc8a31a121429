"""Runs of a session: attached to its row, its members, its page; a lost one is recorded by whoever looks."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.runs.conftest import alive, state_of, until

TESTS = """
def test_a(): assert 1 == 2
def test_b(): assert 1 == 2
def test_c(): pass
"""


@pytest.fixture
def session(place):
    place.write("test_it.py", TESTS)
    opened = place.call(
        "open", "some-slug", "--symptom", "it fails", "--members", "test_it.py::test_a", "test_it.py::test_b"
    )
    assert opened.returncode == 0, opened.stderr
    return place


def folder(place):
    return next(p for p in place.folders() if p.name.startswith("debug-"))


def test_a_run_belongs_to_the_session_and_its_page_is_rendered(session):
    done = session.json("run", "--as", "baseline", "test_it.py")
    assert done["session"] == folder(session).name and done["hypothesis"] is None
    page = Path(done["log"])
    assert page.is_absolute() and page.suffix == ".html"
    assert "baseline" in page.read_text() and "test_it.py::test_a" in page.read_text()
    text = session.call("run", "--as", "baseline", "test_it.py").stdout
    assert f"log: {page}" in text and "next: debug-spyre" in text


def test_members_run_by_node_id_and_nothing_else(session):
    done = session.json("run", "--as", "baseline", "--members")
    assert done["scope"]["selected"] == ["test_it.py::test_a", "test_it.py::test_b"]
    started = session.events("run_started")[0]
    assert started["members_only"] is True and started["pytest_args"] == ["test_it.py::test_a", "test_it.py::test_b"]


def test_a_run_is_attached_to_the_row_in_progress_or_to_the_one_that_is_named(session):
    session.call("run", "--as", "baseline", "test_it.py")
    for text in ("the op falls back", "the mask is shifted"):
        added = session.call("hypothesis", "add", text, "--test", "debug-spyre run test_it.py")
        assert added.returncode == 0, added.stderr
    assert session.call("hypothesis", "start", "1").returncode == 0
    assert session.json("run", "test_it.py")["hypothesis"] == 1
    assert session.json("exec", "--hypothesis", "2", "--", "true")["hypothesis"] == 2
    refused = session.call("run", "--hypothesis", "7", "test_it.py")
    assert refused.returncode == 64 and "no hypothesis 7" in refused.stderr


def test_a_run_that_goes_on_is_followed_by_its_session(session):
    command, ready = session.hold(seconds=1)
    begun = session.call("exec", "--foreground", "0.1", "--", *command, env={"CLAUDECODE": "1"})
    assert begun.returncode == 79 and f"--session {folder(session).name}" in begun.stdout
    assert session.json("wait")["status"] == "passed"


def test_status_records_a_run_whose_supervisor_was_killed_as_lost(session):
    command, ready = session.hold(seconds=60)
    assert session.call("exec", "--foreground", "0.1", "--", *command).returncode == 79
    until(ready.exists)
    state = state_of(session)
    os.kill(state["supervisor"], signal.SIGKILL)
    until(lambda: not alive(state["supervisor"]))
    found = session.json("status")
    assert found["running"] == [] and session.events("run_finished")[0]["status"] == "lost"
    assert not alive(state["child"])


def test_an_experiment_leaves_its_report_in_the_session(session):
    done = session.json("run", "--repeat", "2", "test_it.py")
    assert done["table"][0].startswith("2 processes, 3 tests")
    assert "deterministic: the same outcome" in session.call("wait", done["run"]).stdout
    report = session.events("report_made")[0]
    assert report["run"] == done["run"] and "deterministic" in report["lines"][-1]
    assert json.loads((folder(session) / report["report"]).read_text())["data"]["runs"] == 2


def test_a_bad_keyword_is_answered_with_the_ids_that_an_earlier_run_collected(session):
    session.call("run", "test_it.py")
    refused = session.call("run", "-k", "test_a or [c]", "test_it.py")
    assert refused.returncode == 64 and "next: debug-spyre run test_it.py::test_a" in refused.stderr


def test_the_kept_tensors_of_a_failed_comparison_are_compared(place):
    pytest.importorskip("torch")
    place.write(
        "test_it.py",
        "import torch\ndef test_rows():\n    want = torch.rand(64, 128) + 1\n    got = want.clone()\n    got[::2] = 0\n"
        "    torch.testing.assert_close(got, want)\n",
    )
    done = place.json("run", "test_it.py", env={"DEBUG_SPYRE_PYTHON": os.sys.executable})
    failure = done["failures"][0]
    assert failure["kind"] == "mismatch" and failure["total"] == 64 * 128 and failure["mismatched"] == 64 * 64
    assert failure["severity"] == "structural"
    assert next(place.logs.rglob("comparisons.json")).stat().st_size > 0
