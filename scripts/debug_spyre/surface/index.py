"""A surface by packet: which sites hold for which overload, and which op a bare name means."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import SITES, Site, Surface


class Index:
    """A surface by packet. `torch`: the packets that torch has, where it was asked."""

    def __init__(self, surface: Surface, torch: Collection[str] = ()) -> None:
        self.surface = surface
        self.torch = frozenset(torch)
        self.sites: dict[str, list[Site]] = {}
        for site in surface.sites:
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
