"""The dossier of an investigation: causes with their conditions, proofs and ways round, as frozen values and as words.

Keys of the JSON form are stable: added, never renamed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from debug_spyre.examine.condition import Seen
from debug_spyre.examine.features import Features, JsonCall
from debug_spyre.examine.search import Answer
from debug_spyre.examine.shadow_report import argument_text

MOST_LINES = 11
MOST_POINTS = 80
RAGGED_WORD = re.compile(r"ragged(?P<multiple>\d+)\(.*\)")
LAST_WORD = re.compile(r"size\(\d+,-1\)")


@dataclass(frozen=True, slots=True)
class FoundCondition:
    """`terms`: feature, relation, value, words; `borders`: right and wrong calls; `points`: some of what was tried."""

    text: str
    terms: tuple[dict[str, Any], ...] = ()
    borders: tuple[dict[str, str], ...] = ()
    exact: bool = False
    points: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. `claim` is cause only where a proof and a passing control stand; else located."""

    id: str
    session: str | None
    sentence: str
    op: str | None
    claim: str  # cause, located
    manner: str  # wrong-values, refused, crash, hang, fallback, order, graph-only, host-logic, stale-mark
    tests: tuple[str, ...]
    clusters: tuple[str, ...] = ()
    condition: FoundCondition | None = None
    wrong_values: str | None = None
    explains: dict[str, int] | None = None
    needs_before: tuple[str, ...] = ()
    control: str | None = None  # passes, fails-alike, stopped-elsewhere
    repro: dict[str, Any] | None = None  # path, tier, lines, proved
    ways_round: tuple[dict[str, str], ...] = ()
    known: dict[str, Any] | None = None
    runs: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    call: str | None = None  # the recorded call, as `sweep` and `repro --op` take it
    site: str | None = None
    fallbacks: tuple[str, ...] | None = None  # ops that the shadow run saw fall back; None: it was not run


@dataclass(frozen=True, slots=True)
class Dossier:
    """All causes of one investigation. `complete` False: it was cut off, or is under way."""

    matrix: dict[str, Any]
    seconds: float
    budget: dict[str, Any]
    causes: tuple[Cause, ...] = ()
    unexplained: tuple[str, ...] = ()
    next: str = ""
    complete: bool = True
    unseen: tuple[str, ...] = ()  # processes that tests started and that were not looked into


def dossier_to(dossier: Dossier) -> dict[str, Any]:
    """Plain data, "schema" first."""
    return {"schema": 1, **asdict(dossier)}


def condition_json(condition: FoundCondition) -> dict[str, Any]:
    """A condition as plain data."""
    return asdict(condition)


def dossier_from(data: Mapping[str, Any]) -> Dossier:
    """Inverse of dossier_to; keys of a newer version are left out.

    Raises:
        KeyError, TypeError: a key is missing.
    """
    own = _known(Dossier, data)
    causes = tuple(_cause_from(c) for c in own.pop("causes", ()))
    return Dossier(**own, causes=causes)


def _cause_from(data: Mapping[str, Any]) -> Cause:
    own = _known(Cause, data)
    condition = own.pop("condition", None)
    return Cause(**own, condition=FoundCondition(**_known(FoundCondition, condition)) if condition else None)


def _known(kind: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    return {key: tuple(v) if isinstance(v, list) else v for key, v in data.items() if key in names}


def base_of(op: str) -> str:
    """`silu` of aten.silu_.default and spyre.silu.default."""
    return op.split(".")[1].rstrip("_") if "." in op else op


def own_fallbacks(cause: Cause) -> tuple[str, ...]:
    """The fallbacks to the CPU that are the cause's own op, under whatever namespace and form."""
    return tuple(op for op in cause.fallbacks or () if cause.op and base_of(op) == base_of(cause.op))


def cause_lines(cause: Cause) -> list[str]:
    """At most eleven lines: what it is, when, what it explains, how it is proved, what goes round it, what is open."""
    lines = [f"{cause.id} {cause.claim}: {cause.sentence}"]
    lines.append(f"  {len(cause.tests)} {'test' if len(cause.tests) == 1 else 'tests'}: {_few(cause.tests, 2)}")
    if cause.site:
        lines.append(f"  first at {cause.site}: {cause.call or cause.op}")
    if own_fallbacks(cause):
        lines.append(f"  falls back to the CPU: {_few(own_fallbacks(cause), 2)}")
    lines += _condition_lines(cause)
    if cause.wrong_values:
        lines.append(f"  wrong values: {cause.wrong_values}")
    if cause.needs_before:
        lines.append(f"  only after: {_few(cause.needs_before, 2)}")
    lines.append("  proof: " + _proof(cause))
    good = [way["text"] for way in cause.ways_round if way["measured"] == "right"]
    if cause.ways_round:
        lines.append(f"  ways round, measured right: {'; '.join(good[:4]) or 'none of ' + str(len(cause.ways_round))}")
    known = (cause.known or {}).get("limits") or ()
    if known:
        lines.append(f"  known limitation: {known[0]}")
    similar = (cause.known or {}).get("similar") or ()
    if similar:
        lines.append(f"  seen before: {_few(tuple(similar), 2)}")
    if cause.open:
        lines.append(f"  open: {_few(cause.open, 2)}")
    return lines[:MOST_LINES]


def _condition_lines(cause: Cause) -> list[str]:
    explained = cause.explains
    if cause.condition is None:
        return ["  no condition found"] if cause.manner in {"wrong-values", "refused"} else []
    lines = []
    if cause.condition.borders:
        border = cause.condition.borders[0]
        lines.append(f"  right: {border['right']}; wrong: {border['wrong']}")
    if explained:
        word = "exact" if cause.condition.exact else "not exact"
        lines.append(
            f"  explains {explained['tests']} of {explained['of']} tests; of {explained['calls']} other calls "
            f"{explained['predicted_wrong']} predicted wrong, {explained['were_wrong']} were, "
            f"{explained['contradictions']} contradict it ({word})"
        )
    return lines


def _proof(cause: Cause) -> str:
    control = {
        "passes": "the control passes on the CPU", "fails-alike": "the control fails on the CPU in the same way",
        "stopped-elsewhere": "the control stopped for another reason, so it says nothing", None: "no control",
    }[cause.control]  # fmt: skip
    if cause.repro is None:
        return f"no script; {control}"
    return (
        f"{cause.repro['path']} ({cause.repro['lines']} lines) shows it in {cause.repro['proved']} processes; {control}"
    )


def _few(values: tuple[str, ...], count: int) -> str:
    more = len(values) - count
    return ", ".join(values[:count]) + (f" and {more} more" if more > 0 else "")


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
    told = [(call, _point(names, one)) for call, one in seen.found.seen]
    at_border = [point for call, point in told if any(call in pair for pair in seen.found.borders)]
    points = _each_once([*at_border, *(point for _, point in told)])
    rest = points[len(_each_once(at_border)) :]
    kept = [*points[: len(points) - len(rest)], *rest[:: max(-(-len(rest) // MOST_POINTS), 1)]]
    return FoundCondition(
        text=condition.words().removeprefix("when "),
        terms=tuple(term.to_json() for term in condition.terms),
        borders=tuple({"right": call_text(right), "wrong": call_text(wrong)} for right, wrong in seen.found.borders),
        exact=seen.found.is_exact,
        points=tuple(kept[:MOST_POINTS]),
    )


def _point(names: Sequence[str], one: Seen) -> dict[str, Any]:
    return {"verdict": "wrong" if one.wrong else "right", "values": {n: _drawn(n, one.features) for n in names}}


def _each_once(points: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without repetitions, in their order."""
    return list({repr(point): point for point in points}.values())


def _drawn(name: str, features: Features) -> Any:
    """A feature's value as a strip shows it: of "a last dimension is no multiple of 64" the dimension, not yes or no."""
    ragged = RAGGED_WORD.fullmatch(name)
    lasts = [v for n, v in features.items() if LAST_WORD.fullmatch(n) and isinstance(v, int)]
    if ragged is None or not lasts:
        return features.get(name)
    return next((size for size in lasts if size != 1 and size % int(ragged["multiple"])), max(lasts))


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
