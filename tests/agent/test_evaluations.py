"""The ten evaluations in the client's own form: their structure, and that each tells a good run from a bad one.

Whoever has a key and a client of 2.1.269 or later runs them: `claude plugin eval .claude/skills/debug-spyre --allow-tools Bash Edit`.
"""

import re
from pathlib import Path

import pytest

EVALS = Path(__file__).parents[2] / ".claude/skills/debug-spyre/evals"
CASES = sorted(path.parent for path in EVALS.glob("*/prompt.md"))
CASE_KEYS = {"name", "description", "tags", "max_turns", "timeout_seconds", "allowed_tools"}
NEEDED = {  # grader type -> fields that it must have, fields that it may have
    "tool_used": ({"tool"}, {"input_match", "min", "max", "arm", "weight"}),
    "tool_order": ({"before", "after"}, {"arm", "weight"}),
    "regex": ({"pattern"}, {"target", "match", "flags", "arm", "weight"}),
    "llm": (set(), {"focus", "arm", "weight"}),
}
# what a run that keeps the rules types, and one that breaks the case's rule: (tool, input) pairs, or the last message
RUNS = {
    "matrix-first": (
        ["debug-spyre triage tests/test_rms_norm.py", "debug-spyre open --cluster c1", "debug-spyre hypothesis seed"],
        ["uv run pytest tests/test_rms_norm.py", "debug-spyre hypothesis seed"],
    ),
    "baseline-before-theories": (
        ["debug-spyre run --as baseline 'a::b'", "debug-spyre hypothesis seed", "debug-spyre hypothesis start 1"],
        ["debug-spyre hypothesis start 1", "debug-spyre run --as baseline 'a::b'"],
    ),
    "one-row-at-a-time": (
        ["debug-spyre hypothesis start 1", "debug-spyre hypothesis conclude 1 ruled-out 'x'"],
        ["debug-spyre hypothesis start 1", ("AskUserQuestion", "which one?")],
    ),
    "card-is-busy": (
        ["debug-spyre lock", "debug-spyre triage tests"],
        ["debug-spyre run --reap tests"],
    ),
    "fallback-as-error": (
        ["debug-spyre run --fallback-as-error tests", "debug-spyre op aten.cumsum"],
        ["debug-spyre op aten.cumsum", "debug-spyre run -W error::UserWarning tests"],
    ),
    "ids-with-brackets": (
        ["debug-spyre run 'tests/test_attention.py::test_it[decode(q=1,kv=256)]'"],
        ["debug-spyre run -k 'decode(q=1' tests/test_attention.py"],
    ),
    "local-build": (
        ["debug-spyre triage tests/test_linear.py", "uv run --no-sync ruff check ."],
        ["uv run pytest tests/test_linear.py"],
    ),
    "no-fix-by-trade": (["debug-spyre close resolved --check"], ["debug-spyre close resolved --override no-regression x"]),
    "control-before-escalation": (
        ["debug-spyre exec --as cpu-control -- python r.py", "debug-spyre escalate"],
        ["debug-spyre escalate", "gh issue create"],
    ),
    "not-for-cuda": ([("last", "set CUDA_LAUNCH_BLOCKING=1")], [("Skill", "debug-spyre"), ("last", "I ran it")]),
}  # fmt: skip


def read(path):
    """(fields, body) of one file; flow maps of our own writing are taken apart too."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\n"), path
    head, _, body = text[4:].partition("---\n")
    return {key: value(raw) for key, _, raw in (line.partition(": ") for line in head.splitlines())}, body.strip()


def value(raw):
    raw = raw.strip()
    if raw.startswith("{"):
        return {key: value(rest) for key, rest in re.findall(r"(\w+): ('(?:[^']|'')*')", raw)}
    if raw.startswith("'"):
        return raw[1:-1].replace("''", "'")
    return int(raw) if raw.isdigit() else raw


def passes(fields, run):
    """What this grader says to a run; None where only a model can say it."""
    calls = [("Bash", step) if isinstance(step, str) else step for step in run]

    def hits(what):
        return [
            n
            for n, (tool, given) in enumerate(calls)
            if tool == what["tool"] and re.search(what.get("input_match", ""), given)
        ]

    if fields["type"] == "tool_used":
        return fields.get("min", 0) <= len(hits(fields)) <= fields.get("max", 10**6)
    if fields["type"] == "tool_order":
        before, after = hits(fields["before"]), hits(fields["after"])
        return bool(before and after) and before[0] < after[0]
    if fields["type"] == "regex":
        return any(tool == "last" and re.search(fields["pattern"], text) for tool, text in calls)
    return None


def test_there_are_ten_and_each_has_a_good_and_a_bad_run():
    assert len(CASES) >= 10
    assert {case.name for case in CASES} == set(RUNS)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_case_is_of_the_clients_form(case):
    fields, prompt = read(case / "prompt.md")
    assert set(fields) <= CASE_KEYS
    assert fields["name"] == case.name
    assert len(prompt) > 40
    assert "debug-spyre" not in prompt, "the prompt gives the skill away"
    graders = sorted((case / "graders").glob("*.md"))
    assert len(graders) >= 2
    for path in graders:
        grader, body = read(path)
        needed, allowed = NEEDED[grader.pop("type")]
        assert needed <= set(grader) <= needed | allowed, path
        assert body or needed, path
        for name in ("input_match", "pattern"):
            re.compile(str(grader.get(name, "")))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_its_graders_tell_a_good_run_from_a_bad_one(case):
    good, bad = RUNS[case.name]
    graders = {path.stem: read(path)[0] for path in (case / "graders").glob("*.md")}
    assert [name for name, fields in graders.items() if passes(fields, good) is False] == []
    assert [name for name, fields in graders.items() if passes(fields, bad) is False]
