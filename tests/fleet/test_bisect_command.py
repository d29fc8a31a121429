"""bisect as a command: a clone of made-up revisions, builds by a command, a script that fails 1 time in 3, kills anywhere."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from tests.runs.conftest import place, until
from tests.surface.test_asking_the_registry import EAGER, write

__all__ = ["place"]

# Copies the package, as an installer does; a revision with the file `broken` can't be built.
BUILD = """
import os, pathlib, shutil, sys
with open(os.environ["BUILDS"], "a") as stream:
    stream.write(os.getcwd() + "\\n")
if os.path.exists("broken"):
    sys.exit("broken: no such header")
(site,) = pathlib.Path(os.environ["VIRTUAL_ENV"]).glob("lib/python3*/site-packages")
shutil.copytree("torch_spyre", site / "torch_spyre", dirs_exist_ok=True)
"""
# The fault shows in a share of the runs, the same share at every revision that has it.
SCRIPT = """
import os, random, torch_spyre
if torch_spyre.WRONG and random.random() < float(os.environ["SHOWS"]):
    raise ValueError("mean is wrong in 3 of 4 elements")
"""

# Shows the fault where the source of the installed build lacks the op.
OPS_SCRIPT = """
import importlib.util, pathlib
source = pathlib.Path(importlib.util.find_spec("torch_spyre").origin).parent / "ops/eager.py"
if "aten.sigmoid" not in source.read_text():
    raise ValueError("sigmoid is gone")
"""


class Clone:
    """A torch-spyre of made-up commits; the fault comes with one of them."""

    def __init__(self, folder, count, fault, broken=(), write=None):
        self.path = folder / "torch spyre"
        (self.path / "torch_spyre").mkdir(parents=True)
        self.git("init", "-q")
        self.shas = []
        for number in range(count):
            (self.path / "torch_spyre/__init__.py").write_text(f"WRONG = {number >= fault}\nNUMBER = {number}\n")
            if write:
                write(self.path, number >= fault)
            marker = self.path / "broken"
            marker.write_text("") if number in broken else marker.unlink(missing_ok=True)
            self.git("add", "-A")
            self.git("commit", "-qm", f"change {number}\n\nwhy it was made")
            self.shas.append(self.git("rev-parse", "HEAD"))

    def git(self, *words):
        who = ["-c", "user.name=n", "-c", "user.email=e@e", "-c", "gc.auto=0"]
        done = subprocess.run(["git", *who, "-C", self.path, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()


@pytest.fixture
def bench(place, tmp_path):
    place.env |= {"BUILDS": str(tmp_path / "builds"), "SHOWS": "1"}
    (tmp_path / "build.py").write_text(BUILD)
    place.write("repro.py", SCRIPT)
    place.write(
        "tests/test_it.py", "import torch_spyre\ndef test_it():\n    assert not torch_spyre.WRONG, 'mean is wrong'\n"
    )
    place.builds = lambda: (tmp_path / "builds").read_text().splitlines() if (tmp_path / "builds").exists() else []
    (place.packages / "torch_spyre").mkdir()
    (place.packages / "torch_spyre/__init__.py").write_text("WRONG = False  # the target's own\n")
    place.build = f"{sys.executable} {tmp_path / 'build.py'}"
    return place


def words(bench, clone, *more, good=0, bad=-1, approved=True):
    ends = ["--good", clone.shas[good], "--bad", clone.shas[bad], "--clone", clone.path, "--build", bench.build]
    return ["bisect", *ends, *(["--build-approved"] if approved else []), *more]


def state_of_bisection(folder):
    return json.loads((folder / "bisect.json").read_text())


def written(bench):
    return {str(p): p.stat().st_mtime_ns for p in bench.packages.parents[2].rglob("*") if "__pycache__" not in str(p)}


def before(clone):
    return clone.git("status", "--porcelain"), clone.git("for-each-ref"), clone.git("worktree", "list")


def test_the_commit_its_message_and_its_files_and_nobody_s_tree_is_touched(bench, tmp_path):
    clone = Clone(tmp_path, 12, fault=7, broken=(5,))
    state, own = before(clone), written(bench)
    done = bench.json(*words(bench, clone, "--", "repro.py"))
    assert done["status"] == "found" and done["status_of_process"] == 0, done
    assert done["commit"]["sha"] == clone.shas[7] and done["commit"]["subject"] == "change 7"
    assert "why it was made" in done["commit"]["message"] and done["commit"]["files"] == ["torch_spyre/__init__.py"]
    assert done["confidence"] >= 0.95 and done["bad"]["passes"] == 0 and done["good"]["fails"] == 0
    assert any(f"{clone.shas[7]} is the first bad commit" in line for line in done["git"]), done["git"]
    assert before(clone) == state and written(bench) == own
    assert len(bench.builds()) <= 8, bench.builds()
    shown = bench.call("bisect", "--show").stdout
    assert "is the first commit with the fault" in shown and "next: git -C" in shown, shown
    assert len(shown.splitlines()) <= 14


@pytest.mark.slow
def test_a_node_id_is_searched_in_the_same_way(bench, tmp_path):
    clone = Clone(tmp_path, 6, fault=3)
    bench.env["DEBUG_SPYRE_PYTHON"] = sys.executable  # it has a pytest
    done = bench.json(*words(bench, clone, "--", "tests/test_it.py::test_it"))
    assert done["status"] == "found" and done["commit"]["sha"] == clone.shas[3], done
    runs = [e for e in bench.events("run_started") if e["verb"] == "bisect" and e.get("pytest_args")]
    assert len(runs) == done["runs"]


@pytest.mark.slow
def test_the_ops_that_changed_with_the_commit_are_told(bench, tmp_path):
    """Both builds are asked for their registry, each by the Python of an environment of its own."""

    def package(root, with_it):
        made = write(root)
        (root / "notes.txt").write_text(str(time.monotonic_ns()))  # every commit changes something
        if with_it:
            (made / "ops/eager.py").write_text(EAGER.replace(", aten.sigmoid.default", ""))

    clone = Clone(tmp_path, 4, fault=2, write=package)
    bench.write("repro.py", OPS_SCRIPT)
    bench.env["DEBUG_SPYRE_PYTHON"] = sys.executable  # it has torch
    done = bench.json(*words(bench, clone, "--", "repro.py"))
    assert done["commit"]["sha"] == clone.shas[2], done
    assert done["ops"]["between"] == [clone.shas[1], clone.shas[2]], done["ops"]
    assert [c["op"] for c in done["ops"]["changes"] if c["kind"] == "lost"] == ["aten.sigmoid.default"], done["ops"]
    assert "aten.sigmoid.default eager: lost" in bench.call("bisect", "--show").stdout


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_sixty_four_revisions_flaky_at_one_in_three_on_four_cards(bench, tmp_path, seed):
    draw = random.Random(seed)
    fault = draw.randrange(1, 64)
    clone = Clone(tmp_path, 64, fault, broken={n for n in range(1, 63) if draw.random() < 0.15})
    devices = [tmp_path / f"vfio {n}" for n in range(4)]
    for device in devices:
        device.touch()
    env = {"DEBUG_SPYRE_DEVICES": os.pathsep.join(map(str, devices)), "SHOWS": "0.34"}
    done = bench.json(*words(bench, clone, "--cards", "all", "--", "repro.py"), env=env, timeout=280)
    assert done["status"] in {"found", "among"} and clone.shas[fault] in done["among"], (fault, done)
    assert set(done["untestable"].values()) <= {"the build ended with 1: broken: no such header"}
    assert 0 < done["bad"]["fails"] < done["bad"]["fails"] + done["bad"]["passes"]


@pytest.mark.parametrize(
    "victim", ["driver", *(pytest.param(v, marks=pytest.mark.long) for v in ("caller", "supervisor", "inner"))]
)
def test_kill_anything_and_the_search_goes_on_where_it_was(bench, tmp_path, victim):
    clone = Clone(tmp_path, 8, fault=5)
    caller = bench.start(*words(bench, clone, "--", "repro.py"))
    folder = until(lambda: next(bench.logs.rglob("bisect.json"), None), what="the first step").parent
    until(lambda: len(json.loads((folder / "bisect.json").read_text()).get("runs", [])) >= 3, 60, "three runs")
    state = json.loads((folder / "runs/r1/state.json").read_text())
    newest = max(folder.glob("runs/r*/state.json"), key=lambda path: int(path.parent.name[1:]))
    pids = {"caller": caller.pid, "driver": state["child"], "supervisor": state["supervisor"]}
    pid = pids.get(victim) or json.loads(newest.read_text())["supervisor"]
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        assert victim == "inner"  # that run had ended
    caller.communicate(timeout=120)
    builds = len(bench.builds())
    done = bench.json("bisect", "--resume")
    assert done["status"] == "found" and done["commit"]["sha"] == clone.shas[5], done
    assert len(bench.builds()) - builds <= 4
    assert not [run for run in state_of_bisection(folder)["runs"] if run["keys"] is None]


@pytest.mark.parametrize("target", ["tests/test_it.py::test_it", "tests/nothing.py::test_it"])
def test_a_run_without_pytest_or_without_a_test_says_nothing_about_a_revision(bench, tmp_path, target):
    clone = Clone(tmp_path, 3, fault=1)
    if "nothing" in target:
        bench.env["DEBUG_SPYRE_PYTHON"] = sys.executable
    done = bench.call(*words(bench, clone, "--", target))
    assert done.returncode == 1 and "3 runs came to nothing" in done.stderr, done.stderr
    assert ("no test ran" if "nothing" in target else "no pytest") in done.stderr, done.stderr


def test_a_client_of_an_agent_gets_status_79_and_goes_on(bench, tmp_path):
    clone = Clone(tmp_path, 5, fault=2)
    env = {"CLAUDECODE": "1"}
    refused = bench.call(*words(bench, clone, "--", "repro.py"), env=env)
    assert refused.returncode == 1 and "--build-approved is a person's decision" in refused.stderr, refused.stderr
    assert not bench.builds()
    done = bench.call(*words(bench, clone, "--foreground", "1", "--", "repro.py"))
    assert done.returncode == 79 and "debug-spyre bisect --resume" in done.stdout, done.stdout + done.stderr
    done = bench.json("bisect", "--resume", env=env | {"DEBUG_SPYRE_X": ""})
    while done["status"] == "running":
        time.sleep(0.2)
        done = bench.json("bisect", "--resume", env=env)
    assert done["commit"]["sha"] == clone.shas[2]


def test_nothing_is_built_before_a_person_confirms_it(bench, tmp_path):
    clone = Clone(tmp_path, 3, fault=1)
    done = bench.call(*words(bench, clone, "--", "repro.py", approved=False))
    assert done.returncode == 1 and "--build-approved" in done.stderr and bench.build in done.stderr, done.stderr
    assert not bench.builds() and not bench.logs.exists()


@pytest.mark.parametrize("reply", ["n", "", "y"])
def test_a_person_at_a_terminal_is_asked(bench, tmp_path, reply):
    clone = Clone(tmp_path, 3, fault=1)
    here, there = os.openpty()
    # "y" is followed as far as the first build, which ends it at once
    bench.build = f"sh -c 'echo built >> {tmp_path / 'builds'}; exit 3'"
    asked = bench.start(*words(bench, clone, "--", "repro.py", approved=False), stdin=there, stderr=there)
    os.close(there)
    os.write(here, f"{reply}\n".encode())
    asked.communicate(timeout=100)
    os.set_blocking(here, False)
    said = os.read(here, 65536).decode()
    os.close(here)
    assert "Run it? [y/N]" in said and str(clone.path) in said, said
    assert asked.returncode == 1 and ("can't be built" if reply == "y" else "nothing was built") in said, said
    assert bool(bench.builds()) == (reply == "y")


def test_a_build_that_writes_into_the_target_is_found_out(bench, tmp_path):
    clone = Clone(tmp_path, 4, fault=2)
    bench.build = f"sh -c 'cp -r torch_spyre/. \"{bench.packages}/torch_spyre/\" && {bench.build}'"
    done = bench.call(*words(bench, clone, "--", "repro.py"))
    assert done.returncode == 1 and "the build command changed the target's torch-spyre" in done.stderr, done.stderr


def test_a_build_that_installs_nothing_is_no_build(bench, tmp_path):
    clone = Clone(tmp_path, 4, fault=2)
    bench.build = "true"
    done = bench.call(*words(bench, clone, "--", "repro.py"))
    assert done.returncode == 1 and "after the build the environment has the torch_spyre of" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: [*w[:1], "--bad", *w[4:]], "--good is missing"),
        (lambda w: [x for x in w if x not in {"--", "repro.py"}], "a script or a node id after -- is missing"),
        (lambda w: [*w[:2], "v9.9", *w[3:]], "has no commit v9.9"),
        (lambda w: [*w[:2], w[4], w[3], w[2], *w[5:]], "is no ancestor of"),
        (lambda w: [*w[:6], "/nowhere", *w[7:]], "/nowhere is no git clone"),
        (lambda w: [*w[:1], "--confidence", "100", *w[1:]], "--confidence 100"),
        (lambda w: [*w[:1], "--cards", "9", *w[1:]], "--cards 9 asks for 9 cards"),
        (lambda w: [*w[:-1], "-n4", "tests/test_it.py"], "-n4 starts several processes"),
    ],
    ids=range(8),
)
def test_bad_input_is_one_line_and_nothing_is_made(bench, tmp_path, change, says):
    clone = Clone(tmp_path, 3, fault=1)
    done = bench.call(*change([str(w) for w in words(bench, clone, "--", "repro.py")]))
    assert done.returncode in {64, 69} and says in done.stderr, done.stderr
    assert not bench.builds() and not list(bench.logs.rglob("bisection.json"))


def test_no_fault_at_the_bad_end_is_said(bench, tmp_path):
    clone = Clone(tmp_path, 4, fault=9)
    done = bench.call(*words(bench, clone, "--", "repro.py"))
    assert done.returncode == 1 and "there is no fault to search for" in done.stderr, done.stderr


def test_a_script_that_changed_is_not_taken_up(bench, tmp_path):
    clone = Clone(tmp_path, 4, fault=9)
    bench.call(*words(bench, clone, "--", "repro.py"))
    bench.write("repro.py", SCRIPT + "\n# other\n")
    done = bench.call("bisect", "--resume")
    assert done.returncode == 1 and "has changed since this bisection began" in done.stderr, done.stderr
