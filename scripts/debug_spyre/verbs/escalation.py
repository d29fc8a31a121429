"""escalate: the bundle that the torch-spyre team can run, after a preview; refused while something needed is missing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from itertools import chain, count

from debug_spyre.escalation.io import bundle, handover
from debug_spyre.escalation.readiness import Lack, lacks
from debug_spyre.session.events import ReportMade
from debug_spyre.session.io import workspace
from debug_spyre.session.io.workspace import Folder, all_evidence
from debug_spyre.verbs.session_option import add_session_argument, after_change, the_session
from debug_spyre.verbs.verb import Verb, answer
from debug_spyre.vocabulary.errors import RefusedError, UsageError

MEGABYTE = 1024 * 1024
SHOWN_FILES = 8


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--preview", action="store_true", help="show what would be in it and what is hidden; write nothing"
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="folder and zip inside the session's folder (default: escalation, escalation-2, ...)",
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the issue (default: what was measured)")
    parser.add_argument(
        "--cap", type=float, default=bundle.DEFAULT_CAP / MEGABYTE, metavar="MB", help="size cap (default %(default)g)"
    )
    parser.add_argument(
        "--hide", action="append", default=[], metavar="TEXT", help="another name to hide (a host, a project)"
    )
    add_session_argument(parser)


def _escalate(args: Namespace) -> int:
    folder = the_session(args)
    name = args.name or _free_name(folder)
    target = folder.path / workspace.check_slug(name, command="debug-spyre escalate --name")
    if args.cap <= 0:
        raise UsageError(f"a cap of {args.cap:g} MB holds nothing", next="debug-spyre escalate --cap 20")
    session = workspace.load_session(folder)
    evidence = all_evidence(folder, session)
    missing = lacks(session, evidence)
    if missing and not args.preview:
        raise _refusal(missing)
    if not args.preview:
        after_change(folder)  # the page goes along as it stands now
    issue, entries = handover.gather(folder, session, evidence, title=args.title)
    private = bundle.private_of_this_host()
    private = replace(private, hosts=(*private.hosts, *args.hide))
    plan = bundle.plan_bundle(entries, private=private, cap=int(args.cap * MEGABYTE))
    lines = [f"title: {plan.redactor.redact(issue.title)}"]
    lines += [f"missing: {lack.text}\n  next: {lack.next}" for lack in missing]
    lines += _preview(plan)
    data = {
        "title": plan.redactor.redact(issue.title),
        "search": issue.search,
        "files": [{"name": name, "size": len(content)} for name, content in plan.files],
        "omitted": list(plan.omitted),
        "hidden": dict(plan.redactor.counts),
        "missing": [lack.code for lack in missing],
    }
    if args.preview:
        answer([*lines, "nothing was written"], {**data, "bundle": None}, as_json=args.json)
        return 1 if missing else 0
    written, archive = bundle.write_bundle(plan, target)
    _record(folder, lines, str(written.relative_to(folder.path)), archive.name)
    html = after_change(folder)
    verified = (
        issue.verification["stamp"] if issue.verification else "UNVERIFIED (no repro was proved: debug-spyre repro)"
    )
    lines += [f"repro: {verified}", f"look for duplicates: {issue.search}", f"bundle: {written}", f"zip: {archive}"]
    lines += ["next: debug-spyre close blocked --next 'filed as ...'", f"log: {html}"]
    answer(lines, {**data, "bundle": str(written), "zip": str(archive), "log": str(html)}, as_json=args.json)
    return 0


def _free_name(folder: Folder) -> str:
    """A bundle is never overwritten: a newer one lies beside it."""
    names = chain(["escalation"], (f"escalation-{number}" for number in count(2)))
    return next(name for name in names if not any((folder.path / f"{name}{end}").exists() for end in bundle.ENDINGS))


def _refusal(missing: tuple[Lack, ...]) -> RefusedError:
    details = [f"  {lack.code}: {lack.text}\n    next: {lack.next}" for lack in missing]
    return RefusedError(
        f"an escalation needs {len(missing)} more {'thing' if len(missing) == 1 else 'things'}",
        details=tuple(details),
        next=missing[0].next,
    )


def _preview(plan: bundle.Plan) -> list[str]:
    size = sum(len(content) for _, content in plan.files)
    hidden = ", ".join(f"{count} x {kind}" for kind, count in sorted(plan.redactor.counts.items())) or "nothing"
    lines = [f"{len(plan.files)} files, {size / 1024:.0f} kB; hidden: {hidden}"]
    lines += [f"  {len(content):>9d}  {name}" for name, content in plan.files[:SHOWN_FILES]]
    if len(plan.files) > SHOWN_FILES:
        lines.append(f"  and {len(plan.files) - SHOWN_FILES} more: --json lists all")
    tensors = [name for name, _ in plan.files if name.endswith(bundle.BINARY)]
    if tensors:
        lines.append(f"tensors are taken as they are: {', '.join(tensors)}")
    lines += [f"left out: {text}" for text in plan.omitted]
    unhidden = plan.redactor.unhidden()
    if unhidden:
        lines.append(f"these names stay readable in the bundle: {', '.join(unhidden)}")
    return lines


def _record(folder: Folder, lines: list[str], written: str, archive: str) -> None:
    event = ReportMade(
        verb="escalate", lines=tuple(lines[:10]), report=f"{written}/issue.md", data={"bundle": written, "zip": archive}
    )
    folder.journal.append(event)


VERBS = {"escalate": Verb(_arguments, _escalate, "debug-spyre escalate --preview")}
