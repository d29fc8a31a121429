"""The whole answer on an op: both modes of each overload, and which of them speaks for the packet."""

from __future__ import annotations

from dataclasses import dataclass

from debug_spyre.surface.asked import Registry, full_name
from debug_spyre.surface.index import Index
from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import SITES, Site
from debug_spyre.surface.text_verdicts import compiled_of, eager_of
from debug_spyre.surface.verdicts import Verdict

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
