"""demo: from a red matrix to two finished sessions on the simulated card, through the public command only.

No sentence about a cause is written here: all come from the runs, so that another fault gives another sentence.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.demo.demo_card import FAULTS, PACKAGE, Demo, prepare
from debug_spyre.verbs.verb import Verb, answer
from debug_spyre.vocabulary.errors import DebugSpyreError, Exit

COMMAND = "import sys; sys.path.insert(0, sys.argv.pop(1)); from debug_spyre.cli import main; sys.exit(main())"
MATRIX = ("tests/test_rms_norm.py", "tests/test_silu_and_mul.py")
APPROVAL = "the demo plays the person who approves this work-around"
WASTED = "nothing: the demo tried no hypothesis by hand"
MOST_ISSUE = 24
PLAN = """\
A copy of a small plugin repo, a simulated card with faults, and a colleague's uncommitted edit that must survive.
It takes about 10 minutes on a busy machine with two cores, less on a quiet one.
  1. investigate   runs the tests, names each cause and proves it
  2. finish        for each cause: with a source change where the demo has one, else handed over to the torch-spyre team"""


@dataclass(frozen=True, slots=True)
class Shell:
    """Types the public command in the demo's checkout and shows what is typed and answered."""

    demo: Demo
    quiet: bool
    began: float

    def type(self, *words: str, allow: tuple[int, ...] = (0,)) -> str:
        """One command; a status that is not in `allow` ends the demo."""
        self.say(f"\n[{time.monotonic() - self.began:5.1f} s] $ debug-spyre {shlex.join(words)}")
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, str(PACKAGE.parent), *words],
            cwd=self.demo.checkout,
            env=self.demo.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if self.quiet else None,
            check=False,
        )
        if "--json" not in words:
            self.say(done.stdout.rstrip())
        if done.returncode not in allow:
            raise DebugSpyreError(
                f"the demo's step ended with status {done.returncode}: debug-spyre {shlex.join(words)}",
                details=tuple((done.stdout + (done.stderr or "")).splitlines()[-12:]),
                next=f"look into {self.demo.checkout}",
            )
        return done.stdout

    def say(self, text: str) -> None:
        """Print for people; nothing under --json."""
        if text and not self.quiet:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="where to make the checkout (default: a new temporary folder)"
    )
    parser.add_argument(
        "--faults", default=FAULTS, metavar="LIST", help="faults of the simulated card (default %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end, nothing before")


def _demo(args: Namespace) -> int:
    began = time.monotonic()
    shell = Shell(prepare(args.keep, args.faults), args.json, began)
    shell.say(PLAN)
    shell.type("install", str(shell.demo.checkout))
    shell.type("investigate", *MATRIX, allow=(0, 1))
    causes = _dossier(shell.demo.checkout)["causes"]
    causes.sort(key=lambda cause: shell.demo.has_patch_for(cause["op"]))  # what changes the tree comes last
    sessions = [_finish(shell, cause) for cause in causes if cause["session"]]
    index = shell.demo.logs / "index.html"
    untouched = shell.demo.is_users_edit_untouched()
    lines = [*_issue_lines(sessions), ""]
    lines.append(
        f"finished in {time.monotonic() - began:.0f} s; the colleague's uncommitted edit is {'byte-identical' if untouched else 'CHANGED'}"
    )
    for one in sessions:
        lines += [f"{one['status']}: {one['sentence']}", f"  log: {one['log']}"]
        lines += [f"  for the torch-spyre team: {one['issue']}"] if one["issue"] else []
    lines.append(f"all sessions: {index}")
    data = {"sessions": sessions, "index": str(index), "untouched": untouched, "checkout": str(shell.demo.checkout)}
    answer(lines, data, as_json=args.json)
    ended = bool(sessions) and all(one["status"] != "investigating" for one in sessions)
    return int(Exit.YES if untouched and ended else Exit.NO)


def _dossier(checkout: Path) -> dict[str, Any]:
    """The newest dossier of the checkout."""
    found = sorted((checkout / ".claude/skills/debug-spyre/logs/triage").glob("*/dossier.json"))
    if not found:
        raise DebugSpyreError("investigate left no dossier", next=f"look into {checkout}")
    data: dict[str, Any] = json.loads(found[-1].read_text(encoding="utf-8"))
    return data


def _finish(shell: Shell, cause: dict[str, Any]) -> dict[str, Any]:
    """End the session of one cause: with the source change where the demo has one for the op, else handed over."""
    _drop_rest(shell, cause)
    words = ["finish", "--session", str(cause["session"])]
    if shell.demo.patch_for(cause["op"]):
        shell.say("\nThe demo now changes spyre_inference/custom_ops/rms_norm.py, as an engineer would:")
        shell.say(shell.demo.patch_text())
        words += ["--patch-approved", APPROVAL, "--wasted", WASTED]
        words += ["--signal", str(cause["wrong_values"] or cause["sentence"])]
    shell.type(*words, allow=(0, 1))
    folder = shell.demo.logs / str(cause["session"])
    issue = folder / "escalation/issue.md"
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    closed = next((str(e["status"]) for e in reversed(events) if e["kind"] == "session_closed"), "investigating")
    return {
        "session": cause["session"], "sentence": cause["sentence"], "claim": cause["claim"], "status": closed,
        "log": str(folder) + ".html", "issue": str(issue) if issue.is_file() else None,
    }  # fmt: skip


def _drop_rest(shell: Shell, cause: dict[str, Any]) -> None:
    """What is still queued is a matter of judgement: the demo drops it where the cause explains every failing test."""
    explains = cause.get("explains") or {}
    if cause["claim"] != "cause" or not explains or explains["tests"] != explains["of"]:
        return
    reason = f"the proved cause explains {explains['tests']} of {explains['of']} failing tests"
    told = json.loads(shell.type("status", "--session", str(cause["session"]), "--json"))
    for row in told["hypotheses"]:
        if row["status"] == "queued":
            shell.type("hypothesis", "drop", str(row["number"]), "--reason", reason, "--session", str(cause["session"]))


def _issue_lines(sessions: list[dict[str, Any]]) -> list[str]:
    """The beginning of the last issue that was written."""
    path = next((one["issue"] for one in reversed(sessions) if one["issue"]), None)
    if path is None:
        return []
    text = Path(path).read_text(encoding="utf-8").splitlines()
    rest = [f"  ... {len(text) - MOST_ISSUE} more lines"] if len(text) > MOST_ISSUE else []
    return ["", f"The issue for the torch-spyre team, {path}:", "", *(f"  {t}" for t in text[:MOST_ISSUE]), *rest]


VERBS = {"demo": Verb(_arguments, _demo, "debug-spyre demo")}
