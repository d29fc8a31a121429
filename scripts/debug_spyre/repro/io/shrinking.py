"""From the program that showed the fault to the smallest one: earlier calls, forms, sizes; each step with its answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from debug_spyre.examine.call import Call, Program
from debug_spyre.examine.io.trials import BudgetSpentError, Trials
from debug_spyre.repro import simpler, sizes
from debug_spyre.repro.script import Fault, host_script, script
from debug_spyre.repro.sizes import Group, offsets, places, resize, says, smallest_groups, tied, value_at, without_first
from debug_spyre.repro.writing import by_seed

MOST_PLACES = 10
MOST_TOGETHER = 4
MOST_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One candidate of the search: kept when the fault still showed."""

    text: str
    kept: bool


@dataclass(slots=True)
class Shrinking:
    """The search's state; `program` is the smallest that shows the fault so far.

    `isolated`: what ran before in a process matters, so that each candidate needs one of its own.
    """

    trials: Trials
    fault: Fault
    program: Program
    isolated: bool = False
    steps: list[Step] = field(default_factory=list)
    tried: dict[Group, dict[int, bool]] = field(default_factory=dict)  # sizes that change together: which show it
    spent: bool = False
    say: Callable[[str], None] = lambda _text: None

    def shows(self, programs: Sequence[Program]) -> list[Program | None]:
        """Of each the form that shows the fault: as it is, or with other values; None where none does.

        Where each try is dear, other values are tried only for what does not show as it is.
        """
        if not self.fault.is_difference:
            return self._first_shown([(p,) for p in programs])
        forms = [simpler.variants(p, self.fault.kinds) for p in programs]
        if not self.isolated:
            return self._first_shown(forms)
        found = self._first_shown([group[:1] for group in forms])
        others = iter(self._first_shown([group[1:] for group, seen in zip(forms, found, strict=True) if seen is None]))
        return [next(others) if seen is None else seen for seen in found]

    def _first_shown(self, forms: Sequence[tuple[Program, ...]]) -> list[Program | None]:
        answers = iter(self.trials.evaluate([self.text(f) for group in forms for f in group], isolated=self.isolated))
        shown = [[form for form in group if shows(next(answers), self.fault)] for group in forms]
        return [found[0] if found else None for found in shown]

    @property
    def thresholds(self) -> dict[str, str]:
        """From which size on it fails, by the sizes that change together."""
        return {says(group): sizes.threshold_in_words(known) for group, known in self.tried.items()}

    def text(self, program: Program) -> str:
        """The script of a candidate."""
        return script(program, self.fault)

    def run(self) -> None:
        """Search until nothing smaller shows the fault, or the budget is spent."""
        try:
            self._fewer_calls()
            self._values()
            self._simplify()
            groups = self._groups()
            for _round in range(MOST_ROUNDS):
                for group in groups:
                    self._smallest(group)
                before = self.program
                self._simplify()
                groups = self._renamed(groups, before)
                if not self._is_smaller_possible(groups):
                    break
            self._look_above()
            self._plain()
        except BudgetSpentError:
            self.spent = True

    def _keep(self, text: str, found: Program | None) -> bool:
        self.steps.append(Step(text, found is not None))
        self.say(f"{'dropped' if found is None else 'kept'}: {text}")
        if found is not None:
            self.program = found
        return found is not None

    def _fewer_calls(self) -> None:
        """Delta debugging of the earlier calls."""
        pieces = 2
        while self.program.prelude:
            whole = self.program.prelude
            tried = [(), *sizes.parts_to_try(whole, pieces)]
            answers = self.shows([replace(self.program, prelude=part) for part in tried])
            shown = [p for p in answers if p is not None]
            if shown:
                best = min(shown, key=lambda p: len(p.prelude))
                self._keep(f"{len(best.prelude)} of {len(whole)} earlier calls", best)
                pieces = 2
            elif pieces >= len(whole):
                self._keep(f"fewer than {len(whole)} earlier calls", None)
                return
            else:
                pieces = min(2 * pieces, len(whole))

    def _values(self) -> None:
        """Values by seed where the fault survives that, else what was saved."""
        if not any(t.fill == "file" for t in self.program.tensors()):
            return
        forms = simpler.with_fills(self.program)
        answers = self.trials.evaluate([self.text(p) for _, p in forms], isolated=self.isolated)
        for (text, form), answer in zip(forms, answers, strict=True):
            if self._keep(text, form if shows(answer, self.fault) else None):
                return

    def _simplify(self) -> None:
        """Take the first simpler form that shows, until none does."""
        while tried := simpler.simplifications(self.program):
            found = self.shows([p for _, p in tried])
            kept = next((n for n, p in enumerate(found) if p is not None), None)
            for number, (text, _) in enumerate(tried):
                if number != kept:
                    self.steps.append(Step(text, False))
            if kept is None:
                return
            self._keep(tried[kept][0], found[kept])

    def _plain(self) -> None:
        plain = simpler.plain_values(self.program)
        if plain is not None:
            answer = self.trials.evaluate([self.text(plain)], isolated=self.isolated)[0]
            self._keep("ones for random numbers", plain if shows(answer, self.fault) else None)

    def _is_smaller_possible(self, groups: Sequence[Group]) -> bool:
        """Whether one step down in any size still shows the fault, now that the others are small: one batch."""
        down = [
            resize(self.program, g, value_at(self.program, g[0]) - 1)
            for g in groups
            if value_at(self.program, g[0]) > 1
        ]
        return bool(down) and any(found is not None for found in self.shows(down))

    def _groups(self) -> tuple[Group, ...]:
        """What can change together: in the judged call, the same in earlier calls of its op, and in each of these."""
        program = self.program
        own = self._groups_of(program.call, 0)
        found = [group for g in own for group in (*tied(program, g), g)]
        for number, call in enumerate(program.prelude):
            if call not in program.prelude[:number]:
                equal = [n - len(program.prelude) for n, other in enumerate(program.prelude) if other == call]
                own = self._groups_of(call, equal[0])
                found += [tuple(replace(place, call=n) for n in equal for place in group) for group in own]
        found += [(place,) for place in offsets(program.call)]
        return tuple(dict.fromkeys(found))

    def _renamed(self, groups: Sequence[Group], before: Program) -> tuple[Group, ...]:
        """The groups once tensors have lost leading dimensions; what was found for them keeps its sense."""
        old, new = before.call.tensors(), self.program.call.tensors()
        if len(old) != len(new):
            self.tried.clear()
            return self._groups()
        lost = [len(a.shape) - len(b.shape) for a, b in zip(old, new, strict=True)]
        self.tried = {left: known for g, known in self.tried.items() if (left := without_first(g, lost))}
        return tuple(left for g in groups if (left := without_first(g, lost)))

    def _groups_of(self, call: Call, number: int) -> tuple[Group, ...]:
        sizes = places(call)
        every = [p for p, size in sizes.items() if size > 1][:MOST_PLACES]
        texts = {}
        for chosen in _subsets(len(every)):
            group = tuple(every[n] for n in chosen)
            if len({sizes[p] for p in group}) > 1:
                continue
            larger = resize(Program(_seeded(call)), group, sizes[group[0]] + 1)
            texts[",".join(map(str, chosen))] = host_script(larger.call)
        legal = self.trials.legal_groups(texts) if texts else []
        found = smallest_groups(Program(call), [tuple(every[n] for n in chosen) for chosen in legal])
        return tuple(tuple(replace(p, call=number) for p in group) for group in found)

    def _smallest(self, group: Group) -> None:
        start = value_at(self.program, group[0])
        lowest = 0 if group[0].is_offset else 1
        if start <= lowest or len({value_at(self.program, p) for p in group}) > 1:
            return
        known: dict[int, bool] = {}
        base = self.program
        while batch := sizes.sizes_to_try(known, start, sizes.DEAR if self.isolated else sizes.BATCH):
            found = self.shows([resize(base, group, size) for size in batch])
            for size, smaller in zip(batch, found, strict=True):
                known[size] = smaller is not None
                self.steps.append(Step(f"{says(group)} {size}", smaller is not None))
                if smaller is not None and size < value_at(self.program, group[0]):
                    self.program = smaller
        if not known:
            return
        self.say(f"{says(group)}: {value_at(self.program, group[0])} of {start}")
        if value_at(self.program, group[0]) < start:  # what fewer of them did alone is out of date
            self.tried = {other: sizes for other, sizes in self.tried.items() if not set(other) < set(group)}
        self.tried[group] = {start: True, **known, **{s: k for s, k in self.tried.get(group, {}).items() if s > start}}

    def _look_above(self) -> None:
        """Whether larger sizes fail, too, now that the others are small: one batch for all."""
        wanted = [
            (group, size)
            for group, known in self.tried.items()
            if not group[0].is_offset and not self.isolated
            for size in sizes.sizes_above(known, value_at(self.program, group[0]))
        ]
        answers = self.shows([resize(self.program, group, size) for group, size in wanted]) if wanted else []
        for (group, size), found in zip(wanted, answers, strict=True):
            self.tried[group][size] = found is not None
            self.steps.append(Step(f"{says(group)} {size}", found is not None))


def shows(answer: dict[str, Any], fault: Fault) -> bool:
    """Whether a trial showed the fault, in one of its ways."""
    if fault.error_class == "crash":
        return "crash" in answer
    if answer.get("exit") != 0:
        return False
    kinds = (answer.get("difference") or {}).get("kinds") or ()
    return not fault.kinds or not kinds or bool(set(kinds) & set(fault.kinds))


def _seeded(call: Call) -> Call:
    """Sizes above those that were saved are legal or not by their shapes alone."""
    return call.map_tensors(lambda t: by_seed(t) if t.fill == "file" else t)


def _subsets(count: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for together in range(1, min(count, MOST_TOGETHER) + 1):
        found += itertools.combinations(range(count), together)
    return found
