"""A simulated host: device files that one process at a time may hold, and cards with a character (one lies, one hangs, one breaks)."""

import json
import os

import pytest
from tests.runs.conftest import place

__all__ = ["place"]

# What a test of the checkout does to a card: take its device file as the driver does, then wait.
CONFTEST = """
import fcntl, json, os, sys, time
import pytest

FILES = os.environ["DEBUG_SPYRE_DEVICES"].split(os.pathsep)
NATURE = json.loads(os.environ.get("HOST_NATURE", "{}"))
held = {}

def cards():
    chosen = os.environ.get("SPYRE_DEVICES", "")
    return [int(word) for word in chosen.split(",")] if chosen else list(range(len(FILES)))

class Card:
    def __init__(self):
        self.cards = cards()
        self.cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        self.nature = NATURE.get(str(self.cards[0]), "good")
    def add(self, a, b):
        if self.nature == "hangs":
            time.sleep(600)
        if self.nature == "breaks":
            raise RuntimeError('{"category":"hardware","name":"RAS::CBRB::ResponseTimeout"}')
        if self.nature == "dies":
            os.kill(os.getpid(), 9)
        return a + b + (self.nature == "lies")

@pytest.fixture
def card():
    for index in cards():
        if index not in held:
            held[index] = os.open(FILES[index], os.O_RDWR)
            try:
                fcntl.flock(held[index], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with open(os.environ["HOST_TRACE"] + ".busy", "a") as trace:
                    trace.write(f"{os.getpid()} found card {index} held\\n")
                raise
    with open(os.environ["HOST_TRACE"], "a") as trace:
        trace.write(json.dumps([os.getpid(), cards(), os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]]) + "\\n")
    return Card()
"""


@pytest.fixture
def host(place, tmp_path):
    """The checkout on a host of eight cards."""
    devices = []
    for number in range(8):
        device = tmp_path / f"vfio {number}"
        device.touch()
        devices.append(str(device))
    place.devices = devices
    place.trace = tmp_path / "trace"
    place.env |= {"DEBUG_SPYRE_DEVICES": os.pathsep.join(devices), "HOST_TRACE": str(place.trace)}
    place.write("conftest.py", CONFTEST)
    place.busy = lambda: (
        (tmp_path / "trace.busy").read_text().splitlines() if (tmp_path / "trace.busy").exists() else []
    )
    place.traced = lambda: [json.loads(line) for line in place.trace.read_text().splitlines()]
    return place


def plain_file(tests, seconds=0.0, fails=()):
    lines = ["import time, pytest", ""]
    for number in range(tests):
        lines += [f"def test_{number}(card):", f"    time.sleep({seconds})", "    assert card.add(1, 1) == 2"]
        if number in fails:
            lines += ["    assert False, 'the code is wrong'"]
        lines += [""]
    return "\n".join(lines)
