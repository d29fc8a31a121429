"""revert: the working files back to what they were at `open`, the patch saved first."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path

from debug_spyre.host.files import sha256_of
from debug_spyre.queue.queue_rules import check_open
from debug_spyre.session.events import ArtifactSaved, Event, TreeReverted
from debug_spyre.session.io.workspace import Folder, load_session
from debug_spyre.tree.io.revert import Reverted, finish, revert
from debug_spyre.tree.io.snapshot import printable
from debug_spyre.verbs.session_option import add_session_argument, after_change, refuse_while_running, the_session
from debug_spyre.verbs.verb import Verb, answer

SHOWN = 6


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would change; change nothing")
    parser.add_argument(
        "--head-moved", action="store_true", help="put the files back although HEAD has moved since open"
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="PATH",
        help="leave this file or folder as it is: somebody else made it since open",
    )
    add_session_argument(parser)


def _revert(args: Namespace) -> int:
    folder = the_session(args)
    session = load_session(folder)
    if not args.dry_run:
        check_open(session)  # what changed after a session was closed is not its experiment
        refuse_while_running(folder, session, why="; reverting would change the tree under it")
    checkout = Path(session.checkout)
    keep = [os.path.relpath(name, checkout) for name in args.keep]
    done = revert(checkout, session.tree, folder.path, dry_run=args.dry_run, head_moved=args.head_moved, keep=keep)
    if not done.dry:
        _record(folder, done)
        after_change(folder)
    answer(_says(done), _json(folder, done), as_json=args.json)
    return 0


def _record(folder: Folder, done: Reverted) -> None:
    def events(_known: tuple[Event, ...]) -> Iterable[Event]:
        if done.patch is not None:
            yield ArtifactSaved(
                path=done.patch.name,
                sha256=sha256_of(done.patch),
                size=done.patch.stat().st_size,
                note=f"what the session changed in {len(done.changes)} files; git apply puts it on again",
            )
        yield TreeReverted(
            patch=done.patch.name if done.patch else None,
            files=done.files,
            digest=done.digest,
            patched=None if done.masked else done.patched,  # a patch without the secrets leads to another tree
        )

    folder.journal.append_with(events)
    finish(folder.path)


def _says(done: Reverted) -> list[str]:
    if not done.changes and done.left:
        return [
            "nothing to revert: no file that the session changed differs from what it was at open",
            *_says_left(done),
        ]
    if not done.changes:
        return [f"nothing to revert: the tree is as it was at open (digest {done.digest})"]
    what = "would be put back" if done.dry else "put back"
    count = len(done.changes)
    lines = [f"{count} file{'s' if count > 1 else ''} {what} to what they were at open:"]
    for change, name in list(zip(done.changes, done.files, strict=True))[:SHOWN]:
        undo = {"created": "removed", "deleted": "restored", "edited": "restored"}[change.what]
        lines.append(f"  {change.what}: {name[-60:]} ({undo})")
    if len(done.changes) > SHOWN:
        lines.append(f"  and {len(done.changes) - SHOWN} more")
    lines += _says_left(done)
    for name in done.masked:
        lines.append(
            f"  {printable(name)[-60:]} holds a secret, which the patch does not: take it out before you validate"
        )
    if done.dry:
        return [*lines, "edits of anybody since open count; the patch is saved first", "  next: debug-spyre revert"]
    return [*lines, f"patch: {done.patch}", f"tree {done.patched} -> {done.digest}"]


def _says_left(done: Reverted) -> list[str]:
    """What somebody else made is named, with the reason why it stays."""
    lines = [f"  left as it is: {printable(change.name)[-60:]} ({why})" for change, why in done.left[:SHOWN]]
    return lines + ([f"  and {len(done.left) - SHOWN} more left as they are"] if len(done.left) > SHOWN else [])


def _json(folder: Folder, done: Reverted) -> dict[str, object]:
    return {
        "session": folder.stem,
        "dry_run": done.dry,
        "files": [{"path": name, "was": c.what} for c, name in zip(done.changes, done.files, strict=True)],
        "left": [{"path": printable(c.name), "was": c.what, "why": why} for c, why in done.left],
        "masked": [printable(name) for name in done.masked],
        "patch": str(done.patch) if done.patch else None,
        "patched_digest": done.patched,
        "digest": done.digest,
    }


VERBS = {"revert": Verb(_arguments, _revert, "debug-spyre revert --dry-run")}
