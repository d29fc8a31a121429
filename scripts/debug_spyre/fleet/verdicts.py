"""The card or the code? What the attempts at one file on several cards say together."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from debug_spyre.fleet import board as moves
from debug_spyre.fleet.board import Board, Unit

HARDWARE = re.compile(r'RAS::(VFIO::DeviceOpenFail|CBRB::ResponseTimeout|PCI::BusFence)|"category"\s*:\s*"hardware"')


class Manner(StrEnum):
    """How an attempt ended."""

    PASSED = "passed"
    FAILED = "failed"
    DIED = "died"
    HUNG = "hung"
    HARDWARE = "hardware"  # the card or its driver reported an error


class Verdict(StrEnum):
    """What the attempts say so far."""

    SETTLED = "settled"
    ELSEWHERE = "elsewhere"  # try it on another card
    AGAIN = "again"  # passed elsewhere: try it by itself on the first card
    CODE = "code"  # the same on another card
    CARD = "card"  # fails on the first card only, by itself as well
    ORDER = "order"  # passes by itself on both: what ran before it, or chance


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a unit."""

    lane: int
    cards: tuple[str, ...]
    manner: Manner


def judge(attempts: Sequence[Attempt]) -> Verdict:
    """The first attempt is the one in the sequence; those after it are checks in processes of their own."""
    first = attempts[0]
    if first.manner is Manner.PASSED:
        return Verdict.SETTLED
    elsewhere = [a for a in attempts[1:] if not set(a.cards) & set(first.cards)]
    again = [a for a in attempts[1:] if set(a.cards) & set(first.cards)]
    if not elsewhere:
        return Verdict.ELSEWHERE
    if elsewhere[0].manner is not Manner.PASSED:
        return Verdict.CODE
    if first.manner in {Manner.HUNG, Manner.HARDWARE}:
        return Verdict.CARD
    if not again:
        return Verdict.AGAIN
    return Verdict.ORDER if again[0].manner is Manner.PASSED else Verdict.CARD


def counts(attempts: Sequence[Attempt], blamed: Collection[str] = ()) -> Attempt:
    """The attempt whose results stand in the run: the first, unless one of its cards was found to blame."""
    first = attempts[0]
    if set(first.cards) & set(blamed) and first.manner is not Manner.PASSED:
        return next((a for a in attempts[1:] if not set(a.cards) & set(first.cards)), first)
    return first


def words_of(unit: str, attempts: Sequence[Attempt]) -> str:
    """The verdict in a sentence; nothing where there is nothing to say."""
    first = attempts[0]
    here, there = ", ".join(first.cards), ", ".join(a.cards[0] for a in attempts[1:] if a.cards != first.cards)
    match judge(attempts):
        case Verdict.CODE:
            return f"{unit} {first.manner} on {here} and does not pass on {there} either: the code, not the card"
        case Verdict.CARD:
            return f"{unit} {first.manner} on {here} and passed on {there}: the card, not the code"
        case Verdict.ORDER:
            return f"{unit} {first.manner} on {here} and passes by itself on both cards: what ran before it, or chance"
        case Verdict.ELSEWHERE | Verdict.AGAIN if first.manner is not Manner.FAILED:
            return f"{unit} {first.manner} on {here}; no other card could be asked"
    return ""


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


Attempts = Mapping[str, Sequence[Attempt]]


def after_attempt(board: Board, attempts: Attempts, unit: Unit) -> tuple[Board, str | None]:
    """The board with the checks that the newest attempt asks for; in words why its first card is to blame, where it is."""
    tried = attempts[unit.name]
    verdict, first = judge(tried), tried[0]
    if verdict is Verdict.ELSEWHERE:
        if first.manner is Manner.FAILED and not _is_first_failure(attempts, unit.name, first.cards):
            return board, None
        others = [card for card in board.cards if card not in first.cards]
        if len(others) < unit.cards:
            return board, None
        if first.manner is not Manner.FAILED:
            board = moves.suspect(board, *first.cards)
        return _again(board, unit, never=frozenset(first.cards)), None
    if verdict is Verdict.AGAIN and first.cards[0] in board.cards:
        return _again(board, unit, only=first.cards[0]), None
    if verdict is Verdict.CARD:
        return board, words_of(unit.name, tried)
    return moves.clear(board, *first.cards), None


def without_card(board: Board, attempts: Attempts, units: Mapping[str, Unit], card: str, why: str) -> Board:
    """The card is taken out; what failed on it and was asked nowhere else runs on another one."""
    board = moves.take_out(board, card, why)
    for name, tried in attempts.items() if board.cards else ():
        waits = any(unit.name == name for unit in board.waiting)
        if len(tried) == 1 and tried[0].manner is Manner.FAILED and card in tried[0].cards and not waits:
            board = _again(board, units[name], never=frozenset({card}))
    return board


def _is_first_failure(attempts: Attempts, name: str, cards: tuple[str, ...]) -> bool:
    """One failing file of each card is asked elsewhere, not all."""
    earlier = [n for n, tried in attempts.items() if tried[0].cards == cards and tried[0].manner is Manner.FAILED]
    return earlier[0] == name


def _again(board: Board, unit: Unit, *, only: str | None = None, never: frozenset[str] = frozenset()) -> Board:
    return moves.add(board, replace(unit, alone=True, only=only, never=never))
