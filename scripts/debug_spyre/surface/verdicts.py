"""The verdict on an overload in one mode, which sites hold for it, and the verdict where the registry could not be asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from debug_spyre.surface import sites as traits
from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import SITES, Form, Site, Surface


class Index:
    """A surface by packet. `torch`: the packets that torch has, where it was asked."""

    def __init__(self, surface: Surface, torch: Collection[str] = ()) -> None:
        self.surface = surface
        self.torch = frozenset(torch)
        self.sites: dict[str, list[Site]] = {}
        self.add(surface.sites)

    def add(self, sites: Iterable[Site]) -> None:
        """These sites as well."""
        for site in sites:
            self.sites.setdefault(site.op.packet_name, []).append(site)

    def packets(self) -> list[OpName]:
        """Every packet that the package registers something for."""
        registered = (name for name, sites in self.sites.items() if any(s.form in SITES for s in sites))
        return sorted(OpName(*name.split(".", 1)) for name in registered if not self.torch or name in self.torch)

    def home(self, name: OpName, *, said: bool) -> OpName:
        """The op that is meant where the namespace was not said: aten's, else the only one of that name."""
        known = {*self.sites, *self.torch}
        if said or name.packet_name in known:
            return name
        others = sorted(n.partition(".")[0] for n in known if n.partition(".")[2] == name.packet)
        return replace(name, ns=others[0]) if others else name

    def at(self, name: OpName, overload: str) -> list[Site]:
        """Sites that hold for one overload."""
        return [s for s in self.sites.get(name.packet_name, ()) if s.op.overload in {None, overload}]


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


def by_kernel(site: Site, rivals: Iterable[str] = ()) -> Verdict:
    """The verdict for a kernel on the device's own key."""
    also = f" (also registered as {', '.join(sorted(rivals))}: the one loaded last wins)" if rivals else ""
    place = site.place + (", compiled part: assumed" if site.assumed else "")
    if site.form is Form.FALLBACK:
        return Verdict("fallback", f"CPU fallback with a FallbackWarning at {place}{also}", site)
    if site.form is Form.CUSTOM_OP:
        return Verdict("custom-op", f"custom op at {place}{also}{_host_work(site)}", site)
    kind = {
        Form.COMPILED_KERNEL: "compiled at the first call for each shape",
        Form.INPLACE_KERNEL: f"in-place kernel {site.detail} and copied back",
        Form.CPP: "C++ kernel",
    }.get(site.form, "hand-written kernel")
    return Verdict("kernel", f"{kind} at {place}{also}{_host_work(site)}", site)


def body_in_words(site: Site) -> str:
    """What the body of a decomposition or lowering does for some inputs."""
    said = "; int64 goes another way (conversion or CPU)" if traits.INT64 in site.notes else ""
    back = "; for some inputs it calls the eager kernel instead, silently" if traits.CALLS_BACK in site.notes else ""
    return said + back


def _host_work(site: Site) -> str:
    if traits.WARNS in site.notes:
        return "; its body runs on the CPU and warns"
    if traits.CPU in site.notes:
        return "; SILENT: its body works on the host, without a FallbackWarning"
    if traits.CPU_SOMETIMES in site.notes:
        return "; one branch of its body goes by the CPU, without a FallbackWarning"
    return ""


KERNELS = (Form.KERNEL, Form.COMPILED_KERNEL, Form.INPLACE_KERNEL, Form.FALLBACK, Form.CPP, Form.CUSTOM_OP)
NOT_TOLD = "the source alone does not tell: no {} of it is registered here, and torch was not asked what it does then"


def eager_of(index: Index, packet: OpName, overload: str) -> Verdict:
    """The verdict in eager mode."""
    sites = index.at(packet, overload)
    kernels = [site for site in sites if _is_kernel(site)]
    for form in KERNELS:
        found = next((site for site in kernels if site.form is form), None)
        if found is not None:
            return by_kernel(found, {s.form.value for s in kernels} - {form.value, Form.CUSTOM_OP.value})
    made = next((s for s in sites if s.form is Form.DECOMPOSITION and s.detail in {"", "eager only"}), None)
    if made is not None:
        return Verdict(
            "decomposition", f"decomposition at {made.place}, which newer versions install as the eager kernel", made
        )
    return Verdict("unknown", NOT_TOLD.format("kernel"))


def compiled_of(index: Index, packet: OpName, overload: str) -> Verdict:
    """The verdict in a compiled graph."""
    by_form = {site.form: site for site in reversed(index.at(packet, overload))}
    for form, verdict in (
        (Form.FALLBACK, "fallback"),
        (Form.DECOMPOSITION, "decomposition"),
        (Form.LOWERING, "lowering"),
    ):
        site = by_form.get(form)
        if site is not None:
            return Verdict(verdict, f"{verdict} at {site.place}{body_in_words(site)}", site)
    custom = by_form.get(Form.CUSTOM_OP)
    if custom is not None:
        return Verdict("custom-op", f"custom op at {custom.place} without a lowering: Inductor calls its body", custom)
    return Verdict("unknown", NOT_TOLD.format("lowering or decomposition"))


def _is_kernel(site: Site) -> bool:
    if site.form is Form.CUSTOM_OP:
        return not site.detail.startswith(("for ", "schema", "C++ schema"))
    return site.form in KERNELS and not site.listed_only and not site.compiled_only
