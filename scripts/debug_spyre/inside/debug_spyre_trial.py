"""Runs many small scripts on the device and says of each what it showed; one JSON line each, flushed.

All in one process, or each in a child of its own (`isolated`), where one script's traces in the process would change what
the next one shows. A crash loses the script that crashed and nothing before it.
Usage: python debug_spyre_trial.py REQUEST.json RESULTS.jsonl
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from typing import Any

MOST_LISTED = 24
CHILD_SECONDS = 150.0
PR_SET_NAME = 15
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
LATER: list[Any] = []  # what loads the backends in a child
SATURATED = 65472.0  # what float16 holds when a sum has run over (torch-spyre, 2026)


def main(request_path: str, results_path: str) -> int:
    """Answer every trial of the request; the exit status says only whether all were answered."""
    with open(request_path, encoding="utf-8") as stream:
        request = json.load(stream)
    run = in_child if request.get("isolated") else run_script
    if run is in_child:
        _take_name()
    with open(results_path, "a", encoding="utf-8") as results:
        for trial in request.get("trials", []):
            _write(results, {"begun": trial["id"]})
            _write(results, {"id": trial["id"], **run(trial["text"])})
        if request.get("groups"):
            _write(results, {"id": "groups", "groups": legal_groups(request["groups"])})
        if request.get("storages"):
            _write(results, {"id": "storages", "storages": storages(**request["storages"])})
    return 0


def _write(results: Any, answer: dict[str, Any]) -> None:
    results.write(json.dumps(answer) + "\n")
    results.flush()


def in_child(text: str) -> dict[str, Any]:
    """The script in a process of its own, forked before the backend is here.

    torch-spyre takes a child that was forked after its import for one that may not use the card (2025-11 to 2026-06).
    """
    preload()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with tempfile.NamedTemporaryFile() as answer:
        child = os.fork()
        if not child:
            _answer_into(answer.name, text)
        status = _ended(child)
        try:
            with open(answer.name, encoding="utf-8") as stream:
                found = json.load(stream)
        except ValueError:
            return {"exit": None, "crash": _death(status), "error": None}
    assert isinstance(found, dict)
    return found


def preload() -> None:
    """Load torch without its device backends, once for all children; each child loads the backends for itself."""
    if "torch" in sys.modules or os.environ.get("TORCH_LOGS"):  # log names of a backend are known only with it
        return
    before = os.environ.get(AUTOLOAD)
    os.environ[AUTOLOAD] = "0"
    try:
        import torch
    finally:
        if before is None:
            del os.environ[AUTOLOAD]
        else:
            os.environ[AUTOLOAD] = before
    LATER.append(torch._import_device_backends)


def _take_name() -> None:
    """torch-spyre of 2025-11 leaves the card alone below a parent called python."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_NAME, b"debug-spyre", 0, 0, 0)


def _answer_into(path: str, text: str) -> None:
    """In the child: run the script and end as a process of its own ends."""
    atexit._clear()  # the parent's are the parent's to run
    if os.environ.get(AUTOLOAD, "1") == "1":
        for load in LATER:
            load()
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(run_script(text), stream)
    atexit._run_exitfuncs()  # the runtime gives the device back as at any exit
    os._exit(0)


def _ended(child: int) -> int | None:
    """The child's wait status; None where it took too long and was killed."""
    deadline = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _death(status: int | None) -> str:
    if status is None:
        return f"no end within {CHILD_SECONDS:g} s"
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def run_script(text: str) -> dict[str, Any]:
    """Execute one script as if it were the main module; its exit status, its words, and how far the results differ."""
    names: dict[str, Any] = {"__name__": "__main__"}
    said = io.StringIO()
    answer: dict[str, Any] = {"exit": 0, "error": None, "frames": []}
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(said):
        warnings.simplefilter("always")
        try:
            exec(compile(text, "repro.py", "exec"), names)  # noqa: S102  the scripts are ours
        except SystemExit as end:
            answer["exit"] = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException as error:  # noqa: BLE001  whatever the backend raises is the answer
            answer["exit"] = 2
            answer["error"] = {
                "cls": f"{type(error).__module__}.{type(error).__qualname__}",
                "message": str(error)[:4000],
            }
            answer["frames"] = [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-3:]]
    answer["said"] = said.getvalue()[-2000:]
    answer["fell_back"] = any(w.category.__name__ == "FallbackWarning" for w in caught)
    if "got" in names and "want" in names:
        answer["difference"] = difference(names["got"], names["want"], names.get("wrong"))
    return answer


def difference(got: Any, want: Any, wrong: Any) -> dict[str, Any]:
    """Numbers of one comparison, as plain values; `kinds` says in which ways the elements are wrong."""
    import torch

    if not torch.is_tensor(got) or not torch.is_tensor(want):
        return {"shape": None}
    data = {"shape": list(want.shape), "total": int(want.numel()), "exact": not want.is_floating_point()}
    both = got.is_floating_point() and want.is_floating_point()
    if got.shape != want.shape or (both and got.dtype != want.dtype):
        return {**data, "wrong": int(want.numel()), "kinds": ["form"]}
    if wrong is None or wrong.shape != want.shape:
        return {**data, "wrong": None, "kinds": []}
    gap = (got.double() - want.double()).abs()
    finite = gap[torch.isfinite(gap)]
    return {
        **data,
        "wrong": int(wrong.sum()),
        "max_abs": float(finite.max()) if finite.numel() else None,
        "first": [int(i) for i in wrong.nonzero()[0]] if bool(wrong.any()) else None,
        "kinds": kinds_of(got, want, wrong),
    }


def kinds_of(got: Any, want: Any, wrong: Any) -> list[str]:
    """In which ways the wrong elements are wrong: nan, overflow, lost (a finite number for nan or inf), value.

    `form` is told elsewhere: another shape or type, before any element is looked at.
    """
    g, w = got.double()[wrong], want.double()[wrong]
    large = (g.abs() >= SATURATED) & ~g.isnan()
    found = {
        "nan": g.isnan() & ~w.isnan(),
        "overflow": large & (w.abs() < SATURATED),
        "lost": (w.isnan() & ~g.isnan()) | (w.isinf() & g.isfinite() & ~large),
        "value": g.isfinite() & w.isfinite() & ~large,
    }
    return [kind for kind, where in found.items() if bool(where.any())]


def storages(*, text: str, path: str, file: str, names: dict[str, str]) -> dict[str, Any]:
    """The storages that `text` puts into `wanted`: small ones as numbers, else all of them in the file at `path`.

    `names` gives each place its key in that file. Returns {"values": {place: [...]}} or {"file": file}.
    """
    import torch

    made: dict[str, Any] = {}
    exec(compile(text, "storages.py", "exec"), made)  # noqa: S102
    wanted = {str(place): tensor.contiguous().clone() for place, tensor in made["wanted"].items()}
    if sum(t.numel() for t in wanted.values()) <= MOST_LISTED:
        return {"values": {place: t.reshape(-1).tolist() for place, t in wanted.items()}}
    torch.save({names[place]: tensor for place, tensor in wanted.items()}, path)
    return {"file": file}


def legal_groups(request: dict[str, Any]) -> list[list[int]]:
    """Which sets of size places can change together: tried on the meta device, where nothing is computed.

    `request`: {"texts": {"0,3": script text with these places changed}}, the smaller sets first.
    """
    import torch

    legal: list[list[int]] = []
    for key, text in request["texts"].items():
        chosen = [int(n) for n in key.split(",")]
        if any(set(done) <= set(chosen) for done in legal):
            continue
        try:
            with torch.device("meta"), warnings.catch_warnings():
                warnings.simplefilter("error")  # a result that is resized against its shape
                exec(compile(text, "meta.py", "exec"), {})  # noqa: S102
        except Exception:  # noqa: BLE001, S112  an illegal change
            continue
        legal.append(chosen)
    return legal


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
