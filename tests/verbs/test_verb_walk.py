"""A random walk over the real verbs: `resolved` is reached exactly where a naive ledger of what was done allows it.

Real files, real git, real journal; only the card's runs are told by the walk, as a supervisor would record them.
"""

import hashlib
import json
import os
import random
from html.parser import HTMLParser

import pytest
from tests.gate.conftest import Story, git
from tests.gate.test_gate_walk import Ran, World, naive

from debug_spyre.gate import validation
from debug_spyre.gate.before_after import BeforeAfter
from debug_spyre.gate.io.validation_jobs import present
from debug_spyre.page.io import page
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import all_evidence
from debug_spyre.tree.io.snapshot import tree_digest
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Outcome, TestRecord, Work, evidence_to_json
from debug_spyre.vocabulary.words import APPROVED_CHANGE, WORK_AFTER, WORK_BEFORE, HypothesisStatus, Status

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
STEPS = 70
A, B, C, D = "t::a", "t::b", "t::c", "t::d"
RESOLVED = {}
SOURCE, TESTS = "spyre_inference/ops.py", "tests/test_ops.py"


class Walk:
    """The ledger, kept apart from what the product records, and the steps that change both."""

    def __init__(self, place, seed):
        self.place, self.random = place, random.Random(seed)
        place.tell(Story())
        self.backend = present(place.checkout).backend
        assert self.backend
        self.contents = {name: (place.checkout / name).read_bytes() for name in (SOURCE, TESTS)}
        self.start = self.tree()
        self.members, self.rows = [A, B], {}
        self.runs, self.saved = [], set()
        self.counted = {WORK_BEFORE: set(), WORK_AFTER: set()}
        self.declared_at, self.clock = [], 0
        self.table = None
        self.is_reopened_since = False
        self.state, self.edited = "broken", False
        self.status = "investigating"
        self.resolved = 0
        self.row_started_at = None
        self.done_at = -1
        self.nexts = []
        self.validated_changes = {}

    def tree(self):
        """The walk's own name for the tree: the bytes that it may change."""
        found = b"".join((self.place.checkout / name).read_bytes() for name in (SOURCE, TESTS))
        return hashlib.sha256(found).hexdigest()[:8]

    # steps

    def edit(self):
        self.state = self.random.choice(["fixed", "fixed", "fixed", "half", "breaks c", "falls back"])
        (self.place.checkout / SOURCE).write_text(f"state = {self.state!r}\n")
        if self.random.random() < 0.15:
            (self.place.checkout / TESTS).write_text("def test_ops():\n    assert 4\n")
            self.edited = True

    def undo_by_hand(self):
        for name, text in self.contents.items():
            (self.place.checkout / name).write_bytes(text)
        self.state, self.edited = "broken", False

    def outcomes(self, members_only):
        passed = {"broken": (), "half": (A,), "fixed": (A, B), "breaks c": (A, B), "falls back": (A, B)}[self.state]
        tests = {n: {"outcome": "passed" if n in passed else "failed", "kind": "mismatch"} for n in (A, B)}
        if self.state == "falls back":
            tests[A]["fallbacks"] = ["aten.mm"]
        if not members_only:
            tests[C] = {"outcome": "failed" if self.state == "breaks c" else "passed", "kind": "mismatch"}
            tests[D] = {"outcome": "skipped", "kind": "mismatch"}
        if self.random.random() < 0.04:
            tests[self.random.choice(list(tests))]["outcome"] = self.random.choice(["skipped", "missing", "crashed"])
        return {n: told for n, told in tests.items() if n in self.members or not members_only}

    def run(self, name=None):
        name = name or self.random.choice(["baseline", "full-matrix", "post-fix", "post-fix-matrix", None])
        members_only = name in {"baseline", "post-fix"}
        tests = self.outcomes(members_only)
        self.clock += 1
        told = Ran(
            name=name, tests=tests, tree=self.tree(), tree_after=self.tree(),
            backend="another" if self.random.random() < 0.03 else self.backend,
            valid=self.random.random() > 0.04, complete=self.random.random() > 0.04, id=f"r{self.clock}",
        )  # fmt: skip
        told.at = self.clock
        self.record(told, members_only)
        self.runs.append(told)
        if told.valid:
            self.done_at = self.clock

    def count(self, name):
        """What the members do, counted on this tree: always the same."""
        self.clock += 1
        self.counted[name].add(self.tree())
        tests = self.outcomes(members_only=True)
        told = Ran(name=name, tests=tests, tree=self.tree(), tree_after=self.tree(), id=f"r{self.clock}")
        self.record(told, True, work=tuple(Work(n, {"aten.mm": 1}) for n in tests))
        self.done_at = self.clock

    def record(self, told, members_only, work=()):
        journal, folder = self.place.folder.journal, self.place.folder.path
        digest = tree_digest(self.place.checkout)
        journal.append(
            ev.RunStarted(
                run=told.id, verb="run", name=told.name, argv=("x",), output=f"{told.id}.txt", pytest_args=("x",),
                members_only=members_only, tree_digest=digest, backend=told.backend,
            )
        )  # fmt: skip
        records = tuple(
            TestRecord(n, Outcome(t["outcome"]), fallbacks=tuple(t.get("fallbacks", ())))
            for n, t in told.tests.items()
            if t["outcome"] != "missing"
        )
        failures = tuple(
            Failure(n, "call", Kind(t["kind"])) for n, t in told.tests.items() if t["outcome"] in {"failed", "crashed"}
        )
        evidence = Evidence(
            (), None, told.complete, failures, tests=records, selected=tuple(told.tests), conditions=told.conditions, work=work
        )  # fmt: skip
        (folder / f"runs/{told.id}").mkdir(parents=True)
        (folder / f"runs/{told.id}/evidence.json").write_text(json.dumps(evidence_to_json(evidence)))
        (folder / f"{told.id}.txt").write_text("output\n")
        journal.append(
            ev.RunFinished(
                run=told.id, status="failed" if failures else "passed", valid=told.valid, seconds=1.0, exit=0,
                evidence=f"runs/{told.id}/evidence.json", tree_digest=digest, backend=told.backend,
            )
        )  # fmt: skip

    def add(self):
        number = len(self.rows) + 1
        status = self.call("hypothesis", "add", f"row {number}", "--test", "debug-spyre run t::a")
        assert status == (0 if self.status == "investigating" else 1)
        if status == 0:
            self.rows[number] = "queued"

    def begin(self):
        number = self.random.choice([*self.rows, 99])
        has_baseline = any(r.name == "baseline" and r.valid for r in self.runs)
        may = (
            self.status == "investigating"
            and has_baseline
            and self.rows.get(number) in {"queued", "inconclusive"}
            and "in-progress" not in self.rows.values()
        )
        assert (self.call("hypothesis", "start", number) == 0) is may
        if may:
            self.rows[number] = "in-progress"
            self.row_started_at = self.clock

    def conclude(self):
        number = next((n for n, s in self.rows.items() if s == "in-progress"), self.random.choice([*self.rows, 98]))
        verdict = self.random.choice(["confirmed", "ruled-out", "inconclusive"])
        may = (
            self.status == "investigating"
            and self.rows.get(number) == "in-progress"
            and self.done_at > self.row_started_at
        )
        assert (self.call("hypothesis", "conclude", number, verdict, "seen") == 0) is may
        if may:
            self.rows[number] = verdict

    def drop(self):
        number = self.random.choice([*self.rows, 97])
        may = self.status == "investigating" and self.rows.get(number) in {"queued", "in-progress"}
        assert (self.call("hypothesis", "drop", number, "no longer needed") == 0) is may
        if may:
            self.rows[number] = "dropped"

    def declare(self):
        self.call("note", "finding", "torch-spyre rebuilt", "--expect-change", "torch-spyre")
        self.declared_at.append(self.clock)

    def name_next(self):
        self.call("note", "next", "ask whether the width may change")
        self.nexts.append(True)

    def carve(self):
        if len(self.members) == 2 and self.status == "investigating" and self.random.random() < 0.2:
            assert self.call("cluster", "drop", B, "--reason", "another cause") == 0
            self.members = [A]

    def validate(self):
        session = self.place.session
        m = BeforeAfter(session, all_evidence(self.place.folder, session))
        now = present(self.place.checkout)
        if self.status != "investigating" or validation.missing_before(m) or validation.is_unchanged(m, now):
            assert self.call("validate") == 1
            return
        step = validation.next_step(m, now)
        if step is not None and step.name == WORK_AFTER:
            self.count(WORK_AFTER)
        elif step is not None:
            return  # it would start a real run
        before = len(session.hypotheses)
        assert self.call("validate") in {0, 1}
        for row in self.place.session.hypotheses[before:]:
            assert row.origin == "regression"
            self.rows[row.number] = "queued"
        self.table = (self.clock, list(self.members))
        self.is_reopened_since = False

    def revert(self):
        tree = self.tree()
        assert self.call("revert") == (0 if self.status == "investigating" else 1)
        if self.status != "investigating":
            assert self.tree() == tree
            return
        if tree != self.start:
            self.saved.add(tree)
        assert self.tree() == self.start
        self.state, self.edited = "broken", False

    def reopen(self):
        assert (self.call("reopen", "it came back", "--session", self.place.folder.stem) == 0) is (
            self.status != "investigating"
        )
        if self.status != "investigating":
            self.status, self.is_reopened_since = "investigating", True

    def block(self):
        words = ["--next", "ask whether the width may change"] if self.random.random() < 0.5 else []
        may = (
            self.status == "investigating"
            and self.tree() == self.start
            and "in-progress" not in self.rows.values()
            and bool(words or self.nexts)
        )
        assert (self.call("close", "blocked", *words, "--session", self.place.folder.stem) == 0) is may
        if may:
            self.status = "blocked"

    def close(self):
        approve = self.random.random() < 0.3
        self.count_before_close()
        told = ["words" if self.random.random() > 0.1 else " " for _ in range(3)]
        aside = set(
            self.random.sample(
                ["no-edited-test", "no-new-fallback", "one-backend", "same-tests"], self.random.choice([0, 0, 2])
            )
        )
        words = ["--cause", told[0], "--wasted", told[1], "--signal", told[2]]
        words += [w for code in sorted(aside) for w in ("--override", code, "a person said so")]
        words += ["--patch-approved", "it may stay"] if approve else []
        expected = self.status == "investigating" and bool(naive(self.world(approve, told, aside)))
        status = self.call("close", "resolved", *words, "--session", self.place.folder.stem)
        assert (status == 0) is expected, self.place.run(
            "close", "resolved", *words, "--check", "--session", self.place.folder.stem
        )
        if expected:
            self.status = "resolved"
            self.resolved += 1
            kept = [a for a in self.place.session.artifacts if a.note == APPROVED_CHANGE]
            assert bool(kept) is (approve and self.tree() != self.start)

    def count_before_close(self):
        """`close` would count by a real run what the walk tells here."""
        m = BeforeAfter(self.place.session, all_evidence(self.place.folder, self.place.session))
        if self.tree() == self.start and m.work_after is not None and m.work_before is None:
            self.count(WORK_BEFORE)

    def world(self, approve, told, aside):
        posts = [r for r in self.runs if r.name in {"post-fix", "post-fix-matrix"} and r.valid]
        newest = {name: [r for r in posts if r.name == name][-1:] for name in ("post-fix", "post-fix-matrix")}
        judged = [r for found in newest.values() for r in found]
        befores = [r for r in self.runs if r.name in {"baseline", "full-matrix"} and r.valid]
        patched = judged[0].tree if judged else None
        return World(
            members=self.members, runs=[r for r in self.runs if r.name], rows=list(self.rows.values()), saved=self.saved,
            tree_now=self.tree(), backend_now=self.backend, approved=approve, declared=self.is_declared(befores, judged),
            told=tuple(told), edited_tests=self.is_test_edited(patched), tolerance=False, overrides=aside,
            table_current=self.table is not None and all(r.at <= self.table[0] for r in judged),
            table_members=self.table[1] if self.table else [], reopened_after_table=self.is_reopened_since, start=self.start,
            work="same" if self.start in self.counted[WORK_BEFORE] else "not before", counted=tuple(self.counted[WORK_AFTER]),
        )  # fmt: skip

    def is_declared(self, befores, judged):
        def used(name):
            fit = [r for r in befores if r.name == name]
            return ([r for r in fit if r.tree == self.start] or fit)[-1:]

        first = [r.at for r in (*used("baseline"), *used("full-matrix"))]
        last = [r.at for r in judged]
        return bool(first and last) and any(min(first) <= at < max(last) for at in self.declared_at)

    def is_test_edited(self, patched):
        return patched in self.trees_with_edited_tests

    # machinery

    trees_with_edited_tests = frozenset()

    def call(self, *words):
        if "--session" not in words:
            words = (*words, "--session", self.place.folder.stem)
        status, out, err = self.place.run(*words)
        assert status in {0, 1, 64}, (words, status, out, err)
        return status

    def step(self, at):
        plan = (
            (self.run, "full-matrix"), (self.run, "baseline"), (self.add,), (self.begin,), (self.run,), (self.conclude,),
            (self.edit,), *[(self.run, "post-fix")] * 3, (self.run, "post-fix-matrix"), (self.validate,), (self.revert,), (self.close,),
        )  # fmt: skip
        anything = (
            self.edit, self.undo_by_hand, self.run, self.add, self.begin, self.conclude, self.drop, self.declare,
            self.name_next, self.carve, self.validate, self.revert, self.reopen, self.block, self.close,
        )  # fmt: skip
        if self.random.random() < 0.75:
            chosen, *words = plan[at % len(plan)]
            chosen(*words)
            at += 1
        else:
            self.random.choice(anything)()
        if self.edited:
            self.trees_with_edited_tests |= {self.tree()}
        return at

    def look(self):
        """What holds after every step."""
        session = self.place.session
        assert session.status == self.status
        assert {h.number: str(h.status) for h in session.hypotheses} == self.rows
        assert sum(h.status is HypothesisStatus.IN_PROGRESS for h in session.hypotheses) <= 1
        assert [m.nodeid for m in session.members] == self.members


class Balance(HTMLParser):
    """The page's elements open and close in order."""

    VOID = {
        "meta",
        "br",
        "hr",
        "img",
        "input",
        "link",
        "path",
        "rect",
        "line",
        "circle",
        "use",
        "polyline",
        "col",
        "wbr",
    }

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("seed", range(4 * FUZZ))
def test_property_a_walk_over_the_verbs_reaches_resolved_exactly_where_the_rules_allow_it(
    place, seed, interpreter, monkeypatch
):
    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", str(interpreter[0]))
    walk, at = Walk(place, seed), 0
    for _ in range(STEPS):
        at = walk.step(at)
        walk.look()
    RESOLVED[seed] = walk.resolved
    first = page.render(place.folder).read_bytes()
    assert page.render(place.folder).read_bytes() == first
    reader = Balance()
    reader.feed(first.decode())
    assert reader.open == []
    assert first.rstrip().endswith(b"</html>")
    assert git(place.checkout, "status", "--porcelain", "README.md") == b" M README.md\n"
    assert place.session.status in set(Status)


def test_some_walk_was_resolved():
    """Walks that never get there would prove nothing."""
    if len(RESOLVED) >= 4:
        assert sum(RESOLVED.values()) > 0
