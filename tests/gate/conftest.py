"""A real git repository with the user's own uncommitted and staged work in it, and a session folder beside it."""

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from debug_spyre.cli import main
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import Folder, load_session
from debug_spyre.session.replay import replay
from debug_spyre.tree.io.snapshot import snapshot
from debug_spyre.vocabulary.conditions import Conditions
from debug_spyre.vocabulary.evidence import (
    Evidence,
    Failure,
    Kind,
    Outcome,
    Severity,
    TestRecord,
    Work,
    evidence_to_json,
)

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def git(where, *words, **kw):
    done = subprocess.run(
        ["git", *words], cwd=where, capture_output=True, env={**os.environ, **IDENTITY}, check=True, **kw
    )
    return done.stdout


def state_of(checkout):
    """Everything a user would miss: each file's bytes, kind and exec bit, the index and HEAD."""
    files = {}
    for place in sorted(Path(checkout).rglob("*")):
        rel = os.fsencode(place.relative_to(checkout))
        if rel.startswith((b".git/", b".pytest_cache/")) or b"/logs/" in rel or b"__pycache__" in rel:
            continue
        if place.is_symlink():
            files[rel] = ("link", os.readlink(place))
        elif place.is_file():
            files[rel] = (bool(place.stat().st_mode & 0o100), place.read_bytes())
    index = git(checkout, "ls-files", "-s", "-z")
    head = (Path(checkout) / ".git/HEAD").read_bytes()
    return files, index, head


@pytest.fixture
def repository(tmp_path):
    """Committed source and tests, an unstaged edit, a staged edit, a staged new file, an untracked file, a deletion."""
    checkout = tmp_path / 'check out\'s "odd" naïve'
    checkout.mkdir()
    git(checkout, "init", "-q", "-b", "main")

    def write(name, text):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_bytes(text.encode() if isinstance(text, str) else text)

    write("spyre_inference/ops.py", "def rms(x):\n    return x\n")
    write("spyre_inference/blob.bin", bytes(range(256)) * 8)
    write("tests/test_ops.py", "def test_ops():\n    assert True\n")
    write("README.md", "read me\n")
    write("gone.txt", "the user deleted this\n")
    write("run.sh", "#!/bin/sh\n")
    os.chmod(checkout / "run.sh", 0o755)
    os.symlink("spyre_inference/ops.py", checkout / "link.py")
    write(".gitignore", "*.log\nbuild/\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "start")
    write("README.md", "read me\r\nmixed ends\n")
    write("tests/test_ops.py", "def test_ops():\n    assert 1\n")
    git(checkout, "add", "tests/test_ops.py")
    write("tests/test_ops.py", "def test_ops():\n    assert 2\n")
    write("spyre_inference/staged.py", "x = 1\n")
    git(checkout, "add", "spyre_inference/staged.py")
    write("notes by hand.txt", "mine\n")
    write("debug.log", "ignored\n")
    os.unlink(checkout / "gone.txt")
    return checkout


@pytest.fixture
def folder(repository):
    """A session's folder in the place where sessions lie."""
    place = repository / ".claude/skills/debug-spyre/logs/debug-20261130-010203-x"
    place.mkdir(parents=True)
    return place


# A session as events and evidence, for the pure parts ---------------------------------------------------------------

START, FIXED, OTHER = "start000", "fixed000", "other000"
SAME = Conditions(python=("python3", "3.12.1"), path=("/c",))
BACKEND, REBUILT = "backend-1", "backend-2"


class Story:
    """Events of one session written down one after the other, and the evidence of its runs."""

    def __init__(self, members=("t::a", "t::b"), *, matrix=("tests",), start=START, checkout="/c"):
        self.events, self.evidence = [], {}
        dicts = [m if isinstance(m, dict) else {"nodeid": m, "predicate": {"kind": "fails"}} for m in members]
        self.add(
            ev.SessionOpened(
                stem="debug-20261130-010203-x",
                slug="x",
                symptom="s",
                members=tuple(dicts),
                checkout=checkout,
                matrix=matrix,
                tree={"digest": start},
                backend=BACKEND,
            )
        )

    def add(self, event):
        seq = len(self.events) + 1
        self.events.append(replace(event, seq=seq, at=f"2026-11-30T00:{seq // 60:02d}:{seq % 60:02d}.000Z", by="t"))
        return self.events[-1]

    def run(
        self,
        name,
        tests,
        *,
        tree=START,
        tree_after="same",
        backend=BACKEND,
        members_only=None,
        valid=True,
        complete=True,
        selected=None,
        options=(),
        run_id=None,
        busy=False,
        env=None,
        conditions=SAME,
        work=(),
    ):
        """`tests`: node id -> outcome word, or a dict with outcome, kind, severity, seconds, fallbacks."""
        run_id = run_id or f"r{sum(e.kind == 'run_started' for e in self.events) + 1}"
        if members_only is None:
            members_only = name in {"baseline", "post-fix", "work-before", "work-after"}
        self.add(
            ev.RunStarted(
                run=run_id, verb="run", name=name, argv=("pytest",), output=f"{name}.txt", pytest_args=("x",),
                members_only=members_only, tree_digest=tree, backend=backend, env=env or {},
            )
        )  # fmt: skip
        records, failures = [], []
        for nodeid, told in tests.items():
            told = {"outcome": told} if isinstance(told, str) else told
            outcome = Outcome(told["outcome"])
            if outcome is not Outcome.MISSING:
                records.append(
                    TestRecord(nodeid, outcome, told.get("seconds"), fallbacks=tuple(told.get("fallbacks", ())))
                )
            if outcome in {Outcome.FAILED, Outcome.ERROR, Outcome.CRASHED, Outcome.TIMEOUT}:
                severity = told.get("severity")
                failures.append(
                    Failure(
                        nodeid, "call", Kind(told.get("kind", "mismatch")),
                        severity=Severity(severity) if severity else None, tags=("card-busy",) if busy else (),
                    )
                )  # fmt: skip
        self.evidence[run_id] = Evidence(
            sources=(),
            counts=None,
            complete=complete,
            failures=tuple(failures),
            tests=tuple(records),
            selected=tuple(tests if selected is None else selected),
            conditions=conditions,
            work=tuple(work),
        )
        self.add(
            ev.RunFinished(
                run=run_id, status="failed" if failures else "passed", valid=valid, seconds=1.0, exit=0,
                scope={"digest": None, "collected": len(tests), "options": list(options)},
                evidence=f"runs/{run_id}/evidence.json", backend=backend,
                tree_digest=tree if tree_after == "same" else tree_after,
            )
        )  # fmt: skip
        return run_id

    def count(self, before=(), after=(), *, fixed=FIXED):
        """What the members do, counted without the fix and with it; the same where nothing is told."""
        ids = [m.nodeid for m in self.session.members]
        plain = [Work(n, {"aten.mm": 1}) for n in ids]
        runs = [("work-after", "passed", fixed, after), ("work-before", "failed", START, before)]
        reverted = any(e.kind == "tree_reverted" for e in self.events)
        for name, outcome, tree, work in runs if reverted else runs[::-1]:
            self.run(name, dict.fromkeys(ids, outcome), tree=tree, work=work or plain)

    def row(self, verdict="confirmed"):
        number = sum(e.kind == "hypothesis_added" for e in self.events) + 1
        self.add(ev.HypothesisAdded(number=number, text="h", test="c"))
        if verdict == "dropped":
            self.add(ev.HypothesisDropped(number=number, reason="r"))
        elif verdict != "queued":
            self.add(ev.HypothesisStarted(number=number, command="c"))
            if verdict != "in-progress":
                self.add(ev.HypothesisConcluded(number=number, verdict=verdict, sentence="s", runs=("r1",)))
        return number

    def table(self, runs, members=None, changes=None):
        members = members if members is not None else [m.nodeid for m in self.session.members]
        matrix = None if changes is None else {"changes": changes}
        self.add(
            ev.ValidationRecorded(
                rows=tuple({"nodeid": n, "pre": "failed", "post": "passed", "note": ""} for n in members),
                runs=tuple(runs),
                matrix=matrix,
            )
        )

    @property
    def session(self):
        return replay(self.events)


def good_story(**kw):
    """A session whose gate is open: each test takes one thing away."""
    story = Story(**kw)
    ids = [m.nodeid for m in story.session.members]
    story.run("full-matrix", {**dict.fromkeys(ids, "failed"), "t::c": "passed", "t::d": "skipped"})
    story.run("baseline", dict.fromkeys(ids, "failed"))
    story.row()
    a = story.run("post-fix", dict.fromkeys(ids, "passed"), tree=FIXED)
    b = story.run("post-fix-matrix", {**dict.fromkeys(ids, "passed"), "t::c": "passed", "t::d": "skipped"}, tree=FIXED)
    story.table([a, b])
    story.add(ev.TreeReverted(patch="fix.patch", files=("a.py",), digest=START, patched=FIXED))
    story.count()
    return story


# the verbs on real folders --------------------------------------------------------------------------------


@pytest.fixture
def place(repository, folder, monkeypatch, capsys, tmp_path):
    """A checkout with a session in it, told by a story; `run` calls a verb and gives (status, out, err)."""

    class Place:
        def __init__(self):
            self.checkout, self.folder = repository, Folder(folder)

        def tell(self, story):
            """The story becomes the journal and the evidence files, with this checkout and its real tree."""
            tree = snapshot(self.checkout, folder)
            real = {START: tree["digest"], FIXED: "fixed-in-the-past"}
            lines = []
            for event in story.events:
                data = json.loads(ev.to_line(event))
                if data["kind"] == "session_opened":
                    data |= {"checkout": str(self.checkout), "tree": tree}
                for key in ("tree_digest", "digest", "patched"):
                    data[key] = real.get(data[key], data[key]) if isinstance(data.get(key), str) else data.get(key)
                if data.get("tree_digest") is None:
                    data.pop("tree_digest", None)
                for key in ("digest", "patched"):
                    if data.get(key) is None:
                        data.pop(key, None)
                lines.append(json.dumps(data) + "\n")
            (folder / "journal.jsonl").write_text("".join(lines))
            for run, evidence in story.evidence.items():
                (folder / "runs" / run).mkdir(parents=True, exist_ok=True)
                (folder / "runs" / run / "evidence.json").write_text(json.dumps(evidence_to_json(evidence)))
            return tree

        @property
        def session(self):
            return load_session(self.folder)

        def run(self, *words):
            capsys.readouterr()
            try:
                status = main([str(w) for w in words])
            except SystemExit as end:
                status = end.code
            seen = capsys.readouterr()
            return status, seen.out, seen.err

        def json(self, *words):
            status, out, _ = self.run(*words, "--json")
            data = json.loads(out)
            assert data["schema"] == 1
            return status, data

    # an interpreter without a torch-spyre: what the machine has installed is no part of these tests
    bare = tmp_path / "bare/bin/python"
    bare.parent.mkdir(parents=True)
    bare.symlink_to(sys.executable)
    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", str(bare))
    monkeypatch.chdir(repository)
    return Place()


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory):
    """A virtual environment with pytest and a torch-spyre of its own, so that tests may change it."""
    venv = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = next(venv.glob("lib/python3*/site-packages"))
    (packages / "base.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    stand_in = packages / "torch_spyre"
    (stand_in / "ops").mkdir(parents=True)
    (stand_in / "__init__.py").write_text("__version__ = '0.0.1'\n")
    (stand_in / "ops/__init__.py").write_text("")
    (stand_in / "ops/fallbacks.py").write_text(
        "import warnings\n"
        "class FallbackWarning(UserWarning):\n    pass\n"
        "def fall_back(op):\n"
        "    warnings.warn(f'torch.ops.{op} is falling back to cpu', FallbackWarning, stacklevel=2)\n"
    )
    (packages / "torch_spyre-0.0.1.dist-info").mkdir()
    (packages / "torch_spyre-0.0.1.dist-info/METADATA").write_text("Name: torch-spyre\nVersion: 0.0.1\n")
    return venv / "bin/python", stand_in
