"""An op's answer in at most eight lines, and as the JSON of contracts.md."""

from __future__ import annotations

from typing import Any

from debug_spyre.surface import notes
from debug_spyre.surface.op_verdict import Both, OpAnswer
from debug_spyre.surface.sites import Form, Site, Surface, Unresolved
from debug_spyre.surface.verdicts import Verdict

MOST = 6


def lines_of(answer: OpAnswer) -> list[str]:
    """The human answer: what wins in each mode and why, the overloads that differ, what else is registered."""
    lines = [str(answer.name)]
    if not answer.known:
        return [f"{answer.name}  unknown: neither torch nor the package has it"]
    lines.append(f"  eager     {said(answer.summary.eager)}")
    lines.append(f"  compiled  {said(answer.summary.compiled)}")
    lines += _overloads(answer)
    shown = {s.place for s in (answer.summary.eager.site, answer.summary.compiled.site) if s}
    rest = [s for s in answer.sites if s.place not in shown and s.place not in "\n".join(lines)]
    if rest:
        lines.append("  also      " + _sites(rest))
    if answer.related:
        lines.append("  related   " + _sites(answer.related))
    return lines[:8]


def said(verdict: Verdict) -> str:
    """A verdict in words."""
    own = verdict.why.startswith(verdict.verdict.replace("-", " "))
    broken = "DOES NOT WORK: " if verdict.works is False and verdict.verdict != "none" else ""
    return broken + (verdict.why if own else f"{verdict.verdict}: {verdict.why}")


def _overloads(answer: OpAnswer) -> list[str]:
    if answer.name.overload is not None or len(answer.overloads) < 2:
        return []
    groups: dict[tuple[str, str], list[str]] = {}
    for name, both in answer.overloads.items():
        groups.setdefault((both.eager.verdict, both.compiled.verdict), []).append(name)
    if len(groups) == 1:
        return [f"  overloads all {len(answer.overloads)} alike: {_some(list(answer.overloads))}"]
    texts = [f"{_some(names)} {eager}/{compiled}" for (eager, compiled), names in groups.items()]
    return ["  overloads " + "; ".join(texts[:MOST]) + ("; ..." if len(texts) > MOST else "") + " (eager/compiled)"]


def _some(names: list[str]) -> str:
    return " ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def _sites(sites: list[Site] | tuple[Site, ...]) -> str:
    texts = []
    for site in sites[:MOST]:
        extra = f" ({site.detail})" if site.detail and site.form not in {Form.CPP, Form.INPLACE_KERNEL} else ""
        overload = f" {site.op.overload}" if site.op.overload not in {None, "default"} else ""
        texts.append(f"{site.form.value}{overload} {site.place}{extra}")
    return "; ".join(texts) + (f"; and {len(sites) - MOST} more" if len(sites) > MOST else "")


def op_json(answer: OpAnswer) -> dict[str, Any]:
    """One element of `ops`."""
    return {
        "name": answer.name.packet_name,
        "overload": answer.name.overload,
        "known": answer.known,
        "modes": _both(answer.summary),
        "overloads": {
            name: {
                "eager": both.eager.verdict,
                "compiled": both.compiled.verdict,
                "works": {"eager": both.eager.works, "compiled": both.compiled.works},
            }
            for name, both in answer.overloads.items()
        },
        "sites": [_site(s) for s in answer.sites],
        "related": [_site(s) for s in answer.related],
        "cpu": _on_cpu(answer),
    }


def _on_cpu(answer: OpAnswer) -> dict[str, list[str]]:
    """Places where the op works on the CPU without a fallback being registered: silently, sometimes, with a warning, for int64."""
    through = answer.summary.eager.site
    sites = [*answer.sites, *([through] if through is not None and through not in answer.sites else [])]
    kinds = {"silent": notes.CPU, "sometimes": notes.CPU_SOMETIMES, "warns": notes.WARNS, "int64": notes.INT64}
    marked = {kind: [s.place for s in sites if note in s.notes] for kind, note in kinds.items()}
    marked["sometimes"] += [s.place for s in sites if notes.CALLS_BACK in s.notes]
    return marked


def _both(both: Both) -> dict[str, Any]:
    return {"eager": _mode(both.eager), "compiled": _mode(both.compiled)}


def _mode(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.verdict,
        "why": verdict.why,
        "works": verdict.works,
        "source": verdict.source,
        "leaves": [{"op": leaf.op, "verdict": leaf.verdict} for leaf in verdict.leaves],
    }


def _site(site: Site) -> dict[str, Any]:
    return {
        "form": site.form.value,
        "op": site.op.packet_name,
        "overload": site.op.overload,
        "file": site.file,
        "line": site.line,
        "detail": site.detail or None,
        "notes": list(site.notes),
        "assumed": site.assumed,
    }


def unresolved_json(found: Unresolved) -> dict[str, Any]:
    """One element of `unresolved`."""
    return {"file": found.file, "line": found.line, "text": found.text}


def unresolved_lines(surface: Surface, *, most: int = 5) -> list[str]:
    """What could not be told, listed."""
    lines = [f"unresolved registration at {u.file}:{u.line}: {u.text[:90]}" for u in surface.unresolved[:most]]
    if len(surface.unresolved) > most:
        lines.append(f"and {len(surface.unresolved) - most} more unresolved (op --all --json lists them)")
    return lines
