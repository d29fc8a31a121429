"""A surface by packet, with the table of overloads: which sites hold for which overload."""

from __future__ import annotations

from dataclasses import replace

from debug_spyre.surface.names import OpName
from debug_spyre.surface.overloads import OverloadTable, Traits
from debug_spyre.surface.rows import GENERATED
from debug_spyre.surface.sites import SITES, Form, Site, Surface


class Index:
    """A surface by packet, with the table of overloads."""

    def __init__(self, surface: Surface, table: OverloadTable) -> None:
        self.surface = surface
        self.table = table
        self.sites: dict[str, list[Site]] = {}
        for site in surface.sites:
            if site.detail.startswith(GENERATED) and table.packet(site.op.packet_name) is None:
                continue  # a row whose operator torch does not have makes no kernel
            self.sites.setdefault(site.op.packet_name, []).append(site)

    # --- names

    def packets(self) -> list[OpName]:
        """Every packet that the package registers something for, derived in-place forms included."""
        found = {
            OpName(*name.split(".", 1)) for name, sites in self.sites.items() if any(s.form in SITES for s in sites)
        }
        for packet in list(found):
            if any(s.form is Form.INPLACE_KERNEL for s in self.sites[packet.packet_name]):
                inplace = OpName(packet.ns, f"{packet.packet}_")
                if self.derived(inplace):
                    found.add(inplace)
        return sorted(found)

    def has(self, name: OpName) -> bool:
        """The package or torch knows the packet."""
        return name.packet_name in self.sites or self.table.packet(name.packet_name) is not None

    def home(self, name: OpName, *, said: bool) -> OpName:
        """The op that is meant where the namespace was not said: aten's, else the only one of that name."""
        if said or self.has(name):
            return name
        packet = name.packet
        others = sorted({n.partition(".")[0] for n in self.sites if n.partition(".")[2] == packet})
        return replace(name, ns=others[0]) if others else name

    # --- sites

    def derived(self, name: OpName) -> list[Site]:
        """In-place kernels that are made from the functional ones."""
        traits = self.table.packet(name.packet_name)
        if not name.packet.endswith("_") or not traits:
            return []
        functional = OpName(name.ns, name.packet[:-1])
        sources = [s for s in self.sites.get(functional.packet_name, ()) if s.form is Form.INPLACE_KERNEL]
        found = []
        for overload, trait in traits.items():
            source = next((s for s in sources if self.covers(s, functional, overload)), None)
            if source and trait.exists and trait.inplace:
                op = OpName(name.ns, name.packet, overload)
                found.append(replace(source, op=op, detail=f"derived from {functional}.{overload}"))
        return found

    def covers(self, site: Site, packet: OpName, overload: str) -> bool:
        """Whether a site holds for that overload of its packet."""
        if site.op.overload is not None:
            return site.op.overload == overload
        traits = (self.table.packet(packet.packet_name) or {}).get(overload)
        if traits is not None and not traits.exists:
            return False
        if site.form not in {Form.COMPILED_KERNEL, Form.INPLACE_KERNEL}:
            return True
        full = f"{packet.ns}::{packet.packet}.{overload}"
        for rule, word in self.surface.skips:
            if rule == "name-has" and word in full:
                return False
            if traits and rule == "schema-lacks" and word == "Tensor" and not traits.tensor:
                return False
            if traits and rule == "schema-has" and word == "Dimname" and traits.dimname:
                return False
        return True

    def at(self, name: OpName, overload: str) -> list[Site]:
        """Sites that hold for one overload."""
        own = [s for s in self.sites.get(name.packet_name, ()) if s.form is not Form.INPLACE_KERNEL]
        return [s for s in (*own, *self.derived(name)) if self.covers(s, name, overload)]

    def traits(self, packet: OpName, overload: str) -> Traits | None:
        """What torch knows of the overload."""
        return (self.table.packet(packet.packet_name) or {}).get(overload)
