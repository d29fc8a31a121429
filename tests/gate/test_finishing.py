"""finish: which steps, which status, which labels; one rule for work-arounds whether or not a flag was given."""

import itertools

import pytest

from debug_spyre.gate import finishing
from debug_spyre.vocabulary.words import Status

NO = dict.fromkeys(("is_changed", "is_reverted", "is_backend", "has_repro", "has_bundle", "approved"), False)


@pytest.mark.parametrize(
    ("what", "steps", "status"),
    [
        ({}, (), None),
        ({"is_backend": True}, ("repro", "escalate", "close"), Status.BLOCKED),
        ({"is_backend": True, "has_repro": True}, ("escalate", "close"), Status.BLOCKED),
        ({"is_backend": True, "has_repro": True, "has_bundle": True}, ("close",), Status.BLOCKED),
        ({"is_changed": True}, ("validate", "revert", "close"), Status.RESOLVED),
        ({"is_changed": True, "approved": True}, ("validate", "close"), Status.RESOLVED),
        ({"is_reverted": True}, ("close",), Status.RESOLVED),
        (
            {"is_changed": True, "is_backend": True, "has_repro": True},
            ("validate", "revert", "escalate", "close"),
            Status.BLOCKED,
        ),
        (
            {"is_changed": True, "is_backend": True, "has_repro": True, "approved": True},
            ("validate", "escalate", "close"),
            Status.RESOLVED,
        ),
    ],
)
def test_the_steps_follow_from_what_was_proved_and_changed(what, steps, status):
    plan = finishing.plan(**{**NO, **what})
    assert (plan.steps, plan.status) == (steps, status) and plan.why


def test_property_a_backend_bug_is_resolved_only_with_a_persons_approval_and_goes_to_its_team_once():
    for values in itertools.product([False, True], repeat=len(NO)):
        given = dict(zip(NO, values, strict=True))
        plan = finishing.plan(**given)
        if given["is_backend"]:
            packed = given["has_bundle"] and not given["is_changed"]
            assert ("escalate" in plan.steps) is not packed
            assert (plan.status is Status.RESOLVED) <= given["approved"]
        if plan.status is not None:
            assert plan.steps[-1] == "close"
        assert ("revert" in plan.steps) <= ("validate" in plan.steps)


@pytest.mark.parametrize(
    ("cause", "is_backend"),
    [
        ({"manner": "wrong-values", "control": "passes"}, True),
        ({"manner": "refused", "control": "stopped-elsewhere"}, False),
        ({"manner": "host-logic", "control": "fails-alike"}, False),
        ({"manner": "stale-mark", "control": None}, False),
        ({"manner": "crash", "control": None}, True),
    ],
)
def test_where_a_cause_lies_follows_from_its_manner_and_its_control(cause, is_backend):
    assert (finishing.backend_cause([cause]) is not None) is is_backend


def test_the_retrospective_takes_the_proved_sentence_and_never_a_located_one():
    located, proved = {"claim": "located", "sentence": "perhaps"}, {"claim": "cause", "sentence": "mean adds half"}
    assert finishing.cause_text([located]) is None
    assert finishing.cause_text([located, proved]) == "mean adds half"
