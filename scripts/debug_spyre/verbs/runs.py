"""The verbs on runs: run, exec, wait, stop, lock. One command under the card's lock, kept and read."""

from __future__ import annotations

import difflib
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from debug_spyre.card import holders, lock
from debug_spyre.host.interpreter import choose
from debug_spyre.page.io.redraw import redraw
from debug_spyre.queue.io.rows import begin_row, end_row
from debug_spyre.runs.io.child import run_locked
from debug_spyre.runs.io.finding_runs import RunPlace, find_run, known_ids, run_place
from debug_spyre.runs.io.finish_run import recover
from debug_spyre.runs.io.jobs import JobSpec, NeverBegan, follow, foreground_seconds, request_stop, run_job
from debug_spyre.runs.io.pytest_command import check_command, from_root, pytest_command
from debug_spyre.runs.io.records import RunRecord, load_record
from debug_spyre.runs.io.run_environment import BACKEND
from debug_spyre.runs.io.series import with_experiment
from debug_spyre.runs.run_words import says
from debug_spyre.verbs.session_option import (
    add_cards_argument,
    add_hosts_arguments,
    add_session_argument,
    spread_over,
)
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import Exit, UsageError
from debug_spyre.vocabulary.words import RUN_NAMES, VERDICTS, RunStatus


def _add_common(parser: ArgumentParser) -> None:
    add_session_argument(parser)
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help=f"name of the run: {', '.join(RUN_NAMES)}, or your own"
    )
    parser.add_argument(
        "--hypothesis", type=int, metavar="N", help="the hypothesis that this tests (default: the one in progress)"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="K=V", help="set an environment variable for the command"
    )
    for option, when in (("--if-passes", "passes"), ("--if-fails", "fails")):
        parser.add_argument(
            option, nargs=2, metavar=("VERDICT", "SENTENCE"), help=f"the verdict on the hypothesis where the run {when}"
        )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="end the run after S seconds (pytest-timeout's own option goes after --)",
    )
    parser.add_argument(
        "--stall",
        type=float,
        metavar="S",
        help="end the run after S seconds without output or result (default: warn at 300)",
    )
    _add_wait(parser)
    parser.add_argument(
        "--foreground",
        type=float,
        metavar="S",
        help="follow the run for S seconds, then return with status 79 while it goes on",
    )
    parser.add_argument(
        "--reap", action="store_true", help="end your own processes that hold the card without our lock"
    )
    parser.add_argument(
        "--expect-change",
        action="append",
        default=[],
        choices=(BACKEND,),
        help="declare that torch-spyre is rebuilt deliberately during this run",
    )


def _add_wait(parser: ArgumentParser) -> None:
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument(
        "--wait", type=float, metavar="S", help="wait up to S seconds for the card (default: wait until it is free)"
    )
    waiting.add_argument("--no-wait", action="store_true", help="return with status 75 at once if the card is busy")


def _add_run(parser: ArgumentParser) -> None:
    _add_common(parser)
    add_cards_argument(parser)
    add_hosts_arguments(parser)
    parser.add_argument("--members", action="store_true", help="run the session's members, and nothing else")
    parser.add_argument("--fallback-as-error", action="store_true", help="make the first CPU fallback fail the test")
    parser.add_argument(
        "--verbose-backend", action="store_true", help="switch the backend's own logs on; they are kept as verbose.log"
    )
    parser.add_argument("--fresh-cache", action="store_true", help="use a new, empty compile cache")
    experiment = parser.add_mutually_exclusive_group()
    experiment.add_argument("--repeat", type=int, metavar="N", help="run N times and tell whether the result changes")
    experiment.add_argument("--isolate", action="store_true", help="run each selected test in its own process")
    experiment.add_argument(
        "--alone", action="store_true", help="rerun failing tests alone and find earlier tests that make them fail"
    )


def _add_exec(parser: ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument("--cards", metavar="A,B", help="use only these cards (default: all that the environment shows)")


def _check_name(name: str | None) -> None:
    """A run whose name is nearly one that the rules ask for would be missed by them.

    Raises:
        UsageError: so it is.
    """
    near = difflib.get_close_matches(name or "", RUN_NAMES, n=1, cutoff=0.85)
    if near and name not in RUN_NAMES:
        raise UsageError(f"--as {name}: did you mean {near[0]}?", next=f"debug-spyre run --as {near[0]}")


def _run(args: Namespace) -> int:
    place = run_place(args.session)
    words = _pytest_words(args, place)
    name = args.name or ("verbose" if args.verbose_backend else None)
    _check_name(name)
    interpreter = choose(place.checkout)
    argv, env = pytest_command(
        place.checkout,
        words,
        name=name,
        env=_environment(args.env),
        fallback_as_error=args.fallback_as_error,
        verbose_backend=args.verbose_backend,
        known=known_ids(place),
        interpreter=interpreter,
    )
    spec = _spec(args, place, verb="run", name=name, argv=argv, env=env, pytest_args=tuple(words))
    series = bool(args.repeat or args.isolate or args.alone)
    spec = with_experiment(
        spec, repeat=args.repeat, isolate=args.isolate, alone=args.alone, fresh_cache=args.fresh_cache
    )
    spec = spread_over(spec, args, series=series)
    return _follow_new(spec, args, place, chosen=interpreter.why)


def _exec(args: Namespace) -> int:
    place = run_place(args.session)
    words = _after_dashes(args.words, "exec")
    check_command(place.checkout, words)
    spec = _spec(args, place, verb="exec", name=args.name, argv=tuple(words), env=_environment(args.env))
    bare = words[0] in {"python", "python3", "pytest"}
    return _follow_new(spec, args, place, chosen=choose(place.checkout).why if bare else None)


def _spec(
    args: Namespace,
    place: RunPlace,
    *,
    verb: str,
    name: str | None,
    argv: tuple[str, ...],
    env: dict[str, str],
    pytest_args: tuple[str, ...] | None = None,
) -> JobSpec:
    if verb == "exec":
        holders.devices(args.cards)  # a card that is not there is refused before anything is made
    return JobSpec(
        folder=place.folder.path,
        checkout=place.checkout,
        verb=verb,
        name=_name(name),
        argv=argv,
        pytest_args=pytest_args,
        env=env,
        hypothesis=_row(args.hypothesis, place),
        members_only=bool(getattr(args, "members", False)),
        timeout=args.timeout,
        stall=args.stall,
        wait=0.0 if args.no_wait else args.wait,
        cards=args.cards if verb == "exec" else None,
        reap=args.reap,
        expect_change=tuple(args.expect_change),
        cwd=place.checkout if pytest_args is not None else Path.cwd(),  # node ids begin at the root
        python=str(choose(place.checkout).python),
    )


def _follow_new(spec: JobSpec, args: Namespace, place: RunPlace, *, chosen: str | None) -> int:
    _record_lost(spec.folder)
    foretold, concluded = _foretold(args, spec), None
    if spec.hypothesis is not None and place.is_session:
        begin_row(place.folder, spec.hypothesis, shlex.join(spec.pytest_args or spec.argv), must=bool(foretold))
    record = run_job(spec, foreground=foreground_seconds(args.foreground))
    ended = record.valid and record.status in {RunStatus.PASSED, RunStatus.FAILED}
    if foretold and ended and spec.hypothesis is not None:
        passes = record.status is RunStatus.PASSED
        said = foretold.get(passes)
        if said is not None:
            end_row(place.folder, spec.hypothesis, said, record.id)
            concluded = f"hypothesis {spec.hypothesis} is {said[0]}: {said[1]}"
    return _say(record, place, as_json=args.json, chosen=chosen, concluded=concluded)


def _foretold(args: Namespace, spec: JobSpec) -> dict[bool, tuple[str, str]]:
    """What the run will mean, said before it begins: passed or failed to (verdict, sentence)."""
    found = {}
    for passes, given in ((True, args.if_passes), (False, args.if_fails)):
        if given is None:
            continue
        verdict, sentence = given
        if spec.hypothesis is None:
            raise UsageError("a verdict needs its hypothesis", next="debug-spyre run --hypothesis N --if-passes ...")
        if verdict not in {v.value for v in VERDICTS} or not sentence.strip():
            raise UsageError(
                f"{verdict!r} is no verdict, or its sentence is empty",
                next="debug-spyre run --hypothesis N --if-fails confirmed 'the op alone is wrong' ...",
            )
        found[passes] = (verdict, sentence.strip())
    return found


def _wait(args: Namespace) -> int:
    from debug_spyre.fleet.io.shipping import to_go_on

    run, place = find_run(args.run, session=args.session)
    _record_lost(run.owner)
    record = follow(run, foreground=foreground_seconds(args.foreground))
    left = to_go_on(run, record)
    if left is not None:
        warn(f"{run.id} lost its driver: what it has left runs now")
        record = run_job(left, foreground=foreground_seconds(args.foreground))
    return _say(record, place, as_json=args.json)


def _stop(args: Namespace) -> int:
    run, place = find_run(args.run, session=args.session)
    if request_stop(run):
        try:
            record = follow(run)
        except NeverBegan:
            answer(f"{run.id} was ended before it began", {"run": run.id, "status": "interrupted"}, as_json=args.json)
            return int(Exit.YES)
        answer(says(record.to_json(), stem=place.folder.stem), record.to_json(), as_json=args.json)
        return int(Exit.YES)
    _record_lost(run.owner)
    record = load_record(run)
    answer(f"{run.id} is not running (status {record.status.value})", record.to_json(), as_json=args.json)
    return int(Exit.YES)


def _record_lost(folder: Path) -> None:
    """Record runs whose supervisor was killed."""
    if recover(folder):
        redraw(folder)


def _say(
    record: RunRecord, place: RunPlace, *, as_json: bool, chosen: str | None = None, concluded: str | None = None
) -> int:
    if record.status is RunStatus.LOST:
        redraw(place.folder.path)
    data = record.to_json()
    first = chosen if record.id == "r1" else None  # which Python it is, once a session
    text = says(data, stem=place.folder.stem, chosen=first, state=record.state, concluded=concluded)
    if record.status in {RunStatus.KILLED, RunStatus.LOST, RunStatus.ERROR}:
        from debug_spyre.fleet.io.shipping import has_left

        if has_left(record):
            data["next"] = f"debug-spyre wait {record.id}"
            text += f"\nnext: {data['next']} (goes on with what its driver left)"
    answer(text, data, as_json=as_json)
    return record.exit_status()


def _lock(args: Namespace) -> int:
    if args.words:
        words = _after_dashes(args.words, "lock")
        return run_locked(
            words, cards=holders.devices(args.cards), wait=0.0 if args.no_wait else args.wait, redraw=redraw
        )
    cards = holders.devices(args.cards)
    paths = lock.lock_paths(cards)
    held = [path for path in paths if lock.is_held(path)]
    holder = next((h for path in held if (h := lock.read_holder(path))), None)
    seen = holders.holders(cards)
    lines = [f"lock: {'held by ' + (holder.says() if holder else 'unknown holder') if held else 'free'}"]
    lines += [f"device: {seen.says()}", *(f"  {path}" for path in paths)]
    data = {
        "held": bool(held),
        "holder": holder.to_json() if holder else None,
        "device": seen.state.value,
        "device_holders": [p.says() for p in seen.processes],
        "paths": [str(path) for path in paths],
    }
    answer(lines, data, as_json=args.json)
    return int(Exit.YES)


def _add_wait_verb(parser: ArgumentParser) -> None:
    add_session_argument(parser)
    parser.add_argument("run", nargs="?", metavar="RUN", help="for example r3 (default: the newest)")
    parser.add_argument(
        "--foreground",
        type=float,
        metavar="S",
        help="follow the run for S seconds, then return with status 79 while it goes on",
    )


def _add_stop(parser: ArgumentParser) -> None:
    add_session_argument(parser)
    parser.add_argument("run", nargs="?", metavar="RUN", help="for example r3 (default: the newest)")


def _add_lock(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--cards", metavar="A,B", help="use only these cards")
    _add_wait(parser)


def _pytest_words(args: Namespace, place: RunPlace) -> list[str]:
    words = list(args.words)
    if "--" in words:
        at = words.index("--")  # what follows is pytest's, also where we have an option of that name
        words = words[:at] + words[at + 1 :]
    if not args.members:
        return list(from_root(place.checkout, words))
    members = place.members()
    if not members:
        raise UsageError("there is no session here whose members could be run", next="debug-spyre open SLUG")
    return [*words, *members]


def _after_dashes(words: Sequence[str], verb: str) -> list[str]:
    if not words or words[0] != "--" or len(words) < 2:
        shown = shlex.join(words[1:] if words[:1] == ["--"] else words) or "COMMAND"
        raise UsageError("the command stands after --", next=f"debug-spyre {verb} -- {shown}")
    return list(words[1:])


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--env {pair!r} is not K=V", next="debug-spyre run --env NAME=VALUE ...")
        found[name] = value
    return found


def _name(name: str | None) -> str | None:
    if name is None:
        return None
    if Path(name).name != name or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise UsageError(f"--as {name!r} can't be a file's name", next="debug-spyre run --as short-words ...")
    return name


def _row(number: int | None, place: RunPlace) -> int | None:
    if number is not None and not place.has_row(number):
        raise UsageError(f"there is no hypothesis {number} here", next="debug-spyre hypothesis list")
    return number


VERBS = {
    "run": Verb(
        _add_run,
        _run,
        "debug-spyre run --as baseline 'tests/test_rms.py::test_rms[fp16-1024]'",
        "words",
        "[PYTEST-ARGS]",
    ),
    "exec": Verb(_add_exec, _exec, "debug-spyre exec --as cpu-control -- python repro.py", "words", "-- COMMAND"),
    "wait": Verb(_add_wait_verb, _wait, "debug-spyre wait r3 --foreground 570"),
    "stop": Verb(_add_stop, _stop, "debug-spyre stop r3"),
    "lock": Verb(_add_lock, _lock, "debug-spyre lock -- python probe.py", "words", "[-- COMMAND]"),
}
