"""The verb `bisect`: which commit of torch-spyre brought the fault, each revision built into an environment of its own."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from debug_spyre.card.holders import choose_cards, devices
from debug_spyre.fleet import bisect_record
from debug_spyre.fleet.io.revisions import REQUEST, REVISIONS, VERB, commit_facts, load, state_of
from debug_spyre.host.files import make_folder, sha256_of, write_atomically
from debug_spyre.host.fingerprint import installed_in, search_path, site_packages
from debug_spyre.host.git import GitFailedError, git
from debug_spyre.host.interpreter import choose
from debug_spyre.runs import pytest_words
from debug_spyre.runs.io.finding_runs import new_triage_folder
from debug_spyre.runs.io.finish_run import recover
from debug_spyre.runs.io.jobs import SCRIPTS, JobSpec, follow_steps, foreground_seconds, last_lines, submit
from debug_spyre.runs.io.run_folder import RunFolder, run_folders_of
from debug_spyre.session.io.workspace import find_checkout, logs_folder, make_logs
from debug_spyre.tree.io.snapshot import tree_digest
from debug_spyre.verbs.session_option import add_cards_argument
from debug_spyre.verbs.verb import Verb, answer
from debug_spyre.vocabulary.errors import Exit, RefusedError, UsageError
from debug_spyre.vocabulary.words import RunStatus

DRIVER = "bisection"
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.fleet.io.bisect_driver import main; sys.exit(main(sys.argv[2:]))"
EXAMPLE = "debug-spyre bisect --good v0.3 --bad main --clone ../torch-spyre --build './build.sh' -- repro.py"


def _arguments(parser: ArgumentParser) -> None:
    parser.usage = "debug-spyre bisect --good A --bad B --build CMD [-- repro.py [ARGS] | NODEID] | --resume | --show"
    parser.add_argument("--good", metavar="A", help="a revision without the fault; an ancestor of B")
    parser.add_argument("--bad", metavar="B", help="a revision with the fault")
    parser.add_argument(
        "--clone",
        metavar="DIR",
        help="your clone of torch-spyre; it is only read (default: where the local build came from)",
    )
    parser.add_argument(
        "--build",
        metavar="CMD",
        help="builds and installs the source in its working folder into $VIRTUAL_ENV; no shell reads it: \"sh -c '...'\"",
    )
    parser.add_argument(
        "--build-approved", action="store_true", help="a person has read the build command and lets it run"
    )
    parser.add_argument(
        "--confidence",
        type=float,
        default=95.0,
        metavar="P",
        help="end at P percent (default 95); more takes more runs",
    )
    parser.add_argument("--runs", type=int, default=400, metavar="N", help="give up after N runs (default 400)")
    parser.add_argument(
        "--timeout", type=float, metavar="S", help="end a run after S seconds; a hang is a fault like any other"
    )
    add_cards_argument(parser)
    parser.add_argument(
        "--resume", action="store_true", help="follow the newest bisection, or go on with it where it stopped"
    )
    parser.add_argument("--show", action="store_true", help="print what the newest bisection knows; run nothing")
    parser.add_argument(
        "--foreground",
        type=float,
        metavar="S",
        help="follow for S seconds, then return with status 79 while it goes on",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _bisect(args: Namespace) -> int:
    checkout = find_checkout()
    if args.show or args.resume:
        folder = _newest(checkout)
        if args.show:
            return _say(folder, args)
        live = next((r for r in run_folders_of(folder) if r.has_live_supervisor() and r.job().name == DRIVER), None)
        return _followed(live or _started(folder, checkout), args)
    request = _request(checkout, args)
    folder = new_triage_folder(logs_folder(checkout)).path
    _approve(request, folder, args)
    make_logs(folder.parent.parent)
    make_folder(folder)
    write_atomically(folder / REQUEST, json.dumps(request))
    return _followed(_started(folder, checkout), args)


def _request(checkout: Path, args: Namespace) -> dict[str, Any]:
    """What is to be searched, checked before anything is made."""
    words = [word for word in args.words or () if word != "--"]
    missing = [
        name for name, value in (("--good", args.good), ("--bad", args.bad), ("--build", args.build)) if not value
    ]
    if missing or not words:
        raise UsageError(f"{missing[0] if missing else 'a script or a node id after --'} is missing", next=EXAMPLE)
    if not 50 < args.confidence < 100 or args.runs < 1:
        raise UsageError(
            f"--confidence {args.confidence:g} --runs {args.runs}: between 50 and 100, and at least 1", next=EXAMPLE
        )
    python = choose(checkout).python
    clone = _clone(args.clone, python)
    good, bad = _revision(clone, args.good), _revision(clone, args.bad)
    if good == bad or git(clone, "merge-base", good, bad, allowed=(0, 1)).decode().strip() != good:
        base = git(clone, "merge-base", good, bad, allowed=(0, 1)).decode().strip()[:12]
        raise UsageError(
            f"{args.good} is no ancestor of {args.bad}"
            if good != bad
            else f"{args.good} and {args.bad} are one commit",
            next=f"debug-spyre bisect --good {base} ... (their merge base)" if base and good != bad else EXAMPLE,
        )
    script = words[0].endswith(".py") and "::" not in words[0] and Path(words[0]).is_file()
    if script:
        words[0] = str(Path(words[0]).resolve())
    else:
        pytest_words.check(words, verb=VERB)
    chosen = [card.device for card in choose_cards(args.cards)] if args.cards else list(devices()[:1])
    return {
        "checkout": str(checkout), "clone": str(clone), "python": str(python), "good": good, "bad": bad,
        "build": shlex.split(args.build), "words": words, "script": script, "cwd": str(Path.cwd()),
        "confidence": args.confidence / 100, "runs": args.runs, "timeout": args.timeout, "cards": chosen,
        "state": _state(checkout, words, script=script),
    }  # fmt: skip


def _state(checkout: Path, words: list[str], *, script: bool) -> str | None:
    """What is run must be the same at every revision."""
    return sha256_of(Path(words[0])) if script else tree_digest(checkout)


def _clone(given: str | None, python: Path) -> Path:
    if given is not None:
        clone = Path(given).resolve()
    else:
        found = installed_in(search_path(site_packages(python)))
        if found is None or not found.is_local or not found.url:
            raise UsageError("which clone of torch-spyre? The installed one is no local build", next=EXAMPLE)
        clone = Path(unquote(urlparse(found.url).path))
    if not (clone / ".git").exists():
        raise UsageError(f"{clone} is no git clone (it has no .git)", next=EXAMPLE)
    return clone


def _revision(clone: Path, name: str) -> str:
    try:
        return git(clone, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").decode().strip()
    except GitFailedError as error:
        raise UsageError(f"{clone} has no commit {name}", next=f"git -C {clone} log --oneline --all") from error


def _approve(request: dict[str, Any], folder: Path, args: Namespace) -> None:
    """A person confirms the first build: the command may do anything that the person may.

    Raises:
        RefusedError: nobody did.
    """
    if args.build_approved:
        return
    count = git(Path(request["clone"]), "rev-list", "--count", request["bad"], f"^{request['good']}").decode().strip()
    lines = [
        f"bisect builds some of {count} commits of {request['clone']} with",
        f"  {shlex.join(request['build'])}",
        f"each in a source tree and an environment of its own below {folder / REVISIONS};",
        f"the environment of {request['python']} is read, never written",
    ]
    if sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write("\n".join(lines) + "\nRun it? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in {"y", "yes"}:
            return
        raise RefusedError("nothing was built", next=EXAMPLE)
    raise RefusedError(
        "a person has to confirm the first build",
        details=tuple(f"  {line}" for line in lines),
        next="debug-spyre VERB --build-approved",
    )


def _newest(checkout: Path) -> Path:
    base = logs_folder(checkout) / "triage"
    found = sorted(p for p in base.iterdir() if (p / REQUEST).is_file()) if base.is_dir() else []
    if not found:
        raise UsageError("nothing was bisected in this checkout yet", next=EXAMPLE)
    return found[-1]


def _started(folder: Path, checkout: Path) -> RunFolder:
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    if _state(checkout, request["words"], script=request["script"]) != request["state"]:
        raise RefusedError(
            f"{request['words'][0] if request['script'] else 'the checkout'} has changed since this bisection began",
            next="put it back and repeat the command, or begin anew: debug-spyre bisect --good A --bad B ...",
        )
    recover(folder)
    return submit(
        JobSpec(
            folder=folder,
            checkout=checkout,
            verb=VERB,
            name=DRIVER,
            argv=(sys.executable, "-P", "-c", BOOT, str(SCRIPTS), str(folder / REQUEST)),
            needs_card=False,
            python=request["python"],
        )
    )


def _followed(run: RunFolder, args: Namespace) -> int:
    record = follow_steps(run, limit=foreground_seconds(args.foreground))
    if record.status is RunStatus.RUNNING:
        lines = [
            f"{record.id} is running",
            *last_lines(record, 2),
            "status 79: still running",
            "next: debug-spyre bisect --resume",
        ]
        answer(lines, {"status": "running", "run": record.id, "folder": str(run.owner)}, as_json=args.json)
        return int(Exit.RUNNING)
    refused = state_of(run.owner).get("refused")
    if record.exit == int(Exit.USAGE) and refused:
        raise RefusedError(
            refused, details=(f"  folder: {run.owner}",), next=state_of(run.owner).get("next") or EXAMPLE
        )
    if record.exit != 0:
        lines = [
            f"{record.id} ended early ({record.status.value}, exit {record.exit}); what was done is kept",
            *last_lines(record, 3),
        ]
        answer([*lines, "next: debug-spyre bisect --resume"], record.to_json(), as_json=args.json)
        return record.exit_status() or int(Exit.NO)
    return _say(run.owner, args)


def _say(folder: Path, args: Namespace) -> int:
    record, clone = load(folder), json.loads((folder / REQUEST).read_text(encoding="utf-8"))["clone"]
    state = state_of(folder)
    facts = commit_facts(Path(clone), record.groups[0][0][-1])
    data = bisect_record.to_json(record, facts, git=state.get("git") or (), ops=state.get("ops"))
    lines = bisect_record.say(record, data, clone=clone)
    lines.insert(
        -1,
        f"  for git: git bisect replay {folder / 'bisect.log'}"
        if "over" in state
        else "  it has not ended: debug-spyre bisect --resume",
    )
    answer(lines, data, as_json=args.json)
    return int(Exit.NO if data["status"] == "unsettled" else Exit.YES)


VERBS = {VERB: Verb(_arguments, _bisect, EXAMPLE, rest="words", words="[-- repro.py | NODEID]")}
