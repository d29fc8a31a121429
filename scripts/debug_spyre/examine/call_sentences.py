"""What was found of a call in words: one sentence that is as exact as what was measured, and calls as one types them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from debug_spyre.examine.dossier import MOST_POINTS, FoundCondition
from debug_spyre.examine.features import JsonCall
from debug_spyre.examine.search import Answer
from debug_spyre.examine.shadow_report import argument_text

IS = {Answer.WRONG: "is wrong", Answer.REFUSED: "is refused"}


def call_text(call: JsonCall) -> str:
    """aten.mean.dim 'f16[4,129]' '[-1]' True."""
    words = [argument_text(a) for a in call["args"]]
    words += [f"{k}={argument_text(v)}" for k, v in (call.get("kwargs") or {}).items()]
    return " ".join([str(call["op"]), *(shlex.quote(w) for w in words)])


def sentence_of(op: str, seen: Any) -> str:
    """What was found of a call: under which condition, or that none was found. `seen` is a CallCause."""
    name = op.removesuffix(".default")
    if seen.manner == "crash":
        return f"{name} ends its process ({seen.said})"
    if seen.manner == "order":
        if seen.relations:
            how = " and ".join(f"whose {relation}" for relation in seen.relations)
            return f"{name} is wrong after an earlier call in the same process {how}; right alone"
        if seen.before:
            return f"{name} is wrong after {_calls(seen.before)} in the same process, and right alone"
        return f"{name} is wrong in the matrix and right alone; which earlier calls it needs is open"
    how = IS[seen.bad]
    if seen.found is None:
        return f"{name} {how} as it was called" + (" (its recorded values matter)" if seen.needs_values else "")
    if seen.found.condition is None:
        return f"{name} {how} as it was called; no condition found"
    return f"{name} {how} {seen.found.condition.words()}"


def _calls(before: Sequence[JsonCall]) -> str:
    first = call_text(before[0])
    return first if len(before) == 1 else f"{len(before)} calls, {first} first,"


def condition_of(seen: Any) -> FoundCondition | None:
    """The condition as the dossier holds it."""
    if seen.found is None or seen.found.condition is None:
        return None
    condition = seen.found.condition
    names = [term.feature for term in condition.terms]
    points = [
        {"verdict": "wrong" if one.wrong else "right", "values": {n: one.features.get(n) for n in names}}
        for _, one in seen.found.seen
    ]
    step = max(len(points) // MOST_POINTS, 1)
    return FoundCondition(
        text=condition.words().removeprefix("when "),
        terms=tuple(term.to_json() for term in condition.terms),
        borders=tuple({"right": call_text(right), "wrong": call_text(wrong)} for right, wrong in seen.found.borders),
        exact=seen.found.is_exact,
        points=tuple(points[::step][:MOST_POINTS]),
    )


def part_of_sum(seen: Sequence[tuple[int, Sequence[Sequence[int]]]]) -> str | None:
    """Which part of a sum counts: `seen` are sizes with the [start, stop) spans that do not."""
    if not seen or any(len(spans) != 1 or spans[0][1] != size for size, spans in seen):
        return None
    kept = [(size, spans[0][0]) for size, spans in seen]
    if all(start == size // 2 for size, start in kept):
        return "only the first half of the elements counts"
    if len({start for _, start in kept}) == 1:
        return f"only the first {kept[0][1]} elements count"
    return None
