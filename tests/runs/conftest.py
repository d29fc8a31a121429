"""What the tests of runs share: a checkout, a device file of its own, the command as people start it, targets that hold."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAIN = "import sys; sys.path.insert(0, {!r}); from debug_spyre.cli import main; sys.exit(main())".format(
    str(ROOT / "scripts")
)

# Holds the device file open with a lock, as one process holds a card; `how` says which process of a small family does.
TARGET = """
import fcntl, os, subprocess, sys, time
device, how, seconds, ready = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
def hold():
    fd = os.open(device, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("DeviceOpenFail: Device or resource busy", flush=True)
        with open(ready + ".busy", "a") as stream:
            stream.write("busy\\n")
        sys.exit(9)
    with open(ready, "a") as stream:
        stream.write(f"{os.getpid()}\\n")
    print("holding", flush=True)
    time.sleep(seconds)
    sys.exit(0)
if how == "self":
    hold()
if how == "fork":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            hold()
        os._exit(0)
    time.sleep(seconds)
if how == "spawn":
    subprocess.Popen([sys.executable, __file__, device, "self", str(seconds), ready], start_new_session=True)
    time.sleep(seconds)
if how == "orphan":  # leaves a child on the card and ends well
    subprocess.Popen([sys.executable, __file__, device, "self", str(seconds), ready], start_new_session=True)
    while not os.path.exists(ready):
        time.sleep(0.01)
"""


class Place:
    """A checkout with its own device, lock folder and logs; starts the command in it."""

    def __init__(self, folder):
        self.checkout = folder / "check out"
        self.checkout.mkdir()
        self.device = folder / "card 0"
        self.device.touch()
        self.locks = folder / "locks"
        self.target = folder / "target.py"
        self.target.write_text(TARGET)
        # an environment of its own, with its own (empty) site-packages: what is installed beside us does not matter
        self.python = folder / "env/bin/python"
        self.packages = folder / "env/lib/python3.11/site-packages"
        self.packages.mkdir(parents=True)
        self.python.parent.mkdir()
        self.python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        self.python.chmod(0o755)
        subprocess.run(["git", "init", "-q", str(self.checkout)], check=True)
        self.env = {
            k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "DEBUG_SPYRE", "PYTEST_", "SPYRE_"))
        }
        self.env |= {
            "DEBUG_SPYRE_DEVICES": str(self.device),
            "DEBUG_SPYRE_LOCK_DIR": str(self.locks),
            "DEBUG_SPYRE_GRACE": "3",
            "DEBUG_SPYRE_RELEASE": "5",
            "DEBUG_SPYRE_PYTHON": str(self.python),
            "SPYRE_SIM_DEVICE": str(self.device),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # quicker; tests of plugins take it back
        }

    @property
    def logs(self):
        return self.checkout / ".claude/skills/debug-spyre/logs"

    def write(self, name, text):
        path = self.checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *words, env=None, **how):
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace", **how}
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            cwd=how.pop("cwd", self.checkout),
            env=self.env | (env or {}),
            **how,
        )

    def call(self, *words, env=None, timeout=120, **how):
        process = self.start(*words, env=env, **how)
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def json(self, *words, env=None, **how):
        done = self.call(words[0], "--json", *words[1:], env=env, **how)
        assert done.stdout, done.stderr
        return json.loads(done.stdout) | {"status_of_process": done.returncode}

    def folders(self):
        return sorted(p.parent for p in self.logs.rglob("journal.jsonl"))

    def events(self, kind=None):
        found = []
        for folder in self.folders():
            found += [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
        return [e for e in found if kind in (None, e["kind"])]

    def hold(self, how="self", seconds=30):
        """Words of a command that holds the device."""
        ready = self.checkout.parent / f"ready-{time.monotonic_ns()}"
        return [sys.executable, str(self.target), str(self.device), how, str(seconds), str(ready)], ready


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def until(condition, seconds=30, what="it"):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come about in {seconds} s")


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def state_of(place):
    """The newest run's state.json."""
    found = sorted(place.logs.rglob("state.json"), key=lambda p: p.stat().st_mtime_ns)
    try:
        return json.loads(found[-1].read_text()) if found else {}
    except (OSError, ValueError):
        return {}
