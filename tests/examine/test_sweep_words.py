"""From the points of a sweep to the condition in words."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_spyre.examine.sweep_report import relation_of, summary

SIZES = [
    1,
    2,
    3,
    8,
    16,
    32,
    48,
    63,
    64,
    65,
    80,
    96,
    100,
    127,
    128,
    129,
    160,
    192,
    200,
    255,
    256,
    257,
    300,
    320,
    511,
    512,
    513,
    640,
]


def sizes(is_wrong, group="0.-1"):
    return [
        {
            "key": f"size {group}|{n}",
            "family": f"size {group}",
            "label": str(n),
            "size": n,
            "group": [[0, 1]],
            "wrong": is_wrong(n),
        }
        for n in SIZES
    ]


def other(family, label, wrong, **more):
    return {"key": f"{family}|{label}", "family": family, "label": label, "wrong": wrong, **more}


@given(st.integers(0, 639))
def test_property_a_threshold_lies_between_the_sizes_that_were_tried(threshold):
    relation, value, over = relation_of({n: n > threshold for n in [*SIZES, threshold, threshold + 1] if n})
    assert (relation, over) == ((">", None) if threshold else ("always", None))
    assert value == (threshold or None)


@given(st.sampled_from([64, 32, 128, 16]), st.booleans())
def test_property_divisibility_is_told(modulus, multiple):
    answers = {n: (n % modulus == 0) == multiple for n in SIZES}
    assert relation_of(answers) == ("%" if multiple else "!%", modulus, None)


def test_all_right_and_all_wrong():
    assert relation_of(dict.fromkeys(SIZES, False)) is None
    assert relation_of(dict.fromkeys(SIZES, True)) == ("always", None, None)


def test_what_no_rule_explains_is_listed():
    assert relation_of({1: False, 2: True, 3: False, 7: True, 8: False})[0] == "listed"


def test_the_sentence_of_a_partial_sum():
    points = [
        *sizes(lambda n: n > 128),
        *sizes(lambda n: True, "0.-2"),
        other("contribution", "192", True, size=192, missing=[[96, 192]]),
        other("contribution", "384", True, size=384, missing=[[192, 384]]),
        other("dims", "dim -2 of [192, 192]", False),
        other("dims", "dim -1 of [192, 192]", True),
        other("neighbour", "aten.sum.dim_IntList", False),
    ]
    found = summary("aten.mean.dim", points)
    assert (
        found["text"]
        == "aten.mean.dim adds only the first half when the last dimension of argument 0 is longer than 128"
    )
    assert found["condition"] == {
        "where": "the last dimension of argument 0",
        "relation": ">",
        "value": 128,
        "over": None,
        "sizes": [n for n in SIZES if n > 128],
    }
    assert "dims: right: dim -2; wrong: dim -1" in found["lines"]


def test_a_fault_of_views_is_no_fault_of_sizes():
    points = [
        other("given", "as given", True), other("given", "random data", True), other("given", "contiguous", False),
        *sizes(lambda n: False),
        other("view", "argument 0 transposed", True), other("view", "argument 0 sliced", False),
    ]  # fmt: skip
    assert (
        summary("aten.mm.default", points)["text"]
        == "aten.mm is wrong only with argument 0 transposed; right with contiguous inputs"
    )


def test_an_order_effect_is_told_before_sizes():
    points = [
        *sizes(lambda n: n > 3),
        other("order", "many rows alone", False),
        other("order", "many rows after few", True, pattern="axis 0 from 2 on: exactly zero"),
    ]
    assert "after a call with fewer rows" in summary("aten.mul.Tensor", points)["text"]


def test_a_threshold_between_the_widths_is_no_order_effect():
    points = [
        *sizes(lambda n: n > 74),
        other("order", "many rows alone", False), other("order", "many rows after few", True),
        other("order", "many rows alone, wider", True),
    ]  # fmt: skip
    assert "longer than" in summary("aten.amax.default", points)["text"]


def test_nothing_wrong_and_nothing_compared_are_two_answers():
    assert "is right at every point" in summary("aten.exp.default", sizes(lambda n: False))["text"]
    assert (
        "nothing could be compared"
        in summary("aten.exp.default", [other("given", "as given", None, error="x")])["text"]
    )
    assert summary("aten.exp.default", [])["wrong"] is False


@pytest.mark.parametrize("cut", [False, True])
def test_a_cut_sweep_says_so(cut):
    points = sizes(lambda n: False) + ([other("end", "budget", None)] if cut else [])
    found = summary("aten.exp.default", points)
    assert found["complete"] is not cut
    assert any("--resume" in line for line in found["lines"]) is cut


def refused(family, label, **more):
    return {
        "family": family,
        "label": label,
        "wrong": None,
        "refused": True,
        "error": "InductorError: no layout",
        **more,
    }


def test_a_call_that_the_card_refuses_is_swept_for_the_sizes_that_it_refuses():
    points = [
        refused("given", "as given"),
        *(refused("size 0.-1", str(n), size=n) if n % 64 else point for n, point in zip(SIZES, sizes(lambda n: False))),
        other("neighbour", "aten.exp.default", False),
        refused("dtype", "float32"),
    ]
    found = summary("aten.silu.default", points)
    assert found["refused"] and not found["wrong"]
    assert (
        found["text"] == "aten.silu is refused on the card when the last dimension of argument 0 is no multiple of 64"
    )
    assert found["condition"]["value"] == 64
    assert "types: refused in all 1: float32" in found["lines"]
    assert "0 wrong" in found["lines"][-1]


def test_a_variant_that_is_refused_is_no_refusal_of_the_call():
    found = summary("aten.mm.default", [other("given", "as given", False), refused("dtype", "float32")])
    assert not found["refused"]
    assert "is right at every point that was compared" in found["text"]


def test_points_written_after_a_line_that_was_cut_off_are_not_lost(tmp_path, monkeypatch):
    inside = Path(__file__).resolve().parents[2] / "scripts" / "debug_spyre" / "inside"
    monkeypatch.syspath_prepend(str(inside))
    monkeypatch.setitem(sys.modules, "debug_spyre_points", SimpleNamespace(fills_of=None, run_point=None))
    monkeypatch.delitem(sys.modules, "debug_spyre_ledger", raising=False)
    from debug_spyre_ledger import Ledger

    path = tmp_path / "sweep.jsonl"
    path.write_text('{"key": "size|64", "wrong": false}\n{"key": "size|12', encoding="utf-8")
    ledger = Ledger({"call": {}}, str(path))
    ledger.say("size", "256", {"wrong": True})
    ledger.stream.close()
    monkeypatch.delitem(sys.modules, "debug_spyre_ledger")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["key"] == "size|64" and json.loads(lines[-1])["key"] == "size|256"
