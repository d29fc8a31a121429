"""The device file: one process holds it from its first device op until it ends, and so do children that inherit the descriptor."""

import datetime as dt
import fcntl
import json
import os
import sys
import tempfile

from .constants import DEVICE_VARIABLE

_state = {"fd": None, "pid": None}


def path():
    """The file that stands for /dev/vfio/N: of several (joined by colons) the one that SPYRE_DEVICES names."""
    files = [file for file in os.environ.get(DEVICE_VARIABLE, "").split(os.pathsep) if file]
    first = os.environ.get("SPYRE_DEVICES", "").partition(",")[0]
    if files:
        return files[int(first) if first.isdecimal() and int(first) < len(files) else 0]
    return os.path.join(tempfile.gettempdir(), f"simulated-vfio-{os.getuid()}")


def holds():
    """Whether this process (or the one it was forked from) has the card open."""
    return _state["fd"] is not None


def in_bad_fork():
    """Whether this is a forked child of a process that had the runtime up."""
    return _state["fd"] is not None and _state["pid"] != os.getpid()


def ras(name, *, category, code, description, message, **more):
    """Report one RAS event on stderr and give back its JSON text."""
    event = {
        "Device": path(),
        "action": "information" if category == "configuration" else "reset",
        "category": category,
        "code": code,
        "description": description,
        "message": message,
        "name": name,
        "severity": "ERROR",
        "type": "runtime_error",
        **more,
    }
    text = json.dumps(event, sort_keys=True, separators=(",", ":"))
    stamp = dt.datetime.now().strftime("%d.%m.%Y %H:%M:%S.%f")
    print(f"[unspecified]  ERRR {stamp} [{'ras_base.hpp':>30}:  74] {text}", file=sys.stderr, flush=True)
    return text


def _not_opened(why):
    return ras(
        "RAS::VFIO::DeviceOpenFail",
        category="configuration",
        code="0x332b",
        description="The card could not be opened; another process may own it.",
        message="Failed to open the IBM Spyre VFIO device.",
        errno=why,
        step="Validate user environment configuration",
    )


def open_once():
    """Open the card for this process; a second process gets the error that the card gives."""
    if _state["fd"] is not None:
        if in_bad_fork():
            raise RuntimeError(
                "Cannot re-initialize Spyre in a forked process: start the process with 'spawn' instead."
            )
        return False
    try:
        fd = os.open(path(), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise RuntimeError(_not_opened(os.strerror(error.errno))) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise RuntimeError(_not_opened("Device or resource busy")) from None
    os.set_inheritable(fd, True)  # as a descriptor that C++ opened
    _state.update(fd=fd, pid=os.getpid())
    return True


def descriptor():
    return _state["fd"]
