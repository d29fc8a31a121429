"""One process holds the card, from its first device op to its end; real processes."""

import json
import os
import signal
import time

import pytest

pytestmark = pytest.mark.slow  # of the stand-in itself

HOLD = """
import sys, torch
torch.zeros(2, device="spyre")
print("up", flush=True)
sys.stdin.readline()
"""
TRY = 'import torch; torch.zeros(2, device="spyre"); print("got it")'


def free(card, seconds=20):
    """Whether the card can be had within some time."""
    import fcntl

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with open(card.device, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.05)
                continue
            return True
    return False


def held(process):
    assert process.stdout.readline() == "up\n", process.stderr.read()
    return process


def test_an_import_does_not_open_the_card(card):
    done = card.run("import torch, torch_spyre; print(torch.spyre.is_initialized(), torch.spyre.device_count())")
    assert done.stdout == "False 1\n", done.stderr
    assert not card.device.exists()


def test_a_second_process_is_told_that_the_card_is_busy(card):
    first = held(card.start(HOLD))
    second = card.run(TRY)
    assert second.returncode == 1 and "got it" not in second.stdout
    last = second.stderr.strip().splitlines()[-1]
    event = json.loads(last.removeprefix("RuntimeError: "))
    assert event["name"] == "RAS::VFIO::DeviceOpenFail"
    assert event["errno"] == "Device or resource busy"
    assert event["category"] == "configuration"
    assert event["Device"] == str(card.device)
    assert " ERRR " in second.stderr and "ras_base.hpp" in second.stderr
    first.communicate("\n", timeout=30)
    assert card.run(TRY).stdout == "got it\n"


def test_kill_9_frees_the_card(card):
    first = held(card.start(HOLD))
    first.kill()
    first.wait()
    assert free(card)


def test_the_holder_is_seen_in_proc(card):
    first = held(card.start(HOLD))
    held_files = {os.readlink(f"/proc/{first.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{first.pid}/fd")}
    assert str(card.device) in held_files
    first.communicate("\n", timeout=30)


def test_a_child_that_inherits_the_descriptor_keeps_the_card(card):
    script = """
    import os, sys, time, torch
    torch.zeros(2, device="spyre")
    if (child := os.fork()) == 0:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()
    os._exit(0)
    """
    first = card.start(script)
    child = int(first.stdout.readline())
    first.stdin.write("\n")
    first.stdin.close()
    first.wait(timeout=30)
    try:
        assert not free(card, 0.5)
        assert card.run(TRY).returncode == 1
    finally:
        os.kill(child, signal.SIGKILL)
    assert free(card)


def test_a_forked_child_cannot_use_the_card(card):
    script = """
    import os, torch
    torch.zeros(2, device="spyre")
    if os.fork() == 0:
        try:
            torch.zeros(2, device="spyre")
        except RuntimeError as error:
            print(error, torch.spyre._is_in_bad_fork(), flush=True)
        os._exit(0)
    os.wait()
    """
    done = card.run(script)
    assert "forked process" in done.stdout and "True" in done.stdout, done.stderr


def test_two_cards_can_be_held_at_once(card, tmp_path):
    first = held(card.start(HOLD))
    other = card.run(TRY, SPYRE_SIM_DEVICE=tmp_path / "other")
    assert other.stdout == "got it\n"
    first.communicate("\n", timeout=30)


def test_a_device_that_is_not_there_is_no_busy_one(card, tmp_path):
    done = card.run(TRY, SPYRE_SIM_DEVICE=tmp_path / "none" / "vfio")
    assert done.returncode == 1 and "DeviceOpenFail" in done.stderr
    assert "No such file or directory" in done.stderr and "busy" not in done.stderr
