"""note and save: the log's prose and the files worth keeping."""

from __future__ import annotations

import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from debug_spyre.host.files import PRIVATE, make_folder, sha256_of, write_atomically
from debug_spyre.host.templates import is_there
from debug_spyre.runs.io.run_environment import BACKEND
from debug_spyre.session.events import ArtifactSaved, Event, ExperimentNoted, FindingNoted, NextNoted, SummaryNoted
from debug_spyre.session.io.workspace import Folder, find_checkout
from debug_spyre.session.state import Session
from debug_spyre.verbs.session_option import add_session_argument, after_change, answer_in, the_session
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import BadInputError, UsageError

TAIL_LINES = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RESERVED = re.compile(
    r"journal\.jsonl|log\.md|(full-matrix|baseline|cpu-control|post-fix|post-fix-matrix|by-hand|r\d+)(-\d+)?\.txt"
    r"|verbose.*\.log|fix(-\d+)?\.patch|revert-pending\.json|ladder\.json|source-.*"
)
_BELONGS = {
    "expect_change": "finding", "reference": "finding",
    "command": "experiment", "output": "experiment", "hypothesis": "experiment", "conclusion": "experiment",
}  # fmt: skip


def _note_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=("summary", "finding", "next", "experiment"))
    parser.add_argument("text", nargs="?", help="the text (default: read from standard input)")
    parser.add_argument(
        "--expect-change", choices=(BACKEND,), help="finding: declare that torch-spyre was rebuilt deliberately"
    )
    parser.add_argument("--reference", metavar="FILE:LINE", help="finding: the place in the source")
    parser.add_argument("--command", metavar="TEXT", help="experiment: the command that was run by hand")
    parser.add_argument("--output", metavar="FILE", help="experiment: file with its output; a copy is kept")
    parser.add_argument("--hypothesis", type=int, metavar="N", help="experiment: the hypothesis that it tests")
    parser.add_argument("--conclusion", metavar="TEXT", help="experiment: what the output shows")
    add_session_argument(parser)


def _note(args: Namespace) -> int:
    for name, owner in _BELONGS.items():
        if getattr(args, name) is not None and args.what != owner:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} says something of a note {owner}, not of a {args.what}",
                next=f"debug-spyre note {owner} 'TEXT' {option} {getattr(args, name)}",
            )
    folder = the_session(args)
    text = _text(args)
    event: Event
    if args.what == "summary":
        event = SummaryNoted(text=text)
    elif args.what == "finding":
        event = FindingNoted(text=text, expect_change=args.expect_change, reference=args.reference)
    elif args.what == "next":
        event = NextNoted(text=text)
    else:
        event = _experiment(args, folder, text)
    number = args.hypothesis
    seq = folder.journal.append(event).seq if number is None else _append_to_row(folder, event, number)
    if args.reference and not is_there(args.reference, find_checkout(), folder.path):
        warn(f"--reference {args.reference}: no such file here, in the checkout or among its packages; noted as it is")
    html = after_change(folder)
    lines = [f"noted ({args.what}); log: {html}"]
    answer(lines, {"session": folder.stem, "seq": seq, "log": str(html)}, as_json=args.json)
    return 0


def _append_to_row(folder: Folder, event: Event, number: int) -> int:
    def checked(session: Session) -> list[Event]:
        _check_row(session, number)
        return [event]

    return folder.journal.record(checked).last_seq


def _check_row(session: Session, number: int) -> None:
    if session.hypothesis(number) is None:
        raise UsageError(f"there is no hypothesis {number}", next="debug-spyre hypothesis list")


def _text(args: Namespace) -> str:
    text = args.text if args.text is not None else sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("the note has no text", next=f"debug-spyre note {args.what} 'TEXT'")
    return str(text.strip())


def _experiment(args: Namespace, folder: Folder, text: str) -> Event:
    kept: str | None = None
    tail: tuple[str, ...] = ()
    if args.output:
        if args.hypothesis is not None:
            _check_row(folder.journal.now(), args.hypothesis)  # before anything is copied
        kept, tail = _keep_output(Path(args.output), folder)
    return ExperimentNoted(
        text=text,
        command=args.command,
        hypothesis=args.hypothesis,
        output=kept,
        tail=tail,
        conclusion=args.conclusion,
    )


def _keep_output(source: Path, folder: Folder) -> tuple[str, tuple[str, ...]]:
    try:
        data = source.read_bytes()
    except OSError as error:
        raise BadInputError(
            f"cannot read {source}: {error.strerror or error}", next="debug-spyre note experiment 'TEXT' --output FILE"
        ) from error
    name = _free_name(folder.path, "by-hand", ".txt")
    write_atomically(folder.path / name, data, mode=PRIVATE)
    lines = data[-65536:].decode("utf-8", "replace").splitlines()
    return name, tuple(lines[-TAIL_LINES:])


def _free_name(folder: Path, base: str, ending: str) -> str:
    number = 1
    while (folder / f"{base}-{number}{ending}").exists():
        number += 1
    return f"{base}-{number}{ending}"


def _save_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", help="file name in the session's folder, e.g. repro.py")
    parser.add_argument("--note", metavar="TEXT", help="what the file is")
    parser.add_argument(
        "--replace", action="store_true", help="replace a file that was saved before (the old one is kept as NAME.1)"
    )
    add_session_argument(parser)


def _save(args: Namespace) -> int:
    folder = the_session(args)
    path = _target(folder, args.name)
    if path.exists() and not args.replace:
        raise UsageError(f"{args.name} exists in this session", next=f"debug-spyre save {args.name} --replace")
    if path.exists() and args.name not in {a.path for a in folder.journal.now().artifacts}:
        raise UsageError(f"{args.name} was not saved here: a run wrote it", next="debug-spyre save OTHER-NAME < FILE")
    data = sys.stdin.buffer.read()
    if not data:
        raise UsageError("nothing came on stdin", next=f"debug-spyre save {args.name} <<'EOF'")
    if path.exists():
        path.rename(_older(path))
    write_atomically(path, data, mode=PRIVATE)
    event = ArtifactSaved(path=args.name, sha256=sha256_of(path), size=len(data), note=args.note)
    folder.journal.append(event)
    html = after_change(folder)
    lines = [f"saved {path}"]
    if args.name.endswith(".py"):
        lines.append(f"run it: debug-spyre exec -- python {shlex.quote(str(path))}")
    answer_in(
        folder,
        lines,
        {"session": folder.stem, "path": str(path), "size": len(data), "log": str(html)},
        as_json=args.json,
    )
    return 0


def _target(folder: Folder, name: str) -> Path:
    if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
        raise UsageError(
            f"{name!r} can't be the name of an artifact: letters, digits, dots and hyphens, no folder, none that a run or the session has",
            next="debug-spyre save repro.py < FILE",
        )
    make_folder(folder.path)
    return folder.path / name


def _older(path: Path) -> Path:
    number = 1
    while path.with_name(f"{path.name}.{number}").exists():
        number += 1
    return path.with_name(f"{path.name}.{number}")


VERBS = {
    "note": Verb(_note_arguments, _note, "debug-spyre note summary 'rms_norm adds only the first 128 columns'"),
    "save": Verb(_save_arguments, _save, "debug-spyre save repro.py --note 'mean alone' < repro.py"),
}
