"""Known limitations as data: what holds, since when, what was lifted, and the tables that the skill's notes show."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

GENERAL, ATTENTION = "general", "attention"


class Reading(StrEnum):
    """What was read about a limitation, as of its date."""

    HOLDS = "holds"
    PARTLY = "partly"
    LIFTED = "lifted"


class Answer(StrEnum):
    """What a probe found."""

    HOLDS = "holds"
    LIFTED = "lifted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limitation. Exactly one of probe, text and why_no_probe says how it is asked, or why not."""

    id: str
    group: str
    statement: str
    workaround: str
    where: str
    since: str
    state: Reading
    source: str
    seen: str
    lifted: str = ""
    probe: str = ""
    text: str = ""
    why_no_probe: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if self.group not in {GENERAL, ATTENTION}:
            raise ValueError(f"{self.id}: group {self.group!r}")
        if sum(bool(way) for way in (self.probe, self.text, self.why_no_probe)) != 1:
            raise ValueError(f"{self.id}: needs one of probe, text, why_no_probe")
        if self.state is not Reading.HOLDS and not self.lifted:
            raise ValueError(f"{self.id}: {self.state} without `lifted`")


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe's answer on one torch-spyre, with its time."""

    answer: Answer
    why: str
    at: str
    revision: str


def read_limits(text: str) -> tuple[Limit, ...]:
    """The limitations of the data file.

    Raises:
        ValueError, KeyError, TypeError: an entry is not complete.
    """
    rows = tomllib.loads(text)["limit"]
    limits = tuple(Limit(**{**row, "state": Reading(row["state"])}) for row in rows)
    names = [limit.id for limit in limits]
    if len(set(names)) != len(names):
        raise ValueError(f"two limitations of one id: {sorted(n for n in names if names.count(n) > 1)}")
    return limits


def table_of(limits: Iterable[Limit], group: str) -> str:
    """The Markdown table of one group."""
    lines = ["| limitation | what the code does about it, and where | state |", "| --- | --- | --- |"]
    lines += [
        f"| {_cell(limit.statement)} (`{limit.id}`) | {_cell(limit.workaround)}. {_cell(_capital(limit.where))} | {_cell(_state(limit))} |"
        for limit in limits
        if limit.group == group
    ]
    return "\n".join(lines)


def with_tables(text: str, limits: Iterable[Limit]) -> str:
    """A document with the tables between its markers replaced; a document without markers comes back as it is."""
    known = tuple(limits)
    for group in (GENERAL, ATTENTION):
        start, end = f"<!-- limits:{group} -->", "<!-- /limits -->"
        pattern = re.compile(rf"({re.escape(start)}\n).*?({re.escape(end)})", re.DOTALL)
        table = table_of(known, group)
        text = pattern.sub(lambda found, table=table: f"{found.group(1)}{table}\n{found.group(2)}", text)  # type: ignore[misc]
    return text


def _state(limit: Limit) -> str:
    if limit.state is Reading.HOLDS:
        return f"since {limit.since}, seen {limit.seen}"
    word = "lifted" if limit.state is Reading.LIFTED else "partly lifted"
    return f"{word}: {limit.lifted} (read {limit.seen})"


def _capital(text: str) -> str:
    return (
        text
        if "/" in text.split(" ", maxsplit=1)[0]
        or "_" in text.split(" ", maxsplit=1)[0]
        or "." in text.split(" ", maxsplit=1)[0]
        else text[:1].upper() + text[1:]
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").rstrip(".")


def lines_of(limit: Limit, probed: Probed | None, *, whole: bool) -> list[str]:
    """For people: one line; `whole` adds the work-around, where it stands and where that is known from."""
    read = _state(limit) if whole else _short_state(limit)
    now = f"; probed: {probed.answer.value}" if probed else ""
    lines = [f"{limit.id}: {limit.statement} [{read}{now}]"]
    if probed and _contradicts(limit, probed):
        lines.append(f"  the probe counts: on this torch-spyre it {_OUTCOME[probed.answer]} ({probed.why[:120]})")
    elif probed and (whole or probed.answer is Answer.UNKNOWN):
        lines.append(f"  probed {probed.at[:10]} on {probed.revision[:18]}: {probed.answer.value}, {probed.why}")
    if whole:
        lines.append(f"  work-around: {limit.workaround} ({limit.where})")
        lines.append(
            f"  source: {limit.source}" + (f"; not probed: {limit.why_no_probe}" if limit.why_no_probe else "")
        )
    return lines


_OUTCOME = {Answer.HOLDS: "holds", Answer.LIFTED: "is lifted"}


def _contradicts(limit: Limit, probed: Probed) -> bool:
    """The reading is of another revision than the one that was probed."""
    read = {Reading.HOLDS: Answer.HOLDS, Reading.LIFTED: Answer.LIFTED}.get(limit.state)
    return read is not None and probed.answer is not Answer.UNKNOWN and probed.answer is not read


def _short_state(limit: Limit) -> str:
    if limit.state is Reading.HOLDS:
        return f"holds, since {limit.since}"
    when = re.match(r"[\d-]{4,10}", limit.lifted or "")
    return ("lifted" if limit.state is Reading.LIFTED else "partly lifted") + (f" {when[0]}" if when else "")
