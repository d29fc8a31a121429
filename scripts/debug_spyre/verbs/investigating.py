"""The verb `investigate`: from a red matrix to proved causes in one supervised job, cut off by a budget, taken up again."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from debug_spyre.examine.dossier import Dossier, cause_lines, dossier_from, dossier_to
from debug_spyre.fleet.io.lane import chosen_cards
from debug_spyre.host.files import make_folder, write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.investigate.io.matrix import DOSSIER
from debug_spyre.page.io.redraw import redraw
from debug_spyre.runs.io.finding_runs import new_triage_folder
from debug_spyre.runs.io.finish_run import recover
from debug_spyre.runs.io.jobs import SCRIPTS, JobSpec, follow_steps, foreground_seconds, last_lines, submit
from debug_spyre.runs.io.pytest_command import check_node_ids, from_root
from debug_spyre.runs.io.run_folder import RunFolder, run_folders_of
from debug_spyre.runs.pytest_words import check
from debug_spyre.session.io.workspace import find_checkout, logs_folder
from debug_spyre.triage.io.triages import find_triage
from debug_spyre.verbs.session_option import add_cards_argument
from debug_spyre.verbs.verb import Verb, answer
from debug_spyre.vocabulary.errors import BadInputError, Exit, UsageError
from debug_spyre.vocabulary.words import RunStatus

VERB, NAME, REQUEST = "investigate", "investigation", "investigate.json"
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.worker import investigate; sys.exit(investigate(sys.argv[2:]))"
EXAMPLE = "debug-spyre investigate tests"
MOST_CAUSES = 6


def _arguments(parser: ArgumentParser) -> None:
    parser.usage = "debug-spyre investigate [PYTEST-ARGS] | --last | --resume | --show"
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--last", action="store_true", help="investigate the tests of the newest triage")
    which.add_argument(
        "--resume",
        action="store_true",
        help="if the newest investigation still runs, follow it; else continue with its next steps",
    )
    which.add_argument("--show", action="store_true", help="print the newest dossier again; run nothing")
    parser.add_argument(
        "--minutes", type=float, default=15.0, metavar="M", help="start no new step after M minutes (default 15)"
    )
    parser.add_argument(
        "--foreground",
        type=float,
        metavar="S",
        help="follow the run for S seconds, then return with status 79 while it goes on",
    )
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument("--wait", type=float, metavar="S", help="wait up to S seconds for the card")
    waiting.add_argument("--no-wait", action="store_true", help="return with status 75 at once if the card is busy")
    add_cards_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _investigate(args: Namespace) -> int:
    if not 0 < args.minutes < 1e6:
        raise UsageError(f"--minutes {args.minutes:g} leaves no time for a step", next=EXAMPLE)
    checkout = find_checkout()
    if (args.resume or args.show or args.last) and args.pytest_args:
        raise UsageError(f"the tests are known already, so {args.pytest_args[0]!r} has no meaning", next=EXAMPLE)
    if args.show:
        return _say(_newest(checkout), args)
    if args.resume:
        folder = _newest(checkout)
        live = next((r for r in run_folders_of(folder) if r.has_live_supervisor() and r.job().verb == VERB), None)
        if live is not None:
            return _followed(live, args)
    else:
        words = (
            tuple(find_triage(logs_folder(checkout)).data.get("pytest_args") or ())
            if args.last
            else (from_root(checkout, [w for w in args.pytest_args or () if w != "--"]))
        )
        check(words, verb=VERB)
        check_node_ids(checkout, words, verb=VERB)  # before the job: there it would be a fault
        folder = new_triage_folder(logs_folder(checkout)).path
        _request(folder, checkout, words)
    return _followed(_started(folder, checkout, args), args)


def _request(folder: Path, checkout: Path, words: tuple[str, ...]) -> None:
    from debug_spyre.session.io.workspace import make_logs

    make_logs(folder.parent.parent)
    make_folder(folder)
    write_atomically(folder / REQUEST, json.dumps({"checkout": str(checkout), "words": list(words)}))


def _newest(checkout: Path) -> Path:
    base = logs_folder(checkout) / "triage"
    found = sorted(p for p in base.iterdir() if (p / REQUEST).is_file()) if base.is_dir() else []
    if not found:
        raise UsageError("nothing was investigated in this checkout yet", next=EXAMPLE)
    return found[-1]


def _started(folder: Path, checkout: Path, args: Namespace) -> RunFolder:
    recover(folder)
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    cards, notes = chosen_cards(args.cards)
    devices = [card.device for card in cards] if args.cards else request.get("cards") or []  # resumed: as before
    write_atomically(folder / REQUEST, json.dumps({**request, "minutes": args.minutes, "cards": devices}))
    return submit(
        JobSpec(
            folder=folder,
            checkout=checkout,
            verb=VERB,
            name=NAME,
            argv=(sys.executable, "-P", "-c", BOOT, str(SCRIPTS), str(folder / REQUEST)),
            wait=0.0 if args.no_wait else args.wait,
            cards=",".join(devices) or None,
            notes=tuple(notes),
            python=str(choose(checkout).python),
        )
    )


def _followed(run: RunFolder, args: Namespace) -> int:
    """Follow it, a line a step for people; then the dossier."""
    limit = foreground_seconds(args.foreground)
    record = follow_steps(run, limit=limit, shows=lambda line: line.startswith("["))
    if record.status is RunStatus.RUNNING:
        lines = [
            f"{record.id} is running",
            *last_lines(record, 2),
            "status 79: still running",
            "next: debug-spyre investigate --resume",
        ]
        answer(lines, {"status": "running", "run": record.id, "folder": str(run.owner)}, as_json=args.json)
        return int(Exit.RUNNING)
    if record.exit != 0:
        lines = [
            f"{record.id} ended early ({record.status.value}, exit {record.exit}); what was done is kept",
            *last_lines(record, 3),
        ]
        refused = record.exit == int(Exit.USAGE)
        following = "debug-spyre investigate TESTS (a new one)" if refused else "debug-spyre investigate --resume"
        answer([*lines, f"next: {following}"], record.to_json(), as_json=args.json)
        return record.exit_status() or int(Exit.NO)
    return _say(run.owner, args)


def _say(folder: Path, args: Namespace) -> int:
    path = folder / DOSSIER
    try:
        dossier = dossier_from(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            f"there is no dossier in {folder}: {error}", next="debug-spyre investigate --resume"
        ) from error
    for stem in {c.session for c in dossier.causes if c.session}:
        redraw(folder.parent.parent / stem)
    answer(_lines(dossier, path), dossier_to(dossier), as_json=args.json)
    return int(Exit.NO if dossier.causes or dossier.unexplained else Exit.YES)


def _lines(dossier: Dossier, path: Path) -> list[str]:
    counts = dossier.matrix.get("counts") or {}
    numbers = ", ".join(f"{n} {word}" for word, n in counts.items() if n) or "no test ran"
    lines = [f"matrix: {numbers}; {len(dossier.causes)} causes in {dossier.seconds:.0f} s"]
    for cause in dossier.causes[:MOST_CAUSES]:
        lines += [*cause_lines(cause), f"  session: {cause.session}"]
    if len(dossier.causes) > MOST_CAUSES:
        lines.append(f"and {len(dossier.causes) - MOST_CAUSES} more causes in the dossier")
    if dossier.unexplained:
        lines.append(f"not explained: {len(dossier.unexplained)} tests, {dossier.unexplained[0]} first")
    lines += [
        f"left out by the budget of {dossier.budget['minutes']:g} minutes: {text}"
        for text in dossier.budget["left_out"][:3]
    ]
    return [*lines, f"dossier: {path}", f"next: {dossier.next}"]


VERBS = {"investigate": Verb(_arguments, _investigate, EXAMPLE, rest="pytest_args")}
