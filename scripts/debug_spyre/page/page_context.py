"""Shared by all parts of the page: the session, the files that its journal names, and how outside text is shown."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from debug_spyre.examine.dossier import Dossier
from debug_spyre.gate.before_after import BeforeAfter
from debug_spyre.runs.transitions import RunOutcomes
from debug_spyre.session.events import ExperimentNoted, ReportMade
from debug_spyre.session.state import Hypothesis, Run, Session
from debug_spyre.vocabulary.evidence import Evidence, Outcome
from debug_spyre.vocabulary.local_time import Moment, Zone, zone_of
from debug_spyre.vocabulary.masking import MASK, mask, mask_environment, mask_words, secret_values
from debug_spyre.vocabulary.safe_text import Piece, clean, clip, one_line, paragraphs, pieces, quoted
from debug_spyre.vocabulary.words import HypothesisStatus

OLDER = "older.html"  # in the session's folder
MOST_ROWS = 300
WHOLE_ENTRIES, SHORT_ENTRIES = 40, 300  # the newest are shown in full, those before them on a line each
_WORTH = {HypothesisStatus.IN_PROGRESS: 3, HypothesisStatus.CONFIRMED: 2, HypothesisStatus.QUEUED: 1}

Item = Run | ExperimentNoted


def rows_on_page(rows: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The row in progress, confirmed rows, open ones, then the newest of all others, as far as there is room."""
    if len(rows) <= MOST_ROWS:
        return list(rows)
    best = sorted(rows, key=lambda row: (_WORTH.get(row.status, 0), row.number), reverse=True)[:MOST_ROWS]
    return sorted(best, key=lambda row: row.number)


def rows_left_out(rows: Sequence[Hypothesis]) -> list[Hypothesis]:
    """All others."""
    here = {row.number for row in rows_on_page(rows)}
    return [row for row in rows if row.number not in here]


def log_items(session: Session) -> list[Item]:
    """Runs and noted experiments, newest first."""
    items: list[tuple[int, Item]] = [(run.started_seq, run) for run in session.runs.values()]
    items += [(note.seq, note) for note in session.experiments]
    items.sort(key=lambda item: item[0], reverse=True)
    return [item for _, item in items]


def items_on_page(session: Session) -> tuple[list[Item], list[Item]]:
    """(those shown in full, those on a line)."""
    items = log_items(session)
    return items[:WHOLE_ENTRIES], items[WHOLE_ENTRIES : WHOLE_ENTRIES + SHORT_ENTRIES]


def items_left_out(session: Session) -> list[Item]:
    """All older ones."""
    return log_items(session)[WHOLE_ENTRIES + SHORT_ENTRIES :]


FEW_IDS = 2  # more node ids than this make a command unreadable: it is shown with their number, the whole beside it


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a text file: its last lines, how many lines it has (None: not counted) and its size."""

    lines: tuple[str, ...]
    total: int | None
    size: int
    noise: int = 0  # lines of torch's own trace among the last, left out


@dataclass(frozen=True, slots=True)
class Material:
    """A session with what lies in its folder. Absent files are absent keys: the page says so where it matters."""

    session: Session
    evidence: Mapping[str, Evidence] = field(default_factory=dict)  # by run id
    tails: Mapping[str, Tail] = field(default_factory=dict)  # by path relative to the folder
    pictures: tuple[tuple[str, dict[str, Any]], ...] = ()  # (run id, one entry of comparisons.json with a picture)
    dossier: Dossier | None = None  # of the newest investigation
    events: int = 0
    torn: bool = False
    trouble: str | None = None  # where the journal or a file that it names was changed afterwards
    secrets: tuple[str, ...] = ()  # values to mask wherever they appear


@dataclass(frozen=True, slots=True)
class Link:
    """A link: inside the page (`#h3`) or to a file of the session's folder."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Word:
    """A status: `css` gives accent and glyph, `text` is the word; never one without the other."""

    css: str
    text: str


class Frame:
    """Material with the ways to show it. `say` is the only door for text from outside."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.session: Session = material.session
        self.evidence = material.evidence
        self.zone: Zone = zone_of(self.session.local_time, self.session.opened_at)
        values = {v for run in self.session.runs.values() if run.env for v in secret_values(run.env)}
        self._secrets = tuple(sorted(values | set(material.secrets), key=lambda v: (-len(v), v)))
        self._anchors = {f"h{row.number}" for row in rows_on_page(self.session.hypotheses)}
        entries = [item.id for part in items_on_page(self.session) for item in part if isinstance(item, Run)]
        self._anchors |= {run for run in entries if run[:1] == "r" and run[1:].isdigit()}
        self._anchors |= {f"f{n}" for n in range(1, len(self.session.findings) + 1)}

    @cached_property
    def rows(self) -> dict[int, Hypothesis]:
        """The rows by number."""
        return {row.number: row for row in reversed(self.session.hypotheses)}

    @cached_property
    def rows_naming(self) -> dict[str, list[int]]:
        """Run -> the rows whose verdict names it."""
        found: dict[str, list[int]] = {}
        for row in self.session.hypotheses:
            for run in row.runs:
                found.setdefault(run, []).append(row.number)
        return found

    @cached_property
    def runs_for(self) -> dict[int, list[str]]:
        """Row -> the runs that were made for it."""
        found: dict[int, list[str]] = {}
        for run in self.session.runs.values():
            if run.hypothesis is not None:
                found.setdefault(run.hypothesis, []).append(run.id)
        return found

    @cached_property
    def reports_of(self) -> dict[str | None, list[ReportMade]]:
        """Run -> the reports that rest on it."""
        found: dict[str | None, list[ReportMade]] = {}
        for report in self.session.reports:
            found.setdefault(report.run, []).append(report)
        return found

    @cached_property
    def measured(self) -> BeforeAfter:
        """The four measurements that the gate compares, so that page and gate speak of the same runs."""
        return BeforeAfter(self.session, self.evidence)

    def say(self, text: object) -> str:
        """Outside text, cleaned and masked."""
        return mask(clean(str(text)), self._secrets)

    def line(self, text: object, most: int = 200) -> str:
        """Outside text as one line."""
        return one_line(self.say(text), most)

    def lines(self, texts: Iterable[object], width: int = 300) -> list[str]:
        """Lines of outside text, masked as one text (a secret may span lines), each cut to `width`."""
        whole = self.say("\n".join(str(text) for text in texts))
        return [clip(line, width) for line in whole.split("\n")] if whole else []

    def prose(self, text: object, most: int = 4000) -> tuple[Piece, ...]:
        """Outside text as one run of prose with its references."""
        return pieces(clip(" ".join(self.say(text).split()), most), self.knows)

    def paragraphs(self, text: object, most: int = 8000) -> tuple[tuple[Piece, ...], ...]:
        """Outside text as paragraphs."""
        return paragraphs(clip(self.say(text), most), self.knows)

    def knows(self, anchor: str) -> bool:
        """The page has an element of this id."""
        return anchor in self._anchors

    def at(self, when: str) -> Moment:
        """A journal time."""
        return self.zone.moment(self.say(when))

    def run_link(self, run_id: str) -> Link:
        """A link to a run's entry, on the page or in the file beside it; without an address where neither has one."""
        return Link(self.say(run_id), self._address(run_id, known=run_id in self.session.runs))

    def row_link(self, number: int) -> Link:
        """A link to a row of the queue."""
        return Link(f"H{number}", self._address(f"h{number}", known=number in self.rows))

    def _address(self, anchor: str, *, known: bool) -> str:
        if self.knows(anchor):
            return f"#{anchor}"
        return f"{quoted(f'{self.session.stem}/{OLDER}')}#{anchor}" if known and anchor.isalnum() else ""

    def file_link(self, path: str, text: str | None = None) -> Link:
        """A link to a file of the session's folder; paths that leave the folder get no address."""
        shown = self.say(text or path)
        parts = path.split("/")
        if not path or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
            return Link(shown, "")
        return Link(shown, quoted(f"{self.session.stem}/{path}"))

    def short_command(self, run: Run) -> str:
        """The command with its many node ids as a number; empty where there are few."""
        ids = [word for word in run.argv if "::" in word]
        if len(ids) <= FEW_IDS:
            return ""
        words = [word for word in run.argv if "::" not in word]
        is_all = {m.nodeid for m in self.session.members} == set(ids)
        left_out = f"all {len(ids)} members" if is_all else f"{len(ids)} node ids"
        return f"{self.say(shlex.join(mask_words(words)))} … {left_out}"

    def command(self, run: Run) -> str:
        """A run's command as typed in a shell, with the environment it overrides; secrets masked by name."""
        overrides = "".join(f"{n}={v if v == MASK else shlex.quote(v)} " for n, v in mask_environment(run.env).items())
        return self.say(overrides + shlex.join(mask_words(run.argv)))


def outcomes(evidence: Evidence | None) -> dict[str, Outcome]:
    """Outcome by node id, as the gate sees it: a test with several records keeps its worst."""
    return RunOutcomes(evidence).outcomes if evidence else {}


def outcome_word(outcome: Outcome | None) -> Word:
    """An outcome as the page says it; no outcome is unknown."""
    if outcome is None or outcome is Outcome.MISSING:
        return Word("unknown", "missing" if outcome else "unknown")
    return Word(outcome.value, outcome.value)


def scope_words(run: Run) -> str:
    """What a run selected, in words."""
    collected = run.collected if run.collected is not None else run.scope.get("collected")
    size = f", {collected:,} {'test' if collected == 1 else 'tests'}" if isinstance(collected, int) else ""
    if run.pytest_args is None and not collected:
        return "command"
    if run.members_only:
        return "members only" + size
    if run.name in {"full-matrix", "post-fix-matrix"}:
        return "matrix" + size
    return size.removeprefix(", ") or "pytest"


def session_link(frame: Frame, stem: str) -> Link:
    """A link to another session's page, beside this one."""
    shown = frame.say(stem)
    safe = "/" not in stem and stem.startswith("debug-")
    return Link(shown, quoted(f"{stem}.html") if safe else "")
