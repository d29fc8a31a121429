"""Values of a wrong type anywhere in a journal: the line is named, or all that reads it copes. Nothing crashes."""

import json
import os
import random
from pathlib import Path

import pytest

from debug_spyre.cli import main
from debug_spyre.session import events as ev
from debug_spyre.vocabulary.errors import Exit

FUZZ = float(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
GARBAGE = [
    None,
    5,
    -1,
    1e300,
    True,
    "x",
    "",
    [],
    [None],
    [[1]],
    {},
    {"a": None},
    {"a": {"b": [1]}},
    [{"nodeid": 3}],
    "\u202e</script>",
]
LINES = (Path(__file__).parent / "data/journal-before-the-rooms.jsonl").read_text(encoding="utf-8").splitlines()
READERS = (
    ["render"], ["status"], ["validate"],
    ["close", "resolved", "--check"], ["hypothesis", "list"], ["escalate", "--dry-run"],
)  # fmt: skip


def whole_journal():
    """A real journal, and behind it an event of each kind that it lacks."""
    lines = [json.loads(line) for line in LINES]
    have = {line["kind"] for line in lines}
    more = [
        ev.ReportMade(verb="shadow", lines=("a",), run="r1", data={"op": "aten.mm", "script": "repro.py", "picture": {"rows": 1}}),
        ev.GateOverridden(code="same-tests", reason="r"), ev.PatchApproved(reason="r"), ev.SessionLinked(stem="debug-x", relation="similar"),
        ev.ExperimentNoted(text="e", hypothesis=1, tail=("x",)), ev.MemberAdded(nodeid="t::z", predicate={"kind": "slower", "seconds": 2}, reason="r"),
        ev.MemberRemoved(nodeid="t::z", reason="r"), ev.ProbeChosen(nodeid="t::z", reason="r"), ev.NextNoted(text="n"),
        ev.HypothesisAdded(number=99, text="h", test="t", cost_seconds=2.0), ev.HypothesisDropped(number=99, reason="r"),
        ev.RunProgressed(run="r1", done=1, failed=0), ev.SessionReopened(reason="r"),
        ev.SessionClosed(status="blocked", next_action="n"),  # a validation of an open session would run tests
    ]  # fmt: skip
    at = lines[-1]["at"]
    for event in more:
        if event.kind not in have or isinstance(event, ev.ReportMade | ev.SessionReopened | ev.SessionClosed):
            line = json.loads(ev.to_line(event))
            lines.append(line | {"seq": len(lines) + 1, "at": at, "by": "u"})
    return lines


def paths_of(value, depth=0):
    """Where a value can stand: keys and indexes, at most three deep."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in list(items)[:12]:
        yield (name,)
        if depth < 3:
            yield from ((name, *rest) for rest in paths_of(inner, depth + 1))


def places():
    """(number of the line, path) once for each kind of event and each name in it."""
    seen = {}
    for number, line in enumerate(whole_journal()):
        for path in paths_of(line):
            if path[0] not in {"v", "kind", "prev", "sum", "digests"}:
                seen.setdefault((line["kind"], tuple(p if isinstance(p, str) else 0 for p in path)), (number, path))
    return sorted(seen.values(), key=str)


def spoilt(number, path, value):
    lines = whole_journal()
    target = lines[number]
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return lines


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A checkout with this journal; gives (lines of the journal) -> what each reader said."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / ".claude/skills/debug-spyre/logs" / json.loads(LINES[0])["stem"]
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.sleep", lambda _: None)

    def write(lines):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "journal.jsonl").write_text(text)
        return folder

    return write


CASES = [(number, path, value) for number, path in places() for value in GARBAGE]
CHOSEN = random.Random(8).sample(CASES, min(len(CASES), int(150 * FUZZ)))


def readable(lines):
    """All lines are events; a line that is none is a damaged line, which is tested elsewhere."""
    try:
        for line in lines:
            ev.from_line(json.dumps(line))
    except ev.EventFormatError:
        return False
    return True


def test_there_is_much_to_spoil():
    kinds = {whole_journal()[number]["kind"] for number, _ in places()}
    assert kinds == set(ev.KINDS)
    assert len(CASES) > 2000
    assert sum(readable(spoilt(*case)) for case in random.Random(1).sample(CASES, 300)) > 50


@pytest.mark.parametrize("part", range(5))
def test_property_typed_garbage_crashes_nobody(world, part, capsys, tmp_path):
    for number, path, value in CHOSEN[part::5]:
        lines = spoilt(number, path, value)
        for line in lines:
            if line["kind"] == "session_opened" and path != ("checkout",):
                line["checkout"] = str(tmp_path)
        folder = world(lines)
        calls = READERS if readable(lines) else READERS[:3]
        for words in calls:
            stem = [] if words[0] in {"index"} or "--all" in words else ["--session", folder.name]
            status = main([*words, *stem])
            said = capsys.readouterr()
            assert status != Exit.BUG, (lines[number]["kind"], path, value, words, said.err)
            if not readable(lines) and stem:
                assert status == Exit.BAD_INPUT
                assert f"line {number + 1} is damaged" in said.err
