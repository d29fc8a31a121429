"""Shared by the verbs that act on a session: which one is meant, and what follows a change."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from debug_spyre.page.io.redraw import draw_later
from debug_spyre.runs.io.finding_runs import RunPlace
from debug_spyre.runs.io.run_folder import RUNS, JobSpec, RunFolder
from debug_spyre.session.io.workspace import Folder, find_checkout, find_session, logs_folder, open_sessions
from debug_spyre.session.state import Member, Session
from debug_spyre.verbs.verb import answer
from debug_spyre.vocabulary.errors import RefusedError, UsageError

_PROPOSED = re.compile(r"\s*(?:next|run it): debug-spyre (?!investigate|triage|open|doctor)")
DRAWN_AT_ONCE = 100_000  # bytes of the journal: about 80 experiments, which take the page 0.05 s


def add_session_argument(parser: ArgumentParser) -> None:
    """--session STEM and --json, as every verb on a session has them."""
    parser.add_argument(
        "--session",
        metavar="STEM",
        help="name of the session as status prints it, or a part of it (default: the current one)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def member_of(args: Namespace, nodeid: str) -> Member:
    """A member with the predicate that the call gives: --falls-back OP, --slower S, else it fails."""
    if args.falls_back:
        return Member(nodeid, "falls-back", op=args.falls_back)
    if args.slower is not None:
        return Member(nodeid, "slower", seconds=args.slower)
    return Member(nodeid)


def the_session(args: Namespace) -> Folder:
    """The folder of the session that the call means.

    Raises:
        UsageError: none or several fit; EnvironmentTroubleError: not in a checkout.
    """
    return find_session(logs_folder(find_checkout()), stem=args.session)


def refuse_while_running(folder: Folder, session: Session, *, why: str = "") -> None:
    """Nothing of the session changes under a run: its supervisor's lock says that it lives, whatever has its pid now.

    Raises:
        RefusedError: a run is under way.
    """
    for run in session.runs.values():
        if not run.is_finished and RunFolder(folder.path / RUNS / run.id).has_live_supervisor():
            raise RefusedError(f"{run.id} ({run.name or run.verb}) is running{why}", next=f"debug-spyre wait {run.id}")


def log_line(place: RunPlace) -> list[str]:
    """Render the page of the session that this place is; the line that names it, none for a triage."""
    return [f"log: {after_change(place.folder)}"] if place.is_session else []


def after_change(folder: Folder) -> Path:
    """Draw the session's page again, a long one after the answer; returns its absolute path."""
    if folder.journal.path.stat().st_size > DRAWN_AT_ONCE and folder.html.exists():
        draw_later(folder.path)
        return folder.html
    from debug_spyre.page.io import page  # loading the page's code takes time

    return page.render(folder)


def add_cards_argument(parser: ArgumentParser) -> None:
    """`--cards` of a verb whose runs are independent of each other."""
    parser.add_argument(
        "--cards",
        metavar="all|N|LIST",
        help="spread over all cards, over N cards, or over those listed (0,3,5): one process a card; held cards are left out",
    )


def add_hosts_arguments(parser: ArgumentParser) -> None:
    """`--hosts` of a verb that runs test files."""
    parser.add_argument(
        "--hosts",
        metavar="ADDRESS",
        help="spread over the cards of the workers of that Dask scheduler, started with --resources spyre=N; the tree is sent as it is",
    )
    parser.add_argument(
        "--ship-approved",
        action="store_true",
        help="a person knows that the tree is sent to those hosts, and lets it go",
    )


def spread_over(spec: JobSpec, args: Namespace, *, series: bool = False) -> JobSpec:
    """The job over the cards or hosts that the call means; unchanged where it means none."""
    if args.hosts is None:
        from debug_spyre.fleet.io.lane import over_cards

        return over_cards(spec, args.cards, series=series)
    if series:
        raise UsageError(
            "--repeat, --isolate and --alone stay on one host", next="debug-spyre run --isolate --cards all ..."
        )
    from debug_spyre.fleet.io.shipping import Wanted, over_hosts

    return over_hosts(spec, Wanted(args.hosts, args.ship_approved, args.cards))


def answer_in(folder: Folder, lines: Iterable[str], data: dict[str, Any], *, as_json: bool) -> None:
    """Print an answer about a session; where several are open, each command that it proposes names this one."""
    several = not as_json and len(open_sessions(folder.path.parent)) > 1
    answer([named(line, folder.stem) for line in lines] if several else lines, data, as_json=as_json)


def named(line: str, stem: str) -> str:
    """The line with `--session STEM` in the command that it proposes, if it proposes one without."""
    found = _PROPOSED.match(line)
    if found is None or "--session" in line:
        return line
    command, dashes, rest = line.partition(" -- ")
    return f"{command} --session {stem}{dashes}{rest}"
