"""status: where a session stands, once or as it changes, and which sessions there are."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Any

from debug_spyre.page.io.redraw import redraw
from debug_spyre.page.overview import brief, clip, overview
from debug_spyre.queue.session_warnings import SessionWarning, edited, session_warnings
from debug_spyre.runs.io import finish_run
from debug_spyre.session.io import seals, workspace
from debug_spyre.session.io.evidence_store import all_evidence
from debug_spyre.session.io.workspace import Folder
from debug_spyre.session.state import Session
from debug_spyre.triage.io.carving import half_moves
from debug_spyre.verbs.answer import answer, warn
from debug_spyre.verbs.session_option import add_session_argument, the_session
from debug_spyre.verbs.verb import Verb
from debug_spyre.vocabulary.errors import BadInputError, UsageError
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import Status

WATCH_SECONDS = 2.0


def _status_arguments(parser: ArgumentParser) -> None:
    add_session_argument(parser)
    parser.add_argument("--brief", action="store_true", help="print a few facts, for use after a compaction")
    parser.add_argument("--all", action="store_true", help="list all sessions of this checkout, one line each")
    parser.add_argument(
        "--watch", action="store_true", help="keep running and show changes; with --json one object per line"
    )


def _status(args: Namespace) -> int:
    if args.all and args.watch:
        raise UsageError("--watch follows one session, --all lists them", next="debug-spyre status --watch")
    if args.all:
        return _status_all(args)
    folder = the_session(args)
    if args.watch:
        return _watch(folder, args)
    if finish_run.recover(folder.path):  # a run whose supervisor was killed is recorded as lost by whoever looks
        redraw(folder.path)
    session, evidence = _load(folder)
    answer(_shown(args, session, evidence, folder), _status_json(session, evidence, folder), as_json=args.json)
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
            rows.append({"session": folder.stem, "status": session.status.value, "symptom": session.symptom})
        except BadInputError as error:
            rows.append({"session": folder.stem, "status": "unreadable", "symptom": error.what})
    lines = [clip(f"{r['status']:13s} {r['session']}  {r['symptom']}") for r in rows] or ["no sessions yet"]
    answer(lines, {"sessions": rows}, as_json=args.json)
    return 0


def _watch(folder: Folder, args: Namespace) -> int:
    """Each change on a cleared screen; where nobody looks at a terminal, one after the other (--json: an object a line)."""
    last, clear = None, "\x1b[2J\x1b[H" if sys.stdout.isatty() else ""
    while True:
        session, evidence = _load(folder)
        if session.last_seq != last:
            last, lines = session.last_seq, _shown(args, session, evidence, folder)
            answer(clear + "\n".join(lines), _status_json(session, evidence, folder), as_json=args.json)
            sys.stdout.flush()
        if session.status is not Status.INVESTIGATING:
            return 0
        time.sleep(WATCH_SECONDS)


VERBS = {"status": Verb(_status_arguments, _status, "debug-spyre status")}
