"""From a ledger to drafts of causes: what belongs together, and what a torn ledger loses."""

import json

from debug_spyre.investigate.causes import draft_causes, read_ledger


def lines(*rows):
    return [json.dumps(row) for row in rows]


def met(n, op, test, verdict="wrong", said=None, suspect=None):
    return {"n": n, "verdict": verdict, "op": op, "site": f"m.py:{n}", "nodeid": test, "said": said, "suspect": suspect}


def of(*rows, outcomes=None):
    return read_ledger(lines(*rows), outcomes or {})


def test_tests_whose_first_wrong_op_is_one_are_one_cause_whatever_their_clusters():
    ledger = of(met(1, "aten.mul.Tensor", "a"), met(1, "aten.mul.Tensor", "b"), met(2, "aten.mul_.Tensor", "c"))
    (draft,) = draft_causes(["a", "b", "c"], ledger, {"a": "c1", "b": "c3", "c": "c1"})
    assert draft.tests == ("a", "b", "c") and draft.clusters == ("c1", "c3") and draft.packet == "aten.mul"


def test_two_refusals_of_one_op_with_other_words_are_two_causes():
    ledger = of(
        met(1, "aten.add.Tensor", "a", "refused", "Unsupported: add on DataFormats.IEEE_INT32"),
        met(
            2,
            "aten.add.Tensor",
            "b",
            "refused",
            "Unsupported: graph input arg0_1 has a non-stick-aligned device stick coordinate",
        ),
        met(
            3,
            "aten.add.Tensor",
            "c",
            "refused",
            "Unsupported: graph input arg3_1 has a non-stick-aligned device stick coordinate",
        ),
    )
    drafts = draft_causes(["a", "b", "c"], ledger, {})
    assert sorted(d.tests for d in drafts) == [("a",), ("b", "c")]


def test_a_test_with_two_wrong_ops_belongs_to_both():
    ledger = of(met(1, "aten.mul.Tensor", "a"), met(2, "aten.mean.dim", "a"), met(2, "aten.mean.dim", "b"))
    assert {d.packet: d.tests for d in draft_causes(["a", "b"], ledger, {})} == {
        "aten.mean": ("a", "b"),
        "aten.mul": ("a",),
    }


def test_without_a_wrong_op_the_outcome_op_by_op_says_where_to_look():
    ledger = of(outcomes={"clean": "passed", "fails": "failed"})
    drafts = draft_causes(["clean", "fails", "gone", "mark", "dead"], ledger, {}, stale=("mark",), died="dead")
    assert {d.kind: d.tests for d in drafts} == {
        "passes-op-by-op": ("clean",), "fails-op-by-op": ("fails",), "unseen": ("gone",), "stale-mark": ("mark",), "died": ("dead",),
    }  # fmt: skip


def test_a_torn_ledger_loses_its_torn_line_only():
    call = {"op": "aten.mul.Tensor", "args": [], "kwargs": {}}
    whole = lines(
        {"n": 1, "verdict": "right", "call": call, "out": [], "site": "m.py:1"}, met(2, "aten.mul.Tensor", "a")
    )
    ledger = read_ledger([*whole, '{"n": 3, "verd'], {})
    assert [line.number for line in ledger.lines] == [1] and [m.number for m in ledger.meetings] == [2]


def test_the_call_whose_values_were_kept_stands_for_its_cause():
    ledger = of(met(1, "aten.mul.Tensor", "a"), met(2, "aten.mul.Tensor", "b", suspect="1"))
    (draft,) = draft_causes(["a", "b"], ledger, {})
    assert draft.first.number == 2
