"""Integer and bool tensors (masks, indices, selectors): which device one belongs to which reference, and what differs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from debug_spyre.numerics.formats import Values

_DEVICE = {"dev", "device", "spyre", "actual", "act", "out", "got", "result", "card", "test"}
_REFERENCE = {"cpu", "ref", "reference", "expected", "exp", "golden", "want", "host", "native"}


@dataclass(frozen=True, slots=True)
class Difference:
    """Two integer or bool tensors that should be equal and aren't."""

    name: str
    other: str
    count: int
    total: int
    index: tuple[int, ...]
    text: str


def stem_of(name: str) -> tuple[str, bool]:
    """(the name without the words for a device, whether it is the reference's)."""
    words = [w for w in re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", name) if w]
    plain = [w.lower() for w in words]
    return "_".join(w for w in plain if w not in _DEVICE | _REFERENCE), any(w in _REFERENCE for w in plain)


def couples(tensors: Mapping[str, Values]) -> list[tuple[str, str]]:
    """Pairs (device's name, reference's name) of tensors whose names differ only in the words for a device."""
    found = []
    names = list(tensors)
    for position, one in enumerate(names):
        for other in names[position + 1 :]:
            (stem, is_reference), (second, other_is) = stem_of(one), stem_of(other)
            alike = stem and stem == second and is_reference != other_is
            if alike and tensors[one].array.shape == tensors[other].array.shape:
                found.append((other, one) if is_reference else (one, other))
    return found


def first_difference(pairs: Sequence[tuple[str, Values, str, Values]]) -> Difference | None:
    """The first pair of integer or bool tensors that differ, in words; None if all are equal.

    `pairs`: (device's name, its values, reference's name, its values); pairs of floats or of other shapes are skipped.
    """
    for name, a, other, e in pairs:
        if "f" in {a.format.kind, e.format.kind} or a.array.shape != e.array.shape:
            continue
        wrong = a.array != e.array
        count = int(np.count_nonzero(wrong))
        if not count:
            continue
        place = int(np.argmax(wrong.reshape(-1)))
        index = tuple(int(i) for i in np.unravel_index(place, wrong.shape))
        values = a.array.reshape(-1)[place].item(), e.array.reshape(-1)[place].item()
        at = f"({', '.join(map(str, index))})"
        text = f"{a.dtype} tensor {name} differs from {other} in {count:,} of {wrong.size:,} places, first at {at}: "
        return Difference(name, other, count, wrong.size, index, f"{text}{values[0]} for {values[1]}")
    return None
