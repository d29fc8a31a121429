"""What one pytest session of a log showed, as the stream fills it."""

from __future__ import annotations

from dataclasses import dataclass, field

from debug_spyre.triage.block import Block
from debug_spyre.triage.death_markers import Ending
from debug_spyre.triage.loose_lines import BAD_WORDS
from debug_spyre.triage.progress_lines import Progress
from debug_spyre.vocabulary.evidence import Counts


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
