"""Faults of the card and of processes: it hangs, dies, reports hardware errors, or stays busy."""

import os
import signal
import subprocess
import sys
import time

from torch_spyre import _device

from .kind import Fault, Parameter, op_parameter


class Counted(Fault):
    """Acts at a launch of its op after some that work."""

    def __init__(self, **values):
        super().__init__(**values)
        self.launches = 0

    def before(self, call):
        self.launches += 1
        if self.launches > self.skip:
            self.act(call)

    def act(self, call):
        raise NotImplementedError


SKIP = Parameter("skip", 0, "so many launches of the op work first", range(0, 4))


class Hang(Counted):
    name = "hang"
    text = "a launch does not come back"
    parameters = (op_parameter("exp"), Parameter("seconds", 3600.0, "for how long"), SKIP)

    def act(self, call):
        print(f"[unspecified]  waiting for {call.name}", file=sys.stderr, flush=True)
        time.sleep(self.seconds)


class Slow(Counted):
    name = "slow"
    text = "each launch takes longer"
    parameters = (op_parameter("*"), Parameter("seconds", 0.05, "by so much"), SKIP)

    def act(self, call):
        time.sleep(self.seconds)


class Abort(Counted):
    name = "abort"
    text = "the process dies of a signal in a launch, with the vendor's trace on stderr"
    parameters = (
        op_parameter("exp"),
        Parameter("signal", "ABRT", "`ABRT`, `SEGV` or `KILL`", ("ABRT", "SEGV")),
        SKIP,
    )

    def act(self, call):
        number = getattr(signal, f"SIG{self.signal}")
        word = {"ABRT": "Aborted", "SEGV": "Segmentation fault", "KILL": "Killed"}.get(self.signal, self.signal)
        text = [f"Signal Received: {int(number)} ({word})", "*** BACKTRACE ***"]
        text += [
            f"  #{i} 0x{0x7F0000 + i * 64:012x} in {name}"
            for i, name in enumerate(("senlib::launch", "flex::run_job", call.name))
        ]
        text += ["*** END BACKTRACE ***"]
        if number != signal.SIGKILL:
            print("\n".join(text), file=sys.stderr, flush=True)
        os.kill(os.getpid(), number)  # a fault handler, as pytest has one, prints the Python stack first
        time.sleep(60)


_RAS = {
    "timeout": (
        "RAS::CBRB::ResponseTimeout",
        "0x1a07",
        "The card did not answer in time.",
        "No response to a control block.",
    ),
    "busfence": (
        "RAS::PCI::BusFence",
        "0x2011",
        "The PCI bus of the card is fenced.",
        "Bus fence seen on the card's slot.",
    ),
    "mapdma": ("RAS::VFIO::MapDMAFailed", "0x3330", "A DMA mapping was refused.", "Failed to map memory for DMA."),
}


class RasError(Counted):
    name = "ras_error"
    text = "a launch fails with a RAS event of the hardware"
    parameters = (
        op_parameter("exp"),
        Parameter("kind", "timeout", "`timeout`, `busfence` or `mapdma`", tuple(_RAS)),
        SKIP,
    )

    def act(self, call):
        from torch_spyre.profiler import _ffdc

        name, code, description, message = _RAS[self.kind]
        error = RuntimeError(
            _device.ras(name, category="hardware", code=code, description=description, message=message)
        )
        _ffdc.report("runtime_launch", error)
        raise error


_SLEEPER = (
    "import os, signal, sys, time\n"
    "if sys.argv[2] == '1': signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "time.sleep(float(sys.argv[1]))\n"
)


class Orphan(Fault):
    name = "orphan"
    text = "a grandchild of the process, outside its process group, keeps the card open after it ends"
    parameters = (
        Parameter("how", "fork", "`fork` (twice) or `spawn`", ("fork", "spawn")),
        Parameter("seconds", 60.0, "how long it stays"),
        Parameter("stubborn", False, "it ignores SIGTERM"),
        Parameter("pipes", "close", "`close` its output, or `keep` the run's pipes open"),
    )

    def started(self):
        if self.how == "spawn":
            self._spawn()
        elif (child := os.fork()) == 0:
            os.setsid()
            if os.fork() == 0:
                self._stay()
            os._exit(0)
        else:
            os.waitpid(child, 0)

    def _spawn(self):
        out = None if self.pipes == "keep" else subprocess.DEVNULL
        subprocess.Popen(
            [sys.executable, "-c", _SLEEPER, str(self.seconds), "1" if self.stubborn else "0"],
            pass_fds=[_device.descriptor()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )

    def _stay(self):
        if self.pipes != "keep":
            quiet = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(quiet, fd)
        signal.signal(signal.SIGTERM, signal.SIG_IGN if self.stubborn else signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(self.seconds)
        os._exit(0)


FAULTS = [Hang, Slow, Abort, RasError, Orphan]
