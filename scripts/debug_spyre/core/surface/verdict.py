"""Which registration wins, per overload and per mode, and why: the dispatcher's and Inductor's order of precedence.

Eager: a kernel on the device's key, else a decomposition installed as one, else torch's structured form (the functional
overload calls the out overload). Compiled: decomposition, lowering, fallback list, custom op, Inductor's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from debug_spyre.core.surface import bodies
from debug_spyre.core.surface.index import Index
from debug_spyre.core.surface.names import ATEN, OpName
from debug_spyre.core.surface.overloads import Traits
from debug_spyre.core.surface.sites import SITES, Form, Site, Surface

KERNELS = (Form.COMPILED_KERNEL, Form.KERNEL, Form.FALLBACK, Form.CPP, Form.CUSTOM_OP)
ONE_KERNEL = {
    "item": ("_local_scalar_dense", "default"),
    "is_nonzero": ("_local_scalar_dense", "default"),
    "zeros": ("zero_", "default"),
    "zeros_like": ("zero_", "default"),
    "new_zeros": ("zero_", "default"),
    "full": ("fill_", "Scalar"),
    "full_like": ("fill_", "Scalar"),
    "new_full": ("fill_", "Scalar"),
    "ones": ("fill_", "Scalar"),
    "ones_like": ("fill_", "Scalar"),
    "new_ones": ("fill_", "Scalar"),
    "rand": ("uniform_", "default"),
    "rand_like": ("uniform_", "default"),
    "randn": ("normal_", "default"),
    "randn_like": ("normal_", "default"),
    "randint": ("random_", "from"),
    "copy_": ("_copy_from", "default"),
    "_to_copy": ("_copy_from", "default"),
}
EAGER_ORDER = ("kernel", "custom-op", "decomposition", "fallback", "none", "unknown")
COMPILED_ORDER = ("lowering", "decomposition", "custom-op", "fallback", "upstream", "none", "unknown")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens in one mode."""

    verdict: str
    why: str
    site: Site | None = None
    own: bool = True  # by a registration of this very overload


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
    assumed: bool = False  # overloads are not from a table
    missing_overload: bool = False


def answer_on(index: Index, name: OpName) -> OpAnswer:
    """The whole answer on an op or one overload of it."""
    packet = name.bare()
    traits = index.table.packet(packet.packet_name)
    own = [s for s in index.sites.get(packet.packet_name, ()) if s.form is not Form.INPLACE_KERNEL]
    every = [*own, *index.derived(packet)]
    names = [o for o, t in (traits or {}).items() if t.exists]
    names += sorted({s.op.overload for s in every if s.op.overload} - set(names))
    if not names:
        names = ["default"]
    overloads = {overload: judge(index, packet, overload) for overload in names}
    missing = name.overload is not None and name.overload not in overloads
    if name.overload is not None and missing:
        gone = Verdict("none", f"{packet} has no overload {name.overload!r}; it has {', '.join(names[:8])}")
        summary = Both(gone, gone)
    elif name.overload is not None:
        summary = overloads[name.overload]
        every = [s for s in every if index.covers(s, packet, name.overload)]
    else:
        summary = _representative(overloads)
    return OpAnswer(
        name=name,
        summary=summary,
        overloads=overloads,
        sites=tuple(s for s in every if s.form in SITES),
        related=tuple(s for s in every if s.form not in SITES),
        known=bool(every) or traits is not None,
        assumed=traits is None and any(s.op.overload is None for s in every) and not _is_custom(every),
        missing_overload=missing,
    )


def judge(index: Index, packet: OpName, overload: str) -> Both:
    """Both modes of one overload."""
    sites = index.at(packet, overload)
    traits = (index.table.packet(packet.packet_name) or {}).get(overload)
    eager = _eager(index, packet, sites, traits)
    return Both(eager, _compiled(index, packet, overload, sites, eager=eager))


def _eager(index: Index, packet: OpName, sites: list[Site], traits: Traits | None) -> Verdict:
    kernels = [s for s in sites if _is_kernel(s)]
    for form in (Form.KERNEL, Form.COMPILED_KERNEL, Form.INPLACE_KERNEL, Form.FALLBACK, Form.CPP, Form.CUSTOM_OP):
        found = next((s for s in kernels if s.form is form), None)
        if found is not None:
            rivals = {s.form.value for s in kernels} - {form.value, Form.CUSTOM_OP.value}
            return _eager_by(found, rivals)
    made = _eager_decomposition(index.surface, packet, sites)
    if made is not None:
        return Verdict("decomposition", f"decomposition at {made.place}, installed as the eager kernel", made)
    through = _through_out(index, packet, traits) or _through_composite(index, packet, traits)
    if through is not None:
        return through
    if index.surface.catch_all:
        return Verdict(
            "fallback", f"nothing of its own: the catch-all at {index.surface.catch_all} sends it to the CPU"
        )
    if traits is None and not sites:
        return Verdict("unknown", f"torch {index.table.version or ''} has no such op")
    return Verdict("none", _why_none(traits, sites))


def _through_out(index: Index, packet: OpName, traits: Traits | None) -> Verdict | None:
    if traits is None or traits.out is None:
        return None
    home = OpName(packet.ns, packet.packet)
    others = index.table.packet(home.packet_name) or {}
    if traits.out not in others and packet.packet.endswith("_"):
        home = OpName(packet.ns, packet.packet[:-1])
    kernels = [s for s in index.at(home, traits.out) if _is_kernel(s)]
    if not kernels:
        return None
    found = _eager_by(kernels[0], set())
    why = f"no kernel of its own: torch computes it by {home}.{traits.out}, {found.why}"
    return Verdict(found.verdict, why, found.site, own=False)


def _through_composite(index: Index, packet: OpName, traits: Traits | None) -> Verdict | None:
    """Composite ops whose work is one kernel's: `.item()` is the host read, `zeros` the fill, and so on."""
    inner = ONE_KERNEL.get(packet.packet) if packet.ns == ATEN and traits is not None else None
    if inner is None:
        return None
    packet, overload = OpName(ATEN, inner[0]), inner[1]
    kernel = next((s for s in index.at(packet, overload) if _is_kernel(s)), None)
    if kernel is None:
        return None
    found = _eager_by(kernel, set())
    return Verdict(found.verdict, f"torch's composite kernel calls {packet}.{overload}, {found.why}", kernel, own=False)


def _compiled(index: Index, packet: OpName, overload: str, sites: list[Site], *, eager: Verdict) -> Verdict:
    traits = index.traits(packet, overload)
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
        found = judge(index, *functional).compiled
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


def _is_custom(sites: list[Site]) -> bool:
    """A custom op has one overload, whatever its other registrations name."""
    return any(site.form is Form.CUSTOM_OP for site in sites)


def _kept(eager: Verdict, reason: str) -> Verdict:
    if eager.verdict in {"none", "unknown"}:
        return Verdict("none", f"{reason}no lowering, no decomposition, and no eager kernel to call")
    return Verdict(
        "fallback", f"{reason}Inductor keeps the call, which runs the eager kernel ({eager.verdict})", eager.site
    )


def _is_kernel(site: Site) -> bool:
    if site.form is Form.CUSTOM_OP:
        return not site.detail.startswith(("for ", "schema", "C++ schema"))
    return site.form in {*KERNELS, Form.INPLACE_KERNEL} and not site.listed_only and not site.compiled_only


def _eager_by(site: Site, rivals: Iterable[str]) -> Verdict:
    also = f" (also registered as {', '.join(sorted(rivals))}: the one loaded last wins)" if rivals else ""
    place = site.place + (", compiled part: assumed" if site.assumed else "")
    if site.form is Form.FALLBACK:
        return Verdict("fallback", f"CPU fallback with a FallbackWarning at {place}{also}", site)
    if site.form is Form.CUSTOM_OP:
        return Verdict("custom-op", f"custom op at {place}{also}{body_in_words(site)}", site)
    kind = {
        Form.COMPILED_KERNEL: "compiled at the first call for each shape",
        Form.INPLACE_KERNEL: f"in-place kernel {site.detail} and copied back",
        Form.CPP: "C++ kernel",
    }.get(site.form, "hand-written kernel")
    return Verdict("kernel", f"{kind} at {place}{also}{body_in_words(site)}", site)


def body_in_words(site: Site) -> str:
    """What the body of a kernel or custom op does on the CPU."""
    return _host_work(site) + ("; registered only under a condition" if bodies.CONDITIONAL in site.notes else "")


def _host_work(site: Site) -> str:
    if bodies.WARNS in site.notes:
        return "; its body runs on the CPU and warns"
    if bodies.CPU in site.notes:
        return "; SILENT: its body works on the host, without a warning"
    if bodies.CPU_SOMETIMES in site.notes:
        return "; one branch of its body goes by the CPU, without a warning"
    return ""


def _int64(site: Site) -> str:
    return "; int64 goes another way (conversion or CPU)" if bodies.INT64 in site.notes else ""


def _branch(site: Site) -> str:
    return "; for some inputs it calls the eager kernel instead, silently" if bodies.CALLS_BACK in site.notes else ""


def _eager_decomposition(surface: Surface, packet: OpName, sites: list[Site]) -> Site | None:
    if not surface.installs_eager or packet.ns != ATEN:
        return None
    for site in sites:
        if site.form is not Form.DECOMPOSITION:
            continue
        by_overload = site.op.overload is not None and site.detail in {"", "eager only"}
        if by_overload or surface.packets_too:
            return site
    return None


def _why_none(traits: Traits | None, sites: list[Site]) -> str:
    replaced = next((s for s in sites if s.form is Form.PATCH), None)
    if replaced is not None:
        return f"no kernel; in Python {replaced.detail} at {replaced.place}"
    packet = next((s for s in sites if s.form is Form.DECOMPOSITION and s.op.overload is None), None)
    if traits is not None and (traits.implicit or traits.explicit):
        return "nothing registered: torch's composite kernel splits it into other ops; ask for those"
    if packet is not None:
        return "no kernel: the decomposition is registered for the packet, which installs none"
    return "no kernel: torch raises NotImplementedError (Could not run ...)"


def _representative(overloads: dict[str, Both]) -> Both:
    def rank(item: tuple[str, Both]) -> tuple[bool, int, int]:
        name, both = item
        out = name == "out" or name.endswith("_out") or name.startswith("out_")
        eager, compiled = both.eager.verdict, both.compiled.verdict
        nothing = eager in {"none", "unknown"} and compiled in {"none", "unknown", "upstream"}
        return (nothing, out, EAGER_ORDER.index(eager), COMPILED_ORDER.index(compiled))  # type: ignore[return-value]

    return min(overloads.items(), key=rank)[1]
