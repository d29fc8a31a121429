"""The record of a bisection, as values: runs, revisions that can't be built, what follows from them, and the words for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import log2
from typing import Any

from debug_spyre.fleet.bisection import History, Odds, Tally, end_to_run, groups_of, odds_of, rates_of, sums, to_confirm
from debug_spyre.vocabulary.errors import RefusedError

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


# -- the result, in words and as JSON

MOST = 6


def to_json(
    record: Record, facts: Mapping[str, Any], *, git: Sequence[str] = (), ops: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """`facts`: of the likeliest commit, as git has them; `ops`: what `op` says of the builds on both sides of it."""
    (among, sure), sides = record.groups[0], {r: word for word, r in record.sides()}
    found = sure >= record.confidence
    return {
        "status": "found" if found and len(among) == 1 else "among" if found else "unsettled",
        "commit": dict(facts),
        "among": list(among) if found else [name for group, odds in record.groups if odds >= 0.01 for name in group],
        "confidence": round(sure, 4),
        "wanted": record.confidence,
        "commits": len(record.history.revisions),
        "good": {"revision": record.good, **asdict(record.tally(record.good))},
        "bad": {"revision": record.bad, **asdict(record.tally(record.bad))},
        "tried": [
            {"revision": name, "side": sides.get(name, "bad"), **asdict(tally)}
            for name, tally in record.tallies.items()
        ],
        "untestable": record.untestable,
        "fault": sorted(record.fault),
        "runs": len(record.runs),
        "git": list(git),
        "ops": dict(ops) if ops is not None else None,
    }


def say(record: Record, answer: Mapping[str, Any], *, clone: str) -> list[str]:
    """The answer in a dozen lines."""
    facts, among, sure = answer["commit"], answer["among"], answer["confidence"]
    short = facts["sha"][:12]
    if answer["status"] == "found":
        head = f"{short} is the first commit with the fault, of {answer['commits']} (confidence {_percent(sure)})"
    elif answer["status"] == "among":
        head = f"one of {len(among)} commits that no run tells apart brought the fault (confidence {_percent(sure)}); {short} is the last of them"
    else:
        head = f"not settled: {short} is the likeliest of {answer['commits']} ({_percent(sure)}, wanted {_percent(record.confidence)})"
    lines = [head, f"  {facts['date']} {facts['subject']}"]
    files = facts["files"]
    more = f" and {len(files) - MOST} more" if len(files) > MOST else ""
    lines.append(f"  files: {', '.join(files[:MOST]) or 'none'}{more}")
    if answer["status"] != "found":
        lines.append(f"  among: {', '.join(name[:12] for name in among[:MOST])}{' ...' if len(among) > MOST else ''}")
    tried = {row["revision"]: row for row in answer["tried"]}
    ordered = [name for name in record.history.revisions if name in tried]
    before = [name for name in ordered if tried[name]["side"] == "good"][-1:] or [record.good]
    after = [name for name in ordered if tried[name]["side"] == "bad"][:1]
    lines += [f"  {name[:12]} {record.tally(name).says()}" for name in (*before, *after)]
    lines.append(f"  the fault: {answer['fault'][0][:160] if answer['fault'] else 'unknown'}")
    left = answer["untestable"]
    lines.append(f"  {answer['runs']} runs at {len(tried) + 1} revisions; {len(left)} left out")
    lines += [f"    {name[:12]}: {why[:140]}" for name, why in list(left.items())[:3]]
    lines += _ops(answer["ops"] or {})
    return [*lines, f"next: git -C {clone} show {short}"]


def _ops(ops: Mapping[str, Any]) -> list[str]:
    """The ops that changed between the build before it and its own."""
    if "between" not in ops or "trouble" in ops:
        return [f"  ops: unknown, {ops['trouble']}"] if "trouble" in ops else []
    before, after = (revision[:12] for revision in ops["between"])
    rows = [f"{c['op']} {c['mode']}: {c['kind']}, {c['before']} before, {c['after']} after" for c in ops["changes"]]
    more = [f"    and {len(rows) - MOST} more"] if len(rows) > MOST else []
    return [f"  ops: {len(rows)} changed between {before} and {after}", *(f"    {row}" for row in rows[:MOST]), *more]


def _percent(odds: float) -> str:
    """Never more than it is: 99.9 % is as far as it goes."""
    return f"{min(int(odds * 1000) / 10, 99.9):g} %"
