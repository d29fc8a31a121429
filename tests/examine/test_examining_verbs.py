"""shadow, sweep and ladder as commands: under the lock, kept in the journal, resumable, with their exit statuses."""

import json
import subprocess
import sys

import pytest

from debug_spyre.cli import main

TEST = """
import torch

def test_mean():
    x = torch.ones(4, 256).half()
    assert x.to("spyre").mean(-1).cpu().sum() == 4

def test_right():
    assert (torch.ones(4).half().to("spyre") + 1).cpu().sum() == 8
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one test that a fault of the card breaks."""
    folder = tmp_path / "check out"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests/test_op.py").write_text(TEST, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    device = tmp_path / "card"
    device.touch()
    for name in ("SPYRE_SIM_DEVICE", "DEBUG_SPYRE_DEVICES"):
        monkeypatch.setenv(name, str(device))
    monkeypatch.setenv("SPYRE_SIM_COMPILE", "0")
    monkeypatch.setenv("SPYRE_SIM_FAULTS", "partial_reduction:op=mean:width=100")
    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", sys.executable)
    monkeypatch.setenv("DEBUG_SPYRE_LOGS", str(tmp_path / "logs"))
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD", raising=False)
    monkeypatch.chdir(folder)
    return folder


def answer(capsys, *words):
    status = main([*words, "--json"])
    printed = capsys.readouterr()
    return status, json.loads(printed.out) if printed.out else printed.err


def journal(checkout):
    newest = sorted((checkout.parent / "logs/triage").iterdir())[-1]
    return newest, [json.loads(line) for line in (newest / "journal.jsonl").read_text(encoding="utf-8").splitlines()]


def test_shadow_then_sweep_of_its_suspect_that_is_cut_off_and_goes_on(checkout, capsys):
    status, data = answer(capsys, "shadow", "tests/test_op.py")
    assert (status, data["suspect"]["op"]) == (1, "aten.mean.dim"), data
    assert data["lines"][0].startswith("the failure shows op by op: 1 of 2")
    folder, events = journal(checkout)
    assert [e["kind"] for e in events if e["kind"] == "report_made"] == ["report_made"]
    assert (folder / events[-1]["report"]).is_file()
    place = ["--session", folder.name]
    status, short = answer(capsys, "sweep", "--suspect", data["run"], "--seconds", "0.01", *place)
    assert (status, short["complete"]) == (79, False)
    status, data = answer(capsys, "sweep", "--suspect", data["run"], *place)
    assert (status, data["complete"], data["wrong"]) == (1, True, True)
    terms = {t["feature"]: (t["relation"], t["value"]) for t in data["condition"]["terms"]}
    assert terms["size(0,-1)"] == (">", 100) and data["condition"]["exact"]
    assert "longer than 100" in data["text"] and data["wrong_values"] == "only the first half of the elements counts"


def test_a_sweep_of_a_healthy_op_finds_nothing(checkout, capsys):
    status, data = answer(capsys, "sweep", "aten.mul.Tensor", "f16[4,100]", "f16[4,100]")
    assert (status, data["wrong"], data["condition"]) == (0, False, None)


def test_ladder_tells_an_ops_own_fault_from_one_of_the_compiled_graph(checkout, capsys):
    status, data = answer(capsys, "ladder", "tests/test_op.py::test_mean", "--rungs", "op-by-op,eager,aot_eager")
    assert status == 1
    assert [s["rung"] for s in data["steps"]] == ["as-is", "op-by-op", "eager", "aot_eager"]
    assert "op by op" in data["conclusion"]


def test_ladder_of_a_test_that_passes_stops_at_once(checkout, capsys):
    status, data = answer(capsys, "ladder", "tests/test_op.py::test_right")
    assert status == 0 and len(data["steps"]) == 1
    assert "does not fail" in data["conclusion"]


def test_what_was_found_goes_to_the_row_that_was_tested_or_is_kept_as_a_finding(tmp_path, monkeypatch):
    from debug_spyre.examine.io.examination import Examination
    from debug_spyre.runs.io.finding_runs import RunPlace
    from debug_spyre.session.events import HypothesisAdded, HypothesisStarted, SessionOpened
    from debug_spyre.session.io.workspace import new_session_folder

    folder = new_session_folder(tmp_path / "logs", "debug-20261130-100000-x")
    opened = SessionOpened(
        stem=folder.stem, slug="x", symptom="s", members=({"nodeid": "t::a"},), checkout=str(tmp_path)
    )
    row = HypothesisAdded(number=1, text="it's a view", test="sweep")
    folder.journal.append_with(lambda _: [opened, row, HypothesisStarted(number=1, command="c")])
    place = RunPlace(tmp_path, folder, is_session=True)
    said = Examination(place, "sweep", hypothesis=1).verdict("aten.exp's wrong", "r5")
    assert '"it\'s a view"' in said and "ruled-out" in said.partition(": debug-spyre")[0]
    assert said.endswith("debug-spyre hypothesis conclude 1 confirmed 'aten.exp'\"'\"'s wrong' --run r5")
    assert Examination(place, "sweep").verdict("a b", "r5") == "keep it: debug-spyre note finding 'a b'"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["shadow"], 64),
        (["shadow", "--max-elements", "0", "x"], 64),
        (["shadow", "--script", "no.py"], 64),
        (["shadow", "-n", "2", "tests"], 64),
        (["sweep", "nonsense"], 64),
        (["sweep", "aten.mul.Tensor", "what"], 64),
        (["sweep", "--seconds", "0", "aten.exp", "f16[4]"], 64),
        (["sweep"], 64),
        (["ladder"], 64),
        (["shadow", "--hypothesis", "7", "x"], 64),
        (["ladder", "--rungs", "none", "x"], 64),
        (["ladder", "--resume", "x"], 64),
    ],
)
def test_bad_words_are_refused_before_anything_runs(checkout, capsys, words, status):
    assert main(words) == status
    assert "next:" in capsys.readouterr().err
    assert not list((checkout.parent / "logs").rglob("runs/*"))
