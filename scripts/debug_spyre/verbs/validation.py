"""validate: every member, then the matrix, with the fix in place; fills the table and says what the gate thinks."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from debug_spyre.gate import validation as core
from debug_spyre.gate.before_after import BeforeAfter, Tries
from debug_spyre.gate.close_request import CloseRequest
from debug_spyre.gate.gate import Gate, judge
from debug_spyre.gate.io.validation_jobs import Limits, gate_evidence, job_for, present, running
from debug_spyre.page.io.redraw import redraw
from debug_spyre.queue.queue_rules import check_open
from debug_spyre.runs.io.finish_run import recover
from debug_spyre.runs.io.jobs import RunRecord, follow, foreground_seconds, run_job
from debug_spyre.session.events import Event, ValidationRecorded
from debug_spyre.session.io import seals
from debug_spyre.session.io.workspace import Folder, load_session
from debug_spyre.session.replay import replay
from debug_spyre.tree.changes import Changes, read_patch
from debug_spyre.tree.io.test_code import patch_since, with_test_code
from debug_spyre.verbs.session_option import add_session_argument, after_change, answer_in, the_session
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import DebugSpyreError, Exit, RefusedError
from debug_spyre.vocabulary.words import POST_FIX, POST_FIX_MATRIX, GateState

SHOWN = 3


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--members-only",
        action="store_true",
        help="skip the matrix; allowed only if the patch touches nothing but tests",
    )
    parser.add_argument("--again", action="store_true", help="run everything again, even if nothing changed")
    parser.add_argument("--timeout", type=float, metavar="S", help="end a run after S seconds (default: no limit)")
    parser.add_argument(
        "--stall",
        type=float,
        metavar="S",
        help="end the run after S seconds without output or result (default: warn at 300)",
    )
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument(
        "--wait", type=float, metavar="S", help="wait up to S seconds for the card (default: wait until it is free)"
    )
    waiting.add_argument("--no-wait", action="store_true", help="return with status 75 at once if the card is busy")
    parser.add_argument(
        "--foreground",
        type=float,
        metavar="S",
        help="follow the run for S seconds, then return with status 79 while it goes on",
    )
    add_session_argument(parser)


def _validate(args: Namespace) -> int:
    folder = the_session(args)
    if recover(folder.path):
        redraw(folder.path)
    session = load_session(folder)
    check_open(session)
    checkout = Path(session.checkout)
    changes = _changes(folder)
    if args.members_only:
        _refuse_shared_code(changes)
    limits = Limits(args.timeout, args.stall, 0.0 if args.no_wait else args.wait)
    deadline = _deadline(args.foreground)
    since = session.last_seq if args.again else 0
    while True:
        under_way = running(folder)
        if under_way is not None:
            record = follow(under_way, foreground=_left(deadline))
        else:
            m = _measured(folder)
            now = present(checkout)
            _refuse_nothing_to_judge(m, now, anyway=args.again)
            step = core.next_step(m, now, since=since, matrix=not args.members_only)
            if step is None:
                break
            if step.name != POST_FIX:
                warn(f"now: {step.why}")
            record = run_job(job_for(step, m, folder, limits), foreground=_left(deadline))
        early = _ended_early(record, folder, args)
        if early is not None:
            return early
    return _record(folder, changes, args)


def _refuse_nothing_to_judge(m: BeforeAfter, now: core.Present, *, anyway: bool) -> None:
    if anyway:
        return
    commands = core.missing_before(m)
    if commands:
        raise RefusedError(
            f"{len(commands)} of 2 measurements before the fix are missing, so nothing could be compared",
            next=f"debug-spyre revert, then {'; '.join(commands)}; then git apply the saved patch",
        )
    if core.is_unchanged(m, now):
        raise RefusedError(
            f"tree {now.tree} and torch-spyre are as before the fix: there is nothing to validate",
            next="put the fix on, then debug-spyre validate (--again runs it all the same)",
        )


def _refuse_shared_code(changes: Changes | None) -> None:
    if changes is not None and changes.only_tests:
        return
    touched = [f for f in changes.files if f not in changes.tests] if changes else []
    why = f"the patch touches {len(touched)} files that are no tests ({', '.join(touched[:SHOWN])})"
    raise RefusedError(
        (why if touched else "it is not known what the patch touches") + ", so the matrix has to be run again",
        next="debug-spyre validate",
    )


def _changes(folder: Folder) -> Changes | None:
    session = load_session(folder)
    try:
        patch = patch_since(Path(session.checkout), session.tree, folder.path)
        return with_test_code(read_patch(patch), patch, Path(session.checkout))
    except DebugSpyreError as error:
        warn(f"what the patch touches is unknown: {error.what}")
        return None


def _measured(folder: Folder) -> BeforeAfter:
    session = load_session(folder)
    return BeforeAfter(session, gate_evidence(folder, session))


def _ended_early(record: RunRecord, folder: Folder, args: Namespace) -> int | None:
    """The exit status where the validation can't go on now: still running, no evidence, cut short."""
    status = record.exit_status()
    if record.status == "running":
        lines = [f"{record.id} ({record.name}) is running", f"  next: debug-spyre validate --session {folder.stem}"]
        answer(lines, {"gate": str(GateState.UNKNOWN), "reasons": [], "run": record.to_json()}, as_json=args.json)
        return int(Exit.RUNNING)
    if (
        record.valid
        and record.evidence is not None
        and record.status in {"passed", "failed", "error", "timeout", "stalled"}
    ):
        return None
    lines = [f"{record.id} ({record.name}) is {record.status}, it proves nothing", *record.warnings[:SHOWN]]
    answer(
        [*lines, "  next: debug-spyre validate"],
        {"gate": "unknown", "reasons": [], "run": record.to_json()},
        as_json=args.json,
    )
    after_change(folder)
    return status or int(Exit.INVALID)


def _record(folder: Folder, changes: Changes | None, args: Namespace) -> int:
    now = present(Path(load_session(folder).checkout))
    trouble = seals.trouble(folder.path)
    claim = CloseRequest(tree_digest=now.tree, backend=now.backend, changes=changes, trouble=trouble)

    def events(known: tuple[Event, ...]) -> Iterable[Event]:
        session = replay(known)
        m = BeforeAfter(session, gate_evidence(folder, session))
        rows = core.regression_rows(session, m)
        bare = ValidationRecorded(
            rows=core.table(m),
            matrix=core.matrix_record(m, changes),
            runs=tuple(x.run.id for x in _runs(m)),
        )
        future = replay([*known, *rows, bare])
        gate = judge(future, gate_evidence(folder, session), claim)
        return [*rows, ValidationRecorded(rows=bare.rows, matrix=bare.matrix, runs=bare.runs, gate=gate.to_json())]

    made = folder.journal.append_with(events)
    session = load_session(folder)
    gate = judge(session, gate_evidence(folder, session), claim)
    html = after_change(folder)
    table = made[-1]
    assert isinstance(table, ValidationRecorded)
    data = {
        "session": folder.stem,
        **gate.to_json(),
        "rows": list(table.rows),
        "matrix": table.matrix,
        "regressions": len(made) - 1,
        "log": str(html),
    }
    answer_in(
        folder,
        [*_says(table, gate, _measured(folder).tries, regressions=len(made) - 1), f"log: {html}"],
        data,
        as_json=args.json,
    )
    failing = {"members-pass", "no-regression"} & {r.code for r in gate.reasons}
    return int(Exit.NO if failing else Exit.YES)


def _runs(m: BeforeAfter) -> list[Any]:
    """The runs that the table speaks of: all on the tree of the newest."""
    named = [*m.all_named(POST_FIX, members_only=True), *m.all_named(POST_FIX_MATRIX, members_only=False)]
    tree = m.after[-1].tree if m.after else None
    return [*m.before, *(x for x in named if x.tree == tree or x in m.after)]


def _says(table: ValidationRecorded, gate: Gate, tries: Tries, *, regressions: int) -> list[str]:
    cleared = sum(1 for row in table.rows if row["cleared"])
    lines = [f"members: {cleared} of {len(table.rows)} cleared" + (f" ({tries.says()})" if tries.red else "")]
    matrix = table.matrix or {}
    if matrix.get("post_run"):
        told = matrix["numbers"]
        lines.append(
            f"matrix: {told['new']} new failures, {told['unsteady']} unsteady, {told['worse']} worse, {told['vanished']} without an outcome, "
            f"{told['gone']} cleared ({matrix['pre_run']} -> {matrix['post_run']})"
        )
    if regressions:
        lines.append(f"{regressions} regressions queued as hypotheses; the session stays investigating")
    lines.append(f"gate for resolved: {gate.state}")
    lines += [f"  {r.code}: {r.text[:110]}" for r in gate.reasons[:SHOWN]]
    if len(gate.reasons) > SHOWN:
        lines.append(f"  and {len(gate.reasons) - SHOWN} more (debug-spyre close resolved --check)")
    if gate.reasons:
        lines.append(f"  next: {gate.reasons[0].next[:110]}")
    return lines


def _deadline(foreground: float | None) -> float | None:
    seconds = foreground_seconds(foreground)
    return None if seconds is None else time.monotonic() + seconds


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


VERBS = {"validate": Verb(_arguments, _validate, "debug-spyre validate --foreground 570")}
