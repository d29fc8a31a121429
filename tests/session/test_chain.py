"""A journal line, or a file that it names, that was changed after it was written is told; what crashes leave is not."""

import json
import random

import pytest
from tests.gate.conftest import good_story

from debug_spyre.gate.close_request import CloseRequest
from debug_spyre.gate.gate import judge
from debug_spyre.session import chain
from debug_spyre.session import events as ev
from debug_spyre.session.io import seals
from debug_spyre.session.io.journal import JOURNAL, Journal
from debug_spyre.vocabulary.words import GateState


@pytest.fixture
def folder(tmp_path):
    """A journal of six lines; the second and the fifth name files."""
    place = tmp_path / "debug-20261130-010203-x"
    (place / "runs/r1").mkdir(parents=True)
    journal = Journal(place)
    journal.append(ev.SessionOpened(stem=place.name, slug="x", symptom="s", members=(), checkout="/c"))
    for name, text in (("runs/r1/evidence.json", '{"a": 1}'), ("runs/r1/results.jsonl", "x\n"), ("run.txt", "out\n")):
        (place / name).write_text(text)
    journal.append(
        ev.RunFinished(
            run="r1", status="failed", valid=True, seconds=1.0, evidence="runs/r1/evidence.json", output="run.txt"
        )
    )
    journal.append_with(lambda _: [ev.NextNoted(text="a \U0001f600 \u2028"), ev.NextNoted(text="b")])
    (place / "fix.patch").write_text("--- a\n")
    journal.append(ev.TreeReverted(patch="fix.patch", files=("a",), digest="d"))
    journal.append(ev.SummaryNoted(text="end"))
    return place


def lines_of(folder):
    return (folder / JOURNAL).read_bytes().split(b"\n")[:-1]


def put(folder, lines):
    (folder / JOURNAL).write_bytes(b"".join(line + b"\n" for line in lines))


def test_what_was_written_is_whole_and_is_read_as_before(folder):
    assert seals.trouble(folder) is None
    events = Journal(folder).read().events
    assert [e.seq for e in events] == list(range(1, 7))
    assert events[2].text == "a \U0001f600 \u2028"
    data = json.loads(lines_of(folder)[1])
    assert set(data["digests"]) == {"runs/r1/evidence.json", "runs/r1/results.jsonl", "run.txt"}
    assert data["prev"] == chain.digest(lines_of(folder)[0])


def test_every_bit_flip_is_told(folder):
    whole = (folder / JOURNAL).read_bytes()
    chosen = random.Random(17)
    for _ in range(600):
        place, bit = chosen.randrange(len(whole)), chosen.randrange(8)
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        (folder / JOURNAL).write_bytes(flipped)
        assert seals.trouble(folder) is not None, (place, bit)


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("way", ["edited", "removed", "twice", "moved", "own seal taken off", "sealed again by hand"])
def test_a_changed_line_is_told_with_its_number(folder, number, way):
    lines = lines_of(folder)
    if way == "edited":
        lines[number] = lines[number].replace(b'"by":"', b'"by":"x', 1)
    elif way == "removed":
        del lines[number]
    elif way == "twice":
        lines.insert(number, lines[number])
    elif way == "moved":
        lines.insert((number + 2) % 6, lines.pop(number))
    else:
        body = json.loads(lines[number])
        kept = {k: v for k, v in body.items() if k not in {"digests", "prev", "sum"}}
        text = json.dumps(kept | {"by": "forged"}, separators=(",", ":"))
        before = lines[number - 1] if number else None
        lines[number] = (text if way.startswith("own") else chain.sealed(text, before, {})).encode()
    put(folder, lines)
    told = seals.trouble(folder)
    if way == "own seal taken off" and number == 0:
        assert "line 2" in told
    else:
        assert told is not None
        assert "line" in told


@pytest.mark.parametrize("kept", range(6))
def test_lines_that_are_missing_at_the_end_are_told(folder, kept):
    put(folder, lines_of(folder)[:kept])
    assert kept == 0 or f"line {kept + 1}" in seals.trouble(folder)


@pytest.mark.parametrize("forged", ["session_closed", "patch_approved", "run_finished", "validation_recorded"])
def test_a_line_that_was_appended_by_hand_is_told(folder, forged):
    line = {
        "v": 1,
        "seq": 7,
        "at": "2026-12-01T00:00:00.000Z",
        "by": "user",
        "kind": forged,
        "status": "resolved",
        "reason": "r",
    }
    with (folder / JOURNAL).open("a") as stream:
        stream.write(json.dumps(line) + "\n")
    assert "line 7 has no seal" in seals.trouble(folder)


@pytest.mark.parametrize("name", ["runs/r1/evidence.json", "runs/r1/results.jsonl", "run.txt", "fix.patch"])
def test_a_file_that_was_edited_afterwards_is_told_by_name_and_line(folder, name):
    place = folder / name
    place.write_text(place.read_text().replace("a", "b").replace("x", "y").replace("out", "in"))
    assert f"{name} (line " in seals.trouble(folder)
    place.unlink()
    assert seals.trouble(folder) is None  # pruned: absent evidence is unknown to the gate anyway


def test_journals_of_older_versions_are_read_and_called_unchained_and_go_on_chained(tmp_path):
    old = [
        ev.to_line(ev.NextNoted(text=t, seq=n, at="2026-01-01T00:00:00.000Z", by="u")) for n, t in enumerate("ab", 1)
    ]
    (tmp_path / JOURNAL).write_text("".join(line + "\n" for line in old))
    assert chain.check([line.encode() for line in old], None) == chain.Chain(2, unchained=2)
    assert seals.trouble(tmp_path) is None
    Journal(tmp_path).append(ev.NextNoted(text="c"))
    assert seals.trouble(tmp_path) is None
    lines = lines_of(tmp_path)
    put(tmp_path, [lines[0], lines[1].replace(b'"b"', b'"x"'), lines[2]])
    assert "line 3 does not follow" in seals.trouble(tmp_path)


def test_what_a_crash_leaves_is_no_break(folder):
    """A torn last line was never acknowledged; a head that lags behind names a line that is there."""
    journal = Journal(folder)
    head = (folder / seals.HEAD).read_text()
    journal.append(ev.NextNoted(text="acknowledged"))
    (folder / seals.HEAD).write_text(head)
    assert seals.trouble(folder) is None
    with (folder / JOURNAL).open("ab") as stream:
        stream.write(b'{"v":1,"seq":8,"at"')
    assert seals.trouble(folder) is None
    assert journal.append(ev.NextNoted(text="goes on")).seq == 8
    assert seals.trouble(folder) is None
    (folder / seals.HEAD).unlink()
    assert "journal.head" in seals.trouble(folder)


def test_the_gate_is_shut_by_changed_evidence():
    story = good_story()
    found = judge(story.session, story.evidence, CloseRequest(trouble="line 3 is not what was written"))
    assert found.state is GateState.SHUT
    assert found.reasons[0].code == "evidence-whole"
