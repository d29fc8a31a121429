"""A cause that is one call: is it wrong by itself, under which condition, and what goes round it; all measured on the card."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from debug_spyre.examine.condition import Condition
from debug_spyre.examine.features import JsonCall, features, tensor_specs
from debug_spyre.examine.search import Answer, Ask, Found, find
from debug_spyre.examine.variation import Space, contiguous, plain
from debug_spyre.investigate.io.engine import Engine, verdict_of
from debug_spyre.investigate.io.work import Work
from debug_spyre.investigate.ledger import Ledger, packet_of

CHECKED = 4  # border calls that are made again, each in a process of its own
MOST_BEFORE = 96


@dataclass(frozen=True, slots=True)
class Recorded:
    """The call as it was recorded, how it was judged (wrong or refused), and the calls before it."""

    call: JsonCall
    verdict: str
    prelude: tuple[JsonCall, ...] = ()


@dataclass(slots=True)
class CallCause:
    """What was measured of the call. `manner`: wrong-values, refused, order, crash."""

    call: JsonCall  # with its recorded values
    manner: str
    bad: Answer = Answer.WRONG
    found: Found | None = None
    space: Space | None = None
    said: str | None = None
    needs_values: bool = False
    before: tuple[JsonCall, ...] = ()
    ways: list[dict[str, str]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


def examine(work: Work, engine: Engine, recorded: Recorded, seed: int) -> CallCause:
    """The call alone, then its condition, then ways round it."""
    call = recorded.call
    bad = Answer.REFUSED if recorded.verdict == "refused" else Answer.WRONG
    alone = engine.points([call], isolated=True, pattern=True)[0]
    answer = verdict_of(alone)
    cause = CallCause(call, "refused" if bad is Answer.REFUSED else "wrong-values", bad, said=answer.said)
    if "died" in alone:
        cause.manner = "crash"
        return cause
    if answer.answer is not bad:
        return _order(engine, cause, recorded.prelude)
    random_data = plain(call)
    if engine.verdicts([random_data])[0].answer is not bad:
        cause.needs_values = True
        cause.open.append("only with the recorded values: with random ones it is right")
    elif work.has_time(f"the condition of {call['op']}"):
        cause.found, cause.space = _search(engine, random_data, bad, seed)
    cause.ways = _ways_round(engine, cause)
    return cause


def _search(engine: Engine, call: JsonCall, bad: Answer, seed: int) -> tuple[Found, Space]:
    """The condition; searched again with every call in a process of its own where earlier calls turn out to matter."""
    told = engine.ask([{"kind": "space", "call": call}])[0].get("space") or {}
    space = space_from(call, told)
    found = drive(engine, find(space, bad=bad, seed=seed))
    borders = [one for pair in found.borders[:CHECKED] for one in pair]
    if not borders:
        return found, space
    again = engine.verdicts(borders, isolated=True)
    expected = [answer for _ in found.borders[:CHECKED] for answer in (Answer.RIGHT, bad)]
    if all(v.answer is want for v, want in zip(again, expected, strict=True)):
        return found, space
    return drive(engine, find(space, bad=bad, seed=seed, unseen=24), isolated=True), space


def space_from(call: JsonCall, told: dict[str, Any]) -> Space:
    """What can be varied, as the engine told it."""
    place = told.get("dim_place")
    return Space(
        call=call,
        groups=tuple(tuple((int(t), int(d)) for t, d in group) for group in told.get("groups") or ()),
        forms=tuple((str(op), str(form).rstrip("=")) for op, form in told.get("forms") or ()),
        dim_place=place,
        is_list=place is not None and place < len(call["args"]) and isinstance(call["args"][place], list),
        rank=max((len(s["shape"]) for s in tensor_specs(call)), default=0),
    )


def drive(engine: Engine, search: Any, *, isolated: bool = False) -> Found:
    """Make the calls that the search asks for, to its end."""
    ask: Ask = next(search)
    while True:
        try:
            ask = search.send(engine.verdicts(ask.calls, only_shapes=ask.only_shapes, isolated=isolated))
        except StopIteration as end:
            found: Found = end.value
            return found


def _order(engine: Engine, cause: CallCause, prelude: Sequence[JsonCall]) -> CallCause:
    """The call is right alone: which earlier calls does it need? The fewest, found by halving."""
    cause.manner = "order"
    own = [c for c in prelude if packet_of(c["op"]) == packet_of(cause.call["op"])]

    def shows(before: Sequence[JsonCall]) -> bool:
        return bool(before) and verdict_of(engine.points([cause.call], before=before)[0]).answer is cause.bad

    for before in (own[-MOST_BEFORE:], list(prelude)[-MOST_BEFORE:], list(prelude)):
        if shows(before):
            cause.before = tuple(fewest(before, shows))
            return cause
    cause.open.append(f"right when it runs alone, and after the {len(prelude)} calls that were recorded before it")
    return cause


def fewest(items: Sequence[JsonCall], shows: Any) -> list[JsonCall]:
    """A smallest part of the list that still shows it, in order (delta debugging)."""
    kept, parts = list(items), 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[n : n + size] for n in range(0, len(kept), size)]
        smaller = next((c for c in chunks if len(c) < len(kept) and shows(c)), None)
        if smaller is None and parts > 2:
            rests = ([x for m, c in enumerate(chunks) if m != n for x in c] for n in range(len(chunks)))
            smaller = next((rest for rest in rests if shows(rest)), None)
            parts = max(parts - 1, 2) if smaller else parts
        elif smaller:
            parts = 2
        if smaller:
            kept = smaller
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept


def _ways_round(engine: Engine, cause: CallCause) -> list[dict[str, str]]:
    """Other forms of the very call, with its own values, each measured."""
    call = cause.call
    forms: list[tuple[str, JsonCall]] = []
    every = tensor_specs(call)
    if any(s.get("stride") or s.get("offset") for s in every):
        forms.append(("contiguous inputs", contiguous(plain(call))))
    for op, form in cause.space.forms if cause.space else ():
        if op != call["op"]:
            forms.append((f"{op}{' (out=)' if form == 'out' else ''}", {**copy.deepcopy(call), "op": op, "form": form}))
    forms.append(("compiled", {**copy.deepcopy(call), "mode": "compiled"}))
    if packet_of(call["op"]) in {"aten.mul", "aten.add", "aten.maximum", "aten.minimum"} and len(call["args"]) > 1:
        swapped = copy.deepcopy(call)
        swapped["args"][:2] = swapped["args"][1::-1]
        forms.append(("operands exchanged", swapped))
    wide = copy.deepcopy(plain(call))
    for spec in tensor_specs(wide):
        if spec["dtype"] in {"float16", "bfloat16"}:
            spec["dtype"] = "float32"
    if wide != plain(call):
        forms.append(("in float32", wide))
    if cause.found and cause.found.condition and cause.found.borders:
        for term, (right, _) in zip(cause.found.condition.terms, cause.found.borders, strict=False):
            if term.relation == ">" and term.feature.startswith(("size(", "numel(", "rows(")):
                forms.append(
                    (
                        f"in chunks, so that {term.words().replace('longer than', 'at most').replace('more than', 'at most')}",
                        right,
                    )
                )
    answers = engine.points([form for _, form in forms])
    return [
        {"text": text, "measured": "right" if a.get("verdict") == "right" else str(a.get("verdict") or "died")}
        for (text, _), a in zip(forms, answers, strict=True)
    ]


def explains(
    engine: Engine, cause: CallCause, condition: Condition, tests: Sequence[str], ledger: Ledger
) -> tuple[dict[str, int], list[str]]:
    """How the condition judges what it has not seen: all lines of the ledger of this op; and the tests left over."""
    lines = ledger.of_op(packet_of(cause.call["op"]))
    missing = [line for line in lines if not line.out]
    shapes = engine.verdicts([line.call for line in missing], only_shapes=True)
    outs = {id(line): verdict.out for line, verdict in zip(missing, shapes, strict=True)}
    place = cause.space.dim_place if cause.space else None
    predicted = {
        (line.number, line.verdict): condition.holds(
            features(line.call, line.out or outs.get(id(line), ()), dim_place=place)
        )
        for line in lines
    }
    bad = "refused" if cause.bad is Answer.REFUSED else "wrong"
    left = [
        test
        for test in tests
        if not any(predicted.get((m.number, m.verdict)) for m in ledger.met_by(test) if m.verdict == bad)
    ]
    others = [line for line in lines if line.verdict in {bad, "right"}]
    were = [line for line in others if line.verdict == bad]
    wrong = [line for line in others if predicted[line.number, line.verdict] != (line.verdict == bad)]
    numbers = {
        "tests": len(tests) - len(left),
        "of": len(tests),
        "calls": len(others) + (cause.found.unseen if cause.found else 0),
        "predicted_wrong": sum(predicted[x.number, x.verdict] for x in others)
        + (cause.found.unseen_wrong if cause.found else 0),
        "were_wrong": len(were) + (cause.found.unseen_wrong if cause.found else 0),
        "contradictions": len(wrong),
    }
    return numbers, left


def smallest_wrong(cause: CallCause) -> list[JsonCall]:
    """Wrong calls that were tried, the smallest and plainest first: what a script is made of."""
    from math import prod

    if cause.found is None or cause.found.condition is None:
        return [cause.call]
    wrong = [call for call, seen in cause.found.seen if seen.wrong and not call.get("form") and not call.get("mode")]

    def size(call: JsonCall) -> tuple[int, int]:
        every = tensor_specs(call)
        return sum(bool(s.get("stride") or s.get("offset")) for s in every), sum(prod(s["shape"]) for s in every)

    return [*sorted(wrong, key=size)[:8], cause.call]
