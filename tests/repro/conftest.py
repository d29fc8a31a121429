"""A session on the simulated card, and searches in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # drawn_repros
COMMAND = Path(__file__).parents[2] / "scripts/debug-spyre"


@pytest.fixture
def card(tmp_path, monkeypatch):
    """Faults are set in the environment of the test processes only; the tool never reads them."""
    pytest.importorskip("torch")
    device = tmp_path / "device"
    for name, value in {
        "SPYRE_SIM_DEVICE": device,
        "DEBUG_SPYRE_DEVICES": device,
        "DEBUG_SPYRE_LOCK_DIR": tmp_path / "lock",
        "DEBUG_SPYRE_PYTHON": sys.executable,
        "SPYRE_SIM_COMPILE": "0",
    }.items():
        monkeypatch.setenv(name, str(value))
    return lambda faults: monkeypatch.setenv("SPYRE_SIM_FAULTS", faults)


@pytest.fixture
def session(tmp_path, open_session):
    """An open session in an empty checkout."""
    checkout = tmp_path / "checkout"
    return checkout, open_session(checkout)


@pytest.fixture
def ds(session):
    """The command in that checkout; returns (status, stdout, stderr)."""

    def run(*words, status=None):
        done = subprocess.run(
            [COMMAND, *words], cwd=session[0], capture_output=True, text=True, env=os.environ, timeout=280
        )
        assert "Traceback" not in done.stderr, done.stderr
        if status is not None:
            assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout) if "--json" in words and done.stdout else done

    return run
