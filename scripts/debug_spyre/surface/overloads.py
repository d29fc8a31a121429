"""Every overload of torch's own ops and what torch does with it, from a shipped table: packets expand without torch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Traits:
    """What torch itself knows of one overload."""

    exists: bool = True  # the dispatcher knows it
    tensor: bool = True  # a tensor stands in its schema
    dimname: bool = False
    lowered: bool = False  # Inductor has a lowering
    decomposed: bool = False  # Inductor has a decomposition
    implicit: bool = False  # composite, implicit autograd
    explicit: bool = False  # composite, explicit autograd
    out: str | None = None  # computed by this out overload
    inplace: bool = False  # its functional sibling has the same signature
    handler: str | None = None  # its lowering is this pointwise handler


@dataclass(slots=True)
class OverloadTable:
    """The table, read a packet at a time."""

    text: str
    _read: dict[str, dict[str, Traits] | None] = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        """The torch it was made with."""
        found = re.match(r"# torch ([\w.]+)", self.text)
        return found.group(1) if found else None

    def packet(self, name: str) -> dict[str, Traits] | None:
        """Overloads of `ns.packet`; None where torch has no such op."""
        if name not in self._read:
            start = self.text.find(f"\n{name}\t")
            if start < 0:
                self._read[name] = None
            else:
                line = self.text[start + 1 : self.text.find("\n", start + 1)]
                self._read[name] = dict(map(_cell, line.partition("\t")[2].split(" ")))
        return self._read[name]

    def names(self) -> list[str]:
        """All packets."""
        return re.findall(r"^([\w.]+)\t", self.text, re.MULTILINE)


def _cell(cell: str) -> tuple[str, Traits]:
    name, _, flags = cell.partition(":")
    letters, *values = flags.split("=")
    given = {v.partition(":")[0]: v.partition(":")[2] for v in values}
    return name, Traits(
        exists="j" not in letters,
        tensor="t" not in letters,
        dimname="n" in letters,
        lowered="l" in letters,
        decomposed="d" in letters,
        implicit="c" in letters,
        explicit="e" in letters,
        out=given.get("o"),
        inplace="i" in given,
        handler=given.get("h"),
    )
