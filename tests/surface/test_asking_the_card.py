"""`limits --probe` and `doctor --probe` as a person types them: under the lock, kept, continued, and said when the card is busy."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.card.lock import lock_path

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "tests/simulated_card/backend"


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout with space"
    (folder / "spyre_inference").mkdir(parents=True)
    (folder / "spyre_inference/attn.py").write_text("KV_LENGTH_ALIGNMENT = 256\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.fixture
def command(checkout, tmp_path, monkeypatch):
    device = tmp_path / "device"
    device.touch()
    monkeypatch.setenv("SPYRE_SIM_DEVICE", str(device))
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", str(device))

    def run(*words, limits="none"):
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'scripts'}{os.pathsep}{BACKEND}",
            "DEBUG_SPYRE_PYTHON": sys.executable,
            "SPYRE_SIM_LIMITS": limits,
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        }
        return subprocess.run(
            [sys.executable, "-m", "debug_spyre", *words], cwd=checkout, env=environment, capture_output=True, text=True
        )

    return run


def test_answers_come_from_the_card_are_kept_and_a_call_goes_on_where_time_ran_out(command, checkout):
    words = ("limits", "--probe", "kv-alignment", "fp32-matmul", "matmul-out-1", "memory-span", "--json")
    first = command(*words, "--foreground", "0", limits="fp32_matmul")
    assert first.returncode == 79, first.stderr
    told = json.loads(first.stdout)
    assert told["not_asked"] == ["matmul-out-1", "kv-alignment"]
    second = command(*words, limits="fp32_matmul")
    assert second.returncode == 0, second.stderr
    answers = {row["id"]: row["probed"] for row in json.loads(second.stdout)["limits"]}
    assert answers["fp32-matmul"]["answer"] == "holds"
    assert answers["matmul-out-1"]["answer"] == "lifted"
    assert answers["kv-alignment"]["answer"] == "holds"
    assert "spyre_inference/attn.py:1" in answers["kv-alignment"]["why"]
    assert answers["memory-span"] is None
    assert "fp32-matmul" not in second.stderr  # asked before, so not again
    journal = (checkout / ".claude/skills/debug-spyre/logs/limits/journal.jsonl").read_text()
    assert journal.count('"run_finished"') == 2
    shown = command("limits", "fp32-matmul").stdout
    assert "probed" in shown and "holds" in shown


def test_a_busy_card_is_said_and_nothing_is_guessed(command, tmp_path, monkeypatch):
    monkeypatch.setattr("debug_spyre.surface.io.limits_probe.WAIT_SECONDS", 0.0)
    device = os.environ["SPYRE_SIM_DEVICE"]
    with lock_path(device).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        from debug_spyre.surface.io import limits_probe
        from debug_spyre.vocabulary.errors import CardBusyError

        monkeypatch.setenv("DEBUG_SPYRE_LOGS", str(tmp_path / "logs"))
        with pytest.raises(CardBusyError):
            limits_probe.on_card(tmp_path, "alive")
        assert not (tmp_path / "logs/limits.json").exists()


def test_the_doctor_puts_a_tensor_on_the_card_only_when_told(command, checkout):
    quiet = command("doctor", "--json")
    assert not any(c["name"] == "probe" for c in json.loads(quiet.stdout)["checks"])
    asked = json.loads(command("doctor", "--probe", "--json").stdout)
    probe = next(c for c in asked["checks"] if c["name"] == "probe")
    assert probe["state"] == "ok", probe


def test_an_unknown_limitation_is_said_with_those_there_are(command):
    done = command("limits", "no-such")
    assert done.returncode == 64
    assert "transpose-contiguous" in done.stderr


def test_the_short_list_fits_a_screen(command):
    done = command("limits")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) < 40
    assert len(done.stdout) < 4000
