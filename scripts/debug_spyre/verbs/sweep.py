"""The verb `sweep`: under which condition one call is wrong, what its wrong values are, and which other forms are right."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from debug_spyre.examine.call import call_to_json
from debug_spyre.examine.call_sentences import call_text, condition_of, sentence_of
from debug_spyre.examine.dossier import condition_json
from debug_spyre.examine.io.engine import Engine
from debug_spyre.examine.io.examination import Examination, add_examining, examination
from debug_spyre.examine.io.one_call import CallCause, Recorded, TimeIsUpError, examine
from debug_spyre.examine.search import Answer
from debug_spyre.examine.typed_call import read_call
from debug_spyre.examine.variation import key_of
from debug_spyre.host.files import write_atomically
from debug_spyre.runs.io.finding_runs import find_run
from debug_spyre.runs.io.jobs import foreground_seconds
from debug_spyre.runs.io.records import RunRecord
from debug_spyre.verbs.answer import answer
from debug_spyre.verbs.session_option import log_line
from debug_spyre.verbs.verb import Verb
from debug_spyre.vocabulary.errors import Exit, UsageError

EXAMPLE = "debug-spyre sweep aten.mean.dim 'f16[4,256]' '[-1]' True"
REPORT = "sweep.json"


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "call", nargs="*", metavar="WORD", help="an op and its arguments: aten.mean.dim 'f16[4,256]' '[-1]' True"
    )
    parser.add_argument("--suspect", metavar="RUN", help="use the call that this shadow run saved")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="stop after S seconds (default 300)")
    add_examining(parser)


def _run(args: Namespace) -> int:
    if not args.seconds > 0:  # so put, "nan" is refused too
        raise UsageError("--seconds must be positive", next=EXAMPLE)
    work = examination(args, "sweep")
    call, prelude, refused = _call(args)
    limit = foreground_seconds(args.foreground)
    place = work.place.folder.path / "sweeps" / key_of(call)
    engine = Engine(
        work.place.folder.path, work.place.checkout, place, hypothesis=work.hypothesis, verb="sweep", wait=work.wait
    )
    engine.deadline = time.monotonic() + min(args.seconds, limit or args.seconds)
    try:
        seen = examine(engine, Recorded(call, "refused" if refused else "wrong", tuple(prelude)))
    except TimeIsUpError as error:
        record = engine.close()
        lines = [
            f"{error.what}: {len(engine.answers)} calls are kept",
            "status 79: still running",
            f"next: {error.next}",
        ]
        answer(
            lines,
            {"complete": False, "calls": len(engine.answers), "run": record.id if record else None},
            as_json=args.json,
        )
        return int(Exit.RUNNING)
    finally:
        record = engine.close() or record_of(engine)
    return _say(work, call, seen, record, as_json=args.json)


def record_of(engine: Engine) -> RunRecord | None:
    """The run of an engine that was closed already."""
    return engine.record


def _call(args: Namespace) -> tuple[dict[str, Any], list[dict[str, Any]], bool]:
    """The call, the calls before it, and whether it was refused where it was recorded.

    Raises:
        UsageError: none is named, or the named run saved none.
    """
    if args.suspect or not args.call:
        run, _ = find_run(args.suspect, session=args.session)
        path = run.path / "suspect" / "call.json"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return data["call"], list(data.get("prelude") or ()), bool(data.get("error"))
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"run {run.id} saved no suspect", next=EXAMPLE) from error
    return call_to_json(read_call(args.call[0], args.call[1:], example=EXAMPLE)), [], False


def _say(work: Examination, call: dict[str, Any], seen: CallCause, record: RunRecord | None, *, as_json: bool) -> int:
    bad = seen.is_bad
    text = (
        sentence_of(str(call["op"]), seen)
        if bad
        else f"{str(call['op']).removesuffix('.default')} is right at this call and at its neighbours"
    )
    lines = [text, *_details(seen)]
    condition = condition_of(seen)
    data = {
        "op": call["op"], "call": call_text(call), "text": text, "wrong": bad, "manner": seen.manner, "complete": True,
        "condition": condition_json(condition) if condition else None, "wrong_values": seen.said, "ways_round": seen.ways,
        "calls": len(seen.found.seen) if seen.found else 0, "run": record.id if record else None,
    }  # fmt: skip
    if record is not None:
        report = Path(record.folder) / REPORT
        write_atomically(report, json.dumps({"schema": 1, **data}, ensure_ascii=False))
        if bad:
            lines.append(work.verdict(text, record.id))
        work.keep_for(record.id, lines, report, {"op": call["op"], "condition": data["condition"]})
    lines += log_line(work.place)
    answer(lines, data, as_json=as_json)
    return int(Exit.NO if bad else Exit.YES)


def _details(seen: CallCause) -> list[str]:
    lines = []
    found = seen.found
    if seen.said:
        lines.append(f"wrong values: {seen.said}" if seen.bad is Answer.WRONG else f"it says: {seen.said}")
    if found is not None:
        lines += [f"right: {call_text(right)}; wrong: {call_text(wrong)}" for right, wrong in found.borders]
        counted = f"{len(found.seen)} calls compared"
        if found.unseen:
            counted += f"; held on {found.unseen} that were drawn afterwards ({found.unseen_wrong} of them wrong)"
        lines.append(counted)
        if found.refused or found.uncompared:
            lines.append(f"neither right nor wrong: {found.refused} refused, {found.uncompared} not compared")
    good = [way["text"] for way in seen.ways if way["measured"] == "right"]
    bad = [way["text"] for way in seen.ways if way["measured"] != "right"]
    if seen.ways:
        lines.append(f"other forms: right: {'; '.join(good) or 'none'}; not right: {'; '.join(bad) or 'none'}")
    return [*lines, *(f"open: {text}" for text in seen.open)]


VERBS = {"sweep": Verb(add_arguments=_add, run=_run, example=EXAMPLE)}
