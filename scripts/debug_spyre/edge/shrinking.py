"""From the call that showed the fault to the smallest one: fills, simpler forms, sizes; every step is kept with its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from debug_spyre.core.repro import shrink
from debug_spyre.core.repro.call import Call, Tensor
from debug_spyre.core.repro.script import Fault, script
from debug_spyre.edge.trials import BudgetSpentError, Trials

MOST_PLACES = 10
MOST_TOGETHER = 4
MOST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One candidate of the search: kept when the fault still showed."""

    text: str
    kept: bool


@dataclass(slots=True)
class Shrinking:
    """The search's state; `call` is the smallest that shows the fault so far."""

    trials: Trials
    fault: Fault
    call: Call
    prelude: tuple[Call, ...] = ()
    steps: list[Step] = field(default_factory=list)
    thresholds: dict[str, str] = field(default_factory=dict)  # by the sizes that change together
    spent: bool = False
    say: Callable[[str], None] = lambda _text: None

    def shows(self, calls: list[Call]) -> list[Call | None]:
        """Of each call the form that shows the fault: as it is, or with other values; None where none does."""
        forms = [shrink.variants(c) for c in calls]
        answers = iter(self.trials.evaluate([self.text(f) for group in forms for f in group]))
        shown = [[form for form in group if _shows(next(answers), self.fault)] for group in forms]
        return [found[0] if found else None for found in shown]

    def text(self, call: Call) -> str:
        """The script of a candidate."""
        return script(call, self.fault, prelude=self.prelude)

    def run(self) -> None:
        """Search until nothing smaller shows the fault, or the budget is spent."""
        try:
            self._drop_prelude()
            self._simplify()
            groups = self._groups()
            for _round in range(MOST_ROUNDS):
                for group in groups:
                    self._smallest(group)
                self._simplify()
                if not self._is_smaller_possible(groups):
                    break
            self._plain()
        except BudgetSpentError:
            self.spent = True

    def _keep(self, text: str, found: Call | None) -> bool:
        self.steps.append(Step(text, found is not None))
        self.say(f"{'dropped' if found is None else 'kept'}: {text}")
        if found is not None:
            self.call = found
        return found is not None

    def _drop_prelude(self) -> None:
        for number in reversed(range(len(self.prelude))):
            whole = self.prelude
            self.prelude = whole[:number] + whole[number + 1 :]
            shown = self.shows([self.call])[0]
            self.steps.append(Step(f"without the earlier call {whole[number].op}", shown is not None))
            if shown is None:
                self.prelude = whole

    def _simplify(self) -> None:
        """Take the first simpler form that shows, until none does."""
        while tried := shrink.simplifications(self.call):
            found = self.shows([c for _, c in tried])
            kept = next((n for n, call in enumerate(found) if call is not None), None)
            for number, (text, _) in enumerate(tried):
                if number != kept:
                    self.steps.append(Step(text, False))
            if kept is None:
                return
            self._keep(tried[kept][0], found[kept])

    def _plain(self) -> None:
        simple = shrink.plain_values(self.call)
        if simple is not None:
            shown = _shows(self.trials.evaluate([self.text(simple)])[0], self.fault)
            self._keep("ones for random numbers", simple if shown else None)

    def _is_smaller_possible(self, groups: tuple[shrink.Group, ...]) -> bool:
        """Whether one step down in any size still shows the fault, now that the others are small: one batch."""
        sizes = shrink.places(self.call)
        down = [shrink.resize(self.call, g, sizes[g[0]] - 1) for g in groups if g[0] in sizes and sizes[g[0]] > 1]
        return bool(down) and any(found is not None for found in self.shows(down))

    def _groups(self) -> tuple[shrink.Group, ...]:
        every = [p for p, size in shrink.places(self.call).items() if size > 1][:MOST_PLACES]
        sizes = shrink.places(self.call)
        texts = {}
        for chosen in _subsets(len(every)):
            group = tuple(every[n] for n in chosen)
            if len({sizes[p] for p in group}) > 1:
                continue
            other = shrink.resize(self.call, group, sizes[group[0]] + 1)
            texts[",".join(map(str, chosen))] = _host_lines(other)
        legal = self.trials.legal_groups(texts)
        return shrink.candidate_groups(self.call, [tuple(every[n] for n in chosen) for chosen in legal])

    def _smallest(self, group: shrink.Group) -> None:
        start = shrink.places(self.call).get(group[0], 1)
        if start <= 1:
            return
        known: dict[int, bool] = {}
        base = self.call
        while True:
            batch = shrink.sizes_to_try(known, start)
            if not batch:
                break
            calls = [shrink.resize(base, group, size) for size in batch]
            for size, found in zip(batch, self.shows(calls), strict=True):
                known[size] = found is not None
                if found is not None and size < shrink.places(self.call)[group[0]]:
                    self._keep(f"{_say(group)} {size}", found)
                else:
                    self.steps.append(Step(f"{_say(group)} {size}", found is not None))
        if known:
            self.thresholds[_say(group)] = shrink.threshold_in_words(known, start)


def choose_fill(trials: Trials, fault: Fault, call: Call, *, prelude: tuple[Call, ...] = ()) -> tuple[Call, list[Step]]:
    """The call with values by seed where the fault survives that, else with the saved values."""
    forms = [(f"values by seed ({fill})", call.map_tensors(partial(_refilled, fill))) for fill in ("randn", "rand")]
    forms.append(("saved values", call))
    steps = []
    texts = [script(c, fault, prelude=prelude) for _, c in forms]
    for (text, form), answer in zip(forms, trials.evaluate(texts), strict=True):
        shown = _shows(answer, fault)
        steps.append(Step(text, shown))
        if shown:
            return form, steps
    return call, steps


def _refilled(fill: str, tensor: Tensor) -> Tensor:
    return replace(tensor, fill=fill, file=None, key=None)


def _shows(answer: dict[str, Any], fault: Fault) -> bool:
    if fault.error_class == "crash":
        return "crash" in answer
    return answer.get("exit") == 0


def _host_lines(call: Call) -> str:
    """Only the host side of a script: its legality is tried on the meta device."""
    lines = script(call, Fault()).splitlines()
    kept = [
        line for line in lines if not line.startswith(("import torch_spyre", "got", "scale", "wrong", "print", "raise"))
    ]
    return "\n".join(kept) + "\n"


def _subsets(count: int) -> list[tuple[int, ...]]:
    import itertools

    found: list[tuple[int, ...]] = []
    for together in range(1, min(count, MOST_TOGETHER) + 1):
        found += itertools.combinations(range(count), together)
    return found


def _say(group: shrink.Group) -> str:
    words = []
    for place in group:
        if place.tensor is not None:
            words.append(f"{'abcdefghijklmnopqrstuvwxyz'[place.tensor % 26]}.shape[{place.dim}]")
        elif place.path is not None:
            words.append(".".join(map(str, place.path)))
    return " = ".join(words)
