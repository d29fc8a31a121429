"""SKILL.md, its notes and references: sizes, portable frontmatter, what must be told and where, dates."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKILL = ROOT / ".claude/skills/debug-spyre"
TEXT = (SKILL / "SKILL.md").read_text(encoding="utf-8")
FRONT, BODY = TEXT.split("---\n", 2)[1:]
REFERENCES = sorted((SKILL / "references").glob("*.md"))
PORTABLE = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
CLIENTS_OWN = {"disallowed-tools", "hooks"}


def field(name):
    found = re.search(rf"^{name}: (.*)$", FRONT, re.MULTILINE)
    return found.group(1) if found else None


def test_the_body_and_the_hard_rules_fit():
    """After a compaction only the beginning comes back."""
    assert len(TEXT.encode()) <= 16_000
    start = TEXT.encode()[:4000].decode("utf-8", "ignore")
    rules = re.findall(r"^(\d+)\. ", BODY.split("## The loop")[0], re.MULTILINE)
    assert rules == [str(n) for n in range(1, len(rules) + 1)]
    assert len(rules) >= 10
    last = re.search(rf"^{len(rules)}\. .*$", BODY, re.MULTILINE).group(0)
    assert last in start
    assert len(TEXT.splitlines()) < 500


def test_the_portable_fields_are_valid_by_the_agent_skills_rules():
    names = set(re.findall(r"^([\w-]+):", FRONT, re.MULTILINE))
    assert names <= PORTABLE | CLIENTS_OWN
    assert field("name") == SKILL.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", field("name"))
    assert 1 <= len(field("description")) <= 1024
    assert len(field("compatibility")) <= 500
    assert field("allowed-tools")
    assert ": " not in field("description"), "an unquoted colon would break the YAML"
    assert field("disallowed-tools") == "AskUserQuestion"


def test_the_description_has_the_words_people_use_and_what_it_is_not_for():
    text = field("description").lower()
    for words in (
        "spyre test fails",
        "mismatch",
        "cpu reference",
        "falls back to cpu",
        "torch.compile",
        "spyre device",
        "hang",
        "broken",
    ):
        assert words in text, words
    refused = text.split("not for", 1)[1]
    for words in ("cuda", "pytest", "benchmark", "upgrading torch-spyre"):
        assert words in refused, words


def test_every_reference_is_named_with_when_to_read_it_and_lies_one_level_deep():
    table = BODY.split("## Read when", 1)[1]
    for path in (*REFERENCES, SKILL / "attention-notes.md"):
        name = str(path.relative_to(SKILL))
        row = next((line for line in table.splitlines() if f"`{name}`" in line), None)
        assert row, name
        assert len(row.split("|")[2].strip()) > 20, f"{name}: say when"
        assert path.read_text().split("\n\n")[1].startswith("Read this"), name
    assert not [p for p in (SKILL / "references").iterdir() if p.is_dir()]
    for name in re.findall(r"`((?:references/)?[\w-]+\.md)`", BODY):
        assert (SKILL / name).is_file() or name == "CLAUDE.md", name


def test_the_reference_of_variables_is_complete_and_names_none_that_nobody_reads():
    """Found in the sources, names that are put together apart; what is for tests only stands under that heading."""
    text = (SKILL / "references/environment.md").read_text()
    named = set(re.findall(r"^\| `(DEBUG_SPYRE_[A-Z_]+)` \|", text, re.MULTILINE))
    sources = [p for p in (ROOT / "scripts").rglob("*") if p.suffix == ".py" or p.name == "debug-spyre"]
    read = set()
    for path in (*(p for p in sources if p.is_file()), ROOT / "Makefile"):
        read |= set(re.findall(r"DEBUG_SPYRE_[A-Z]+(?:_[A-Z]+)*\b(?!_)", path.read_text(encoding="utf-8")))
    assert named == read
    tests_only = set(re.findall(r"`(DEBUG_SPYRE_[A-Z_]+)` \|", text.split("**For our own tests only.**")[1]))
    assert tests_only == {n for n in named if "UNSAFE" in n} | {"DEBUG_SPYRE_FUZZ", "DEBUG_SPYRE_CLIENT_ALL"}


def test_attention_notes_are_for_attention_only_and_no_text_sends_to_its_test_file():
    told = [line for line in BODY.splitlines() if "attention-notes.md" in line]
    assert len(told) == 1
    assert "and only then" in told[0]
    for path in (SKILL / "SKILL.md", SKILL / "attention-notes.md", *REFERENCES):
        assert not re.search(r"test_spyre_attn|tests/attention|test_\w*attn", path.read_text()), path.name


def test_the_skill_says_where_most_causes_lie_and_that_one_session_is_one_cluster():
    assert "Most causes lie there" in BODY
    assert "debug-spyre op" in BODY
    assert "**One session, one cluster**" in BODY
    assert "Ask nobody which hypothesis to try" in BODY


def test_facts_about_torch_spyre_carry_their_dates():
    """Each reference that states facts of a version dates them; the notes mark what is history."""
    for name in ("numerical-workflow", "compile-workflow", "escalation", "local-builds"):
        assert re.search(r"\[2026-\d\d", (SKILL / f"references/{name}.md").read_text()), name
    rows = re.findall(
        r"^\| (.+?) \| ((?:now|history|mixed).*?) \|$", (SKILL / "attention-notes.md").read_text(), re.MULTILINE
    )
    states = [state for _, state in rows]
    assert len(rows) >= 12
    assert any(state.startswith("history") for state in states)
    assert any(state.startswith("now") for state in states)


STALE = ("_attn_4d", "_init_device_cache", "one-hot", "one sequence at a time", "relative tolerance of 5.0")


@pytest.mark.parametrize("fact", STALE)
def test_a_stale_fact_of_the_mission_is_marked_as_history(fact):
    lines = [
        line
        for line in (SKILL / "attention-notes.md").read_text().splitlines()
        if fact in line and line.startswith("|")
    ]
    assert lines
    assert all("history" in line for line in lines if "limits" not in line), lines


def test_there_are_enough_queries_with_near_misses():
    queries = json.loads((ROOT / "tests/agent/data/triggers.json").read_text(encoding="utf-8"))
    assert len(queries) >= 20
    assert len({q["query"] for q in queries}) == len(queries)
    assert sum(q["fires"] for q in queries) >= 10
    assert sum(not q["fires"] for q in queries) >= 10
    assert all(q["why"] for q in queries)


def test_the_query_runner_sees_whether_the_skill_was_called():
    spec = importlib.util.spec_from_file_location("triggers", ROOT / "tests/agent/triggers.py")
    triggers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(triggers)

    def said(name, given):
        return [{"message": {"content": [{"type": "text"}, {"type": "tool_use", "name": name, "input": given}]}}]

    assert triggers.fired(said("Skill", {"skill": "debug-spyre"}))
    assert not triggers.fired(said("Skill", {"skill": "run"}))
    assert not triggers.fired(said("Bash", {"command": "debug-spyre"}))
