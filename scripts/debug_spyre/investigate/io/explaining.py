"""How a condition judges what the search has not seen: the other lines of the ledger, and each failing test."""

from __future__ import annotations

from collections.abc import Sequence

from debug_spyre.examine.condition import Condition
from debug_spyre.examine.features import features, packet_of
from debug_spyre.examine.io.engine import Engine
from debug_spyre.examine.io.one_call import CallCause
from debug_spyre.examine.search import Answer
from debug_spyre.investigate.ledger import Ledger


def explains(
    engine: Engine, cause: CallCause, condition: Condition, tests: Sequence[str], ledger: Ledger
) -> tuple[dict[str, int], list[str]]:
    """How the condition judges what it has not seen: all lines of the ledger of this op; and the tests left over."""
    lines = ledger.of_op(packet_of(cause.call["op"]))
    missing = [line for line in lines if not line.out]
    shapes = engine.verdicts([line.call for line in missing], only_shapes=True)
    outs = {id(line): verdict.out for line, verdict in zip(missing, shapes, strict=True)}
    place = cause.space.dim_place if cause.space else None
    predicted = {
        (line.number, line.verdict): condition.holds(
            features(line.call, line.out or outs.get(id(line), ()), dim_place=place)
        )
        for line in lines
    }
    bad = "refused" if cause.bad is Answer.REFUSED else "wrong"
    left = [
        test
        for test in tests
        if not any(predicted.get((m.number, m.verdict)) for m in ledger.met_by(test) if m.verdict == bad)
    ]
    others = [line for line in lines if line.verdict in {bad, "right"}]
    were = [line for line in others if line.verdict == bad]
    wrong = [line for line in others if predicted[line.number, line.verdict] != (line.verdict == bad)]
    numbers = {
        "tests": len(tests) - len(left),
        "of": len(tests),
        "calls": len(others) + (cause.found.unseen if cause.found else 0),
        "predicted_wrong": sum(predicted[x.number, x.verdict] for x in others)
        + (cause.found.unseen_wrong if cause.found else 0),
        "were_wrong": len(were) + (cause.found.unseen_wrong if cause.found else 0),
        "contradictions": len(wrong),
    }
    return numbers, left
