"""Shared by the verbs that examine (shadow, sweep, ladder): where the run goes, its job, and the report in the journal."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import Card
from debug_spyre.fleet.io.lane import on_card
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.finding_runs import RunPlace, run_place
from debug_spyre.runs.io.jobs import JobSpec, foreground_seconds, run_job
from debug_spyre.runs.io.records import RunRecord
from debug_spyre.session.events import ReportMade
from debug_spyre.session.io.workspace import load_session
from debug_spyre.vocabulary.errors import BadInputError, UsageError

MOST_LINES = 10


@dataclass(frozen=True, slots=True)
class Examination:
    """One run of a tool inside the target's Python, and where its report lies."""

    place: RunPlace
    verb: str
    hypothesis: int | None = None
    timeout: float | None = None
    wait: float | None = None
    foreground: float | None = None

    def run(
        self,
        argv: tuple[str, ...],
        *,
        env: dict[str, str],
        pytest_args: tuple[str, ...] | None = None,
        name: str | None = None,
        foreground: float | None = None,
        card: Card | None = None,
    ) -> RunRecord:
        """Run it under the lock, on that card alone where one is given.

        Raises:
            CardBusyError: the card is busy; DebugSpyreError: it could not begin.
        """
        spec = JobSpec(
            folder=self.place.folder.path,
            checkout=self.place.checkout,
            verb=self.verb,
            name=name,
            argv=argv,
            pytest_args=pytest_args,
            env=env,
            hypothesis=self.hypothesis,
            timeout=self.timeout,
            wait=self.wait,
            cwd=Path.cwd() if pytest_args is None else self.place.checkout,  # node ids begin at the root
            python=str(choose(self.place.checkout).python),
        )
        limit = foreground if foreground is not None else foreground_seconds(self.foreground)
        return run_job(on_card(spec, card), foreground=limit)

    def probe(self) -> list[str]:
        """What is examined where no test is named.

        Raises:
            UsageError: there is no session, or it has no member.
        """
        if self.place.is_session:
            session = load_session(self.place.folder)
            probe = session.probe or next((m.nodeid for m in session.members), None)
            if probe:
                return [probe]
        raise UsageError("which test?", next=f"debug-spyre {self.verb} NODEID")

    def verdict(self, said: str, run: str, *, verdict: str = "confirmed") -> str:
        """The line that records what was found: as the outcome of the row that was tested, else as a finding.

        A tool does not know whether the row had named this cause, so the row stands beside the command.
        """
        if self.hypothesis is None or not self.place.is_session:
            return f"keep it: debug-spyre note finding {shlex.quote(said)}"
        row = load_session(self.place.folder).hypothesis(self.hypothesis)
        command = f"debug-spyre hypothesis conclude {self.hypothesis} {verdict} {shlex.quote(said)} --run {run}"
        other = "" if verdict != "confirmed" else " (ruled-out, where it means another cause)"
        return f"verdict on {self.hypothesis}, {row.text if row else 'unknown'!r}{other}: {command}"

    def keep_for(self, run: str, lines: list[str], report: Path, data: dict[str, Any]) -> None:
        """Append the report to the journal."""
        folder = self.place.folder
        folder.journal.append(
            ReportMade(
                verb=self.verb,
                lines=tuple(lines[:MOST_LINES]),
                report=str(report.relative_to(folder.path)),
                run=run,
                hypothesis=self.hypothesis,
                data=data,
            )
        )


def add_examining(parser: ArgumentParser) -> None:
    """The options that all three have."""
    parser.add_argument(
        "--session",
        metavar="STEM",
        help="name of the session as status prints it, or a part of it (default: the current one)",
    )
    parser.add_argument(
        "--hypothesis", type=int, metavar="N", help="the hypothesis that this tests (default: the one in progress)"
    )
    parser.add_argument("--timeout", type=float, metavar="S", help="end the run after S seconds (default: no limit)")
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument("--wait", type=float, metavar="S", help="wait up to S seconds for the card")
    waiting.add_argument("--no-wait", action="store_true", help="return with status 75 at once if the card is busy")
    parser.add_argument(
        "--foreground",
        type=float,
        metavar="S",
        help="follow the run for S seconds, then return with status 79 while it goes on",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def examination(args: Namespace, verb: str) -> Examination:
    """The examination that the words mean.

    Raises:
        UsageError: several sessions are open and none is named, or there is no such row; EnvironmentTroubleError: not in a checkout.
    """
    place = run_place(args.session)
    return Examination(
        place=place,
        verb=verb,
        hypothesis=_row(place, args.hypothesis),
        timeout=args.timeout,
        wait=0.0 if args.no_wait else args.wait,
        foreground=args.foreground,
    )


def _row(place: RunPlace, number: int | None) -> int | None:
    """The row that is meant: the one given, else the one in progress."""
    if number is not None:
        if not place.has_row(number):
            raise UsageError(f"there is no hypothesis {number} here", next="debug-spyre hypothesis list")
        return number
    row = load_session(place.folder).in_progress if place.is_session else None
    return row.number if row else None


def read_report(path: Path, run: RunRecord) -> dict[str, Any]:
    """The JSON that the tool left in its run folder.

    Raises:
        BadInputError: it left none: the run's output says why.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data, dict):
            return data
    except (OSError, ValueError):
        pass
    raise BadInputError(
        f"{run.id} left no report (status {run.status.value}, exit {run.exit})", next=f"tail -40 {run.output}"
    )
