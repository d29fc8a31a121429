"""cluster: which tests the session is about, re-split while working."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from debug_spyre.page.io import page
from debug_spyre.queue.queue_rules import check_open
from debug_spyre.queue.session_warnings import half_moved, in_both
from debug_spyre.runs.io.pytest_command import check_node_ids
from debug_spyre.session.events import Event, MemberAdded, MemberRemoved, ProbeChosen
from debug_spyre.session.io import workspace
from debug_spyre.session.io.workspace import Folder, all_evidence
from debug_spyre.session.replay import member_to
from debug_spyre.session.state import Member, Session
from debug_spyre.triage.io import opening
from debug_spyre.verbs.session_option import add_session_argument, after_change, member_of, the_session
from debug_spyre.verbs.verb import Verb, answer
from debug_spyre.vocabulary.errors import RefusedError, UsageError
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import FULL_MATRIX


def _arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|add|move|drop|probe")
    listing = actions.add_parser("list", help="list the members with their last outcome")
    listing.set_defaults(action=_list)
    add = actions.add_parser("add", help="add node ids that show the same failure")
    add.add_argument("nodeids", nargs="+", metavar="NODEID")
    add.add_argument("--reason", required=True)
    add.add_argument("--falls-back", metavar="OP")
    add.add_argument("--slower", type=float, metavar="S")
    add.set_defaults(action=_add)
    move = actions.add_parser("move", help="move members into a linked session of their own")
    move.add_argument("nodeids", nargs="+", metavar="NODEID")
    move.add_argument("--to", required=True, metavar="SLUG")
    move.add_argument("--reason", required=True)
    move.set_defaults(action=_move)
    drop = actions.add_parser("drop", help="remove members that do not belong here")
    drop.add_argument("nodeids", nargs="+", metavar="NODEID")
    drop.add_argument("--reason", required=True)
    drop.set_defaults(action=_drop)
    probe = actions.add_parser("probe", help="choose the member used as quick check")
    probe.add_argument("nodeid", metavar="NODEID")
    probe.add_argument("--reason", default="chosen by hand")
    probe.set_defaults(action=_probe)
    for sub in (listing, add, move, drop, probe):
        add_session_argument(sub)


def _cluster(args: Namespace) -> int:
    folder = the_session(args)
    lines, data = args.action(args, folder)
    answer(lines, {"session": folder.stem, **data}, as_json=args.json)
    return 0


def _change(folder: Folder, make: Callable[[Session], Iterable[Event]]) -> None:
    """Record events of an open session: a table of a resolved one speaks of its members."""

    def events(session: Session) -> Iterable[Event]:
        check_open(session)
        return make(session)

    folder.journal.record(events)


def _list(_args: Namespace, folder: Folder) -> tuple[list[str], dict[str, Any]]:
    session = folder.journal.now()
    outcomes = _last_outcomes(session, all_evidence(folder, session))
    rows = [
        {
            "nodeid": m.nodeid,
            "predicate": m.says(),
            "probe": m.nodeid == session.probe,
            "last": outcomes.get(m.nodeid, "not run"),
        }
        for m in session.members
    ]
    lines = [f"{'*' if r['probe'] else ' '} {r['last']:8s} {r['nodeid']}  ({r['predicate']})" for r in rows]
    lines += [
        f"  left: {d.nodeid} ({d.reason}{f'; now in {d.moved_to}' if d.moved_to else ''})" for d in session.departed
    ]
    return lines or ["the cluster has no members"], {"members": rows}


def _last_outcomes(session: Session, evidence: dict[str, Evidence]) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in session.runs.values():
        if run.id in evidence:
            found |= {t.nodeid: f"{t.outcome.value} ({run.id})" for t in evidence[run.id].tests}
    return found


def _add(args: Namespace, folder: Folder) -> tuple[list[str], dict[str, Any]]:
    session = folder.journal.now()
    check_open(session)
    check_node_ids(Path(session.checkout), args.nodeids, verb="run")
    members = [member_of(args, n) for n in dict.fromkeys(args.nodeids)]
    reason = args.reason
    _change(
        folder,
        lambda _: [MemberAdded(nodeid=m.nodeid, predicate=member_to(m)["predicate"], reason=reason) for m in members],
    )
    return [f"added {len(members)}; log: {after_change(folder)}"], {"added": [m.nodeid for m in members]}


def _known(session: Session, nodeids: list[str]) -> tuple[Member, ...]:
    members = {m.nodeid: m for m in session.members}
    strange = [n for n in nodeids if n not in members]
    if strange:
        raise UsageError(f"{strange[0]} is no member of this cluster", next="debug-spyre cluster list")
    return tuple(members[n] for n in dict.fromkeys(nodeids))


def _move(args: Namespace, folder: Folder) -> tuple[list[str], dict[str, Any]]:
    session = folder.journal.now()
    check_open(session)
    moved = _known(session, args.nodeids)
    other = _half_made(folder, session, args)
    if other is not None:
        opening.depart(folder, other.stem, [m.nodeid for m in moved], reason=args.reason)
    elif len(moved) == len(session.members):
        raise RefusedError(
            "all members would leave: this cluster would be empty", next="debug-spyre cluster drop NODEID --reason TEXT"
        )
    else:
        plan = _plan(session, folder, moved, args)
        other = opening.carve_out(workspace.find_checkout(), folder, plan, reason=args.reason)
    html, here = page.render(other), after_change(folder)
    lines = [f"{len(moved)} moved to {other.stem}, which waits for its turn", f"its log: {html}", f"this log: {here}"]
    lines.append(f"next: debug-spyre status --session {folder.stem}")
    return lines, {"moved": [m.nodeid for m in moved], "to": other.stem, "log": str(html)}


def _half_made(folder: Folder, session: Session, args: Namespace) -> Folder | None:
    """The session that an earlier call carved out for just these members, before it was killed."""
    for other, carved in opening.begun(folder, session):
        both = in_both(session, carved)
        if carved.slug == args.to and set(both) == set(args.nodeids):
            return other
        concern = half_moved(session, carved)
        if concern is not None and set(both) & set(args.nodeids):
            raise RefusedError(concern.text, next=concern.next)
    return None


def _plan(session: Session, folder: Folder, moved: tuple[Member, ...], args: Namespace) -> opening.Opening:
    return opening.Opening(
        slug=workspace.check_slug(args.to),
        symptom=f"carved out of {session.slug}: {args.reason}",
        members=moved,
        probe=min((m.nodeid for m in moved), key=len),
        matrix=session.matrix,
        source=session.source,
        runs_from=folder,
        runs_named=FULL_MATRIX,
        tree=session.tree,
        linked_from=session.stem,
    )


def _drop(args: Namespace, folder: Folder) -> tuple[list[str], dict[str, Any]]:
    def gone(session: Session) -> list[Event]:
        dropped = _known(session, args.nodeids)
        if len(dropped) == len(session.members):
            raise RefusedError("the cluster would be empty", next="debug-spyre close blocked --next TEXT")
        return [MemberRemoved(nodeid=m.nodeid, reason=args.reason) for m in dropped]

    _change(folder, gone)
    dropped = list(dict.fromkeys(args.nodeids))
    return [f"dropped {len(dropped)}; log: {after_change(folder)}"], {"dropped": dropped}


def _probe(args: Namespace, folder: Folder) -> tuple[list[str], dict[str, Any]]:
    def chosen(session: Session) -> list[Event]:
        _known(session, [args.nodeid])
        return [ProbeChosen(nodeid=args.nodeid, reason=args.reason)]

    _change(folder, chosen)
    html = after_change(folder)
    return [
        f"probe: {args.nodeid}",
        f"next: debug-spyre run --as baseline {shlex.quote(args.nodeid)}",
        f"log: {html}",
    ], {"probe": args.nodeid}


VERBS = {
    "cluster": Verb(
        _arguments,
        _cluster,
        "debug-spyre cluster move 'tests/test_a.py::test_b[1]' --to b-nan --reason 'NaN, not a scale'",
    )
}
