"""The search for the smallest size that still shows the fault: pure steps, evaluated elsewhere in batches.

A size is searched k-ary: a batch of sizes is tried at once, so that a few processes suffice. Whether the fault is
monotone in the size is looked at, not assumed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeVar

BATCH, DEAR = 8, 2
STICK = 64  # fp16 elements of one 128-byte stick (torch-spyre, 2026)
Item = TypeVar("Item")


def sizes_to_try(known: Mapping[int, bool], start: int, batch: int = BATCH) -> tuple[int, ...]:
    """The next batch for one size. `known`: size -> still shows the fault; `start` shows it.

    Empty when the smallest failing size is found: the size below it is known to be fine (or it is 1). A `batch` below
    BATCH means that each try is dear: the smallest sizes first, then few between.
    """
    failing = min([s for s, shows in known.items() if shows] + [start])
    if failing <= 1:
        return ()
    fine = [s for s, shows in known.items() if not shows and s < failing]
    if not fine and len([s for s in known if s != start]) == 0:
        return _landmarks(start) if batch >= BATCH else tuple(s for s in (1, 2) if s < start)
    below = max(fine, default=0)
    gap = failing - below
    if gap <= 1:
        return ()
    if gap - 1 <= batch:
        return tuple(range(below + 1, failing))
    step = gap / (batch + 1)
    return tuple(sorted({below + max(1, round(step * k)) for k in range(1, batch + 1)} - {below, failing}))


def _landmarks(start: int) -> tuple[int, ...]:
    """Sizes at which hardware likes to change its mind: one, sticks and their neighbours, powers of two."""
    marks = {1, 2, 3}
    power = 4
    while power < start:
        marks |= {power, power + 1}
        power *= 2
    marks |= {STICK - 1, STICK, STICK + 1, 2 * STICK, 2 * STICK + 1, start // 2, start - 1}
    return tuple(sorted(m for m in marks if 0 < m < start))


def sizes_above(known: Mapping[int, bool], smallest: int) -> tuple[int, ...]:
    """Larger sizes that tell a threshold from a multiple: sticks and their neighbours that were not tried."""
    whole = [(smallest // n + 1) * n for n in (STICK, 2 * STICK)]
    marks = {STICK - 1, STICK, STICK + 1, 2 * STICK, 2 * STICK + 1, 3 * STICK, *whole}
    return tuple(sorted(size for size in marks if size > smallest and size not in known))


def threshold_in_words(known: Mapping[int, bool]) -> str:
    """What the tried sizes say, one of which shows the fault: "fails from 129", or where it is not that simple."""
    failing = sorted(s for s, shows in known.items() if shows)
    fine = sorted(s for s, shows in known.items() if not shows)
    if not fine:
        return f"fails at every size tried ({failing[0]} to {failing[-1]})"
    above = [s for s in fine if s > failing[0]]
    if not above:
        return f"fails from {failing[0]} (fine at {max(fine)})"
    below = [s for s in fine if s < failing[0]]
    step = next((n for n in (STICK, 2 * STICK) if all(s % n == 0 for s in above) and all(s % n for s in failing)), None)
    if step:
        also = f", fine at {', '.join(map(str, below[-3:]))} too" if below else ""
        return f"fails at sizes that are no multiple of {step} (smallest tried: {failing[0]}{also})"
    return f"fails at {failing[0]}, but not at {', '.join(map(str, above[:4]))}: not a simple threshold"


def parts_to_try(items: Sequence[Item], pieces: int) -> tuple[tuple[Item, ...], ...]:
    """What delta debugging tries next: each piece alone, then all but each piece (Zeller and Hildebrandt, 2002)."""
    pieces = min(pieces, len(items))
    edges = [len(items) * n // pieces for n in range(pieces + 1)] if pieces else []
    chunks = [tuple(items[a:b]) for a, b in itertools.pairwise(edges)]
    rest = [tuple(items[:a]) + tuple(items[b:]) for a, b in itertools.pairwise(edges)]
    return tuple(part for part in (*chunks, *(rest if pieces > 2 else ())) if len(part) < len(items))
