"""What an issue is about: the sentence that was measured, where the fault begins, and what goes round it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.examine.dossier import Cause
from debug_spyre.session.state import Session

PROVED, LOCATED = "cause", "located"
_VERB = re.compile(r" (?:is|adds|falls|ends|raises)\b")


@dataclass(frozen=True, slots=True)
class Finding:
    """`sentence` is the measured one; `facts` are label and text, in the order in which a reader needs them."""

    sentence: str
    op: str | None
    facts: tuple[tuple[str, str], ...] = ()
    calls: tuple[tuple[str, str], ...] = ()  # the last right and the first wrong call, as `sweep` takes them


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
    return Finding(cause.sentence, cause.op, tuple(facts), tuple((b["right"], b["wrong"]) for b in borders))


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
