"""The verb `shadow`: each op on the card again on the CPU; names the first that differs, and where in the code."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

from debug_spyre.examine.io.examination import Examination, add_examining, examination, read_report
from debug_spyre.examine.shadow_report import shadow_lines
from debug_spyre.host.interpreter import choose
from debug_spyre.repro.io.suspects import with_death
from debug_spyre.runs.io.finding_runs import find_run, known_ids
from debug_spyre.runs.io.pytest_command import child_path, from_root, pytest_command
from debug_spyre.runs.io.records import RunRecord, load_record
from debug_spyre.session.io.evidence_store import all_evidence
from debug_spyre.session.io.workspace import load_session
from debug_spyre.verbs.answer import answer
from debug_spyre.verbs.session_option import log_line
from debug_spyre.verbs.verb import Verb
from debug_spyre.vocabulary.errors import Exit, UsageError
from debug_spyre.vocabulary.words import RunStatus

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
    "shadow": Verb(
        add_arguments=_add,
        run=_run,
        example="debug-spyre shadow 'tests/test_rms.py::test_rms[fp16-1024]'",
        rest="words",
        words="[NODEID ...]",
    )
}
