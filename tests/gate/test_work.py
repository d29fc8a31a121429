"""Work moved to the CPU is a work-around: each way, counted by the plugin and judged by the gate, and honest fixes beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gate.conftest import FIXED, START, good_story

from debug_spyre.gate.close_request import CloseRequest, Retrospective
from debug_spyre.gate.gate import judge
from debug_spyre.tree.changes import Changes
from debug_spyre.triage.results import Results
from debug_spyre.vocabulary.evidence import Work
from debug_spyre.vocabulary.words import GateState

INSIDE = Path(__file__).resolve().parents[2] / "scripts/debug_spyre/inside"
A, B = "t::a", "t::b"
MM = {"aten.mm": 2}


def judged(before, after, *, files=("plugin/a.py",), before_outcome="failed", kind="mismatch", **claim):
    story = good_story()
    story.events = [e for e in story.events if getattr(e, "run", None) not in {"r5", "r6"}]
    told = {"outcome": before_outcome, "kind": kind}
    story.run(
        "work-after", {A: "passed", B: "passed"}, tree=FIXED, work=[Work(A, MM, **after), Work(B, MM)], run_id="r5"
    )
    story.run("work-before", {A: told, B: "failed"}, work=[Work(A, MM, **before), Work(B, MM)], run_id="r6")
    request = CloseRequest(
        tree_digest=START, changes=Changes(files, (), ()), retrospective=Retrospective("a", "b", "c"), **claim
    )
    return judge(story.session, story.evidence, request)


ROUND = (("to the CPU", "plugin/a.py:3", 1), ("to the card", "plugin/a.py:5", 1))


@pytest.mark.parametrize(
    "after",
    [
        pytest.param({"moved": ROUND}, id="there and back"),
        pytest.param({"cpu": (("aten.mean", "plugin/a.py:4", 1),)}, id="an op on the CPU"),
        pytest.param({"moved": ROUND, "cpu": (("aten.mean", "plugin/a.py:4", 1),)}, id="both"),
        pytest.param({"moved": (("to the CPU", "plugin/b.py:9", 2),)}, id="in a helper that was there before"),
    ],
)
def test_more_work_on_the_cpu_shuts_until_a_person_approves_the_patch(after):
    found = judged({}, after)
    assert [r.code for r in found.reasons] == ["work-on-the-card"]
    assert "a work-around" in found.reasons[0].text
    assert found.reasons[0].nodeids == (A,)
    assert judged({}, after, approved="until torch-spyre is fixed").state is GateState.OPEN


def test_the_same_and_less_work_open_and_fewer_device_ops_are_told():
    assert judged({"moved": ROUND}, {"moved": ROUND}).state is GateState.OPEN
    assert judged({"moved": ROUND}, {}).state is GateState.OPEN
    story = good_story()
    story.count(after=[Work(A, {"aten.mm": 1}), Work(B, {})])
    request = CloseRequest(
        tree_digest=START, changes=Changes(("a.py",), (), ()), retrospective=Retrospective("a", "b", "c")
    )
    found = judge(story.session, story.evidence, request)
    assert found.state is GateState.OPEN
    assert next(c for c in found.conditions if c.code == "work-on-the-card").text.endswith("1 device ops, 2 before")


def test_a_test_that_broke_off_before_is_judged_by_the_files_of_the_patch():
    later = {"moved": (("to the CPU", "plugin/later.py:9", 1),)}
    assert judged({}, later, kind="exception").state is GateState.OPEN
    assert judged({}, {"moved": ROUND}, kind="exception").state is GateState.SHUT


def test_a_run_that_counted_nothing_is_no_answer():
    story = good_story()
    story.run("work-after", {A: "passed", B: "passed"}, tree=FIXED)
    request = CloseRequest(
        tree_digest=START, changes=Changes(("a.py",), (), ()), retrospective=Retrospective("a", "b", "c")
    )
    assert judge(story.session, story.evidence, request).state is GateState.UNKNOWN


CODE = {
    "honest": "y = x + x",
    "there and back": "y = (x.cpu() + x.cpu()).to(x.device)",
    "by to": "y = (x.to('cpu') + x.to('cpu')).to(x.device)",
    "on a copy": "z = torch.empty(x.shape); z.copy_(x); y = (z + z).to(x.device)",
    "from the start": "y = torch.ones(2, 2) + torch.ones(2, 2)",
}


@pytest.mark.parametrize("way", CODE)
def test_the_plugin_counts_ops_and_transfers_by_their_place_in_the_code(tmp_path, way):
    (tmp_path / "plugin.py").write_text(f"import torch\ndef run(x):\n    {CODE[way]}\n    return y\n")
    (tmp_path / "test_it.py").write_text(
        "import torch, plugin\n"
        "def test_it():\n    x = torch.ones(2, 2, device='spyre')\n    assert plugin.run(x).cpu().shape == (2, 2)\n"
    )
    results = tmp_path / "results.jsonl"
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "DEBUG_SPYRE"))}
    variables |= {"PYTHONPATH": str(INSIDE), "DEBUG_SPYRE_RESULTS": str(results), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = ["-m", "pytest", "-q", "-p", "debug_spyre_recorder", "-p", "debug_spyre_work", "test_it.py"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    reader = Results("results.jsonl")
    for number, line in enumerate(results.read_text().splitlines(), start=1):
        reader.feed(json.loads(line), number)
    work = reader.evidence().work[0]
    assert work.nodeid == "test_it.py::test_it"
    if way == "honest":
        assert work.device.get("aten.add.Tensor") == 1
        assert work.cpu == work.moved == ()
    else:
        assert "aten.add.Tensor" not in work.device
        assert ("aten.add.Tensor", "plugin.py:3", 1) in work.cpu
        assert bool(work.moved) is (way != "from the start")
