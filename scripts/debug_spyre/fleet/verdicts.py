"""The card or the code? What the attempts at one file on several cards say together."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

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
