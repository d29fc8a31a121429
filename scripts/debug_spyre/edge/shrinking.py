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

    def shows(self, calls: list[Call]) -> list[bool]:
        """Whether each call shows the fault."""
        answers = self.trials.evaluate([self.text(c) for c in calls])
        return [_shows(a, self.fault) for a in answers]

    def text(self, call: Call) -> str:
        """The script of a candidate."""
        return script(call, self.fault, prelude=self.prelude)

    def run(self) -> None:
        """Search until nothing smaller shows the fault, or the budget is spent."""
        try:
            self._drop_prelude()
            self._simplify()
            for _round in range(2):
                before = self.call
                self._sizes()
                self._simplify()
                if self.call == before:
                    break
        except BudgetSpentError:
            self.spent = True

    def _keep(self, text: str, call: Call, shown: bool) -> bool:
        self.steps.append(Step(text, shown))
        self.say(f"{'kept' if shown else 'dropped'}: {text}")
        if shown:
            self.call = call
        return shown

    def _drop_prelude(self) -> None:
        for number in reversed(range(len(self.prelude))):
            whole = self.prelude
            self.prelude = whole[:number] + whole[number + 1 :]
            shown = self.shows([self.call])[0]
            self.steps.append(Step(f"without the earlier call {whole[number].op}", shown))
            if not shown:
                self.prelude = whole

    def _simplify(self) -> None:
        tried = shrink.simplifications(self.call)
        if not tried:
            return
        for (text, call), shown in zip(tried, self.shows([c for _, c in tried]), strict=True):
            if shown and self.call not in [c for _, c in tried]:
                self._keep(text, call, shown)
            else:
                self.steps.append(Step(text, False))

    def _sizes(self) -> None:
        for group in self._groups():
            self._smallest(group)

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
        start = shrink.places(self.call)[group[0]]
        known: dict[int, bool] = {}
        base = self.call
        while True:
            batch = shrink.sizes_to_try(known, start)
            if not batch:
                break
            calls = [shrink.resize(base, group, size) for size in batch]
            for size, call, shown in zip(batch, calls, self.shows(calls), strict=True):
                known[size] = shown
                if shown and size < shrink.places(self.call)[group[0]]:
                    self._keep(f"{_say(group)} {size}", call, True)
                else:
                    self.steps.append(Step(f"{_say(group)} {size}", shown))
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
