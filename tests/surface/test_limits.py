"""Limitations are data: complete, shown in the notes as they are, and each probe tells a card that has one from one that has not."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.surface.write_limit_tables import DATA, NOTES, generated

from debug_spyre.surface.io import limits_probe
from debug_spyre.surface.limits import Answer, Limit, Probed, Reading, lines_of, read_limits, table_of, with_tables

LIMITS = read_limits(DATA.read_text(encoding="utf-8"))
BACKEND = Path(__file__).parents[1] / "simulated_card/backend"
ROOT = Path(__file__).parents[2]
ONE = {
    "id": "x", "group": "general", "statement": "s", "workaround": "w", "where": "here", "since": "2026-01",
    "state": Reading.HOLDS, "source": "read", "seen": "2026-08-22", "probe": "p",
}  # fmt: skip


def test_every_limitation_says_how_it_is_asked_or_why_not():
    assert len(LIMITS) > 20
    probes = (ROOT / "scripts/debug_spyre/inside/debug_spyre_probe.py").read_text(encoding="utf-8")
    for limit in LIMITS:
        assert not limit.probe or f"@probe\ndef {limit.probe}(" in probes, limit.id
        assert not limit.text or re.compile(limit.text)
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", limit.since), limit.id
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", limit.seen), limit.id


@pytest.mark.parametrize(
    "words",
    [
        "index",
        "transpose",
        "dtype and device",
        "shape",
        "tensor parallel",
        "float16",
        "head_size",
        "256",
        "sequence",
        "broadcast",
    ],
)
def test_what_the_mission_names_is_among_them(words):
    assert any(words in f"{limit.statement} {limit.workaround}" for limit in LIMITS)


@pytest.mark.parametrize(
    "change",
    [{"probe": ""}, {"text": "also"}, {"group": "other"}, {"state": Reading.LIFTED}, {"state": Reading.PARTLY}],
)
def test_an_incomplete_entry_cannot_be_made(change):
    with pytest.raises(ValueError):
        Limit(**{**ONE, **change})


def test_two_entries_of_one_id_are_refused():
    row = '[[limit]]\nid="x"\ngroup="general"\nstatement="s"\nworkaround="w"\nwhere="h"\nsince="2026-01"\nstate="holds"\nsource="r"\nseen="2026-08-22"\nprobe="p"\n'
    assert len(read_limits(row)) == 1
    with pytest.raises(ValueError, match="two limitations"):
        read_limits(row + row)


@pytest.mark.parametrize("note", NOTES, ids=lambda p: p.name)
def test_the_notes_show_the_data(note):
    assert "<!-- limits:" in note.read_text(encoding="utf-8")
    assert note.read_text(encoding="utf-8") == generated(note), "run: python tests/surface/write_limit_tables.py"


def test_text_around_the_markers_is_left_alone(hostile):
    before = f"{hostile}\n<!-- limits:general -->\nold\n<!-- /limits -->\n{hostile}\n"
    after = with_tables(before, [Limit(**ONE)])
    assert after.startswith(f"{hostile}\n") and after.endswith(f"<!-- /limits -->\n{hostile}\n")
    assert "old\n" not in after.replace(hostile, "")
    assert with_tables(after, [Limit(**ONE)]) == after
    assert with_tables(hostile, [Limit(**ONE)]) == hostile


def test_a_pipe_does_not_break_the_table():
    table = table_of([Limit(**{**ONE, "statement": "a | b"})], "general")
    assert "a \\| b" in table


def test_an_unknown_answer_is_shown_with_its_reason():
    shown = "\n".join(lines_of(Limit(**ONE), Probed(Answer.UNKNOWN, "no card", "2026-01-01T", "abc"), whole=False))
    assert "unknown" in shown and "no card" in shown


# --- the probes themselves, on a card that has the limitation and on one that has not

PROBES = [limit.probe for limit in LIMITS if limit.probe and limit.probe not in {"mask_value"}]
OF_THE_CARD = set(re.findall(r'Limit\("(\w+)"', (BACKEND / "torch_spyre/limits.py").read_text()))
SWITCHED = [probe for probe in PROBES if probe in OF_THE_CARD]


def ask(probe, limits, tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(BACKEND),
        "SPYRE_SIM_LIMITS": limits,
        "SPYRE_SIM_DEVICE": str(tmp_path / "device"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }
    script = ROOT / "scripts/debug_spyre/inside/debug_spyre_probe.py"
    done = subprocess.run(
        [sys.executable, str(script), *probe], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"probe"')] or done.stderr


def test_every_probe_tells_a_card_with_its_limitation_from_one_without(tmp_path):
    with_all = ask(SWITCHED, ",".join(SWITCHED), tmp_path)
    assert len(SWITCHED) >= len(PROBES) - 4
    without = ask(PROBES, "none", tmp_path)
    assert [a["probe"] for a in with_all] == SWITCHED, with_all
    assert [(a["probe"], a["answer"]) for a in without if a["answer"] != "lifted"] == [], without
    missed = [a for a in with_all if a["answer"] != "holds" and a["probe"] not in HIDDEN]
    assert missed == []


# behind another limitation when a card has all of them: asked alone
HIDDEN = {"embedding_fallback"}


def test_a_probe_that_cannot_load_the_backend_answers_unknown(tmp_path):
    told = ask(["fp32_matmul"], "no-such-limitation", tmp_path)
    assert told[0]["answer"] == "unknown"
    assert "Error" in told[0]["why"]


# --- what the verb keeps


def test_answers_are_kept_for_each_torch_spyre_and_a_damaged_file_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBUG_SPYRE_LOGS", str(tmp_path / "logs"))
    limits_probe._keep(tmp_path, "rev-a", "x", Probed(Answer.HOLDS, "why", "at", "rev-a"))
    limits_probe._keep(tmp_path, "rev-b", "x", Probed(Answer.LIFTED, "why", "at", "rev-b"))
    assert limits_probe.kept_answers(tmp_path, "rev-a")["x"].answer is Answer.HOLDS
    assert limits_probe.kept_answers(tmp_path, "rev-b")["x"].answer is Answer.LIFTED
    assert limits_probe.kept_answers(tmp_path, "rev-c") == {}
    (tmp_path / "logs" / limits_probe.KEPT).write_text('{"rev-a": ["x"]}')
    assert limits_probe.kept_answers(tmp_path, "rev-a") == {}
    limits_probe._keep(tmp_path, "rev-a", "x", Probed(Answer.HOLDS, "why", "at", "rev-a"))
    assert limits_probe.kept_answers(tmp_path, "rev-a")["x"].answer is Answer.HOLDS
    (tmp_path / "logs/limits.json").write_text("{half")
    assert limits_probe.kept_answers(tmp_path, "rev-a") == {}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", None),
        ("noise\n", None),
        ('{"probe": "x", "answer": "maybe", "why": ""}\n', None),
        ('{"probe": "x", "answer": "holds", "why": "w"}\nlate noise\n', "holds"),
    ],
)
def test_the_answer_is_read_from_the_end_of_the_output(text, answer, tmp_path):
    output = tmp_path / "r1.txt"
    output.write_text(text)
    told = limits_probe.answer_in(output)
    assert (told and told[0].value) == answer
    assert limits_probe.answer_in(tmp_path / "missing") is None


def test_the_plugins_own_text_answers_for_its_checks(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", sys.executable)
    plugin = tmp_path / "spyre_inference"
    plugin.mkdir()
    (plugin / "attn.py").write_text("# text\nKV_LENGTH_ALIGNMENT = 256\n")
    assert limits_probe.in_plugin(tmp_path, "KV_LENGTH") == (Answer.HOLDS, "KV_LENGTH at spyre_inference/attn.py:2")
    assert limits_probe.in_plugin(tmp_path, "bucketer")[0] is Answer.LIFTED
    (tmp_path / "other").mkdir()
    assert limits_probe.in_plugin(tmp_path / "other", "x")[0] is Answer.UNKNOWN


def test_calls_at_one_time_lose_none_of_the_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(limits_probe, "logs_folder", lambda _checkout: tmp_path)
    answer = Probed(Answer.HOLDS, "why", "at", "rev")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: limits_probe._keep(tmp_path, "rev", f"limit-{n}", answer), range(40)))
    assert len(limits_probe.kept_answers(tmp_path, "rev")) == 40
