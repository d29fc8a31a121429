"""What happens to an overload in one mode, and how a kernel's registration is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from debug_spyre.surface import notes
from debug_spyre.surface.sites import Form, Site


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
    said = "; int64 goes another way (conversion or CPU)" if notes.INT64 in site.notes else ""
    back = "; for some inputs it calls the eager kernel instead, silently" if notes.CALLS_BACK in site.notes else ""
    return said + back


def _host_work(site: Site) -> str:
    if notes.WARNS in site.notes:
        return "; its body runs on the CPU and warns"
    if notes.CPU in site.notes:
        return "; SILENT: its body works on the host, without a FallbackWarning"
    if notes.CPU_SOMETIMES in site.notes:
        return "; one branch of its body goes by the CPU, without a FallbackWarning"
    return ""
