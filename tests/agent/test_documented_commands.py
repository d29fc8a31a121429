"""Every command that SKILL.md, the references, the notes, README and the guard show is one that the parsers take."""

import importlib
import re
import shlex
from argparse import ArgumentParser
from pathlib import Path

import pytest

from debug_spyre.verbs import table

ROOT = Path(__file__).parents[2]
SKILL = ROOT / ".claude/skills/debug-spyre"
TEXTS = [
    SKILL / "SKILL.md",
    SKILL / "attention-notes.md",
    *sorted((SKILL / "references").glob("*.md")),
    ROOT / "README.md",
]
PYTESTS = re.compile(r"-[a-zA-Z]\b.*|--(tb|collect-only|co|maxfail|durations|lf|pdb|deselect|ignore)(=.*)?$")
PLACEHOLDERS = {"VERB", "COMMAND"}


def commands_in(text):
    """Commands as inline code, or as lines of a fenced block."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    plain = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"`((?:\.?[\w/.]*/)?debug-spyre [^`\n]+)`", plain)
    for block in fenced:
        joined = block.replace("\\\n", " ")
        found += [m.strip() for m in re.findall(r"^\s*\$?\s*((?:\S*/)?debug-spyre .+)$", joined, re.MULTILINE)]
    return found


def cases():
    return [(path.name, command) for path in TEXTS if path.is_file() for command in commands_in(path.read_text())]


def words_of(command):
    """The words after the command's name; a here-document, redirect, pipe or comment ends them."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>;&")
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if word and not set(word) - set("|<>;&"):
            break
        words.append(word)
    return words[1:]


def parse(words):
    """What the command line would do with these words, without doing it."""
    verb = table.load(words[0])
    parser = ArgumentParser(prog=words[0], allow_abbrev=False, exit_on_error=True)
    verb.add_arguments(parser)
    if not verb.rest:
        parser.parse_args(words[1:])
        return
    _, unknown = parser.parse_known_args(words[1:])
    mine = unknown[: unknown.index("--")] if "--" in unknown else unknown
    odd = [w for w in mine if w.startswith("-") and not PYTESTS.match(w)]
    assert not odd, f"{odd} are neither ours nor pytest's"


@pytest.mark.parametrize(("source", "command"), cases(), ids=[f"{s}-{c[:60]}" for s, c in cases()])
def test_a_documented_command_parses(source, command):
    words = words_of(command)
    if words[0] in PLACEHOLDERS or (len(words) == 1 and words[0] in table.BY_NAME):
        return  # a verb is only mentioned
    assert words[0] in table.BY_NAME, f"{source}: no verb {words[0]}"
    try:
        importlib.import_module(f"debug_spyre.verbs.{table.BY_NAME[words[0]].module}")
    except ModuleNotFoundError as error:
        pytest.skip(f"{words[0]} is not there yet: {error}")
    try:
        parse(words)
    except SystemExit as error:
        assert error.code in (0, None), f"{source}: {command}"


def test_there_are_commands_to_look_at():
    assert len(cases()) > 50


def test_a_wrong_command_would_be_seen():
    with pytest.raises(SystemExit):
        parse(["hypothesis", "conclude", "1", "perhaps", "x"])
    with pytest.raises(AssertionError):
        parse(["run", "--no-such-flag", "t.py"])


@pytest.mark.parametrize("name", [row.name for row in table.ROWS if row.first_screen])
def test_every_verb_of_the_first_screen_is_in_the_skills_texts(name):
    text = "".join(path.read_text() for path in TEXTS[:-1])
    assert f"debug-spyre {name}" in text, name
