"""The numbers of every form that the installed torch gives a failed comparison, and numpy's."""

import math

import numpy as np
import pytest
import torch

from debug_spyre.triage.numbers import is_comparison, read_numbers, severity, special_class
from debug_spyre.vocabulary.evidence import Severity

NAN, INF = float("nan"), float("inf")
ones = torch.ones


def message_of(actual, expected, **kw):
    with pytest.raises(AssertionError) as caught:
        torch.testing.assert_close(actual, expected, **kw)
    return str(caught.value)


def changed(index, value, n=8):
    tensor = ones(n)
    tensor[index] = value
    return tensor


EXACT = {"rtol": 0, "atol": 0}
FORMS = [
    ("close", changed(3, 5.0), ones(8), {}, (1, 8, 4.0, 4.0)),
    ("equal", torch.tensor([1, 2, 3]), torch.tensor([1, 2, 13]), EXACT, (1, 3, 10.0, 10 / 13)),
    ("nan", changed(0, NAN), ones(8), {}, (1, 8, NAN, NAN)),
    ("inf", changed(0, INF), ones(8), {}, (1, 8, INF, INF)),
    ("rel-inf", changed(0, 1.0), torch.zeros(8), {}, (8, 8, 1.0, INF)),
    ("bool", torch.tensor([True, False]), torch.tensor([False, False]), {}, (1, 2, None, None)),
    ("one-element", torch.tensor(2.0), torch.tensor(1.0), {}, (None, None, 1.0, 1.0)),
    ("scalar", 4.209150318956745e-06, 1.0341892675569397e-06, {"rtol": 0.05, "atol": 1e-7}, (None, None, 3.174961051399805e-06, 3.07)),
    ("scalar-equal", 4, 16, EXACT, (None, None, 12.0, 0.75)),
    ("scalar-nan", NAN, 9.4, {}, (None, None, NAN, NAN)),
    ("scalar-negative", -3.0, 2.0, {}, (None, None, 5.0, 2.5)),
    ("complex", torch.tensor([1 + 1j]), torch.tensor([1 + 4j]), {}, (1, 1, 3.0, None)),
    ("shape", ones(2, 3), ones(3, 2), {}, (None, None, None, None)),
    ("dtype", ones(2), ones(2, dtype=torch.float16), {}, (None, None, None, None)),
    ("stride", ones(2, 2).t(), ones(2, 2), {"check_stride": True}, None),
    ("sequence", [ones(2), ones(2)], [ones(2), ones(2) * 3], {}, (2, 2, 2.0, 2 / 3)),
    ("length", [ones(2)], [ones(2), ones(2)], {}, (None, None, None, None)),
    ("keys", {"a": ones(1)}, {"b": ones(1)}, {}, (None, None, None, None)),
    ("none", None, ones(1), {}, None),
    ("sparse", ones(4).to_sparse(), (ones(4) * 2).to_sparse(), {}, (4, 4, 1.0, 0.5)),
    ("quantised-shape", torch.zeros(0), ones(1), {}, (None, None, None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("actual", "expected", "kw", "want"), [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_the_numbers_of_each_form_of_torch_are_read(actual, expected, kw, want):
    text = message_of(actual, expected, **kw)
    assert is_comparison(text), text
    if want is None:
        return
    found = read_numbers(text.split("\n"))
    for value, wanted in zip((found.mismatched, found.total, found.max_abs, found.max_rel), want, strict=True):
        if wanted is None:
            continue
        assert value is not None, text
        assert (math.isnan(value) and math.isnan(wanted)) or math.isclose(value, wanted, rel_tol=1e-3), text


def test_a_message_of_ones_own_does_not_hide_the_numbers():
    text = message_of(changed(0, 9.0), ones(8), msg=lambda m: f"compiled spyre <-> cpu mismatch\n\n{m}\n")
    assert read_numbers(text.split("\n")).max_abs == 8.0


def test_numpys_form_is_read():
    with pytest.raises(AssertionError) as caught:
        np.testing.assert_allclose(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.0]), rtol=1e-3)
    text = str(caught.value)
    found = read_numbers(text.split("\n"))
    assert is_comparison(text)
    assert (found.mismatched, found.total, found.max_abs, found.max_rel) == (1, 3, 0.5, 0.2)


@pytest.mark.parametrize("text", ["RuntimeError: shapes", "assert 1 == 2", "FileNotFoundError: x", "difference: x"])
def test_other_texts_are_no_comparison(text):
    assert not is_comparison(text)


def judged(**values):
    lines = []
    if "wrong" in values:
        lines.append(f"Mismatched elements: {values['wrong']} / {values['total']} (0.0%)")
    lines.append(
        f"Greatest absolute difference: {values['abs']} at index (0,) (up to {values.get('allowed', 0.01)} allowed)"
    )
    if "rel" in values:
        lines.append(f"Greatest relative difference: {values['rel']} at index (0,) (up to 0.01 allowed)")
    return severity(read_numbers(lines), "Tensor-likes are not close!", unwritten=False)[0]


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ({"wrong": 100, "total": 100, "abs": 5.0, "rel": 80.0}, Severity.STRUCTURAL),
        ({"wrong": 5, "total": 256, "abs": 0.36, "rel": 127.0, "allowed": 0.2}, Severity.ACCUMULATION),
        ({"wrong": 60, "total": 256, "abs": 0.02, "rel": 0.004}, Severity.ACCUMULATION),
        ({"wrong": 200, "total": 256, "abs": 900.0, "rel": 0.002}, Severity.ACCUMULATION),
        ({"wrong": 2, "total": 1000, "abs": 40.0, "rel": 9.0}, Severity.STRUCTURAL),
        ({"wrong": 64, "total": 64, "abs": 0.5, "rel": 1.0}, Severity.STRUCTURAL),
        ({"wrong": 64, "total": 64, "abs": 0.5, "rel": 30.0}, Severity.STRUCTURAL),
        ({"wrong": 50, "total": 100, "abs": 0.06, "rel": 0.7}, Severity.INCONCLUSIVE),
        ({"wrong": 4, "total": 16, "abs": "nan", "rel": "nan"}, Severity.SPECIAL),
        ({"wrong": 4, "total": 16, "abs": "inf", "rel": "nan"}, Severity.SPECIAL),
    ],
)
def test_severity_follows_ratio_size_and_special_values(values, want):
    assert judged(**values) is want


def test_the_pattern_of_memory_that_was_never_written_is_structural():
    text = "Expected 7 but got -1431655766."
    grade, why = severity(read_numbers([text]), text, unwritten=False)
    assert grade is Severity.STRUCTURAL
    assert "never written" in why


def test_nan_in_part_is_another_defect_than_a_format_without_it():
    assert special_class(INF, 0.6) == special_class(NAN, 1.0) == "saturates"
    assert special_class(NAN, 0.25) == "nan-in-part"


@pytest.mark.parametrize(
    "text",
    [
        "AssertionError: test_x FAILED since output is not close to an expected result",
        "AssertionError: compiled spyre <-> cpu mismatch",
        "AssertionError: spyre vs cpu mismatch",
        "AssertionError: 7 elements exceed atol=0.2 rtol=0.2",
    ],
)
def test_harness_texts_without_numbers_are_comparisons_too(text):
    assert is_comparison(text)
    assert read_numbers([text]).is_empty or "exceed" in text
