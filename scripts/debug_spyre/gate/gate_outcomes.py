"""The conditions of the gate one by one: a code, open, shut or unknown, a sentence with the numbers, the next command.

A question that nothing answers is unknown, never open.
"""

from __future__ import annotations

import shlex

from debug_spyre.gate.before_after import BeforeAfter, Measure, is_same_scope, regressions, run_ids
from debug_spyre.gate.close_request import (
    BASELINE_MEMBERS,
    OPEN,
    SHUT,
    UNKNOWN,
    VALIDATE,
    Condition,
    matrix_command,
)
from debug_spyre.runs.transitions import FAILING, Answer, RunOutcomes, TestResult, new_fallbacks, predicate
from debug_spyre.session.state import Member
from debug_spyre.tree.changes import Changes
from debug_spyre.vocabulary.words import POST_FIX, POST_FIX_MATRIX


def failed_before(m: BeforeAfter) -> Condition:
    """Each member's predicate held before the fix, among the members or (if it passes alone) in the matrix."""
    code, members = "failed-before", m.session.members
    if not members:
        return Condition(code, SHUT, "the cluster has no member", next="debug-spyre cluster add NODEID --reason TEXT")
    alone = m.before_members
    if alone is None or alone.sight is None:
        return Condition(code, UNKNOWN, "the members were not run before the fix", next=BASELINE_MEMBERS)
    unmeasured = tuple(x.nodeid for x in members if not alone.sight.knows(x.nodeid))
    if unmeasured:
        text = f"{len(unmeasured)} of {len(members)} members are not in {alone.run.id}"
        return Condition(code, UNKNOWN, text, unmeasured, BASELINE_MEMBERS)
    never = tuple(
        x.nodeid
        for x in members
        if predicate(x, alone.sight.of(x.nodeid)) is not Answer.HOLDS and not m.is_scope_dependent(x)
    )
    if never:
        text = f"{len(never)} of {len(members)} members never showed it before the fix ({run_ids(m.before)})"
        return Condition(code, SHUT, text, never, f"debug-spyre cluster drop {shlex.quote(never[0])} --reason TEXT")
    dependent = m.scope_dependent
    note = f"; {len(dependent)} pass alone and are judged in the matrix" if dependent else ""
    return Condition(code, OPEN, f"{len(members)} of {len(members)} members showed it before the fix{note}")


def members_pass(m: BeforeAfter) -> Condition:
    """No member's predicate holds after the fix: alone (unless it passed alone before) and in the matrix."""
    code, members = "members-pass", m.session.members
    after = m.after_members
    dependent = {x.nodeid for x in m.scope_dependent}
    if not members:
        return Condition(code, SHUT, "the cluster has no member", next="debug-spyre cluster add NODEID --reason TEXT")
    if after is None and len(dependent) < len(members):
        return Condition(code, UNKNOWN, "the members were not run with the fix in place", next=VALIDATE)
    if after is not None and after.sight is None:
        return Condition(code, UNKNOWN, f"the evidence of {after.run.id} can't be read", next=VALIDATE)
    bad, unknown = [], []
    for member in members:
        answers = [_after_answer(member, sight) for sight in _sights_after(m, member, dependent)]
        if not answers or None in answers:
            unknown.append(member.nodeid)
        elif not all(answers):
            bad.append(member.nodeid)
    if bad:
        text = f"{len(bad)} of {len(members)} members don't pass after the fix: {_words(m, bad)}"
        return Condition(
            code, SHUT, text, tuple(bad), f"debug-spyre cluster move {shlex.quote(bad[0])} --to SLUG --reason TEXT"
        )
    if unknown:
        text = f"{len(unknown)} of {len(members)} members have no answer after the fix"
        return Condition(code, UNKNOWN, text, tuple(unknown), VALIDATE)
    return Condition(code, OPEN, f"{len(members)} of {len(members)} members pass in {run_ids(m.after)}")


def _sights_after(m: BeforeAfter, member: Member, dependent: set[str]) -> list[RunOutcomes]:
    """Where this member must have lost its predicate: every repeat counts, so one lucky pass does not."""
    found: list[RunOutcomes] = []
    if member.nodeid not in dependent and m.after_members is not None:
        found += m.repeats(m.after_members, POST_FIX, members_only=True) or _own(m.after_members)
    matrix = m.after_matrix
    if matrix is not None and matrix.sight is not None:
        in_matrix = list(m.repeats(matrix, POST_FIX_MATRIX, members_only=False) or _own(matrix))
        was_there = m.before_matrix is None or m.before_matrix.sight is None
        if was_there or m.before_matrix.sight.knows(member.nodeid):  # type: ignore[union-attr]
            found += in_matrix
    return found


def _own(measure: Measure) -> list[RunOutcomes]:
    return [measure.sight] if measure.sight is not None else []


def _after_answer(member: Member, sight: RunOutcomes) -> bool | None:
    """True: passes and lost its predicate; False: it does not; None: it passes, but the figure is not known."""
    seen = sight.of(member.nodeid)
    answer = predicate(member, seen)
    if answer is Answer.UNKNOWN and member.predicate == "slower" and seen.outcome == "passed":
        return None
    return answer is Answer.GONE


def _words(m: BeforeAfter, nodeids: list[str]) -> str:
    words: dict[str, int] = {}
    for nodeid in nodeids:
        seens = [x.sight.of(nodeid) for x in m.after if x.sight is not None]
        worst = next((s for s in seens if s.outcome in FAILING), seens[0] if seens else TestResult(nodeid))
        word = worst.word if worst.outcome != "passed" else "still falls back or is slow"
        words[word] = words.get(word, 0) + 1
    return ", ".join(f"{count} {word}" for word, count in words.items())


def same_tests(m: BeforeAfter) -> Condition:
    """Members were compared with members and matrix with matrix: the same ids, in the same order."""
    code = "same-tests"
    pairs = (("members", m.before_members, m.after_members), ("matrix", m.before_matrix, m.after_matrix))
    unknown = [name for name, one, other in pairs if one is None or other is None]
    different: list[tuple[str, Measure, Measure]] = []
    for name, one, other in pairs:
        if one is None or other is None or is_same_scope(one, other):
            continue
        if not one.scope.nodeids or not other.scope.nodeids:
            unknown.append(name)
        else:
            different.append((name, one, other))
    if different:
        name, one, other = different[0]
        was, now = one.scope.nodeids, other.scope.nodeids
        missing = tuple(x for x in was if x not in set(now))
        added = tuple(x for x in now if x not in set(was))
        how = f"{len(missing)} missing, {len(added)} added" if missing or added else "another order or other options"
        text = f"{name}: {other.run.id} did not select the {len(was)} tests of {one.run.id} ({how})"
        return Condition(code, SHUT, text, missing or added, VALIDATE)
    if unknown:
        return Condition(code, UNKNOWN, f"not both before and after: {', '.join(unknown)}", next=VALIDATE)
    sizes = " and ".join(str(len(one.scope.nodeids)) for _, one, _ in pairs if one)
    return Condition(code, OPEN, f"the same {sizes} tests before and after")


def matrix_complete(m: BeforeAfter) -> Condition:
    """There is a wider selection, and it ran to its end before and after."""
    code, before, after = "matrix-complete", m.before_matrix, m.after_matrix
    if m.session.matrix is None and before is None:
        text = "no wider matrix is known, so nothing says that the fix breaks nothing else"
        return Condition(code, UNKNOWN, text, next=matrix_command(m.session))
    if before is None or before.sight is None:
        return Condition(code, UNKNOWN, "the matrix was not run before the fix", next=matrix_command(m.session))
    if after is None or after.sight is None:
        return Condition(code, UNKNOWN, "the matrix was not run with the fix in place", next=VALIDATE)
    if not after.is_complete:
        done = len(after.sight.evidence.tests)
        text = f"{after.run.id} did not come to its end: {done} of {len(after.scope.nodeids)} tests have an outcome"
        return Condition(code, SHUT, text, next=VALIDATE)
    if not after.sight.evidence.tests:
        return Condition(code, UNKNOWN, f"{after.run.id} shows no outcome of any test", next=VALIDATE)
    return Condition(code, OPEN, f"{len(after.sight.evidence.tests)} tests ran to the end in {after.run.id}")


def no_regression(m: BeforeAfter) -> Condition:
    """The matrix has no new failure, no worse kind of an old one, and no test that is newly skipped or gone."""
    code, before, after = "no-regression", m.before_matrix, m.after_matrix
    found = regressions(m)
    if found is None or before is None or after is None:
        return Condition(code, UNKNOWN, "the matrix was not run both before and after", next=VALIDATE)
    parts = [
        f"{len(nodeids)} {words}"
        for nodeids, words in (
            (found.new, f"passed in {before.run.id} and fail in {after.run.id}"),
            (found.unsteady, "now pass and fail on the same tree, before they did not"),
            (found.worse, "fail in a worse way"),
            (found.vanished, "are newly skipped, xfailed or gone"),
        )
        if nodeids
    ]
    if parts:
        following = "debug-spyre hypothesis list"
        if found.only_unsteady:
            following = f"debug-spyre revert, then {matrix_command(m.session)}"
        return Condition(code, SHUT, "tests " + "; ".join(parts), found.nodeids, following)
    if found.unclear:
        text = f"{len(found.unclear)} tests fail in {after.run.id} and had no outcome in {before.run.id}"
        return Condition(code, UNKNOWN, text, found.unclear, matrix_command(m.session))
    note = f"; {len(found.flaky)} flake in both trees" if found.flaky else ""
    return Condition(code, OPEN, f"no new failure in {after.run.id} against {before.run.id}{note}", found.flaky)


def no_new_fallback(m: BeforeAfter) -> Condition:
    """No pass comes with an op that newly falls back."""
    code = "no-new-fallback"
    ids = tuple(x.nodeid for x in m.session.members)
    found: dict[str, frozenset[str]] = {}
    compared = False
    pairs = ((m.before_members, m.after_members, ids), (m.before_matrix, m.after_matrix, None))
    for before, after, named in pairs:
        if before is None or after is None or before.sight is None or after.sight is None:
            continue
        compared = True
        found |= new_fallbacks(before.sight, after.sight, named or after.sight.nodeids)
    if found:
        ops = sorted(set().union(*found.values()))
        text = f"{len(found)} tests pass with a new fallback: {', '.join(ops[:4])}"
        return Condition(code, SHUT, text, tuple(found), f"debug-spyre op {ops[0]}")
    if not compared:
        return Condition(code, UNKNOWN, "nothing was run both before and after", next=VALIDATE)
    return Condition(code, OPEN, "no passing test falls back for an op that it did not before")


def no_edited_test(m: BeforeAfter, changes: Changes | None) -> Condition:
    """The pass does not come from an edited test or a moved tolerance."""
    code = "no-edited-test"
    if changes is None:
        if m.patched is not None and m.patched == m.start:
            return Condition(code, OPEN, "no file differs from the start")
        return Condition(code, UNKNOWN, "what the patch touches was not looked at", next=VALIDATE)
    parts = []
    if changes.tests:
        moved = f"; expected values move: {'; '.join(changes.expectations[:3])}" if changes.expectations else ""
        parts.append(f"{len(changes.tests)} test files are edited ({', '.join(changes.tests[:3])}){moved}")
    if changes.tolerances:
        parts.append(f"{len(changes.tolerances)} lines move a tolerance or skip ({changes.tolerances[0]})")
    if parts:
        return Condition(
            code, SHUT, "; ".join(parts), next="debug-spyre close blocked --next 'a person decides on the edited test'"
        )
    marks = f"; only xfail marks were taken off {', '.join(changes.unmarked[:3])}" if changes.unmarked else ""
    return Condition(code, OPEN, f"{len(changes.files)} files changed, no test and no tolerance among them{marks}")
