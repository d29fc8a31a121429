"""A simulated host: device files that one process at a time may hold, and cards with a character (one lies, one hangs, one breaks)."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest
from tests.runs.conftest import place, until

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


class Dask:
    """A real scheduler and real workers on loopback, each worker with a host of its own: four cards, locks, a scratch folder."""

    def __init__(self, place, folder):
        self.place, self.folder = place, folder
        self.bin = [sys.executable, "-m", "dask"]
        self.processes, self.workers = [], {}
        self.file = folder / "scheduler.json"

    def start(self, words, env, log):
        with open(self.folder / log, "wb") as stream:
            process = subprocess.Popen(
                [*self.bin, *words], env=env, stdout=stream, stderr=stream, start_new_session=True, cwd=self.folder
            )
        self.processes.append(process)
        return process

    def scheduler(self):
        words = [
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(self.file),
        ]
        self.start(words, os.environ.copy(), "scheduler.txt")
        until(self.file.exists, 60, "the scheduler")
        self.address = json.loads(self.file.read_text())["address"]
        return self

    def worker(self, name, cards=4, offered=None, env=None, before=()):
        devices = []
        for number in range(cards):
            device = self.folder / f"{name} vfio {number}"
            device.touch()
            devices.append(str(device))
        mine = self.place.env | {
            "DEBUG_SPYRE_DEVICES": os.pathsep.join(devices), "DEBUG_SPYRE_LOCK_DIR": str(self.folder / f"locks {name}"),
            "HOST_TRACE": str(self.place.trace), "HOST_NAME": name,
        } | (env or {})  # fmt: skip
        words = ["worker", self.address, "--name", name, "--no-dashboard", "--no-nanny", "--nthreads", "1"]
        words += ["--resources", f"spyre={cards if offered is None else offered}"] if offered != 0 else []
        words += ["--local-directory", str(self.folder / f"scratch {name}"), "--host", "127.0.0.1"]
        plain, self.bin = self.bin, [*before, *self.bin]
        self.workers[name] = self.start(words, {k: v for k, v in mine.items() if v is not None}, f"{name}.txt")
        self.bin = plain
        return self

    def ready(self, count):
        code = f"from distributed import Client; c = Client({self.address!r}, timeout=30); c.wait_for_workers({count}, timeout=60)"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=100)
        return self

    def end(self):
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def dask(place, tmp_path):
    """Nothing of it runs yet."""
    place.trace = tmp_path / "trace"
    place.write(
        "conftest.py", CONFTEST.replace("os.getpid(), cards()", "os.getpid(), os.environ['HOST_NAME'], cards()")
    )
    place.traced = lambda: (
        [json.loads(line) for line in place.trace.read_text().splitlines()] if place.trace.exists() else []
    )
    place.env["DEBUG_SPYRE_CLUSTER_PYTHON"] = sys.executable
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Dask(place, folder)
    yield made
    made.end()


@pytest.fixture
def three(dask):
    """Three workers of two cards."""
    dask.scheduler()
    for name in ("ann", "bob", "cy"):
        dask.worker(name, cards=2)
    return dask.ready(3)
