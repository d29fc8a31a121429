"""Repetition, told once: the runs of one verb's machinery, failures in the same words, failures of an earlier run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from debug_spyre.page.page_context import Frame, Item, Link
from debug_spyre.session.state import Run

MACHINERY = frozenset({"repro"})  # verbs that make many runs for one answer
FEWEST_FOLDED, FEWEST_ALIKE = 2, 2
_OF_TEST = re.compile(r"(?P<test>\S*::.*?\]?): (?P<words>.+)")


def batches(items: Sequence[Item]) -> Iterator[Item | list[Run]]:
    """The items, with neighbours that are one verb's machinery for one row as a list."""
    for key, group in groupby(items, key=_machinery):
        members = list(group)
        runs = [item for item in members if isinstance(item, Run)]
        if key is not None and len(runs) >= FEWEST_FOLDED:
            yield runs
        else:
            yield from members


def _machinery(item: Item) -> tuple[str, int | None] | None:
    """Which machinery a run belongs to; None for what a reader asks about by itself."""
    if not isinstance(item, Run) or not item.is_finished or item.name is not None or item.pytest_args is not None:
        return None
    return (item.verb, item.hypothesis) if item.verb in MACHINERY else None


def part(run: Run) -> str:
    """What a run of the machinery was for."""
    if any(word.endswith("debug_spyre_trial.py") for word in run.argv):
        return "trial"
    if any(word.endswith("_control.py") for word in run.argv):
        return "control"
    return "proof"


def earlier(items: Sequence[Item], run: Run) -> list[Run]:
    """The runs before it, newest first."""
    return [item for item in items if isinstance(item, Run) and item.started_seq < run.started_seq]


def same_as(frame: Frame, run: Run, before: Sequence[Run]) -> Link | None:
    """The oldest run that showed all of these failures, where they are several: once told is enough."""
    told = set(run.digest)
    if len(told) < FEWEST_ALIKE:
        return None
    return next((frame.run_link(old.id) for old in reversed(before) if told <= set(old.digest)), None)


def grouped(lines: Sequence[str]) -> list[str]:
    """Failures of several tests in the same words as one line; all others as they are."""
    by_words: dict[str, list[str]] = {}
    for line in lines:
        found = _OF_TEST.match(line)
        by_words.setdefault(found["words"] if found else line, []).append(found["test"] if found else "")
    return [
        f"{tests[0]}: {words}" if len(tests) == 1 and tests[0]
        else f"{len(tests)} tests, {tests[0]} first: {words}" if len(tests) > 1 and tests[0]
        else words
        for words, tests in by_words.items()
    ]  # fmt: skip
