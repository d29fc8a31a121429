"""What happens to an overload in a compiled graph: Inductor's order of precedence.

Decomposition (unless it was taken out), lowering, fallback list, custom op, the functional form of an in-place or out
overload, then what Inductor has of its own; what nothing covers is kept as a call of the eager kernel.
"""

from __future__ import annotations

from dataclasses import replace

from debug_spyre.surface import notes
from debug_spyre.surface.eager import Verdict, eager_of
from debug_spyre.surface.index import Index
from debug_spyre.surface.names import OpName
from debug_spyre.surface.overloads import Traits
from debug_spyre.surface.sites import Form, Site


def compiled_of(index: Index, packet: OpName, overload: str, eager: Verdict) -> Verdict:
    """The verdict in a compiled graph."""
    sites, traits = index.at(packet, overload), index.traits(packet, overload)
    listed = [s for s in sites if s.form is Form.FALLBACK and (index.surface.tracks_fallbacks or s.compiled_only)]
    excluded = [s for s in sites if s.form is Form.EXCLUDED]
    unwanted = next((s for s in excluded if s.detail.startswith("decomposition")), None)
    unlowered = next((s for s in excluded if s.detail.startswith("lowering")), None)
    made = next((s for s in sites if s.form is Form.DECOMPOSITION and s.detail != "eager only"), None)
    blocked = next(iter(listed), unwanted) if not index.surface.decomposition_wins else None
    if made is not None and blocked is None:
        return Verdict("decomposition", f"decomposition at {made.place}{_int64(made)}", made)
    lowering = next((s for s in sites if s.form is Form.LOWERING), None)
    if lowering is not None:
        return Verdict("lowering", f"lowering at {lowering.place}{_int64(lowering)}{_branch(lowering)}", lowering)
    if listed:
        removed = f"; its decomposition at {made.place} is taken out" if made is not None else ""
        why = (
            f"in the fallback list at {listed[0].place}: Inductor keeps the call, which runs the eager kernel{removed}"
        )
        return Verdict("fallback", why, listed[0])
    custom = next((s for s in sites if s.form is Form.CUSTOM_OP), None)
    if custom is not None:
        return Verdict("custom-op", f"custom op at {custom.place} without a lowering: Inductor calls its body", custom)
    if traits is None:
        return Verdict("unknown", "the table of torch's ops does not have it") if not sites else _kept(eager, "")
    functional = _functional(index, packet, overload)
    if functional is not None and unwanted is None and unlowered is None:
        found = compiled_of(index, *functional, eager_of(index, *functional))
        name = f"{functional[0]}.{functional[1]}"
        if found.verdict not in {"none", "unknown"}:
            return replace(found, why=f"functionalised to {name}: {found.why}", own=False)
    return _upstream(index, traits, unwanted=unwanted, unlowered=unlowered, eager=eager)


def _functional(index: Index, packet: OpName, overload: str) -> tuple[OpName, str] | None:
    """The op without side effects that a compiled graph has in place of an in-place or out form."""
    home = OpName(packet.ns, packet.packet[:-1]) if packet.packet.endswith("_") else packet
    others = index.table.packet(home.packet_name) or {}
    if home != packet:
        return (home, overload) if overload in others and others[overload].exists else None
    if overload != "out" and not overload.endswith("_out"):
        return None
    by_table = next((name for name, t in others.items() if t.out == overload and t.exists), None)
    by_name = "default" if overload == "out" else overload.removesuffix("_out")
    name = by_table or (by_name if by_name in others and others[by_name].exists else None)
    return (home, name) if name else None


def _upstream(
    index: Index, traits: Traits, *, unwanted: Site | None, unlowered: Site | None, eager: Verdict
) -> Verdict:
    version = f"torch {index.table.version}"
    if traits.decomposed and unwanted is None:
        return Verdict("upstream", f"Inductor's own decomposition ({version})")
    if traits.lowered and unlowered is None:
        handler = traits.handler
        if handler is None or not index.surface.handlers:
            return Verdict("upstream", f"Inductor's own lowering ({version})", own=False)
        if handler in index.surface.handlers:
            where = "{}:{}".format(*index.surface.handlers[handler])
            return Verdict("upstream", f"Inductor's own lowering, pointwise handler {handler} at {where}")
        name = index.surface.handler_class
        return Verdict("none", f"Inductor's own lowering needs the handler {handler}, which {name} lacks")
    if traits.implicit and unwanted is None:
        return Verdict("upstream", f"torch splits it into other ops (composite, {version}): ask for those")
    reason = ""
    if unlowered is not None:
        reason = f"its lowering is taken out at {unlowered.place}: "
    elif unwanted is not None:
        reason = f"Inductor's decomposition is taken out at {unwanted.place}: "
    return _kept(eager, reason)


def _kept(eager: Verdict, reason: str) -> Verdict:
    if eager.verdict in {"none", "unknown"}:
        return Verdict("none", f"{reason}no lowering, no decomposition, and no eager kernel to call")
    return Verdict(
        "fallback", f"{reason}Inductor keeps the call, which runs the eager kernel ({eager.verdict})", eager.site
    )


def _int64(site: Site) -> str:
    return "; int64 goes another way (conversion or CPU)" if notes.INT64 in site.notes else ""


def _branch(site: Site) -> str:
    return "; for some inputs it calls the eager kernel instead, silently" if notes.CALLS_BACK in site.notes else ""
