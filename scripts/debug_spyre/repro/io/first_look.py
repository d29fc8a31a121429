"""The surroundings of a call that the fault needs: nothing, the calls before it, or many tries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from debug_spyre.examine.call import Call, Program
from debug_spyre.examine.io.trials import Trials
from debug_spyre.repro.same_fault import Fingerprint, agree, of_answer
from debug_spyre.repro.script import Fault, script
from debug_spyre.vocabulary.words import RunStatus

TIMES = 4  # further calls before a fault counts as steady
NO_TENSOR = ("'tuple' object has no attribute", "'list' object has no attribute")
REPEAT = 64  # a fault in one call of five is missed by so many once in a million


@dataclass(frozen=True, slots=True)
class Shown:
    """The smallest surroundings in which the call shows the fault; `isolated`: each try needs a fresh process."""

    program: Program
    found: Fingerprint
    isolated: bool = False
    note: str | None = None
    is_slow: bool = False  # a search would take too long


@dataclass(slots=True)
class FirstLook:
    """Tries the call as it was saved, in the order of how much has to stand in the script."""

    trials: Trials
    original: Fingerprint | None
    why_not: str = "the call alone does not show the fault"

    def look(self, call: Call, prelude: tuple[Call, ...]) -> Shown | None:
        """How the fault shows, or None (then `why_not` says what was seen instead)."""
        first = self._ask(Program(call))[0]
        if call.output is None and str((first.get("error") or {}).get("message")).startswith(NO_TENSOR):
            call = replace(call, output=0)  # several results: the first stands for them
            first = self._ask(Program(call))[0]
        if (first.get("difference") or {}).get("exact") and not call.exact:
            call = replace(call, exact=True)
            first = self._ask(Program(call))[0]
        found = self._of(first)
        if found is not None and found.kind == "crash":
            hangs = RunStatus.TIMEOUT.value in str(first.get("crash"))
            note = "it hangs: not made smaller, since each try would last as long" if hangs else None
            return Shown(Program(call), found, isolated=True, note=note, is_slow=hangs)
        again = [self._of(a) for a in self._ask(Program(call), times=TIMES)]
        if found is not None and all(again):
            return Shown(Program(call), found)
        often = Program(call, repeat=REPEAT)
        steady = self._of(self._ask(often)[0])
        if steady is not None and found is not None and not any(again):
            return Shown(Program(call), found, isolated=True, note="shows in the first call of a process only")
        if steady is not None:
            shown = sum(f is not None for f in (found, *again))
            note = f"comes and goes: shown by {shown} of {TIMES + 1} calls, by one or more of {REPEAT}"
            return Shown(often, steady, note=note)
        return self._after(call, prelude) or self._fallback(call, first)

    def _after(self, call: Call, prelude: tuple[Call, ...]) -> Shown | None:
        """With the calls that ran before it in the same process: those of its own op, then all."""
        own = tuple(c for c in prelude if c.op == call.op)
        for before in [own, prelude] if own != prelude else [own]:
            if not before:
                continue
            program = Program(call, prelude=before)
            found = [self._of(answer) for answer in self._ask(program, times=2, isolated=True)]
            if found[0] is not None and all(found):
                return Shown(program, found[0], isolated=True, note="shows only after other calls in the same process")
        return None

    def _fallback(self, call: Call, answer: dict[str, Any]) -> Shown | None:
        found = Fingerprint("fallback")
        if not answer.get("fell_back") or (self.original is not None and self.original.kind != "fallback"):
            return None
        return Shown(Program(call), found)

    def _ask(self, program: Program, *, times: int = 1, isolated: bool = False) -> list[dict[str, Any]]:
        """Each batch is a process of its own; in it the same script may run several times."""
        text = script(program, Fault())
        texts = [f"{text}# try {n + 2}\n" for n in range(times)] if times > 1 else [text]
        return self.trials.evaluate(texts, isolated=isolated)

    def _of(self, answer: dict[str, Any]) -> Fingerprint | None:
        """What the answer shows, if that is the original's fault."""
        found = of_answer(answer)
        if found is None:
            return None
        if self.original is not None:
            same, why = agree(self.original, found)
            if not same:
                self.why_not = f"the call alone shows something else: {why}"
                return None
        return found
