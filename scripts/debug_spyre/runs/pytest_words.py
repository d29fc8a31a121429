"""pytest's arguments as words: what selects, what changes behaviour, what is refused and what stands in its place.

The card takes one process and `-k` can't read parametrize ids: such words are refused before anything starts.
The scope of a run is what it selected and the options that change behaviour: figures meet only in one scope.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from debug_spyre.vocabulary.errors import UsageError


class Relation(StrEnum):
    """How one scope stands to another."""

    EQUAL = "equal"
    REORDERED = "reordered"  # the same tests in another order: what ran earlier in the process differs
    SUBSET = "subset"
    SUPERSET = "superset"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Scope:
    """The collected node ids in order, and the behaviour-changing options, sorted."""

    nodeids: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def digest(self) -> str | None:
        """Twelve hex digits over ids (in order) and options; None where nothing is known to be selected."""
        if not self.nodeids:
            return None
        text = json.dumps([list(self.nodeids), list(self.options)], ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """The short form that the journal keeps; the ids themselves stand in the run's evidence."""
        return {"digest": self.digest, "collected": len(self.nodeids), "options": list(self.options)}


def scope_of(nodeids: Iterable[str], options: Iterable[str] = ()) -> Scope:
    """A scope with its options in one order, each once."""
    return Scope(tuple(nodeids), tuple(sorted(set(options))))


def relation(one: Scope, other: Scope) -> Relation:
    """How `one` stands to `other`; other options make them different whatever the ids are."""
    if not one.nodeids or not other.nodeids:
        return Relation.UNKNOWN
    if one.options != other.options:
        return Relation.DIFFERENT
    if one.nodeids == other.nodeids:
        return Relation.EQUAL
    mine, theirs = set(one.nodeids), set(other.nodeids)
    if mine == theirs:
        return Relation.REORDERED
    if mine < theirs:
        return Relation.SUBSET
    if mine > theirs:
        return Relation.SUPERSET
    return Relation.DIFFERENT


def says(found: Relation) -> str:
    """What the relation means for two figures, in words."""
    return {
        Relation.EQUAL: "same scope: the figures can be compared",
        Relation.REORDERED: "same tests in another order: compare outcomes, not magnitudes",
        Relation.SUBSET: "narrower scope: magnitudes may differ alone and in a matrix, do not compare them",
        Relation.SUPERSET: "wider scope: magnitudes may differ alone and in a matrix, do not compare them",
        Relation.DIFFERENT: "different scopes: do not compare the figures",
        Relation.UNKNOWN: "a scope is unknown: do not compare the figures",
    }[found]


NOT_UPSTREAM = "not upstream"
BAD_IN_K = "()=,[]"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TAKE_VALUE = _names(
    "-k -m -p -c -o -W -r -n --tb --maxfail --durations --durations-min --rootdir --confcutdir --basetemp --ignore"
    " --ignore-glob --deselect --import-mode --junitxml --junit-xml --junit-prefix --color --capture --show-capture"
    " --timeout --timeout-method --log-level --log-format --log-date-format --log-file --log-file-level"
    " --log-cli-level --log-cli-format --log-auto-indent --verbosity --config-file --override-ini --pythonwarnings"
    " --numprocesses --dist --tx --maxprocesses --reruns --reruns-delay --count --cov --cov-report --cov-config"
    " --html --keyword --pdbcls --code-highlight --debug --pastebin --lfnf --last-failed-no-failures"
)
_SELECTING = _names("-k -m --deselect --ignore --ignore-glob --keyword")
_SHOWING = _names(
    "-v -vv -vvv -q -qq -l -r -s --tb --color --durations --durations-min --junitxml --junit-xml --junit-prefix"
    " --capture --show-capture --verbosity --verbose --quiet --showlocals --no-header --no-summary --code-highlight"
    " --disable-warnings --disable-pytest-warnings --html --log-file --log-file-level --collect-only --co"
    " --cache-clear --show-progress"
)
_XDIST = _names("-n --numprocesses --dist --tx -f --looponfail --maxprocesses --boxed --forked")


@dataclass(frozen=True, slots=True)
class Word:
    """One argument: an option with its value, or a selection (`option` None)."""

    option: str | None
    value: str | None
    written: tuple[str, ...]  # as it stood on the command line


def split(args: Sequence[str]) -> tuple[Word, ...]:
    """The arguments as options and selections; attached values (`-n4`, `--tb=long`) are taken apart."""
    words: list[Word] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            words.append(Word(None, word, (word,)))
        elif word == "--":
            words += [Word(None, value, (value,)) for value in rest]
            break
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            if equals:
                words.append(Word(name, value, (word,)))
            elif name in _TAKE_VALUE and rest:
                given = rest.pop(0)
                words.append(Word(name, given, (word, given)))
            else:
                words.append(Word(name, None, (word,)))
        elif word[:2] in _TAKE_VALUE and len(word) > 2:
            words.append(Word(word[:2], word[2:].removeprefix("="), (word,)))
        elif word in _TAKE_VALUE and rest:
            given = rest.pop(0)
            words.append(Word(word, given, (word, given)))
        else:
            words.append(Word(word, None, (word,)))
    return tuple(words)


def selections(args: Sequence[str]) -> tuple[str, ...]:
    """The paths and node ids among the arguments."""
    return tuple(word.value or "" for word in split(args) if word.option is None)


def options(args: Sequence[str]) -> tuple[str, ...]:
    """The options that change behaviour: neither selecting (the collected ids say it) nor merely showing."""
    kept = []
    for word in split(args):
        if word.option is None or word.option in _SELECTING or word.option in _SHOWING or _is_ours(word):
            continue
        if _only_letters(word.option, "vqls"):
            continue
        kept.append(word.option if word.value is None else f"{word.option}={word.value}")
    return tuple(sorted(set(kept)))


def has_option(args: Sequence[str], *names: str) -> bool:
    """One of these options is given."""
    return any(word.option in names for word in split(args))


def completed(args: Sequence[str], *, tb: str) -> tuple[str, ...]:
    """The arguments with what the mission always wants: not upstream, and a traceback style, unless given."""
    added: list[str] = []
    if not has_option(args, "-m"):
        added += ["-m", NOT_UPSTREAM]
    if not has_option(args, "--tb"):
        added.append(f"--tb={tb}")
    return (*added, *args)


def check(args: Sequence[str], *, known: Iterable[str] = (), verb: str = "run") -> None:
    """Let the arguments pass, or refuse them with what stands in their place.

    `known` are node ids collected earlier: they make the remedy for a bad `-k` exact.

    Raises:
        UsageError: xdist, a `-k` that pytest can't read, a filter that turns every warning into an error.
    """
    for word in split(args):
        if word.option in _XDIST or _is_xdist_plugin(word):
            _refuse(args, word, verb, f"{_shown(word)} starts several processes, and the card takes one")
        if word.option in {"-k", "--keyword"} and set(word.value or "") & set(BAD_IN_K):
            _refuse_keyword(args, word, verb, known)
        if word.option in {"-W", "--pythonwarnings"} and _is_blanket(word.value or ""):
            what = f"{_shown(word)} turns unrelated warnings into errors; the fallback's own class is what matters"
            _refuse(args, word, verb, what, instead=("--fallback-as-error",))


def _is_ours(word: Word) -> bool:
    return word.option == "-p" and (word.value or "").startswith("debug_spyre_")


def _only_letters(option: str, letters: str) -> bool:
    return not option.startswith("--") and len(option) > 1 and set(option[1:]) <= set(letters)


def _is_xdist_plugin(word: Word) -> bool:
    return word.option == "-p" and (word.value or "").split(".")[0] == "xdist"


def _is_blanket(filter_text: str) -> bool:
    action, _, rest = filter_text.partition(":")
    parts = rest.split(":")
    category = parts[1] if len(parts) > 1 else ""
    return action == "error" and len(parts) > 1 and category in {"UserWarning", "Warning", "builtins.UserWarning"}


def _shown(word: Word) -> str:
    return shlex.join(word.written)


def _refuse(args: Sequence[str], word: Word, verb: str, what: str, *, instead: tuple[str, ...] = ()) -> None:
    kept = [piece for other in split(args) if other != word and other.option not in _XDIST for piece in other.written]
    raise UsageError(what, next=_command(verb, (*instead, *kept)))


def _refuse_keyword(args: Sequence[str], word: Word, verb: str, known: Iterable[str]) -> None:
    found = matching(word.value or "", known)
    what = f"{_shown(word)}: pytest can't read ( ) = , [ ] in -k; full node ids say it"
    kept = [p for o in split(args) if o != word and o.option is not None for p in o.written]
    if found:
        raise UsageError(what, next=_command(verb, (*kept, *found)))
    where = selections(args)
    raise UsageError(
        what,
        details=("  the node ids are not known yet: list them, then give those that are meant",),
        next=_command(verb, (*where, "--collect-only", "-q")),
    )


def matching(expression: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known node ids that the expression means: each of its parts stands in the id (`or` joins alternatives)."""
    alternatives = [[p.strip() for p in part.split(" and ")] for part in expression.split(" or ")]
    return tuple(
        nodeid
        for nodeid in known
        if any(all(_fits(piece, nodeid) for piece in pieces if piece) for pieces in alternatives)
    )


def _fits(piece: str, nodeid: str) -> bool:
    if piece.startswith("not "):
        return piece[4:].strip() not in nodeid
    return piece in nodeid


def _command(verb: str, words: Iterable[str]) -> str:
    return f"debug-spyre {verb} {shlex.join(words)}".rstrip()


def with_nodeids(args: Sequence[str], nodeids: Sequence[str]) -> tuple[str, ...]:
    """The same call for exactly these tests, in this order: options stay, selections and `-k` go."""
    gone = {"-k", "--keyword", "--deselect", "--ignore", "--ignore-glob", "--lf", "--last-failed", "--ff"}
    kept = [p for word in split(args) if word.option is not None and word.option not in gone for p in word.written]
    return (*kept, *nodeids)
