"""Which earlier tests spoil a later one: the smallest set found by delta debugging over the order, within a budget.

An answer is minimal only where the search came to its end; where the budget ended it, that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spoilers:
    """The set found, in running order. `shown`: the whole of what ran before did spoil it, seen again."""

    tests: tuple[str, ...]
    shown: bool
    complete: bool  # taking any one of them away cures it (False: the budget was used up first)
    tries: int


class _SpentError(Exception):
    """No try is left."""


def smallest(before: Sequence[str], spoils: Callable[[tuple[str, ...]], bool], *, budget: int) -> Spoilers:
    """The smallest subset of `before` (its order kept) for which `spoils` still answers yes, in `budget` tries."""
    tries = 0
    known: dict[tuple[str, ...], bool] = {}

    def ask(tests: Sequence[str]) -> bool:
        nonlocal tries
        key = tuple(tests)
        if key not in known:
            if tries >= budget:
                raise _SpentError
            tries += 1
            known[key] = spoils(key)
        return known[key]

    current = list(before)
    try:
        if not current or not ask(current):
            return Spoilers((), shown=False, complete=False, tries=tries)
        parts = 2
        while len(current) > 1:
            chunks = _chunks(current, parts)
            found = next((c for c in reversed(chunks) if ask(c)), None)
            if found is not None:
                current, parts = found, 2
                continue
            rests = [[t for other in chunks if other is not c for t in other] for c in chunks] if parts > 2 else []
            rest = next((r for r in rests if ask(r)), None)
            if rest is not None:
                current, parts = rest, max(parts - 1, 2)
            elif parts >= len(current):
                break
            else:
                parts = min(parts * 2, len(current))
    except _SpentError:
        return Spoilers(tuple(current), shown=True, complete=False, tries=tries)
    return Spoilers(tuple(current), shown=True, complete=True, tries=tries)


def _chunks(tests: list[str], parts: int) -> list[list[str]]:
    size, more = divmod(len(tests), parts)
    chunks, start = [], 0
    for number in range(parts):
        end = start + size + (1 if number < more else 0)
        chunks.append(tests[start:end])
        start = end
    return [chunk for chunk in chunks if chunk]
