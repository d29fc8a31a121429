"""From a call to the smallest proved script, on the simulated card, the fault's parameters drawn at test time."""

import os
import random
import re
import subprocess
import sys

import pytest

from debug_spyre.core.repro.call import Call, Tensor
from debug_spyre.core.repro.fingerprint import of_answer
from debug_spyre.core.repro.script import MOST_LINES, Fault, count_lines, script
from debug_spyre.edge.shrinking import Shrinking
from debug_spyre.edge.trials import Trials

pytestmark = [pytest.mark.slow]
DRAWS = int(2 * float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")))


def search(session, call):
    checkout, folder = session
    trials = Trials(folder, checkout, runs=40, seconds=280)
    found = of_answer(trials.evaluate([script(call, Fault())])[0])
    assert found is not None, "the fault does not show"
    shrinking = Shrinking(trials, found.fault(), call)
    shrinking.run()
    assert not shrinking.spent
    return shrinking


CALLS = {
    "mean": (Call("aten.mean.dim", (Tensor((8, 640)), (-1,), True)), lambda c: c.args[0].shape[1]),
    "sum.dim_IntList": (Call("aten.sum.dim_IntList", (Tensor((8, 640)), (-1,), True)), lambda c: c.args[0].shape[1]),
    "amax": (Call("aten.amax.default", (Tensor((8, 640)), (-1,))), lambda c: c.args[0].shape[1]),
    "mm": (Call("aten.mm.default", (Tensor((8, 640)), Tensor((640, 6)))), lambda c: c.args[0].shape[1]),
}


@pytest.mark.parametrize("draw", range(DRAWS))
def test_the_smallest_failing_size_is_the_fault_s_own_threshold(card, session, draw):
    rng = random.Random(f"partial {draw}")
    op, width, keep = rng.choice(sorted(CALLS)), rng.randrange(48, 272), rng.choice(["half", "width"])
    card(f"partial_reduction:op={op}:width={width}:keep={keep}")
    call, size_of = CALLS[op]
    shrinking = search(session, call)
    assert size_of(shrinking.call) == width + 1, (op, width, keep, shrinking.thresholds)
    text = shrinking.text(shrinking.call)
    assert count_lines(text) <= MOST_LINES
    assert any(f"fails from {width + 1} " in words for words in shrinking.thresholds.values()) or width + 1 == 1


@pytest.mark.parametrize("draw", range(max(1, DRAWS // 2)))
def test_a_layout_that_is_refused_becomes_a_small_script_with_its_condition(card, session, draw):
    rng = random.Random(f"layout {draw}")
    over = rng.choice([128, 256])
    card(f"layout_shape:op=exp:over={over}")
    shrinking = search(session, Call("aten.exp.default", (Tensor((4, 512)),)))
    assert shrinking.fault.words
    assert shrinking.call.args[0].shape == (1, over + 1)


def test_a_proved_script_runs_elsewhere_with_torch_and_the_backend_only(card, ds, tmp_path):
    card("partial_reduction:op=mean:width=70")
    found = ds("repro", "--op", "aten.mean.dim", "f16[4,200]", "[-1]", "True", "--times", "2", "--json")
    assert found["verified"], found
    assert found["lines"] <= MOST_LINES
    other = tmp_path / "elsewhere" / "repro.py"
    other.parent.mkdir()
    other.write_bytes(open(found["script"], "rb").read())
    assert subprocess.run([sys.executable, other], cwd=other.parent, capture_output=True).returncode == 0
    os.environ.pop("SPYRE_SIM_FAULTS")
    assert subprocess.run([sys.executable, other], cwd=other.parent, capture_output=True).returncode == 1
    text = other.read_text()
    assert re.search(r"torch\.(ones|randn|zeros)\(1, 71", text), text


def test_a_repro_that_does_not_show_is_kept_as_a_negative_result_and_says_so(card, ds, session):
    card("")
    done = ds("repro", "--op", "aten.mean.dim", "f16[4,200]", "[-1]", "True", "--times", "1", status=1)
    assert "UNVERIFIED" in done.stdout
    assert (session[1].path / "repro_negative.py").is_file()


def test_a_script_that_hangs_ends_with_the_card_free(card, ds, session, monkeypatch):
    card("hang:op=mean:seconds=600")
    monkeypatch.setattr("debug_spyre.edge.trials.BATCH_SECONDS", 8.0)
    checkout, folder = session
    trials = Trials(folder, checkout, runs=1, seconds=60)
    answer = trials.evaluate([script(CALLS["mean"][0], Fault())])[0]
    assert "crash" in answer
    assert "timeout" in answer["crash"]
    card("")
    assert ds("exec", "--", sys.executable, "-c", "print('free')", status=0)


def test_a_caller_that_may_not_wait_gets_79_and_the_same_call_goes_on(card, ds, session):
    card("partial_reduction:op=mean:width=70")
    words = ("repro", "--op", "aten.mean.dim", "f16[4,100]", "[-1]", "True", "--times", "1", "--no-shrink")
    statuses = []
    for _ in range(12):
        done = ds(*words, "--foreground", "0.1")
        statuses.append(done.returncode)
        if done.returncode != 79:
            break
        assert "the same command again" in done.stderr
    assert statuses[:-1]
    assert statuses[-1] == 0, done.stdout + done.stderr
    assert "VERIFIED" in done.stdout


def test_a_fault_that_went_away_is_no_longer_reproduced(card, ds):
    words = ("repro", "--op", "aten.mean.dim", "f16[4,100]", "[-1]", "True", "--times", "1", "--no-shrink")
    card("partial_reduction:op=mean:width=70")
    ds(*words, status=0)
    card("")
    done = ds(*words, status=1)
    assert "UNVERIFIED" in done.stdout


@pytest.mark.parametrize(
    "words",
    [["--op", "nothing"], ["--op", "aten.mean.dim", "f16[4", "[-1]"], ["--times", "0"], ["--shadow", "r99"]],
)
def test_bad_words_are_said_and_nothing_is_run(card, ds, session, words):
    done = ds("repro", *words, status=64)
    assert "next: " in done.stderr
    assert not (session[1].path / "runs").exists()
