"""What follows from an attempt at a file: another card is asked, the first one by itself, or the card is to blame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from debug_spyre.fleet import board as moves
from debug_spyre.fleet.board import Board, Unit
from debug_spyre.fleet.verdicts import Attempt, Manner, Verdict, judge, words_of

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
