"""Where the next run of a bisection goes: to the revision whose outcome tells most for its price, building included."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import log2

from debug_spyre.fleet.bisection import History, sums

GRID = 32  # revisions that are not built yet are looked at in this many steps of probability
RUNS_A_BUILD = 6.0  # over so many runs the price of a build is spread
LEAST_GAIN = 1e-4  # bits


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known and under way."""

    history: History
    odds: list[float]
    rates: tuple[float, float]  # of failing with and without the fault
    built: Collection[str] = ()
    untestable: Collection[str] = ()  # can't be built, or never shows whether it has the fault
    busy: Collection[str] = ()  # being built
    under_way: Sequence[str] = field(default=())  # revisions of runs that have not ended
    build_price: float = 10.0  # of a build, in runs


def choose(now: Situation) -> str | None:
    """The revision for one more run; None where no run tells anything."""
    history, number = now.history, {name: n for n, name in enumerate(now.history.revisions)}
    likely = sums(history, now.odds)
    known = _Joint(now)
    for name in now.under_way:
        known = known.with_run(number[name]) if name in number else known
    before = known.information()
    best, most = None, LEAST_GAIN
    for name, chance in _candidates(now, likely):
        gain = chance * (known.with_run(number[name]).information() - before)
        price = 1.0 if name in now.built else 1.0 + now.build_price / RUNS_A_BUILD
        if gain / price > most and gain > LEAST_GAIN:
            best, most = name, gain / price
    return best


def _candidates(now: Situation, likely: Sequence[float]) -> list[tuple[str, float]]:
    """(revision, chance that it can be built): all that are built, and some of the others at every step of probability."""
    left_out = {*now.untestable, *now.busy}
    names = now.history.revisions
    found = [(name, 1.0) for name in names if name in now.built and name not in left_out]
    broken = [n for n, name in enumerate(names) if name in now.untestable]
    open_ones = [
        n for n, name in enumerate(names) if name not in left_out and name not in now.built and 0 < likely[n] < 1
    ]
    chances = {n: _builds(n, broken) for n in open_ones}
    if len(open_ones) > 2 * GRID:
        steps = [step / GRID for step in range(1, GRID)]
        nearest = {max(open_ones, key=lambda n: -abs(likely[n] - step)) for step in steps}
        surest = {max(open_ones, key=lambda n: chances[n] * (1 - abs(likely[n] - step))) for step in steps}
        open_ones = sorted(nearest | surest)
    return found + [(names[n], chances[n]) for n in open_ones]


def _builds(index: int, broken: Sequence[int]) -> float:
    """Neighbours of one that can't be built often can't either."""
    nearest = min((abs(index - n) for n in broken), default=None)
    return 1.0 if nearest is None else 1.0 - 0.5**nearest


class _Joint:
    """Commits by the sides on which they lie of the runs that are looked at together."""

    def __init__(self, now: Situation, cells: dict[tuple[bool, ...], list[int]] | None = None) -> None:
        self.now = now
        self.cells = cells or {(): [n for n, weight in enumerate(now.odds) if weight > 1e-9]}

    def with_run(self, index: int) -> _Joint:
        """One run more, at that revision."""
        cells: dict[tuple[bool, ...], list[int]] = {}
        mask = self.now.history.ancestors[index]
        for sides, commits in self.cells.items():
            for commit in commits:
                cells.setdefault((*sides, bool(mask >> commit & 1)), []).append(commit)
        return _Joint(self.now, cells)

    def information(self) -> float:
        """Bits that the outcomes of these runs tell about the commit."""
        with_it, without = self.now.rates
        outcomes: dict[int, float] = {}
        noise = 0.0
        for sides, commits in self.cells.items():
            mass = sum(self.now.odds[n] for n in commits)
            chances = {0: mass}
            for side in sides:
                rate = with_it if side else without
                noise += mass * _entropy(rate)
                chances = {
                    key * 2 + fails: chance * (rate if fails else 1 - rate)
                    for key, chance in chances.items()
                    for fails in (0, 1)
                }
            for key, chance in chances.items():
                outcomes[key] = outcomes.get(key, 0.0) + chance
        return sum(-p * log2(p) for p in outcomes.values() if p > 0) - noise


def _entropy(rate: float) -> float:
    return 0.0 if not 0 < rate < 1 else -rate * log2(rate) - (1 - rate) * log2(1 - rate)
