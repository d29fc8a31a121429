"""The verb `sweep`: one op over sizes, views, types, overloads; ends with the condition under which it is wrong."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from debug_spyre.examine.call import call_to_json
from debug_spyre.examine.io.examination import Examination, add_examining, examination
from debug_spyre.examine.sweep_report import summary
from debug_spyre.examine.typed_call import read_call
from debug_spyre.host.files import write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.finding_runs import find_run
from debug_spyre.runs.io.pytest_command import child_path
from debug_spyre.runs.io.records import RunRecord, load_record
from debug_spyre.verbs.answer import answer
from debug_spyre.verbs.session_option import log_line
from debug_spyre.verbs.verb import Verb
from debug_spyre.vocabulary.errors import BadInputError, Exit, UsageError
from debug_spyre.vocabulary.words import RunStatus

EXAMPLE = "debug-spyre sweep aten.mean.dim 'f16[4,256]' '[-1]' True"
POINTS, REPORT = "sweep.jsonl", "sweep.json"


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "call", nargs="*", metavar="WORD", help="an op and its arguments: aten.mean.dim 'f16[4,256]' '[-1]' True"
    )
    parser.add_argument("--suspect", metavar="RUN", help="the call that this shadow run saved")
    parser.add_argument("--resume", metavar="RUN", help="go on with a sweep that was cut off")
    parser.add_argument("--run", metavar="RUN", help="the report of a sweep that has ended meanwhile")
    parser.add_argument("--calls", type=int, default=600, metavar="N", help="most calls of the op (default 600)")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="most seconds (default 300)")
    add_examining(parser)


def _run(args: Namespace) -> int:
    if args.calls < 1 or not args.seconds > 0:  # so put, "nan" is refused too
        raise UsageError("--calls and --seconds must be positive", next=EXAMPLE)
    work = examination(args, "sweep")
    if args.run:
        found, place = find_run(args.run, session=args.session)
        return _ended(replace(work, place=place), load_record(found), as_json=args.json)
    call, resume = _call(args)
    request = {"call": call, "calls": args.calls, "seconds": args.seconds, "resume": str(resume) if resume else None}
    argv = (*choose(work.place.checkout).words, "-m", "debug_spyre_sweep")
    record = work.run(argv, env={"DEBUG_SPYRE_SWEEP": json.dumps(request), **child_path()})
    return _ended(work, record, as_json=args.json)


def _call(args: Namespace) -> tuple[dict[str, Any], Path | None]:
    """The call to sweep, and the points of an earlier sweep.

    Raises:
        UsageError: none is named; BadInputError: the named run saved none.
    """
    if args.resume:
        run, _ = find_run(args.resume, session=args.session)
        told = run.job().env.get("DEBUG_SPYRE_SWEEP")
        if told is None or not (run.path / POINTS).is_file():
            raise BadInputError(f"{run.id} is no sweep that left points", next=EXAMPLE)
        return json.loads(told)["call"], run.path / POINTS
    if args.suspect or not args.call:
        run, _ = find_run(args.suspect, session=args.session)
        path = run.path / "suspect" / "call.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))["call"], None
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"run {run.id} saved no suspect", next=EXAMPLE) from error
    return call_to_json(read_call(args.call[0], args.call[1:], example=EXAMPLE)), None


def _ended(work: Examination, record: RunRecord, *, as_json: bool) -> int:
    if record.status is RunStatus.RUNNING:
        later = f"debug-spyre wait {record.id}, then debug-spyre sweep --run {record.id}"
        answer([f"{record.id} is running", f"  next: {later}"], record.to_json(), as_json=as_json)
        return int(Exit.RUNNING)
    points = _points(record)
    job = json.loads(_request_of(record))
    found = summary(job["call"]["op"], points)
    report = record.folder / REPORT
    data = {**found, "call": job["call"], "points": points, "status": record.status.value}
    write_atomically(report, json.dumps({"schema": 1, **data}, ensure_ascii=False))
    lines = [*found["lines"]]
    if record.status != RunStatus.PASSED and record.exit:
        lines.append(f"the sweep ended early ({record.status.value}, exit {record.exit}): {_last_words(record)}")
        lines.append(f"output: {record.output}")
    if found["wrong"] or found["refused"]:
        lines.append(work.verdict(found["text"], record.id))
    work.keep_for(record.id, lines, report, {"op": found["op"], "condition": found["condition"]})
    lines += log_line(work.place)
    answer(lines, {**data, "run": record.id}, as_json=as_json)
    if record.exit and all(p.get("wrong") is None for p in points):
        return int(Exit.BAD_INPUT)
    return int(Exit.NO if found["wrong"] or found["refused"] else Exit.YES)


def _last_words(record: RunRecord) -> str:
    """The last line that it printed: the error of a traceback."""
    try:
        lines = Path(record.output).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "its output can't be read"
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:200] if said else "without a word"


def _request_of(record: RunRecord) -> str:
    from debug_spyre.runs.io.run_folder import RunFolder

    told = RunFolder(record.folder).job().env.get("DEBUG_SPYRE_SWEEP")
    if told is None:
        raise UsageError(f"run {record.id} is no sweep", next=EXAMPLE)
    return told


def _points(record: RunRecord) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    try:
        for line in (record.folder / POINTS).read_text(encoding="utf-8").splitlines():
            try:
                point = json.loads(line)
                found[point["key"]] = point
            except (ValueError, KeyError, TypeError):
                continue
    except OSError as error:
        raise BadInputError(
            f"{record.id} left no points (status {record.status.value}, exit {record.exit})",
            next=f"tail -40 {record.output}",
        ) from error
    return [p for p in found.values() if p["family"] != "end" or p is list(found.values())[-1]]


VERBS = {"sweep": Verb(add_arguments=_add, run=_run, example=EXAMPLE)}
