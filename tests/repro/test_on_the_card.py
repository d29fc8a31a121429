"""From a call to the smallest proved script, on the simulated card, the fault's parameters drawn at test time."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.examine.call import Call, Program, Tensor
from debug_spyre.examine.io.trials import WORKER, Trials
from debug_spyre.repro.io.shrinking import Shrinking
from debug_spyre.repro.same_fault import of_answer
from debug_spyre.repro.script import MOST_LINES, Fault, count_lines, script

DRAWS = int(2 * float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")))


def search(session, call):
    checkout, folder = session
    trials = Trials(folder, checkout, runs=40, seconds=280)
    found = of_answer(trials.evaluate([script(Program(call), Fault())])[0])
    assert found is not None, "the fault does not show"
    shrinking = Shrinking(trials, found.fault(), Program(call))
    shrinking.run()
    assert not shrinking.spent
    return shrinking


CALLS = {
    "mean": (Call("aten.mean.dim", (Tensor((8, 640)), (-1,), True)), lambda c: c.args[0].shape[-1]),
    "sum.dim_IntList": (Call("aten.sum.dim_IntList", (Tensor((8, 640)), (-1,), True)), lambda c: c.args[0].shape[-1]),
    "amax": (Call("aten.amax.default", (Tensor((8, 640)), (-1,))), lambda c: c.args[0].shape[-1]),
    "mm": (Call("aten.mm.default", (Tensor((8, 640)), Tensor((640, 6)))), lambda c: c.args[0].shape[-1]),
}


@pytest.mark.parametrize("draw", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, DRAWS))])
def test_the_smallest_failing_size_is_the_fault_s_own_threshold(card, session, draw):
    rng = random.Random(f"partial {draw}")
    op, width, keep = rng.choice(sorted(CALLS)), rng.randrange(48, 272), rng.choice(["half", "width"])
    card(f"partial_reduction:op={op}:width={width}:keep={keep}")
    call, size_of = CALLS[op]
    shrinking = search(session, call)
    assert size_of(shrinking.program.call) == width + 1, (op, width, keep, shrinking.thresholds)
    text = shrinking.text(shrinking.program)
    assert count_lines(text) <= MOST_LINES
    assert any(f"fails from {width + 1} " in words for words in shrinking.thresholds.values()) or width + 1 == 1


@pytest.mark.slow
@pytest.mark.parametrize("draw", range(max(1, DRAWS // 2)))
def test_a_layout_that_is_refused_becomes_a_small_script_with_its_condition(card, session, draw):
    rng = random.Random(f"layout {draw}")
    over = rng.choice([128, 256])
    card(f"layout_shape:op=exp:over={over}")
    shrinking = search(session, Call("aten.exp.default", (Tensor((4, 512)),)))
    assert shrinking.fault.words
    assert shrinking.program.call.args[0].shape == (over + 1,)


@pytest.mark.long
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
    assert subprocess.run([sys.executable, other], cwd=other.parent, capture_output=True).returncode == 3
    text = other.read_text()
    assert re.search(r"torch\.(ones|randn|zeros)\(71,", text), text


def test_a_repro_that_does_not_show_is_kept_as_a_negative_result_and_says_so(card, ds, session):
    card("")
    done = ds("repro", "--op", "aten.mean.dim", "f16[4,200]", "[-1]", "True", "--times", "1", status=1)
    assert "UNVERIFIED" in done.stdout
    assert (session[1].path / "repro_negative.py").is_file()


@pytest.mark.slow
def test_a_script_that_hangs_ends_with_the_card_free(card, ds, session, monkeypatch):
    card("hang:op=mean:seconds=600")
    monkeypatch.setattr("debug_spyre.examine.io.trials.BATCH_SECONDS", 8.0)
    checkout, folder = session
    trials = Trials(folder, checkout, runs=1, seconds=60)
    answer = trials.evaluate([script(Program(CALLS["mean"][0]), Fault())])[0]
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


def test_kept_answers_are_taken_up_on_the_same_backend_only_and_proofs_never(card, session, monkeypatch):
    card("")
    checkout, folder = session
    trials = Trials(folder, checkout, runs=9, seconds=99)
    trials.answers |= {"a": {"exit": 0}, "proof-x-0": {"exit": 0, "run": "r1"}, "control-x": {"exit": 3, "run": "r2"}}
    trials.forget_proofs()
    again = Trials(folder, checkout, runs=9, seconds=99)
    again.load()
    assert again.answers == {"a": {"exit": 0}}
    monkeypatch.setattr("debug_spyre.examine.io.trials.backend_fingerprint", lambda _packages: "another build")
    other = Trials(folder, checkout, runs=9, seconds=99)
    other.load()
    assert other.answers == {}
    trials.store.write_text("[]")
    other.load()


@pytest.mark.long
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


def test_what_ran_before_in_a_process_does_not_reach_an_isolated_script(card, session):
    card("history:op=mul:trigger=exp:times=1")
    checkout, folder = session
    trials = Trials(folder, checkout, runs=4, seconds=280)
    exp = Program(Call("aten.exp.default", (Tensor((3,)),)))
    mul = Program(Call("aten.mul.Tensor", (Tensor((3,)), Tensor((3,)))))
    texts = [script(exp, Fault()), script(mul, Fault())]
    assert [a["exit"] for a in trials.evaluate(texts, isolated=True)] == [3, 3]
    assert [a["exit"] for a in trials.evaluate(texts)] == [3, 0]


BACKEND = """
import os
FORKED = []
os.register_at_fork(after_in_child=lambda: FORKED.append(True))
LOADED = []
def load(): LOADED.append(os.getpid())
"""


@pytest.mark.parametrize("autoload", [None, "0"])
def test_an_isolated_script_loads_the_backends_after_the_fork(tmp_path, autoload):
    """torch-spyre marks a process that is forked after its import as one that may not use the card."""
    (tmp_path / "strict_backend.py").write_text(BACKEND)
    (tmp_path / "strict_backend-1.dist-info").mkdir()
    (tmp_path / "strict_backend-1.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: strict-backend\nVersion: 1\n"
    )
    (tmp_path / "strict_backend-1.dist-info/entry_points.txt").write_text(
        "[torch.backends]\nstrict = strict_backend:load\n"
    )
    text = (
        "import os, sys, torch, strict_backend\n"
        "print(strict_backend.FORKED, strict_backend.LOADED == [os.getpid()], os.environ.get('TORCH_DEVICE_BACKEND_AUTOLOAD'))\n"
    )
    (tmp_path / "q.json").write_text(
        json.dumps({"trials": [{"id": str(n), "text": text} for n in range(2)], "isolated": True})
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)} | (
        {"TORCH_DEVICE_BACKEND_AUTOLOAD": autoload} if autoload else {}
    )
    done = subprocess.run(
        [sys.executable, WORKER, "q.json", "a.jsonl"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    said = [a["said"] for a in answers if "said" in a]
    assert said == [f"[] {autoload is None} {autoload}\n"] * 2


def test_a_script_that_dies_alone_takes_no_other_with_it(card, session):
    card("abort:op=exp:signal=SEGV")
    checkout, folder = session
    trials = Trials(folder, checkout, runs=1, seconds=280)
    calls = [Call(f"aten.{op}.default", (Tensor((3,)),)) for op in ("exp", "sigmoid")]
    died, fine = trials.evaluate([script(Program(c), Fault()) for c in calls], isolated=True)
    assert died["crash"] == "SIGSEGV"
    assert fine["exit"] == 3


CALL_ORDER = """
import torch
def test_it():
    x = torch.rand(2, 70).half().to("spyre")
    torch.mul(x, x)
    y = torch.rand(9, 70).half()
    torch.testing.assert_close(torch.mul(y.to("spyre"), y.to("spyre")).cpu(), y * y)
"""


@pytest.mark.slow
def test_a_fault_of_order_found_by_shadow_becomes_a_script_with_the_earlier_call(card, ds, session):
    card("plan_reuse:op=mul")
    (session[0] / "test_it.py").write_text(CALL_ORDER)
    assert ds("shadow").returncode == 1
    found = ds("repro", "--times", "2", "--json", status=0)
    text = Path(found["script"]).read_text()
    assert found["tier"] == 1 and text.count("torch.ops.aten.mul.Tensor(") == 3, text
    record = json.loads(Path(found["record"]).read_text())
    assert {"text": "fewer than 1 earlier calls", "kept": False} in record["steps"]
    journal = session[1].journal.path.read_text()
    steps = [s["text"] for s in record["steps"]]
    assert all(json.dumps(text, ensure_ascii=False) in journal for text in steps)


TWO = """
import torch
def test_it():
    x = torch.rand(4, 70).half()
    torch.testing.assert_close((x.to("spyre") * 2).cpu(), x * 2)
def test_other():
    x = torch.rand(4, 70).half()
    torch.testing.assert_close(x.to("spyre").exp().cpu(), x.exp(), rtol=1e-2, atol=1e-2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), pytest.param(("--test", "test_it.py::test_other"), marks=pytest.mark.long)])
def test_a_repro_proves_the_fault_of_the_test_that_it_is_asked_for(card, ds, session, words):
    """The session's probe fails otherwise: its words and its source are not what is proved."""
    card("scaled:op=mul:factor=2.0,layout_shape:op=exp:over=64")
    (session[0] / "test_it.py").write_text(TWO)
    ds("run", "--as", "baseline", "test_it.py", status=1)
    ds("shadow", "test_it.py::test_other", status=1)
    done = ds("repro", *words, "--times", "1", "--no-shrink", status=0)
    assert "VERIFIED: 1 of 1" in done.stdout and "test_it.py::test_other is no member of this session" in done.stdout
    text = Path(re.search(r"^script: (.*)$", done.stdout, re.MULTILINE)[1]).read_text()
    assert "exp" in text and "* 2" not in text and "mul" not in text


GRAPH = """
import torch
def test_it():
    x = torch.rand(4, 70).half()
    f = lambda t: torch.exp(t) * 2 + t
    torch.testing.assert_close(torch.compile(f)(x.to("spyre")).cpu(), f(x), rtol=1e-2, atol=1e-2)
"""


@pytest.mark.long
def test_a_fault_of_the_whole_graph_ends_with_the_test_itself_and_says_what_smaller_ones_did(
    card, ds, session, monkeypatch
):
    monkeypatch.setenv("SPYRE_SIM_COMPILE", "1")
    card("mode_only:op=mul:where=graph")
    (session[0] / "test_it.py").write_text(GRAPH)
    ds("run", "--as", "baseline", "test_it.py::test_it", status=1)
    ds("shadow", status=0)
    found = ds("repro", "--times", "2", "--json", status=0)
    assert found["tier"] == 3 and found["verified"], found
    assert [n["tier"] for n in found["negative"]] == [1] and "right by itself" in found["negative"][0]["why"]


FALLBACK = """
import torch
def test_it():
    x = torch.rand(3, 70).half()
    torch.testing.assert_close(torch.rsqrt(x.to("spyre")).cpu(), torch.rsqrt(x), rtol=1e-2, atol=1e-2)
"""


@pytest.mark.long
def test_a_fallback_of_a_passing_test_becomes_a_script_and_can_be_handed_over(card, ds, session):
    from debug_spyre.session.events import SessionOpened
    from debug_spyre.session.io.workspace import new_session_folder

    card("falls_back:op=rsqrt")
    checkout, _ = session
    (checkout / "test_it.py").write_text(FALLBACK)
    (checkout / "uv.lock").write_text(
        '[[package]]\nname = "torch-spyre"\nversion = "0.0.1"\nsource = { git = "https://example.org/x#abcdef1234567" }\n'
    )
    member = {"nodeid": "test_it.py::test_it", "predicate": {"kind": "falls-back", "op": "aten.rsqrt.default"}}
    folder = new_session_folder(checkout / ".claude/skills/debug-spyre/logs", "debug-20261130-110000-falls")
    opened = SessionOpened(
        stem=folder.stem, slug="falls", symptom="s", members=(member,), checkout=str(checkout), probe=member["nodeid"]
    )
    folder.journal.append(opened)
    here = ("--session", folder.stem)
    ds("run", *here, "--as", "baseline", "test_it.py::test_it", status=0)
    ds("shadow", *here, status=0)
    found = ds("repro", *here, "--times", "2", "--json", status=0)
    assert found["verified"] and found["tier"] == 1
    assert "FallbackWarning" in Path(found["script"]).read_text()
    ds("repro", *here, "--cpu", status=0)
    ds("escalate", *here, status=0)
    issue = (folder.path / "escalation/issue.md").read_text()
    assert "aten.rsqrt.default falls back to the CPU" in issue.splitlines()[0]


@pytest.mark.long
def test_an_op_that_kills_the_process_is_named_by_shadow_and_becomes_a_script(card, ds, session):
    card("abort:op=rsqrt:signal=SEGV")
    (session[0] / "test_it.py").write_text(FALLBACK)
    ds("run", "--as", "baseline", "test_it.py::test_it")
    said = ds("shadow", status=1).stdout
    assert re.search(
        r"the process ended \(.*\) while aten.rsqrt.default at test_it.py:5 ran in test_it.py::test_it", said
    ), said
    assert "arguments: f16[3,70]" in said
    found = ds("repro", "--times", "2", "--json", status=0)
    assert found["verified"] and found["tier"] == 1, found
    assert "rsqrt" in Path(found["script"]).read_text()


@pytest.mark.long
def test_an_op_that_hangs_is_proved_as_it_is_and_not_searched_for_hours(card, ds, session, monkeypatch):
    from debug_spyre.repro.io.proof import Prover
    from debug_spyre.repro.io.repro_session import ReproSession

    card("hang:op=mean:seconds=600")
    monkeypatch.setattr("debug_spyre.examine.io.trials.BATCH_SECONDS", 8.0)
    monkeypatch.setattr("debug_spyre.repro.io.proof.SECONDS", 25.0)  # the control must import torch in it
    checkout, folder = session
    prover = Prover(folder, checkout, Trials(folder, checkout, runs=9, seconds=200))
    search = ReproSession(prover, times=1)
    proof = search.from_call(CALLS["mean"][0], None)
    assert proof.is_verified, proof.stamp
    assert search.prover.trials.used == 1 and any("hangs" in note for note in search.notes)


@pytest.mark.long
def test_an_op_of_several_results_named_by_hand_is_judged_by_its_first(card, ds):
    card("falls_back:op=sort+max")
    found = ds("repro", "--op", "aten.max.dim", "f16[4,70]", "-1", "--times", "1", "--no-shrink", "--json")
    assert found["verified"], found
    assert "FallbackWarning" in Path(found["script"]).read_text()
