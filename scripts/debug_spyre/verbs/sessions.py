"""open, similar: a session begins, and is compared with past ones."""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from debug_spyre.page.io import page
from debug_spyre.page.overview import clip
from debug_spyre.session.io import workspace
from debug_spyre.session.state import Similar, find_similar
from debug_spyre.triage.io import opening
from debug_spyre.triage.io.triages import choose_cluster, find_triage
from debug_spyre.verbs.session_option import add_session_argument, member_of, the_session
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import BadInputError, UsageError
from debug_spyre.vocabulary.evidence import Cluster
from debug_spyre.vocabulary.safe_text import count


def _open_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("slug", nargs="?", help="the symptom in a few words (default: what the cluster proposes)")
    parser.add_argument("--cluster", metavar="K", help="a cluster of the last triage: c2, 2 or its slug")
    parser.add_argument("--triage", metavar="NAME", help="use this triage instead of the last one")
    parser.add_argument("--from", dest="logs", nargs="+", metavar="FILE", help="existing logs (CI, JUnit)")
    parser.add_argument("--rules", metavar="FILE", help="with --from: the rules file that triage was given")
    parser.add_argument("--members", nargs="+", metavar="NODEID", help="failing node ids, if there is no triage")
    parser.add_argument("--matrix", nargs="+", metavar="ARG", help="pytest arguments of the wider selection")
    parser.add_argument("--falls-back", metavar="OP", help="the members fail because this op falls back to the CPU")
    parser.add_argument(
        "--slower", type=float, metavar="S", help="the members fail because they take longer than S seconds"
    )
    parser.add_argument(
        "--probe", metavar="NODEID", help="the member to use as quick check (default: what the cluster proposes)"
    )
    parser.add_argument("--symptom", metavar="TEXT", help="the symptom in one line (default: taken from the evidence)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _open(args: Namespace) -> int:
    checkout = workspace.find_checkout()
    logs = workspace.logs_folder(checkout)
    plan = _plan(args, logs, checkout)
    live = workspace.open_sessions(logs)
    folder = opening.open_session(checkout, logs, plan)
    html = page.render(folder)
    alike = find_similar(plan.cluster, workspace.past_sessions(logs), except_stem=folder.stem)
    if live:
        warn(
            f"{count(len(live), 'other session')} of this checkout {'is' if len(live) == 1 else 'are'} open: {', '.join(f.stem for f in live[:3])}"
        )
    lines = [
        f"log: {html}",
        *_over_ssh(html),
        f"session {folder.stem}: {count(len(plan.members), 'member')}, probe {plan.probe}",
    ]
    lines += [_say_similar(s) for s in alike[:3]]
    named = f"--session {folder.stem} " if live else ""
    lines.append(
        f"next: debug-spyre run {named}--as baseline {shlex.quote(plan.probe)}"
        if plan.probe
        else "next: debug-spyre cluster probe NODEID"
    )
    data = {"session": folder.stem, "log": str(html), "folder": str(folder.path), "similar": [s.stem for s in alike]}
    answer(lines, data, as_json=args.json)
    return 0


def _plan(args: Namespace, logs: Path, checkout: Path) -> opening.Opening:
    said = [o for o, v in (("--members", args.members), ("--from", args.logs), ("--triage", args.triage)) if v]
    if len(said) > 1 or (args.members and args.cluster):
        one = " and ".join(said) if len(said) > 1 else "--members and --cluster"
        raise UsageError(f"{one} each say which tests: one of them", next="debug-spyre open SLUG --members NODEID ...")
    if args.rules and not args.logs:
        raise UsageError("--rules says how logs are read", next=f"debug-spyre open --from FILE --rules {args.rules}")
    if args.members:
        return _plan_from_members(args)
    if args.logs:
        return _plan_from_logs(args, checkout)
    triage = find_triage(logs, args.triage)
    wanted = args.cluster or args.slug or "c1"
    cluster = choose_cluster(triage, wanted) if args.cluster or not args.slug else _by_slug(triage.clusters, args.slug)
    matrix = args.matrix or triage.data.get("pytest_args")
    return _plan_from_cluster(
        args,
        cluster,
        matrix=None if matrix is None else tuple(matrix),
        source=str(triage.folder.path),
        runs_from=triage.folder,
    )


def _by_slug(clusters: list[dict[str, Any]], slug: str, source: str = "") -> dict[str, Any]:
    for cluster in clusters:
        if cluster["slug"] == slug:
            return cluster
    if len(clusters) == 1:
        return clusters[0]
    listed = tuple(f"  {c['id']}  {c['slug']}  ({len(c['nodeids'])} tests)" for c in clusters)
    raise UsageError(
        "which cluster? one session works on one cluster",
        details=listed,
        next=f"debug-spyre open {slug} --cluster c1 {source}".rstrip(),
    )


def _plan_from_cluster(args: Namespace, cluster: dict[str, Any], **more: Any) -> opening.Opening:
    ids = [n for n in cluster["nodeids"] if n]
    if not ids:
        raise UsageError(
            f"cluster {cluster['id']} has no node ids: its error is of the session, not of a test",
            next="debug-spyre doctor",
        )
    return opening.Opening(
        slug=workspace.check_slug(args.slug or workspace.slugify(cluster["slug"])),
        symptom=args.symptom or clip(cluster.get("why") or cluster["signature"]),
        members=tuple(member_of(args, n) for n in ids),
        probe=args.probe or cluster.get("probe") or ids[0],
        cluster={k: v for k, v in cluster.items() if k != "nodeids"},
        **more,
    )


def _plan_from_members(args: Namespace) -> opening.Opening:
    if not args.slug:
        raise UsageError("a session needs a slug", next="debug-spyre open SLUG --members NODEID ...")
    members = tuple(member_of(args, n) for n in dict.fromkeys(args.members))
    return opening.Opening(
        slug=workspace.check_slug(args.slug),
        symptom=args.symptom or f"{count(len(members), 'test')}: {members[0].says()}",
        members=members,
        probe=args.probe or min((m.nodeid for m in members), key=len),
        matrix=tuple(args.matrix) if args.matrix else None,
    )


def _plan_from_logs(args: Namespace, checkout: Path) -> opening.Opening:
    from debug_spyre.triage.io.logs_reader import all_rules, triage_logs

    paths, rules = tuple(Path(p) for p in args.logs), all_rules(Path(args.rules) if args.rules else None)
    pipe = next((p for p in paths if str(p) == "-" or (p.exists() and not (p.is_file() or p.is_dir()))), None)
    if pipe is not None:  # a session keeps the log that it was opened on
        raise BadInputError(
            f"{pipe} is a pipe, which is read once", next="debug-spyre open --from FILE, with its text in a file"
        )
    clusters = [_cluster_json(c) for c in triage_logs(paths, checkout=checkout, rules=rules).clusters]
    source = shlex.join(["--from", *args.logs, *(["--rules", args.rules] if args.rules else [])])
    triage = f"debug-spyre triage {source}"
    if not clusters:
        raise BadInputError("these logs show no failure", next=triage)
    wanted = args.cluster or ("c1" if len(clusters) == 1 else None)
    cluster = (
        next((c for c in clusters if wanted in (c["id"], c["id"].removeprefix("c"), c["slug"])), None)
        if wanted
        else _by_slug(clusters, args.slug or "SLUG", source)
    )
    if cluster is None:
        raise UsageError(f"there is no cluster {wanted!r}", next=triage)
    return _plan_from_cluster(
        args,
        cluster,
        matrix=tuple(args.matrix) if args.matrix else None,
        source=", ".join(map(str, paths)),
        logs_read=paths,
    )


def _cluster_json(cluster: Cluster) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(cluster), "nodeids": list(cluster.nodeids)}


def _over_ssh(html: Path) -> list[str]:
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if len(connection) < 3:
        return []
    serve = shlex.join(["python3", "-m", "http.server", "8765", "--bind", "127.0.0.1", "--directory", str(html.parent)])
    tunnel = shlex.join(["ssh", "-L", "8765:127.0.0.1:8765", connection[2], serve])
    return [f"to see it: {tunnel}, then http://127.0.0.1:8765/{html.name}"]


def _say_similar(found: Similar) -> str:
    lesson = found.cause or found.fixed_by or "no retrospective"
    return clip(f"similar: {found.stem} ({found.status}; {found.why}): {lesson}")


def _similar(args: Namespace) -> int:
    folder = the_session(args)
    session = workspace.load_session(folder)
    found = find_similar(session.cluster, workspace.past_sessions(folder.path.parent), except_stem=folder.stem)
    lines = []
    for past in found:
        lines.append(_say_similar(past))
        lines += [clip(f"  fixed by: {past.fixed_by}")] if past.fixed_by else []
        lines += [clip(f"  wasted effort: {past.wasted}")] if past.wasted else []
    data = {"similar": [{name: getattr(s, name) for name in s.__slots__} for s in found]}
    answer(lines or ["no past session of this checkout looks like this one"], data, as_json=args.json)
    return 0 if found else 1


VERBS = {
    "open": Verb(_open_arguments, _open, "debug-spyre open --cluster c1"),
    "similar": Verb(add_session_argument, _similar, "debug-spyre similar"),
}
