"""The search for the condition of a fault: observe, learn, try to refute, again, until a condition stands.

It only decides which calls to make; whoever makes them sends the answers. `find` is a generator: it yields lists of
calls and is sent a Verdict for each.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from debug_spyre.examine.condition import Condition, Seen, Term, fitting
from debug_spyre.examine.features import Features, JsonCall, Value, features, tensor_specs
from debug_spyre.examine.variation import Draws, Space, drawn, is_small, key_of, one_at_a_time

ROUND = 24
POOL = 320
MOST_ROUNDS = 40
UNSEEN = 200  # calls that must agree before a condition is called exact
EACH_SIDE = 30
GIVE_UP = 3  # rounds in a row without any condition that fits


class Answer(StrEnum):
    """What came of a call; only right and wrong are evidence."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"  # the card raises where the CPU does not
    ILLEGAL = "illegal"  # the op does not take such arguments
    UNCOMPARED = "uncompared"
    SHAPE = "shape"  # only the shapes of its results were asked


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one call, and the shapes and types of its results."""

    answer: Answer
    out: tuple[dict[str, Any], ...] = ()
    said: str | None = None  # the pattern of a wrong result, or the error


@dataclass(frozen=True, slots=True)
class Ask:
    """Calls to be made; `only_shapes`: nothing is run, the shapes of the results are wanted."""

    calls: tuple[JsonCall, ...]
    only_shapes: bool = False


Search = Generator[Ask, "list[Verdict]", "Found"]


@dataclass(frozen=True, slots=True)
class Found:
    """The end of a search. `condition` None: none was found. `unseen` and `contradictions` are of drawn calls."""

    condition: Condition | None
    seen: tuple[tuple[JsonCall, Seen], ...]
    borders: tuple[tuple[JsonCall, JsonCall], ...] = ()  # (right, wrong)
    unseen: int = 0
    unseen_wrong: int = 0
    contradictions: int = 0
    refused: int = 0
    uncompared: int = 0
    why: str = ""

    @property
    def is_exact(self) -> bool:
        """Stood on enough calls that the search had not seen, and both sides were among them."""
        right = self.unseen - self.unseen_wrong
        enough = self.unseen >= UNSEEN and min(right, self.unseen_wrong) >= EACH_SIDE
        return self.condition is not None and not self.contradictions and enough


@dataclass(slots=True)
class _State:
    space: Space
    bad: Answer  # which answer counts as wrong: wrong values, or a refusal
    draws: Draws
    seen: dict[str, tuple[JsonCall, Seen]] = field(default_factory=dict)
    counts: dict[Answer, int] = field(default_factory=dict)

    def take(self, calls: Iterable[JsonCall], verdicts: Iterable[Verdict]) -> list[tuple[JsonCall, Seen]]:
        """Keep what is evidence; returns it."""
        fresh = []
        for call, verdict in zip(calls, verdicts, strict=True):
            self.counts[verdict.answer] = self.counts.get(verdict.answer, 0) + 1
            if verdict.answer is self.bad or verdict.answer is Answer.RIGHT:
                one = call, Seen(self.features(call, verdict), verdict.answer is self.bad)
                self.seen[key_of(call)] = one
                fresh.append(one)
        return fresh

    def features(self, call: JsonCall, verdict: Verdict) -> Features:
        return features(call, verdict.out, dim_place=self.space.dim_place)

    def observed(self) -> list[Seen]:
        return [seen for _, seen in self.seen.values()]

    def bases(self) -> list[JsonCall]:
        """Calls to start from when drawing: the first, and some of both sides."""
        wrong = [call for call, seen in self.seen.values() if seen.wrong]
        right = [call for call, seen in self.seen.values() if not seen.wrong]
        some = [self.draws.one(side) for side in (wrong, wrong, right) if side for _ in range(6)]
        return [self.space.call, *some]


def find(space: Space, *, bad: Answer = Answer.WRONG, seed: int = 0, unseen: int = UNSEEN) -> Search:
    """Search the condition under which calls of the space are `bad`."""
    state = _State(space, bad, Draws(seed))
    yield from _ask(
        state, [c for c in {key_of(c): c for c in (space.call, *one_at_a_time(space))}.values() if is_small(c)]
    )
    yield from _observe(state, 2)
    condition, lost, why = None, 0, "no combination of three features tells wrong from right"
    for _ in range(MOST_ROUNDS):
        fit = fitting(state.observed())
        if not fit:
            lost += 1
            if lost >= GIVE_UP or not any(s.wrong for s in state.observed()):
                return _end(state, None, why)
            yield from _observe(state, 1)
            continue
        lost = 0
        condition = fit[0]
        if (yield from _decide(state, fit)):
            continue
        if (yield from _borders(state, condition)):
            continue
        stood = yield from _refute(state, condition, unseen)
        if stood is not None:
            return _end(state, condition, "", stood)
    return _end(state, None, "a condition that fits was refuted again and again")


def _end(state: _State, condition: Condition | None, why: str, stood: Sequence[Seen] = ()) -> Found:
    return Found(
        condition=condition,
        seen=tuple(state.seen.values()),
        borders=tuple(border_calls(state, condition)) if condition else (),
        unseen=len(stood),
        unseen_wrong=sum(s.wrong for s in stood),
        refused=state.counts.get(Answer.REFUSED, 0) if state.bad is not Answer.REFUSED else 0,
        uncompared=state.counts.get(Answer.UNCOMPARED, 0),
        why=why,
    )


def _ask(state: _State, calls: Sequence[JsonCall]) -> Generator[Ask, list[Verdict], list[tuple[JsonCall, Seen]]]:
    new = [call for call in calls if key_of(call) not in state.seen]
    if not new:
        return []
    verdicts = yield Ask(tuple(new))
    return state.take(new, verdicts)


def _pool(state: _State, count: int) -> Generator[Ask, list[Verdict], list[tuple[JsonCall, Features]]]:
    """Drawn calls that the op takes and that were not made yet, with their features."""
    calls = [c for c in drawn(state.space, state.bases(), state.draws, count) if key_of(c) not in state.seen]
    if not calls:
        return []
    verdicts = yield Ask(tuple(calls), only_shapes=True)
    pairs = zip(calls, verdicts, strict=True)
    return [(call, state.features(call, verdict)) for call, verdict in pairs if verdict.answer is Answer.SHAPE]


def _observe(state: _State, rounds: int) -> Generator[Ask, list[Verdict], None]:
    """Drawn calls, whatever is believed."""
    for _ in range(rounds):
        pool = yield from _pool(state, 2 * ROUND)
        yield from _ask(state, [call for call, _ in pool[:ROUND]])


def _decide(state: _State, fit: Sequence[Condition]) -> Generator[Ask, list[Verdict], bool]:
    """Make calls on which conditions that all fit disagree; whether any could be made."""
    if len(fit) < 2:
        return False
    pool = yield from _pool(state, POOL)
    told: dict[str, JsonCall] = {}
    for other in fit[1:]:
        apart = [call for call, of in pool if fit[0].holds(of) != other.holds(of) and key_of(call) not in told]
        told |= {key_of(call): call for call in apart[:3]}
    asked = yield from _ask(state, list(told.values())[: 2 * ROUND])
    return bool(asked)


def _borders(state: _State, condition: Condition) -> Generator[Ask, list[Verdict], bool]:
    """Halve the gap between right and wrong at each threshold; whether anything was learnt."""
    learnt = False
    for term in condition.terms:
        gap = _gap(state, condition, term)
        if gap is None or not gap[2]:
            continue
        low, high, _ = gap
        pool = yield from _pool(state, POOL)
        pool += yield from _near(state, condition, term, low, high)
        middle = (low + high) / 2
        inside = [
            (abs(float(of[term.feature]) - middle), n, call)
            for n, (call, of) in enumerate(pool)
            if _is_between(of.get(term.feature), low, high) and _others_hold(condition, term, of)
        ]
        asked = yield from _ask(state, [call for _, _, call in sorted(inside)[:6]])
        learnt = learnt or bool(asked)
    return learnt


def _gap(state: _State, condition: Condition, term: Term) -> tuple[float, float, bool] | None:
    """(largest value on one side, smallest on the other, whether something lies between) of a threshold."""
    if term.relation not in {">", "<="} or not isinstance(term.value, (int, float)):
        return None
    others = [s for s in state.observed() if term.feature in s.features and _others_hold(condition, term, s.features)]
    wrong = [float(s.features[term.feature]) for s in others if s.wrong]
    right = [float(s.features[term.feature]) for s in others if not s.wrong]
    if not wrong:
        return None
    if term.relation == ">":
        low, high = max([v for v in right if v < min(wrong)], default=0.0), min(wrong)
    else:
        low, high = max(wrong), min([v for v in right if v > max(wrong)], default=2 * max(wrong) + 2)
    return low, high, high - low > 1


def _others_hold(condition: Condition, term: Term, of: Features) -> bool:
    return all(other.holds(of) for other in condition.terms if other is not term)


def _is_between(value: Value | None, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and low < value < high


def _near(
    state: _State, condition: Condition, term: Term, low: float, high: float
) -> Generator[Ask, list[Verdict], list[tuple[JsonCall, Features]]]:
    """Wrong and right calls near the threshold with one size after another moved into the gap."""
    from debug_spyre.examine.variation import resized

    near = sorted(
        (abs(float(s.features.get(term.feature, 0)) - high), n, call)
        for n, (call, s) in enumerate(state.seen.values())
        if isinstance(s.features.get(term.feature), (int, float)) and _others_hold(condition, term, s.features)
    )
    calls: dict[str, JsonCall] = {}
    for value, _, call in near[:6]:
        for group in state.space.groups:
            for size in _sizes_into(state, call, group, term, (low, high)):
                changed = resized(call, group, size)
                if is_small(changed):
                    calls[key_of(changed)] = changed
        del value
    new = [c for key, c in calls.items() if key not in state.seen]
    if not new:
        return []
    verdicts = yield Ask(tuple(new), only_shapes=True)
    return [(call, state.features(call, v)) for call, v in zip(new, verdicts, strict=True) if v.answer is Answer.SHAPE]


def _sizes_into(
    state: _State, call: JsonCall, group: Sequence[tuple[int, int]], term: Term, gap: tuple[float, float]
) -> list[int]:
    """Sizes of the group that may move the feature into the gap: in proportion, and the middle itself."""
    every = tensor_specs(call)
    if any(t >= len(every) or d >= len(every[t]["shape"]) for t, d in group):
        return []
    now = every[group[0][0]]["shape"][group[0][1]]
    have = state.seen[key_of(call)][1].features.get(term.feature)
    low, high = gap
    middle = (low + high) / 2
    found = {int(middle), int(low) + 1, int(high) - 1}
    if isinstance(have, (int, float)) and have > 0:
        found |= {int(now * target / have) + more for target in (middle, low + 1, high - 1) for more in (0, 1)}
    return sorted(size for size in found if 0 < size < 1 << 22)


def _refute(state: _State, condition: Condition, unseen: int) -> Generator[Ask, list[Verdict], list[Seen] | None]:
    """Fresh calls, half predicted wrong and half right; None where one contradicts, else all that agreed."""
    stood: list[Seen] = []
    dry = 0
    while len(stood) < unseen and dry < 4:
        pool = yield from _pool(state, POOL // 2)
        yes = [call for call, of in pool if condition.holds(of)]
        no = [call for call, of in pool if not condition.holds(of)]
        count = min(ROUND, unseen - len(stood) + 4)
        asked = yield from _ask(state, [*yes[: count // 2], *no[: count - count // 2]])
        dry = dry + 1 if not asked else 0
        stood += [seen for _, seen in asked]
        if any(condition.holds(seen.features) != seen.wrong for _, seen in asked):
            return None
    return stood


def border_calls(state: _State, condition: Condition) -> Iterable[tuple[JsonCall, JsonCall]]:
    """For each term the nearest right and wrong calls across it, all other terms fulfilled."""
    for term in condition.terms:
        others = [(c, s) for c, s in state.seen.values() if _others_hold(condition, term, s.features)]
        right = [(c, s) for c, s in others if not s.wrong]
        wrong = [(c, s) for c, s in others if s.wrong]
        if not right or not wrong:
            continue

        def at(one: tuple[JsonCall, Seen], feature: str = term.feature) -> float:
            value = one[1].features.get(feature)
            return float(value) if isinstance(value, (int, float)) else 0.0

        pairs = (
            (abs(at(r) - at(w)), (_differences(r[0], w[0]), _elements(r[0]) + _elements(w[0])), r[0], w[0])
            for r in right
            for w in wrong
        )
        best = min(pairs, key=lambda p: p[:2])
        yield best[2], best[3]


def _differences(one: JsonCall, other: JsonCall) -> int:
    """How many things differ besides sizes: a border is plain where both calls are of one form, rank and type."""
    a, b = (
        [(s["dtype"], len(s["shape"]), bool(s.get("stride")), bool(s.get("offset"))) for s in tensor_specs(c)]
        for c in (one, other)
    )
    forms: list[bool] = [one["op"] != other["op"], one.get("form") != other.get("form"), len(a) != len(b)]
    return sum(forms) + sum(bool(x != y) for specs in zip(a, b, strict=False) for x, y in zip(*specs, strict=True))


def _elements(call: JsonCall) -> int:
    from math import prod

    return sum(prod(s["shape"]) for s in tensor_specs(call))
