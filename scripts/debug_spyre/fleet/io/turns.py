"""Independent runs that take turns on some cards: each on a card of its own, as many at once as there are cards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import Queue
from typing import TypeVar

from debug_spyre.card.holders import Card, card_environment, choose_cards
from debug_spyre.fleet.io.lane import free_ones
from debug_spyre.runs.io.jobs import JobSpec

T = TypeVar("T")


def chosen_cards(text: str | None) -> tuple[tuple[Card, ...], list[str]]:
    """The cards that `--cards` means, without those that somebody holds, and who holds them; none where it was not given.

    Raises:
        UsageError: words that fit no card; EnvironmentTroubleError: no card is visible.
    """
    return ((), []) if text is None else free_ones(choose_cards(text))


def on_card(spec: JobSpec, card: Card | None) -> JobSpec:
    """The job on that card alone: its lock, its device, a compile cache of its own."""
    if card is None:
        return spec
    return replace(spec, cards=card.device, env={**spec.env, **card_environment([card], {**os.environ, **spec.env})})


def at_once(cards: Sequence[Card], tasks: Sequence[Callable[[Card | None], T]]) -> list[T]:
    """What the tasks return, in order; each is told its card. Without cards, or with one, they follow one another."""
    if len(cards) < 2:
        return [task(cards[0] if cards else None) for task in tasks]
    free: Queue[Card] = Queue()
    for card in cards:
        free.put(card)

    def run(task: Callable[[Card | None], T]) -> T:
        card = free.get()
        try:
            return task(card)
        finally:
            free.put(card)

    with ThreadPoolExecutor(len(cards)) as pool:
        return [future.result() for future in [pool.submit(run, task) for task in tasks]]
