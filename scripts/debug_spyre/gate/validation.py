"""The next step of `validate`, and its record: the table of members, the matrix compared, regressions as rows.

Everything follows from the journal and the present tree, so a validation that was interrupted goes on by itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.gate.before_after import BeforeAfter, Measure, Regressions, is_same_scope, regressions
from debug_spyre.gate.close_request import BASELINE_MEMBERS, matrix_command
from debug_spyre.runs.transitions import Answer, MatrixChange, TestResult, compare_matrix, predicate
from debug_spyre.session.events import HypothesisAdded
from debug_spyre.session.state import Member, Session
from debug_spyre.tree.changes import Changes
from debug_spyre.vocabulary.words import FULL_MATRIX, POST_FIX, POST_FIX_MATRIX, WORK_AFTER, RunStatus

_CUT_SHORT = {RunStatus.INTERRUPTED, RunStatus.KILLED, RunStatus.LOST, RunStatus.BUSY}
MOST_ROWS = 3
SHOWN_IDS = 200


@dataclass(frozen=True, slots=True)
class Present:
    """The tree and the backend as they are now; None: unknown."""

    tree: str | None
    backend: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """A run that is still to be made."""

    name: str
    why: str


def missing_before(m: BeforeAfter) -> tuple[str, ...]:
    """Commands of the measurements that have to be made on the tree as it was at open, before a fix can be judged."""
    found = []
    if m.before_members is None:
        found.append(BASELINE_MEMBERS)
    if m.before_matrix is None:
        found.append(matrix_command(m.session))
    return tuple(found)


def is_unchanged(m: BeforeAfter, now: Present) -> bool:
    """Tree and backend are as before the fix: there is nothing to validate."""
    if now.tree is None or now.tree != m.start:
        return False
    return now.backend is not None and all(x.backend == now.backend for x in m.before if x.backend is not None)


def next_step(m: BeforeAfter, now: Present, *, since: int = 0, matrix: bool = True) -> Step | None:
    """The next run, or None where all that is needed for this tree was run after event `since`."""
    members = _usable(m, POST_FIX, now, since)
    if not members:
        return Step(POST_FIX, "all members")
    if len(members) < m.tries.passes_needed:
        return Step(POST_FIX, f"all members again: {m.tries.red} earlier tries were red, is the pass luck?")
    return (_matrix_step(m, now, since) if matrix else None) or _work_step(m, now, members)


def _work_step(m: BeforeAfter, now: Present, members: Sequence[Measure]) -> Step | None:
    if now.tree in {None, m.start} or m.work(WORK_AFTER, now.tree) is not None or not _all_pass(m, members):
        return None
    return Step(WORK_AFTER, "the members once more: what do they do on the card and on the CPU?")


def _matrix_step(m: BeforeAfter, now: Present, since: int) -> Step | None:
    wide = _usable(m, POST_FIX_MATRIX, now, since)
    if not wide:
        return Step(POST_FIX_MATRIX, "the matrix")
    change = matrix_change(m, wide[-1])
    if len(wide) == 1 and change is not None and change.new:
        return Step(POST_FIX_MATRIX, f"the matrix again: {len(change.new)} new failures, is it a flake?")
    return None


def _all_pass(m: BeforeAfter, measures: Sequence[Measure]) -> bool:
    sights = [x.sight for x in measures if x.sight is not None]
    return all(
        predicate(member, s.of(member.nodeid)) is not Answer.HOLDS for member in m.session.members for s in sights
    )


def _usable(m: BeforeAfter, name: str, now: Present, since: int) -> list[Measure]:
    known = m.session.validation.seq if m.session.validation else 0
    return [
        x
        for x in m.all_named(name, members_only=name == POST_FIX)
        if x.sight is not None
        and x.run.status not in _CUT_SHORT
        and x.run.started_seq > since
        and (x.tree == now.tree if now.tree is not None else x.run.started_seq > known)
        and x.backend == now.backend
    ]


def matrix_change(m: BeforeAfter, after: Measure) -> MatrixChange | None:
    """The matrix before against this run; None where there is nothing to compare with."""
    before = m.before_matrix
    if before is None or before.sight is None or after.sight is None:
        return None
    return compare_matrix(before.sight, after.sight)


def table(m: BeforeAfter) -> tuple[dict[str, Any], ...]:
    """One row a member: before, after, and a note."""
    return tuple(_row(m, member) for member in m.session.members)


def _row(m: BeforeAfter, member: Member) -> dict[str, Any]:
    dependent = m.is_scope_dependent(member)
    before = m.before_matrix if dependent else m.before_members or m.before_matrix
    after = m.after_matrix if dependent else m.after_members or m.after_matrix
    was, now = _seen(before, member), _seen(after, member)
    cleared = _is_cleared(m, member, now)
    note = _note(member, now, dependent=dependent, cleared=cleared)
    return {"nodeid": member.nodeid, "pre": _word(was), "post": _word(now), "note": note, "cleared": cleared}


def _is_cleared(m: BeforeAfter, member: Member, now: TestResult | None) -> bool:
    """Gone where it is judged, and not there in the matrix either."""
    wide = _seen(m.after_matrix, member)
    if now is None or predicate(member, now) is not Answer.GONE:
        return False
    return wide is None or predicate(member, wide) is not Answer.HOLDS


def _seen(measure: Measure | None, member: Member) -> TestResult | None:
    return measure.sight.of(member.nodeid) if measure is not None and measure.sight is not None else None


def _word(seen: TestResult | None) -> str:
    return "not run" if seen is None else seen.word


def _note(member: Member, now: TestResult | None, *, dependent: bool, cleared: bool) -> str:
    parts = []
    if dependent:
        parts.append("passes alone even before: judged in the matrix, the members-only run proves nothing")
    answer = predicate(member, now) if now is not None else Answer.UNKNOWN
    if member.predicate != "fails":
        parts.append(f"member because it {member.says()}")
    if now is None:
        parts.append("no run with the fix")
    elif answer is Answer.GONE:
        parts.append("cleared" if cleared else "passes alone and fails in the matrix")
    elif answer is Answer.HOLDS:
        parts.append("still there: the fix is incomplete, or it belongs to another cluster")
    else:
        parts.append("no answer: that never counts as passed")
    return "; ".join(parts)


def matrix_record(m: BeforeAfter, changes: Changes | None) -> dict[str, Any]:
    """The matrix compared, as the journal keeps it; lists of ids are cut at 200, their numbers are whole."""
    before, after = m.before_matrix, m.after_matrix
    change = matrix_change(m, after) if after is not None else None
    found = regressions(m) or Regressions()
    both = before is not None and after is not None
    lists: dict[str, list[Any]] = {
        "new": list(found.new),
        "unsteady": list(found.unsteady),
        "flaky": list(found.flaky),
        "gone": list(change.gone) if change else [],
        "worse": [list(entry) for entry in change.worse if entry[0] in found.worse] if change else [],
        "vanished": [list(entry) for entry in change.vanished] if change else [],
    }
    return {
        "pre_run": before.run.id if before else None,
        "post_run": after.run.id if after else None,
        "pre": before.run.counts if before else None,
        "post": after.run.counts if after else None,
        **{name: entries[:SHOWN_IDS] for name, entries in lists.items()},
        "numbers": {name: len(entries) for name, entries in lists.items()},
        "scope_equal": is_same_scope(before, after) if both else None,  # type: ignore[arg-type]
        "changes": {"tree": m.patched, **changes.to_json()} if changes is not None else None,
    }


def regression_rows(session: Session, m: BeforeAfter) -> list[HypothesisAdded]:
    """A row for each test function that the fix broke, unless an open row says so already."""
    after, found = m.after_matrix, regressions(m)
    if found is None or after is None:
        return []
    broken: dict[str, list[str]] = {}
    for nodeid in (*found.new, *found.unsteady, *found.worse):
        broken.setdefault(nodeid.split("[", 1)[0], []).append(nodeid)
    number = max((h.number for h in session.hypotheses), default=0)
    known = {h.text for h in session.hypotheses if not h.is_concluded}
    rows = []
    for text, nodeids in _said(broken):
        if text not in known:
            number += 1
            rows.append(_regression(number, text, nodeids, after))
    return rows


def _said(broken: dict[str, list[str]]) -> list[tuple[str, Sequence[str]]]:
    groups = sorted(broken.items(), key=lambda entry: -len(entry[1]))
    found = [(f"the fix breaks {function}: {_count(ids)}", ids) for function, ids in groups[:MOST_ROWS]]
    rest = [nodeid for _, ids in groups[MOST_ROWS:] for nodeid in ids]
    if rest:
        found.append((f"the fix breaks {len(rest)} tests of {len(groups) - MOST_ROWS} more functions", rest))
    return found  # type: ignore[return-value]


def _count(ids: Sequence[str]) -> str:
    named = ", ".join(nodeid.partition("[")[2].removesuffix("]") or nodeid for nodeid in ids[:2])
    return f"{len(ids)} of its tests fail now ({named}{', …' if len(ids) > 2 else ''})"


def _regression(number: int, text: str, nodeids: Sequence[str], after: Measure) -> HypothesisAdded:
    return HypothesisAdded(
        number=number,
        text=text,
        test=f"debug-spyre run {shlex.quote(nodeids[0])}",
        test_class="probe",
        confidence="high",
        reason=f"{len(nodeids)} regressions in {after.run.id} ({FULL_MATRIX} before passed them)",
        origin="regression",
    )
