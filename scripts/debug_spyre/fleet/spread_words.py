"""What a spread matrix came to, in words and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.fleet.verdicts import Attempt, words_of

MOST_LINES = 10


@dataclass(frozen=True, slots=True)
class Summary:
    """The end of a spread matrix."""

    cards: tuple[str, ...]
    devices: Mapping[str, str]
    sequences: Sequence[Mapping[str, Any]]
    attempts: Mapping[str, Sequence[Attempt]]
    out: Mapping[str, str]
    notes: tuple[str, ...]
    seconds: float
    busy: Mapping[str, float]  # seconds in tests

    def to_json(self) -> dict[str, Any]:
        """What the journal keeps."""
        return {
            "cards": [{"name": n, "device": self.devices[n], "busy": round(self.busy[n], 2)} for n in self.cards],
            "sequences": [dict(sequence) for sequence in self.sequences],
            "out": dict(self.out),
            "notes": list(self.notes),
            "seconds": round(self.seconds, 2),
        }


def say(summary: Summary) -> list[str]:
    """At most ten lines."""
    in_tests = sum(summary.busy.values())
    most = max(summary.busy.values(), default=0.0)
    head = f"{len(summary.cards)} cards, {len(summary.sequences)} sequences: {summary.seconds:.1f} s for {in_tests:.1f} s of tests"
    lines = [f"{head} (busiest card {most:.1f} s; the rest is start-up and waiting)"]
    lines += [f"{card} ({summary.devices[card]}) was taken out: {why}" for card, why in summary.out.items()]
    said = [words_of(name, attempts) for name, attempts in summary.attempts.items()]
    told = set(summary.out.values())
    lines += [words for words in said if words and words not in told]
    lines += summary.notes
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"... {len(lines) - MOST_LINES + 1} more lines in series.json"]
    return lines
