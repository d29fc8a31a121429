"""The verdict where the registry could not be asked: what the source registers wins in the dispatcher's order; the rest is not known."""

from __future__ import annotations

from debug_spyre.surface.index import Index
from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import Form, Site
from debug_spyre.surface.verdicts import Verdict, body_in_words, by_kernel

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
