"""The pytest plugin: one line per event, under every plugin and option that is usual there; it changes no outcome."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

INSIDE = Path(__file__).resolve().parents[2] / "scripts/debug_spyre/inside"
PYTHONS = [sys.executable, *filter(None, os.environ.get("DEBUG_SPYRE_TEST_PYTHONS", "").split(os.pathsep))]


class Target:
    def __init__(self, folder, python=sys.executable):
        self.folder, self.python = folder, python
        self.results = folder / "out/results.jsonl"
        self.results.parent.mkdir()

    def run(self, text, *args, env=None, plugins=(), name="test_it.py", timeout=120):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "DEBUG_SPYRE"))}
        variables |= {
            "PYTHONPATH": str(INSIDE),
            "DEBUG_SPYRE_RESULTS": str(self.results),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        }
        words = [self.python, "-m", "pytest", "-p", "debug_spyre_recorder", "-p", "no:cacheprovider"]
        words += [word for plugin in plugins for word in ("-p", plugin)]
        self.done = subprocess.run(
            [*words, *args, name],
            cwd=self.folder,
            env=variables | (env or {}),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )
        lines = self.results.read_text().splitlines() if self.results.exists() else []
        self.events = [json.loads(line) for line in lines]
        return self.events

    def of(self, kind):
        return [e for e in self.events if e["e"] == kind]

    def reports(self, phase="call"):
        return {e["nodeid"].partition("::")[2]: e for e in self.of("report") if e["phase"] == phase}


@pytest.fixture(params=PYTHONS, ids=lambda p: Path(p).parts[-3])
def target(tmp_path, request):
    return Target(tmp_path, request.param)


def test_a_run_from_start_to_end(target):
    target.run(
        "import pytest\n"
        "@pytest.mark.parametrize('x', ['a b', '::', 'decode(q=1,kv=2)', '</script>', '\\u202e'])\n"
        "def test_p(x): pass\n"
        "def test_bad(): assert {'a': 1} == {'a': 2}\n"
        "def test_skip(): pytest.skip('why')\n"
        "@pytest.mark.xfail(reason='known')\ndef test_x(): raise RuntimeError('hidden')\n"
        "@pytest.mark.xfail(strict=True)\ndef test_strict(): pass\n"
        "@pytest.fixture\ndef broken(): raise OSError('in set-up')\n"
        "def test_setup(broken): pass\n"
        "@pytest.fixture\ndef leaves():\n    yield\n    raise OSError('in teardown')\n"
        "def test_teardown(leaves): print('said')\n"
        "def test_out(): pass\n",
        "--deselect", "test_it.py::test_out",
    )  # fmt: skip
    assert [e["e"] for e in target.events if e["e"] != "conditions"][:2] == ["session_start", "collected"]
    assert target.events[-1] == {"e": "session_finish", "exit": 1, "at": target.events[-1]["at"]}
    collected = target.of("collected")[0]
    assert collected["ids"][:2] == ["test_it.py::test_p[a b]", "test_it.py::test_p[::]"]
    assert collected["deselected"] == ["test_it.py::test_out"]
    calls = target.reports()
    assert calls["test_p[decode(q=1,kv=2)]"]["outcome"] == "passed"
    assert calls["test_bad"]["exceptions"][0]["cls"] == "AssertionError"
    assert calls["test_bad"]["exceptions"][0]["frames"][-1]["name"] == "test_bad"
    assert calls["test_skip"]["outcome"] == "skipped" and calls["test_skip"]["wasxfail"] is None
    assert calls["test_x"]["wasxfail"] == "known" and calls["test_x"]["exceptions"][0]["message"] == "hidden"
    assert calls["test_strict"]["strict_xpass"] is True
    assert target.reports("setup")["test_setup"]["exceptions"][0]["cls"] == "OSError"
    teardown = target.reports("teardown")["test_teardown"]
    assert teardown["outcome"] == "failed" and ["Captured stdout call", "said\n"] in teardown["sections"]
    assert not target.of("recorder_fault")


def test_without_the_variable_it_does_nothing(target):
    assert target.run("def test_a(): pass\n", env={"DEBUG_SPYRE_RESULTS": ""}) == []
    assert target.done.returncode == 0


def test_the_chain_of_exceptions_ends_with_the_innermost_cause(target):
    target.run(
        "class Unsupported(Exception): pass\n"
        "class InductorError(Exception):\n"
        "    def __init__(self, inner): super().__init__(f'wrapped {inner}'); self.inner_exception = inner\n"
        "def deep():\n    raise Unsupported('Spyre backend does not support: x')\n"
        "def test_it():\n"
        "    try: deep()\n"
        "    except Unsupported as e: raise InductorError(e)\n"
        "def test_context():\n"
        "    try: 1 / 0\n"
        "    except ZeroDivisionError: raise KeyError('second')\n"
        "def test_unprintable():\n"
        "    class E(Exception):\n"
        "        def __str__(self): raise ValueError('no')\n"
        "    raise E\n"
    )
    chain = target.reports()["test_it"]["exceptions"]
    assert [e["cls"] for e in chain] == ["test_it.InductorError", "test_it.Unsupported"]
    assert chain[-1]["frames"][-1]["name"] == "deep"
    assert [e["cls"] for e in target.reports()["test_context"]["exceptions"]] == ["KeyError", "ZeroDivisionError"]
    assert "can't be shown" in target.reports()["test_unprintable"]["exceptions"][0]["message"]


WARNS = """
import warnings
class FallbackWarning(UserWarning): pass
def test_a(): warnings.warn("aten.mm.default is falling back to cpu", FallbackWarning)
def test_b(): warnings.warn("aten.mm.default is falling back to cpu", FallbackWarning)
def test_c(): pass
"""


@pytest.mark.parametrize("args", [[], ["--disable-warnings"], ["-p", "no:warnings"], ["-W", "always"]])
def test_each_fallback_is_recorded_with_its_test(target, args):
    target.run(WARNS, *args)
    seen = {(e["nodeid"], e["category"], e["message"]) for e in target.of("warning")}
    text = "aten.mm.default is falling back to cpu"
    expected = {
        ("test_it.py::test_a", "test_it.FallbackWarning", text),
        ("test_it.py::test_b", "test_it.FallbackWarning", text),
    }
    assert seen == expected
    assert all(e["file"].endswith("test_it.py") and e["line"] in (4, 5) for e in target.of("warning"))


def test_warnings_as_errors_reach_the_test_and_not_the_plugin(target):
    target.run(WARNS, "-W", "error")
    assert target.reports()["test_a"]["outcome"] == "failed" and target.reports()["test_c"]["outcome"] == "passed"
    assert not target.of("recorder_fault")


@pytest.mark.parametrize("args", [["--tb=no"], ["--tb=line"], ["-s"], ["-q", "-q"], ["--capture=tee-sys"], ["-x"]])
def test_display_options_change_nothing_in_the_record(target, args):
    target.run("def test_bad():\n    print('out')\n    assert [1] == [2]\n", *args)
    report = target.reports()["test_bad"]
    assert report["outcome"] == "failed" and report["exceptions"][0]["message"].startswith("assert [1] == [2]")
    assert target.done.returncode == 1


def test_a_process_that_dies_has_named_the_test_it_died_in(target):
    target.run("import os\ndef test_good(): pass\ndef test_dies(): os.abort()\ndef test_after(): pass\n")
    assert target.done.returncode == -6
    assert target.of("start")[-1]["nodeid"] == "test_it.py::test_dies"
    assert target.reports()["test_good"]["outcome"] == "passed" and "test_dies" not in target.reports()
    assert target.reports("setup")["test_dies"]["outcome"] == "passed"


@pytest.mark.parametrize("method", ["thread", "signal"])
def test_pytest_timeout_leaves_what_was_seen_and_the_name(target, method):
    pytest.importorskip("pytest_timeout")
    target.run("import time\ndef test_good(): pass\ndef test_hangs(): time.sleep(60)\n", "--timeout=1",
               f"--timeout-method={method}", plugins=["pytest_timeout"])  # fmt: skip
    assert target.reports()["test_good"]["outcome"] == "passed"
    assert target.of("start")[-1]["nodeid"] == "test_it.py::test_hangs"
    assert bool(target.of("session_finish")) == (method == "signal")


def test_reruns_are_told_from_results(target):
    pytest.importorskip("pytest_rerunfailures")
    target.run(
        "n = []\ndef test_it():\n    n.append(1)\n    assert len(n) > 1\n",
        "--reruns=2",
        plugins=["pytest_rerunfailures"],
    )
    assert len(target.of("rerun")) == 1 and target.reports()["test_it"]["outcome"] == "passed"


def test_a_module_that_cannot_be_collected_is_recorded(target):
    target.run("import no_such_module_here\n")
    report = target.of("report")[0]
    assert (report["phase"], report["outcome"], report["nodeid"]) == ("collect", "failed", "test_it.py")
    assert report["exceptions"][-1]["cls"] == "ModuleNotFoundError"
    assert target.of("session_finish")[0]["exit"] == 2


def test_xdist_is_refused_before_anything_runs(target):
    pytest.importorskip("xdist")
    target.run("def test_a(): pass\n", "-n2", plugins=["xdist"])
    assert target.done.returncode == 4 and "the card takes one" in target.done.stdout + target.done.stderr


def test_a_fault_of_the_plugin_is_recorded_and_never_fails_the_test(target):
    """Reports whose text can't be had, warnings that can't be shown: the test passes, the fault is a line."""
    (target.folder / "conftest.py").write_text(
        "import pytest, warnings\n"
        "class Odd(UserWarning):\n    def __str__(self): raise RuntimeError('odd')\n"
        "@pytest.hookimpl(hookwrapper=True)\n"
        "def pytest_runtest_makereport(item, call):\n"
        "    outcome = yield\n"
        "    if item.name == 'test_odd' and call.when == 'call': outcome.get_result().duration = 'no number'\n"
    )
    target.run("def test_odd(): pass\ndef test_b(): pass\n", "-p", "no:terminal")
    assert target.of("recorder_fault")[0]["hook"] == "report"
    assert target.reports()["test_b"]["outcome"] == "passed"


def test_a_full_disk_loses_lines_and_no_test(target):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    target.run("def test_a(): pass\n", env={"DEBUG_SPYRE_RESULTS": "/dev/full"})
    assert target.done.returncode == 0 and "1 passed" in target.done.stdout


def test_long_texts_are_cut_and_say_so(target):
    target.run("def test_a():\n    print('x' * 300000)\n    raise ValueError('y' * 300000)\n")
    report = target.reports()["test_a"]
    assert len(report["text"]) < 70_000 and "characters cut" in report["text"]
    assert len(report["exceptions"][0]["message"]) < 20_000
    assert max(len(line) for line in target.results.read_text().splitlines()) < 250_000


def test_the_effective_compile_mode_is_told_and_none_is_not_none(target):
    target.run(
        "import enum, sys, types, pytest\n"
        "class CompilationMode(enum.Enum):\n    NONE = 0\n    STOCK_TORCH_COMPILE = 1\n"
        "module = types.ModuleType('vllm.config.vllm')\n"
        "sys.modules['vllm.config.vllm'] = module\n"
        "@pytest.mark.parametrize('mode', [CompilationMode.NONE, CompilationMode.STOCK_TORCH_COMPILE, None])\n"
        "def test_m(mode, monkeypatch):\n"
        "    config = types.SimpleNamespace(compilation_config=types.SimpleNamespace(mode=mode))\n"
        "    module._current_vllm_config = config\n"
        "def test_without(): module._current_vllm_config = None\n"
    )
    assert [e["compile_mode"] for e in target.of("mode")] == ["NONE", "STOCK_TORCH_COMPILE", "None"]
