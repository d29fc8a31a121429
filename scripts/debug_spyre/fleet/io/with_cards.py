"""A pytest job changed into one over several cards: which cards, which of them can be had, and what can't be spread."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from debug_spyre.card import holders
from debug_spyre.card.holders import Card, card_environment, choose_cards
from debug_spyre.card.lock import is_held, lock_path, read_holder
from debug_spyre.runs import pytest_words
from debug_spyre.runs.io.jobs import SCRIPTS, JobSpec
from debug_spyre.runs.io.run_folder import RUNS
from debug_spyre.runs.io.series import SERIES_CARDS
from debug_spyre.vocabulary.errors import UsageError

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.fleet.io.spread import main; sys.exit(main(sys.argv[2:]))"
WHOLE = {"-x", "--exitfirst", "--maxfail", "--lf", "--last-failed", "--ff", "--failed-first", "--sw", "--stepwise"}


def over_cards(spec: JobSpec, text: str | None, *, series: bool = False) -> JobSpec:
    """The job over the cards that `--cards` means; unchanged where it was not given.

    `series`: a ready experiment, whose driver gives each of its processes a card.

    Raises:
        UsageError: words that fit no card, or pytest words that several processes can't follow together.
    """
    if text is None:
        return spec
    cards, notes = free_ones(choose_cards(text))
    devices = [card.device for card in cards]
    spec = replace(spec, cards=",".join(devices), notes=(*spec.notes, *notes))
    if series:
        return replace(spec, env={**spec.env, SERIES_CARDS: json.dumps(devices)})
    if len(cards) == 1:
        return replace(spec, env={**card_environment(cards, {**os.environ, **spec.env}), **spec.env})
    refused = [word.option for word in pytest_words.split(spec.pytest_args or ()) if word.option in WHOLE]
    if refused:
        raise UsageError(
            f"{refused[0]} stops or orders one process, and --cards {text} means {len(cards)} processes",
            next="take it out, or run on one card: --cards 1",
        )
    return _driven(spec, devices)


def over_these(spec: JobSpec, cards: Sequence[Card]) -> JobSpec:
    """The job over cards whose locks are held already; unchanged for fewer than two."""
    devices = [card.device for card in cards]
    return _driven(replace(spec, cards=",".join(devices)), devices) if len(cards) > 1 else spec


def over_cards_as_before(spec: JobSpec, before: str) -> JobSpec:
    """The job in the sequences that an earlier run of its folder had on its cards; unchanged where that had one process.

    On fewer cards the sequences follow one another, each still in a process of its own.
    """
    try:
        text = (spec.folder / RUNS / before / "series.json").read_text(encoding="utf-8")
        count = len(json.loads(text)["data"]["sequences"])
    except (OSError, ValueError, KeyError, TypeError):
        return spec
    cards, notes = free_ones(choose_cards("all"))
    devices = [card.device for card in cards[:count]]
    return _driven(replace(spec, cards=",".join(devices), notes=(*spec.notes, *notes)), devices)


def _driven(spec: JobSpec, devices: list[str]) -> JobSpec:
    options = {"cards": devices, "stall": spec.stall}
    driver = (sys.executable, "-P", "-c", _BOOT, str(SCRIPTS), json.dumps(options), "--")
    return replace(spec, argv=(*driver, *spec.argv), stall=None)


def free_ones(cards: tuple[Card, ...]) -> tuple[tuple[Card, ...], list[str]]:
    """Those that nobody holds, and in words who holds the others; all of them where none is free: then the run waits."""
    free, notes = [], []
    for card in cards:
        path = lock_path(card.device)
        seen = holders.holders([card.device])
        if is_held(path):
            holder = read_holder(path)
            notes.append(
                f"{card.name} ({card.device}) is left out: locked by {holder.says() if holder else 'somebody'}"
            )
        elif seen.state is holders.CardState.HELD:
            notes.append(f"{card.name} ({card.device}) is left out: {seen.says()}, without our lock")
        else:
            free.append(card)
    return (tuple(free), notes) if free else (cards, [])
