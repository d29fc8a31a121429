"""The checks of `doctor`: each check is one line, ok, warn or fail, with the remedy as a command.

The interpreter is asked what it would import; nothing imports torch. A check that cannot tell warns; none touches the card.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import CardState, devices, holders
from debug_spyre.card.lock import is_held, lock_path, read_holder
from debug_spyre.host.files import make_folder
from debug_spyre.host.interpreter import choose, missing_compiled_part, too_old_python
from debug_spyre.host.provenance import provenance
from debug_spyre.host.spyre_variables import compile_cache
from debug_spyre.session.io.workspace import logs_folder
from debug_spyre.surface.io.asking_python import Python, ask_python
from debug_spyre.vocabulary.errors import DebugSpyreError

GIGA = 1024**3
CACHE_SECONDS = 0.15
REBUILD = "uv pip install --no-deps --force-reinstall --no-cache --no-build-isolation {source}"


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor. `remedy` is a command, or empty."""

    name: str
    state: State
    text: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {**asdict(self), "state": self.state.value}


@dataclass(frozen=True, slots=True)
class Patient:
    """What is looked at: the checkout and what its environment was found to be."""

    checkout: Path
    seen: dict[str, Any]
    python: Python

    @property
    def package(self) -> Path | None:
        """The folder of the installed torch-spyre."""
        path = self.seen["torch_spyre"].get("path")
        places = self.python.places("torch_spyre")
        return Path(path) if path else places[0] if places else None


def examine(checkout: Path) -> tuple[list[Check], dict[str, Any]]:
    """Every check, in the order in which one would look, and the provenance behind them."""
    patient = Patient(checkout, provenance(checkout), ask_python(choose(checkout).python, checkout))
    checks: list[Check] = []
    for look in CHECKS:
        try:
            checks += look(patient)
        except (DebugSpyreError, OSError) as error:
            name = look.__name__.strip("_").replace("_", " ")
            checks.append(Check(name, State.WARN, f"could not be looked at: {error}", getattr(error, "next", "")))
    return checks, patient.seen


def _card(_patient: Patient) -> Iterator[Check]:
    cards = devices()
    if not cards:
        yield Check(
            "card", State.FAIL, "no card is visible here", "debug-spyre triage --from FILE reads a log of another host"
        )
        return
    plural = f"{len(cards)} cards" if len(cards) > 1 else "1 card"
    yield Check("card", State.OK, f"{plural}: {' '.join(cards)}")
    size = os.environ.get("AIU_WORLD_SIZE")
    if cards[0].startswith("/dev/vfio") and not (size and size.isdigit() and int(size) > 0):
        yield Check(
            "card", State.WARN, f"AIU_WORLD_SIZE is {size or 'not set'}: tests skip the card", "export AIU_WORLD_SIZE=1"
        )
    now = holders(cards)
    state = {CardState.FREE: State.OK, CardState.HELD: State.FAIL}.get(now.state, State.WARN)
    remedy = "debug-spyre lock" if now.state is CardState.HELD else ""
    if now.state is CardState.UNKNOWN:
        remedy = "debug-spyre doctor --probe"
    yield Check("device", state, now.says(), remedy)


def _lock(_patient: Patient) -> Iterator[Check]:
    for device in devices() or (None,):
        path = lock_path(device)
        held = is_held(path)
        if held is None:
            yield Check("lock", State.WARN, f"{path}: whether it is held can't be told", "debug-spyre lock")
        elif held:
            holder = read_holder(path)
            yield Check(
                "lock", State.WARN, f"held by {holder.says() if holder else 'somebody unnamed'}", "debug-spyre lock"
            )
        else:
            yield Check("lock", State.OK, f"free ({path})")


def _torch_spyre(patient: Patient) -> Iterator[Check]:
    found = patient.seen["torch_spyre"]
    revision = found["revision"][:12] if found["revision"] else "revision unknown"
    pin = (found["pin"] or "")[:12]
    where = found["path"] or ""
    if found["state"] == "absent" and patient.python.has("torch_spyre") is not False:
        known = patient.package or patient.python.trouble
        yield Check(
            "torch-spyre",
            State.WARN,
            f"the interpreter finds it, its record was not found: revision unknown ({known})",
            "debug-spyre op aten.mm",
        )
    elif found["state"] == "absent":
        yield Check("torch-spyre", State.FAIL, "not installed in the target's environment", "uv sync")
    elif found["state"] == "pinned":
        yield Check("torch-spyre", State.OK, f"{revision}, as uv.lock pins it ({where})")
    elif found["state"] == "local":
        changed = f", {found['dirty']} files changed there" if found["dirty"] else ""
        undone = f"; a plain uv run puts {pin} back" if pin else ""
        text = f"local build of {found['url']}, {revision}{changed}{undone}"
        yield Check("torch-spyre", State.WARN, text, "uv run --no-sync ... (debug-spyre does)")
    elif found["state"] == "drifted":
        yield Check(
            "torch-spyre",
            State.WARN,
            f"{revision} is installed, uv.lock pins {pin}",
            "uv sync, or uv run --no-sync ...",
        )
    else:
        told = "its commit is not recorded, so runs are compared by its content"
        yield Check("torch-spyre", State.WARN, f"{found['version'] or 'of unknown version'}: {told} ({where})")
    package = patient.package
    if package is not None and (missing := missing_compiled_part(package)):
        yield Check("compiled part", State.FAIL, f"half made: {missing}", REBUILD.format(source=package.parent))
    if package is not None and (old := too_old_python(package, patient.seen["python"])):
        yield Check("python", State.FAIL, old, "uv venv --python 3.12 && uv sync")
    if package is not None and any(package.glob("_C*.so")) and not shutil.which("dxp_standalone"):
        text = "dxp_standalone is not on PATH: compiling a kernel will fail"
        yield Check("toolchain", State.WARN, text, "source the environment file of the Spyre toolchain")


def _libraries(patient: Patient) -> Iterator[Check]:
    python = patient.python
    if python.version is None:
        yield Check(
            "libraries",
            State.WARN,
            f"not known: {python.trouble}",
            "DEBUG_SPYRE_PYTHON=PATH/TO/python debug-spyre doctor",
        )
    else:
        version = ".".join(map(str, python.version))
        torch, vllm = (python.said(n) if python.has(n) else patient.seen[n] or "not found" for n in ("torch", "vllm"))
        text = f"torch {torch}, vLLM {vllm}, pytest {python.said('pytest')}, Python {version}"
        missing = not python.has("torch") and not patient.seen["torch"]
        yield Check("libraries", State.FAIL if missing else State.OK, text, "uv sync" if missing else "")
    if importlib.util.find_spec("jinja2") is None:
        yield Check(
            "jinja2",
            State.FAIL,
            f"missing in {sys.executable}: no page can be written",
            "DEBUG_SPYRE_PYTHON=.venv/bin/python",
        )
    else:
        yield Check("jinja2", State.OK, f"here, in {sys.executable}")
    if not shutil.which("uv"):
        yield Check("uv", State.OK, "not on PATH, not needed: runs use the environment's own Python")
    else:
        yield Check("uv", State.OK, shutil.which("uv") or "")
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0":
        yield Check(
            "autoload",
            State.WARN,
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0: import torch loads no backend",
            "unset TORCH_DEVICE_BACKEND_AUTOLOAD",
        )


def _git(patient: Patient) -> Iterator[Check]:
    state = patient.seen["git"]
    if not shutil.which("git"):
        yield Check("git", State.WARN, "not on PATH: whether the tree changed can't be told", "install git")
    elif state["dirty"] is None:
        yield Check(
            "git", State.WARN, f"{patient.checkout}: the state can't be read", f"git -C {patient.checkout} status"
        )
    else:
        head = state["head"][:12] if state["head"] else "no commit yet"
        changed = f", {state['dirty']} files changed" if state["dirty"] else ", clean"
        yield Check("git", State.OK, f"{state['branch'] or 'detached'} {head}{changed}")


def _logs(patient: Patient) -> Iterator[Check]:
    logs = logs_folder(patient.checkout)
    try:
        make_folder(logs)
        with tempfile.NamedTemporaryFile(dir=logs, prefix=".doctor-") as stream:
            stream.write(b"x")
            stream.flush()
    except (DebugSpyreError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        yield Check(
            "logs", State.FAIL, f"{logs} can't be written: {reason}", "export DEBUG_SPYRE_LOGS=/a/folder/you/can/write"
        )
    else:
        yield Check("logs", State.OK, f"{logs}, written to")


def _hooks(patient: Patient) -> Iterator[Check]:
    from debug_spyre.agent.client_settings import MARK, read_settings

    files = [patient.checkout / ".claude/settings.json", patient.checkout / ".claude/settings.local.json"]
    files.append(Path(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")) / "settings.json")
    ours, off = [], []
    for path in files:
        settings, _ = read_settings(path)
        if settings.get("disableAllHooks"):
            off.append(path)
        if MARK in str(settings.get("hooks") or ""):
            ours.append(path)
    if off:
        yield Check(
            "hooks",
            State.WARN,
            f"switched off in {off[0]}: only the card's lock guards",
            "remove disableAllHooks from it",
        )
    elif not ours:
        yield Check(
            "hooks",
            State.WARN,
            "not in the project's settings: active only while the skill is",
            "debug-spyre install --guard",
        )
    elif not shutil.which("python3"):
        yield Check("hooks", State.WARN, "there, but no python3 on PATH to run them", "install python3")
    else:
        yield Check("hooks", State.OK, f"in {ours[0]}")


def _compile_cache(_patient: Patient) -> Iterator[Check]:
    folder = compile_cache(os.environ)
    if not folder.is_dir():
        yield Check("compile cache", State.OK, f"{folder}, not there yet")
        return
    size, files, whole = _size_of(folder)
    text = f"{folder}: {'' if whole else 'more than '}{size / GIGA:.1f} GB in {files} files"
    big = size > 20 * GIGA
    if not os.access(folder, os.W_OK):
        yield Check(
            "compile cache",
            State.FAIL,
            f"{folder} can't be written",
            "export TORCHINDUCTOR_CACHE_DIR=/a/folder/you/can/write",
        )
    else:
        yield Check("compile cache", State.WARN if big else State.OK, text, f"rm -r {folder}" if big else "")


def _disk(patient: Patient) -> Iterator[Check]:
    logs = logs_folder(patient.checkout)
    for name, folder in (("logs", logs), ("temporary files", Path(tempfile.gettempdir()))):
        there = next((p for p in (folder, *folder.parents) if p.exists()), Path("/"))
        free = shutil.disk_usage(there).free
        state = State.FAIL if free < GIGA // 5 else State.WARN if free < 2 * GIGA else State.OK
        remedy = "debug-spyre prune --older 30 --dry-run" if folder == logs else f"free space in {folder}"
        yield Check("disk", state, f"{free / GIGA:.1f} GB free for {name}", "" if state is State.OK else remedy)


def _variables(patient: Patient) -> Iterator[Check]:
    found = patient.seen["environment"]
    packages = patient.seen["ibm_packages"]
    if packages:
        listed = ", ".join(f"{name} {version}" for name, version in packages.items())
        yield Check("ibm packages", State.OK, listed)
    yield Check("environment", State.OK, " ".join(f"{k}={v}" for k, v in found.items()) or "no Spyre variable is set")


CHECKS: tuple[Callable[[Patient], Iterator[Check]], ...] = (
    _card, _lock, _torch_spyre, _libraries, _git, _logs, _hooks, _compile_cache, _disk, _variables,
)  # fmt: skip


def _size_of(folder: Path) -> tuple[int, int, bool]:
    deadline = time.monotonic() + CACHE_SECONDS
    total = count = 0
    for here, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(here, name)).st_size
                count += 1
        if time.monotonic() > deadline:
            return total, count, False
    return total, count, True


def has_text(patient_package: Path, text: str) -> list[str]:
    """Places in the installed torch-spyre that hold the text: file:line, or the compiled library."""
    found = []
    needle = text.encode("utf-8", "surrogateescape")
    for path in sorted(p for p in patient_package.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        try:
            data = path.read_bytes()
        except OSError:
            continue
        position = data.find(needle)
        if position < 0:
            continue
        name = f"{patient_package.name}/{path.relative_to(patient_package)}"
        is_binary = path.suffix in {".so", ".a", ".o"} or b"\0" in data[:1024]
        line = data.count(b"\n", 0, position) + 1
        found.append(name if is_binary else f"{name}:{line}")
    return found
