"""Largest magnitude along each named axis, device beside reference: periodic rows are seen at a glance."""

from __future__ import annotations

from typing import Any

import numpy as np

from debug_spyre.numerics.formats import Array
from debug_spyre.numerics.pattern import number
from debug_spyre.vocabulary.codec import to_json

MOST_SHOWN = 12
FAR = 4.0


def magnitudes(a: Array, e: Array, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Largest absolute value per index of each axis, of the device's result and of the reference.

    `a`, `e`: arrays of one shape; `names`: names of the axes.
    """
    table = []
    size_a, size_e = (np.abs(x.astype(np.float64)) for x in (a, e))
    for axis, length in enumerate(a.shape):
        others = tuple(i for i in range(a.ndim) if i != axis)
        top_a, top_e = (_largest(x, others) for x in (size_a, size_e))
        rows = [
            {"index": i, "actual": to_json(float(top_a[i])), "expected": to_json(float(top_e[i]))}
            for i in range(length)
        ]
        table.append({"axis": names[axis] if axis < len(names) else str(axis), "values": rows})
    return table


def _largest(size: Array, others: tuple[int, ...]) -> Array:
    clean = np.where(np.isnan(size), np.inf, size)
    largest: Array = clean.max(axis=others, initial=0.0) if others else clean
    return largest


def magnitude_lines(table: list[dict[str, Any]]) -> list[str]:
    """One line per axis: the indices whose largest value is far from the reference's."""
    lines = []
    for axis in table:
        far = [row for row in axis["values"] if _is_far(row)]
        ordinary = [float(row["actual"]) for row in axis["values"] if not _is_far(row)]
        text = f"  {axis['axis']} ({len(axis['values'])}): "
        if not far:
            lines.append(f"{text}magnitudes as the reference's, up to {number(max(ordinary, default=0.0))}")
            continue
        shown = ", ".join(
            f"{row['index']}: {number(float(row['actual']))} for {number(float(row['expected']))}"
            for row in far[:MOST_SHOWN]
        )
        more = f", and {len(far) - MOST_SHOWN} more" if len(far) > MOST_SHOWN else ""
        lines.append(f"{text}{shown}{more}; {len(ordinary)} as the reference")
    return lines


def _is_far(row: dict[str, Any]) -> bool:
    actual, expected = float(row["actual"]), float(row["expected"])
    if actual == expected:
        return False
    return not (actual <= FAR * expected and expected <= FAR * actual)
