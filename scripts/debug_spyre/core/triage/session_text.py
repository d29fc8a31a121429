"""What one pytest session of a log showed, as the stream fills it."""

from __future__ import annotations

from dataclasses import dataclass, field

from debug_spyre.core.evidence import Counts
from debug_spyre.core.triage.block import Block
from debug_spyre.core.triage.ends import Ending
from debug_spyre.core.triage.progress import Progress


@dataclass(slots=True)
class SummaryLine:
    """One line of the short summary, with the lines of its message that follow."""

    word: str
    text: str
    number: int
    more: list[str] = field(default_factory=list)
    nodeid: str | None = None


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
