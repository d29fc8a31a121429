"""Whether two failures are the same fault: class and stable words of an error, or the sort of a difference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from debug_spyre.repro.script import Fault
from debug_spyre.vocabulary.evidence import Failure, Stage

_TEXT = '''"""The test below on the CPU: every "spyre" device becomes "cpu", nothing is compiled; the test itself is untouched.
Exit status 0: it passes (the fault lies in torch-spyre's realisation); 1: it fails here too (our own logic); 2: could not run.
"""
import os

os.environ["TORCHDYNAMO_DISABLE"] = "1"
import pytest
import torch
from torch.overrides import TorchFunctionMode

NODES = {nodes!r}


def on_cpu(value):
    spyre = isinstance(value, str) and value.split(":")[0] == "spyre" or getattr(value, "type", "") == "spyre"
    return torch.device("cpu") if spyre else value


class OnCpu(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*map(on_cpu, args), **{{name: on_cpu(value) for name, value in (kwargs or {{}}).items()}})


class Control:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self):
        with OnCpu():
            yield


if __name__ == "__main__":
    status = pytest.main([*NODES, "-m", "not upstream", "-q", "--tb=short", "-p", "no:cacheprovider"], plugins=[Control()])
    raise SystemExit(int(status) if int(status) in (0, 1) else 2)
'''


def control_script(nodeids: tuple[str, ...]) -> str:
    """The script for these node ids; it runs from the checkout's root."""
    return _TEXT.format(nodes=list(nodeids))


_TELLING = re.compile(r"Unsupported|Error|does not support|not implemented|Could not run|Exception", re.IGNORECASE)
_NOISE = re.compile(r"\d|^0x|[\[\](){}<>\"']|/|\\")
SHORTEST = 8
KINDS = {  # inside/debug_spyre_trial.py
    "nan": "NaN for a number",
    "overflow": "the largest number or infinity",
    "lost": "a number for NaN or infinity",
    "value": "other numbers",
    "form": "another shape or type",
}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What must be the same: the kind, the innermost class and words of an error, the sort of a difference.

    `patterns` are those of a whole test's result; `kinds` are the ways in which one op's elements are wrong.
    """

    kind: str  # difference, error, crash, fallback
    error_class: str | None = None
    words: str | None = None
    patterns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def fault(self) -> Fault:
        """What a script has to show."""
        if self.kind == "error":
            return Fault(words=self.words or "", error_class=self.error_class)
        if self.kind == "crash":
            return Fault(error_class="crash")
        return Fault(kinds=self.kinds, fallback=self.kind == "fallback")

    def says(self) -> str:
        """In words."""
        if self.kind == "error":
            return f"{self.error_class or 'an error'} with {self.words!r}"
        if self.kind == "crash":
            return "the process dies"
        if self.kind == "fallback":
            return "a fallback to the CPU"
        more = ", ".join((*self.patterns, *map(KINDS.__getitem__, self.kinds)))
        return "a result that differs" + (f" ({more})" if more else "")


def stable_words(message: str) -> str:
    """The longest run of words without numbers, brackets or paths in the most telling line of an error's text."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)] or lines
    best = ""
    for line in telling[:6]:
        for run in _runs(line):
            if len(run) > len(best):
                best = run
        if len(best) >= 3 * SHORTEST:
            break
    return best


def is_same_refusal(one: str, other: str) -> bool:
    """Two refusals say the same: equal stable words, or nearly."""
    a, b = Fingerprint("error", words=stable_words(one)), Fingerprint("error", words=stable_words(other))
    return agree(a, b)[0]


def _runs(line: str) -> list[str]:
    """Stretches of the line exactly as they stand there, without a noisy word in them."""
    found, begin, end = [], None, 0
    for word in re.finditer(r"\S+", line):
        if _NOISE.search(word.group()):
            if begin is not None:
                found.append(line[begin:end])
            begin = None
        else:
            begin = word.start() if begin is None else begin
            end = word.end()
    if begin is not None:
        found.append(line[begin:end])
    return found


def of_answer(answer: dict[str, Any]) -> Fingerprint | None:
    """What a trial showed; None where it showed nothing."""
    if "crash" in answer:
        return Fingerprint("crash")
    kinds = tuple((answer.get("difference") or {}).get("kinds") or ())
    if "form" in kinds:
        return Fingerprint("difference", kinds=kinds)
    error = answer.get("error")
    if error:
        return Fingerprint("error", error["cls"].rsplit(".", 1)[-1], stable_words(error["message"]))
    if answer.get("exit") == 0 and answer.get("difference"):
        return Fingerprint("difference", kinds=kinds)
    return None


def of_failure(failure: Failure) -> Fingerprint:
    """What a failing test showed."""
    if failure.stage is Stage.FALLBACK and failure.kind.value != "mismatch":
        return Fingerprint("fallback")
    if failure.kind.value == "mismatch":
        return Fingerprint("difference", patterns=pattern_kinds(failure.pattern))
    if failure.kind.value == "crash":
        return Fingerprint("crash")
    name = (failure.inner_class or failure.error_class or "").rsplit(".", 1)[-1] or None
    return Fingerprint("error", name, stable_words(failure.message or ""))


def agree(original: Fingerprint, found: Fingerprint) -> tuple[bool, str]:
    """Whether `found` is the same fault, and why (not)."""
    if original.kind != found.kind:
        return False, f"the original is {original.says()}, this is {found.says()}"
    if original.kind == "error" and original.words and found.words:
        same = original.words in found.words or found.words in original.words or _overlap(original.words, found.words)
        return same, "the same words" if same else f"other words: {found.words!r} instead of {original.words!r}"
    if original.kinds and found.kinds and not set(original.kinds) & set(found.kinds):
        return False, f"wrong in another way: {found.says()} instead of {original.says()}"
    if original.patterns and found.patterns and not set(original.patterns) & set(found.patterns):
        return False, f"another pattern: {', '.join(found.patterns)} instead of {', '.join(original.patterns)}"
    return True, "the same kind of fault"


def _overlap(one: str, other: str) -> bool:
    a, b = set(one.lower().split()), set(other.lower().split())
    return bool(a and b) and len(a & b) / min(len(a), len(b)) >= 0.6


PATTERN_KINDS = (
    "period", "block", "slice", "overflow", "nan", "zeros", "constant", "roll", "transpose", "permute", "scale", "offset",
    "copy",
)  # fmt: skip


def pattern_kinds(text: str | None) -> tuple[str, ...]:
    """Kinds of pattern named in a pattern's words."""
    if not text:
        return ()
    return tuple(kind for kind in PATTERN_KINDS if re.search(rf"\b{kind}", text.lower()))
