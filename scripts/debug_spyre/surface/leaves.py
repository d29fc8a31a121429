"""What torch's composite kernels and Inductor's decompositions call and its lowerings need, from a shipped table."""

from __future__ import annotations

from dataclasses import dataclass, field


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
