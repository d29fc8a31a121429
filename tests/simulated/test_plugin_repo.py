"""The plugin repo: green on a healthy card, and each fault fails the tests that it should, in both modes."""

import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.simulated.conftest import SIMULATED

pytestmark = pytest.mark.slow  # of the stand-in itself

PLUGIN = SIMULATED / "plugin_repo"
# as our runs do: pytest's own -W would import torch_spyre before torch, and neither back end loads then
STRICT_WORDS = ("-p", "debug_spyre_strict")
STRICT = {
    "PYTHONPATH": str(SIMULATED.parents[1] / "scripts/debug_spyre/inside"),
    "DEBUG_SPYRE_STRICT": "torch_spyre.ops.fallbacks.FallbackWarning",
}


class Repo:
    def __init__(self, card, folder):
        self.card, self.folder = card, folder
        shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("__pycache__", ".*cache"))

    def pytest(self, *args, compiled=False, **env):
        """name -> outcome of each test."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--show-capture=no",
            f"--junitxml={report}",
        ]
        done = subprocess.run(
            [*command, *args],
            cwd=self.folder,
            env=self.card.environment(SPYRE_SIM_COMPILE=int(compiled), **env),
            capture_output=True,
            text=True,
            timeout=280,
        )
        self.output = done.stdout + done.stderr
        outcomes = {}
        for case in ET.parse(report).iter("testcase"):
            kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
            outcomes[f"{case.get('classname')}::{case.get('name')}"] = kinds.pop() if kinds else "passed"
        return outcomes

    def failing(self, *args, **env):
        return sorted(name for name, how in self.pytest(*args, **env).items() if how in {"failure", "error"})


@pytest.fixture
def repo(card, tmp_path):
    return Repo(card, tmp_path / "plugin repo")


def test_the_whole_matrix_is_green_with_compiled_kernels(repo):
    outcomes = repo.pytest("-m", "not upstream", "-p", "no:timeout", *STRICT_WORDS, compiled=True, **STRICT)
    assert set(outcomes.values()) == {"passed"}, repo.output
    assert 60 <= len(outcomes) <= 130
    assert any("decode(q=1,kv=256)-compilation_STOCK-device_spyre" in name for name in outcomes)
    assert "UnknownMark" not in repo.output and "Unknown config option" not in repo.output


def test_upstream_tests_are_skipped_unless_asked_for(repo):
    outcomes = repo.pytest("tests/test_upstream_layers.py")
    assert outcomes and set(outcomes.values()) == {"skipped"}


def test_a_partial_reduction_fails_the_wide_norms_only(repo):
    failing = repo.failing("tests/test_rms_norm.py", SPYRE_SIM_FAULTS="partial_reduction:op=mean:width=128")
    wide = [name for name in failing if "test_rms_norm[" in name]
    assert {re.search(r"\[\d-(\d+)-", name)[1] for name in wide} == {"256", "320"}
    assert len(wide) == 8 and not any("cpu" in name for name in failing)
    assert "Mismatched elements" in repo.output


def test_a_layout_error_comes_from_inductor(repo):
    failing = repo.failing("tests/test_silu_and_mul.py", SPYRE_SIM_FAULTS="layout_width:op=silu", compiled=True)
    assert failing == [f"tests.test_silu_and_mul::test_a_half_that_is_no_whole_stick[{n}]" for n in (100, 200)]
    assert "InductorError: Unsupported: Spyre backend does not support" in repo.output
    assert "torch_spyre/_inductor/propagate_layouts.py" in repo.output


def test_a_broadcast_overflow_fails_attention(repo):
    select = "tests/test_spyre_attn.py::test_spyre_attn_core"
    failing = repo.failing(select, "-k", "NONE", SPYRE_SIM_FAULTS="broadcast_overflow:every=2")
    assert len(failing) == 4 and all("prefill(" in name for name in failing), "one query has no odd rows"
    assert "elements exceed atol" in repo.output


def test_a_fallback_names_the_line_of_the_plugin(repo):
    select = "tests/test_rms_norm.py::test_rms_norm[1-64-compilation_NONE-device_spyre]"
    assert not repo.failing(select, SPYRE_SIM_FAULTS="falls_back:op=rsqrt")
    assert re.search(
        r"spyre_inference/custom_ops/rms_norm\.py:\d+: FallbackWarning: aten\.rsqrt\.default is falling back to cpu",
        repo.output,
    )
    assert repo.failing(select, *STRICT_WORDS, SPYRE_SIM_FAULTS="falls_back:op=rsqrt", **STRICT)


def test_a_result_that_depends_on_earlier_tests(repo):
    fault = {"SPYRE_SIM_FAULTS": "plan_reuse:op=mul"}
    select = "tests/test_rms_norm.py::test_rms_norm[{}-128-compilation_NONE-device_spyre]"
    assert not repo.failing(select.format(4), **fault)
    assert repo.failing(select.format(1), select.format(4), **fault) == [
        "tests.test_rms_norm::test_rms_norm[4-128-compilation_NONE-device_spyre]"
    ]


def test_wrong_in_graphs_only(repo):
    failing = repo.failing("tests/test_silu_and_mul.py", SPYRE_SIM_FAULTS="mode_only:op=mul:where=graph", compiled=True)
    assert failing and all("compilation_STOCK" in name for name in failing)


def test_a_crash_ends_the_run(repo):
    with pytest.raises(FileNotFoundError):
        repo.pytest("tests/test_silu_and_mul.py", SPYRE_SIM_FAULTS="abort:op=silu")
    assert "Fatal Python error: Aborted" in repo.output


def test_the_lock_file_pins_the_same_revision_as_the_project():
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))
    lock = tomllib.loads((PLUGIN / "uv.lock").read_text(encoding="utf-8"))
    revision = project["tool"]["uv"]["sources"]["torch-spyre"]["rev"]
    assert re.fullmatch(r"[0-9a-f]{40}", revision)
    (package,) = [p for p in lock["package"] if p["name"] == "torch-spyre"]
    assert package["source"]["git"].endswith(f"?rev={revision}#{revision}")


def test_the_installed_card_is_that_of_the_source_tree(torch):
    import torch_spyre

    installed = Path(torch_spyre.__file__).parent
    source = SIMULATED / "backend/torch_spyre"
    for file in source.rglob("*.py"):
        other = installed / file.relative_to(source)
        assert other.read_bytes() == file.read_bytes(), (
            f"{file.name} is stale in {installed}: make setup installs it anew"
        )
