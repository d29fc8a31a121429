"""One investigation of a small matrix with several causes at once, on the simulated card; all tests here read its dossier."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
TESTS = """
import pytest, torch

def card(*shape): return torch.randn(*shape).half().to("spyre")

@pytest.mark.parametrize("width", [64, 100, 256, 320])
def test_mean(width):
    x = card(4, width)
    torch.testing.assert_close(x.mean(-1).cpu(), x.cpu().mean(-1), atol=1e-2, rtol=1e-2)

def test_offset():
    x = card(8, 64)
    torch.testing.assert_close((x[2:] + 1).cpu(), x.cpu()[2:] + 1)

@pytest.mark.xfail(strict=True, reason="was wrong once")
def test_marked():
    x = card(4, 64)
    torch.testing.assert_close((x * 2).cpu(), x.cpu() * 2)

def test_needs_the_card():
    x = card(4, 64)
    assert x.device.type == "spyre"
    assert (x * 2).cpu().shape == (4, 63)

def test_fine():
    assert card(4, 64).shape == (4, 64)
"""
FAULTS = "partial_reduction:op=mean:width=131,dropped_offset:op=add"


def environment(base):
    own = {k: v for k, v in os.environ.items() if not k.startswith(("SPYRE_", "DEBUG_SPYRE", "PYTEST_", "CLAUDE"))}
    (base / "card").touch()
    return own | {
        "SPYRE_SIM_DEVICE": str(base / "card"), "DEBUG_SPYRE_DEVICES": str(base / "card"), "SPYRE_SIM_COMPILE": "0",
        "DEBUG_SPYRE_LOCK_DIR": str(base / "locks"), "HOME": str(base), "GIT_CONFIG_GLOBAL": "/dev/null",
        "DEBUG_SPYRE_PYTHON": sys.executable, "PYTHONPATH": str(SCRIPTS), "SPYRE_SIM_FAULTS": FAULTS,
    }  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    base = tmp_path_factory.mktemp("matrix")
    root = base / "plugin"
    (root / "tests").mkdir(parents=True)
    (root / "tests/test_it.py").write_text(textwrap.dedent(TESTS), encoding="utf-8")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@e", "-C", str(root)]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "start"], check=True)
    return root, environment(base)


def call(checkout, *words):
    root, env = checkout
    return subprocess.run(
        [sys.executable, "-m", "debug_spyre", *words], cwd=root, env=env, capture_output=True, text=True, timeout=900
    )


@pytest.fixture(scope="module")
def found(checkout):
    done = call(checkout, "investigate", "tests", "--json")
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


def by_manner(found):
    return {(c["op"], c["manner"]): c for c in found["causes"]}


@pytest.mark.timeout(900)
def test_every_cause_is_told_from_the_others(found):
    assert found["matrix"]["counts"]["failed"] == 5
    causes = by_manner(found)
    assert set(causes) >= {("aten.mean.dim", "wrong-values"), ("aten.add.Tensor", "wrong-values"), (None, "stale-mark")}
    assert {t.rpartition("::")[2] for t in causes["aten.mean.dim", "wrong-values"]["tests"]} == {
        "test_mean[256]",
        "test_mean[320]",
    }
    assert {t.rpartition("::")[2] for t in causes[None, "stale-mark"]["tests"]} == {"test_marked"}


def test_conditions_stand_to_the_element_and_explain_the_tests(found):
    mean = by_manner(found)["aten.mean.dim", "wrong-values"]
    assert mean["claim"] == "cause" and mean["control"] == "passes" and mean["repro"]["proved"] == "3/3"
    terms = {(t["feature"], t["relation"]): t["value"] for t in mean["condition"]["terms"]}
    assert terms["size(0,-1)", ">"] == 131
    assert mean["condition"]["exact"] and mean["explains"]["contradictions"] == 0
    assert mean["explains"]["tests"] == mean["explains"]["of"] == 2
    add = by_manner(found)["aten.add.Tensor", "wrong-values"]
    assert [t["feature"] for t in add["condition"]["terms"]] in [["offset(0)"], ["offset(any)"]]
    assert any(w["text"] == "contiguous inputs" and w["measured"] == "right" for w in add["ways_round"])


def test_a_control_that_stops_for_another_reason_blames_nobody(found):
    needs = next(c for c in found["causes"] if c["tests"][0].endswith("test_needs_the_card"))
    assert needs["control"] == "stopped-elsewhere" and needs["claim"] == "located"


def test_each_cause_has_a_session_with_baseline_queue_and_verdicts_by_runs(found, checkout):
    root, _ = checkout
    mean = by_manner(found)["aten.mean.dim", "wrong-values"]
    folder = root / ".claude/skills/debug-spyre/logs" / mean["session"]
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    names = [e["name"] for e in events if e["kind"] == "run_started"]
    assert names.count("baseline") == 2 and "full-matrix" in names and "shadow-matrix" in names
    first_start = next(n for n, e in enumerate(events) if e["kind"] == "hypothesis_started")
    assert any(e["kind"] == "run_started" and e["name"] == "baseline" for e in events[:first_start])
    verdicts = [e for e in events if e["kind"] == "hypothesis_concluded"]
    assert verdicts and all(e["runs"] for e in verdicts)
    assert json.loads((folder / "dossier.json").read_text())["causes"][0]["id"] == mean["id"]
    assert folder.with_suffix(".html").is_file()


def test_the_dossier_is_told_again_without_a_run_and_has_one_next(found, checkout):
    done = call(checkout, "investigate", "--show")
    assert done.returncode == 1 and done.stdout.count("next:") == 1
    assert all(c["sentence"] in done.stdout for c in found["causes"])
    assert done.stdout.rstrip().splitlines()[-1].startswith("next: ")
