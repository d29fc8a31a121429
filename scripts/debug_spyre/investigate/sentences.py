"""A cause in words: one sentence that is as exact as what was measured, the calls as one types them, and what comes next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from debug_spyre.examine.dossier import MOST_POINTS, Cause, FoundCondition
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


def known_limits(op: str, limits: Sequence[Any] = ()) -> list[str]:
    """Known limitations that name the op: their statements."""
    packet = op.split(".")[1].rstrip("_")
    return [x.statement for x in limits if packet in x.statement.lower().split() or f"`{packet}`" in x.statement][:3]


def next_of(causes: Sequence[Cause], left_out: Sequence[str]) -> str:
    """The one thing to do next."""
    if left_out:
        return "debug-spyre investigate --resume"
    proved = next((c for c in causes if c.claim == "cause"), None)
    if proved is not None:
        return f"change the code or the test, then: debug-spyre finish --session {proved.session}"
    open_one = next((c for c in causes if c.session), None)
    return f"debug-spyre hypothesis list --session {open_one.session}" if open_one else "debug-spyre status"
