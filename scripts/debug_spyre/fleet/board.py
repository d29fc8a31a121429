"""Which file runs on which card: the state of a spread matrix and its moves, as values.

A lane is one pytest process on one card, or on k cards for tests that need k. Long files go first, those that need several
cards before all others: a lane that asks for work while such a file waits for cards is ended instead, so no file starves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Unit:
    """One test file to run, or a recorded sequence of files. `alone`: in a process of its own; `only` and `never`: where."""

    name: str
    files: tuple[str, ...] = ()  # of a sequence; else the name is the file
    cards: int = 1
    seconds: float = 1.0
    alone: bool = False
    only: str | None = None
    never: frozenset[str] = frozenset()

    def fits(self, cards: tuple[str, ...]) -> bool:
        """Whether it may run on these cards."""
        return not self.never & set(cards) and (self.only is None or self.only in cards)


@dataclass(frozen=True, slots=True)
class Lane:
    """One process: its cards, what it was given in order, what of that is not done yet."""

    number: int
    cards: tuple[str, ...]
    given: tuple[str, ...] = ()
    open: tuple[Unit, ...] = ()  # begun or promised, not done
    reserved: Unit | None = None  # what it was started for
    ending: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """All cards in service, the files that wait, and the lanes that live."""

    cards: tuple[str, ...]
    waiting: tuple[Unit, ...] = ()
    lanes: tuple[Lane, ...] = ()
    number: int = 0
    held_back: frozenset[str] = frozenset()  # cards under suspicion: they get nothing but what names them
    out: dict[str, str] = field(default_factory=dict)  # card -> why it was taken out
    hosts: Mapping[str, str] = field(default_factory=dict)  # card -> its host, where there are several

    @property
    def free(self) -> tuple[str, ...]:
        """Cards in service without a lane, in order."""
        busy = {card for lane in self.lanes for card in lane.cards}
        return tuple(card for card in self.cards if card not in busy)

    @property
    def most(self) -> int:
        """The most cards that one host has in service: tests that need several get them on one host."""
        return max(map(len, self.by_host(self.cards).values()), default=0)

    def by_host(self, cards: Iterable[str]) -> dict[str, list[str]]:
        """These cards by their host."""
        found: dict[str, list[str]] = {}
        for card in cards:
            found.setdefault(self.hosts.get(card, ""), []).append(card)
        return found

    def lane(self, number: int) -> Lane:
        """The lane of that number."""
        return next(lane for lane in self.lanes if lane.number == number)

    def is_over(self) -> bool:
        """Nothing waits and nothing runs."""
        return not self.waiting and not self.lanes


def add(board: Board, *units: Unit) -> Board:
    """More files to run; one that needs more cards than there are gets all of them."""
    most = max(board.most, 1)
    fitted = [replace(unit, cards=min(unit.cards, most)) for unit in units]
    return replace(board, waiting=tuple(sorted([*board.waiting, *fitted], key=lambda u: (-u.cards, -u.seconds))))


def open_lane(board: Board) -> tuple[Board, Lane | None]:
    """The next process to start now, if there is one."""
    for unit in board.waiting:
        usable = board.by_host(card for card in board.free if _usable(board, unit, card))
        cards = next((tuple(found[: unit.cards]) for found in usable.values() if len(found) >= unit.cards), None)
        if cards is None:
            if unit.cards > 1:
                return board, None  # its cards are being gathered: nobody else gets them
            continue
        lane = Lane(board.number + 1, cards, reserved=unit)
        waiting = _without(board.waiting, unit)
        return replace(board, waiting=waiting, lanes=(*board.lanes, lane), number=lane.number), lane
    return board, None


def open_lanes(board: Board) -> tuple[Board, list[Lane]]:
    """All processes to start now."""
    lanes: list[Lane] = []
    while True:
        board, lane = open_lane(board)
        if lane is None:
            return board, lanes
        lanes.append(lane)


def ask(board: Board, number: int) -> tuple[Board, Unit | None]:
    """What the lane runs next; None ends it."""
    lane = board.lane(number)
    unit = lane.reserved
    waiting = board.waiting
    if unit is None and not lane.ending and not any(u.alone for u in lane.open):
        unit = _next_for(board, lane)
        waiting = _without(board.waiting, unit) if unit else waiting
    if unit is None:
        now = replace(lane, ending=True)
    else:
        now = replace(lane, given=(*lane.given, unit.name), open=(*lane.open, unit), reserved=None, ending=unit.alone)
    return _put(replace(board, waiting=waiting), now), unit


def done(board: Board, number: int, name: str) -> Board:
    """The lane has finished that file."""
    lane = board.lane(number)
    return _put(board, replace(lane, open=tuple(unit for unit in lane.open if unit.name != name)))


def ended(board: Board, number: int) -> tuple[Board, tuple[Unit, ...]]:
    """The lane's process is gone; returns also what it had begun, or was to begin, and did not finish (in that order)."""
    lane = board.lane(number)
    left = (*lane.open, *((lane.reserved,) if lane.reserved else ()))
    return replace(board, lanes=tuple(other for other in board.lanes if other.number != number)), left


def suspect(board: Board, *cards: str) -> Board:
    """These cards get nothing but what names them until they are cleared or taken out."""
    return replace(board, held_back=board.held_back | set(cards))


def clear(board: Board, *cards: str) -> Board:
    """Back in service."""
    return replace(board, held_back=board.held_back - set(cards))


def take_out(board: Board, card: str, why: str) -> Board:
    """The card gets nothing any more; what was bound to it may run anywhere, what needs more cards than are left gets all."""
    board = lose(board, card)
    return replace(board, out={**board.out, card: why})


def lose(board: Board, card: str) -> Board:
    """The card is gone, and nothing is said against it."""
    cards = tuple(other for other in board.cards if other != card)
    most = max(replace(board, cards=cards).most, 1)
    waiting = tuple(
        replace(
            unit,
            only=None if unit.only == card else unit.only,
            cards=min(unit.cards, most),
            never=frozenset() if set(cards) <= unit.never else unit.never,
        )
        for unit in board.waiting
    )
    held = board.held_back - {card}
    return replace(board, cards=cards, waiting=waiting, held_back=held)


def _next_for(board: Board, lane: Lane) -> Unit | None:
    """The first waiting file that fits the lane, unless the lane's cards are wanted for a file that needs more of them."""
    ending = [card for other in board.lanes if other.ending for card in other.cards]
    coming = {host: len(found) for host, found in board.by_host([*board.free, *ending]).items()}
    there = board.by_host(board.cards)
    mine = board.hosts.get(lane.cards[0], "")
    for unit in board.waiting:
        if unit.cards > len(lane.cards):
            able = [host for host, found in there.items() if len(found) >= unit.cards]
            host = max(able, key=lambda name: coming.get(name, 0), default=mine)
            enough = coming.get(host, 0) >= unit.cards
            if host == mine and not enough and any(_usable(board, unit, card) for card in lane.cards):
                return None
            coming[host] = coming.get(host, 0) - unit.cards
            continue
        if unit.cards == len(lane.cards) and not unit.alone and unit.fits(lane.cards):
            if unit.only is None and board.held_back & set(lane.cards):
                return None
            return unit
    return None


def _usable(board: Board, unit: Unit, card: str) -> bool:
    if not unit.fits((card,)) and not (unit.cards > 1 and card not in unit.never):
        return False
    if card not in board.held_back or unit.only == card:
        return True
    # every card is under suspicion: a check may run on another suspect, for else nothing would ever be known
    return unit.alone and set(board.cards) <= board.held_back


def _without(units: tuple[Unit, ...], unit: Unit) -> tuple[Unit, ...]:
    at = units.index(unit)
    return (*units[:at], *units[at + 1 :])


def _put(board: Board, lane: Lane) -> Board:
    return replace(board, lanes=tuple(lane if other.number == lane.number else other for other in board.lanes))
