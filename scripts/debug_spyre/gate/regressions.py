"""What the fix broke in the matrix: new failures told from flakes, worse failures, tests that vanished.

Every repeat of the matrix on the tree counts, before and after: one lucky pass hides nothing, and a flake is one only
if both trees pass and fail the test.
"""

from __future__ import annotations

from dataclasses import dataclass

from debug_spyre.gate.before_after import BeforeAfter
from debug_spyre.runs.transitions import compare_matrix, flips
from debug_spyre.vocabulary.words import FULL_MATRIX, POST_FIX_MATRIX


@dataclass(frozen=True, slots=True)
class Regressions:
    """Node ids by what became of them."""

    new: tuple[str, ...] = ()  # passed before, fail now in every repeat
    unsteady: tuple[str, ...] = ()  # pass and fail now; before they did not
    worse: tuple[str, ...] = ()  # failed before, fail in a worse way now
    vanished: tuple[str, ...] = ()  # had an outcome, now skipped, xfailed or none; members are judged elsewhere
    unclear: tuple[str, ...] = ()  # fail now, no outcome before
    flaky: tuple[str, ...] = ()  # pass and fail in both trees

    @property
    def nodeids(self) -> tuple[str, ...]:
        """All that shut the gate."""
        return tuple(dict.fromkeys((*self.new, *self.unsteady, *self.worse, *self.vanished)))

    @property
    def only_unsteady(self) -> bool:
        """More runs of the tree at open may still show them as flakes."""
        return bool(self.unsteady) and not (self.new or self.worse or self.vanished)


def regressions(m: BeforeAfter) -> Regressions | None:
    """The matrix after the fix against the matrix before it; None where one of them is missing."""
    before, after = m.before_matrix, m.after_matrix
    if before is None or before.sight is None or after is None or after.sight is None:
        return None
    befores = m.repeats(before, FULL_MATRIX, members_only=False) or [before.sight]
    afters = m.repeats(after, POST_FIX_MATRIX, members_only=False) or [after.sight]
    pairs = [[compare_matrix(one, sight) for one in befores] for sight in afters]
    members = {x.nodeid for x in m.session.members}
    fails = dict.fromkeys(n for row in pairs for change in row for n in change.new)
    flaky = [n for n in fails if flips(n, afters) and flips(n, befores)]
    unsteady = [n for n in fails if n not in flaky and flips(n, afters)]
    # worse only if no earlier failure was as bad
    worse = [n for row in pairs for n, _ in row[-1].worse if not any(n in change.still for change in row)]
    return Regressions(
        new=tuple(n for n in fails if n not in flaky and n not in unsteady),
        unsteady=tuple(unsteady),
        worse=tuple(dict.fromkeys(worse)),
        vanished=tuple(dict.fromkeys(n for row in pairs for n, _ in row[-1].vanished if n not in members)),
        unclear=tuple(dict.fromkeys(n for row in pairs for n in row[-1].unclear if n not in fails)),
        flaky=tuple(flaky),
    )
