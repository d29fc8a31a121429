"""The verbs that repeat calls: shadow (each op again on the CPU, the first that differs) and sweep (under which condition one call is wrong)."""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from debug_spyre.examine.call import call_to_json
from debug_spyre.examine.dossier import call_text, condition_json, condition_of, sentence_of
from debug_spyre.examine.io.engine import Engine
from debug_spyre.examine.io.engines import engine_on
from debug_spyre.examine.io.examination import Examination, add_examining, examination, read_report
from debug_spyre.examine.io.one_call import CallCause, Recorded, TimeIsUpError, examine
from debug_spyre.examine.search import Answer
from debug_spyre.examine.shadow_report import shadow_lines
from debug_spyre.examine.typed_call import read_call
from debug_spyre.examine.variation import key_of
from debug_spyre.fleet.io.lane import chosen_cards
from debug_spyre.host.files import write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.repro.io.suspects import with_death
from debug_spyre.runs.io.finding_runs import find_run, known_ids
from debug_spyre.runs.io.jobs import foreground_seconds
from debug_spyre.runs.io.pytest_command import child_path, from_root, pytest_command
from debug_spyre.runs.io.records import RunRecord, load_record
from debug_spyre.session.io.workspace import all_evidence, load_session
from debug_spyre.verbs.session_option import add_cards_argument, log_line
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import BadInputError, Exit, UsageError
from debug_spyre.vocabulary.words import RunStatus

EXAMPLE = "debug-spyre sweep aten.mean.dim 'f16[4,256]' '[-1]' True"
REPORT = "sweep.json"


def _add_sweep(parser: ArgumentParser) -> None:
    parser.add_argument(
        "call", nargs="*", metavar="WORD", help="an op and its arguments: aten.mean.dim 'f16[4,256]' '[-1]' True"
    )
    parser.add_argument("--suspect", metavar="RUN", help="use the call that this shadow run saved")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="stop after S seconds (default 300)")
    add_cards_argument(parser)
    add_examining(parser)


def _run_sweep(args: Namespace) -> int:
    if not args.seconds > 0:  # so put, "nan" is refused too
        raise UsageError("--seconds must be positive", next=EXAMPLE)
    work = examination(args, "sweep")
    call, prelude, refused = _call(args)
    limit = foreground_seconds(args.foreground)
    place = work.place.folder.path / "sweeps" / key_of(call)
    cards, notes = chosen_cards(args.cards)
    for note in notes:
        warn(note)
    engine = engine_on(
        cards,
        work.place.folder.path,
        work.place.checkout,
        place,
        hypothesis=work.hypothesis,
        verb="sweep",
        wait=work.wait,
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
    if seen.not_made and args.call and not args.suspect:  # nobody has seen it wrong: nothing is known of it
        name = str(call["op"]).removesuffix(".default")
        raise BadInputError(f"{name} can't be called so: {seen.not_made}", next=f"debug-spyre op {name}")
    return _say_sweep(work, call, seen, record, as_json=args.json)


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


def _say_sweep(
    work: Examination, call: dict[str, Any], seen: CallCause, record: RunRecord | None, *, as_json: bool
) -> int:
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


_SWEEP = {"sweep": Verb(add_arguments=_add_sweep, run=_run_sweep, example=EXAMPLE)}


PLUGIN = "debug_spyre_shadow"


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--only", action="append", default=[], metavar="OP", help="check these ops only (aten.mean.dim)"
    )
    parser.add_argument("--skip", action="append", default=[], metavar="OP", help="leave these ops out")
    parser.add_argument("--max-elements", type=int, metavar="N", help="leave calls on more elements out")
    parser.add_argument("--golden", action="store_true", help="also against the op in float64")
    parser.add_argument("--script", metavar="FILE", help="a script in place of tests; its arguments follow")
    parser.add_argument("--run", metavar="RUN", help="the report of a shadow run that has ended meanwhile")
    add_examining(parser)


def _run(args: Namespace) -> int:
    if args.max_elements is not None and args.max_elements < 1:
        raise UsageError(f"--max-elements {args.max_elements} checks nothing", next="debug-spyre shadow NODEID")
    work = examination(args, "shadow")
    if args.run:
        run, place = find_run(args.run, session=args.session)
        return _ended(replace(work, place=place), load_record(run), as_json=args.json)
    words = [word for word in args.words if word != "--"]
    if not args.script:
        words = list(from_root(work.place.checkout, words)) if words else work.probe()
    settings = {
        "only": args.only, "skip": args.skip, "max_elements": args.max_elements, "golden": args.golden,
        "root": str(work.place.checkout),
    }  # fmt: skip
    env = {"DEBUG_SPYRE_SHADOW": json.dumps(settings)}
    record = _script(work, args.script, words, env) if args.script else _tests(work, words, env)
    return _ended(work, record, as_json=args.json)


def _ended(work: Examination, record: RunRecord, *, as_json: bool) -> int:
    if record.status is RunStatus.RUNNING:
        later = f"debug-spyre wait {record.id}, then debug-spyre shadow --run {record.id}"
        answer([f"{record.id} is running", f"  next: {later}"], record.to_json(), as_json=as_json)
        return int(Exit.RUNNING)
    how = f"{record.status.value}, exit {record.exit}"
    report = with_death(record.folder, how) or read_report(record.folder / "shadow.json", record)
    return _say(work, record, report, as_json=as_json)


def _tests(work: Examination, words: list[str], env: dict[str, str]) -> RunRecord:
    argv, overrides = pytest_command(
        work.place.checkout, words, env=env, plugins=(PLUGIN,), known=known_ids(work.place), verb="shadow"
    )
    return work.run(argv, env=overrides, pytest_args=tuple(words))


def _script(work: Examination, script: str, words: list[str], env: dict[str, str]) -> RunRecord:
    if not os.path.isfile(script):
        raise UsageError(f"there is no script {script}", next="debug-spyre shadow --script FILE")
    argv = (*choose(work.place.checkout).words, "-m", PLUGIN, os.path.abspath(script), *words)
    return work.run(argv, env={**env, **child_path()})


def _say(work: Examination, record: RunRecord, report: dict[str, Any], *, as_json: bool) -> int:
    suspect = report.get("suspect")
    lines = [f"warning: {w}" for w in record.warnings[:2]] if not record.valid else []
    lines += shadow_lines(report, _failing_before(work, record))
    if suspect:
        verb = "repro --shadow" if suspect.get("died") else "sweep --suspect"
        lines.append(f"suspect saved: next: debug-spyre {verb} {record.id}")
    else:
        lines.append(f"report: {record.folder / 'shadow.json'}")
    data: dict[str, Any] = {"op": suspect["op"], "site": suspect["site"]} if suspect else {}
    picture = ((suspect or {}).get("pattern") or {}).get("picture")
    if picture:
        data["picture"] = picture
    work.keep_for(record.id, lines, record.folder / "shadow.json", data)
    lines += log_line(work.place)
    answer(lines, {**report, "run": record.id, "lines": lines}, as_json=as_json)
    if not record.valid:  # no test ran, say: nothing was asked, so nothing is answered
        return record.exit_status() or int(Exit.BAD_INPUT)
    return int(Exit.NO if suspect else Exit.YES)


def _failing_before(work: Examination, record: RunRecord) -> list[str]:
    """Tests that failed in an ordinary run of this session."""
    if not work.place.is_session:
        return []
    session = load_session(work.place.folder)
    failing: dict[str, None] = {}
    for run, evidence in all_evidence(work.place.folder, session).items():
        if run != record.id and session.runs[run].verb != "shadow":
            failing.update(dict.fromkeys(f.nodeid for f in evidence.failures if f.nodeid))
    return list(failing)


VERBS = {
    **_SWEEP,
    "shadow": Verb(
        add_arguments=_add,
        run=_run,
        example="debug-spyre shadow 'tests/test_rms.py::test_rms[fp16-1024]'",
        rest="words",
        words="[NODEID ...]",
    ),
}
