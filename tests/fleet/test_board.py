"""The moves of a spread matrix, simulated without processes: nothing lost, nothing twice, no starving, near the ideal schedule."""

import heapq
import random

import pytest

from debug_spyre.fleet import board as moves
from debug_spyre.fleet.board import Board, Unit
from debug_spyre.fleet.verdicts import Attempt, Manner, Verdict, counts, judge, words_of


def simulate(units, cards, start=0.0):
    """Seconds until all units have run, each lane asking for its next file when it is in the last one's last test."""
    board = moves.add(Board(tuple(f"card {n}" for n in range(cards))), *units)
    now, order, events, ran = 0.0, 0, [], []
    while True:
        while True:
            board, lane = moves.open_lane(board)
            if lane is None:
                break
            order += 1
            heapq.heappush(events, (now + start, order, lane.number, None))
        if not events:
            return now, ran, board
        now, _, number, unit = heapq.heappop(events)
        if unit is not None:
            board = moves.done(board, number, unit.name)
            ran.append((unit.name, board.lane(number).cards))
        board, following = moves.ask(board, number)
        if following is None:
            board, left = moves.ended(board, number)
            assert not left
        else:
            order += 1
            heapq.heappush(events, (now + following.seconds, order, number, following))


@pytest.mark.parametrize("seed", range(30))
def test_every_file_runs_once_on_as_many_cards_as_it_needs_within_fifteen_percent_of_the_ideal(seed):
    draw = random.Random(seed)
    units = [Unit(f"test_{n}.py", seconds=sum(draw.uniform(0.5, 8) for _ in range(4))) for n in range(60)]
    seconds, ran, board = simulate(units, 8, start=2.0)
    assert sorted(name for name, _ in ran) == sorted(unit.name for unit in units) and board.is_over()
    ideal = sum(unit.seconds for unit in units) / 8 + 2.0
    assert seconds <= 1.15 * ideal, (seconds, ideal)


@pytest.mark.parametrize("seed", range(30))
def test_files_that_need_several_cards_never_starve(seed):
    draw = random.Random(seed)
    units = [Unit(f"{n}", cards=draw.choice([1, 1, 1, 2, 4, 8]), seconds=draw.uniform(1, 9)) for n in range(40)]
    _, ran, board = simulate(units, 8, start=1.0)
    assert board.is_over() and len(ran) == 40
    needs = {unit.name: unit.cards for unit in units}
    assert all(len(cards) == needs[name] and list(cards) == sorted(cards) for name, cards in ran)


def test_a_file_that_comes_back_while_all_cards_work_gets_its_cards_before_new_narrow_work():
    board = moves.add(Board(("a", "b")), *(Unit(f"n{n}") for n in range(6)))
    board, one = moves.open_lane(board)
    board, two = moves.open_lane(board)
    board, _ = moves.ask(board, one.number)
    board, _ = moves.ask(board, two.number)
    board = moves.add(board, Unit("wide", cards=2))
    board, following = moves.ask(board, one.number)
    assert following is None
    board, _ = moves.ended(board, one.number)
    board, lane = moves.open_lane(board)
    assert lane is None or "b" not in lane.cards
    board, following = moves.ask(board, two.number)
    assert following is None


def attempts(*steps):
    return [Attempt(n, (card,), manner) for n, (card, manner) in enumerate(steps)]


P, F, D, H, B = Manner.PASSED, Manner.FAILED, Manner.DIED, Manner.HUNG, Manner.HARDWARE


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [
        ([("a", P)], Verdict.SETTLED),
        ([("a", F)], Verdict.ELSEWHERE),
        ([("a", F), ("b", F)], Verdict.CODE),
        ([("a", D), ("b", D)], Verdict.CODE),
        ([("a", H), ("b", P)], Verdict.CARD),
        ([("a", B), ("b", P)], Verdict.CARD),
        ([("a", F), ("b", P)], Verdict.AGAIN),
        ([("a", F), ("b", P), ("a", F)], Verdict.CARD),
        ([("a", F), ("b", P), ("a", P)], Verdict.ORDER),
    ],
)
def test_the_card_or_the_code(steps, verdict):
    tried = attempts(*steps)
    assert judge(tried) is verdict
    assert counts(tried) is tried[0]
    if verdict is Verdict.CARD:
        assert counts(tried, {"a"}) is tried[1] and "the card, not the code" in words_of("x", tried)
