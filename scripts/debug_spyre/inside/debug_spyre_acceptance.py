"""Checks on a real card what debug-spyre was only tried on simulations: python debug_spyre_acceptance.py [NAME].

Without a name each check runs in a process of its own, and prints a line of JSON: {"check", "answer", "why", "seconds"}. Answers: held,
differs (debug-spyre assumes something else), not tried. Tiny tensors only; nothing is reset. Imports torch only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

HELD, DIFFERS, NOT_TRIED = "held", "differs", "not tried"
DEVICE = "spyre"
SECONDS = 90.0  # a check that takes longer is not tried
CHECKS: dict[str, tuple[str, Callable[[], tuple[str, str]]]] = {}


def assumption(check: Callable[[], tuple[str, str]]) -> Callable[[], tuple[str, str]]:
    """Register a check by its function's name; its docstring says what is assumed."""
    text = " ".join((check.__doc__ or "").partition("\n\n")[0].split()).rstrip(".")
    CHECKS[check.__name__.replace("_", "-")] = text, check
    return check


def on_card() -> Any:
    """A small float16 tensor on the card."""
    import torch

    return torch.ones(4, 64, dtype=torch.float16).to(DEVICE)


def other_process(code: str, **variables: str) -> tuple[int, str]:
    """Exit status and output of a further Python."""
    words, env = [sys.executable, "-c", code], os.environ | variables
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS / 2, env=env)
    return done.returncode, done.stdout + done.stderr


USE = f"import torch; print('sum', float(torch.ones(64, dtype=torch.float16).to('{DEVICE}').cpu().sum()))"


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")[:200]


@assumption
def who_holds() -> tuple[str, str]:
    """A process with a tensor on the card has a device file open, and one that only imported torch has none."""
    wanted = [path for path in os.environ.get("DEBUG_SPYRE_ACCEPTANCE_DEVICES", "").split(os.pathsep) if path]
    if not wanted:
        return NOT_TRIED, "no device file is known here"
    import torch  # noqa: F401

    before = [path for path in wanted if _is_open(path)]
    keep = on_card()
    after = [path for path in wanted if _is_open(path)]
    del keep
    if before:
        return DIFFERS, f"open after `import torch` alone: {' '.join(before)}"
    return (
        (HELD, f"open: {' '.join(after)}")
        if after
        else (DIFFERS, f"none of {' '.join(wanted)} is open while a tensor is on the card")
    )


def _is_open(path: str) -> bool:
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.path.samefile(os.readlink(f"/proc/self/fd/{name}"), path):
                return True
        except OSError:
            continue
    return False


@assumption
def second_process() -> tuple[str, str]:
    """A second process that wants the card gets an error that says it is busy, and does not wait."""
    keep = on_card()
    status, text = other_process(USE)
    del keep
    if status == 0:
        return DIFFERS, "a second process got the card as well"
    words = ("busy", "DeviceOpenFail", "vfio")
    said = next((line.strip() for line in text.splitlines() if any(w.lower() in line.lower() for w in words)), None)
    return (HELD, said[:200]) if said else (DIFFERS, f"it fails otherwise: {last_line(text)}")


@assumption
def number_format() -> tuple[str, str]:
    """Float16 is kept with 9 bits of fraction: 1 + 2**-10 does not come back, 1 + 2**-9 and 65472 do."""
    import torch

    x = torch.tensor([1 + 2**-10, 1 + 2**-9, 65472.0, -65504.0] + [0.0] * 60, dtype=torch.float16)
    back = x.to(DEVICE).cpu()
    seen = ", ".join(f"{float(a)!r} -> {float(b)!r}" for a, b in zip(x[:4], back[:4], strict=True))
    as_thought = back[0] != x[0] and torch.equal(back[1:3], x[1:3])
    return (HELD if as_thought else DIFFERS), seen


@assumption
def dispatch_mode() -> tuple[str, str]:
    """Under a dispatch mode of ours compiled kernels work, and after it too."""
    import debug_spyre_kernels  # type: ignore[import-not-found]
    import torch
    from debug_spyre_ladder import Inert  # type: ignore[import-not-found]

    debug_spyre_kernels.keep_apart()
    try:
        with Inert():
            torch.compile(torch.relu)(torch.ones(4, 64))
            x = on_card()
            inside = float((x + x).cpu().sum())
        outside = float((x * 2).cpu().sum())
    except RecursionError:
        return DIFFERS, "RecursionError: a compiled kernel calls itself"
    return (HELD if inside == outside == 512 else DIFFERS), f"sums {inside} in it and {outside} after it; 512 is right"


@assumption
def fork_before_backend() -> tuple[str, str]:
    """A process that imported torch without its backends may fork, and a child that then loads them can use the card.

    So the engine and the trials of debug-spyre start theirs. How a child of a process with the backend fares is told and not judged:
    torch-spyre marks one as forked, and nothing here makes one.
    """
    fork = "import os, sys, torch\npid = os.fork()\nif pid == 0:\n    {}\n    sys.stdout.flush()\n    os._exit(0)\nsys.exit(os.waitpid(pid, 0)[1] != 0)"
    use = USE.removeprefix("import torch; ")
    status, text = other_process(
        fork.format(f"torch._import_device_backends(); {use}"), TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    )
    late, said = other_process(fork.format(use))
    after = "used it too" if late == 0 and "sum 64.0" in said else f"did not: {last_line(said)}"
    if status == 0 and "sum 64.0" in text:
        return HELD, f"the child used the card; one that was forked after the backend's import {after}"
    return DIFFERS, last_line(text)


@assumption
def layout_after_module_to() -> tuple[str, str]:
    """Module.to gives a weight a device layout that can be read and given again."""
    import torch

    module = torch.nn.Linear(64, 128, bias=False).half()
    host = module.weight.data.clone()
    weight = module.to(DEVICE).weight.data
    if not hasattr(weight, "device_tensor_layout"):
        return NOT_TRIED, "this backend has no device_tensor_layout"
    layout = weight.device_tensor_layout()
    again = host.to(DEVICE, device_layout=layout)
    plain = host.to(DEVICE).device_tensor_layout()
    same = again.device_tensor_layout() == layout
    return (HELD if same else DIFFERS), f"{layout}; {'like' if plain == layout else 'unlike'} that of a plain .to()"


@assumption
def missing_kernel() -> tuple[str, str]:
    """An op without a kernel raises NotImplementedError with the words `Could not run`."""
    import torch

    try:
        torch.linalg.qr(on_card())
    except NotImplementedError as error:
        return (HELD if "Could not run" in str(error) else DIFFERS), str(error).splitlines()[0][:200]
    except Exception as error:  # noqa: BLE001  any other refusal is the answer
        return DIFFERS, f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return NOT_TRIED, "qr works on this card"


@assumption
def ffdc() -> tuple[str, str]:
    """With TORCH_SPYRE_FFDC=1 a failing compilation leaves a report that can be asked for."""
    os.environ["TORCH_SPYRE_FFDC"] = "1"
    import torch

    on_card()
    ask = getattr(torch.spyre, "get_diagnostic_report", None)
    if ask is None:
        return DIFFERS, "torch.spyre has no get_diagnostic_report"
    x = torch.ones(64, 64, dtype=torch.float32).to(DEVICE)
    try:
        x @ x
    except Exception as error:  # noqa: BLE001  a refusal is what is wanted
        report = ask()
        return (HELD if report else DIFFERS), f"{type(error).__name__}; report: {str(report)[:120]}"
    return NOT_TRIED, "nothing failed that could be reported"


@assumption
def killed_process() -> tuple[str, str]:
    """When a process on the card is killed, the card is free for the next one within 20 s."""
    code = f"import time, torch; x = torch.ones(64, dtype=torch.float16).to('{DEVICE}'); print('on', flush=True); time.sleep(600)"
    victim = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert victim.stdout is not None
    if victim.stdout.readline().strip() != "on":
        victim.kill()
        return NOT_TRIED, "the process did not get the card"
    os.killpg(victim.pid, signal.SIGKILL)
    victim.wait()
    began = time.monotonic()
    while time.monotonic() - began < 20:
        status, text = other_process(USE)
        if status == 0:
            return HELD, f"used again {time.monotonic() - began:.1f} s after the kill (import of torch included)"
        time.sleep(1)
    return DIFFERS, last_line(text)


@assumption
def speed() -> tuple[str, str]:
    """A kernel that is compiled takes less than 20 ms a call."""
    x = on_card()
    (x + x).cpu()
    began = time.monotonic()
    for _ in range(50):
        y = x + x
    y.cpu()
    each = (time.monotonic() - began) / 50
    return (HELD if each < 0.02 else DIFFERS), f"{each * 1000:.2f} ms a call of add on [4, 64]"


@assumption
def hang() -> tuple[str, str]:
    """A hang is ended by its time limit, and the card works again after it."""
    return NOT_TRIED, "no way is known to make a healthy card hang"


def one(name: str) -> None:
    """Run one check here and print its answer."""
    try:
        answer, why = CHECKS[name][1]()
    except Exception as error:  # noqa: BLE001  what goes wrong is an answer
        answer, why = NOT_TRIED, f"{type(error).__name__}: {error}".splitlines()[0][:200]
    print("\n" + json.dumps({"answer": answer, "why": why}), flush=True)


def every() -> None:
    """Each check in a process of its own."""
    for name, (text, _) in CHECKS.items():
        began = time.monotonic()
        words = [sys.executable, os.path.abspath(__file__), name]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
            lines = [line for line in done.stdout.splitlines() if line.startswith('{"answer"')]
            told = json.loads(lines[-1]) if lines else None
            told = told or {"answer": NOT_TRIED, "why": f"exit {done.returncode}: {last_line(done.stderr)}"}
        except (subprocess.TimeoutExpired, ValueError) as error:
            told = {"answer": NOT_TRIED, "why": f"{type(error).__name__} after {time.monotonic() - began:.0f} s"}
        seconds = round(time.monotonic() - began, 1)
        print(json.dumps({"check": name, "assumed": text, **told, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one(sys.argv[1])
    else:
        every()
