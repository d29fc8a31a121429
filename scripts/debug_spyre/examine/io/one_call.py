"""A cause that is one call: is it wrong by itself, under which condition, and what goes round it; all measured on the card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from debug_spyre.examine.dossier import part_of_sum
from debug_spyre.examine.features import JsonCall, packet_of, tensor_specs
from debug_spyre.examine.io.engine import Engine, TimeIsUpError, verdict_of
from debug_spyre.examine.search import Answer, Ask, Found, find
from debug_spyre.examine.variation import Space, plain, resized
from debug_spyre.examine.ways import ways_round

SUMS, MOST_SUMMED = {"sum", "mean", "mm", "bmm", "addmm", "matmul"}, 1100
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
    relations: tuple[str, ...] = ()  # how the one earlier call has to differ, in words
    ways: list[dict[str, str]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    not_made: str = ""  # why the call could not be made here: then nothing was measured

    @property
    def is_bad(self) -> bool:
        """The call, or one of its neighbours, is wrong or refused."""
        return self.manner != "right"


def examine(
    engine: Engine,
    recorded: Recorded,
    *,
    seed: int = 0,
    has_time: Callable[[str], bool] = lambda _: True,
    same: Callable[[str, str], bool] = lambda one, other: one == other,
) -> CallCause:
    """The call alone, then its condition, then ways round it."""
    call = recorded.call
    bad = Answer.REFUSED if recorded.verdict == "refused" else Answer.WRONG
    alone = engine.points([call], isolated=True, pattern=True)[0]
    answer = verdict_of(alone)
    cause = CallCause(call, "refused" if bad is Answer.REFUSED else "wrong-values", bad, said=answer.said)
    if "died" in alone:
        cause.manner = "crash"
        return cause
    if answer.answer in {Answer.REFUSED, Answer.WRONG} and answer.answer is not bad:
        bad = cause.bad = answer.answer
        cause.manner = "refused" if bad is Answer.REFUSED else "wrong-values"
    elif answer.answer in {Answer.ILLEGAL, Answer.UNCOMPARED}:
        cause.not_made = answer.said or "it could not be compared"
        cause.open.append(f"the recorded call could not be made again: {answer.said}")
        cause.said = None
        return cause
    elif answer.answer is not bad:
        return _order(engine, cause, recorded.prelude) if recorded.prelude else _healthy(engine, cause, seed)
    if bad is Answer.REFUSED and answer.said:
        said = answer.said
        engine.is_same = lambda other: same(said, other)
    random_data = plain(call)
    if engine.verdicts([random_data])[0].answer is not bad:
        cause.needs_values = True
        cause.open.append("only with the recorded values: with random ones it is right")
    elif has_time(f"the condition of {call['op']}"):
        cause.found, cause.space = _search(engine, random_data, bad, seed)
    cause.said = _contribution(engine, cause) or cause.said
    cause.ways = _measured_ways(engine, cause)
    return cause


def _contribution(engine: Engine, cause: CallCause) -> str | None:
    """Which part of a sum counts, from one-hot inputs; None where it is no sum, or no simple part."""
    packet = packet_of(cause.call["op"]).removeprefix("aten.")
    every = tensor_specs(cause.call)
    if packet not in SUMS or not every or not every[0]["shape"]:
        return None
    long = every[0]["shape"][-1]
    seen = []
    for size in sorted({long, long + 64, 2 * long}):
        if 1 < size <= MOST_SUMMED:
            spans = engine.ask([{"kind": "missing", "packet": packet, "size": size}])[0].get("missing")
            if spans:
                seen.append((size, spans))
    return part_of_sum(seen)


def _healthy(engine: Engine, cause: CallCause, seed: int) -> CallCause:
    """The call is right: is one of its neighbours wrong?"""
    cause.found, cause.space = _search(engine, plain(cause.call), cause.bad, seed)
    cause.manner = "wrong-values" if any(one.wrong for _, one in cause.found.seen) else "right"
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
            cause.relations = tuple(_relations(engine, cause))
            cause.ways = _measured_ways(engine, cause)
            return cause
    cause.open.append(f"right when it runs alone, and after the {len(prelude)} calls that were recorded before it")
    return cause


def _relations(engine: Engine, cause: CallCause) -> list[str]:
    """How the sizes of the one earlier call stand to those of the call: each made shorter, equal and longer in turn."""
    if len(cause.before) != 1 or packet_of(cause.before[0]["op"]) != packet_of(cause.call["op"]):
        return []
    (earlier,) = cause.before
    found = []
    for back in range(-1, -1 - max(len(s["shape"]) for s in tensor_specs(earlier)), -1):
        group, _ = places_at(earlier, back)
        _, size = places_at(cause.call, back)
        if not group or size is None:
            continue
        tried = [(word, n) for word, n in (("shorter", size // 2), ("equal", size), ("longer", 2 * size)) if n > 0]
        answers = [engine.points([cause.call], before=[resized(earlier, group, n)])[0] for _, n in tried]
        shows = [word for (word, _), a in zip(tried, answers, strict=True) if verdict_of(a).answer is cause.bad]
        if 0 < len(shows) < len(tried):
            found.append(f"{'last dimension' if back == -1 else f'dimension {back}'} is {' or '.join(shows)}")
    return found


def places_at(call: JsonCall, back: int) -> tuple[list[tuple[int, int]], int | None]:
    """(tensor, dimension) of all that have the full size at this dimension, counted from the end; and that size."""
    shapes = [list(s["shape"]) for s in tensor_specs(call)]
    sizes = [shape[back] for shape in shapes if len(shape) >= -back]
    if not sizes:
        return [], None
    return [(t, len(s) + back) for t, s in enumerate(shapes) if len(s) >= -back and s[back] == max(sizes)], max(sizes)


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


def _measured_ways(engine: Engine, cause: CallCause) -> list[dict[str, str]]:
    """Other forms of the very call, with its own values, each measured."""
    condition = cause.found.condition if cause.found else None
    ways = ways_round(cause.call, cause.space, condition)
    answers = engine.points([call for _, call in ways], before=cause.before)
    return [
        {"text": text, "measured": str(a.get("verdict") or "died")} for (text, _), a in zip(ways, answers, strict=True)
    ]


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


__all__ = ["CallCause", "Recorded", "TimeIsUpError", "examine", "fewest", "smallest_wrong"]
