"""The verb that puts the skill into a checkout or the person's own folder, and takes it out again."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from debug_spyre.agent import client_settings, install
from debug_spyre.agent.bundle_files import find_bundle
from debug_spyre.verbs.verb import Verb, answer
from debug_spyre.vocabulary.errors import UsageError


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", metavar="DIR", help="a checkout (default: the one around here)")
    parser.add_argument(
        "--personal", action="store_true", help="for all checkouts of this person: the client's own folder"
    )
    for client, folder in install.OTHER_CLIENTS.items():
        parser.add_argument(f"--{client}", action="store_true", help=f"for clients that read {folder}/skills: no hooks")
    parser.add_argument(
        "--guard", action="store_true", help="hooks for the whole project, not only while the skill is in use"
    )
    parser.add_argument("--print-permissions", action="store_true", help="permission rules for a client without hooks")
    parser.add_argument("--uninstall", action="store_true", help="take the skill and its hooks out; logs stay")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _run(args: Namespace) -> int:
    start = Path(args.directory) if args.directory else Path.cwd()
    clients = [name for name in install.OTHER_CLIENTS if getattr(args, name)]
    if len(clients) + args.personal > 1 or (clients and (args.guard or args.print_permissions)):
        given = " ".join(f"--{name}" for name in (*clients, *(n for n in ("personal", "guard") if getattr(args, n))))
        raise UsageError(
            f"{given or '--print-permissions'} do not go together: one place at a time, and hooks only where the client has them",
            next=f"debug-spyre install --{clients[0] if clients else 'personal'}",
        )
    client = clients[0] if clients else None
    place = install.personal_place() if args.personal else install.project_place(start, client=client)
    if args.print_permissions:
        rules = client_settings.permissions(place.skill / "scripts/debug-spyre")
        answer(client_settings.as_text(rules), rules, as_json=args.json)
        return 0
    lines, data = _uninstall(place, args) if args.uninstall else _install(place, args)
    answer(lines, data, as_json=args.json)
    return 0


def _install(place: install.Place, args: Namespace) -> tuple[list[str], dict[str, Any]]:
    settings, text = client_settings.read_settings(place.settings)
    change = install.install(find_bundle(), place, dry_run=args.dry_run)
    if args.guard and not args.dry_run:
        client_settings.write_settings(place.settings, client_settings.with_hooks(settings, place.scripts), text)
    would = "would be " if args.dry_run else ""
    if change.kept:
        lines = [f"the skill is here already: {place.skill}"]
    else:
        lines = [f"{len(change.written)} files {would}written to {place.skill}"]
        if change.removed:
            lines.append(f"{len(change.removed)} files of an older version {would}removed")
    if change.moved_aside:
        lines.append(
            f"another skill was here: {', '.join(change.moved_aside)} {would}moved to {place.skill / install.ASIDE}; --uninstall puts it back"
        )
    if place.portable:
        lines.append(
            "this client runs no hooks of ours: nothing is refused or allowed before it runs, and no state comes back after a compaction; the lock, the gate and the log hold"
        )
    if args.guard:
        lines.append(f"hooks {would}in {place.settings}")
    lines.append(_next(place, change, args))
    return lines, _data(place, change, args)


def _next(place: install.Place, change: install.Change, args: Namespace) -> str:
    """After a dry run the install itself, unless the skill is here and nothing was asked of its hooks."""
    if args.dry_run and not (change.kept and not args.guard):
        options = [f"--{name}" for name in ("personal", "guard", *install.OTHER_CLIENTS) if getattr(args, name)]
        return (
            f"next: {shlex.join(['debug-spyre', 'install', *([args.directory] if args.directory else []), *options])}"
        )
    if place.portable:
        return (
            f"next: tell the client to use its skill debug-spyre; by hand: {place.portable}/scripts/debug-spyre doctor"
        )
    return "next: in the client type /debug-spyre and what fails; by hand: debug-spyre doctor"


def _uninstall(place: install.Place, args: Namespace) -> tuple[list[str], dict[str, Any]]:
    settings, text = client_settings.read_settings(place.settings)
    change = install.uninstall(place, dry_run=args.dry_run)
    rest = client_settings.without_hooks(settings)
    hooked = rest != settings
    if hooked and not args.dry_run:
        client_settings.write_settings(place.settings, rest, text)
    would = "would be " if args.dry_run else ""
    lines = [f"{len(change.removed)} files {would}removed from {place.skill}"]
    if not change.removed:
        lines = [f"nothing is installed in {place.skill}"]
    if change.kept:
        lines.append(f"kept, since changed by hand: {', '.join(change.kept)}")
    if change.moved_aside:
        lines.append(f"{', '.join(change.moved_aside)} {would}put back")
    if hooked:
        lines.append(f"our hooks {would}taken out of {place.settings}")
    if (place.skill / "logs").is_dir():
        lines.append(f"the logs stay: {place.skill / 'logs'}")
    return lines, _data(place, change, args)


def _data(place: install.Place, change: install.Change, args: Namespace) -> dict[str, Any]:
    return {
        "skill": str(place.skill),
        "settings": str(place.settings),
        "guard": args.guard,
        "dry_run": args.dry_run,
        "written": list(change.written),
        "removed": list(change.removed),
        "moved_aside": list(change.moved_aside),
        "kept": list(change.kept),
    }


VERBS = {"install": Verb(_add_arguments, _run, example="debug-spyre install ~/spyre-inference --guard --dry-run")}
