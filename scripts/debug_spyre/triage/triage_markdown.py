"""A triage as Markdown for a CI step summary; everything from outside is escaped."""

from __future__ import annotations

from debug_spyre.triage.digest import say_fallback
from debug_spyre.triage.triage_words import headline, number_of
from debug_spyre.vocabulary.evidence import Triage
from debug_spyre.vocabulary.safe_text import clean

MOST = 40


def markdown(triage: Triage, *, next_command: str = "") -> str:
    """Headline, a table of clusters, why and their members, fallbacks, trend, and what to type next."""
    evidence = triage.evidence
    lines = ["## Triage", "", escape(headline(evidence, len(triage.clusters))), ""]
    lines += [f"> {escape(text)}" for text in evidence.warnings[:8]]
    if triage.clusters:
        lines += ["", "| | cluster | tests | kind | stage | why |", "| --- | --- | ---: | --- | --- | --- |"]
    for cluster in triage.clusters[:MOST]:
        stage = cluster.stage.value if cluster.stage else "unknown"
        cells = (cluster.id, cluster.slug, str(len(cluster.nodeids)), cluster.kind.value, stage, cluster.why)
        lines.append("| " + " | ".join(escape(c) for c in cells) + " |")
    for cluster in triage.clusters[:MOST]:
        lines += ["", f"<details><summary>{escape(cluster.id)} {escape(cluster.slug)}</summary>", ""]
        if cluster.reason:
            lines.append(f"- because: {escape(cluster.reason)}")
        lines += [f"- {escape(s.text)}" for s in cluster.separators]
        if cluster.hidden:
            lines.append(f"- hidden by xfail: {len(cluster.hidden)} ({code(cluster.hidden[0])})")
        if cluster.folded:
            lines.append(f"- folded: {len(cluster.folded)} that follow from it")
        if cluster.probe:
            lines.append(f"- probe: {code(cluster.probe)}")
        lines += [f"- {code(nodeid)}" for nodeid in cluster.nodeids[:MOST]]
        if len(cluster.nodeids) > MOST:
            lines.append(f"- ... {len(cluster.nodeids) - MOST} more")
        lines += ["", "</details>"]
    if evidence.fallbacks:
        lines += ["", "**Fallbacks**", ""]
        lines += [f"- {escape(say_fallback(f))}" for f in evidence.fallbacks[:MOST]]
    if triage.trend is not None:
        lines += ["", "**Trend**", ""]
        for word in ("new", "changed", "gone"):
            lines += [
                f"- {word}: {escape(e['slug'])} ({number_of(len(e['nodeids']), 'test')})"
                for e in triage.trend[word][:MOST]
            ]
    if evidence.unrecognised:
        lines += ["", f"No rule knows {number_of(len(evidence.unrecognised), 'failure')}, for example:", ""]
        lines += [f"- {code(f'{u.source}:{u.line}')}: {escape(u.text[:120])}" for u in evidence.unrecognised[:3]]
    if next_command:
        lines += ["", f"next: {code(next_command)}"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text as Markdown shows it, without a way to mark it up."""
    text = " ".join(clean(text).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|#!~":
        text = text.replace(mark, f"\\{mark}")
    return text


def code(text: str) -> str:
    """Text as inline code, whatever backticks it holds."""
    text = " ".join(clean(text).split()).replace("|", "¦")
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"
