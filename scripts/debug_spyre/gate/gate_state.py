"""Conditions on how things stand: the tree, the backend, the table, the queue, the words of the person.

Each is a function of the session and what the caller claims; a digest that nobody knows gives unknown.
"""

from __future__ import annotations

import shlex

from debug_spyre.gate.before_after import BeforeAfter, differing, run_ids
from debug_spyre.gate.close_request import (
    BASELINE_MEMBERS,
    OPEN,
    SHUT,
    UNKNOWN,
    VALIDATE,
    CloseRequest,
    Condition,
    Retrospective,
    matrix_command,
)
from debug_spyre.session.state import Session
from debug_spyre.vocabulary.conditions import BACKEND, Difference
from debug_spyre.vocabulary.words import BASELINE, POST_FIX, HypothesisStatus

SHORTEST_ACTION = 12


def measured_at_start(m: BeforeAfter) -> Condition:
    """The runs before the fix saw the tree as it was at open."""
    code = "measured-at-start"
    if not m.before or m.start is None:
        why = "no run before the fix" if not m.before else "the tree's digest at open is not known"
        return Condition(code, UNKNOWN, why, next=BASELINE_MEMBERS)
    other = [x for x in m.before if x.tree != m.start]
    if any(x.tree is None for x in other):
        return Condition(code, UNKNOWN, f"the tree of {run_ids(other)} is not known", next=BASELINE_MEMBERS)
    if other:
        again = BASELINE_MEMBERS if other[0].run.name == BASELINE else matrix_command(m.session)
        text = f"{run_ids(other)} saw tree {other[0].tree}, not {m.start} as at open"
        return Condition(code, SHUT, text, next=f"debug-spyre revert, then {again}")
    return Condition(code, OPEN, f"{run_ids(m.before)} saw tree {m.start} as at open")


def rows_concluded(session: Session) -> Condition:
    """Every row has a verdict or was dropped with a reason, and there was one."""
    code = "rows-concluded"
    left = [h for h in session.hypotheses if not h.is_concluded]
    if left:
        text = f"{len(left)} of {len(session.hypotheses)} rows are open: " + ", ".join(
            f"{h.number} {h.status}" for h in left[:6]
        )
        row = left[0]
        busy = row.status is HypothesisStatus.IN_PROGRESS
        following = f"debug-spyre hypothesis {'conclude' if busy else 'start'} {row.number}"
        return Condition(code, SHUT, text, next=f"{following}, or hypothesis drop {row.number} REASON")
    if not session.hypotheses:
        text = "no hypothesis was ever written down"
        return Condition(code, SHUT, text, next="debug-spyre hypothesis add TEXT --test COMMAND")
    return Condition(code, OPEN, f"{len(session.hypotheses)} rows concluded or dropped")


def one_tree(m: BeforeAfter, claim: CloseRequest) -> Condition:
    """The runs after the fix saw one tree: the start with a saved patch, or what is in the tree now."""
    code = "one-tree"
    if not m.after:
        return Condition(code, UNKNOWN, "no run with the fix in place", next=VALIDATE)
    trees = {x.tree for x in m.after}
    if None in trees or m.start is None:
        text = f"the tree of {run_ids(m.after)} is not known, or it changed under the run"
        return Condition(code, UNKNOWN, text, next=VALIDATE)
    if len(trees) > 1:
        seen = ", ".join(f"{x.run.id} saw {x.tree}" for x in m.after)
        return Condition(code, SHUT, f"the runs after the fix saw different trees: {seen}", next=VALIDATE)
    tree, now = m.patched, _tree_now(m.session, claim)
    if now not in {None, m.start, tree}:
        text = f"the tree is {now} now, which is neither the start nor {tree} that {run_ids(m.after)} saw"
        return Condition(code, SHUT, text, next=f"{VALIDATE}, or debug-spyre revert")
    if tree == m.start:
        return Condition(code, OPEN, f"{run_ids(m.after)} saw tree {tree}, the start without a patch")
    saved = next((r for r in reversed(m.session.reverts) if r.patched == tree and r.digest == m.start), None)
    if saved is not None:
        return Condition(code, OPEN, f"{run_ids(m.after)} saw tree {tree} = start {m.start} + {saved.patch}")
    if now == tree:
        return Condition(code, OPEN, f"{run_ids(m.after)} saw tree {tree}, which is the tree now")
    text = f"{run_ids(m.after)} saw tree {tree}; no saved patch leads there and the tree is {now or 'unknown'} now"
    return Condition(code, UNKNOWN if now is None else SHUT, text, next=VALIDATE)


def one_backend(m: BeforeAfter, claim: CloseRequest) -> Condition:
    """All runs saw one installed torch-spyre, but for a change that was declared."""
    code = "one-backend"
    if not m.after or not m.before:
        return Condition(code, UNKNOWN, "no runs before and after to compare", next=VALIDATE)
    before, after = ({x.backend for x in runs} for runs in (m.before, m.after))
    if None in before | after:
        return Condition(
            code, UNKNOWN, "the fingerprint of torch-spyre is not known for every run", next="debug-spyre doctor"
        )
    if len(after) > 1:
        return Condition(code, SHUT, f"torch-spyre changed between {run_ids(m.after)}", next=VALIDATE)
    if len(before) > 1:
        return Condition(code, SHUT, f"torch-spyre changed between {run_ids(m.before)}", next=BASELINE_MEMBERS)
    if claim.backend is not None and {claim.backend} != after and not is_declared(m):
        text = f"torch-spyre is {claim.backend} now, {run_ids(m.after)} saw {next(iter(after))}"
        return Condition(code, SHUT, text, next=VALIDATE)
    if before == after:
        return Condition(code, OPEN, f"torch-spyre {next(iter(after))} in {run_ids((*m.before, *m.after))}")
    if is_declared(m):
        return Condition(code, OPEN, f"torch-spyre changed as declared: {next(iter(before))} -> {next(iter(after))}")
    text = f"torch-spyre changed between {run_ids(m.before)} and {run_ids(m.after)}, and nobody declared it"
    return Condition(code, SHUT, text, next="debug-spyre note finding TEXT --expect-change torch-spyre, then validate")


def is_declared(m: BeforeAfter) -> bool:
    """A change of torch-spyre was declared between the runs before and after."""
    first = min(x.run.started_seq for x in m.before)
    last = max(x.run.started_seq for x in m.after)
    return any(note.expect_change and first < note.seq < last for note in m.session.findings)


def something_changed(m: BeforeAfter) -> Condition:
    """There is a patch or another torch-spyre: else nothing explains that a failing test passes now."""
    code = "something-changed"
    if not m.after or not m.before or m.patched is None:
        return Condition(code, UNKNOWN, "no runs before and after to compare", next=VALIDATE)
    backends = [{x.backend for x in runs} for runs in (m.before, m.after)]
    if m.patched != m.start:
        return Condition(code, OPEN, f"the tree differs: {m.start} -> {m.patched}")
    if backends[0] != backends[1]:
        return Condition(code, OPEN, "the installed torch-spyre differs")
    text = "tree and torch-spyre are as before the fix, so what passes now is not explained"
    return Condition(code, SHUT, text, next="put the fix on, then debug-spyre validate")


def _tree_now(session: Session, claim: CloseRequest) -> str | None:
    return claim.tree_digest if claim.tree_digest is not None else session.tree_seen


def tree_at_start(session: Session, claim: CloseRequest) -> Condition:
    """The experiment is taken back, or a person approved that exactly this tree stays."""
    code = "tree-at-start"
    start, now = session.tree.get("digest"), _tree_now(session, claim)
    if start is None or now is None:
        return Condition(code, UNKNOWN, "the tree's digest is not known", next="debug-spyre revert")
    if now == start:
        return Condition(code, OPEN, f"the tree is as it was at open ({start})")
    if claim.approved:
        return Condition(code, OPEN, f"the patch may stay (tree {now}): {claim.approved}")
    approval = session.approval
    if approval is not None and approval.digest == now:
        return Condition(code, OPEN, f"the patch was approved (tree {now}): {approval.reason}")
    if approval is not None:
        text = f"the approved patch made tree {approval.digest}, the tree is {now} now"
        return Condition(code, SHUT, text, next="debug-spyre revert")
    text = f"the tree is {now}, {start} at open, and no patch is approved"
    return Condition(code, SHUT, text, next="debug-spyre revert")


def table_filled(m: BeforeAfter) -> Condition:
    """The validation table speaks of the present members and the newest runs, and was filled since a reopening."""
    code, table = "table-filled", m.session.validation
    if table is None:
        return Condition(code, UNKNOWN, "the validation table is empty", next=VALIDATE)
    rows = {row.get("nodeid") for row in table.rows}
    left = tuple(x.nodeid for x in m.session.members if x.nodeid not in rows)
    if left:
        return Condition(code, SHUT, f"{len(left)} members are not in the validation table", left, VALIDATE)
    reopened = max((note.seq for note in m.session.reopened), default=0)
    if table.seq < reopened:
        return Condition(code, SHUT, "the session was reopened after the validation", next=VALIDATE)
    newer = [x for x in m.after if x.run.id not in table.runs]
    if newer:
        return Condition(code, SHUT, f"{run_ids(newer)} is newer than the validation table", next=VALIDATE)
    return Condition(code, OPEN, f"{len(table.rows)} rows, from {', '.join(table.runs)}")


def retrospective(session: Session, claim: CloseRequest) -> Condition:
    """What it was, what was wasted effort, and which signal would have pointed there."""
    code, told = "retrospective", claim.retrospective
    if told is None and session.closing is not None:
        told = Retrospective(session.closing.cause, session.closing.wasted, session.closing.signal)
    missing = (told or Retrospective()).missing
    if missing:
        words = "debug-spyre close resolved --cause TEXT --wasted TEXT --signal TEXT"
        return Condition(code, SHUT, f"{3 - len(missing)} of 3 parts written: no {', '.join(missing)}", next=words)
    return Condition(code, OPEN, "what it was, what was wasted, which signal would have told")


def goes_round_a_bug(m: BeforeAfter) -> bool:
    """The bug was proved in torch-spyre, and what changed is this tree alone."""
    same_build = {x.backend for x in m.before} == {x.backend for x in m.after}
    return m.session.verified_repro is not None and m.patched not in {None, m.start} and same_build


def workaround(session: Session, claim: CloseRequest) -> Condition:
    """A workaround in the plugin resolves only where a person approved it, whether or not it was called one."""
    code = "workaround-approved"
    if claim.approved or session.approval is not None:
        return Condition(
            code, OPEN, "the workaround in the plugin is approved; the bug itself is still to be escalated"
        )
    proof = "" if claim.workaround else "the bug was proved in torch-spyre, so the change is a workaround: "
    text = f"{proof}it resolves only where a person approves the patch"
    return Condition(
        code, SHUT, text, next="debug-spyre finish; a person may type close resolved --patch-approved REASON"
    )


def evidence_whole(claim: CloseRequest) -> Condition:
    """The journal and the files that it names are what was written."""
    code = "evidence-whole"
    if claim.trouble:
        return Condition(code, SHUT, claim.trouble, next="put the file back as it was, or run again what it shows")
    return Condition(code, OPEN, "no line and no file was changed after it was recorded")


def no_row_in_progress(session: Session) -> Condition:
    """What is being tested has its outcome in the log."""
    code, row = "rows-settled", session.in_progress
    if row is not None:
        text = f"row {row.number} is in progress"
        return Condition(code, SHUT, text, next=f"debug-spyre hypothesis conclude {row.number} VERDICT TEXT")
    return Condition(code, OPEN, "no row is in progress")


def next_action(session: Session, claim: CloseRequest) -> Condition:
    """What a person must decide, the escalation, or the next tier where every row is tested and none explains."""
    code = "next-action"
    told = claim.next_action or (session.nexts[-1].text if session.nexts else None)
    tested = bool(session.hypotheses) and not session.queued and session.in_progress is None
    explained = any(h.status == "confirmed" for h in session.hypotheses)
    wanted = (
        "all rows are tested and none explains it: name the next tier of experiments"
        if tested and not explained
        else "say what a person must decide, or the escalation"
    )
    if told is None or len(told.strip()) < SHORTEST_ACTION:
        given = f" ({told.strip()!r} says too little)" if told and told.strip() else ""
        text = f"no concrete next action{given}: {wanted}"
        return Condition(code, SHUT, text, next="debug-spyre close blocked --next TEXT")
    return Condition(code, OPEN, f"next: {told.strip()}")


SHOWN = 3
_OF_THE_BACKEND = f"package {BACKEND}"


def same_conditions(m: BeforeAfter) -> Condition:
    """Variables, loaded files, plugins, configuration, search path and torch-spyre were the same before and after."""
    code = "same-conditions"
    pairs = ((m.before_members, m.after_members), (m.before_matrix, m.after_matrix))
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not known:
        return Condition(code, UNKNOWN, "no runs before and after to compare", next=VALIDATE)
    untold = [x for pair in known for x in pair if x.conditions is None]
    if untold:
        again = BASELINE_MEMBERS if untold[0] is m.before_members else matrix_command(m.session)
        following = f"debug-spyre revert, then {again}" if untold[0] in m.before else VALIDATE
        return Condition(code, UNKNOWN, f"{untold[0].run.id} did not tell its conditions", next=following)
    for one, other in known:
        found = [d for d in differing(one, other) if not (d.name == _OF_THE_BACKEND and is_declared(m))]
        if found:
            text = f"{other.run.id} ran under other conditions than {one.run.id}: {says(found)}"
            return Condition(code, SHUT, text, next=f"undo the difference, then {VALIDATE}")
    return Condition(code, OPEN, f"the same conditions in {' and '.join(f'{a.run.id}/{b.run.id}' for a, b in known)}")


def tries(m: BeforeAfter) -> Condition:
    """A pass after red tries may be luck, on whichever tree they were: the members then pass once more for each, twice at most."""
    code, found = "tries", m.tries
    if m.after_members is None:
        return Condition(code, UNKNOWN, "the members were not run with the fix in place", next=VALIDATE)
    runs = len(m.repeats(m.after_members, POST_FIX, members_only=True) or [m.after_members])
    if runs < found.passes_needed:
        text = f"{found.says()}: the members have to pass in {found.passes_needed} runs of this tree, {runs} so far"
        return Condition(code, UNKNOWN, text, next=VALIDATE)
    return Condition(code, OPEN, f"{found.says()}; {runs} runs of the members on this tree")


def matrix_covers(m: BeforeAfter) -> Condition:
    """The matrix before the fix has every test that triage, or an earlier matrix of the session, ran."""
    code, before = "matrix-covers", m.before_matrix
    if before is None or before.sight is None:
        return Condition(code, UNKNOWN, "the matrix was not run before the fix", next=matrix_command(m.session))
    if m.left_out is not None:
        wider, missing = m.left_out
        text = f"{before.run.id} leaves out {len(missing)} of the {len(wider.scope.nodeids)} tests of {wider.run.id}"
        words = wider.run.pytest_args or m.session.matrix or ("PYTEST-ARGS",)
        again = " ".join(("debug-spyre run --as full-matrix", *map(shlex.quote, words)))
        return Condition(code, SHUT, text, missing, f"debug-spyre revert, then {again}")
    return Condition(code, OPEN, f"no earlier matrix has a test that {before.run.id} lacks")


def says(found: list[Difference]) -> str:
    """The differences by name, the first few in full."""
    told = "; ".join(f"{d.name}: {d.text}" for d in found[:SHOWN])
    return told if len(found) <= SHOWN else f"{told}; and {len(found) - SHOWN} more"
