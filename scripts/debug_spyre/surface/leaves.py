"""What torch's composite kernels and Inductor's decompositions call, from a shipped table."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeafTable:
    """The table, read a line at a time."""

    text: str

    def calls(self, full: str, kind: str) -> list[list[str]]:
        """The sets of ops that one call makes, without the calls that need none; kind c (composite kernel) or d (decomposition)."""
        found = re.search(rf"^{re.escape(full)}\t{kind}\t(.*)$", self.text, re.MULTILINE)
        return [variant.split(",") for variant in found.group(1).split("|") if variant] if found else []
