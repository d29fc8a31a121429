"""doctor --acceptance on the simulated card: every check answers, the report holds nothing private."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.surface.io.acceptance import lines_of, rows_in

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/debug_spyre/inside/debug_spyre_acceptance.py"


@pytest.fixture
def place(tmp_path, monkeypatch):
    checkout, card = tmp_path / "secret-name", tmp_path / "card"
    checkout.mkdir()
    card.touch()
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    (checkout / "pyproject.toml").write_text('[project]\nname = "spyre-inference"\nversion = "0"\n')
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPYRE_", "DEBUG_SPYRE"))}
    env |= {
        "SPYRE_SIM_DEVICE": str(card),
        "DEBUG_SPYRE_DEVICES": str(card),
        "DEBUG_SPYRE_LOCK_DIR": str(tmp_path / "l"),
    }
    return checkout, env | {"DEBUG_SPYRE_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "scripts")}


def run(place, *words):
    checkout, env = place
    command = [sys.executable, "-m", "debug_spyre", "doctor", *words]
    return subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_every_check_answers_and_the_report_is_redacted(place):
    done = run(place, "--acceptance", "--json")
    told = json.loads(done.stdout)
    rows = {row["check"]: row for row in told["checks"]}
    listed = subprocess.run(
        [sys.executable, "-c", "import debug_spyre_acceptance as a; print(*a.CHECKS)"],
        env=place[1] | {"PYTHONPATH": str(SCRIPT.parent)}, capture_output=True, text=True,
    )  # fmt: skip
    assert list(rows) == listed.stdout.split()
    for name in ("who-holds", "second-process", "dispatch-mode", "killed-process", "missing-kernel", "speed"):
        assert rows[name]["answer"] == "held", rows[name]
    assert rows["number-format"]["answer"] == "differs"  # the simulated card keeps IEEE half, as its README says
    assert rows["hang"]["answer"] == "not tried"
    assert done.returncode == 1
    report = Path(told["report"]).read_text(encoding="utf-8")
    assert str(place[0]) not in report and json.loads(report)["checks"]


def test_no_time_is_refused(place):
    done = run(place, "--acceptance", "--minutes", "0")
    assert done.returncode == 64 and "0 minutes is no time" in done.stderr


def test_a_run_that_was_cut_off_gives_what_it_came_to(tmp_path):
    output = tmp_path / "out.txt"
    row = {"check": "speed", "assumed": "quick", "answer": "held", "why": "1 ms", "seconds": 1.0}
    output.write_text(f'noise\n{json.dumps(row)}\n{{"check": "cut o')
    (found,) = rows_in(output)
    assert lines_of([found])[-1] == "1 held, 0 differ, 0 not tried"
