"""The runs that the gate compares: members and matrix, before the fix and after it, each with its evidence.

Only finished, valid runs count; of several the newest on the tree in question. A run without readable evidence
is kept as such, so that its answer is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from debug_spyre.runs.pytest_words import Relation, Scope, relation, scope_of
from debug_spyre.runs.transitions import Answer, RunOutcomes, compare_matrix, flips, predicate
from debug_spyre.session.state import Member, Run, Session
from debug_spyre.vocabulary.conditions import Conditions, Difference, differences
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import BASELINE, FULL_MATRIX, POST_FIX, POST_FIX_MATRIX, WORK_AFTER, WORK_BEFORE

_PLACES = ("_CACHE_DIR", "PYTHONPATH")  # where something lies does not change what is measured


@dataclass(frozen=True)
class Measure:
    """One run with what it shows; `sight` None where the evidence can't be read."""

    run: Run
    sight: RunOutcomes | None

    @cached_property
    def scope(self) -> Scope:
        """The ids that the run selected, with the options that change behaviour."""
        if self.sight is None:
            return scope_of(())
        surroundings = (f"{k}={v}" for k, v in self.run.env.items() if not k.endswith(_PLACES))
        return scope_of(self.sight.evidence.selected, (*(self.run.scope.get("options") or ()), *surroundings))

    @property
    def conditions(self) -> Conditions | None:
        """What the run was made under, as its process told it."""
        return self.sight.evidence.conditions if self.sight is not None else None

    @property
    def is_complete(self) -> bool:
        """The run came to its end."""
        return self.sight is not None and self.sight.evidence.complete

    @property
    def tree(self) -> str | None:
        """The tree that the run saw from its start to its end; None where that is unknown or changed under it."""
        same = self.run.tree_digest == self.run.tree_digest_after
        return self.run.tree_digest if same else None

    @property
    def backend(self) -> str | None:
        """The backend's fingerprint, if it was the same at both ends."""
        return self.run.backend if self.run.backend == self.run.backend_after else None


@dataclass(frozen=True, slots=True)
class Tries:
    """How many states of tree and torch-spyre were validated, how many others of them were red, and in which runs."""

    count: int
    red: int
    runs: str

    @property
    def passes_needed(self) -> int:
        """Runs of the members that have to pass: a pass after red tries may be luck."""
        return 1 + min(self.red, 2)

    def says(self) -> str:
        """4th try; 3 red (r5, r7, r9)."""
        ending = {1: "st", 2: "nd", 3: "rd"}.get(self.count if self.count < 20 else self.count % 10, "th")
        return f"{self.count}{ending} try" + (f"; {self.red} red ({self.runs})" if self.red else "")


class BeforeAfter:
    """The four measurements of a session, as far as they exist."""

    def __init__(self, session: Session, evidence: Mapping[str, Evidence]) -> None:
        self.session = session
        self._sights = {name: RunOutcomes(found) for name, found in evidence.items()}
        self._measures = [Measure(run, self._sights.get(run.id)) for run in session.runs.values()]
        self._repeats: dict[tuple[str, str], list[RunOutcomes]] = {}
        self.start: str | None = session.tree.get("digest")
        self.before_members = self._before(BASELINE, members_only=True)
        self.before_matrix = self._before(FULL_MATRIX, members_only=False)
        self.after_members = self._newest(POST_FIX, members_only=True)
        self.after_matrix = self._newest(POST_FIX_MATRIX, members_only=False)

    def all_named(self, name: str, *, members_only: bool) -> list[Measure]:
        """Finished valid runs of that name, oldest first."""
        found = [m for m in self._measures if m.run.name == name and m.run.is_finished and m.run.valid]
        return [m for m in found if self._is_of_members(m) is members_only]

    def work(self, name: str, tree: str | None) -> Measure | None:
        """The newest run on that tree which counted what the members do, each member of it."""
        found = [m for m in self._measures if m.run.name == name and m.run.is_finished and m.run.valid]
        fit = [m for m in found if m.sight is not None and m.tree is not None and m.tree == tree]
        return fit[-1] if fit else None

    @cached_property
    def work_before(self) -> Measure | None:
        """The count on the tree as it was at open."""
        return self.work(WORK_BEFORE, self.start)

    @cached_property
    def work_after(self) -> Measure | None:
        """The count with the fix in place."""
        return self.work(WORK_AFTER, self.patched)

    def _is_of_members(self, measure: Measure) -> bool:
        """Asked for as such, or a run that selected just the members (a cluster of one, say)."""
        if measure.run.members_only or measure.run.name in {FULL_MATRIX, POST_FIX_MATRIX}:
            return measure.run.members_only
        members = {m.nodeid for m in self.session.members}
        return measure.sight is not None and set(measure.sight.evidence.selected) == members

    def _newest(self, name: str, *, members_only: bool) -> Measure | None:
        found = self.all_named(name, members_only=members_only)
        return found[-1] if found else None

    def _before(self, name: str, *, members_only: bool) -> Measure | None:
        found = self.all_named(name, members_only=members_only)
        at_start = [m for m in found if m.tree is not None and m.tree == self.start]
        return (at_start or found or [None])[-1]  # type: ignore[list-item]

    @property
    def after(self) -> tuple[Measure, ...]:
        """The runs after the fix that exist."""
        return tuple(m for m in (self.after_members, self.after_matrix) if m is not None)

    @property
    def before(self) -> tuple[Measure, ...]:
        """The runs before the fix that exist."""
        return tuple(m for m in (self.before_members, self.before_matrix) if m is not None)

    @cached_property
    def patched(self) -> str | None:
        """The one tree of all runs after the fix; None where they differ or it is unknown."""
        trees = {m.tree for m in self.after}
        return trees.pop() if len(trees) == 1 else None

    def repeats(self, of: Measure, name: str, *, members_only: bool) -> list[RunOutcomes]:
        """All runs of that name on the same tree, backend and scope as `of`, itself included.

        A run that somebody else's hold on the card disturbed says nothing of the tree and is left out. Before the fix
        only runs under the same conditions count: a flake that had to be switched on is none.
        """
        before = name in {BASELINE, FULL_MATRIX}
        key = (of.run.id, name)
        if key not in self._repeats:
            self._repeats[key] = [
                m.sight
                for m in self.all_named(name, members_only=members_only)
                if m.sight is not None and m.tree == of.tree and m.backend == of.backend and is_same_scope(m, of)
                if m.run.id == of.run.id or not (_is_disturbed(m.sight) or (before and differing(m, of)))
            ]
        return self._repeats[key]

    @cached_property
    def tries(self) -> Tries:
        """Runs after a fix since the session began, whatever tree they saw; `red` on other trees than the newest."""
        final = self.after_members or self.after_matrix
        runs = [
            *self.all_named(POST_FIX, members_only=True), *self.all_named(POST_FIX_MATRIX, members_only=False)
        ]  # fmt: skip
        red = [x for x in runs if final is not None and _state_of(x) != _state_of(final) and self._is_red(x)]
        return Tries(len({_state_of(x) for x in runs}), len({_state_of(x) for x in red}), run_ids(red))

    def _is_red(self, measure: Measure) -> bool:
        sight = measure.sight
        return sight is not None and any(predicate(x, sight.of(x.nodeid)) is Answer.HOLDS for x in self.session.members)

    @cached_property
    def left_out(self) -> tuple[Measure, tuple[str, ...]] | None:
        """An earlier matrix of the session, and its tests that the matrix before the fix lacks."""
        if self.before_matrix is None or self.before_matrix.sight is None:
            return None
        have = set(self.before_matrix.scope.nodeids)
        for measure in self._measures:
            if measure.run.name == FULL_MATRIX and measure.sight is not None:
                missing = tuple(x for x in measure.scope.nodeids if x not in have)
                if missing:
                    return measure, missing
        return None

    def is_scope_dependent(self, member: Member) -> bool:
        """The member's predicate does not hold among the members alone, but in the matrix: it is judged there."""
        alone, wide = self.before_members, self.before_matrix
        if alone is None or alone.sight is None or wide is None or wide.sight is None:
            return False
        if predicate(member, alone.sight.of(member.nodeid)) is not Answer.GONE:
            return False
        return predicate(member, wide.sight.of(member.nodeid)) is Answer.HOLDS

    @property
    def scope_dependent(self) -> tuple[Member, ...]:
        """Members that pass alone."""
        return tuple(m for m in self.session.members if self.is_scope_dependent(m))


def _is_disturbed(sight: RunOutcomes) -> bool:
    return any("card-busy" in failure.tags for failure in sight.evidence.failures)


def _state_of(measure: Measure) -> tuple[str | None, str | None]:
    return measure.run.tree_digest, measure.run.backend


def differing(one: Measure, other: Measure) -> tuple[Difference, ...]:
    """How the conditions of two runs differ; nothing where one of them is not known."""
    before, after = one.conditions, other.conditions
    return () if before is None or after is None else differences(before, after)


def is_same_scope(one: Measure, other: Measure) -> bool:
    """The same ids in the same order with the same options; an unknown scope equals nothing."""
    return relation(one.scope, other.scope) is Relation.EQUAL


def run_ids(measures: Iterable[Measure]) -> str:
    """r2, r7: for a sentence."""
    return ", ".join(m.run.id for m in measures)


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
