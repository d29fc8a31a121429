"""Runs on the simulated card: one process at a time, carry-over found, orphans, aborts, hangs, fallbacks as errors."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SIMULATED = Path(__file__).resolve().parents[1] / "simulated_card/backend"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or not SIMULATED.is_dir(),
    reason="torch and the simulated card are needed",
)
CARRY_OVER = """
import pytest, torch
def on(n): return (torch.ones(64, dtype=torch.float16) * n).to("spyre")
def test_other(): assert on(1).cpu().sum() == 64
@pytest.mark.parametrize("n", [1, 2])
def test_exp(n): torch.exp(on(0))
def test_mul(): torch.testing.assert_close((on(2) * on(3)).cpu(), torch.full((64,), 6.0, dtype=torch.float16))
"""


@pytest.fixture
def card(place):
    """The place with the real interpreter, its backend, and kernels that are not compiled."""
    place.env |= {"DEBUG_SPYRE_PYTHON": sys.executable, "SPYRE_SIM_COMPILE": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
    return place


def faults(*names):
    return {"SPYRE_SIM_FAULTS": ",".join(names)}


def test_a_result_that_depends_on_what_ran_earlier_is_found_with_its_spoiler(card):
    card.write("test_it.py", CARRY_OVER)
    done = card.json("run", "--alone", "test_it.py", env=faults("history:op=mul:trigger=exp:times=1"), timeout=250)
    assert [f["nodeid"] for f in done["failures"]] == ["test_it.py::test_mul"]
    assert done["failures"][0]["mismatched"] == 64
    report = card.events("report_made")[0]
    row = report["data"]["rows"][0]
    assert row["alone"] == "passed" and row["minimal"] is True
    assert row["spoilers"] in (["test_it.py::test_exp[1]"], ["test_it.py::test_exp[2]"])


def test_an_orphan_that_keeps_the_card_busy_is_ended_and_the_next_run_works(card):
    card.write("test_it.py", CARRY_OVER)
    busy = card.json("run", "test_it.py", env=faults("orphan:how=spawn:seconds=120:stubborn=1"))
    assert busy["status"] == "passed", busy
    assert card.json("run", "--no-wait", "test_it.py")["status"] == "passed"


def test_a_hard_abort_names_the_test_and_keeps_what_was_seen(card):
    card.write("test_it.py", CARRY_OVER)
    done = card.json("run", "test_it.py", env=faults("abort:op=exp:skip=1"))
    assert done["status"] == "killed" and done["status_of_process"] == 134
    assert [f["nodeid"] for f in done["failures"]] == ["test_it.py::test_exp[2]"]
    assert done["failures"][0]["kind"] == "crash" and done["counts"]["passed"] == 2
    assert card.json("lock")["device"] == "free"


@pytest.mark.slow
def test_a_hang_is_ended_by_stall_and_names_the_test(card):
    card.write("test_it.py", CARRY_OVER)
    done = card.json("run", "test_it.py", "--stall", "15", env=faults("hang:op=exp"))
    assert done["status"] == "stalled" and any("test_it.py::test_exp[1]" in w for w in done["warnings"])


def test_a_fallback_is_evidence_and_an_error_where_asked(card):
    card.write(
        "test_it.py", "import torch\ndef test_sin(): torch.sin(torch.ones(4, dtype=torch.float16).to('spyre'))\n"
    )
    done = card.json("run", "test_it.py", env=faults("falls_back:op=sin"))
    if not done["fallbacks"]:  # sin may be a fallback by itself
        pytest.fail(f"no fallback was seen: {done}")
    assert done["status"] == "passed" and done["fallbacks"][0]["nodeids"] == ["test_it.py::test_sin"]
    assert "sin" in done["fallbacks"][0]["op"]
    strict = card.json("run", "--fallback-as-error", "test_it.py", env=faults("falls_back:op=sin"))
    assert strict["status"] == "failed", strict


def test_a_second_process_past_our_lock_gets_the_cards_own_error_and_is_named_to_us(card):
    card.write("test_it.py", CARRY_OVER)
    script = "import sys, torch; x = torch.ones(2).to('spyre'); print('on', flush=True); sys.stdin.read()"
    foreign = subprocess.Popen([sys.executable, "-c", script], env=card.env, stdin=-1, stdout=-1, text=True)
    try:
        assert foreign.stdout.readline() == "on\n"
        refused = card.call("run", "--no-wait", "test_it.py")
        assert refused.returncode == 75 and f"pid {foreign.pid}" in refused.stderr
    finally:
        foreign.communicate("")
    assert card.json("run", "test_it.py")["status"] == "passed"
