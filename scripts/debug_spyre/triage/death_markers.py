"""How a process ended without pytest's summary: faulthandler and pytest-timeout dumps, signals, watchers, cancelled jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from debug_spyre.triage.block import Frame

FATAL = ("Fatal Python error:", "Windows fatal exception:")
TIMEOUT_MARK = re.compile(r"\++ Timeout \++$")
_FAULT_TIMEOUT = re.compile(r"Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$")
_THREAD = re.compile(r"(Current thread|Thread) (?:0x)?[0-9a-f]+(?: \[[^\]]*\])? \(most recent call first\):")
_STACK = re.compile(r"~+ Stack of (.+?) \(\d+\) ~+$")
_FAULT_FRAME = re.compile(r'\s*File "(.{1,400}?)", line (\d{1,9}) in (.+)$')
_STACK_FRAME = re.compile(r'\s*File "(.{1,400}?)", line (\d{1,9}), in (.+)$')
_SIGNAL = re.compile(r"Signal Received: (\d+) \(([^)]+)\)")
LONGEST_LINE = 2000
_FATAL_TEXT = re.compile(
    r"(?:^|\s)(Segmentation fault|access violation|Aborted|Bus error|Illegal instruction|Floating[- ]point exception|Trace/breakpoint trap)$"
)
_BETWEEN = re.compile(
    r"(?:\[gw\d+\] \[ *\d+%\] \w+ )?[^\s\"]+\.py::.*?\s*(\s(?:File \".*|Segmentation fault|Aborted|Bus error)|)$"
)
_SHELL_LINE = re.compile(
    r"(?:^.{0,200}?: line \d+: +\d+ |^/?\S{0,200}: +\d+ |^.{0,200}?\*\*\* \[[^\]]{1,200}\] |^)(Segmentation fault|Aborted|Killed|Bus error|Illegal instruction|Floating point exception|Terminated)(?: +\(core dumped\)| {2,}|$)"
)
_CANCEL = re.compile(
    r"##\[error\]The (?:operation was canceled|job (?:running on|has exceeded|was canceled)|action .{1,80} has timed out)|The operation was canceled"
    r"|has timed out after \d+ minutes|stall-watcher\]|No new output for \d+|timeout: sending signal|SIGNAL EXIT|The runner has received a shutdown signal"
    r"|CANCELLED AT|DUE TO TIME LIMIT|##\[error\]The process .{1,200} because .{0,80}STDIO"
)
_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?[ _-]?(?:code|status)?|return(?:ed)?(?: ?code| status)?|status|\(code|\brc|\*\*\* \[[^\]]{1,200}\] Error)"
    r"(?: was| of|:|=| is)* {0,20}['\"]?(0x[0-9a-fA-F]{8}|-?\d{1,10})\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"(?:died with|received|exit signal|killed by|terminated by|dumped core|\bby) .{0,30}?\b(SIG(?:SEGV|ABRT|BUS|ILL|FPE|KILL))\b"
)
_WORKER = re.compile(r"(?:worker|slave|node) '?\w+'? crashed while running '(.{1,2000})'$", re.IGNORECASE)
_OUT_OF_MEMORY = re.compile(r"OOM[ -]?[Kk]ill|Out of memory: Killed process|oom[_-]kill|Memory cgroup out of memory")
_TOLD_NAMES = {
    "SIGSEGV": "Segmentation fault",
    "SIGABRT": "Aborted",
    "SIGBUS": "Bus error",
    "SIGILL": "Illegal instruction",
    "SIGFPE": "Floating point exception",
    "SIGKILL": "Killed",
}
_NUMBERS = {
    "Segmentation fault": 11,
    "Aborted": 6,
    "Killed": 9,
    "Terminated": 15,
    "Bus error": 7,
    "Illegal instruction": 4,
    "Floating point exception": 8,
    "Floating-point exception": 8,
    "access violation": 11,
    "stack overflow": 11,
}
_WINDOWS = {  # NTSTATUS as the status of a process, and the signal that means the same
    0xC0000005: (11, "Windows fatal exception: access violation"),
    0xC00000FD: (11, "Windows fatal exception: stack overflow"),
    0xC0000374: (6, "Windows fatal exception: heap corruption"),
    0xC0000409: (6, "Windows fatal exception: stack buffer overrun or abort"),
    0xC0000420: (6, "Windows fatal exception: assertion failure"),
    0xC000001D: (4, "Windows fatal exception: illegal instruction"),
    0xC0000094: (8, "Windows fatal exception: integer divide by zero"),
    0xC000013A: (15, "ended by ctrl-C"),
    0x80000003: (6, "Windows fatal exception: breakpoint"),
}
_ENTRANCE = re.compile(
    r"Fatal Python|Windows fatal|crashed while running|(?i:oom[ _-]?kill|out of memory)|\+ Timeout \+|Timeout \(|most recent call first|Stack of|Signal Received|Segmentation fault|Aborted|Killed|Bus error|Illegal instr"
    r"|Floating point exc|Terminated|##\[error\]|stall-watcher|No new output|sending signal|SIGNAL EXIT|shutdown signal|TIME LIMIT|timed out after|(?i:exit[ _-]?(?:code|status)|exited|return ?code|\*\*\* \[|code[ =:]+(?:-10737|32212|0xc0))"
    r"|dumped core|core dumped|SIG[A-Z]{3,4}\b|terminate called|what\(\):|operation was canceled|BACKTRACE|malloc|corrupt|double free|libsenlib|RAS::|CRITICAL"
)
_ABORT_TEXT = re.compile(r"what\(\): +(.*)|(malloc\(\)[^\n]*|free\(\): [^\n]*|double free[^\n]*|corrupted [^\n]*)")


@dataclass(slots=True)
class Dump:
    """One stack dump."""

    kind: str  # fatal, timeout
    text: str
    number: int
    threads: list[tuple[str, list[Frame]]] = field(default_factory=list)
    nodeid: str | None = None
    mark: str = FATAL[0]  # what stands before its text

    @property
    def signal(self) -> int | None:
        """The signal that it names, or what means the same on Windows."""
        code = re.fullmatch(r"code (0x[0-9a-fA-F]+)", self.text)
        windows = _WINDOWS.get(int(code[1], 16)) if code else None
        return windows[0] if windows else _NUMBERS.get(self.text)

    def frames(self) -> list[Frame]:
        """The frames of the thread that counts, innermost last."""
        chosen = [frames for name, frames in self.threads if name in {"current", "MainThread"} and frames]
        chosen = chosen or [frames for _, frames in self.threads if frames]
        return chosen[0] if chosen else []


@dataclass(slots=True)
class Ending:
    """What the text shows about the end of the process; fed with every line outside failure texts."""

    dumps: list[Dump] = field(default_factory=list)
    cancelled: tuple[int, str] | None = None
    signal: int | None = None
    signal_text: tuple[int, str] | None = None
    exit: int | None = None  # the first status that a runner tells
    abort_text: str | None = None
    texts: list[str] = field(default_factory=list)
    crashed: list[tuple[int, str]] = field(default_factory=list)  # tests with which a worker died, without a dump
    _in_dump: bool = False
    _newest_first: bool = False

    def feed(self, number: int, line: str, running: str | None) -> bool:
        """Take in a line; True when it belongs to a dump."""
        if self._in_dump and self._feed_dump(line):
            return True
        if not _ENTRANCE.search(line, 0, 2000):
            return False
        text = line[:2000]
        fatal = next((mark for mark in FATAL if mark in text), None)
        if fatal is not None:
            said = text[text.find(fatal) + len(fatal) :].strip()
            self.dumps.append(Dump("fatal", said, number, nodeid=running, mark=fatal))
            self._in_dump = True
            return True
        if TIMEOUT_MARK.search(text) or _FAULT_TIMEOUT.search(text):
            if not (self.dumps and self.dumps[-1].kind == "timeout" and self.dumps[-1].threads):
                self.dumps.append(Dump("timeout", "Timeout", number, nodeid=running))
            self._in_dump = True
            return True
        if match := _WORKER.search(text):
            unnamed = next((d for d in reversed(self.dumps) if d.kind == "fatal" and d.nodeid is None), None)
            if unnamed is not None:
                unnamed.nodeid = match[1]
            else:
                self.crashed.append((number, match[1]))
        self._feed_end(number, text)
        return False

    def _feed_dump(self, line: str) -> bool:
        dump = self.dumps[-1]
        if "::" in line[:LONGEST_LINE] and (match := _BETWEEN.match(line[:LONGEST_LINE])):
            line = match[1]  # lines of other workers stand between, or in front on one line
            if not line:
                return False
        if not dump.text and (match := _FATAL_TEXT.search(line)):
            dump.text = match[1]
            return True
        if match := _THREAD.match(line):
            dump.threads.append(("current" if match[1] == "Current thread" else "thread", []))
            self._newest_first = True
            return True
        if match := _STACK.match(line):
            dump.threads.append((match[1], []))
            self._newest_first = False
            return True
        if line[:8].lstrip().startswith("File ") and dump.threads:
            pattern = _FAULT_FRAME if self._newest_first else _STACK_FRAME
            if match := pattern.match(line):
                frame = Frame(match[1], int(match[2]), match[3])
                frames = dump.threads[-1][1]
                if len(frames) < 200:
                    if self._newest_first:
                        frames.insert(0, frame)
                    else:
                        frames.append(frame)
            return True
        if TIMEOUT_MARK.search(line[:200]):
            self._in_dump = not dump.threads
            return True
        if (
            not line
            or line[0] == " "
            or line.startswith(("~", "Extension modules", "Current thread's C stack", "Python runtime state"))
        ):
            return True
        self._in_dump = False
        return False

    def _feed_end(self, number: int, text: str) -> None:
        if match := _SIGNAL.search(text):
            if match[1] == "15":
                self.cancelled = self.cancelled or (number, text.strip()[:200])
            else:
                self._signal(number, int(match[1]), match[2])
        elif (match := _SHELL_LINE.match(text)) and match[1] != "Terminated":
            self._signal(number, _NUMBERS.get(match[1], 0), match[1])
        elif match and match[1] == "Terminated":
            self.cancelled = self.cancelled or (number, text.strip()[:200])
        elif match := _TOLD.search(text):
            self._signal(number, _NUMBERS[_TOLD_NAMES[match[1]]], _TOLD_NAMES[match[1]])
        if _OUT_OF_MEMORY.search(text):
            self._signal(number, 9, "Killed (out of memory)")
        if "terminate called" in text:
            self._signal(number, 6, "Aborted")
        if match := _ABORT_TEXT.search(text):
            self.abort_text = self.abort_text or (match[1] or match[2]).strip()[:400]
            if match[2]:
                self._signal(number, 6, "Aborted")
        if _CANCEL.search(text):
            self.cancelled = self.cancelled or (number, text.strip()[:200])
        if match := _EXIT.search(text):
            self._exit(number, int(match[1], 16 if match[1][:2].lower() == "0x" else 10))
        if len(self.texts) < 40:
            self.texts.append(text)

    def _signal(self, number: int, signal: int, text: str) -> None:
        if self.signal_text is None:
            self.signal_text = (number, text)
            self.signal = signal or self.signal

    def _exit(self, number: int, code: int) -> None:
        windows = _WINDOWS.get(code & 0xFFFFFFFF) if abs(code) > 255 else None
        if windows is not None:
            self._signal(number, *windows)
        elif abs(code) > 255:
            return
        self.exit = code if self.exit is None else self.exit
        signal = code - 128 if 128 < code < 160 else -code if -32 < code < 0 else None
        self.signal = self.signal or signal

    @property
    def is_silent(self) -> bool:
        """Nothing says how the process ended."""
        return not self.dumps and self.cancelled is None and self.signal_text is None and self.signal is None
