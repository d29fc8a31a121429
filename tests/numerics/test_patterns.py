"""Planted patterns are found with their parameters; noise, scatter and outliers show none. Figures are printed."""

import os

import numpy as np
import planted
import pytest

from debug_spyre.numerics.comparison import compare
from debug_spyre.numerics.formats import Values

FACTOR = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
DRAWS = [40, pytest.param(130, marks=pytest.mark.long)] if FACTOR == 1 else [2000]


@pytest.mark.parametrize("draws", DRAWS)
def test_property_planted_patterns_are_found_with_their_parameters(draws, capsys):
    missed = [seed for seed in range(draws) if not planted.judged(seed)[0]]
    with capsys.disabled():
        print(
            f"\npatterns found: {draws - len(missed)} of {draws} ({100 * (1 - len(missed) / draws):.2f} %), missed seeds {missed[:12]}"
        )
    assert len(missed) <= max(0.01 * draws, 2)


@pytest.mark.parametrize("draws", DRAWS)
def test_property_noise_scatter_and_outliers_show_no_pattern(draws, capsys):
    alarms = [seed for seed in range(draws) if planted.alarmed(seed)[0]]
    with capsys.disabled():
        print(f"\nfalse alarms: {len(alarms)} of {draws} ({100 * len(alarms) / draws:.2f} %), seeds {alarms[:12]}")
    assert len(alarms) <= max(0.005 * draws, 1)


def halves(array):
    return Values("float16", array.astype(np.float16).astype(np.float32))


def reference(shape=(8, 96, 64), seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize(
    ("good", "bad", "want"),
    [
        ([0], [2e-5], "inconclusive"),
        ([1, 2, 3, 0], [1, 2, 3, 2e-4], "inconclusive"),
        ([0, 0, 0, 5], [2e-5, 0, 0, 5], "inconclusive"),
        ([1000, 1], [1000, 2], "inconclusive"),  # less than what rounding does to 1000
        ([0], [5], "structural"),
        ([1, 2], [1, 3], "structural"),
        ([7], [0], "structural"),
    ],
)
def test_of_few_elements_a_small_difference_from_zero_is_no_structure(good, bad, want):
    judgement = compare(halves(np.array(bad, float)), halves(np.array(good, float))).judgement
    assert judgement.verdict == want and "inf" not in judgement.reason


def test_several_patterns_at_once_are_told_apart():
    good = reference()
    bad = good.copy()
    bad[2] = 65504
    bad[:, 5::7] = 0
    bad[..., 40] += 3
    found = compare(halves(bad), halves(good)).patterns
    assert {(p.kind, p.axis) for p in found} >= {("slice", 0), ("period", 1), ("slice", 2)}
    assert {p.kind for p in found} >= {"overflow", "zeros", "offset"}


def test_a_stretch_of_the_flat_index_that_no_axis_explains():
    good = reference((50, 70))
    bad = good.copy()
    bad.reshape(-1)[1001:2777] = 9
    (first, *_) = compare(halves(bad), halves(good)).patterns
    assert (first.kind, first.axis, first.start, first.stop) == ("block", None, 1001, 2777)


def test_sticks_are_named():
    good = reference((40, 512))
    bad = good.copy()
    bad.reshape(40, 4, 2, 64)[:, :, 1] = 7
    (first, *_) = compare(halves(bad), halves(good)).patterns
    assert (first.kind, first.period, first.phase, first.width) == ("period", 128, 64, 64)
    assert "sticks" in first.text


def test_a_dropped_storage_offset_is_a_roll_without_wrapping():
    base = reference((65, 40))
    (first, *_) = compare(halves(base[:-1]), halves(base[1:])).patterns
    assert (first.kind, first.axis, first.shift) == ("roll", 0, 1)
    assert "without wrapping" in first.text


@pytest.mark.parametrize("share", [0.001, 0.05, 0.5])
def test_scatter_is_inconclusive_or_structural_but_no_pattern(share):
    good = reference()
    rng = np.random.default_rng(5)
    bad = np.where(rng.random(good.shape) < share, 65504.0, good)
    assert compare(halves(bad), halves(good)).patterns == ()


def test_equal_tensors_are_the_same_whatever_they_hold():
    strange = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 65504.0, 6e-8])
    assert compare(halves(strange), halves(strange)).verdict.value == "same"
    assert compare(halves(strange), halves(strange[::-1])).verdict.value != "same"


def test_integers_are_compared_exactly_beyond_what_floats_hold():
    one = Values("int64", np.array([[2**62, 5], [7, 2**53 + 1]]))
    two = Values("int64", np.array([[2**62 + 1, 5], [7, 2**53]]))
    assert compare(one, two).measured.mismatched == 2


@pytest.mark.parametrize("rtol", [0.1, 0.3])
def test_a_loose_tolerance_does_not_hide_what_is_wrong_with_most_values(rtol):
    good = np.abs(reference()) * 0.2 + 0.05
    bad = good.copy()
    bad[:, 8:] *= 1.9
    found = compare(halves(bad), halves(good), rtol=rtol, atol=0.3)
    assert 0 < found.measured.mismatched < 0.2 * found.measured.total  # the test itself sees only the largest
    assert found.verdict == "structural"
    assert any(p.factor and 1.8 < p.factor < 2.0 for p in found.patterns), found.patterns
    assert "float16's own" in found.judgement.reason


def test_a_loose_tolerance_finds_no_pattern_in_plain_noise():
    rng = np.random.default_rng(3)
    good = reference()
    noise = rng.standard_normal(good.shape) * 0.11
    found = compare(halves(good + noise), halves(good), rtol=0.0, atol=0.3)
    assert found.measured.mismatched
    assert found.patterns == ()


def test_zeros_that_are_right_by_chance_do_not_look_like_a_second_fault():
    good = reference((512, 256))
    good[np.random.default_rng(1).random(good.shape) < 0.002] = 0
    bad = good.copy()
    bad[:, 15:] = 0
    text = compare(halves(bad), halves(good)).patterns[0].text
    assert "exactly zero (123,392 of 123,392 have that value" in text


def test_errors_larger_than_the_values_are_never_called_accumulation():
    rng = np.random.default_rng(5)
    good = reference((64, 1024))
    bad = good * (1 + 0.03 * rng.standard_normal(good.shape))
    places = rng.random(good.shape) < 0.06
    bad[places] += 3 * rng.standard_normal(int(places.sum()))
    assert compare(halves(bad), halves(good)).verdict != "accumulation"
