"""A bisection as values: the right commit as often as it says, whatever the history, the flakes and the gaps."""

import random

import pytest
from tests.fleet.drawn_bisections import FAULT, line, merged, most_wrong, search, tried

from debug_spyre.fleet.bisect_record import Record, Seen
from debug_spyre.fleet.bisection import Tally, end_to_run, groups_of, history_of, odds_of, sums
from debug_spyre.vocabulary.errors import RefusedError


@pytest.mark.parametrize("how", [{}, {"rate": 1.0}, {"cards": 4}, {"rate": 0.9, "noise": 0.1}], ids=str)
def test_the_answer_is_wrong_no_oftener_than_the_stated_confidence_says(how):
    wrong, foretold, settled = tried(range(25), **how)
    assert wrong <= most_wrong(foretold) and settled >= 22, (wrong, foretold, settled)


@pytest.mark.long
@pytest.mark.parametrize("how", [{}, {"cards": 4}, {"broken": 0.4}], ids=str)
def test_the_answer_is_wrong_no_oftener_than_the_stated_confidence_says_in_100_draws(how):
    wrong, foretold, settled = tried(range(100), **how)
    assert wrong <= most_wrong(foretold) and settled >= 95, (wrong, foretold, settled)


@pytest.mark.parametrize("seed", range(12))
def test_a_history_with_merges_is_searched_too(seed):
    history = merged(40, random.Random(seed))
    record, fault = search(seed, history=history, rate=1.0)
    among, sure = record.groups[0]
    assert sure >= 0.95 and fault in among, (fault, record.groups[:3])


def test_a_fault_that_always_shows_takes_few_builds_and_runs():
    record, fault = search(3, rate=1.0, broken=0.0)
    assert record.groups[0][0] == (fault,)
    assert len({run.revision for run in record.runs}) <= 12 and len(record.runs) <= 30, len(record.runs)


def test_commits_between_which_nothing_can_be_built_are_named_together():
    history = line(8)
    groups = groups_of(history, [1 / 8] * 8, {"r3", "r4"})
    assert ("r3", "r4", "r5") in [group for group, _ in groups] and len(groups) == 6
    assert sum(odds for _, odds in groups) == pytest.approx(1)


def test_odds_of_a_diamond_follow_its_two_sides():
    history = history_of(["m a b", "b base", "a base", "base good"])
    odds = dict(
        zip(history.revisions, odds_of(history, {"a": Tally(0, 9), "m": Tally(4, 0)}, Tally(0, 9)), strict=True)
    )
    assert odds["b"] > 0.4 and odds["m"] > 0.4 and odds["a"] < 0.01 and odds["base"] < 0.01
    assert sums(history, list(odds.values()))[history.revisions.index("m")] == pytest.approx(1)


@pytest.mark.parametrize(
    ("bad", "good", "says"),
    [
        (Tally(0, 12), Tally(), "there is no fault"),
        (Tally(60, 0), Tally(60, 0), "no difference"),
        (Tally(30, 30), Tally(25, 35), "no difference"),
    ],
)
def test_ends_without_a_difference_are_refused(bad, good, says):
    with pytest.raises(RefusedError, match=says):
        end_to_run(bad, good)


def test_the_good_end_passes_until_chance_is_ruled_out():
    assert end_to_run(Tally(3, 0), Tally(0, 3)) is None
    assert end_to_run(Tally(3, 6), Tally(0, 6)) == "good", "a fault of 1 in 3 hides in six runs once in ten times"


def record_of(*runs, **more):
    history = line(4)
    return Record(
        "good", "r3", history, 0.95, 100, tuple(Seen(r, f"r{n}", keys) for n, (r, keys) in enumerate(runs)), **more
    )


def test_a_revision_that_fails_in_another_way_says_nothing():
    other = ("v2|raised|ImportError",)
    record = record_of(("r3", FAULT), ("r1", other), ("r1", other), ("r1", other), ("r2", ("exit 125",)))
    assert set(record.untestable) == {"r1", "r2"} and "ImportError" in record.untestable["r1"]
    assert set(record.tallies) == {"r3"}


def test_a_good_end_that_fails_in_another_way_ends_the_search():
    record = record_of(*[("r3", FAULT)] * 3, *[("good", ("v2|raised|ImportError",))] * 3)
    with pytest.raises(RefusedError, match="in another way"):
        record.next_run({"r3", "good"}, [], set(), 1.0)
