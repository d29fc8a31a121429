"""The issue's text in the fields of torch-spyre's bug form (read 2026-06-24: problem, expected, repro, userenv, additional, logs)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.escalation.readiness import failing_run, revision
from debug_spyre.examine.dossier import Cause, own_fallbacks
from debug_spyre.session.state import Session
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Stage
from debug_spyre.vocabulary.words import HypothesisStatus

PROVED, LOCATED = "cause", "located"
_VERB = re.compile(r" (?:is|adds|falls|ends|raises)\b")


@dataclass(frozen=True, slots=True)
class Finding:
    """`sentence` is the measured one; `facts` are label and text, in the order in which a reader needs them."""

    sentence: str
    op: str | None
    facts: tuple[tuple[str, str], ...] = ()
    calls: tuple[tuple[str, str], ...] = ()  # the last right and the first wrong call, as `sweep` takes them
    fallbacks: tuple[str, ...] = ()  # the names under which the op itself falls back to the CPU


def finding_of(session: Session, causes: Sequence[Cause]) -> Finding | None:
    """The first proved cause of the session's dossier, else its first located one, else the newest sweep that found a fault.

    None where nothing was found: a sweep without a condition says nothing that could stand in a title.
    """
    ranked = sorted(causes, key=lambda c: c.claim != PROVED)
    if ranked:
        return _of_cause(ranked[0])
    for report in reversed(session.reports):
        if report.verb == "sweep" and report.lines and report.data.get("condition"):
            facts = [
                ("The sweep says", line)
                for line in report.lines[1:]
                if not line.startswith(("verdict on", "keep it", "output:"))
            ]
            return Finding(report.lines[0], str(report.data.get("op") or "") or None, tuple(facts[:6]))
    return None


def _of_cause(cause: Cause) -> Finding:
    condition, explains = cause.condition, cause.explains
    facts = []
    if cause.claim != PROVED:
        facts.append(("Claim", "located: no proof with a passing control on the CPU stands yet"))
    if cause.wrong_values:
        facts.append(("Wrong values" if cause.manner == "wrong-values" else "It says", cause.wrong_values))
    if condition is not None:
        tested = "both sides of each border were measured" if condition.exact else "not exact: see the borders"
        facts.append(("Where it begins", f"{condition.text} ({tested})"))
    if explains:
        facts.append(("Explains", explained(explains)))
    if cause.site:
        facts.append(("First seen at", cause.site))
    fallen = own_fallbacks(cause)
    if fallen:
        facts.append(("Falls back to the CPU", ", ".join(fallen)))
    if cause.needs_before:
        facts.append(("Only after", "; ".join(f"`{call}`" for call in cause.needs_before[:3])))
    good = [way["text"] for way in cause.ways_round if way.get("measured") == "right"]
    bad = [way["text"] for way in cause.ways_round if way.get("measured") == "wrong"]
    if good:
        facts.append(("Right on the same call", "; ".join(good[:5])))
    if bad:
        facts.append(("Wrong as well", "; ".join(bad[:5])))
    facts += [("Known limitation", str(text)) for text in ((cause.known or {}).get("limits") or ())[:2]]
    borders = condition.borders[:2] if condition else ()
    calls = tuple((b["right"], b["wrong"]) for b in borders)
    return Finding(cause.sentence, cause.op, tuple(facts), calls, fallen)


def explained(explains: Mapping[str, Any]) -> str:
    """What the condition explains, in numbers."""
    return (
        f"{explains['tests']} of {explains['of']} failing tests; of {explains['calls']:,} other calls of the op "
        f"{explains['predicted_wrong']:,} were predicted wrong and {explains['were_wrong']:,} were"
    )


def search_words(finding: Finding) -> str:
    """Words that find a duplicate: the op as people write it, and what it does wrong without the numbers."""
    op = finding.op or finding.sentence.split(" ", 1)[0]
    short = ".".join(op.split(".")[:2])
    found = _VERB.search(finding.sentence)
    rest = finding.sentence[found.start() :] if found else ""
    words = [
        w
        for w in re.findall(r"[A-Za-z][A-Za-z-]+", rest)
        if w not in {"is", "the", "of", "when", "as", "it", "was", "and", "no", "than", "argument"}
    ]
    return " ".join(dict.fromkeys([short, *words[:8]]))


LONGEST_TITLE = 110
OPEN_BUT_TOLD = 12


@dataclass(frozen=True, slots=True)
class OpForms:
    """How one op is registered: a sentence for each mode, and where a registration stands."""

    op: str
    eager: str
    compiled: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Issue:
    """Values for templates/issue.md.j2."""

    title: str
    finding: Finding | None
    shown: tuple[str, ...]  # what the proved script printed
    problem: str
    numbers: tuple[str, ...]
    expected: str
    repro: str | None
    repro_name: str | None
    verification: Mapping[str, Any] | None
    nodeids: tuple[str, ...]
    more_nodeids: int
    environment: tuple[tuple[str, str], ...]
    traceback: str
    ruled_out: tuple[tuple[str, str], ...]
    confirmed: tuple[tuple[str, str], ...]
    findings: tuple[str, ...]
    op_verdicts: tuple[OpForms, ...]
    op_source: str  # how that is known
    pattern: str | None
    search: str
    files: tuple[tuple[str, str], ...]
    omitted: tuple[str, ...]


def title_of(session: Session, failure: Failure | None, finding: Finding | None = None) -> str:
    """The finding's own sentence; without one, what the failure shows: what differs, where, for which op."""
    if finding is not None:
        return _cut(finding.sentence)
    if failure is None:
        return _cut(f"{session.slug}: {session.symptom}")
    if failure.kind.value == "mismatch":
        share = ""
        if failure.mismatched is not None and failure.total:
            share = f" ({100 * failure.mismatched / failure.total:.0f} % of elements)"
        what = failure.pattern or f"wrong result{share}"
        return _cut(f"{session.slug}: {what}")
    name = (failure.inner_class or failure.error_class or failure.kind.value).rsplit(".", 1)[-1]
    message = (failure.message or failure.kind.value).strip().splitlines()[0]
    return _cut(f"{session.slug}: {name}: {message.rpartition(f'{name}: ')[2] or message}")


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_TITLE else flat[: LONGEST_TITLE - 1] + "…"


def search_text(failure: Failure | None) -> str:
    """Words to look for duplicates with where nothing was found: the stable part of the message."""
    if failure is None:
        return ""
    message = (failure.message or failure.pattern or "").splitlines()
    words = [w for w in (message[0] if message else "").split() if not any(c.isdigit() for c in w)]
    name = (failure.inner_class or failure.error_class or "").rsplit(".", 1)[-1]
    return " ".join(dict.fromkeys([name, *words[:10]])).strip()


def build_issue(
    session: Session,
    evidence: Mapping[str, Evidence],
    *,
    title: str | None = None,
    finding: Finding | None = None,
    shown: tuple[str, ...] = (),
    repro: tuple[str, str] | None,
    verification: Mapping[str, Any] | None,
    op_verdicts: tuple[OpForms, ...],
    op_source: str,
    files: tuple[tuple[str, str], ...],
    omitted: tuple[str, ...],
) -> Issue:
    """The issue of a session. `repro` is (name, text) of the script, if there is one."""
    found = failing_run(session, evidence)
    run, failure = found or (None, None)
    ids = [m.nodeid for m in session.members]
    summary = session.summaries[-1].text if session.summaries else session.symptom
    return Issue(
        title=_cut(title) if title else title_of(session, failure, finding),
        finding=finding,
        shown=shown,
        problem=summary,
        numbers=_first(run.digest, 3) if run else (),
        expected=_expected(failure),
        repro=repro[1] if repro else None,
        repro_name=repro[0] if repro else None,
        verification=verification,
        nodeids=tuple(ids[:OPEN_BUT_TOLD]),
        more_nodeids=max(0, len(ids) - OPEN_BUT_TOLD),
        environment=environment_rows(session),
        traceback=(failure.message or "") if failure else "",
        ruled_out=_ruled_out(session),
        confirmed=_confirmed(session, finding),
        findings=tuple(f.text + (f" ({f.reference})" if f.reference else "") for f in session.findings),
        op_verdicts=op_verdicts,
        op_source=op_source,
        pattern=failure.pattern if failure else None,
        search=search_words(finding) if finding else search_text(failure),
        files=files,
        omitted=omitted,
    )


def _first(lines: Sequence[str], count: int) -> tuple[str, ...]:
    more = len(lines) - count
    return (*lines[:count], *((f"and {more} more like these",) if more > 0 else ()))


def _expected(failure: Failure | None) -> str:
    if failure is not None and failure.kind is Kind.MISMATCH:
        return "the same result as the CPU within the test's own tolerance"
    if failure is not None and failure.stage is Stage.FALLBACK:
        return "the op runs on the card, without a fallback to the CPU"
    return "the op compiles and runs as it does on the CPU"


def _ruled_out(session: Session) -> tuple[tuple[str, str], ...]:
    """Each row that was ruled out, with its outcome and the runs that did it."""
    rows = [h for h in session.hypotheses if h.status is HypothesisStatus.RULED_OUT]
    return tuple((h.text, (h.outcome or "") + (f" ({', '.join(h.runs)})" if h.runs else "")) for h in rows)


def _confirmed(session: Session, finding: Finding | None) -> tuple[tuple[str, str], ...]:
    """Confirmed rows; none beside a finding, which says more precisely what they say."""
    rows = [h for h in session.hypotheses if h.status is HypothesisStatus.CONFIRMED]
    return () if finding else tuple((h.text, "" if h.outcome == h.text else h.outcome or "") for h in rows)


def environment_rows(session: Session) -> tuple[tuple[str, str], ...]:
    """Name and value of what the failing side ran on; unknown is said."""
    seen = next((r.provenance for r in reversed(session.runs.values()) if r.provenance), {})
    rows = [("torch-spyre revision", revision(session) or "unknown")]
    for key, value in sorted(seen.items()):
        if key == "environment" and isinstance(value, dict):
            rows += [(f"env {name}", str(item)) for name, item in sorted(value.items())]
        elif isinstance(value, dict):
            rows += [(f"{key} {name}", str(item)) for name, item in sorted(value.items()) if item is not None]
        elif isinstance(value, list):
            texts = [
                ", ".join(str(v) for v in x.values() if v is not None) if isinstance(x, dict) else str(x) for x in value
            ]
            rows += [(key, "; ".join(texts))] if texts else []
        elif value is not None:
            rows.append((key, str(value)))
    return tuple(rows)
