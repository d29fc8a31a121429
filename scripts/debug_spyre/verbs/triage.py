"""triage: run the matrix once, or read logs that anybody made, and print the clusters with what to type next."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from debug_spyre.runs.io.matrix_run import earlier_clusters
from debug_spyre.session.io.workspace import find_checkout, slugify
from debug_spyre.triage.io.logs_reader import all_rules, grouped, triage_logs
from debug_spyre.triage.triage_words import markdown, say, trend, triage_to_json
from debug_spyre.verbs.session_option import add_cards_argument, add_hosts_arguments, spread_over
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, Exit, UsageError
from debug_spyre.vocabulary.evidence import Evidence, Triage
from debug_spyre.vocabulary.words import RunStatus


def _arguments(parser: ArgumentParser) -> None:
    parser.usage = "debug-spyre triage [PYTEST-ARGS] | triage --from FILE... | triage --last"
    parser.add_argument("--from", dest="logs", nargs="+", metavar="FILE", help="read these logs; needs no card")
    parser.add_argument(
        "--last", action="store_true", help="wait for the last run if it still runs, then print its clusters"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a CI step summary")
    parser.add_argument("--rules", metavar="FILE", help="a TOML file with rules of your own; they are asked first")
    parser.add_argument("--against", metavar="RUN|FILE", help="say which clusters are new, gone or changed since then")
    parser.add_argument("--foreground", type=float, metavar="S", help="follow the run for S seconds, then answer 79")
    add_cards_argument(parser)
    add_hosts_arguments(parser)
    parser.add_argument("--timeout", type=float, metavar="S", help="end the run after S seconds (default: never)")
    parser.add_argument("--stall", type=float, metavar="S", help="end it after S seconds of silence")
    parser.add_argument(
        "--reap", action="store_true", help="end your own processes that hold the card without our lock"
    )
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument("--wait", type=float, metavar="S", help="wait up to S seconds for the card")
    waiting.add_argument("--no-wait", action="store_true", help="return with status 75 at once if the card is busy")


def _triage(args: Namespace) -> int:
    if args.pytest_args and (args.logs or args.last):
        option = "--from reads logs" if args.logs else "--last reads the matrix that was run"
        raise UsageError(
            f"{option} and runs nothing, so {shlex.join(args.pytest_args)} has no meaning",
            next=f"debug-spyre triage {'--from FILE...' if args.logs else shlex.join(args.pytest_args)}",
        )
    rules = all_rules(Path(args.rules) if args.rules else None)
    if not args.logs:
        return _run(args, rules)
    checkout = _checkout()
    triage = _compared(triage_logs([Path(p) for p in args.logs], checkout=checkout, rules=rules), args, rules)
    names = ["FILE" if _is_gone(log) else log for log in args.logs]
    source = ["--from", *names, *(["--rules", args.rules] if args.rules else [])]
    if "FILE" in names:
        warn("a pipe can be read once: keep its text in a FILE to open a session on it")
    _answer(args, triage, next_command=_open_command(triage, f" {shlex.join(source)}"), more={})
    return int(Exit.YES)


def _is_gone(log: str) -> bool:
    """It was a pipe: what it gave can't be read again."""
    return log == "-" or not (Path(log).is_file() or Path(log).is_dir())


def _run(args: Namespace, rules: Sequence[Any]) -> int:
    from debug_spyre.runs.io import matrix_run

    limits = matrix_run.Limits(
        foreground=args.foreground,
        wait=0.0 if args.no_wait else args.wait,
        timeout=args.timeout,
        stall=args.stall,
        reap=args.reap,
    )
    matrix = matrix_run.last_matrix(limits) if args.last else _new_matrix(args, limits)
    record = matrix.record
    if record.status is RunStatus.RUNNING:
        lines = [f"run {record.id} still runs: {record.output}", "next: debug-spyre triage --last"]
        answer(lines, {"status": "running", "run": record.id, "folder": str(matrix.folder.path)}, as_json=args.json)
        return int(Exit.RUNNING)
    evidence = record.evidence or Evidence(sources=(str(record.output),), counts=None, complete=False)
    evidence = replace(evidence, warnings=tuple(dict.fromkeys((*evidence.warnings, *record.warnings))))
    triage = _compared(grouped(evidence, _checkout()), args, rules)
    kept = matrix_run.keep(matrix, triage)
    _answer(
        args,
        triage,
        next_command=_open_command(triage, ""),
        more={
            "folder": kept["folder"],
            "run": kept["run"],
            "pytest_args": kept["pytest_args"],
            "output": str(record.output),
        },
    )
    return _status(record.exit_status(), triage)


def _new_matrix(args: Namespace, limits: Any) -> Any:
    from debug_spyre.runs.io.matrix_run import run_matrix

    return run_matrix(args.pytest_args, limits, lambda spec: spread_over(spec, args))


def _status(status: int, triage: Triage) -> int:
    """Pytest's failing tests are what a triage looks for; anything worse is said with the run's own status."""
    return int(Exit.YES) if status in {0, 1} and triage.evidence.counts is not None else status


def _compared(triage: Triage, args: Namespace, rules: Sequence[Any]) -> Triage:
    if not args.against:
        return triage
    return replace(triage, trend=trend(triage.clusters, earlier_clusters(args.against, rules=rules)))


def _answer(args: Namespace, triage: Triage, *, next_command: str, more: dict[str, Any]) -> None:
    if args.markdown and not args.json:
        answer(markdown(triage, next_command=next_command).rstrip("\n"), {}, as_json=False)
        return
    lines = say(triage, next_command=next_command)
    if more.get("output"):
        lines.append(f"output: {more['output']}")
    answer(lines, {**triage_to_json(triage), **more}, as_json=args.json)


def _open_command(triage: Triage, source: str) -> str:
    named = next((c for c in triage.clusters if any(c.nodeids)), None)
    if named is None:
        return "debug-spyre doctor" if triage.clusters else _open_fallback(triage)
    return f"debug-spyre open {named.slug} --cluster {named.id}{source}"


def _open_fallback(triage: Triage) -> str:
    """A silent fallback passes its tests; a session on it names op and members."""
    for fallback in triage.evidence.fallbacks:
        members = [n for n in fallback.nodeids if "::" in n]
        if fallback.accepted is None and members:
            shown = " ".join(shlex.quote(n) for n in members[:2]) + (" ..." if len(members) > 2 else "")
            slug = slugify(f"{fallback.op.removeprefix('aten.').removesuffix('.default')} falls back")
            return f"debug-spyre open {slug} --falls-back {shlex.quote(fallback.op)} --members {shown}"
    return ""


def _checkout() -> Path | None:
    try:
        return find_checkout()
    except EnvironmentTroubleError:
        warn("not in a git checkout: which fallbacks it accepts is not known")
        return None


VERBS = {"triage": Verb(_arguments, _triage, "debug-spyre triage --from ci.log --json", rest="pytest_args")}
