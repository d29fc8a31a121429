"""Random worlds against a second, naive telling of the gate's rules that shares no code with the gate."""

import os
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache

from tests.gate.conftest import BACKEND, FIXED, OTHER, REBUILT, SAME, START, Story

from debug_spyre.gate.close_request import CloseRequest, Retrospective
from debug_spyre.gate.gate import judge
from debug_spyre.session import events as ev
from debug_spyre.tree.changes import Changes
from debug_spyre.vocabulary.evidence import Work
from debug_spyre.vocabulary.words import GateState

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
WORLDS = 2000
OTHERWISE = replace(SAME, environment={"SPYRE_SIM_FAULT": "1"})
BAD = ("failed", "error", "crashed", "timeout")
A, B, C, D = "t::a", "t::b", "t::c", "t::d"
WORSE = {"mismatch": 1, "compile": 2, "exception": 2, "timeout": 3, "crash": 4}


@dataclass
class Ran:
    """One run, told plainly."""

    name: str
    tests: dict
    tree: str | None
    tree_after: str | None
    backend: str | None = BACKEND
    valid: bool = True
    complete: bool = True
    selected: list | None = None
    env: dict = field(default_factory=dict)
    conditions: object = SAME
    id: str = ""

    def order(self):
        return list(self.tests) if self.selected is None else list(self.selected)

    def outcome(self, test):
        told = self.tests.get(test, "missing")
        return told if isinstance(told, str) else told["outcome"]

    def kind(self, test):
        told = self.tests.get(test)
        return "mismatch" if isinstance(told, str) else told.get("kind", "mismatch")

    def fallbacks(self, test):
        told = self.tests.get(test)
        return set() if isinstance(told, str) or told is None else set(told.get("fallbacks", ()))

    def steady_tree(self):
        return self.tree if self.tree == self.tree_after else None


@dataclass
class World:
    """All that happened, told plainly, in order."""

    members: list
    runs: list
    rows: list
    saved: set  # trees that a saved patch leads to from the start
    tree_now: str
    backend_now: str
    approved: bool
    declared: bool
    told: tuple
    edited_tests: bool
    tolerance: bool
    overrides: set
    table_current: bool
    table_members: list
    reopened_after_table: bool
    edited: bool = False
    work: str = "same"  # same, less, more, uncounted, not before, not after
    counted: tuple = (FIXED,)  # trees on which what the members do was counted
    start: str = START


def naive(w):
    """May it be resolved? Straight from the rules, one after the other; None: the rules give no answer."""

    def newest(name, tree=None):
        fit = [r for r in w.runs if r.name == name and r.valid]
        on_tree = [r for r in fit if tree is not None and r.steady_tree() == tree]
        return (on_tree or fit or [None])[-1]

    aside = w.overrides & {
        "same-tests", "measured-at-start", "one-tree", "one-backend", "something-changed", "no-new-fallback", "no-edited-test",
        "same-conditions", "matrix-covers",
    }  # fmt: skip
    alone, wide = newest("baseline", w.start), newest("full-matrix", w.start)
    post, post_wide = newest("post-fix"), newest("post-fix-matrix")
    if None in (alone, wide, post, post_wide):
        return False
    before, after = [alone, wide], [post, post_wide]
    trees = {r.steady_tree() for r in after}

    # the runs before the fix saw the tree of the start, those after it saw one tree that is the start with a saved patch
    if "measured-at-start" not in aside and any(r.steady_tree() != w.start for r in before):
        return False
    if "one-tree" not in aside:
        if len(trees) != 1 or None in trees:
            return False
        patched = next(iter(trees))
        if w.tree_now not in (w.start, patched):
            return False
        if patched != w.start and patched not in w.saved and w.tree_now != patched:
            return False
    # the tree is back, or approved
    if w.tree_now != w.start and not w.approved:
        return False
    # something explains the difference
    if "something-changed" not in aside:
        if len(trees) != 1 or None in trees:
            return False
        if trees == {w.start} and {r.backend for r in before} == {r.backend for r in after}:
            return False
    # one backend
    if "one-backend" not in aside:
        if any(r.backend is None for r in before + after):
            return False
        if len({r.backend for r in before}) > 1 or len({r.backend for r in after}) > 1:
            return False
        if (before[0].backend != after[0].backend or w.backend_now not in (None, after[0].backend)) and not w.declared:
            return False
    # the same tests
    if "same-tests" not in aside:
        for one, other in ((alone, post), (wide, post_wide)):
            if not one.order() or one.order() != other.order() or one.env != other.env:
                return False
    # the journal and its files are what was written
    if w.edited:
        return False
    # under the same conditions
    if "same-conditions" not in aside:
        for one, other in ((alone, post), (wide, post_wide)):
            if None in (one.conditions, other.conditions) or one.conditions != other.conditions:
                return False
    # the matrix is no narrower than an earlier one
    if "matrix-covers" not in aside:
        for r in w.runs:
            if r.name == "full-matrix" and set(r.order()) - set(wide.order()):
                return False
    # after red tries on other trees one pass is not enough
    red = {
        (r.tree, r.backend)
        for r in w.runs
        if r.name in ("post-fix", "post-fix-matrix") and r.valid and any(r.outcome(x) in BAD for x in w.members)
    } - {(post.tree, post.backend)}
    # the matrix ran to its end
    if not post_wide.complete or not any(post_wide.outcome(t) != "missing" for t in post_wide.tests):
        return False

    def alike(run, name):
        return [
            r
            for r in w.runs
            if r.name == name and r.valid and (r.steady_tree(), r.backend, r.order(), r.env)
            == (run.steady_tree(), run.backend, run.order(), run.env)
            and (name.startswith("post") or None in (r.conditions, run.conditions) or r.conditions == run.conditions)
        ] if run.order() else [run]  # fmt: skip

    if len(alike(post, "post-fix")) < 1 + min(len(red), 2):
        return False
    # each member failed before and passes now, wherever it is judged
    for member in w.members:
        known_alone = member in alone.tests or member in alone.order()
        if not known_alone:
            return False
        failed_alone = alone.outcome(member) in BAD
        dependent = alone.outcome(member) == "passed" and wide.outcome(member) in BAD
        if not failed_alone and not dependent:
            return False
        if not dependent and any(r.outcome(member) != "passed" for r in alike(post, "post-fix")):
            return False
        if (member in wide.tests or member in wide.order()) and any(
            r.outcome(member) != "passed" for r in alike(post_wide, "post-fix-matrix")
        ):
            return False
    # nothing in the matrix got worse
    pres, posts = alike(wide, "full-matrix"), alike(post_wide, "post-fix-matrix")
    ids = [x for r in (*pres, *posts) for x in (*r.order(), *r.tests)]
    for test in dict.fromkeys(ids):
        was, now = [r.outcome(test) for r in pres], [r.outcome(test) for r in posts]
        collected = any(test in r.order() or r.outcome(test) != "missing" for r in pres)
        for r in posts:
            if r.outcome(test) in BAD:
                fresh = [o for o in was if o not in BAD and (o != "missing" or not collected)]
                if fresh:
                    flips_now = any(o in BAD for o in now) and any(o in ("passed", "xpassed") for o in now)
                    flips_then = any(o in BAD for o in was) and any(o in ("passed", "xpassed") for o in was)
                    if not (flips_now and flips_then):
                        return False
                elif all(o == "missing" for o in was):
                    return False
                if wide.outcome(test) in BAD and all(
                    WORSE[r.kind(test)] > WORSE[p.kind(test)] for p in pres if p.outcome(test) in BAD
                ):
                    return False
            elif r.outcome(test) in ("skipped", "xfailed", "missing") and test not in w.members:
                if wide.outcome(test) not in ("missing", r.outcome(test)):
                    return False
    # no pass thanks to a new fallback, an edited test or a moved tolerance
    if "no-new-fallback" not in aside:
        for one, other, tests in ((alone, post, w.members), (wide, post_wide, ids)):
            for test in tests:
                if other.outcome(test) in ("passed", "xpassed") and one.outcome(test) != "missing":
                    if other.fallbacks(test) - one.fallbacks(test):
                        return False
    if "no-edited-test" not in aside and (w.edited_tests or w.tolerance):
        return False
    # no more work on the CPU than before, counted on the patched tree; or the patch was approved
    if not w.approved and trees != {w.start}:
        if len(trees) != 1 or not trees <= set(w.counted) or w.work not in ("same", "less"):
            return False
    # the table, the rows, the three parts
    if not w.table_current or w.reopened_after_table or not set(w.members) <= set(w.table_members):
        return False
    if not w.rows or any(row in ("queued", "in-progress") for row in w.rows):
        return False
    return all(part.strip() for part in w.told)


def play(w):
    """The same world as events and evidence."""
    story = Story(members=tuple(w.members))
    for run in w.runs:
        run.id = story.run(
            run.name, run.tests, tree=run.tree, tree_after=run.tree_after, backend=run.backend, valid=run.valid,
            complete=run.complete, selected=run.selected, env=run.env, conditions=run.conditions,
        )  # fmt: skip
        if (
            run.name in ("baseline", "full-matrix")
            and w.declared
            and not any(e.kind == "finding_noted" for e in story.events)
        ):
            story.add(ev.FindingNoted(text="rebuilt", expect_change="torch-spyre"))
    for row in w.rows:
        story.row(row)
    tests = dict.fromkeys(w.members, "passed")
    usual = [Work(n, {"aten.mm": 2}, moved=(("to the CPU", "a.py:1", 1),)) for n in w.members]
    told = {
        "more": [Work(n, {"aten.mm": 2}, moved=(("to the CPU", "a.py:1", 2),)) for n in w.members],
        "less": [Work(n, {"aten.mm": 1}) for n in w.members],
        "uncounted": usual[:-1],
    }
    if w.work != "not before":
        story.run("work-before", tests, work=usual)
    if w.work != "not after":
        story.run("work-after", tests, tree=FIXED, work=told.get(w.work, usual))
    after = [r.id for r in w.runs if r.name in ("post-fix", "post-fix-matrix")]
    story.table(after if w.table_current else after[:-1], members=w.table_members)
    if w.reopened_after_table:
        story.add(ev.SessionClosed(status="blocked"))
        story.add(ev.SessionReopened(reason="again"))
    if w.saved:
        story.add(ev.TreeReverted(patch="fix.patch", files=("a",), digest=START, patched=FIXED))
    return story


def answer(w):
    story = play(w)
    changes = Changes(
        files=("spyre_inference/a.py",),
        tests=("tests/t.py",) if w.edited_tests else (),
        tolerances=("a.py: -atol=1",) if w.tolerance else (),
    )
    claim = CloseRequest(
        tree_digest=w.tree_now,
        backend=w.backend_now,
        changes=changes,
        retrospective=Retrospective(*w.told),
        overrides=dict.fromkeys(w.overrides, "a person said so"),
        approved="stays" if w.approved else None,
        trouble="line 3 is not what was written" if w.edited else None,
    )
    return judge(story.session, story.evidence, claim)


TOPICS = (
    "work",
    "conditions",
    "tries",
    "outcomes",
    "fallbacks",
    "trees",
    "backends",
    "scope",
    "runs",
    "now",
    "rows",
    "words",
    "edits",
    "table",
)


class Chance:
    """Mostly the usual value; two topics of each world stray often, the others seldom."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.often = set(self.random.sample(TOPICS, 2))

    def __call__(self, topic, usual, *others):
        odds = 4 if topic in self.often else 200
        return self.random.choice(others) if self.random.randrange(odds) == 0 else usual


def outcome(some, usual):
    told = {
        "outcome": some(
            "outcomes", usual, "passed", "failed", "error", "skipped", "xfailed", "xpassed", "missing", "crashed"
        )
    }
    if told["outcome"] in BAD:
        told["kind"] = some("outcomes", "mismatch", "exception", "compile", "timeout", "crash")
    told["fallbacks"] = some("fallbacks", [], ["aten.mm"])
    return told


def ran(some, name, usual, tree):
    tests = {test: outcome(some, word) for test, word in usual.items()}
    seen = some("trees", tree, OTHER, START, FIXED, None)
    return Ran(
        name=name,
        tests=tests,
        tree=seen,
        tree_after=some("trees", seen, seen, seen, OTHER),
        backend=some("backends", BACKEND, REBUILT, None),
        valid=some("runs", True, False),
        complete=some("runs", True, False),
        conditions=some("conditions", SAME, None, OTHERWISE),
        env=some("scope", {}, {"SPYRE_X": "1"}),
        selected=some("scope", None, [], [*tests, "t::new"], list(tests)[::-1], list(tests)[:-1]),
    )


def world_of(seed):
    some = Chance(seed)
    members = [A, B][: some.random.randint(1, 2)]
    wide = {**dict.fromkeys(members, "failed"), C: "passed", D: some.random.choice(["passed", "failed", "skipped"])}
    good = {**wide, **dict.fromkeys(members, "passed")}
    fixed = some("trees", FIXED, START)
    runs = [
        ran(some, name, usual, tree)
        for name, usual, tree in (
            ("full-matrix", wide, START),
            ("baseline", dict.fromkeys(members, "failed"), START),
            ("post-fix", dict.fromkeys(members, "passed"), fixed),
            ("post-fix-matrix", good, fixed),
        )
        for _ in range(some("tries", 1, 2, 3) if name == "post-fix" else some("runs", 1, 0, 2, 2, 3))
    ]
    for _ in range(some("tries", 0, 1, 2)):
        runs.insert(
            2, Ran("post-fix", dict.fromkeys(members, "failed"), tree=(tree := f"try-{len(runs)}"), tree_after=tree)
        )
    if some("scope", False, True):
        runs.insert(0, Ran("full-matrix", {**wide, "t::wider": "passed"}, tree=START, tree_after=START))
    reverted = some("now", True, False)
    return World(
        members=members,
        runs=runs,
        rows=some("rows", ["confirmed", "ruled-out"], [], ["dropped"], ["confirmed", "queued"], ["in-progress"]),
        saved={FIXED} if reverted else set(),
        tree_now=some("now", START if reverted else FIXED, OTHER, START, FIXED),
        backend_now=some("backends", BACKEND, REBUILT),
        approved=some("now", not reverted, True, False),
        declared=some("backends", False, True, True),
        told=tuple(some("words", "words", " ") for _ in range(3)),
        edited_tests=some("edits", False, True),
        tolerance=some("edits", False, True),
        overrides=set(some.random.sample(OVERRIDES, some.random.choice([0, 0, 1, 2]))),
        table_current=some("table", True, False),
        table_members=some("table", members, members[:-1]),
        reopened_after_table=some("table", False, True),
        edited=some("table", False, True),
        work=some("work", "same", "less", "more", "uncounted", "not before", "not after"),
    )


OVERRIDES = [
    "same-tests", "measured-at-start", "one-tree", "one-backend", "something-changed", "no-new-fallback", "no-edited-test",
    "same-conditions", "matrix-covers", "members-pass", "no-regression", "failed-before", "rows-concluded", "matrix-complete", "table-filled",
]  # fmt: skip


@cache
def judged(seed):
    return answer(world_of(seed))


def test_property_the_gate_is_open_exactly_where_the_naive_telling_says_so():
    for seed in range(WORLDS * FUZZ):
        world = world_of(seed)
        found = judged(seed)
        assert (found.state is GateState.OPEN) is bool(naive(world)), (seed, found.reasons, world)


def test_the_walk_meets_both_answers_and_each_condition_alone_decides_some_world():
    """The property above would prove nothing if a condition never mattered by itself."""
    alone, opened = Counter(), 0
    for seed in range(WORLDS):
        codes = {reason.code for reason in judged(seed).reasons}
        opened += not codes
        alone.update(codes if len(codes) == 1 else ())
    assert opened >= WORLDS // 20
    every = {c.code for c in answer(world_of(0)).conditions}
    assert {code for code in every if alone[code] < 2} == set(), alone
