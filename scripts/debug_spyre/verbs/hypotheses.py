"""hypothesis: the queue. Rows are written down first, tested one at a time, and each ends with what was seen."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from debug_spyre.queue import queue_rules, queue_words
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import Folder, load_session
from debug_spyre.session.state import Session
from debug_spyre.verbs.session_option import add_session_argument, after_change, answer_in, the_session
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import BadInputError, RefusedError, UsageError
from debug_spyre.vocabulary.words import VERDICTS


def _arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=type(parser))
    add = actions.add_parser("add", help="queue a hypothesis before it is tested")
    add.add_argument("text", help="the hypothesis or fix, in one sentence")
    add.add_argument("--test", required=True, metavar="COMMAND", help="how to test it")
    add.add_argument("--class", dest="test_class", choices=queue_rules.TEST_CLASSES, default="probe")
    add.add_argument("--cost", type=float, metavar="S", help="how long the test takes, in seconds")
    add.add_argument("--confidence", choices=queue_rules.CONFIDENCES, default="medium")
    add.add_argument("--reason", metavar="TEXT", help="the evidence that makes it plausible")
    seed = actions.add_parser("seed", help="propose the hypotheses that the evidence supports")
    seed.add_argument("--dry-run", action="store_true", help="show the proposals; queue nothing")
    start = actions.add_parser("start", help="start a hypothesis; the command is recorded before it runs")
    start.add_argument("number", nargs="?", type=int, metavar="N", help="the hypothesis (default: the first in order)")
    start.add_argument(
        "--command", metavar="COMMAND", help="the command about to run (default: the test of the hypothesis)"
    )
    conclude = actions.add_parser("conclude", help="record the verdict: one sentence, at most ten lines of evidence")
    conclude.add_argument("numbers", nargs="+", type=int, metavar="N", help="the hypotheses that it answers")
    conclude.add_argument("verdict", choices=[v.value for v in VERDICTS])
    conclude.add_argument("sentence")
    conclude.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="R",
        help="the run that shows it, also an earlier one (default: runs since start)",
    )
    conclude.add_argument(
        "--instead", metavar="REASON", help="take the former verdict back and say why it was wrong; the log keeps both"
    )
    excerpt = conclude.add_mutually_exclusive_group()
    excerpt.add_argument("--lines", metavar="A-B", help="quote these lines of the run's output")
    excerpt.add_argument("--excerpt", metavar="TEXT", help="quote this text")
    drop = actions.add_parser("drop", help="drop a hypothesis without testing it, with the reason")
    drop.add_argument("words", nargs="+", metavar="N", help="the hypotheses to drop, then why they are not tested")
    drop.add_argument("--reason", dest="because", default="", metavar="TEXT", help="the same as an option")
    listed = actions.add_parser("list", help="list the hypotheses in the order in which to test them")
    for action in (add, seed, start, conclude, drop, listed):
        add_session_argument(action)


def _hypothesis(args: Namespace) -> int:
    return _ACTIONS[args.action](args)


def _add(args: Namespace) -> int:
    if not args.text.strip() or not args.test.strip():
        raise UsageError("a row needs a sentence and a test", next="debug-spyre hypothesis add TEXT --test COMMAND")
    if args.cost is not None and not 0 <= args.cost < 1e9:
        raise UsageError(f"--cost {args.cost} is no number of seconds", next="debug-spyre hypothesis add --help")

    def row(session: Session) -> list[ev.Event]:
        queue_rules.check_open(session)
        queue_rules.check_new(session, args.text)
        return [
            ev.HypothesisAdded(
                number=queue_rules.next_number(session),
                text=args.text.strip(),
                test=args.test.strip(),
                test_class=args.test_class,
                cost_seconds=args.cost,
                confidence=args.confidence,
                reason=args.reason,
            )
        ]

    _change(
        args, row, lambda s: [f"row {s.hypotheses[-1].number} queued", queue_words.place_in_rank(s, s.hypotheses[-1])]
    )
    return 0


def _seed(args: Namespace) -> int:
    from debug_spyre.queue.io.rows import situation
    from debug_spyre.queue.seed_rules import seeds

    folder = the_session(args)
    session = load_session(folder)
    queue_rules.check_open(session)
    proposed = seeds(situation(folder, session))
    if args.dry_run:
        lines = [queue_words.say_seed(seed) for seed in proposed] or ["the evidence supports nothing"]
        answer(
            lines, {"session": folder.stem, "seeds": [queue_words.seed_json(s) for s in proposed]}, as_json=args.json
        )
        return 0

    def rows(now: Session) -> list[ev.Event]:
        number, known = queue_rules.next_number(now), {h.text for h in now.hypotheses}
        fresh = [seed for seed in proposed if seed.text not in known]
        return [queue_words.seed_event(seed, number + i) for i, seed in enumerate(fresh)]

    before = len(session.hypotheses)
    _change(args, rows, lambda s: queue_words.say_seeded(s, len(s.hypotheses) - before), folder=folder)
    return 0


def _start(args: Namespace) -> int:
    def begin(session: Session) -> list[ev.Event]:
        number = args.number if args.number is not None else queue_words.first_in_rank(session)
        row = queue_rules.row_of(session, number)
        queue_rules.check_start(session, row)
        command = (args.command or row.test).strip()
        return [ev.HypothesisStarted(number=row.number, command=command)]

    def says(session: Session) -> list[str]:
        row = session.in_progress
        if row is None:
            return ["no row is in progress"]
        return [
            queue_words.clip(f"row {row.number} in progress: {row.text}"),
            queue_words.clip(f"  next: {row.command}", queue_words.MOST_COMMAND),
        ]

    rows = len(_change(args, begin, says).hypotheses)
    if rows < queue_rules.FEW_ROWS:
        warn(f"{rows} rows are few: write down every plausible one first (debug-spyre hypothesis seed)")
    return 0


def _conclude(args: Namespace) -> int:
    folder = the_session(args)
    if not args.sentence.strip():
        raise UsageError(
            "a verdict needs a sentence", next=f"debug-spyre hypothesis conclude {args.numbers[0]} {args.verdict} TEXT"
        )

    def end(session: Session) -> list[ev.Event]:
        events: list[ev.Event] = []
        cited = list(args.run)
        for number in args.numbers:
            row = queue_rules.row_of(session, number)
            runs = queue_rules.check_conclude(session, row, cited, instead=bool(args.instead))
            excerpt = queue_rules.check_excerpt(_excerpt(args, folder, session, runs))
            events += queue_rules.concluding(
                row, args.verdict, args.sentence.strip(), runs, excerpt, instead=args.instead
            )
            cited = cited or list(runs)  # what answers the first answers the others
        return events

    def says(session: Session) -> list[str]:
        rows = [queue_rules.row_of(session, number) for number in args.numbers]
        shown = f" ({', '.join(rows[0].runs)})" if rows[0].runs else ""
        return [*(f"row {row.number} {row.status}{shown}" for row in rows), *queue_words.following(session)]

    _change(args, end, says, folder=folder)
    return 0


def _drop(args: Namespace) -> int:
    numbers = [int(word) for word in takewhile(str.isdecimal, args.words)]
    reason = (args.because or " ".join(args.words[len(numbers) :])).strip()
    if not numbers or not reason:
        first = numbers[0] if numbers else "N"
        raise UsageError(
            "a row is dropped by its number, with a reason", next=f"debug-spyre hypothesis drop {first} REASON"
        )

    def off(session: Session) -> list[ev.Event]:
        queue_rules.check_open(session)
        rows = [queue_rules.row_of(session, number) for number in numbers]
        done = next((row for row in rows if row.is_concluded), None)
        if done is not None:
            raise RefusedError(f"row {done.number} is {done.status} already", next="debug-spyre hypothesis list")
        return [ev.HypothesisDropped(number=row.number, reason=reason) for row in rows]

    dropped = " and ".join(f"row {number}" for number in numbers)
    _change(args, off, lambda s: [f"{dropped} dropped", *queue_words.following(s)])
    return 0


def _list(args: Namespace) -> int:
    folder = the_session(args)
    session = load_session(folder)
    rows = queue_rules.in_order(session.hypotheses)
    lines = [queue_words.say_row(row) for row in rows] or ["the queue is empty", "  next: debug-spyre hypothesis seed"]
    answer_in(
        folder,
        [*lines, *(queue_words.following(session) if rows else [])],
        queue_words.queue_json(session),
        as_json=args.json,
    )
    return 0


_ACTIONS = {"add": _add, "seed": _seed, "start": _start, "conclude": _conclude, "drop": _drop, "list": _list}


def _change(args: Namespace, make: Any, says: Any, *, folder: Folder | None = None) -> Session:
    """Check and record in one step under the journal's lock, then render and answer; the state afterwards."""
    folder = folder or the_session(args)
    session = folder.journal.record(make)
    after_change(folder)
    answer_in(folder, says(session), queue_words.queue_json(session) if args.json else {}, as_json=args.json)
    return session


def _excerpt(args: Namespace, folder: Folder, session: Session, runs: Sequence[str]) -> Sequence[str]:
    if args.excerpt is not None:
        return [line for line in args.excerpt.splitlines() if line.strip()]
    if args.lines is not None:
        return _lines_of(args, folder, session, runs)
    last = session.runs.get(runs[-1]) if runs else None
    return last.digest[: queue_rules.MOST_LINES] if last else ()


def _lines_of(args: Namespace, folder: Folder, session: Session, runs: Sequence[str]) -> list[str]:
    first, _, last = args.lines.partition("-")
    if not (first.isdigit() and (last.isdigit() or not last)) or int(first) < 1 or int(last or first) < int(first):
        raise UsageError(f"--lines {args.lines!r} is not A-B", next="debug-spyre hypothesis conclude --help")
    if len(runs) != 1:
        raise UsageError("--lines needs the one run that it means", next=f"… --run R --lines {args.lines}")
    path = folder.path / session.runs[runs[0]].output
    begin, end = int(first), int(last or first)
    found = []
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if number > min(end, begin + queue_rules.MOST_LINES):
                    break
                if number >= begin:
                    found.append(line.decode("utf-8", "replace").rstrip("\r\n"))
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}", next="debug-spyre status") from error
    if not found:
        raise UsageError(f"{Path(path).name} has no line {begin}", next="debug-spyre hypothesis conclude --help")
    return found


VERBS = {
    "hypothesis": Verb(
        _arguments,
        _hypothesis,
        "debug-spyre hypothesis conclude 2 ruled-out 'the layout is contiguous on both sides' --run r4 --lines 12-15",
    )
}
