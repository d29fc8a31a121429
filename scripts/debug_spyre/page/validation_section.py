"""Section 5: the gate and its reasons, each member before and after in both scopes, and the matrix before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from debug_spyre.gate.before_after import Measure
from debug_spyre.page.gate_view import Condition, conditions_words, gate_conditions, matrix_words
from debug_spyre.page.matrix_picture import Cell, cells, strip_picture
from debug_spyre.page.members import failure_words
from debug_spyre.page.nodeid_layout import Group, NodeId, groups, natural, path_parts, split
from debug_spyre.page.page_context import Frame, Link, Word, outcome_word, outcomes
from debug_spyre.page.pictures import Picture
from debug_spyre.runs.transitions import FAILING, new_failures
from debug_spyre.session.state import Run
from debug_spyre.vocabulary.evidence import Evidence, Outcome
from debug_spyre.vocabulary.local_time import Moment
from debug_spyre.vocabulary.safe_text import Piece
from debug_spyre.vocabulary.words import BASELINE, FULL_MATRIX, POST_FIX, POST_FIX_MATRIX

MOST_NEW, MOST_FUNCTIONS = 200, 150


@dataclass(frozen=True, slots=True)
class MemberLine:
    """One member: outcome in each scope, before and after (None: not run)."""

    id: NodeId
    probe: bool
    cells: tuple[Word, ...]
    note: str


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Lines of one file::function."""

    group: Group
    lines: tuple[MemberLine, ...]


@dataclass(frozen=True, slots=True)
class FunctionCount:
    """Counts of one test function in the matrix: transitions in words."""

    path: tuple[str, ...]
    function: str
    total: int
    failed_before: int
    failed_after: int
    new: int
    fixed: int
    unseen: int


@dataclass(frozen=True, slots=True)
class ValidationView:
    """Section 5."""

    at: Moment | None
    gate: Word
    conditions: tuple[Condition, ...]
    says: str  # 2 shut, 1 unknown, 12 open
    heads: tuple[Link | None, ...]  # runs of the four columns
    groups: tuple[LineGroup, ...]
    new: tuple[LineGroup, ...]
    new_count: int
    functions: tuple[FunctionCount, ...]
    more_functions: int
    matrix_total: int
    strip: Picture | None
    said: tuple[str, ...]  # what the validation itself recorded of the matrix, in words


def validation(frame: Frame) -> ValidationView:
    """Section 5."""
    session = frame.session
    record = session.validation
    columns = _columns(frame)
    seen = [outcomes(frame.evidence.get(run.id)) if run else None for run in columns]
    before, after = seen[2] or {}, seen[3] or {}
    matrix = cells(before, after, new_failures(*(frame.evidence.get(run.id) if run else None for run in columns[2:])))
    new = [cell for cell in matrix if cell.is_new]
    gate = str(record.gate.get("gate", "unknown")) if record else "to come"
    functions, more = _functions(frame, matrix)
    conditions = gate_conditions(frame, record.gate) if record else ()
    return ValidationView(
        at=frame.at(record.at) if record else None,
        gate=Word("to-come", "not judged yet")
        if record is None
        else Word(gate if gate in {"open", "shut"} else "unknown", gate if gate in {"open", "shut"} else "unknown"),
        conditions=conditions,
        says=conditions_words(conditions),
        heads=tuple(frame.run_link(run.id) if run else None for run in columns),
        groups=_members(frame, seen),
        new=_new(frame, new[:MOST_NEW], columns[3]),
        new_count=len(new),
        functions=functions,
        more_functions=more,
        matrix_total=len(matrix),
        strip=strip_picture(
            matrix,
            frame.say,
            before=_piece(frame, columns[2]),
            after=_piece(frame, columns[3]) if after else None,
            parameter=_separator(frame),
        ),
        said=matrix_words(frame, record.matrix) if record and record.matrix else (),
    )


def _separator(frame: Frame) -> str | None:
    """The parameter that tells the failing tests from the passing ones."""
    separators = (frame.session.cluster or {}).get("separators") or ()
    name = separators[0].get("parameter") if separators and isinstance(separators[0], dict) else None
    return frame.line(name, 40) if isinstance(name, str) else None


def _piece(frame: Frame, run: Run | None) -> Piece | None:
    if run is None:
        return None
    link = frame.run_link(run.id)
    return Piece(link.text, "", link.href)


def _columns(frame: Frame) -> tuple[Run | None, Run | None, Run | None, Run | None]:
    """The runs of members before and after, matrix before and after: those that the gate compares, else the newest."""
    m = frame.measured

    def run(measure: Measure | None, name: str) -> Run | None:
        return measure.run if measure else frame.session.last_run(name)

    return (
        run(m.before_members, BASELINE),
        run(m.after_members, POST_FIX),
        run(m.before_matrix, FULL_MATRIX),
        run(m.after_matrix, POST_FIX_MATRIX),
    )


def _members(frame: Frame, seen: list[dict[str, Outcome] | None]) -> tuple[LineGroup, ...]:
    session = frame.session
    recorded: dict[str, dict[str, Any]] = {}
    for row in session.validation.rows if session.validation else ():
        if isinstance(row.get("nodeid"), str):
            recorded[row["nodeid"]] = row
    found = []
    for group in groups(sorted((m.nodeid for m in session.members), key=natural), frame.say):
        pairs = zip(group.ids, group.nodeids, strict=True)
        lines = tuple(_line(frame, i, raw, seen, recorded.get(raw, {})) for i, raw in pairs)
        found.append(LineGroup(group, lines))
    return tuple(found)


def _line(
    frame: Frame, nodeid: NodeId, raw: str, seen: list[dict[str, Outcome] | None], row: Mapping[str, Any]
) -> MemberLine:
    made = [_cell(column, raw) for column in seen]
    for index, key in ((0, "pre"), (1, "post")):
        if row.get(key) and (seen[index] is None or raw not in (seen[index] or {})):
            made[index] = recorded_word(frame.line(row[key], 40))
    return MemberLine(nodeid, raw == frame.session.probe, tuple(made), frame.line(row.get("note") or "", 300))


def _cell(column: dict[str, Outcome] | None, nodeid: str) -> Word:
    if column is None:
        return Word("to-come", "not run")
    return outcome_word(column[nodeid]) if nodeid in column else Word("unknown", "not selected")


def recorded_word(words: str) -> Word:
    """An outcome as the validation recorded it, with the accent that its first word has."""
    first = words.split(" ", maxsplit=1)[0].strip(",:;").lower() if words else ""
    known = {o.value for o in Outcome}
    css = {"fails": "failed", "failing": "failed", "passes": "passed", "holds": "failed", "gone": "passed"}.get(
        first, first
    )
    return Word(css if css in known else "unknown", words)


def _new(frame: Frame, new: list[Cell], after: Run | None) -> tuple[LineGroup, ...]:
    evidence: Evidence | None = frame.evidence.get(after.id) if after else None
    words: dict[str, str] = {}
    for failure in evidence.failures if evidence else ():
        if failure.nodeid is None:
            continue
        if failure.mismatched is not None and failure.total:
            said = f"{failure.mismatched:,} / {failure.total:,} mismatched"
        else:
            said = failure_words(frame, failure, 120)
        words.setdefault(failure.nodeid, said)
    by_id = {cell.nodeid: cell for cell in new}
    found = []
    for group in groups(by_id, frame.say):
        lines = tuple(
            MemberLine(
                i,
                False,
                (outcome_word(by_id[raw].before), outcome_word(by_id[raw].after)),
                words.get(raw, ""),
            )
            for i, raw in zip(group.ids, group.nodeids, strict=True)
        )
        found.append(LineGroup(group, lines))
    return tuple(found)


def _functions(frame: Frame, matrix: tuple[Cell, ...]) -> tuple[tuple[FunctionCount, ...], int]:
    """Counts per test function, those with something to see first, and how many are left out."""
    parts: dict[tuple[str, str], Counter[str]] = {}
    for cell in matrix:
        path, function, _ = split(cell.nodeid)
        counts = parts.setdefault((path, function), Counter())
        counts["total"] += 1
        counts["before"] += cell.before in FAILING
        counts["after"] += cell.after in FAILING
        counts["new"] += cell.is_new
        counts["fixed"] += cell.before in FAILING and cell.after is Outcome.PASSED
        counts["unseen"] += cell.after is None
    order = sorted(parts.items(), key=lambda item: (-item[1]["new"], -item[1]["after"], -item[1]["before"]))
    rows = tuple(
        FunctionCount(
            path=path_parts(frame.say(path)),
            function=frame.say(function),
            total=c["total"],
            failed_before=c["before"],
            failed_after=c["after"],
            new=c["new"],
            fixed=c["fixed"],
            unseen=c["unseen"],
        )
        for (path, function), c in order[:MOST_FUNCTIONS]
    )
    return rows, len(order) - len(rows)
