"""The CPU control: the same test, untouched, with every Spyre device taken for the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.repro.same_fault import control_script

TEST = """
import pytest
import torch

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._target_device = torch.device("spyre")
        self.scale = torch.nn.Parameter(torch.ones(200, dtype=torch.float16), requires_grad=False)

    def forward(self, x):
        x = x.to(self._target_device)
        return x.mean(-1, keepdim=True) * self.scale.to("spyre:0") + torch.zeros(200, device="spyre", dtype=torch.float16)

@pytest.mark.parametrize("rows", [2])
def test_layer(rows):
    x = torch.ones(rows, 200, dtype=torch.float16)
    torch.testing.assert_close(Layer()(x).cpu(), torch.ones(rows, 200, dtype=torch.float16))

@pytest.mark.parametrize("rows", [2])
def test_wrong_reference(rows):
    x = torch.ones(rows, 200, dtype=torch.float16)
    torch.testing.assert_close(Layer()(x).cpu(), torch.zeros(rows, 200, dtype=torch.float16))
"""


@pytest.fixture
def checkout(tmp_path, card):
    card("partial_reduction:op=mean:width=100")
    (tmp_path / "test_layer.py").write_text(TEST)
    return tmp_path


def control(checkout, nodeid):
    script = checkout / "repro_cpu.py"
    script.write_text(control_script((nodeid,)))
    return subprocess.run([sys.executable, script], cwd=checkout, capture_output=True, text=True, env=os.environ)


def test_the_same_test_passes_on_the_cpu_while_it_fails_on_the_card(checkout):
    nodeid = "test_layer.py::test_layer[2]"
    on_card = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", nodeid], cwd=checkout, capture_output=True, text=True
    )
    assert on_card.returncode == 1, on_card.stdout
    before = (checkout / "test_layer.py").read_bytes()
    done = control(checkout, nodeid)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (checkout / "test_layer.py").read_bytes() == before
    assert not Path(os.environ["SPYRE_SIM_DEVICE"]).exists() or "DeviceOpenFail" not in done.stdout


def test_a_fault_of_our_own_logic_fails_on_the_cpu_too(checkout):
    assert control(checkout, "test_layer.py::test_wrong_reference[2]").returncode == 1


def test_a_control_that_cannot_run_answers_neither(checkout):
    assert control(checkout, "test_layer.py::test_missing").returncode == 2


def test_the_script_can_be_read_at_once():
    text = control_script(("a::b[x='1']",))
    assert len([line for line in text.splitlines() if line.strip()]) <= 32
    compile(text, "repro_cpu.py", "exec")
