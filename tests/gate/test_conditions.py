"""Two runs are compared only under the same conditions: each way to change them without a word, and the honest ones beside it.

The runs are real: pytest with our recorder in a process of its own, in a checkout with its own site folder.
"""

import importlib.util
import marshal
import os
import py_compile
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.gate.conftest import good_story

from debug_spyre.gate.close_request import CloseRequest, Retrospective
from debug_spyre.gate.gate import judge
from debug_spyre.runs.io.run_environment import conditions_of
from debug_spyre.tree.changes import Changes
from debug_spyre.vocabulary.conditions import Conditions, differences
from debug_spyre.vocabulary.words import GateState

INSIDE = Path(__file__).resolve().parents[2] / "scripts/debug_spyre/inside"
VARIABLES = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "DEBUG_SPYRE", "PYTHON", "COV"))}


class World:
    """A checkout and a site folder; `run` is one pytest process, told by our recorder."""

    def __init__(self, base):
        self.base, self.checkout, self.site = base, base / "checkout", base / "env/site-packages"
        for name, text in {
            "checkout/plugin/__init__.py": "from lib import answer\nvalue = answer()\n",
            "checkout/plugin/later.py": "x = 1\n",
            "checkout/tests/test_it.py": "from plugin import value\ndef test_it():\n    assert value\n",
            "checkout/pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['upstream']\n",
            "checkout/.gitignore": "ignored/\n__pycache__/\n",
            "env/site-packages/lib/__init__.py": "def answer():\n    return 42\n",
            "env/site-packages/lib/more.py": "y = 2\n",
            "env/site-packages/torch_spyre/__init__.py": "import lib\n",
            "env/site-packages/torch_spyre/table.json": "{}\n",
            "env/site-packages/fixture_plugin.py": "",
        }.items():
            self.write(name, text)
        subprocess.run(["git", "init", "-q", str(self.checkout)], check=True)
        subprocess.run(["git", "-C", str(self.checkout), "add", "-A"], check=True)

    def write(self, name, text):
        place = self.base / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def run(self, *words, **env):
        results = self.base / "results.jsonl"
        results.unlink(missing_ok=True)
        began = time.time_ns()
        path = os.pathsep.join([str(INSIDE), *filter(None, [env.pop("PYTHONPATH", None)])])
        start = f"import sys; sys.path[1:1] = [{str(self.checkout)!r}, {str(self.site)!r}]; import pytest; sys.exit(pytest.main())"
        subprocess.run(
            [sys.executable, "-c", start, "-p", "debug_spyre_recorder", "-p", "no:cacheprovider", *words, "tests"],
            cwd=self.checkout,
            env={**VARIABLES, "PYTHONPATH": path, "DEBUG_SPYRE_RESULTS": str(results),
                 "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env},
            capture_output=True,
        )  # fmt: skip
        return conditions_of(results, self.checkout, self.base / "digests.json", began_ns=began)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("world"))
    world.run()  # bytecode is written, digests are cached
    return world, world.run()


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def edited_with_time_kept(world):
    place = world.site / "lib/__init__.py"
    info = place.stat()
    place.write_text("def answer():\n    return 43\n")
    os.utime(place, ns=(info.st_atime_ns, info.st_mtime_ns))
    cached = Path(importlib.util.cache_from_source(place))
    cached.unlink(missing_ok=True)


def forged_bytecode(world):
    place = world.checkout / "plugin/__init__.py"
    cached = Path(importlib.util.cache_from_source(place))
    py_compile.compile(str(place), cfile=str(cached))
    code = compile("value = 1\n", str(place), "exec")
    cached.write_bytes(cached.read_bytes()[:16] + marshal.dumps(code))


def unchecked_bytecode(world):
    place = world.checkout / "plugin/__init__.py"
    other = world.write("other.py", "value = 1\n")
    cached = importlib.util.cache_from_source(place)
    py_compile.compile(str(other), cfile=cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def sourceless_bytecode(world):
    other = world.write("other.py", "def answer():\n    return 1\n")
    py_compile.compile(str(other), cfile=str(world.checkout / "lib.pyc"))


def hidden_conftest(world):
    world.write("checkout/.git/info/exclude", "conftest.py\n")
    world.write("checkout/conftest.py", "import plugin\nplugin.value = 1\n")


LOADED = {
    "conftest hidden by .git/info/exclude": (hidden_conftest, "conftest.py"),
    "ignored conftest beside the tests": (
        lambda w: (w.write("checkout/.gitignore", "conftest.py\n"), w.write("checkout/tests/conftest.py", "")),
        "tests/conftest.py",
    ),
    "ignored folder that shadows a package": (
        lambda w: (w.write("checkout/.gitignore", "lib/\n"), w.write("checkout/lib/__init__.py", "answer = lambda: 1\n")),
        "lib",
    ),
    "installed file edited, size and time kept": (edited_with_time_kept, "package lib"),
    "a .pth in site-packages": (lambda w: w.write("env/site-packages/x.pth", "import os\n"), "x.pth"),
    "sitecustomize": (lambda w: w.write("checkout/tests/sitecustomize.py", ""), None),
    "a table of torch_spyre": (
        lambda w: (w.write("env/site-packages/torch_spyre/table.json", "[]\n"),
                   w.write("checkout/plugin/__init__.py", "import torch_spyre\nvalue = 1\n")),
        None,
    ),
    "bytecode that is not the source's": (forged_bytecode, "bytecode of plugin/__init__.py"),
    "bytecode that is never checked": (unchecked_bytecode, "bytecode of plugin/__init__.py"),
    "bytecode without a source": (sourceless_bytecode, "lib"),
}  # fmt: skip
OTHERWISE = {"sitecustomize", "a table of torch_spyre"}


@pytest.mark.parametrize("way", sorted(LOADED.keys() - OTHERWISE))
def test_what_pytest_loads_beside_the_tree_is_a_condition(world, way):
    change, name = LOADED[way]
    before = world.run()
    change(world)
    found = differences(before, world.run())
    assert any(name in d.name for d in found), found


def test_sitecustomize_on_the_path_and_the_backends_tables_are_conditions(world):
    world.write("checkout/plugin/__init__.py", "import torch_spyre\nvalue = 1\n")
    before = world.run()
    world.write("env/site-packages/torch_spyre/table.json", "[]\n")
    assert [d.name for d in differences(before, world.run())] == ["package torch_spyre"]
    world.write("elsewhere/sitecustomize.py", "")
    found = {d.name for d in differences(before, world.run(PYTHONPATH=str(world.base / "elsewhere")))}
    assert any("sitecustomize" in name for name in found)
    assert any(name.startswith("sys.path") for name in found)


VARIANTS = {
    "a fault switch": ({"SPYRE_SIM_FAULT": "1"}, (), "variable SPYRE_SIM_FAULT"),
    "a limit": ({"OMP_NUM_THREADS": "1"}, (), "variable OMP_NUM_THREADS"),
    "any other variable": ({"LIBFOO_MODE": "slow"}, (), "variable LIBFOO_MODE"),
    "a plugin in PYTEST_ADDOPTS": ({"PYTEST_ADDOPTS": "-p fixture_plugin"}, (), "plugin fixture_plugin"),
    "PYTEST_PLUGINS": ({"PYTEST_PLUGINS": "fixture_plugin"}, (), "plugin fixture_plugin"),
    "a second torch_spyre by PYTHONPATH": ({"PYTHONPATH": "/nowhere/else"}, (), "sys.path /nowhere/else"),
    "an option": ({}, ("--runxfail",), "pytest option runxfail"),
    "a blocked plugin": ({}, ("-p", "no:faulthandler"), "plugin no:faulthandler"),
    "another ini value": ({}, ("-o", "xfail_strict=true"), "pytest option override_ini"),
}


@pytest.mark.parametrize("way", VARIANTS)
def test_variables_and_options_are_conditions_wherever_they_come_from(shared, way):
    world, before = shared
    env, words, name = VARIANTS[way]
    after = world.run(*words, **env)
    assert name in {d.name for d in differences(before, after)}


CONFIGURED = {
    "addopts in pyproject": (
        "pyproject.toml",
        "[tool.pytest.ini_options]\nmarkers = ['upstream']\naddopts = '--runxfail'\n",
    ),
    "pytest.ini": ("pytest.ini", "[pytest]\naddopts = -p fixture_plugin\n"),
    ".pytest.ini": (".pytest.ini", "[pytest]\nxfail_strict = false\n"),
    "tox.ini": ("tox.ini", "[pytest]\nusefixtures = tmp_path\n"),
    "setup.cfg": ("setup.cfg", "[tool:pytest]\naddopts = --maxfail=1\n"),
}


@pytest.mark.parametrize("way", CONFIGURED)
def test_the_configuration_counts_whichever_file_it_lies_in(world, way):
    before = world.run()
    name, text = CONFIGURED[way]
    if not name.startswith("pyproject"):
        (world.checkout / "pyproject.toml").unlink()
        before = world.run()
    world.write(f"checkout/{name}", text)
    assert differences(before, world.run())


def test_honest_work_changes_no_condition(world):
    """A fix in the plugin, more of an installed package in use, a new file of the plugin, another terminal, a touch."""
    before = world.run()
    world.write("checkout/plugin/__init__.py", "import lib.more\nfrom plugin import later, fix\nvalue = 42\n")
    world.write("checkout/plugin/fix.py", "z = 3\n")
    after = world.run(
        "--tb=long", "-v", TERM="vt100", COLUMNS="40", SSH_CONNECTION="x", CLAUDE_CODE_X="1", HF_TOKEN="s3cret-token"
    )
    names = {d.name for d in differences(before, after)}
    assert names <= {"variable HF_TOKEN"}
    assert "s3cret" not in str(after)
    assert differences(after, world.run(HF_TOKEN="another-token")) == ()


def test_a_run_that_was_cut_short_may_lack_what_is_loaded_late():
    late = {"x": {"where": "/x", "digest": "1", "newest": 5, "late": True}}
    whole = Conditions(loaded=late, ended_ns=1)
    assert differences(Conditions(complete=False), whole) == ()
    assert differences(Conditions(), whole)


def judged(before, after):
    story = good_story()
    for run, evidence in story.evidence.items():
        story.evidence[run] = replace(evidence, conditions=before if run in {"r1", "r2"} else after)
    return judge(
        story.session,
        story.evidence,
        CloseRequest(changes=Changes(("a.py",), (), ()), retrospective=Retrospective("a", "b", "c")),
    )


def test_the_gate_names_the_difference_and_shuts():
    one = Conditions(environment={"A": "1"})
    assert judged(one, one).state is GateState.OPEN
    shut = judged(one, Conditions())
    assert shut.state is GateState.SHUT
    assert [c.code for c in shut.conditions[:2]] == ["evidence-whole", "same-conditions"]  # before any outcome
    assert shut.reasons[0].code == "same-conditions"
    assert "variable A: '1' -> not set" in shut.reasons[0].text
    assert judged(None, one).state is GateState.UNKNOWN


def test_a_person_may_accept_a_difference_and_it_is_shown():
    story = good_story()
    for run, evidence in story.evidence.items():
        story.evidence[run] = replace(evidence, conditions=Conditions(environment={"RUN": run}))
    claim = CloseRequest(
        changes=Changes(("a.py",), (), ()),
        retrospective=Retrospective("a", "b", "c"),
        overrides={"same-conditions": "the new driver is meant"},
    )
    found = judge(story.session, story.evidence, claim)
    assert found.state is GateState.OPEN
    assert [x.code for x in found.overridden] == ["same-conditions"]
