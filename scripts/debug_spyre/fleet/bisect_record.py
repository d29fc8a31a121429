"""What a bisection has seen so far, as values: runs, revisions that can't be built, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from debug_spyre.fleet.bisect_choice import Situation, choose
from debug_spyre.fleet.bisection import (
    History,
    Odds,
    Tally,
    end_to_run,
    groups_of,
    odds_of,
    rates_of,
    to_confirm,
)
from debug_spyre.vocabulary.errors import RefusedError

SKIPPED = 125  # a script's exit status that says "not this revision", as `git bisect run` has it
MOST_OTHERS = 3  # runs that end in another way than the fault's, before the revision is left out


@dataclass(frozen=True, slots=True)
class Seen:
    """One run. `keys`: what its failures are called; none where it passed; None while it goes on."""

    revision: str
    run: str
    keys: tuple[str, ...] | None = None

    @property
    def is_over(self) -> bool:
        """It has ended."""
        return self.keys is not None


@dataclass(frozen=True)
class Record:
    """The whole bisection; `confidence` between 0 and 1, `most` runs. What follows from it is worked out once."""

    good: str
    bad: str
    history: History
    confidence: float
    most: int
    runs: tuple[Seen, ...] = ()
    unbuilt: Mapping[str, str] = field(default_factory=dict)  # revision -> why

    @cached_property
    def fault(self) -> frozenset[str]:
        """What the failures at the bad end are called."""
        return frozenset(key for run in self.runs if run.revision == self.bad for key in run.keys or ())

    @cached_property
    def _ended(self) -> dict[str, list[tuple[str, ...]]]:
        found: dict[str, list[tuple[str, ...]]] = {}
        for run in self.runs:
            if run.keys is not None:
                found.setdefault(run.revision, []).append(run.keys)
        return found

    def tally(self, revision: str, expected: Mapping[str, int] | None = None) -> Tally:
        """Its runs that show the fault or pass. `expected`: runs under way, taken as the ends are thought to be."""
        ended = self._ended.get(revision, ())
        passes, fails = sum(not keys for keys in ended), sum(bool(self.fault & set(keys)) for keys in ended)
        more = (expected or {}).get(revision, 0)
        return Tally(fails + more * (revision == self.bad), passes + more * (revision == self.good))

    def others(self, revision: str) -> list[str]:
        """Failures of another kind."""
        return [keys[0] for keys in self._ended.get(revision, ()) if keys and not self.fault & set(keys)]

    @cached_property
    def untestable(self) -> dict[str, str]:
        """Revisions that say nothing: not built, or failing in another way."""
        found = dict(self.unbuilt)
        for revision in self._ended.keys() - {self.bad, self.good}:
            others = self.others(revision)
            if len(others) >= MOST_OTHERS and len(others) > self.tally(revision).runs:
                found[revision] = f"fails in another way: {others[0]}"
            elif f"exit {SKIPPED}" in others:
                found[revision] = f"the script says so (exit status {SKIPPED})"
        return found

    @cached_property
    def tallies(self) -> dict[str, Tally]:
        """Of the revisions after the good end that were run."""
        return {r: self.tally(r) for r in self._ended if r != self.good and r not in self.untestable}

    @cached_property
    def odds(self) -> list[float]:
        """Of each commit."""
        return odds_of(self.history, self.tallies, self.tally(self.good))

    @cached_property
    def groups(self) -> Odds:
        """Commits that no run tells apart, the likeliest first."""
        return groups_of(self.history, self.odds, self.untestable)

    def next_run(self, built: set[str], under_way: list[str], busy: set[str], build_price: float) -> str | None:
        """The revision of the next run; None where there is none for now, or none at all.

        Raises:
            RefusedError: the ends don't show a difference, or the runs that were allowed are used up.
        """
        if len(self.runs) >= self.most:
            raise RefusedError(f"{self.most} runs are used up (--runs)")
        others = self.others(self.good)
        if len(others) >= MOST_OTHERS:
            raise RefusedError(f"the good revision fails, too, in another way: {others[0]}")
        expected = {end: under_way.count(end) for end in (self.good, self.bad)}
        most = max((tally.runs for tally in self.tallies.values()), default=0)
        end = end_to_run(self.tally(self.bad, expected), self.tally(self.good, expected), most)
        if end:
            return self.bad if end == "bad" else self.good
        if any(expected.values()) and end_to_run(self.tally(self.bad), self.tally(self.good), most):
            return None
        odds, groups = self.odds, self.groups
        if groups[0][1] >= self.confidence:
            wanted = to_confirm(self.history, self.tallies, groups)
            return wanted if wanted not in under_way else None
        rates = rates_of(self.history, odds, self.tallies, self.tally(self.good))
        return choose(
            Situation(self.history, odds, rates, built, self.untestable, busy, under_way, build_price=build_price)
        )

    def sides(self) -> list[tuple[str, str]]:
        """(good|bad|skip, revision) of all that was tried, as the likeliest commit has it."""
        commit = self.history.revisions.index(self.groups[0][0][-1])
        tried = [(n, r) for n, r in enumerate(self.history.revisions) if r in self.tallies and r != self.bad]
        good = [("good", r) for n, r in tried if not self.history.has(n, commit)]
        bad = [("bad", r) for n, r in tried if self.history.has(n, commit)]
        return [*(("skip", r) for r in self.untestable), *good, *reversed(bad)]  # for git the last bad one counts

    def to_json(self) -> dict[str, Any]:
        """What is kept between calls; the history is read again from git."""
        runs = [
            {"revision": r.revision, "run": r.run, "keys": None if r.keys is None else list(r.keys)} for r in self.runs
        ]
        return {"runs": runs, "unbuilt": dict(self.unbuilt)}
