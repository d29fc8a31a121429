"""One pytest session of a log, as the stream fills it, failure by failure; and several sessions in one text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from debug_spyre.triage.block import Block
from debug_spyre.triage.death_markers import Ending
from debug_spyre.triage.nodeids import file_of
from debug_spyre.triage.sections import BAD_WORDS, Progress, failure_title, is_name, opens_failure, phase_and_name
from debug_spyre.vocabulary.evidence import Counts, Failure, Outcome, SessionCounts


@dataclass(slots=True)
class SummaryLine:
    """One line of the short summary, with the lines of its message that follow."""

    word: str
    text: str
    number: int
    more: list[str] = field(default_factory=list)
    nodeid: str | None = None

    @property
    def message(self) -> str:
        """What stands behind the test's name; nothing where only the beginning of a class's name is left."""
        name = self.nodeid or ""
        text = self.text[len(name) :].removeprefix(" - ") if self.text.startswith(name) else ""
        return "" if text.endswith("...") and ":" not in text else text


@dataclass(slots=True)
class Session:
    """One pytest session of a log."""

    number: int
    progress: Progress = field(default_factory=Progress)
    ending: Ending = field(default_factory=Ending)
    blocks: list[Block] = field(default_factory=list)
    one_liners: list[Block] = field(default_factory=list)  # --tb=line
    summary: list[SummaryLine] = field(default_factory=list)
    counts: Counts | None = None
    maybe: Counts | None = None
    rootdir: str | None = None
    internal: Block | None = None
    interrupted: tuple[int, str] | None = None
    has_header: bool = False
    begun: bool = False
    is_guessed: bool = False  # it began without a heading
    begun_at_once: int = 1  # sessions whose lines stand among each other
    ended: int = 0  # how many of them printed their counts
    stream: str = ""  # what tells its lines from those of another process in the same text
    counts_lines: list[str] = field(default_factory=list)

    @property
    def is_shown(self) -> bool:
        """The text shows a session; lines that only look like progress (a table, say) are none."""
        if self.is_guessed and self.counts is None and not self.blocks and not self.summary and self.ending.is_silent:
            return False
        return self.begun or self.internal is not None or not self.ending.is_silent

    @property
    def is_untouched(self) -> bool:
        """No test of it has an outcome yet, and nothing says that it ended."""
        done = self.progress.outcomes or self.progress.letters or self.blocks or self.summary
        return not done and self.counts is None and self.interrupted is None and self.ending.is_silent

    @property
    def known_bad(self) -> int:
        """Failures that have a text or a summary line."""
        named = sum(line.word in BAD_WORDS for line in self.summary)
        return max(len(self.blocks), named, len(self.one_liners))

    @property
    def has_nothing(self) -> bool:
        """The counts say that no test ran, and nothing failed before."""
        return self.counts == Counts() and not self.blocks and self.internal is None


_FEWEST_LETTERS = 3
_IN_ORDER = (
    Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.XFAILED, Outcome.XPASSED,
)  # fmt: skip


def listed_sessions(sessions: Sequence[Session], source: str | None) -> tuple[SessionCounts, ...]:
    """Each of several sessions; one alone needs no list."""
    if len(sessions) < 2:
        return ()
    return tuple(SessionCounts(source, s.number, _name(s), s.counts, s.ending.exit) for s in sessions)


def totals(sessions: Sequence[Session], failures: Sequence[Failure]) -> Counts | None:
    """The counts of all sessions together; a session whose tests all run again later counts with the later one.

    Never fewer failures than there are failing tests: ranks that run the same tests may fail in different ones.
    """
    counted = [s for s in sessions if s.counts is not None]
    if not counted:
        return None
    last = [s for place, s in enumerate(counted) if not any(_again(s, later) for later in counted[place + 1 :])]
    bad = {f.nodeid for f in failures if f.phase == "call" and "flake" not in f.tags}
    once = reduce(Counts.plus, (s.counts for s in last if s.counts))
    return once if once.failed >= len(bad) else reduce(Counts.plus, (s.counts for s in counted if s.counts))


def seen_outcomes(sessions: Sequence[Session], failures: Sequence[Failure]) -> Counts | None:
    """What a text without any counts shows of its tests: outcomes by name, or letters."""
    found = Counts()
    for session in sessions:
        named = Counter(session.progress.outcomes.values())
        letters, words = session.progress.letters, Counter(line.word for line in session.summary)
        told = (
            named or Counter(letters) or Counter({Outcome.PASSED: words["PASSED"], Outcome.SKIPPED: words["SKIPPED"]})
        )
        found = found.plus(Counts(*(told[o] for o in _IN_ORDER)))
    failed = len({f.nodeid for f in failures if f.phase == "call"})
    errors = len({f.nodeid for f in failures if f.phase != "call"})
    found = replace(found, failed=max(found.failed, failed), errors=max(found.errors, errors))
    return None if found == Counts() else found


def _again(session: Session, later: Session) -> bool:
    """The later session runs the same tests, as far as both name them."""
    named, again = _tests(session), _tests(later)
    if named and named <= again:
        return True
    files = set(session.progress.files)
    same_size = session.progress.collected is not None and session.progress.collected == later.progress.collected
    return bool(files) and files <= set(later.progress.files) and same_size


def _tests(session: Session) -> set[str | None]:
    return {*session.progress.outcomes, *(b.nodeid for b in session.blocks), *(s.nodeid for s in session.summary)}


def notes_of(sessions: Sequence[Session], counts: Counts | None) -> list[str]:
    """Notes about sessions, reruns and early ends."""
    notes = []
    if len(sessions) > 1:
        every = [s.counts for s in sessions if s.counts is not None]
        is_sum = len(every) < 2 or counts == reduce(Counts.plus, every)
        told = "the counts are their sum" if is_sum else "tests that run again count once, as they ended last"
        notes.append(f"{len(sessions)} test sessions in one log; {told}")
        notes += [f"session at line {s.number}{_named(s)}: {_say(s)}" for s in sessions[:12]]
    for session in sessions:
        if session.begun_at_once > 1:
            notes.append(f"{session.begun_at_once} sessions ran at the same time; {session.ended} printed counts")
    passed = [n for s in sessions for n in s.progress.reruns if s.progress.outcomes.get(n) is Outcome.PASSED]
    notes += [f"passed only when run again: {n}" for n in passed[:20]]
    return notes + [f"the session ended early: {s.interrupted[1]}" for s in sessions if s.interrupted]


def _name(session: Session) -> str | None:
    if session.stream:
        return session.stream
    first = next(iter(session.progress.outcomes), None) or next((b.nodeid for b in session.blocks if b.nodeid), None)
    files = session.progress.files
    return files[0] if files else file_of(first) if first else None


def _named(session: Session) -> str:
    name = _name(session)
    return f" ({name})" if name else ""


def _say(session: Session) -> str:
    end = "" if session.ending.exit is None else f", exit {session.ending.exit}"
    return f"{say_counts(session.counts) if session.counts else 'no counts'}{end}"


def say_counts(counts: Counts) -> str:
    """`2 failed, 1 error, 5 passed`: what is none is left out."""
    pairs = (
        (counts.failed, "failed"),
        (counts.errors, "error" if counts.errors == 1 else "errors"),
        (counts.passed, "passed"),
        (counts.skipped, "skipped"),
        (counts.xfailed, "xfailed"),
        (counts.xpassed, "xpassed"),
    )
    return ", ".join(f"{number} {word}" for number, word in pairs if number) or "no tests"


_LINE_STYLE = re.compile(r"(\S[^\n]{0,400}?):(\d+): (?=\S)(.*)$")
_ENTERED = re.compile(r"\.py:\d{1,9}: in (test\w*)$")
_LIKE_A_TEST = re.compile(r"ERROR (?:at |collecting )|(?i:test)|\.py$")


class FailureTexts:
    """The block that is being read; blocks go into the session."""

    def __init__(self) -> None:
        self.block: Block | None = None
        self._last_blank = False

    @property
    def is_captured(self) -> bool:
        """What comes next is a test's own output."""
        return self.block is not None and self.block.in_captured

    def titled(self, number: int, line: str, session: Session, *, section: str, strict: bool) -> bool:
        """A failure's heading; `strict` where no FAILURES stands above it: the name must be that of a test."""
        if line[:1] != "_":
            return False
        title = failure_title(line)
        if title is None or ((strict or self.is_captured) and not is_name(title)):
            return False
        if strict and not _LIKE_A_TEST.search(title):
            return False
        phase, name = phase_and_name(title, section)
        self.block = Block(title=name, phase=phase, number=number)
        session.blocks.append(self.block)
        return True

    def headless(self, number: int, line: str, session: Session) -> bool:
        """The first line of a failure's text whose heading is not there."""
        if not opens_failure(line):
            return False
        self.block = Block(title="", number=number, is_headless=True)
        session.blocks.append(self.block)
        self.block.feed(line)
        return True

    def feed(self, number: int, line: str, session: Session) -> None:
        """A line of the section that is no heading."""
        after_blank, self._last_blank = self._last_blank, not line
        if self.block is None or (self.block.title == "" and not self.block.is_headless):
            self._one_liner(number, line, session)
        elif not (self._is_another(line, after_blank=after_blank) and self.headless(number, line, session)):
            self.block.feed(line)

    def _is_another(self, line: str, *, after_blank: bool) -> bool:
        """The line may begin the text of another failure, whose heading was cut off."""
        block = self.block
        if block is None or line[:1] == "E":
            return False
        if block.in_captured:
            return after_blank
        entered = _ENTERED.search(line[:500]) if block.in_errors and not block.native else None
        return entered is not None and entered[1] not in block.title

    def _one_liner(self, number: int, line: str, session: Session) -> None:
        """--tb=line: error lines and then the place with its first line; before pytest 9 the place with the message."""
        if line[:1] == "E":
            if self.block is None or self.block.frames:
                self.block = Block(title="", number=number)
            self.block.feed(line)
        elif match := _LINE_STYLE.match(line[:2000]):
            if self.block is None or self.block.frames:
                self.block = Block(title="", number=number)
                self.block.feed(f"E   {match[3]}")
            self.block.feed(f"{match[1]}:{match[2]}: in ?")
            session.one_liners.append(self.block)
        elif self.block is not None:
            self.block.feed(f"E   {line.strip()}")
