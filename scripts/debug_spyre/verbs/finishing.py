"""finish: validate, revert, repro, escalate and close in one call; stops at the first condition that is not met and says what to type."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.gate import finishing as core
from debug_spyre.gate.io.validation_jobs import forget_texts, keep_texts, present
from debug_spyre.queue.queue_rules import check_open
from debug_spyre.runs.io.jobs import SCRIPTS
from debug_spyre.session.io.workspace import Folder, load_session
from debug_spyre.session.state import Session
from debug_spyre.verbs.session_option import add_session_argument, after_change, the_session
from debug_spyre.verbs.verb import Verb, answer
from debug_spyre.vocabulary.errors import Exit
from debug_spyre.vocabulary.words import Status

DOSSIER = "dossier.json"
WIDTH = 160
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from debug_spyre.cli import main; sys.exit(main(sys.argv[1:]))"
)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--cause", metavar="TEXT", help="for the retrospective: what the cause was (default: the proved sentence)"
    )
    parser.add_argument("--wasted", metavar="TEXT", help="for the retrospective: which effort was wasted")
    parser.add_argument("--signal", metavar="TEXT", help="for the retrospective: which signal pointed to the cause")
    parser.add_argument(
        "--next", dest="next_action", metavar="TEXT", help="only for blocked: what a person must decide"
    )
    parser.add_argument("--patch-approved", metavar="REASON", help="a person approves that the patch stays in the tree")
    parser.add_argument(
        "--foreground",
        type=float,
        metavar="S",
        help="follow runs for S seconds, then return with status 79 while they go on",
    )
    add_session_argument(parser)


def _finish(args: Namespace) -> int:
    folder = the_session(args)
    session = load_session(folder)
    check_open(session)
    texts: dict[str, str | None] = dict(keep_texts(folder.path, vars(args)))
    causes = _causes(folder)
    plan = core.plan(
        is_changed=_is_changed(session),
        is_reverted=bool(session.validation and session.reverts and session.reverts[-1].patched),
        is_backend=core.backend_cause(causes) is not None,
        has_repro=session.verified_repro is not None,
        has_bundle=session.bundle is not None and not session.since_bundle,
        approved=bool(args.patch_approved or session.approval),
    )
    steps: list[dict[str, Any]] = []
    if plan.status is None:
        following = "change the code or the test, then the same call; or: debug-spyre close blocked --next TEXT"
        return _stop(args, folder, steps, _Stop("validate", plan.why, following, int(Exit.NO)))
    typed = texts.get("cause")
    texts["cause"] = typed or core.cause_text(causes)
    asked = _missing_texts(folder, texts)
    if plan.status is Status.RESOLVED and asked:
        why = "`resolved` asks for three texts: the cause, what was wasted effort, which signal pointed to the cause"
        return _stop(args, folder, steps, _Stop("retrospective", why, asked, int(Exit.NO)))
    for step in plan.steps:
        words = _words(step, args, plan, texts, folder)
        words += ["--title", typed] if step == core.ESCALATE and typed else []
        done = subprocess.run(
            [sys.executable, "-P", "-c", _BOOT, str(SCRIPTS), *words], capture_output=True, text=True, check=False
        )
        told = _told(done)
        steps.append(
            {
                "step": step,
                "result": "done" if done.returncode == 0 else f"status {done.returncode}",
                "text": told["text"],
            }
        )
        if done.returncode != 0:
            return _stop(args, folder, steps, _Stop(step, told["text"], told["next"], done.returncode))
    return _end(args, folder, steps)


def _missing_texts(folder: Folder, texts: Mapping[str, str | None]) -> str | None:
    """The same call with the texts that nobody gave yet; None where all are there."""
    missing = [f"--{name} TEXT" for name in ("cause", "wasted", "signal") if not texts.get(name)]
    return f"debug-spyre finish --session {folder.stem} {' '.join(missing)}" if missing else None


def _causes(folder: Folder) -> list[Mapping[str, Any]]:
    try:
        return list(json.loads((folder.path / DOSSIER).read_text(encoding="utf-8"))["causes"])
    except (OSError, ValueError, KeyError):
        return []


def _is_changed(session: Session) -> bool:
    """The tree differs from what it was at open."""
    now = present(Path(session.checkout)).tree
    return now is not None and now != session.tree.get("digest")


def _words(step: str, args: Namespace, plan: core.Plan, texts: Mapping[str, str | None], folder: Folder) -> list[str]:
    follow = [] if args.foreground is None else ["--foreground", str(args.foreground)]
    mine = ["--session", folder.stem, "--json"]
    if step in {core.VALIDATE, core.REPRO}:
        return [step, *follow, *mine]
    if step in {core.REVERT, core.ESCALATE}:
        return [step, *mine]
    words = [step, plan.status.value if plan.status else ""]
    for option, name in (("--cause", "cause"), ("--wasted", "wasted"), ("--signal", "signal")):
        words += [option, str(texts[name])] if texts.get(name) else []
    if plan.status is Status.BLOCKED:
        words += ["--next", str(texts.get("next_action") or plan.why)]
    if args.patch_approved:
        words += ["--patch-approved", args.patch_approved]
    return [*words, *mine]


def _told(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What a step said: its own words and what it would have one type."""
    try:
        data = json.loads(done.stdout)
    except ValueError:
        data = {}
    if done.returncode == 0 and isinstance(data.get("rows"), list):
        return {"text": _measured(data), "next": ""}
    reasons = data.get("reasons") or []
    if reasons:
        return {
            "text": f"{reasons[0]['code']}: {reasons[0]['text']}"[:WIDTH],
            "next": str(reasons[0].get("next") or ""),
        }
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    text = next((s.removeprefix("debug-spyre: ") for s in said if not s.startswith("next:")), "")
    following = next((s.removeprefix("next: ") for s in reversed(said) if s.startswith("next:")), "")
    own = str(data.get("status") or data.get("gate") or data.get("stamp") or data.get("bundle") or "done")
    return {"text": (text if done.returncode else own)[:WIDTH], "next": following}


def _measured(data: Mapping[str, Any]) -> str:
    """What validate found, in numbers."""
    rows = data["rows"]
    passed = sum(bool(row.get("cleared")) for row in rows)
    return f"{passed} of {len(rows)} members pass; new failures in the matrix: {data.get('regressions', 0)}"


@dataclass(frozen=True, slots=True)
class _Stop:
    """Where it stopped, why, what to type, and the exit status of the step."""

    step: str
    why: str
    next: str
    status: int


def _stop(args: Namespace, folder: Folder, steps: list[dict[str, Any]], at: _Stop) -> int:
    """Say which condition is not met and what to type; the texts are kept."""
    running = at.status == int(Exit.RUNNING)
    following = at.next or f"debug-spyre {at.step} --session {folder.stem}"
    if running:
        following = f"debug-spyre finish --session {folder.stem}"
    state = load_session(folder)
    lines = [*_lines(steps), f"stopped at {at.step}: {'it is still running' if running else at.why}"]
    lines += [f"session {folder.stem} is {state.status}; the texts are kept", f"next: {following}"]
    data = {"steps": steps, "status": str(state.status), "labels": [], "stopped_at": at.step, "next": following}
    answer(lines, data, as_json=args.json)
    return at.status


def _end(args: Namespace, folder: Folder, steps: list[dict[str, Any]]) -> int:
    session = load_session(folder)
    html = after_change(folder)
    named = core.labels(session)
    forget_texts(folder.path)
    waiting = _waiting(folder)
    following = f"debug-spyre status --session {waiting}" if waiting else "debug-spyre status"
    lines = [*_lines(steps), f"session {folder.stem} is {session.status}" + (f" ({', '.join(named)})" if named else "")]
    files = _files_left(folder, session)
    lines += [*(f"{what}: {path}" for what, path in files.items()), f"log: {html}", f"next: {following}"]
    data = {"steps": steps, "status": str(session.status), "labels": list(named), "stopped_at": None, "next": following}
    answer(lines, {**data, **files, "log": str(html)}, as_json=args.json)
    return int(Exit.YES)


def _files_left(folder: Folder, session: Session) -> dict[str, str]:
    """What a person takes from here: the patch and the bundle."""
    found = {}
    if session.reverts and session.reverts[-1].patch:
        found["patch"] = str(folder.path / session.reverts[-1].patch)
    if session.bundle is not None:
        found["issue"] = str(folder.path / str(session.bundle.report))
        found["zip"] = str(folder.path / str(session.bundle.data.get("zip", "")))
    return found


def _lines(steps: list[dict[str, Any]]) -> list[str]:
    said = ({core.VALIDATE} | {s["step"] for s in steps if s["result"] != "done"}) if steps else set()
    return [f"{s['step']}: {s['result']}" + (f": {s['text']}" if s["step"] in said else "") for s in steps]


def _waiting(folder: Folder) -> str | None:
    """Another session of the same investigation or triage that is still open."""
    from debug_spyre.session.io.workspace import open_sessions

    return next((other.stem for other in open_sessions(folder.path.parent) if other.stem != folder.stem), None)


VERBS = {
    "finish": Verb(
        _arguments,
        _finish,
        "debug-spyre finish --wasted 'hypotheses 3 to 5' --signal 'every failing width is above 128'",
    )
}
