"""Shared by the tests of the simulated card: a device file of their own, and scripts run in a process of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SIMULATED = Path(__file__).parents[1] / "simulated_card"


def card_environment(device, **more):
    """The environment of a process that uses the card at this file, with every switch of the simulator off."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPYRE_", "TORCH_SPYRE", "DEBUG_SPYRE"))}
    for name in ("TORCH_SENDNN_LOG", "DT_DEEPRT_VERBOSE", "DTLOG_LEVEL", "PYTHONWARNINGS", "TORCHDYNAMO_DISABLE"):
        env.pop(name, None)
    where = str(device)
    return env | {"SPYRE_SIM_DEVICE": where, "DEBUG_SPYRE_DEVICES": where} | {k: str(v) for k, v in more.items()}


class Card:
    """One card: a file in the test's folder, and how to run a script on it."""

    def __init__(self, folder):
        self.folder = folder
        self.device = folder / "vfio 7"

    def environment(self, **more):
        """Kernels are not compiled unless a test asks: most scripts are about something else, and it costs seconds."""
        more.setdefault("SPYRE_SIM_COMPILE", "0")
        return card_environment(self.device, DEBUG_SPYRE_LOCK_DIR=self.folder / "locks", **more)

    def start(self, script, **env):
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment(**env),
        )

    def run(self, script, timeout=120, **env):
        process = self.start(script, **env)
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def card(tmp_path):
    return Card(tmp_path)


@pytest.fixture(scope="session")
def torch_on_card(tmp_path_factory):
    """torch with the card up in this process; the variable is put back at once, other tests must not see it."""
    import torch
    import torch_spyre  # where torch was imported without its backends by an earlier test, it is loaded now

    torch_spyre._autoload()
    patch = pytest.MonkeyPatch()
    patch.setenv("SPYRE_SIM_DEVICE", str(tmp_path_factory.mktemp("card") / "vfio"))
    torch.empty(1, device="spyre")
    patch.undo()
    return torch


@pytest.fixture
def torch(torch_on_card):
    torch_on_card.manual_seed(11)
    return torch_on_card


@pytest.fixture
def half(torch):
    """Random float16 on the card."""
    return lambda *shape: torch.randn(*shape, dtype=torch.float16).to("spyre")
