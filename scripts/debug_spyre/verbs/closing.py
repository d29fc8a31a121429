"""close and reopen: the gate decides, approval and overrides are a person's, and the answer names what is missing."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from debug_spyre.gate.before_after import BeforeAfter
from debug_spyre.gate.close_request import CloseRequest, Retrospective
from debug_spyre.gate.gate import OVERRIDABLE, Gate, judge, judge_blocked
from debug_spyre.gate.io.validation_jobs import count_before, forget_texts, gate_evidence, kept_texts, present
from debug_spyre.host.files import sha256_of
from debug_spyre.queue.queue_rules import check_open, nothing_explains
from debug_spyre.session import events as ev
from debug_spyre.session.io import seals
from debug_spyre.session.io.workspace import Folder, load_session
from debug_spyre.session.replay import replay
from debug_spyre.session.state import Session
from debug_spyre.tree.changes import Changes, changes_from_json, mask_patch, read_patch
from debug_spyre.tree.io.revert import save_patch
from debug_spyre.tree.io.test_code import patch_since, with_test_code
from debug_spyre.verbs.session_option import add_session_argument, after_change, refuse_while_running, the_session
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import DebugSpyreError, Exit, RefusedError, UsageError
from debug_spyre.vocabulary.masking import secret_values
from debug_spyre.vocabulary.words import APPROVED_CHANGE, GateState, Status

SHOWN = 4
WIDTH = 110


def _close_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("status", choices=(Status.RESOLVED.value, Status.BLOCKED.value))
    parser.add_argument("--cause", metavar="TEXT", help="for the retrospective: what the cause was")
    parser.add_argument("--wasted", metavar="TEXT", help="for the retrospective: which effort was wasted")
    parser.add_argument("--signal", metavar="TEXT", help="for the retrospective: which signal pointed to the cause")
    parser.add_argument(
        "--next",
        dest="next_action",
        metavar="TEXT",
        help="only for blocked: what a person must decide, or what to try next",
    )
    parser.add_argument("--patch-approved", metavar="REASON", help="a person approves that the patch stays in the tree")
    parser.add_argument(
        "--workaround",
        action="store_true",
        help="the fix is a work-around; the bug in torch-spyre must be escalated as well",
    )
    parser.add_argument(
        "--override",
        nargs=2,
        action="append",
        default=[],
        metavar=("CODE", "REASON"),
        help="a person sets a condition aside",
    )
    parser.add_argument("--check", action="store_true", help="only show all conditions of the gate; close nothing")
    add_session_argument(parser)


def _close(args: Namespace) -> int:
    folder = the_session(args)
    session = load_session(folder)
    if not args.check:
        check_open(session)
        refuse_while_running(folder, session)
    wanted = Status(args.status)
    if wanted is Status.RESOLVED and not args.check and not args.patch_approved:
        count_before(folder, session)
        session = load_session(folder)
    claim = _claim(args, folder, session)
    if args.check:
        gate = _judge(session, folder, wanted, claim)
        answer(_says_all(gate, wanted), {"session": folder.stem, **gate.to_json()}, as_json=args.json)
        return int(Exit.YES if gate.state is GateState.OPEN else Exit.NO)
    verdict: list[Gate] = []

    def events(known: tuple[ev.Event, ...]) -> Iterable[ev.Event]:
        now = replay(known)
        check_open(now)
        gate = _judge(now, folder, wanted, claim)
        verdict.append(gate)
        if gate.state is not GateState.OPEN:
            return ()
        kept = _keep_approved(folder, now) if claim.approved else ()
        return (*kept, *_events(now, gate, claim, wanted))

    folder.journal.append_with(events)
    if verdict[0].state is GateState.OPEN:
        forget_texts(folder.path)
    html = after_change(folder)
    return _answer(folder, verdict[0], wanted, claim, html, as_json=args.json)


def _claim(args: Namespace, folder: Folder, session: Session) -> CloseRequest:
    unknown = [code for code, _ in args.override if code not in OVERRIDABLE]
    if unknown:
        raise UsageError(
            f"{unknown[0]} can't be set aside; these can: {', '.join(sorted(OVERRIDABLE))}",
            next=f"debug-spyre close {args.status} --check",
        )
    empty = [code for code, reason in args.override if not reason.strip()]
    if empty or (args.patch_approved is not None and not args.patch_approved.strip()):
        raise UsageError("a person sets something aside with a reason", next="debug-spyre close --help")
    now, kept = present(Path(session.checkout)), kept_texts(folder.path)
    return CloseRequest(
        tree_digest=now.tree,
        backend=now.backend,
        changes=_changes(folder, session, now.tree),
        retrospective=Retrospective(*(getattr(args, name) or kept.get(name) for name in ("cause", "wasted", "signal"))),
        overrides=dict(args.override),
        approved=args.patch_approved,
        next_action=args.next_action or kept.get("next_action"),
        workaround=args.workaround,
        trouble=seals.trouble(folder.path),
    )


def _changes(folder: Folder, session: Session, tree: str | None) -> Changes | None:
    """What the validated patch touches: the saved patch where it was reverted, else the tree as it is."""
    m = BeforeAfter(session, gate_evidence(folder, session))
    if m.patched is None:
        return None
    if m.patched == m.start:
        return changes_from_json({})
    try:
        for revert in reversed(session.reverts):
            if revert.patched == m.patched and revert.patch:
                patch = (folder.path / revert.patch).read_bytes()
                return with_test_code(read_patch(patch), patch, Path(session.checkout))
        if tree == m.patched:
            patch = patch_since(Path(session.checkout), session.tree, folder.path)
            return with_test_code(read_patch(patch), patch, Path(session.checkout))
    except (OSError, DebugSpyreError) as error:
        warn(f"what the patch touches is unknown: {error}")
    return None


def _keep_approved(folder: Folder, session: Session) -> tuple[ev.Event, ...]:
    """The approved change as a file, without its secrets: the page shows what stays in the tree."""
    try:
        whole = patch_since(Path(session.checkout), session.tree, folder.path)
        patch = save_patch(folder.path, mask_patch(whole, values=secret_values(os.environ)).text)
    except (OSError, DebugSpyreError) as error:
        warn(f"the approved change is not kept: {error}")
        return ()
    if patch is None:
        return ()
    note = APPROVED_CHANGE
    return (ev.ArtifactSaved(path=patch.name, sha256=sha256_of(patch), size=patch.stat().st_size, note=note),)


def _judge(session: Session, folder: Folder, wanted: Status, claim: CloseRequest) -> Gate:
    if wanted is Status.BLOCKED:
        return judge_blocked(session, claim)
    return judge(session, gate_evidence(folder, session), claim)


def _events(session: Session, gate: Gate, claim: CloseRequest, wanted: Status) -> Iterable[ev.Event]:
    used = {x.code for x in gate.overridden}
    for code, reason in (claim.overrides or {}).items():
        if code in used:
            yield ev.GateOverridden(code=code, reason=reason)
    if claim.approved:
        yield ev.PatchApproved(reason=claim.approved, digest=claim.tree_digest)
    table = session.validation
    if wanted is Status.RESOLVED and table is not None:
        yield ev.ValidationRecorded(rows=table.rows, matrix=table.matrix, gate=gate.to_json(), runs=table.runs)
    told = claim.retrospective or Retrospective()
    yield ev.SessionClosed(
        status=str(wanted),
        cause=told.cause,
        wasted=told.wasted,
        signal=told.signal,
        next_action=claim.next_action or (session.nexts[-1].text if session.nexts else None),
        workaround=claim.workaround,
        escalated=session.bundle.report if session.bundle else None,
    )


def _answer(folder: Folder, gate: Gate, wanted: Status, claim: CloseRequest, html: Path, *, as_json: bool) -> int:
    session = load_session(folder)
    is_open = gate.state is GateState.OPEN
    data: dict[str, Any] = {"session": folder.stem, "status": str(session.status), **gate.to_json(), "log": str(html)}
    lines = _says_closed(session, gate, wanted, claim) if is_open else _says_refused(gate, wanted)
    answer([*lines, f"log: {html}"], data, as_json=as_json)
    return int(Exit.YES if is_open else Exit.NO)


def _says_closed(session: Session, gate: Gate, wanted: Status, claim: CloseRequest) -> list[str]:
    lines = [f"{wanted}" + (" by workaround" if claim.workaround else "")]
    by = {override.code: override.by for override in session.overrides}
    lines += [f"  set aside by {by.get(x.code, 'somebody')}: {x.code}: {x.override}" for x in gate.overridden]
    if claim.approved and session.approval:
        lines.append(f"  the patch stays in the tree, approved by {session.approval.by}")
    if session.since_bundle:
        lines.append(f"  the bundle lacks what came after it: {', '.join(session.since_bundle[:SHOWN])}")
        lines.append(f"  next: debug-spyre escalate --session {session.stem}")
    elif session.bundle is None and _is_for_its_team(session, claim):
        lines.append(
            f"  next: debug-spyre escalate --session {session.stem}"
        )  # a closed session is not the current one
    if wanted is Status.BLOCKED and nothing_explains(session):
        lines.insert(1, "  every row was tested and none explains it: the next tier is named")
    return lines


def _is_for_its_team(session: Session, claim: CloseRequest) -> bool:
    """The bug was proved in torch-spyre, is gone round, or is said to be theirs."""
    told = (claim.next_action or "").lower().replace("_", "-")
    is_gone_round = claim.workaround or bool(claim.approved)
    return is_gone_round or session.verified_repro is not None or "torch-spyre" in told


def _says_refused(gate: Gate, wanted: Status) -> list[str]:
    lines = [f"not {wanted}: the gate is {gate.state} ({len(gate.reasons)} of {len(gate.conditions)} conditions)"]
    lines += [f"  {reason.code}: {reason.text[:WIDTH]}" for reason in gate.reasons[:SHOWN]]
    if len(gate.reasons) > SHOWN:
        lines.append(f"  and {len(gate.reasons) - SHOWN} more: debug-spyre close {wanted} --check")
    return [*lines, f"  next: {gate.reasons[0].next[:WIDTH]}"]


def _says_all(gate: Gate, wanted: Status) -> list[str]:
    lines = [f"gate for {wanted}: {gate.state}"]
    for x in gate.conditions:
        state = f"set aside ({x.override})" if x.override is not None else str(x.state)
        lines.append(f"  {state:8} {x.code}: {x.text[:WIDTH]}")
        if x.next and x.state is not GateState.OPEN and x.override is None:
            lines.append(f"           next: {x.next[:WIDTH]}")
    return lines


def _reopen_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("reason", help="why the session is investigated again")
    add_session_argument(parser)


def _reopen(args: Namespace) -> int:
    folder = the_session(args)
    if not args.reason.strip():
        raise UsageError("a session is reopened with a reason", next="debug-spyre reopen 'REASON'")

    def events(session: Session) -> Iterable[ev.Event]:
        if session.status is Status.INVESTIGATING:
            raise RefusedError(f"session {session.stem} is open already", next="debug-spyre status")
        return [ev.SessionReopened(reason=args.reason.strip())]

    folder.journal.record(events)
    html = after_change(folder)
    lines = ["investigating again; what was validated has to be validated once more", f"log: {html}"]
    answer(lines, {"session": folder.stem, "status": str(Status.INVESTIGATING), "log": str(html)}, as_json=args.json)
    return int(Exit.YES)


VERBS = {
    "close": Verb(
        _close_arguments,
        _close,
        "debug-spyre close resolved --cause 'the sum covers half the row' --wasted 'hypotheses 3 to 5' --signal 'period 64'",
    ),
    "reopen": Verb(_reopen_arguments, _reopen, "debug-spyre reopen 'fails again after the update of torch-spyre'"),
}
