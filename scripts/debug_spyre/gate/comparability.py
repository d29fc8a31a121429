"""Are the runs before and after the fix comparable at all? Asked before any outcome is looked at."""

from __future__ import annotations

import shlex

from debug_spyre.gate.before_after import BeforeAfter, differing
from debug_spyre.gate.close_request import BASELINE_MEMBERS, OPEN, SHUT, UNKNOWN, VALIDATE, Condition, matrix_command
from debug_spyre.gate.gate_state import is_declared
from debug_spyre.vocabulary.conditions import BACKEND, Difference
from debug_spyre.vocabulary.words import POST_FIX

SHOWN = 3
_OF_THE_BACKEND = f"package {BACKEND}"


def same_conditions(m: BeforeAfter) -> Condition:
    """Variables, loaded files, plugins, configuration, search path and torch-spyre were the same before and after."""
    code = "same-conditions"
    pairs = ((m.before_members, m.after_members), (m.before_matrix, m.after_matrix))
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not known:
        return Condition(code, UNKNOWN, "no runs before and after to compare", next=VALIDATE)
    untold = [x for pair in known for x in pair if x.conditions is None]
    if untold:
        again = BASELINE_MEMBERS if untold[0] is m.before_members else matrix_command(m.session)
        following = f"debug-spyre revert, then {again}" if untold[0] in m.before else VALIDATE
        return Condition(code, UNKNOWN, f"{untold[0].run.id} did not tell its conditions", next=following)
    for one, other in known:
        found = [d for d in differing(one, other) if not (d.name == _OF_THE_BACKEND and is_declared(m))]
        if found:
            text = f"{other.run.id} ran under other conditions than {one.run.id}: {says(found)}"
            return Condition(code, SHUT, text, next=f"undo the difference, then {VALIDATE}")
    return Condition(code, OPEN, f"the same conditions in {' and '.join(f'{a.run.id}/{b.run.id}' for a, b in known)}")


def tries(m: BeforeAfter) -> Condition:
    """A pass after red tries may be luck, on whichever tree they were: the members then pass once more for each, twice at most."""
    code, found = "tries", m.tries
    if m.after_members is None:
        return Condition(code, UNKNOWN, "the members were not run with the fix in place", next=VALIDATE)
    runs = len(m.repeats(m.after_members, POST_FIX, members_only=True) or [m.after_members])
    if runs < found.passes_needed:
        text = f"{found.says()}: the members have to pass in {found.passes_needed} runs of this tree, {runs} so far"
        return Condition(code, UNKNOWN, text, next=VALIDATE)
    return Condition(code, OPEN, f"{found.says()}; {runs} runs of the members on this tree")


def matrix_covers(m: BeforeAfter) -> Condition:
    """The matrix before the fix has every test that triage, or an earlier matrix of the session, ran."""
    code, before = "matrix-covers", m.before_matrix
    if before is None or before.sight is None:
        return Condition(code, UNKNOWN, "the matrix was not run before the fix", next=matrix_command(m.session))
    if m.left_out is not None:
        wider, missing = m.left_out
        text = f"{before.run.id} leaves out {len(missing)} of the {len(wider.scope.nodeids)} tests of {wider.run.id}"
        words = wider.run.pytest_args or m.session.matrix or ("PYTEST-ARGS",)
        again = " ".join(("debug-spyre run --as full-matrix", *map(shlex.quote, words)))
        return Condition(code, SHUT, text, missing, f"debug-spyre revert, then {again}")
    return Condition(code, OPEN, f"no earlier matrix has a test that {before.run.id} lacks")


def says(found: list[Difference]) -> str:
    """The differences by name, the first few in full."""
    told = "; ".join(f"{d.name}: {d.text}" for d in found[:SHOWN])
    return told if len(found) <= SHOWN else f"{told}; and {len(found) - SHOWN} more"
