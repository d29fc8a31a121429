"""Kill anything at any moment: never two holders, no acknowledged event lost, nothing left behind, the next run works.

`make test` makes one kill in each of the telling cells (SIGKILL and SIGTERM in turn); DEBUG_SPYRE_FUZZ=N makes N of each
signal in every cell. Counts are printed.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.runs.conftest import MAIN, Place, alive, state_of, until

from debug_spyre.card.lock_file import is_held
from debug_spyre.host.processes import RUN_FOLDER

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "0"))
FAMILY = """
import fcntl, os, signal, subprocess, sys, time
device, holder, folder, seconds, stubborn = sys.argv[1:6]
me = sys.argv[6] if len(sys.argv) > 6 else "child"
if stubborn == "yes":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
def say(who):
    path = os.path.join(folder, who)
    with open(path + ".new", "w") as stream:
        stream.write(str(os.getpid()))
    os.rename(path + ".new", path)
def live(who):
    if holder == who:
        fd = os.open(device, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            open(os.path.join(folder, "two-holders"), "w").close()
            sys.exit(9)
    say(who)
    time.sleep(float(seconds))
    os._exit(0)
if me == "spawn":
    live("spawn")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        live("fork")
    os._exit(0)
subprocess.Popen([sys.executable, __file__, *sys.argv[1:6], "spawn"], start_new_session=True)
if holder == "leave":  # the command ends; what it started stays
    while not all(os.path.exists(os.path.join(folder, who)) for who in ("fork", "spawn")):
        time.sleep(0.005)
    sys.exit(0)
live("child")
"""
CELLS = [
    *[("waiting", target) for target in ("caller", "supervisor")],
    *[("running", target) for target in ("caller", "supervisor", "child", "fork", "spawn", "supervisor+child")],
    *[("teardown", target) for target in ("caller", "supervisor", "fork", "spawn")],
    *[("releasing", target) for target in ("caller", "supervisor")],
]
FEW = [
    ("waiting", "supervisor"),
    ("running", "caller"),
    ("running", "supervisor"),
    ("running", "child"),
    ("running", "supervisor+child"),
    ("teardown", "supervisor"),
    ("teardown", "spawn"),
    ("releasing", "caller"),
]
COUNTS = {}


_HOLD = """
import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR); fcntl.flock(fd, fcntl.LOCK_EX)
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]): time.sleep(0.02)
"""


class Trial:
    """One job, one kill in one phase, and what must hold afterwards."""

    def __init__(self, place, folder, env=None):
        self.place, self.folder, self.env = (
            place,
            folder,
            {"DEBUG_SPYRE_GRACE": "0.4", "DEBUG_SPYRE_RELEASE": "1.5", **(env or {})},
        )
        self.folder.mkdir()
        self.program = place.checkout.parent / "family.py"
        self.program.write_text(FAMILY)
        self.others = []

    def family(self, holder, seconds, stubborn="no"):
        return [sys.executable, self.program, self.place.device, holder, self.folder, seconds, stubborn]

    def pid(self, who):
        path = self.folder / who
        until(path.exists, what=who)
        return int(path.read_text())

    def begin(self, phase, target):
        """Bring the job into the phase; returns the caller."""
        place = self.place
        if phase == "waiting":
            ready = self.folder / "holding"
            command = [sys.executable, "-c", _HOLD, place.device, ready, self.folder / "release"]
            self.others.append(place.start("exec", "--", *command))
            until(ready.exists)
            caller = place.start("exec", "--", *self.family("child", 0.2), env=self.env)
            until(lambda: state_of(place).get("holder"), what="waiting")
        elif phase == "running":
            holder = {"fork": "fork", "spawn": "spawn", "supervisor+child": "spawn"}.get(target, "child")
            caller = place.start(
                "exec", "--", *self.family(holder, 2 if target in {"caller", "fork", "spawn"} else 6), env=self.env
            )
            for who in ("child", "fork", "spawn"):
                self.pid(who)
        elif phase == "teardown":
            caller = place.start("exec", "--", *self.family("leave", 6, "yes"), env=self.env)
            self.pid("spawn")
            until(lambda: not alive(state_of(place).get("child", os.getpid())), what="the command's end")
        else:
            ready, go = self.folder / "foreign", self.folder / "go"
            outside = f"while [ ! -e {go} ]; do sleep 0.02; done; exec {sys.executable} {place.target} '{place.device}' self 0.7 {ready}"
            self.others.append(subprocess.Popen(["sh", "-c", outside], stdout=subprocess.DEVNULL))
            script = f"touch {go}; while [ ! -e {ready} ]; do sleep 0.02; done"
            caller = place.start("exec", "--", "sh", "-c", script, env=self.env)
            until(ready.exists)
            until(lambda: not alive(state_of(place).get("child", os.getpid())), what="the command's end")
        return caller

    def kill(self, caller, target, number):
        state = state_of(self.place)
        for who in target.split("+"):
            pid = {"caller": caller.pid, "supervisor": state.get("supervisor"), "child": state.get("child")}.get(who)
            with_name = pid if pid is not None else self.pid(who)
            try:
                os.kill(with_name, number)
            except ProcessLookupError:
                pass
            until(lambda pid=with_name: number != signal.SIGKILL or not alive(pid), what="death")

    def end(self):
        for other in self.others:
            other.kill()
            other.communicate()


def events_of(place):
    found = {}
    for path in place.logs.rglob("journal.jsonl"):
        found[path] = path.read_text().splitlines()
    return found


def lock_file(place):
    (found,) = place.locks.iterdir()
    return found


def mine(place):
    """Processes that a run of this place started and that live."""
    marker = f"{RUN_FOLDER}={place.checkout}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker in (entry / "environ").read_bytes() and alive(entry.name):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def check(trial, phase, target, number):
    place = trial.place
    caller = trial.begin(phase, target)
    acknowledged = events_of(place)
    try:
        trial.kill(caller, target, number)
        state = state_of(place)
        (trial.folder / "release").touch()
        if phase == "running" and number == signal.SIGKILL and "child" not in target and alive(state.get("child", 0)):
            # not handed over while the command still runs (if nobody has begun to end it)
            assert is_held(lock_file(place)) or not alive(state["child"]), (
                "the lock was free while the command was on the card"
            )
        if target != "caller":
            caller.wait(60)
        # the next run, in a folder of its own
        after = place.json("exec", "--wait", "60", "--", *trial.family("child", 0.1), env=trial.env)
        assert after["status"] == "passed", after
        assert not (trial.folder / "two-holders").exists(), "two processes had the device"
        if phase == "waiting" and target == "caller":
            until(lambda: len(place.events("run_finished")) == 3, what="the job whose caller died while it waited")
        if len(place.events("run_finished")) < len(place.events("run_started")):
            place.call("wait", env=trial.env)  # whoever looks records the end of a run whose supervisor died
        for path, lines in acknowledged.items():
            assert path.read_text().splitlines()[: len(lines)] == lines, "an acknowledged event is gone"
        assert len(place.events("run_finished")) == len(place.events("run_started")), "a run without its end"
        until(lambda: not mine(place), seconds=15, what=f"nothing left behind ({mine(place)})")
        assert is_held(lock_file(place)) is False
    finally:
        caller.kill()
        caller.communicate()
        trial.end()
    COUNTS[phase, target, number.name] = COUNTS.get((phase, target, number.name), 0) + 1
    print(phase, target, number.name, COUNTS[phase, target, number.name], flush=True)


@pytest.mark.parametrize(("phase", "target"), CELLS if FUZZ else FEW)
def test_kill_matrix_fuzz(tmp_path, phase, target):
    numbers = (signal.SIGKILL, signal.SIGTERM)
    if FUZZ:
        wanted = [number for number in numbers for _ in range(FUZZ)]
    else:
        wanted = [numbers[CELLS.index((phase, target)) % 2]] if "+" not in target else [signal.SIGKILL]
    for count, number in enumerate(wanted):
        folder = tmp_path / f"{count}"
        folder.mkdir()
        check(Trial(Place(folder), folder / "trial"), phase, target, number)


def test_without_the_descriptor_in_the_child_the_matrix_goes_red(place, tmp_path):
    trial = Trial(place, tmp_path / "trial", env={"DEBUG_SPYRE_UNSAFE_NO_DESCRIPTOR": "1"})
    caller = trial.begin("running", "supervisor")
    caller.kill()  # else it notices at once that the supervisor died, and ends the command
    caller.communicate()
    trial.kill(caller, "supervisor", signal.SIGKILL)
    assert alive(trial.pid("child"))
    assert is_held(lock_file(place)) is False, "free while the command is on the card: what the matrix must find"
    assert place.json("exec", "--", "true", env=trial.env)["status"] == "passed"
    assert not mine(place)


def test_without_looking_who_has_the_device_the_matrix_goes_red(place, tmp_path):
    """A spawned grandchild has no descriptor of ours: with the lock alone a second process gets on the card."""
    trial = Trial(place, tmp_path / "trial")
    caller = trial.begin("running", "supervisor+child")
    caller.kill()
    caller.communicate()
    trial.kill(caller, "supervisor+child", signal.SIGKILL)
    for who in ("fork",):
        os.kill(trial.pid(who), signal.SIGKILL)
    until(lambda: is_held(lock_file(place)) is False, what="the lock is free")
    trusting = trial.env | {"DEBUG_SPYRE_UNSAFE_NO_HOLDER_CHECK": "1"}
    place.json("exec", "--", *trial.family("child", 0.1), env=trusting)
    assert (trial.folder / "two-holders").exists(), "what the matrix must find"
    (trial.folder / "two-holders").unlink()
    assert place.json("exec", "--", *trial.family("child", 0.1), env=trial.env)["status"] == "passed"
    assert not (trial.folder / "two-holders").exists() and not mine(place)


def test_no_protection_can_be_taken_away_from_a_real_card(place, tmp_path):
    """A device file is real; /dev/zero stands for one that another process has open."""
    ready = tmp_path / "open"
    code = "import sys, time, pathlib; f = open('/dev/zero'); pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code, str(ready)])
    try:
        until(ready.exists)
        env = {"DEBUG_SPYRE_DEVICES": "/dev/zero", "DEBUG_SPYRE_UNSAFE_NO_HOLDER_CHECK": "1"}
        refused = place.call("exec", "--no-wait", "--", "true", env=env)
        assert refused.returncode == 75 and str(holder.pid) in refused.stderr
    finally:
        holder.kill()
        holder.wait()
    unset = place.json("exec", "--", "sh", "-c", "test -z $DEBUG_SPYRE_UNSAFE_NO_HOLDER_CHECK", env=env)
    assert unset["status"] == "passed" and any("had no effect" in w for w in unset["warnings"])
    told = place.json("exec", "--", "true", env={"DEBUG_SPYRE_UNSAFE_NO_DESCRIPTOR": "1"})
    assert any("was not protected" in w for w in told["warnings"])


def test_eight_processes_contend_for_the_card(place, tmp_path):
    """Runs through the command: 8 at a time, each several times; every one passes, none meets another on the device."""
    rounds = 25 if FUZZ else 1
    trial = Trial(place, tmp_path / "trial")
    script = f"set -e; for i in $(seq {rounds}); do {sys.executable} -c \"$MAIN\" exec -- {sys.executable} {place.target} '{place.device}' self 0.02 {tmp_path}/ready >/dev/null 2>&1; done"
    began = time.monotonic()
    several = [
        subprocess.Popen(["sh", "-c", script], cwd=place.checkout, env=place.env | {"MAIN": MAIN}) for _ in range(8)
    ]
    assert [p.wait(280 if not FUZZ else 3000) for p in several] == [0] * 8
    assert not (tmp_path / "ready.busy").exists()
    assert len(place.events("run_finished")) == 8 * rounds
    assert {e["status"] for e in place.events("run_finished")} == {"passed"}
    print(f"{8 * rounds} contended runs in {time.monotonic() - began:.0f} s")
    trial.end()
