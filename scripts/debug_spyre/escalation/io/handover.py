"""Gathering a session for the torch-spyre team: which files go into the bundle, and the issue's text over them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from debug_spyre.escalation.io.bundle import Entry, tail_of
from debug_spyre.escalation.issue import Finding, Issue, OpForms, build_issue, finding_of
from debug_spyre.escalation.readiness import failing_run, revision
from debug_spyre.examine.dossier import Cause, dossier_from
from debug_spyre.host.templates import templates_folder
from debug_spyre.session.events import ReportMade
from debug_spyre.session.io import seals
from debug_spyre.session.io.workspace import Folder
from debug_spyre.session.state import Session
from debug_spyre.surface.io.asking import ask_registry
from debug_spyre.surface.io.package_files import cache_folders, find_package, load_surface
from debug_spyre.surface.names import parse
from debug_spyre.surface.op_verdict import OpAnswer, answer_on, said
from debug_spyre.surface.verdicts import Index
from debug_spyre.vocabulary.errors import DebugSpyreError
from debug_spyre.vocabulary.evidence import Evidence, failure_to_json

MOST_OPS, MOST_PLACES, MOST_SHOWN = 12, 4, 6
DOSSIER = "dossier.json"
SCRIPTS = ("repro.py", "repro_vllm.py", "repro_test.py")


def gather(
    folder: Folder, session: Session, evidence: Mapping[str, Evidence], *, title: str | None = None
) -> tuple[Issue, list[Entry]]:
    """The issue and the entries of the bundle, the issue's own text included. `title`: instead of what was measured."""
    report = last_report(session, "repro")
    repro = _repro(folder, report)
    finding = finding_of(session, _causes(folder))
    entries = _entries(folder, session, evidence, report)
    op_verdicts, op_source = _op_verdicts(session, evidence, finding)
    issue = build_issue(
        session,
        evidence,
        title=title,
        finding=finding,
        shown=_shown(folder, session, report),
        repro=repro,
        verification=_verification(report),
        op_verdicts=op_verdicts,
        op_source=op_source,
        files=tuple((e.name, _note(e.name)) for e in entries),
        omitted=(),
    )
    told = seals.trouble(folder.path)
    changed = [Entry("evidence-changed.txt", text=f"{told}\n", must=True)] if told else []
    return issue, [Entry("issue.md", text=write_issue(issue), must=True), *changed, *entries]


def write_issue(issue: Issue) -> str:
    """The issue's Markdown."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(templates_folder())),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  Markdown for people, not HTML
        keep_trailing_newline=True,
    )
    return environment.get_template("issue.md.j2").render(issue=issue)


def last_report(session: Session, verb: str) -> ReportMade | None:
    """The newest report of that verb."""
    return next((r for r in reversed(session.reports) if r.verb == verb), None)


def _repro(folder: Folder, report: ReportMade | None) -> tuple[str, str] | None:
    names = [str(report.data["script"])] if report and report.data.get("script") else []
    for name in [*names, *SCRIPTS]:
        path = folder.path / name
        if path.is_file():
            return path.name, path.read_text(encoding="utf-8", errors="replace")
    return None


def _verification(report: ReportMade | None) -> Mapping[str, Any] | None:
    if report is None:
        return None
    return {"stamp": report.data.get("stamp", "UNVERIFIED"), "text": " ".join(report.lines)}


def _causes(folder: Folder) -> tuple[Cause, ...]:
    """The causes of the session's dossier; none where it was not investigated or the file can't be read."""
    try:
        return dossier_from(json.loads((folder.path / DOSSIER).read_text(encoding="utf-8"))).causes
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def _shown(folder: Folder, session: Session, report: ReportMade | None) -> tuple[str, ...]:
    """What the proved script printed in the first process that proved it: got and wanted."""
    try:
        proofs = json.loads((folder.path / str(report.report)).read_text(encoding="utf-8"))["proofs"] if report else []
        runs = next(p["runs"] for p in proofs if p["script"] == (report.data.get("script") if report else None))
        output = folder.path / session.runs[runs[0]].output
        lines = [line for line in output.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    except (OSError, ValueError, KeyError, TypeError, IndexError, StopIteration):
        return ()
    return tuple(line[:400] for line in lines[-MOST_SHOWN:])


def _op_verdicts(
    session: Session, evidence: Mapping[str, Evidence], finding: Finding | None
) -> tuple[tuple[OpForms, ...], str]:
    """How the ops that the session points at are registered: the finding's, else the suspects of shadow and every op that fell back."""
    if finding and finding.op:
        wanted = [finding.op, *finding.fallbacks]
    else:
        wanted = [str(r.data["op"]) for r in session.reports if r.data.get("op")]
        wanted += [f.op for e in evidence.values() for f in e.fallbacks]
    if not wanted:
        return (), ""
    checkout = Path(session.checkout)
    try:
        found = find_package(checkout, None)
        caches = cache_folders(None)
        surface = load_surface(found, caches=caches)
    except DebugSpyreError as error:
        return (), f"the installed torch-spyre could not be read: {error.what}"
    asked = ask_registry(found, surface, checkout, caches=caches)
    index = Index(surface, asked.registry.names() if asked.registry else ())
    names = [index.home(name, said=said) for name, said in filter(None, map(parse, dict.fromkeys(wanted)))]
    answers = [answer_on(index, name, asked.registry) for name in dict.fromkeys(names)]
    return tuple(_forms(answer) for answer in answers[:MOST_OPS]), asked.how


def _forms(answer: OpAnswer) -> OpForms:
    places = dict.fromkeys(f"{site.place} ({site.form.value})" for site in answer.sites)
    eager, compiled = (said(verdict) for verdict in (answer.summary.eager, answer.summary.compiled))
    return OpForms(str(answer.name), eager, compiled, tuple(places)[:MOST_PLACES])


def _entries(
    folder: Folder, session: Session, evidence: Mapping[str, Evidence], report: ReportMade | None
) -> list[Entry]:
    found = failing_run(session, evidence)
    entries = [
        Entry("environment.json", text=_environment(session), must=True),
        Entry("hypotheses.md", text=_hypotheses(session), must=True),
    ]
    if report and report.report and (folder.path / report.report).is_file():
        entries.append(Entry("verification.json", path=folder.path / report.report, must=True))
    if found:
        run, failure = found
        entries.append(Entry("failure.json", text=json.dumps(failure_to_json(failure), indent=1), must=True))
        entries.append(Entry(f"logs/{Path(run.output).name}", text=tail_of(folder.path / run.output)))
    entries += _scripts(folder, session)
    entries += _machine_files(folder, session)
    if folder.html.is_file():
        entries.append(Entry("log.html", path=folder.html))
    if folder.markdown.is_file():
        entries.append(Entry("log.md", path=folder.markdown))
    return _once(entries)


def _scripts(folder: Folder, session: Session) -> list[Entry]:
    kept = {a.path for a in session.artifacts} | {name for name in SCRIPTS if (folder.path / name).is_file()}
    return [
        Entry(name, path=folder.path / name, must=name in SCRIPTS)
        for name in sorted(kept)
        if (folder.path / name).is_file()
    ]


def _machine_files(folder: Folder, session: Session) -> list[Entry]:
    entries = []
    for run in session.runs.values():
        base = folder.path / "runs" / run.id
        for pattern in ("comparisons.json", "ffdc/*.json", "shadow.json", "sweep.json", "ladder.json"):
            entries += [Entry(f"reports/{run.id}-{p.name}", path=p) for p in sorted(base.glob(pattern))]
    for name in ("cpu-control.txt", "verbose.log"):
        path = folder.path / name
        if path.is_file():
            entries.append(Entry(f"logs/{name}", text=tail_of(path)))
    return entries


def _once(entries: list[Entry]) -> list[Entry]:
    return list({e.name: e for e in entries}.values())


def _environment(session: Session) -> str:
    seen = next((r.provenance for r in reversed(session.runs.values()) if r.provenance), {})
    data = {
        "torch_spyre_revision": revision(session),
        "provenance": seen,
        "members": [{"nodeid": m.nodeid, "predicate": m.says()} for m in session.members],
        "matrix": list(session.matrix or ()),
    }
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _hypotheses(session: Session) -> str:
    lines = ["# Hypotheses", ""]
    for row in session.hypotheses:
        lines.append(f"- #{row.number} {row.status.value}: {row.text}. {row.outcome or ''}".rstrip())
        lines += [f"    {line}" for line in row.excerpt]
    for note in session.experiments:
        lines.append(f"- by hand: {note.text}. {note.conclusion or ''}".rstrip())
    return "\n".join(lines) + "\n"


def _note(name: str) -> str:
    notes = {
        "environment.json": "revisions, versions and variables that the runs saw",
        "hypotheses.md": "what was tried, with the verdicts",
        "failure.json": "the failure's numbers and frames",
        "verification.json": "how the repro was proved",
        "log.html": "the whole debug log",
        "log.md": "the same as text",
    }
    if name in SCRIPTS:
        return "the repro"
    if name.endswith("_control.py"):
        return "the same script on the CPU"
    if name.endswith("_cpu.py"):
        return "the failing test on the CPU; needs the plugin's checkout"
    if name.endswith("_inputs.pt"):
        return "the saved inputs of the repro"
    if name.startswith("logs/"):
        return "output of a run, with what was cut said at its head"
    if name.startswith("reports/"):
        return "what our tools measured"
    return notes.get(name, "kept by the session")
