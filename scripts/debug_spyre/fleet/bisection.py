"""Which commit brought a fault that may not always show: the odds of every commit, from runs at some of them.

One commit brought it; whatever has that commit in its past has the fault. A revision with the fault fails at a rate that is
the same for all of them, one without it at another (mostly never). Neither rate is known: both are averaged over, with half
of the odds beforehand on "with it, always" and "without it, never". So the confidence follows from the runs alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, lgamma, log
from typing import TypeAlias

from debug_spyre.vocabulary.errors import RefusedError

FAILS_WANTED = 3  # at the bad end
MOST_RUNS = 60  # of an end, but where other revisions have more
GIVE_UP = 12  # runs of the bad end without one failure
DIFFERENCE = 19.0  # odds that both ends fail at different rates
CONFIRMED = 4  # runs on either side of the commit that is named
GOOD_DOUBT = 0.01  # the chance that the good end passes so often with the fault in it
PLAIN = 0.5  # odds beforehand that the fault always shows, and that without it nothing fails


Odds: TypeAlias = Sequence[tuple[tuple[str, ...], float]]  # groups of commits


@dataclass(frozen=True, slots=True)
class Tally:
    """Runs at one revision: `fails` show the fault. Runs that end in another way are in neither number."""

    fails: int = 0
    passes: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.fails + other.fails, self.passes + other.passes)

    @property
    def runs(self) -> int:
        """How many."""
        return self.fails + self.passes

    def says(self) -> str:
        """In words."""
        return f"fails {self.fails} of {self.runs}" if self.fails else f"passes {self.passes} of {self.runs}"


@dataclass(frozen=True, slots=True)
class History:
    """The commits that may have brought the fault, parents before children; the last is the bad end."""

    revisions: tuple[str, ...]
    ancestors: tuple[int, ...]  # of each, itself included: bit n stands for the nth revision

    def has(self, index: int, commit: int) -> bool:
        """The revision at `index` has that commit in its past."""
        return bool(self.ancestors[index] >> commit & 1)


def history_of(lines: Collection[str]) -> History:
    """`lines`: a commit and its parents, children before parents, as `git rev-list --topo-order --parents` prints them."""
    rows = [line.split() for line in reversed(list(lines))]
    number = {row[0]: n for n, row in enumerate(rows)}
    ancestors: list[int] = []
    for n, row in enumerate(rows):
        mask = 1 << n
        for parent in row[1:]:
            if parent in number:
                mask |= ancestors[number[parent]]
        ancestors.append(mask)
    return History(tuple(row[0] for row in rows), tuple(ancestors))


def odds_of(history: History, tallies: Mapping[str, Tally], good_end: Tally) -> list[float]:
    """The probability of each commit to be the one; the tallies at the good end are of a revision without the fault."""
    tried = [(n, tallies[name]) for n, name in enumerate(history.revisions) if name in tallies and tallies[name].runs]
    seen: dict[int, float] = {}  # commits on the same side of all that was tried have the same odds
    keys = [
        sum(history.has(n, commit) << k for k, (n, _) in enumerate(tried)) for commit in range(len(history.revisions))
    ]
    for key in set(keys):
        bad, good = Tally(), good_end
        for k, (_, tally) in enumerate(tried):
            bad, good = (bad + tally, good) if key >> k & 1 else (bad, good + tally)
        seen[key] = _with_it(bad) + _without(good)
    most = max(seen.values())
    weights = [exp(seen[key] - most) for key in keys]
    total = sum(weights)
    return [weight / total for weight in weights]


def sums(history: History, odds: list[float]) -> list[float]:
    """The probability of each revision to have the fault."""
    line = list(accumulate(odds))
    likely = [(n, weight) for n, weight in enumerate(odds) if weight > 1e-12]
    return [
        line[n] if mask == (2 << n) - 1 else sum(weight for commit, weight in likely if mask >> commit & 1)
        for n, mask in enumerate(history.ancestors)
    ]


def rates_of(history: History, odds: list[float], tallies: Mapping[str, Tally], good_end: Tally) -> tuple[float, float]:
    """How often a revision with the fault, and one without it, is expected to fail."""
    best = max(range(len(odds)), key=odds.__getitem__)
    bad, good = Tally(), good_end
    for n, name in enumerate(history.revisions):
        tally = tallies.get(name, Tally())
        bad, good = (bad + tally, good) if history.has(n, best) else (bad, good + tally)
    fail = Tally(1, 0)
    return exp(_with_it(bad + fail) - _with_it(bad)), exp(_without(good + fail) - _without(good))


def groups_of(history: History, odds: list[float], untestable: Collection[str]) -> list[tuple[tuple[str, ...], float]]:
    """Commits that no run can tell apart, since those between them can't be built; the likeliest group first."""
    left_out = {n for n, name in enumerate(history.revisions) if name in untestable}

    def later(commit: int) -> list[int]:
        return [n for n in range(commit, len(odds)) if n not in left_out and history.has(n, commit)]

    groups: dict[tuple[int, ...], list[int]] = {}
    for commit in range(len(odds)):
        key: tuple[int, ...] = (commit,)
        if commit in left_out:
            key = tuple(later(commit))
            if key and key == tuple(later(key[0])):
                key = key[:1]  # as the first that can be built after it
        groups.setdefault(key, []).append(commit)
    found = [(tuple(history.revisions[n] for n in group), sum(odds[n] for n in group)) for group in groups.values()]
    return sorted(found, key=lambda group: -group[1])


def end_to_run(bad: Tally, good: Tally, most: int = 0) -> str | None:
    """Which end needs another run: "bad", "good", or None where both are known well enough.

    `most`: runs at the revision that has most of them. The ends are known at least as well: three failures of three at the
    bad end may be luck, and whatever is taken from luck there would send the search astray.

    Raises:
        RefusedError: the bad end does not fail, or the good end fails like it.
    """
    fewer = "good" if good.runs < bad.runs else "bad"
    if bad.runs >= GIVE_UP and not bad.fails:
        raise RefusedError(f"the bad revision passes {bad.passes} of {bad.runs}: there is no fault to search for")
    if (bad.fails < FAILS_WANTED and bad.runs < MOST_RUNS) or bad.runs < most:
        return "bad"
    if good.runs < most:
        return "good"
    if not good.fails:
        doubt = exp(_with_it(bad + good) - _with_it(bad))
        return "good" if doubt > GOOD_DOUBT and good.runs < MOST_RUNS else None
    if min(good.runs, bad.runs) < GIVE_UP:
        return fewer
    if _with_it(bad) + _without(good) > _with_it(bad + good) + log(DIFFERENCE):
        return None
    if min(good.runs, bad.runs) < MOST_RUNS:
        return fewer
    raise RefusedError(f"the good revision {good.says()} in the same way, the bad one {bad.says()}: no difference")


def to_confirm(history: History, tallies: Mapping[str, Tally], groups: Odds) -> str | None:
    """Before the answer: a revision beside the commit that was found which ran too seldom, for what few runs say may be luck."""
    found = {history.revisions.index(name) for name in groups[0][0]}
    tried = [(n, name) for n, name in enumerate(history.revisions) if name in tallies]
    with_it = [name for n, name in tried if all(history.has(n, commit) for commit in found)]
    without = [name for n, name in tried if not any(history.has(n, commit) for commit in found)]
    for name in with_it[:1]:  # one failure may be of another kind of luck: two are wanted
        if tallies[name].runs < CONFIRMED or (tallies[name].fails < 2 and tallies[name].runs < MOST_RUNS):
            return name
    return next((name for name in without[-1:] if tallies[name].runs < CONFIRMED), None)


def _with_it(tally: Tally) -> float:
    """Log of the chance of these runs where the fault is in."""
    return _mixed(_any_rate(tally), always=not tally.passes)


def _without(tally: Tally) -> float:
    return _mixed(_any_rate(tally), always=not tally.fails)


def _mixed(any_rate: float, *, always: bool) -> float:
    some = log(1 - PLAIN) + any_rate
    return log(PLAIN + exp(some)) if always else some


def _any_rate(tally: Tally) -> float:
    """Log of the chance of a sequence like this one, every rate between 0 and 1 being as likely."""
    return lgamma(tally.fails + 1) + lgamma(tally.passes + 1) - lgamma(tally.runs + 2)
