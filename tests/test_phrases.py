"""Phrases that must be read twice do not come back: the list is kept here, each with what is written instead."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOT_USED = {
    r"meets the card": "uses the card",
    r"\bin silence\b": "without a word, silently",
    r"\bload-bearing\b": "that matters, there for a reason",
    r"not chased\b": "finish the current one first",
    r"belongs? to a scope": "compare only runs of the same tests",
    r"\bit spares\b": "it preserves",
    r"what the baseline supports": "baseline evidence",
    r"never a trade\b": "never accept it in exchange",
    r"that somebody else made": "an existing log",
    r"hands? the card to nobody": "does not release the card",
    r"what it needs for a moment": "temporary files",
    r"cheap oracle": "the test used as quick check",
    r"\bspoil them\b": "make them fail",
    r"and exactly when\b": "for which sizes, types and views",
    r"left no name": "unknown holder",
    r"of others, and heeded": "third-party variables that we read",
    r"on purpose under this run": "is rebuilt deliberately during this run",
}


def texts():
    kept = ("scripts", "docs", "templates", ".claude", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    names = subprocess.run(["git", "ls-files", *kept], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, names):
        path = ROOT / name
        if (
            path.is_file()
            and path.suffix in {".py", ".md", ".j2", ".toml", ".json", ".js"}
            and "docs/sample" not in name
        ):
            yield name, path.read_text(encoding="utf-8")


@pytest.mark.parametrize("phrase", NOT_USED)
def test_a_phrase_that_must_be_read_twice_is_not_used(phrase):
    pattern = re.compile(phrase, re.IGNORECASE)
    found = [
        f"{name}:{text.count(chr(10), 0, m.start()) + 1}" for name, text in texts() for m in pattern.finditer(text)
    ]
    assert not found, f"write {NOT_USED[phrase]!r}: {found[:5]}"


def test_the_list_finds_what_it_names():
    """Each pattern matches the phrase that it stands for."""
    for phrase in NOT_USED:
        plain = re.sub(r"\\b|\?", "", phrase)
        assert re.search(phrase, plain, re.IGNORECASE), phrase


def test_no_module_begins_with_what_and_none_is_without_a_docstring():
    off = []
    for name, text in texts():
        if name.startswith("scripts/") and name.endswith(".py"):
            said = ast.get_docstring(ast.parse(text)) or ""
            off += [name] if not said or said.startswith("What") else []
    assert not off
