"""The gate before `resolved` and `blocked`: judge() gives open, shut or unknown, and every reason for it.

Pure and total: the same session, evidence and digests give the same answer; unknown is never open. What a
person may set aside is named in OVERRIDABLE; a failing member and a regression can't be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from debug_spyre.gate import gate_outcomes as conditions
from debug_spyre.gate import gate_state
from debug_spyre.gate.before_after import BeforeAfter
from debug_spyre.gate.close_request import OPEN, SHUT, UNKNOWN, CloseRequest, Condition, with_override
from debug_spyre.gate.gate_state import matrix_covers, same_conditions, tries
from debug_spyre.gate.work import no_added_cpu_work
from debug_spyre.session.state import Session
from debug_spyre.tree.changes import Changes, changes_from_json
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import GateState

OVERRIDABLE = frozenset(
    {
        "same-tests",
        "measured-at-start",
        "one-tree",
        "one-backend",
        "something-changed",
        "no-new-fallback",
        "no-edited-test",
        "same-conditions",
        "matrix-covers",
    }
)
SHOWN_IDS = 400


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the gate is not open: one condition, and what would open it."""

    code: str
    text: str
    nodeids: tuple[str, ...] = ()
    next: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """The answer, the reasons for it, and every condition as it stands."""

    state: GateState
    reasons: tuple[Reason, ...]
    conditions: tuple[Condition, ...]

    @property
    def overridden(self) -> tuple[Condition, ...]:
        """Conditions that a person set aside."""
        return tuple(x for x in self.conditions if x.override is not None)

    def to_json(self) -> dict[str, Any]:
        """The form of contracts.md, with all conditions; the text says how many ids there are where they are cut."""
        return {
            "gate": str(self.state),
            "reasons": [
                {"code": r.code, "text": r.text, "nodeids": list(r.nodeids[:SHOWN_IDS]), "next": r.next}
                for r in self.reasons
            ],
            "conditions": [
                {"code": x.code, "state": str(x.state), "text": x.text, "override": x.override} for x in self.conditions
            ],
        }


def judge(session: Session, evidence: Mapping[str, Evidence], claim: CloseRequest | None = None) -> Gate:
    """May the session be closed as resolved?"""
    claim = claim or CloseRequest()
    m = BeforeAfter(session, evidence)
    changes = claim.changes or _changes_on_record(session, m)
    found = [
        gate_state.evidence_whole(claim),
        same_conditions(m),
        conditions.failed_before(m),
        conditions.members_pass(m),
        conditions.same_tests(m),
        conditions.matrix_complete(m),
        matrix_covers(m),
        conditions.no_regression(m),
        tries(m),
        gate_state.measured_at_start(m),
        gate_state.one_tree(m, claim),
        gate_state.one_backend(m, claim),
        gate_state.something_changed(m),
        conditions.no_new_fallback(m),
        conditions.no_edited_test(m, changes),
        no_added_cpu_work(m, claim, changes),
        gate_state.tree_at_start(session, claim),
        gate_state.table_filled(m),
        gate_state.rows_concluded(session),
        gate_state.retrospective(session, claim),
    ]
    if claim.workaround or gate_state.goes_round_a_bug(m):
        found.append(gate_state.workaround(session, claim))
    return _gate(session, found, claim)


def judge_blocked(session: Session, claim: CloseRequest | None = None) -> Gate:
    """May the session be closed as blocked?"""
    claim = claim or CloseRequest()
    found = [
        gate_state.tree_at_start(session, claim),
        gate_state.no_row_in_progress(session),
        gate_state.next_action(session, claim),
    ]
    return _gate(session, found, claim)


def _gate(session: Session, found: list[Condition], claim: CloseRequest) -> Gate:
    overrides = [*(claim.overrides or {}).items(), *_fresh_overrides(session)]
    allowed = [(code, reason) for code, reason in overrides if code in OVERRIDABLE and reason.strip()]
    judged = tuple(with_override(condition, allowed) for condition in found)
    left = [x for x in judged if x.state is not OPEN and x.override is None]
    reasons = tuple(Reason(x.code, x.text, x.nodeids, x.next) for x in left)
    state = SHUT if any(x.state is SHUT for x in left) else UNKNOWN if left else OPEN
    return Gate(state, reasons, judged)


def _fresh_overrides(session: Session) -> list[tuple[str, str]]:
    """Overrides on record that were given for the present table: not before it, nor before a reopening."""
    since = max([session.validation.at if session.validation else "", *(note.at for note in session.reopened)])
    return [(o.code, o.reason) for o in session.overrides if o.at >= since]


def _changes_on_record(session: Session, m: BeforeAfter) -> Changes | None:
    """What `validate` noted of the patch, if it speaks of the runs that are judged."""
    table = session.validation
    noted = (table.matrix or {}).get("changes") if table else None
    if not isinstance(noted, dict) or noted.get("tree") is None or noted["tree"] != m.patched:
        return None
    return changes_from_json(noted)
