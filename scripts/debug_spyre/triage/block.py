"""The text of one failure, line by line: frames in every --tb style, error lines, what was captured.

Bounded: of long texts the beginning and the end are kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeVar

from debug_spyre.triage.lines import without_engine

T = TypeVar("T")

_SHORT = re.compile(r"(\S.{0,400}?):(\d{1,9}): in (.+)$")
_LONG = re.compile(r"(\S.{0,400}?):(\d{1,9}): ?([A-Za-z_][\w.]*)?$")
_NATIVE = re.compile(r'\s*File "(.{1,400}?)", line (\d{1,9})(?:,)? in (.+)$')
_NATIVE_BARE = re.compile(r'\s*File "(.{1,400}?)", line (\d{1,9})$')
_CAPTURED = re.compile(r"-+ Captured (std(?:out|err)|log) ?(setup|call|teardown)? ?-+$")
_GROUP = re.compile(r"\s+(?:\| ?|\+-\+-[-+ .\d]*|\+ (?=Exception Group))")
_CLASS = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_<]\w*>?)*)(?=:|$|\()")
_CLASS_LIKE = re.compile(
    r"((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Warning|Exit|Interrupt|Failed|Failure|Unsupported|Timeout|Abort|Group))(?=:|$)"
)
_INTEREST = re.compile(
    r"DtException|terminate called|what\(\):|RAS::|CRITICAL|ERRR|ERROR|Error\b|Problem|FallbackWarning|Fatal|Signal Received"
    r"|BACKTRACE|libsenlib|Traceback|malloc|corrupt|double free|LX logout|Exceeded max|Illegal|overflow|Unknown primary"
    r"|exceeds|ffdc|not supported|unsupported|Unsupported|Aborted|WARNING.{0,60}(?:spyre|card|device)"
)
UNWRITTEN = "-1431655766"  # 0xAAAAAAAA
_DEVICE_PATH = r"(?:spyre|_C\b|subprocess|launch|prepare|kernel|jobplan|runtime|device|dxp)"
_MOCK = re.compile(  # replacing settings or objects beside the device is no mock of it
    rf"\b(?:mocker\.)?patch(?:\.object)?\((?:[^)]{{0,200}}{_DEVICE_PATH}|_[A-Z])|monkeypatch\.setattr\([^)]{{0,200}}{_DEVICE_PATH}",
    re.IGNORECASE,
)
_ENTRANCE = (
    "Dt", "terminate", "what()", "RAS:", "CRITICAL", "ERR", "Error", "Problem", "Fallback", "Fatal", "Signal", "BACKTRACE",
    "libsen", "Traceback", "malloc", "corrupt", "double f", "LX ", "Exceeded", "Illegal", "overflow", "Unknown", "exceeds",
    "ffdc", "upported", "Aborted", "WARNING",
)  # fmt: skip
_INNER = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*): ?")
_RAISED = re.compile(r"backend='[^']*' raised:$")
WRAPPERS = frozenset(
    {
        "InductorError",
        "LoweringException",
        "BackendCompilerFailed",
        "SubprocException",
        "TorchRuntimeError",
        "CompilationError",
    }
)
_CHAIN_BREAKS = ("The above exception was the direct cause", "During handling of the above exception")


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def path(self) -> str:
        """The file with forward slashes, as on Windows too node ids have them."""
        return self.file.replace("\\", "/")


@dataclass(slots=True)
class Block:
    """One failure's text, as far as the source shows it."""

    title: str
    phase: str = "call"
    number: int = 0
    nodeid: str | None = None
    frames: list[Frame] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    captured: list[str] = field(default_factory=list)
    context: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)  # text that is neither frame nor error
    location_class: str | None = None  # the class after `file:line: ` in the long style
    in_captured: bool = False
    native: bool = False
    in_errors: bool = False
    chained: bool = False
    mocked: str | None = None  # a source line of the test that replaces parts of the device path
    criticals: int = 0
    is_headless: bool = False  # its heading is not in the text
    unwritten: bool = False  # the fill pattern of fresh device memory stands in a value

    def feed(self, line: str) -> None:
        """Take in the next line of the failure."""
        if UNWRITTEN in line:
            self.unwritten = True
        if not line:
            if self.native and self.in_errors and not self.in_captured:
                _keep(self.errors, "", 120, 60)
            return
        if line[0] == "-" and _CAPTURED.match(line):
            self.in_captured = True
            return
        if line.startswith("##["):
            return  # the runner's own word
        if self.in_captured:
            if line[0] == "C" and line[1:5].isdigit():
                self.criticals += 1  # torch prints whole graphs so: the first lines say it
                if self.criticals <= 3:
                    _keep(self.captured, line[:4000], 40, 20)
            elif _may_interest(line) and _INTEREST.search(line, 0, 4000):
                _keep(self.captured, line[:4000], 40, 20)
            return
        if line[0] == "E" and line[1:3] in {"  ", " ", ""}:
            _keep(self.errors, line[1:].strip(), 120, 60)
            self.in_errors = True
            return
        self._feed_text(line)

    def _feed_text(self, line: str) -> None:
        text = line
        if (text[0] == " " or text[0] == "+") and (match := _GROUP.match(text)):
            text = text[match.end() :]
            if not text:
                return
        if "Traceback (most recent call last)" in text[:80]:
            self.native, self.in_errors = True, False
            return
        if text.startswith(_CHAIN_BREAKS):
            self.chained, self.in_errors = True, False
            return
        if text.lstrip()[:6] == 'File "' and (match := _NATIVE.match(text) or _NATIVE_BARE.match(text)):
            if not self.in_errors or self.native:
                name = match[3] if match.re is _NATIVE else None
                self._frame(Frame(match[1], int(match[2]), name))
            return
        if not self.native and text[0] != " " and text[0] != ">" and ":" in text[:420] and self._located(text):
            return
        if self.native and text[0] != " ":
            self.in_errors = True
            _keep(self.errors, text.strip()[:4000], 120, 60)
            return
        if self.native and self.in_errors:
            _keep(self.errors, text.strip()[:4000], 120, 60)
            return
        text, is_source = text[:400], text[0] in " >"
        if is_source and self.mocked is None and (match := _MOCK.search(text)):
            self.mocked = text.strip("> ")
        _keep(self.context if is_source else self.plain, text.strip("> "), 30, 30)

    def _located(self, text: str) -> bool:
        if match := _SHORT.match(text[:1000]):
            self._frame(Frame(match[1], int(match[2]), match[3]))
            return True
        match = _LONG.match(text[:1000])
        if match and ("/" in match[1] or "." in match[1]):
            self._frame(Frame(match[1], int(match[2])))
            self.location_class = match[3] or self.location_class
            return True
        return False

    def _frame(self, frame: Frame) -> None:
        self.in_errors = False
        _keep(self.frames, frame, 60, 40)

    @property
    def error_class(self) -> str | None:
        """The class as printed in the first error line, up to the colon."""
        for place, text in enumerate(self.errors[:60]):
            if text.startswith(("assert ", "assert(")) or text == "assert":
                return "AssertionError"
            match = _CLASS_LIKE.match(text[:300]) or (_CLASS.match(text[:300]) if place == 0 else None)
            if match and (match.re is _CLASS_LIKE or _is_class(match[1])):
                return match[1]
        return self.location_class

    @property
    def text(self) -> str:
        """All error lines."""
        return "\n".join(self.errors).strip()

    @property
    def inner(self) -> tuple[str | None, str]:
        """What a wrapper wraps: (its class or None, the text without the classes in front)."""
        outer = self.error_class
        text = self.text
        if outer is None:
            return None, text
        if text.startswith(outer):
            text = text[len(outer) :].lstrip(": ")
        inner = None
        name = outer.rsplit(".", 1)[-1]
        while name in WRAPPERS:
            first, _, rest = text.partition("\n")
            if _RAISED.search(first.strip()):
                text = rest.lstrip()
            match = _INNER.match(text)
            if match is None:
                break
            name = match[1].rsplit(".", 1)[-1]
            inner, text = match[1], text[match.end() :]
        return inner, text


def _may_interest(line: str) -> bool:
    """A cheap look before the pattern: a large log is mostly captured lines that say nothing."""
    if line[:6] == "DEBUG ":
        return False
    return any(word in line for word in _ENTRANCE)


def _is_class(name: str) -> bool:
    return "." in name or name[:1].isupper()


def _keep(into: list[T], item: T, first: int, last: int) -> None:
    if len(into) >= first + last:
        del into[first]
    into.append(item)


_LONGEST = 12


@dataclass(slots=True)
class Traces:
    """Feed it lines outside failures; `first` is the traceback that came first."""

    first: Block | None = None
    _open: Block | None = None

    def feed(self, number: int, line: str) -> None:
        """Take in a line."""
        text = without_engine(line)
        if text.startswith(("Traceback (most recent call last)", "  + Exception Group Traceback")):
            self._open = Block(title="traceback", phase="session", number=number)
            if self.first is None:
                self.first = self._open
        if self._open is None or text.startswith("##["):
            self._open = None
            return
        if self._open.in_errors and len(self._open.errors) >= _LONGEST:
            self._open = None
            return
        self._open.feed(text)

    def end(self) -> None:
        """A blank line ends a traceback."""
        self._open = None
