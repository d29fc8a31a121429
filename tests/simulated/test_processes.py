"""A card that hangs, dies, reports hardware errors or stays busy; real processes."""

import json
import os
import signal
import time

import pytest

pytestmark = pytest.mark.slow  # of the stand-in itself

WORK = 'import torch; x = torch.ones(4, 64, dtype=torch.float16).to("spyre"); print((x + 1).cpu().sum().item(), flush=True); '
EXP = WORK + "x.exp(); print('after', flush=True)"


def holders(device):
    """Pids with the device open."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        if str(device) in links:
            found.append(int(pid))
    return found


def test_a_hang_does_not_come_back_and_holds_the_card(card):
    process = card.start(EXP, SPYRE_SIM_FAULTS="hang:op=exp")
    try:
        assert process.stdout.readline() == "512.0\n"
        while "waiting for aten::exp" not in process.stderr.readline():
            pass
        time.sleep(0.3)
        assert process.poll() is None and holders(card.device) == [process.pid]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", ["ABRT", "SEGV", "KILL"])
def test_an_abort_dies_of_its_signal(card, name):
    done = card.run(EXP, SPYRE_SIM_FAULTS=f"abort:op=exp:signal={name}")
    assert done.returncode == -getattr(signal, f"SIG{name}") and "after" not in done.stdout
    assert ("*** BACKTRACE ***" in done.stderr and f"Signal Received: {-done.returncode}" in done.stderr) is (
        name != "KILL"
    )


@pytest.mark.parametrize(
    "kind,name",
    [
        ("timeout", "RAS::CBRB::ResponseTimeout"),
        ("busfence", "RAS::PCI::BusFence"),
        ("mapdma", "RAS::VFIO::MapDMAFailed"),
    ],
)
def test_a_hardware_error_is_a_ras_event(card, kind, name):
    done = card.run(EXP, SPYRE_SIM_FAULTS=f"ras_error:kind={kind}")
    event = json.loads(done.stderr.strip().splitlines()[-1].removeprefix("RuntimeError: "))
    assert done.returncode == 1 and event["name"] == name and event["category"] == "hardware"
    assert " ERRR " in done.stderr


def test_an_error_can_come_after_some_launches(card):
    script = WORK + "[print(i, x.exp().sum().item() > 0, flush=True) for i in range(5)]"
    done = card.run(script, SPYRE_SIM_FAULTS="ras_error:op=exp:skip=2")
    assert done.stdout.splitlines()[1:] == ["0 True", "1 True"] and done.returncode == 1


def test_slow_launches_take_longer(card):
    script = (
        WORK
        + "import time; y = x + 1; t = time.perf_counter(); [x + 1 for _ in range(5)]; print(time.perf_counter() - t > 0.5)"
    )
    assert card.run(script, SPYRE_SIM_FAULTS="slow:op=add:seconds=0.1").stdout.splitlines()[-1] == "True"


@pytest.mark.parametrize("how,stubborn", [("fork", False), ("fork", True), ("spawn", False)])
def test_an_orphan_keeps_the_card_after_the_run(card, how, stubborn):
    done = card.run(WORK, SPYRE_SIM_FAULTS=f"orphan:how={how}:seconds=60:stubborn={stubborn}")
    assert done.returncode == 0 and done.stdout == "512.0\n", done.stderr
    (orphan,) = holders(card.device)
    try:
        assert os.getpgid(orphan) != os.getpgid(0) and os.getsid(orphan) == os.getpgid(orphan) or how == "fork"
        if stubborn:
            busy = card.run(WORK)
            assert busy.returncode == 1 and "Device or resource busy" in busy.stderr
        time.sleep(0.5)  # a spawned interpreter needs a moment to ignore the signal
        os.kill(orphan, signal.SIGTERM)
        until = time.monotonic() + (0.7 if stubborn else 20)
        while holders(card.device) and time.monotonic() < until:
            time.sleep(0.05)
        assert bool(holders(card.device)) is stubborn
    finally:
        for pid in holders(card.device):
            os.kill(pid, signal.SIGKILL)


def test_an_orphan_may_keep_the_pipes_open(card):
    process = card.start(WORK, SPYRE_SIM_FAULTS="orphan:how=fork:seconds=60:pipes=keep")
    assert process.stdout.readline() == "512.0\n"
    process.wait(timeout=60)
    os.set_blocking(process.stdout.fileno(), False)
    try:
        with pytest.raises(BlockingIOError):  # not the end of the file: somebody still has the pipe
            os.read(process.stdout.fileno(), 1)
    finally:
        for pid in holders(card.device):
            os.kill(pid, signal.SIGKILL)
        process.stdout.close()
        process.stderr.close()
