"""Repros of tier 2 and 3 and one layer of the plugin repo on the simulated card, under a real VllmConfig (make test-vllm)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.examine.call import Call, Program, Tensor
from debug_spyre.repro.extraction import prune
from debug_spyre.repro.script import NOT_SHOWN, Fault, script

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
vllm = pytest.importorskip("vllm", reason="vLLM is not in this environment: make test-vllm builds it")

PLUGIN = Path(__file__).parents[1] / "simulated_card/plugin_repo"
INSIDE = Path(__file__).parents[2] / "scripts/debug_spyre/inside"
FAULT = "partial_reduction:op=mean:width=128"
TEST = """
import pytest
import torch
from vllm.config import CompilationConfig, CompilationMode, DeviceConfig, VllmConfig, set_current_vllm_config
from vllm.forward_context import set_forward_context

from spyre_inference.custom_ops.rms_norm import SpyreRMSNorm

WIDE = 256


@pytest.fixture
def default_vllm_config():
    config = VllmConfig(device_config=DeviceConfig(device="cpu"), compilation_config=CompilationConfig(mode=CompilationMode.NONE))
    with set_current_vllm_config(config), set_forward_context(None, config):
        yield config


def reference(x, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).half()


@pytest.mark.parametrize("hidden", [64, WIDE])
def test_rms_norm(default_vllm_config, hidden):
    torch.manual_seed(0)
    x = torch.randn(2, hidden, dtype=torch.float16)
    torch.testing.assert_close(SpyreRMSNorm(hidden)(x).cpu(), reference(x, 1e-6), atol=1e-2, rtol=1e-2)


def test_another():
    assert WIDE
"""


@pytest.fixture
def repo(tmp_path):
    """The plugin repo with one test under a real VllmConfig."""
    shutil.copytree(PLUGIN / "spyre_inference", tmp_path / "spyre_inference")
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (tmp_path / "test_layer.py").write_text(TEST)
    return tmp_path


def run(where, *words, faults=FAULT, **more):
    env = {
        **os.environ, "SPYRE_SIM_DEVICE": str(where / "device"), "SPYRE_SIM_FAULTS": faults, "HF_HUB_OFFLINE": "1",
        "VLLM_LOGGING_LEVEL": "ERROR", **more,
    }  # fmt: skip
    return subprocess.run([sys.executable, *words], cwd=where, capture_output=True, text=True, env=env, timeout=250)


def test_a_tier_2_script_shows_the_fault_inside_vllm_s_contexts_and_nothing_without_it(tmp_path):
    call = Call("aten.mean.dim", (Tensor((4, 256)), (-1,), True))
    path = tmp_path / "repro_vllm.py"
    path.write_text(script(Program(call), Fault(), vllm=True))
    assert "set_current_vllm_config" in path.read_text()
    done = run(tmp_path, path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert run(tmp_path, path, faults="").returncode == NOT_SHOWN
    path.write_text(script(Program(call), Fault(), vllm=True, device="cpu"))
    assert run(tmp_path, path).returncode == NOT_SHOWN


def test_a_layer_of_the_plugin_runs_on_the_card_under_a_real_config(repo):
    done = run(repo, "-m", "pytest", "-q", "test_layer.py", faults="")
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert "1 failed, 2 passed" in run(repo, "-m", "pytest", "-q", "test_layer.py").stdout


def test_a_pruned_test_shows_the_fault_by_itself(repo):
    text = prune((repo / "test_layer.py").read_text(), "test_rms_norm")
    assert "test_another" not in text
    (repo / "repro_test.py").write_text(text)
    done = run(repo, "-m", "pytest", "-q", "repro_test.py::test_rms_norm[256]")
    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert "Mismatched elements" in done.stdout


def test_the_recorder_tells_the_mode_of_the_active_config(repo):
    results = repo / "results.jsonl"
    done = run(
        repo, "-m", "pytest", "-q", "-p", "debug_spyre_recorder", "test_layer.py::test_rms_norm",
        PYTHONPATH=str(INSIDE), DEBUG_SPYRE_RESULTS=str(results),
    )  # fmt: skip
    assert results.is_file(), done.stdout + done.stderr
    modes = [json.loads(line) for line in results.read_text().splitlines() if '"mode"' in line]
    assert {m["compile_mode"] for m in modes if m["e"] == "mode"} == {"NONE"}
