"""The verb `ladder`: the failure under a table of switches, each in a process of its own; says where it enters."""

from __future__ import annotations

import json
import shlex
import time
from argparse import ArgumentParser, Namespace
from functools import partial
from threading import Lock
from typing import Any

from debug_spyre.card.holders import Card
from debug_spyre.examine.io.examination import Examination, add_examining, examination
from debug_spyre.examine.io.kernel_lab import split_by_kernels
from debug_spyre.examine.shadow_report import (
    AS_IS,
    BY_NAME,
    COMPILER,
    RUNGS,
    UNDECIDED,
    Rung,
    Step,
    conclusion,
    ladder_lines,
)
from debug_spyre.fleet.io.lane import at_once, chosen_cards
from debug_spyre.host.files import write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.host.spyre_variables import known_switches
from debug_spyre.runs.io.finding_runs import known_ids
from debug_spyre.runs.io.jobs import follow, foreground_seconds
from debug_spyre.runs.io.pytest_command import from_root, pytest_command
from debug_spyre.runs.io.records import RunRecord
from debug_spyre.runs.io.run_folder import RUNS, RunFolder
from debug_spyre.triage.signature import signature
from debug_spyre.verbs.session_option import add_cards_argument, log_line
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import Exit, UsageError
from debug_spyre.vocabulary.evidence import Kind
from debug_spyre.vocabulary.words import RunStatus

PLUGIN, STATE = "debug_spyre_ladder", "ladder.json"
KEEPING = Lock()  # several rungs end at once


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rungs", metavar="A,B", help=f"only these: {','.join(r.name for r in RUNGS)} (as-is always runs)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the ladder of this session that was cut off")
    parser.add_argument(
        "--seconds", type=float, default=1800.0, metavar="S", help="start no rung after S seconds (1800)"
    )
    add_cards_argument(parser)
    add_examining(parser)


def _run(args: Namespace) -> int:
    if args.seconds <= 0:
        raise UsageError("--seconds must be positive", next="debug-spyre ladder NODEID")
    given = _rungs(args.rungs) if args.rungs else None
    work = examination(args, "ladder")
    rungs = given or _known(work, RUNGS)
    asked = [word for word in args.words if word != "--"]
    words = list(from_root(work.place.checkout, asked)) if asked else work.probe()
    state = _state(work, words) if args.resume else {"words": words, "runs": {}}
    steps: dict[str, Step] = {}
    began = time.monotonic()
    limit = foreground_seconds(args.foreground)
    cards, notes = chosen_cards(args.cards)
    for note in notes:
        warn(note)

    def climbed(rung: Rung, card: Card | None) -> Step | None:
        left = None if limit is None else max(limit - (time.monotonic() - began), 0.0)
        if rung.name not in state["runs"] and (time.monotonic() - began > args.seconds or left == 0.0):
            return None
        record = _climb(work, rung, words, state, left, card=card)
        if record.status is RunStatus.RUNNING:
            return None
        step = _step(rung, record)
        warn(f"ladder: {rung.name}: {step.showed} ({record.id}{f', {card.name}' if card else ''})")
        return step

    wide = max(len(cards), 1)
    rest = [rung for rung in rungs if rung.name != AS_IS]
    for some in [[BY_NAME[AS_IS]], *(rest[n : n + wide] for n in range(0, len(rest), wide))]:
        made = at_once(cards, [partial(climbed, rung) for rung in some])
        for rung, step in zip(some, made, strict=True):
            if step is None:
                return _unfinished(work, state, steps, rung.name, as_json=args.json)
            steps[rung.name] = step
        if steps[AS_IS].fails is False:
            break  # what does not fail can't enter anywhere
    return _say(work, state, steps, as_json=args.json)


def _rungs(names: str) -> tuple[Rung, ...]:
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in BY_NAME]
    if unknown:
        raise UsageError(f"there is no rung {unknown[0]!r}", next=f"debug-spyre ladder --rungs {','.join(BY_NAME)}")
    return tuple(rung for rung in RUNGS if rung.name in wanted or rung.name == AS_IS)


def _known(work: Examination, rungs: tuple[Rung, ...]) -> tuple[Rung, ...]:
    """The rungs whose switches the installed torch-spyre knows; the others would only repeat the test as it is."""
    wanted = [name for rung in rungs for name in rung.needs]
    known = known_switches(choose(work.place.checkout).packages, wanted)
    for rung in rungs:
        if rung.needs and not known & set(rung.needs):
            warn(f"ladder: {rung.name} is left out: this torch-spyre does not read {' or '.join(rung.needs)}")
    return tuple(rung for rung in rungs if not rung.needs or known & set(rung.needs))


def _state(work: Examination, words: list[str]) -> dict[str, Any]:
    path = work.place.folder.path / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(state, dict) and state.get("words") == words and isinstance(state.get("runs"), dict):
            return state
    except (OSError, ValueError):
        pass
    raise UsageError("there is no ladder of this test to go on with", next="debug-spyre ladder NODEID")


def _climb(
    work: Examination, rung: Rung, words: list[str], state: dict[str, Any], left: float | None, *, card: Card | None
) -> RunRecord:
    """Run the rung, or follow the run that an earlier call started."""
    folder = work.place.folder.path
    known = state["runs"].get(rung.name)
    if known:
        return follow(RunFolder(folder / RUNS / known), foreground=left)
    env = dict(rung.env) | ({"DEBUG_SPYRE_LADDER": rung.name} if rung.plugin else {})
    argv, overrides = pytest_command(
        work.place.checkout,
        words,
        env=env,
        plugins=(PLUGIN,) if rung.plugin else (),
        known=known_ids(work.place),
        verb="ladder",
    )
    record = work.run(
        argv, env=overrides, pytest_args=tuple(words), name=f"ladder-{rung.name}", foreground=left, card=card
    )
    with KEEPING:
        state["runs"][rung.name] = record.id
        write_atomically(folder / STATE, json.dumps(state))
    return record


def _step(rung: Rung, record: RunRecord) -> Step:
    """What the rung showed; crash, mismatch and other errors apart."""
    failures = record.evidence.failures if record.evidence else ()
    failing = {f.nodeid for f in failures if f.nodeid}
    total = record.evidence.collected if record.evidence else None
    kinds = {f.kind for f in failures}
    first = failures[0] if failures else None
    detail = (first.pattern or first.cause or first.error_class or "") if first else ""
    if record.status is RunStatus.PASSED:
        showed = "passed"
    elif record.status in {RunStatus.INVALID, RunStatus.LOST, RunStatus.INTERRUPTED, RunStatus.BUSY}:
        showed = "unknown"
    elif Kind.CRASH in kinds or record.status is RunStatus.KILLED or (record.exit or 0) < 0:
        showed = "crash"
    elif record.status in {RunStatus.TIMEOUT, RunStatus.STALLED} or Kind.TIMEOUT in kinds:
        showed = "hang"
    elif kinds == {Kind.MISMATCH}:
        showed = "mismatch"
    elif kinds:
        showed = "error" if Kind.MISMATCH not in kinds else "mismatch and error"
    else:
        showed = "unknown"
    if showed == "unknown":
        detail = " ".join([record.status.value, *record.warnings[:1]])
    words = signature(first) if first and showed not in {"unknown", "mismatch"} else ""
    line = detail.splitlines()[0][:120] if detail else ""
    return Step(rung.name, showed, len(failing), total, record.id, line, words)


def _unfinished(work: Examination, state: dict[str, Any], steps: dict[str, Step], name: str, *, as_json: bool) -> int:
    write_atomically(work.place.folder.path / STATE, json.dumps(state))
    session = f" --session {work.place.folder.stem}"
    lines = [*ladder_lines(steps)[1:], f"stopped before the end of rung {name}"]
    lines.append(f"  next: debug-spyre ladder --resume{session} {shlex.join(state['words'])}")
    answer(lines, {"steps": [s.to_json() for s in steps.values()], "complete": False}, as_json=as_json)
    return int(Exit.RUNNING)


def _say(work: Examination, state: dict[str, Any], steps: dict[str, Step], *, as_json: bool) -> int:
    lines = ladder_lines(steps)
    last = next(reversed(steps.values()))
    path = work.place.folder.path / RUNS / last.run / STATE
    data = {
        "words": state["words"],
        "conclusion": conclusion(steps),
        "steps": [s.to_json() for s in steps.values()],
        "complete": True,
    }
    fails = steps[AS_IS].fails
    if fails:
        said = conclusion(steps)
        if said.startswith(COMPILER) and steps[AS_IS].error:
            data["kernels"] = split_by_kernels(work, state["words"], steps[AS_IS].detail)
            lines += data["kernels"]
        lines.append(
            work.verdict(said, last.run, verdict="inconclusive" if said.startswith(UNDECIDED) else "confirmed")
        )
    elif fails is False:  # by itself it passes: what runs before it may matter
        files = dict.fromkeys(word.split("::", maxsplit=1)[0] for word in state["words"] if not word.startswith("-"))
        lines.append(f"next: debug-spyre run --alone {shlex.join(files)}")
    write_atomically(path, json.dumps({"schema": 1, **data}, ensure_ascii=False))
    work.keep_for(last.run, lines, path, {"conclusion": data["conclusion"]})
    lines += log_line(work.place)
    answer(lines, data, as_json=as_json)
    return int(Exit.NO if fails else Exit.YES)


VERBS = {
    "ladder": Verb(
        add_arguments=_add,
        run=_run,
        example="debug-spyre ladder 'tests/test_rms.py::test_rms[fp16-1024]'",
        rest="words",
        words="[NODEID ...]",
    )
}
