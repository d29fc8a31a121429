"""Are the runs before and after the fix comparable at all? Asked before any outcome is looked at."""

from __future__ import annotations

from debug_spyre.gate.before_after import BeforeAfter, Measure
from debug_spyre.gate.close_request import BASELINE_MEMBERS, OPEN, SHUT, UNKNOWN, VALIDATE, Condition, matrix_command
from debug_spyre.gate.gate_state import is_declared
from debug_spyre.vocabulary.conditions import BACKEND, Conditions, Difference, differences

SHOWN = 3
_OF_THE_BACKEND = f"package {BACKEND}"


def same_conditions(m: BeforeAfter) -> Condition:
    """Variables, loaded files, plugins, configuration, search path and torch-spyre were the same before and after."""
    code = "same-conditions"
    pairs = ((m.before_members, m.after_members), (m.before_matrix, m.after_matrix))
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not known:
        return Condition(code, UNKNOWN, "no runs before and after to compare", next=VALIDATE)
    untold = [x for pair in known for x in pair if conditions_of(x) is None]
    if untold:
        again = BASELINE_MEMBERS if untold[0] is m.before_members else matrix_command(m.session)
        following = f"debug-spyre revert, then {again}" if untold[0] in m.before else VALIDATE
        return Condition(code, UNKNOWN, f"{untold[0].run.id} did not tell its conditions", next=following)
    for one, other in known:
        found = [d for d in found_differences(one, other) if not (d.name == _OF_THE_BACKEND and is_declared(m))]
        if found:
            text = f"{other.run.id} ran under other conditions than {one.run.id}: {says(found)}"
            return Condition(code, SHUT, text, next=f"undo the difference, then {VALIDATE}")
    return Condition(code, OPEN, f"the same conditions in {' and '.join(f'{a.run.id}/{b.run.id}' for a, b in known)}")


def conditions_of(measure: Measure) -> Conditions | None:
    """What the run told of itself."""
    return measure.sight.evidence.conditions if measure.sight is not None else None


def found_differences(one: Measure, other: Measure) -> tuple[Difference, ...]:
    """How the conditions of two runs differ; nothing where one of them is not known."""
    before, after = conditions_of(one), conditions_of(other)
    return () if before is None or after is None else differences(before, after)


def says(found: list[Difference]) -> str:
    """The differences by name, the first few in full."""
    told = "; ".join(f"{d.name}: {d.text}" for d in found[:SHOWN])
    return told if len(found) <= SHOWN else f"{told}; and {len(found) - SHOWN} more"
