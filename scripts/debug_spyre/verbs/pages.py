"""render, index, prune: the pages of sessions, and the removal of what is old."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from debug_spyre.page.io import old_logs, page
from debug_spyre.session.io.workspace import find_checkout, logs_folder, session_folders
from debug_spyre.verbs.answer import answer, warn
from debug_spyre.verbs.session_option import add_session_argument, the_session
from debug_spyre.verbs.verb import Verb
from debug_spyre.vocabulary.errors import BadInputError, Exit, UsageError
from debug_spyre.vocabulary.safe_text import count, size

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


VERBS = {
    "render": Verb(_render_arguments, _render, "debug-spyre render --session rmsnorm"),
    "index": Verb(_index_arguments, _index, "debug-spyre index"),
    "prune": Verb(_prune_arguments, _prune, "debug-spyre prune --older 30 --dry-run"),
}
