"""The page's Markdown twin, for agents and issues: the same sections, the same numbers, hostile text inert there too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from debug_spyre.page.experiments import Entry
from debug_spyre.page.log import LogView
from debug_spyre.page.page_context import Link
from debug_spyre.page.queue_rows import OutputLine
from debug_spyre.page.summary import BaselineView
from debug_spyre.vocabulary.safe_text import Piece

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~])|^([#+-]|\d+\.)(?=\s)|(@)(?=\w)|(&)(?=[#\w])|(!)(?=\[)")


def plain(text: str) -> str:
    """Text that means nothing to Markdown, on one line."""
    return _SPECIAL.sub(
        lambda m: "\\" + m.group() if m.group() not in "@&" else {"@": "@\u2060", "&": "&amp;"}[m.group()],
        " ".join(text.split()),
    )


def code(text: str) -> str:
    """Inline code that its own backticks can't end."""
    flat = " ".join(text.split())
    if not flat:
        return ""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def block(lines: Iterable[str], kind: str = "") -> str:
    """A code block that its content can't end."""
    body = "\n".join(lines)
    fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", body)), default=0) + 1)
    return f"{fence}{kind}\n{body}\n{fence}"


def prose(parts: tuple[Piece, ...]) -> str:
    """Prose; references stay words, since the twin has no anchors."""
    return "".join(
        code(p.text) if p.kind == "code" else f"**{plain(p.text)}**" if p.kind == "strong" else _spaced(p.text)
        for p in parts
    )


def _spaced(text: str) -> str:
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() and text.strip() else ""
    return f"{before}{plain(text)}{after}"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of cells that are Markdown already."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(cell.replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Code inside a table: a bar would end the cell."""
    return code(text).replace("|", "\\|")


def bars(text: str) -> str:
    """Bars that are not escaped yet (inside code) would end the cell."""
    return re.sub(r"(?<!\\)\|", r"\\|", text)


MOST_MEMBERS, MOST_ENTRIES, MOST_OLDER = 400, 25, 100


def markdown(log: LogView) -> str:
    """The whole twin."""
    blocks = [
        *_head(log),
        *_summary(log),
        *_queue(log),
        *_experiments(log),
        *_validation(log),
        *_findings(log),
        *_next(log),
        *_provenance(log),
    ]
    return "\n\n".join(blocks) + "\n"


def _file(link: Link | None) -> str:
    """A file of the session's folder, relative to the twin, which lies in it."""
    return cell(link.text) if link else ""


def _head(log: LogView) -> Iterator[str]:
    yield f"# {plain(log.slug)}: {log.status.text}"
    yield prose(log.symptom)
    yield (
        f"Session {code(log.stem)}, opened {log.opened.text} ({log.opened.utc}) by {plain(log.opened_by)}, "
        f"updated {log.updated.text} ({log.updated.utc})."
    )
    yield "\n".join(f"- {f.label}: **{plain(f.word.text)}** {prose(f.note)}".rstrip() for f in log.facts)
    for notice in log.notices:
        word = f"{notice.word.text}: " if notice.word else ""
        words = [f"**{word}**" + prose(line) if word and not i else prose(line) for i, line in enumerate(notice.lines)]
        yield "\n".join(f"> {line}" for line in [*words, prose(notice.meta), code(notice.command)] if line)
    if log.live:
        yield f"Running: {plain(log.live.link.text)} {plain(log.live.name)}, {log.live.says}, {log.live.failed} failing. {code(log.live.wait)}"
    cluster = log.cluster
    yield f"## 1. Cluster, {cluster.size} members"
    for line in cluster.why:
        yield prose(line)
    rows = [row for g in cluster.groups for row in g.rows]
    yield table(
        ("node id", "shows"),
        (
            (
                cell(r.id.whole)
                + (" **probe**" if r.probe else "")
                + (f" ({plain(r.predicate)})" if r.predicate else ""),
                f"{r.mismatched} max abs {r.max_abs} max rel {r.max_rel}" if r.mismatched else plain(r.says),
            )
            for r in rows[:MOST_MEMBERS]
        ),
    ) + (f"\n\n{len(rows) - MOST_MEMBERS} more members are on the page." if len(rows) > MOST_MEMBERS else "")
    for gone in cluster.gone:
        yield f"Left: {code(gone.id.whole)}: {prose(gone.reason)}" + (
            f" (now in {code(gone.moved.text)})" if gone.moved else ""
        )


def _summary(log: LogView) -> Iterator[str]:
    summary = log.summary
    yield "## 2. Session summary"
    if summary.stale:
        yield f"**Stale:** older than the last verdict. Since then: {prose(summary.since)}."
    if summary.paragraphs:
        yield "\n\n".join(prose(p) for p in summary.paragraphs)
    else:
        yield "Not written yet."
    if summary.baseline is None:
        yield f"No baseline yet: {code(summary.baseline_command)}"
        return
    yield "\n".join(_baseline(summary.baseline))


def _baseline(base: BaselineView) -> Iterator[str]:
    yield f"Baseline {plain(base.run.text)} ({plain(base.scope)}):"
    yield ""
    for row in base.mismatches:
        figures = (
            plain(row.says)
            or f"{row.mismatched} mismatched, greatest absolute {row.max_abs}, greatest relative {row.max_rel}"
        )
        yield f"- {plain(row.scope)} ({plain(row.run.text)}): {figures}"
    for line in base.said:
        yield f"- {plain(line)}"
    for fallback in base.fallbacks:
        yield f"- falls back: {code(fallback.op)} at {code(fallback.at)}, {plain(fallback.tests)} tests" + (
            f", {plain(fallback.note)}" if fallback.note else ""
        )
    for name, where in base.frames:
        yield f"- {name} frame: {code(where)}"
    if base.severity:
        yield f"- severity: {plain(base.severity)}"
    if base.pattern:
        yield f"- pattern: {plain(base.pattern)}"


def _queue(log: LogView) -> Iterator[str]:
    yield "## 3. Hypothesis queue"
    if not log.queue.rows:
        yield "Empty."
        return
    yield table(
        ("#", "hypothesis or fix", "how to test", "status", "outcome", "evidence"),
        (
            (
                f"H{r.number}",
                bars(prose(r.text)),
                cell(r.command),
                r.status.text,
                bars(prose(r.outcome)),
                ", ".join(plain(link.text) for link in r.runs),
            )
            for r in log.queue.rows
        ),
    )
    if log.queue.older:
        yield f"{log.queue.total - len(log.queue.rows)} rows that were tested earlier are in {_file(log.queue.older)}."
    for row in log.queue.rows:
        if row.excerpt:
            yield f"Evidence for H{row.number}:\n\n{block(row.excerpt)}"


def _experiments(log: LogView) -> Iterator[str]:
    view = log.experiments
    yield "## 4. Experiment log, newest first"
    if not view.total:
        yield "Nothing was run yet."
    for entry in view.entries[:MOST_ENTRIES]:
        yield from _entry(entry)
    older = [(e.started.text, e.title, e.status.text, "") for e in view.entries[MOST_ENTRIES:]]
    older += [(e.started.text, e.title, e.status.text, e.conclusion) for e in view.older]
    if older:
        yield "Older:\n\n" + "\n".join(
            f"- {time} {plain(title)}: {word} {plain(words)}".rstrip()
            for time, title, word, words in older[:MOST_OLDER]
        )
    if len(older) > MOST_OLDER:
        yield f"{len(older) - MOST_OLDER} older entries are on the page."
    if view.rest:
        yield f"{view.left_out} entries from before these are in {_file(view.rest)}."


def _entry(entry: Entry) -> Iterator[str]:
    rows = ", ".join(link.text for link in entry.rows)
    tag = " **unattributed**" if entry.unattributed else ""
    yield f"### {entry.started.text} {plain(entry.title)}{f' for {rows}' if rows else ''}{tag}"
    facts = [entry.status.text, entry.result, entry.took, *entry.meta]
    yield ", ".join(plain(f) for f in facts if f) + (
        f"; whole output {code(entry.output.text)}" if entry.output else ""
    )
    if entry.command:
        yield block([entry.whole or entry.command], "sh")
    for warning in entry.warnings:
        yield f"> {plain(warning)}"
    lines = _texts((*entry.answers, *entry.digest, *entry.more_digest)) or _texts(entry.tail)
    if lines:
        yield block(lines)
    verdicts = ", ".join(f"H{n} {w.text}" for w, n in entry.verdicts)
    if verdicts or entry.conclusion:
        yield f"Conclusion: {verdicts}{': ' if verdicts and entry.conclusion else ''}{prose(entry.conclusion)}"


def _texts(lines: tuple[OutputLine, ...]) -> list[str]:
    return [line.text for line in lines]


def _validation(log: LogView) -> Iterator[str]:
    view = log.validation
    yield "## 5. Cluster validation"
    yield f"Gate for resolved: **{view.gate.text}**"
    if view.conditions:
        yield "\n".join(
            f"- {c.state.text}: {code(c.code)}: {prose(c.text)}"
            + (f" Set aside: {plain(c.override)}" if c.override else "")
            + (f" Next: {code(c.next)}" if c.next else "")
            for c in view.conditions
        )
    for words in view.said:
        yield plain(words)
    lines = [line for g in view.groups for line in g.lines]
    yield table(
        ("node id", "members before", "members after", "matrix before", "matrix after", "note"),
        (
            (cell(line.id.whole), *(plain(w.text) for w in line.cells), plain(line.note))
            for line in lines[:MOST_MEMBERS]
        ),
    )
    if view.new:
        yield f"{view.new_count} new failures, not members:\n\n" + "\n".join(
            f"- {code(line.id.whole)}: {line.cells[0].text} before, {line.cells[1].text} after; {plain(line.note)}"
            for g in view.new
            for line in g.lines
        )
    if view.matrix_total:
        failed = (sum(f.failed_before for f in view.functions), sum(f.failed_after for f in view.functions))
        yield f"Matrix of {view.matrix_total:,} tests: {failed[0]:,} failed before, {failed[1]:,} after."


def _findings(log: LogView) -> Iterator[str]:
    view = log.findings
    yield "## 6. Key findings and artifacts"
    if view.findings:
        yield "\n".join(
            f"- F{f.number}: {' '.join(prose(p) for p in f.paragraphs)}"
            + (f" ({code(f.reference)})" if f.reference else "")
            for f in view.findings
        )
    for report in view.reports:
        yield (
            f"**{plain(report.verb)}**"
            + (f", {code(report.report.text)}" if report.report else "")
            + f"\n\n{block(_texts(report.lines))}"
        )
    if view.artifacts:
        yield table(("file", "what", "size"), ((_file(a.link), plain(a.what), a.size) for a in view.artifacts))


def _next(log: LogView) -> Iterator[str]:
    yield "## 7. Next actions"
    if not log.actions:
        yield "Nothing is left to do here."
        return
    yield "\n".join(
        f"{i}. {prose(a.text)}" + (f" {code(a.command)}" if a.command else "")
        for i, a in enumerate(log.actions, start=1)
    )


def _provenance(log: LogView) -> Iterator[str]:
    view = log.provenance
    yield "## Provenance"
    lines = [f"- {plain(k)}: {plain(v)}" for k, v in view.facts]
    lines += [f"- not the same in all runs: {plain(', '.join(view.differs))}"] if view.differs else []
    lines.append(f"- journal: {plain(view.journal)}, page of event {log.last_seq}")
    yield "\n".join(lines)
