"""First-failure reports: with TORCH_SPYRE_FFDC=1 each failure of the compiler or the card leaves a small JSON file."""

import datetime as dt
import getpass
import json
import os
import platform
import sys
import tempfile
import time
import traceback

from torch_spyre import _device

KEPT = 50


def folder():
    """Where reports go: below inductor's cache folder."""
    root = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if not root:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = str(os.getuid())
        root = os.path.join(tempfile.gettempdir(), f"torchinductor_{user}")
    return os.path.join(root, "torch-spyre", "ffdc_reports")


def report(category, error):
    """Write a report if reports are wanted; a failure to write one never hides the failure it is about."""
    if os.environ.get("TORCH_SPYRE_FFDC") != "1":
        return None
    try:
        return _write(category, error, time.perf_counter())
    except (OSError, ImportError) as problem:
        print(f"ffdc: no report written: {problem}", file=sys.stderr)
        return None


def _write(category, error, started):
    import torch

    now = dt.datetime.now(dt.UTC)
    content = {
        "metadata": {"schema_version": "1.0", "timestamp": now.isoformat(), "pid": os.getpid()},
        "failure": {
            "category": category,
            "exception_type": type(error).__name__,
            "message": str(error),
            "traceback": traceback.format_exception(error),
        },
        "artifacts": {"cache_dir": os.environ.get("TORCHINDUCTOR_CACHE_DIR")},
        "environment": {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "SENCORES": os.environ.get("SENCORES"),
        },
        "runtime": {"device": _device.path(), "open": _device.holds()},
        "hardware_state": None,
        "collector": {
            "completeness_pct": 83,
            "missing_fields": ["hardware_state"],
            "capture_latency_ms": round((time.perf_counter() - started) * 1000, 3),
        },
    }
    where = folder()
    os.makedirs(where, mode=0o700, exist_ok=True)
    file = os.path.join(where, f"ffdc_{category}_{now:%Y%m%dT%H%M%S}_{now.microsecond:06d}_{os.getpid()}.json")
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        json.dump(content, out, indent=1)
    for old in sorted(_reports(where))[:-KEPT]:
        os.unlink(os.path.join(where, old))
    return file


def _reports(where):
    return [name for name in os.listdir(where) if name.startswith("ffdc_") and name.endswith(".json")]


def last_report():
    """The newest report of any process, as a dictionary, or None."""
    try:
        names = sorted(_reports(folder()), key=lambda name: name.split("_")[-3:])
    except FileNotFoundError:
        return None
    if not names:
        return None
    with open(os.path.join(folder(), names[-1]), encoding="utf-8") as file:
        return json.load(file)
