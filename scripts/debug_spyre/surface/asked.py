"""The answer of the running registry on an overload, as a verdict for each mode.

Where a composite or a decomposition of torch is only as good as the ops it calls, these are followed to the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from debug_spyre.surface.names import OpName, from_schema_name
from debug_spyre.surface.sites import Form, Site
from debug_spyre.surface.verdicts import Index, Leaf, Verdict, body_in_words, by_kernel


@dataclass(slots=True)
class LeafTable:
    """The table; its lines are found when the first is asked for."""

    text: str
    _lines: dict[str, str] = field(default_factory=dict)

    def calls(self, full: str, kind: str) -> list[list[str]]:
        """What one call needs, a list for each way to call it.

        Kind c: the ops that a composite kernel calls; d: those of Inductor's decomposition; l: what Inductor's lowering needs of a
        backend; p: what a pass of Inductor puts in its place. A way that needs nothing counts only where there is no other.
        """
        if not self._lines:
            self._lines = {line.rpartition("\t")[0]: line.rpartition("\t")[2] for line in self.text.splitlines()}
        found = self._lines.get(f"{full}\t{kind}")
        if found is None:
            return []
        return [variant.split(",") for variant in found.split("|") if variant] or [[]]


DEEPEST = 12
_KERNELS = {form.value: form for form in Form}


@dataclass(slots=True)
class Registry:
    """The answer of the child process, with what torch's composites call."""

    torch: str
    stub: bool
    rows: dict[str, Any]
    handlers: frozenset[str]
    refused: frozenset[str]
    alone: frozenset[str]  # handlers that the backend can't take out of a loop with several
    leaves: LeafTable
    troubles: tuple[str, ...] = ()
    _eager: dict[str, Verdict] = field(default_factory=dict)
    _compiled: dict[str, Verdict] = field(default_factory=dict)
    _by_packet: dict[str, list[str]] = field(default_factory=dict)

    def overloads(self, packet: OpName) -> list[str]:
        """The overloads of a packet that the dispatcher knows, `default` first."""
        return list(self._packets().get(packet.packet_name, ()))

    def names(self) -> list[str]:
        """All packets."""
        return list(self._packets())

    def _packets(self) -> dict[str, list[str]]:
        if not self._by_packet:
            for full in self.rows:
                ns, _, rest = full.partition("::")
                packet, _, overload = rest.partition(".")
                self._by_packet.setdefault(f"{ns}.{packet}", []).append(overload or "default")
        return self._by_packet

    # --- eager

    def eager(self, index: Index, full: str, depth: int = 0) -> Verdict:
        """What the dispatcher does for the device's key."""
        if full not in self._eager:
            self._eager[full] = self._eager_of(index, full, depth)
        return self._eager[full]

    def _eager_of(self, index: Index, full: str, depth: int) -> Verdict:
        kind, place = self.rows[full]["e"]
        if kind == "composite":
            return self._composite(index, full, depth, compiled=False)
        if kind == "structured":
            return self._structured(index, place)
        if kind == "none":
            return _said("none", "no kernel: torch raises NotImplementedError (Could not run ...)", works=False)
        site = self._site(index, full, kind, place)
        if kind == "decomposition":
            return _said(kind, f"decomposition at {site.place}, installed as the eager kernel", works=True, site=site)
        return replace(by_kernel(site), works=True, source="registry")

    def _structured(self, index: Index, out: str) -> Verdict:
        if not out or self.rows[out]["e"][0] in {"none", "structured", "composite"}:
            return _said("none", f"no kernel, and none of {_dotted(out) or 'an out form'} either", works=False)
        found = self.eager(index, out)
        why = f"no kernel of its own: torch computes it by {_dotted(out)}, {found.why}"
        return replace(found, why=why, own=False)

    # --- compiled

    def compiled(self, index: Index, full: str, depth: int = 0) -> Verdict:
        """What Inductor does for the device."""
        if full not in self._compiled:
            self._compiled[full] = self._compiled_of(index, full, depth)
        return self._compiled[full]

    def _compiled_of(self, index: Index, full: str, depth: int) -> Verdict:
        row = self.rows[full]
        functional = row.get("f")
        if functional and row["c"][0] != "lowering":  # of a form that mutates only copy_ reaches the lowerings
            found = self.compiled(index, functional, depth)
            return replace(found, why=f"functionalised to {_dotted(functional)}: {found.why}", own=False)
        kind, place, *more = row["c"]
        if kind in {"decomposition", "lowering"}:
            site = self._site(index, full, kind, place)
            return _said(kind, f"{kind} at {site.place}{body_in_words(site)}", works=True, site=site)
        if kind == "composite" or (row["i"] and row["e"][0] == "composite" and kind != "upstream-decomposition"):
            return self._composite(index, full, depth, compiled=True)
        declined = place == "declines" and self.leaves.calls(full, "d") in ([], [[]])
        if kind == "upstream-decomposition" and not declined:
            return self._through_decomposition(index, full, depth)
        listed = kind == "upstream-fallback" or declined
        if kind == "upstream-lowering" or (listed and self.leaves.calls(full, "p")):
            found = self._upstream(index, full, place, more[0] if more else "", depth)
            if not listed:
                return found
            why = f"Inductor's own list of fallbacks has it, but a pass of Inductor puts its random op in its place: {found.why}"
            return _said("fallback", why, works=found.works)
        return self._kept(index, full, listed=listed)

    def _upstream(self, index: Index, full: str, place: str, reduction: str, depth: int) -> Verdict:
        """Inductor's own lowering, which works where the backend has all that it needs for some arguments."""
        ways = (
            self.leaves.calls(full, "p")
            or self.leaves.calls(full, "l")
            or [[w for w in (place, reduction and f"reduction:{reduction}") if w]]
        )
        lacks = [[need for need in way if self._lacks(index, need, depth, alone=len(way) == 1)] for way in ways]
        least = min(lacks, key=len)
        if least:
            return _said("none", f"Inductor's own lowering needs {_in_words(least[0])}", works=False)
        handlers = [need for need in ways[lacks.index(least)] if ":" not in need]
        with_ = f", pointwise handler {' '.join(handlers[:4])}" if handlers else ""
        some = next((lack[0] for lack in lacks if lack), "")
        with_ += f"; for some arguments it needs {_in_words(some)}" if some else ""
        return _said("upstream", f"Inductor's own lowering (torch {self.torch}){with_}", works=True)

    def _lacks(self, index: Index, need: str, depth: int, *, alone: bool) -> bool:
        kind, _, name = need.partition(":")
        if kind == "call":
            return depth < DEEPEST and name in self.rows and self.eager(index, name, depth + 1).works is False
        if kind == "reduction":
            return name in self.refused
        return bool(self.handlers) and (need not in self.handlers or (need in self.alone and not alone))

    def _kept(self, index: Index, full: str, *, listed: bool) -> Verdict:
        eager = self.eager(index, full)
        if eager.verdict == "custom-op":
            return _said(
                "custom-op", f"{eager.why}; without a lowering: Inductor calls its body", works=True, site=eager.site
            )
        if eager.verdict == "none" and not listed:
            return _said("none", "no lowering, no decomposition, and no eager kernel to call", works=False)
        whose = "Inductor's own list of fallbacks keeps the call" if listed else "Inductor keeps the call"
        does = (
            "for which there is no eager kernel"
            if eager.verdict == "none"
            else f"which runs the eager form ({eager.verdict})"
        )
        return _said("fallback", f"{whose}, {does}", works=eager.works, site=eager.site)

    def _through_decomposition(self, index: Index, full: str, depth: int) -> Verdict:
        works, leaves = self._follow(index, full, "d", depth, compiled=True)
        missing = [leaf.op for leaf in leaves if leaf.works is False]
        ends = f"; it ends in {', '.join(missing[:4])}, which nothing here computes{_some(works)}" if missing else ""
        why = f"Inductor's own decomposition (torch {self.torch}){ends}"
        return _said("upstream", why, works=works, leaves=leaves)

    # --- leaves

    def _composite(self, index: Index, full: str, depth: int, *, compiled: bool) -> Verdict:
        works, leaves = self._follow(index, full, "c", depth, compiled=compiled)
        if not leaves:
            why = "torch's composite kernel splits it into other ops; which ones is not in our table"
            return _said("composite", why, works=works)
        missing = [leaf.op for leaf in leaves if leaf.works is False]
        said = " ".join(leaf.op for leaf in leaves[:6])
        why = f"torch's composite kernel calls {said}" + (
            f"; nothing here computes {' '.join(missing[:4])}{_some(works)}" if missing else ""
        )
        return _said("composite", why, works=works, leaves=leaves)

    def _follow(
        self, index: Index, full: str, kind: str, depth: int, *, compiled: bool
    ) -> tuple[bool | None, tuple[Leaf, ...]]:
        """Whether what it calls works, and the leaves of that; unknown where the table has nothing."""
        functional = self.rows[full].get("f")
        variants = self.leaves.calls(full, kind)
        if not variants and kind == "c" and functional:
            variants = [[functional, "aten::copy_"]]  # torch makes such forms itself: the functional one, copied back
        if depth >= DEEPEST or not variants:
            return None, ()
        leaves: dict[str, Leaf] = {}
        outcomes: list[bool | None] = []
        for calls in variants:
            names = [name for name in calls if name in self.rows and name != full]
            found = [self._one(index, name, depth + 1, compiled=compiled) for name in names]
            for name, verdict in zip(names, found, strict=True):
                inner = verdict.leaves if verdict.verdict in {"composite", "upstream"} else ()
                for leaf in inner or (Leaf(_dotted(name), verdict.verdict, verdict.works),):
                    leaves.setdefault(leaf.op, leaf)
            works = {v.works for v in found}
            outcomes.append(False if False in works else None if None in works else True)
        return _any_way(outcomes), tuple(leaves.values())

    def _one(self, index: Index, full: str, depth: int, *, compiled: bool) -> Verdict:
        return self.compiled(index, full, depth) if compiled else self.eager(index, full, depth)

    # --- places

    def _site(self, index: Index, full: str, kind: str, place: str) -> Site:
        """The reader's site, which has the op's own line in a list; else the line that the registry saw."""
        op = from_schema_name(full) or OpName("aten", full)
        form = _KERNELS[kind]
        for site in index.at(op.bare(), op.overload or "default"):
            if site.form is form and not site.listed_only:
                return site
        file, _, line = place.rpartition(":")
        return Site(form, op, file or "(compiled part)", int(line) if line.isdigit() else 0)


def full_name(packet: OpName, overload: str) -> str:
    """As the dispatcher writes it."""
    return f"{packet.ns}::{packet.packet}" + ("" if overload == "default" else f".{overload}")


def _said(
    verdict: str, why: str, *, works: bool | None, site: Site | None = None, leaves: tuple[Leaf, ...] = ()
) -> Verdict:
    return Verdict(verdict, why, site, works=works, source="registry", leaves=leaves)


def _any_way(outcomes: list[bool | None]) -> bool | None:
    """It works if one of the ways to call it does; None where that is not known."""
    return True if True in outcomes else None if None in outcomes or not outcomes else False


def _some(works: bool | None) -> str:
    return ", which only some arguments need" if works else ""


def _dotted(full: str) -> str:
    op = from_schema_name(full)
    return str(op) if op else full


def _in_words(need: str) -> str:
    """What a backend lacks."""
    kind, _, name = need.partition(":")
    if kind == "call":
        return f"the kernel of {_dotted(name)}, for which there is none"
    if kind == "reduction":
        return f"a reduction of the kind {name}, which becomes UnimplementedOp when it runs"
    return f"the handler {need}, which the backend lacks"
