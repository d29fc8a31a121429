"""The whole answer on an op, both modes of each overload; in at most eight lines, and as the JSON of contracts.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from debug_spyre.surface import sites as traits
from debug_spyre.surface.asked import Registry, full_name
from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import SITES, Form, Site, Surface, Unresolved
from debug_spyre.surface.verdicts import Index, Verdict, compiled_of, eager_of

EAGER_ORDER = ("kernel", "custom-op", "decomposition", "fallback", "composite", "none", "unknown")
COMPILED_ORDER = ("lowering", "decomposition", "custom-op", "fallback", "upstream", "composite", "none", "unknown")


@dataclass(frozen=True, slots=True)
class Both:
    """The two modes."""

    eager: Verdict
    compiled: Verdict


@dataclass(frozen=True, slots=True)
class OpAnswer:
    """All about one op. `overload` is the one that was asked for, if one was."""

    name: OpName
    summary: Both
    overloads: dict[str, Both]
    sites: tuple[Site, ...]
    related: tuple[Site, ...]
    known: bool  # torch or the package has it
    missing_overload: bool = False


def answer_on(index: Index, name: OpName, registry: Registry | None = None) -> OpAnswer:
    """The whole answer on an op or one overload of it; of the registry where it was asked, else of the text."""
    packet = name.bare()
    every = index.sites.get(packet.packet_name, [])
    names = registry.overloads(packet) if registry is not None else []
    names = names or list(dict.fromkeys(s.op.overload or "default" for s in every)) or ["default"]
    overloads = {overload: judge(index, packet, overload, registry) for overload in names}
    missing = registry is not None and name.overload is not None and name.overload not in overloads
    if name.overload is not None and missing:
        gone = Verdict("none", f"{packet} has no overload {name.overload!r}; it has {', '.join(names[:8])}")
        summary = Both(gone, gone)
    elif name.overload is not None:
        summary = overloads.get(name.overload) or judge(index, packet, name.overload)
        every = index.at(packet, name.overload)
    else:
        summary = _representative(overloads)
    return OpAnswer(
        name=name,
        summary=summary,
        overloads=overloads,
        sites=tuple(s for s in every if s.form in SITES),
        related=tuple(s for s in every if s.form not in SITES),
        known=bool(every) or (registry is not None and bool(registry.overloads(packet))),
        missing_overload=missing,
    )


def judge(index: Index, packet: OpName, overload: str, registry: Registry | None = None) -> Both:
    """Both modes of one overload."""
    full = full_name(packet, overload)
    if registry is not None and full in registry.rows:
        return Both(registry.eager(index, full), registry.compiled(index, full))
    return Both(eager_of(index, packet, overload), compiled_of(index, packet, overload))


def _representative(overloads: dict[str, Both]) -> Both:
    def rank(item: tuple[str, Both]) -> tuple[bool, bool, bool, int, int]:
        name, both = item
        out = name == "out" or name.endswith("_out") or name.startswith("out_")
        eager, compiled = both.eager.verdict, both.compiled.verdict
        nothing = eager in {"none", "unknown"} and compiled in {"none", "unknown", "upstream"}
        return (out, nothing, name != "default", EAGER_ORDER.index(eager), COMPILED_ORDER.index(compiled))

    return min(overloads.items(), key=rank)[1]


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
    kinds = {"silent": traits.CPU, "sometimes": traits.CPU_SOMETIMES, "warns": traits.WARNS, "int64": traits.INT64}
    marked = {kind: [s.place for s in sites if note in s.notes] for kind, note in kinds.items()}
    marked["sometimes"] += [s.place for s in sites if traits.CALLS_BACK in s.notes]
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
