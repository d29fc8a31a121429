"""The nine kinds of ways to `resolved` without a fix, each in at least four ways, counted: at most one in sixteen opens.

Those that open stand in OPENS, each with its words in docs/threat-model.md. The honest control opens.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.gate.conftest import FIXED, SAME, START, git, good_story
from tests.gate.test_tries import answer, told
from tests.runs.test_forgery import judged as judged_run

from debug_spyre import cli
from debug_spyre.gate.close_request import CloseRequest, Retrospective
from debug_spyre.gate.gate import judge
from debug_spyre.session import chain
from debug_spyre.session import events as ev
from debug_spyre.session.io import seals
from debug_spyre.session.io.journal import Journal
from debug_spyre.tree.changes import Changes, read_patch
from debug_spyre.tree.io.snapshot import snapshot
from debug_spyre.tree.io.test_code import patch_since, with_test_code
from debug_spyre.vocabulary.evidence import Outcome, Work
from debug_spyre.vocabulary.words import GateState

ROOT = Path(__file__).parents[2]
A, B = "t::a", "t::b"
PLAIN = Changes(("spyre_inference/ops.py",))


def opens(story, **claim):
    request = {"tree_digest": START, "changes": PLAIN, "retrospective": Retrospective("a", "b", "c")} | claim
    return judge(story.session, story.evidence, CloseRequest(**request)).state is GateState.OPEN


def loaded(where="/site/lib", digest="1", **more):
    return {"where": where, "digest": digest, "newest": 1, "files": 1, "late": False, "always": False} | more


HERE = replace(SAME, loaded={"package lib": loaded(), "package torch_spyre": loaded("/site/torch_spyre")})


def under(conditions):
    """The good story with these conditions in the runs after the fix."""

    def way(_place):
        story = good_story()
        names = {e.run: e.name for e in story.events if isinstance(e, ev.RunStarted)}
        for run, evidence in story.evidence.items():
            after = names[run].startswith("post-fix")
            story.evidence[run] = replace(evidence, conditions=conditions if after else HERE)
        return opens(story)

    return way


def changed(**more):
    return under(replace(HERE, **more))


def also_loaded(name, **more):
    return changed(loaded={**HERE.loaded, name: loaded(f"/c/{name}", **more)})


def patched(**files):
    """The good story with a real patch of these files (`__` is a slash, `_py` an ending)."""

    def way(place):
        checkout, folder = place
        tree = snapshot(checkout, folder)
        for name, text in files.items():
            path = checkout / name.replace("__", "/").replace("_DOT_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            git(checkout, "add", "-f", str(path))
        patch = patch_since(checkout, tree, folder)
        return opens(good_story(), changes=with_test_code(read_patch(patch), patch, checkout))

    return way


def tries(*words, **more):
    return lambda _place: answer(told(*words, **more)).state is GateState.OPEN


def reruns(count):
    """A member that failed and then passed in the same process, as the recorder tells it."""

    def way(_place):
        story = told()
        run = next(e.run for e in story.events if isinstance(e, ev.RunStarted) and e.name == "post-fix")
        tests = tuple(replace(t, reruns=count if t.nodeid == A else 0) for t in story.evidence[run].tests)
        story.evidence[run] = replace(story.evidence[run], tests=tests)
        return answer(story).state is GateState.OPEN

    return way


def cpu_work(**after):
    def way(_place):
        story = good_story()
        story.events = [e for e in story.events if getattr(e, "run", None) not in {"r5", "r6"}]
        mm = {"aten.mm": 2}
        passed, failed = dict.fromkeys((A, B), "passed"), dict.fromkeys((A, B), "failed")
        work = [Work(A, mm, **after), Work(B, mm)] if after else [Work(B, mm)]
        story.run("work-after", passed, tree=FIXED, work=work, run_id="r5")
        story.run("work-before", failed, work=[Work(A, mm), Work(B, mm)], run_id="r6")
        return opens(story)

    return way


def forged(*words, **more):
    return lambda _place: judged_run(*words, **more).valid


def edited(change):
    """A real chained journal with its files, changed by hand after it was written."""

    def way(place):
        folder = place[1]
        (folder / "runs/r1").mkdir(parents=True)
        journal = Journal(folder)
        journal.append(ev.SessionOpened(stem=folder.name, slug="x", symptom="s", members=(), checkout="/c"))
        (folder / "tree").mkdir(exist_ok=True)
        for name in (
            "runs/r1/evidence.json",
            "runs/r1/results.jsonl",
            "run.txt",
            "fix.patch",
            "dossier.json",
            "runs/r1/sweep.json",
        ):
            (folder / name).write_text("as it was\n")
        end = {
            "status": "failed",
            "valid": True,
            "seconds": 1.0,
            "evidence": "runs/r1/evidence.json",
            "output": "run.txt",
        }
        journal.append(ev.RunFinished(run="r1", **end))
        journal.append(ev.ReportMade(verb="sweep", lines=("l",), report="runs/r1/sweep.json", run="r1"))
        journal.append(ev.ReportMade(verb="investigate", lines=("l",), report="dossier.json"))
        journal.append(ev.TreeReverted(patch="fix.patch", files=("a",), digest="d", patched="p"))
        assert seals.trouble(folder) is None
        change(folder)
        return opens(good_story(), trouble=seals.trouble(folder))

    return way


def file(name):
    return edited(lambda folder: (folder / name).write_text("better\n"))


def journal_text(old, new):
    return edited(lambda f: (f / "journal.jsonl").write_text((f / "journal.jsonl").read_text().replace(old, new)))


def appended(folder):
    line = {"v": 1, "seq": 9, "at": "2026-12-01T00:00:00Z", "by": "u", "kind": "session_closed", "status": "resolved"}
    with (folder / "journal.jsonl").open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def chained_anew(folder):
    """Somebody with a shell who knows how: every seal computed again, the head as well."""
    lines, before = [], None
    for text in (folder / "journal.jsonl").read_text().splitlines():
        data = {k: v for k, v in json.loads(text).items() if k not in {"prev", "sum", "digests"}}
        line = json.dumps(data, separators=(",", ":")).replace('"failed"', '"passed"')
        lines.append(before := chain.sealed(line, before, {}).encode())
    (folder / "journal.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    seals.write_head(folder, len(lines), lines[-1])


def by_an_agent(*words):
    """An agent types a person's decision; True: it got past the door."""

    def way(_place):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CLAUDECODE", "1")
            said = []
            patch.setattr(cli, "_say", lambda error, _words: said.append(str(error)))
            status = cli.main(list(words))
        return not (status == 64 or any("person's decision" in text for text in said))

    return way


CLOSE = ("close", "resolved", "--cause", "a", "--wasted", "b", "--signal", "c")
WAYS = {
    1: {
        "a fault switch turned off": changed(environment={"SPYRE_SIM_FAULT": "0"}),
        "PYTEST_ADDOPTS -p x": changed(plugins=("x",)),
        "sitecustomize on PYTHONPATH": changed(path=("/elsewhere", *SAME.path)),
        "a limit": changed(environment={"OMP_NUM_THREADS": "1"}),
        "another Python": changed(python=("python3", "3.13.0")),
        "conditions that nobody told": under(None),
    },
    2: {
        "a hidden conftest": also_loaded("conftest.py", always=True),
        "a folder that shadows a package": changed(loaded={**HERE.loaded, "package lib": loaded("/c/lib", digest="2")}),
        "a .pth": also_loaded("x.pth", always=True),
        "an installed file edited": changed(loaded={**HERE.loaded, "package lib": loaded(digest="2", newest=1)}),
        "a second torch_spyre": changed(loaded={**HERE.loaded, "package torch_spyre": loaded("/other", digest="3")}),
        "bytecode that is not the source's": changed(stale=("plugin/__init__.py",)),
    },
    3: {
        "addopts in pyproject": changed(ini={"addopts": "--deselect t::a"}),
        ".pytest.ini": changed(ini={"xfail_strict": "false"}),
        "pytest.ini in the patch": patched(pytest_DOT_ini="[pytest]\naddopts = -x\n"),
        "an edited test": patched(**{"tests__test_ops_DOT_py": "def test_ops():\n    assert 9\n"}),
        "expected values beside the source": patched(
            **{"spyre_inference__golden_values_DOT_py": "EXPECTED = 1\n", "tests__test_ops_DOT_py": "from spyre_inference.golden_values import EXPECTED\n"}
        ),
        "a tolerance in source": patched(**{"spyre_inference__ops_DOT_py": "atol = 1\n"}),
        "a conftest that skips": patched(**{"tests__conftest_DOT_py": "import pytest\npytestmark = pytest.mark.skip\n"}),
        "an option": changed(options={"runxfail": "True"}),
    },
    4: {
        "another file left out": tries(({}, {"u::d": False}), fixed_matrix={A: "passed", B: "passed", "t::c": "passed"}),
        "members only": tries(({}, {"t::c": False, "u::d": False}), fixed_matrix={A: "passed", B: "passed"}),
        "one test deselected": tries(({}, {"t::c": False}), fixed_matrix={A: "passed", B: "passed", "u::d": "passed"}),
        "narrower after the fix only": tries(fixed_matrix={A: "passed", B: "passed", "t::c": "passed"}),
        "two halves": tries(({"u::d": False}, {"t::c": False}), fixed_matrix={A: "passed", B: "passed", "u::d": "passed"}),
    },
    5: {
        "one red try on another tree": tries(reds=(("x", "backend-1"),)),
        "red after a comment edit, twice": tries(reds=(("x", "backend-1"), ("y", "backend-1")), passes=2),
        "red on another torch-spyre": tries(reds=((FIXED, "backend-2"),)),
        "red on this very tree": tries(reds=((FIXED, "backend-1"),)),
        "three red trees, two passes": tries(reds=tuple((f"x{n}", "backend-1") for n in range(3)), passes=2),
        "--reruns 30": reruns(30),
    },
    6: {
        "there and back": cpu_work(moved=(("to the CPU", "plugin/a.py:3", 1), ("to the card", "plugin/a.py:5", 1))),
        "an op on the CPU": cpu_work(cpu=(("aten.mean", "plugin/a.py:4", 1),)),
        "in a helper": cpu_work(moved=(("to the CPU", "plugin/b.py:9", 2),)),
        "both": cpu_work(cpu=(("aten.mm", "a.py:4", 3),), moved=(("to the CPU", "a.py:3", 1),)),
        "a run that counts nothing of it": cpu_work(),
    },
    7: {
        "results rewritten at exit": forged(1, Outcome.PASSED, "=== 1 failed, 1 passed in 0.10s ==="),
        "an error left out": forged(1, Outcome.PASSED, "1 passed, 1 error in 2.00s"),
        "os._exit(0)": forged(0, Outcome.PASSED, complete=False),
        "the exit status set to 0": forged(0, Outcome.FAILED, failure=True),
        "the output says that it failed": forged(0, Outcome.PASSED, "=== 2 failed in 0.10s ==="),
    },
    8: {
        "evidence.json": file("runs/r1/evidence.json"),
        "results.jsonl": file("runs/r1/results.jsonl"),
        "an output": file("run.txt"),
        "fix.patch": file("fix.patch"),
        "the report of a sweep": file("runs/r1/sweep.json"),
        "the dossier": file("dossier.json"),
        "a status in the journal": journal_text('"failed"', '"passed"'),
        "an appended session_closed": edited(appended),
        "the whole chain computed anew": edited(chained_anew),
    },
    9: {
        "--over": by_an_agent(*CLOSE, "--over", "no-edited-test", "x"),
        "--patch": by_an_agent(*CLOSE, "--patch", "x"),
        "--override": by_an_agent(*CLOSE, "--override", "no-edited-test", "x"),
        "--patch-approved=": by_an_agent(*CLOSE, "--patch-approved=fine"),
        "finish --patch-approved": by_an_agent("finish", "--patch-approved", "x"),
        "lock --rea": by_an_agent("lock", "--rea"),
        "lock --reap": by_an_agent("lock", "--reap"),
    },
}  # fmt: skip
OPENS = {(8, "the whole chain computed anew"): "compute the chain anew over a whole forged journal"}
CASES = [(kind, way) for kind, ways in WAYS.items() for way in ways]


@pytest.fixture
def place_of_it(repository, folder, monkeypatch):
    monkeypatch.chdir(repository)
    return repository, folder


@pytest.mark.parametrize(("kind", "way"), CASES, ids=[f"{kind} {way}" for kind, way in CASES])
def test_a_way_to_resolved_without_a_fix_is_shut(kind, way, place_of_it):
    assert WAYS[kind][way](place_of_it) is ((kind, way) in OPENS)


def test_the_honest_control_opens():
    assert under(HERE)(None)
    assert opens(good_story())
    assert tries()(None) and tries(reds=(("x", "backend-1"),), passes=2)(None)
    assert cpu_work(moved=())(None) is True
    assert forged(0, Outcome.PASSED, "=== 2 passed in 0.10s ===")(None)


@pytest.mark.parametrize("change", ["a fix in the source", "a fix with a test beside it left alone"])
def test_an_honest_patch_opens(change, place_of_it):
    more = {"spyre_inference__helper_DOT_py": "def half(x):\n    return x / 2\n"} if "beside" in change else {}
    assert patched(**{"spyre_inference__ops_DOT_py": "def rms(x):\n    return x * 2\n"}, **more)(place_of_it)


def test_every_kind_has_four_ways_and_at_most_one_in_sixteen_opens():
    assert set(WAYS) == set(range(1, 10))
    assert min(map(len, WAYS.values())) >= 4
    assert len(OPENS) * 16 <= len(CASES)
    model = " ".join((ROOT / "docs/threat-model.md").read_text().split())
    assert all(words in model for words in OPENS.values())
