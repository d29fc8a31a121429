"""Several engines, each on a card of its own, that answer as one: independent calls are shared out among them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import Card
from debug_spyre.examine.io.engine import Engine
from debug_spyre.fleet.io.lane import at_once
from debug_spyre.runs.io.records import RunRecord


@dataclass(slots=True)
class Engines(Engine):
    """An engine whose calls go to `cards`; an engine of a card starts with its first call."""

    cards: tuple[Card, ...] = ()
    workers: list[Engine] = field(default_factory=list)

    def ask(self, asks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """As one engine would. What is asked twice is answered once."""
        keys = [json.dumps(ask, sort_keys=True) for ask in asks]
        new = [(key, ask) for key, ask in dict(zip(keys, asks, strict=True)).items() if key not in self.answers]
        if not self.workers:
            self.workers = [
                Engine(
                    self.folder, self.checkout, self.place / f"card-{card.index}", self.hypothesis, self.verb,
                    wait=self.wait, card=card,
                )
                for card in self.cards
            ]  # fmt: skip
        wide = min(len(self.workers), len(new))
        shares = [new[n::wide] for n in range(wide)]
        for worker in self.workers:
            worker.deadline = self.deadline
        tasks = [partial(self._asked, worker, share) for worker, share in zip(self.workers, shares, strict=False)]
        for answers in at_once(self.cards, tasks):
            self.answers.update(answers)
            self.asked += len(answers)
        return [self.answers[key] for key in keys]

    def _asked(
        self, worker: Engine, share: Sequence[tuple[str, dict[str, Any]]], _card: Card | None
    ) -> dict[str, dict[str, Any]]:
        found = worker.ask([ask for _, ask in share])
        return {key: answer for (key, _), answer in zip(share, found, strict=True)}

    def close(self) -> RunRecord | None:
        """End them all; the record of the first."""
        records = [worker.close() for worker in self.workers]
        self.record = next((record for record in records if record), self.record)
        self.workers = []
        return self.record


def engine_on(
    cards: tuple[Card, ...],
    folder: Path,
    checkout: Path,
    place: Path,
    *,
    hypothesis: int | None,
    verb: str = "investigate",
    wait: float | None = None,
) -> Engine:
    """One engine, or one on each of these cards."""
    if len(cards) > 1:
        return Engines(folder, checkout, place, hypothesis, verb, wait=wait, cards=cards)
    return Engine(folder, checkout, place, hypothesis, verb, wait=wait, card=cards[0] if cards else None)
