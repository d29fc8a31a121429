"""Where a session stands: status (once or as it changes), render and index (its pages), prune (removal of what is old)."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Any

from debug_spyre.agent.reminders import at_stop
from debug_spyre.gate.finishing import labels
from debug_spyre.page.io import old_logs, page
from debug_spyre.page.io.redraw import redraw
from debug_spyre.page.overview import brief, clip, overview
from debug_spyre.queue.session_warnings import SessionWarning, edited, session_warnings
from debug_spyre.runs.io import finish_run
from debug_spyre.session.io import seals, workspace
from debug_spyre.session.io.workspace import Folder, all_evidence, find_checkout, logs_folder, session_folders
from debug_spyre.session.state import Session
from debug_spyre.triage.io.opening import half_moves
from debug_spyre.verbs.session_option import add_session_argument, answer_in, the_session
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import BadInputError, Exit, UsageError
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.safe_text import count, size
from debug_spyre.vocabulary.words import Status

_SPARED = "what an open session needs, and runs under way, are never removed"


def _render_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="render the pages of all sessions, and the index")
    add_session_argument(parser)


def _render(args: Namespace) -> int:
    if args.all:
        logs = logs_folder(find_checkout())
        pages, unread = [], 0
        for folder in session_folders(logs):
            try:
                pages.append(str(page.render(folder)))
            except BadInputError as error:  # one damaged journal keeps no other page from being written
                warn(error.what)
                unread += 1
        pages.append(str(page.render_index(logs)))
    else:
        pages, unread = [str(page.render(the_session(args)))], 0
    answer(pages, {"pages": pages}, as_json=args.json)
    return int(Exit.BAD_INPUT if unread else Exit.YES)


def _index_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _index(args: Namespace) -> int:
    logs = logs_folder(find_checkout())
    written = page.render_index(logs) if logs.is_dir() else None
    if written is None:
        raise UsageError(f"there are no sessions: {logs} does not exist", next="debug-spyre triage")
    total = len(session_folders(logs))
    answer(f"{written}  ({count(total, 'session')})", {"page": str(written), "sessions": total}, as_json=args.json)
    return 0


def _prune_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--older",
        metavar="DAYS",
        required=True,
        help="remove closed sessions, triages and limit probes unchanged for this many days",
    )
    parser.add_argument("--dry-run", action="store_true", help="name them; remove nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _prune(args: Namespace) -> int:
    days = _days(args.older)
    logs = logs_folder(find_checkout())
    done = old_logs.prune(logs, days=days, dry_run=args.dry_run)
    if done.sessions and not args.dry_run:
        page.render_index(logs)
    word = "would remove" if args.dry_run else "removed"
    lines = [f"{word} {i.folder.stem}  {i.status}, silent {i.days} days, {size(i.octets)}" for i in done.sessions]
    lines += [f"{word} {i.name}  silent {i.days} days, {size(i.octets)}" for i in done.runs]
    others = f" and {count(len(done.runs), 'folder')} of runs" if done.runs else ""
    lines.append(f"{word} {count(len(done.sessions), 'closed session')}{others}, {done.octets:,} bytes; {_SPARED}")
    data = {
        "dry_run": args.dry_run,
        "sessions": [
            {"stem": i.folder.stem, "status": i.status, "days": i.days, "bytes": i.octets} for i in done.sessions
        ],
        "runs": [{"folder": i.name, "days": i.days, "bytes": i.octets} for i in done.runs],
        "bytes": done.octets,
    }
    answer(lines, data, as_json=args.json)
    return 0


def _days(text: str) -> float:
    try:
        days = float(text.removesuffix("d"))
    except ValueError:
        days = -1.0
    if not 0 <= days < 100_000:
        raise UsageError(f"--older takes a number of days, not {text!r}", next="debug-spyre prune --older 30 --dry-run")
    return days


_PAGES = {
    "render": Verb(_render_arguments, _render, "debug-spyre render --session rmsnorm"),
    "index": Verb(_index_arguments, _index, "debug-spyre index"),
    "prune": Verb(_prune_arguments, _prune, "debug-spyre prune --older 30 --dry-run"),
}


WATCH_SECONDS = 2.0


def _status_arguments(parser: ArgumentParser) -> None:
    add_session_argument(parser)
    parser.add_argument("--brief", action="store_true", help="print a few facts, for use after a compaction")
    parser.add_argument(
        "--hook", action="store_true", help="answer the client's Stop event on standard input (the guard asks)"
    )
    parser.add_argument("--all", action="store_true", help="list all sessions of this checkout, one line each")
    parser.add_argument(
        "--watch", action="store_true", help="keep running and show changes; with --json one object per line"
    )


def _status(args: Namespace) -> int:
    if args.all and args.watch:
        raise UsageError("--watch follows one session, --all lists them", next="debug-spyre status --watch")
    if args.all:
        return _status_all(args)
    try:
        folder = the_session(args)
    except UsageError:
        logs = workspace.logs_folder(workspace.find_checkout())
        asks_for_one = args.session or args.watch or args.json or args.brief or args.hook
        if asks_for_one or not workspace.session_folders(logs):
            raise
        return _status_all(args)  # none or several are open
    if args.hook:
        held = at_stop(json.load(sys.stdin), workspace.load_session(folder), folder.path)
        print(json.dumps(held) if held else "")
        return 0
    if args.watch:
        return _watch(folder, args)
    if finish_run.recover(folder.path):  # a run whose supervisor was killed is recorded as lost by whoever looks
        redraw(folder.path)
    session, evidence = _load(folder)
    answer_in(
        folder, _shown(args, session, evidence, folder), _status_json(session, evidence, folder), as_json=args.json
    )
    return 0


def _shown(args: Namespace, session: Session, evidence: dict[str, Evidence], folder: Folder) -> list[str]:
    html = str(folder.html)
    if args.brief:
        return brief(session, page=html)
    return overview(session, evidence, page=html, more=_off(folder, session))


def _off(folder: Folder, session: Session) -> tuple[SessionWarning, ...]:
    return (*edited(seals.trouble(folder.path)), *half_moves(folder, session))


def _load(folder: Folder) -> tuple[Session, dict[str, Evidence]]:
    reading = folder.journal.read()
    if reading.torn:
        warn(f"the last line of {folder.journal.path} was torn by a crash and is left out")
    session = workspace.load_session(folder)
    return session, all_evidence(folder, session)


def _status_json(session: Session, evidence: dict[str, Evidence], folder: Folder) -> dict[str, Any]:
    return {
        "session": session.stem,
        "slug": session.slug,
        "status": session.status.value,
        "symptom": session.symptom,
        "members": [{"nodeid": m.nodeid, "predicate": m.says()} for m in session.members],
        "probe": session.probe,
        "summary": session.summaries[-1].text if session.summaries else None,
        "hypotheses": [
            {"number": h.number, "text": h.text, "status": h.status.value, "outcome": h.outcome}
            for h in session.hypotheses
        ],
        "running": [r.id for r in session.runs.values() if not r.is_finished],
        "concerns": [
            {"code": c.code, "text": c.text, "next": c.next}
            for c in (*_off(folder, session), *session_warnings(session, evidence))
        ],
        "gate": session.validation.gate if session.validation else None,
        "updated": session.updated_at,
        "log": str(folder.html),
    }


def _status_all(args: Namespace) -> int:
    logs = workspace.logs_folder(workspace.find_checkout())
    rows = []
    for folder in workspace.session_folders(logs):
        try:
            session = workspace.load_session(folder)
            found = next((r.lines[0] for r in reversed(session.reports) if r.verb == "investigate" and r.lines), None)
            rows.append(
                {"session": folder.stem, "status": session.status.value, "symptom": session.symptom,
                 "labels": list(labels(session)), "found": found}
            )  # fmt: skip
        except BadInputError as error:
            rows.append(
                {"session": folder.stem, "status": "unreadable", "symptom": error.what, "labels": [], "found": None}
            )
    lines = [_listed(row) for row in rows] or ["no sessions yet"]
    going = next((r["session"] for r in rows if r["status"] == Status.INVESTIGATING), None)
    lines += [f"next: debug-spyre status --session {going}"] if going else []
    answer(lines, {"sessions": rows}, as_json=args.json)
    return 0


def _listed(row: dict[str, Any]) -> str:
    """One session in one line: its state, and what was found; where nothing was, the symptom."""
    state = " ".join([row["status"], *(f"({', '.join(row['labels'])})" for _ in row["labels"][:1])])
    return clip(f"{state:13s} {row['session']}  {row['found'] or row['symptom']}")


def _watch(folder: Folder, args: Namespace) -> int:
    """Each change on a cleared screen; where nobody looks at a terminal, one after the other (--json: an object a line)."""
    last, clear = None, "\x1b[2J\x1b[H" if sys.stdout.isatty() else ""
    while True:
        session, evidence = _load(folder)
        if session.last_seq != last:
            last, lines = session.last_seq, _shown(args, session, evidence, folder)
            sys.stdout.write("" if args.json else clear)
            answer(lines, _status_json(session, evidence, folder), as_json=args.json)
            sys.stdout.flush()
        if session.status is not Status.INVESTIGATING or getattr(sys.stdout, "fault", None) is not None:
            return 0  # it has ended, or nobody reads any more
        time.sleep(WATCH_SECONDS)


VERBS = {**_PAGES, "status": Verb(_status_arguments, _status, "debug-spyre status")}
