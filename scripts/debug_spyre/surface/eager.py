"""What happens to an overload in eager mode: the dispatcher's order of precedence.

A kernel on the device's key wins; else a decomposition installed as one; else torch's structured form, whose functional
overload calls the out overload; else torch's composite kernel, where all it does is call one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from debug_spyre.surface import notes
from debug_spyre.surface.index import Index
from debug_spyre.surface.names import ATEN, OpName
from debug_spyre.surface.overloads import Traits
from debug_spyre.surface.sites import Form, Site, Surface

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


@dataclass(frozen=True, slots=True)
class Leaf:
    """An op that a composite or a decomposition ends in."""

    op: str
    verdict: str
    works: bool | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens in one mode."""

    verdict: str
    why: str
    site: Site | None = None
    own: bool = True  # by a registration of this very overload
    works: bool | None = None  # None: nobody could tell
    source: str = "text"  # or registry
    leaves: tuple[Leaf, ...] = ()


def eager_of(index: Index, packet: OpName, overload: str) -> Verdict:
    """The verdict in eager mode."""
    sites, traits = index.at(packet, overload), index.traits(packet, overload)
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


def _is_kernel(site: Site) -> bool:
    if site.form is Form.CUSTOM_OP:
        return not site.detail.startswith(("for ", "schema", "C++ schema"))
    return site.form in {*KERNELS, Form.INPLACE_KERNEL} and not site.listed_only and not site.compiled_only


def kernel_of(site: Site) -> Verdict:
    """The verdict for a kernel on the device's own key."""
    return _eager_by(site, ())


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
    return _host_work(site) + ("; registered only under a condition" if notes.CONDITIONAL in site.notes else "")


def _host_work(site: Site) -> str:
    if notes.WARNS in site.notes:
        return "; its body runs on the CPU and warns"
    if notes.CPU in site.notes:
        return "; SILENT: its body works on the host, without a FallbackWarning"
    if notes.CPU_SOMETIMES in site.notes:
        return "; one branch of its body goes by the CPU, without a FallbackWarning"
    return ""


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
        return f"no kernel; in Python {replaced.detail} at {replaced.place}{body_in_words(replaced)}"
    packet = next((s for s in sites if s.form is Form.DECOMPOSITION and s.op.overload is None), None)
    if traits is not None and (traits.implicit or traits.explicit):
        return "nothing registered: torch's composite kernel splits it into other ops; ask for those"
    if packet is not None:
        return "no kernel: the decomposition is registered for the packet, which installs none"
    return "no kernel: torch raises NotImplementedError (Could not run ...)"
