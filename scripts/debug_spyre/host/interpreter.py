"""Which Python runs the target, chosen and said, and what keeps an installed torch-spyre from working under it.

Told from files alone: no Python is started, nothing is imported. Never a plain `uv run`, which would take a local build away.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.host.fingerprint import drift, site_packages
from debug_spyre.vocabulary.errors import EnvironmentTroubleError

_NEEDS_312 = "skip_file_prefixes"  # an argument of warnings.warn since Python 3.12
_IMPORTS_C = re.compile(
    r"^\s*(?:from torch_spyre\._C import|from \. import .*\b_C\b|from \.+_C import|import torch_spyre\._C)",
    re.MULTILINE,
)


def missing_compiled_part(package: Path) -> str | None:
    """The module that is imported and not there, or None."""
    if any(package.glob("_C*.so")) or (package / "_C.py").is_file():
        return None
    wants = next((p for p in _python_files(package) if _IMPORTS_C.search(_text(p))), None)
    return (
        f"{wants.relative_to(package.parent)} imports torch_spyre._C, and {package} has no compiled _C"
        if wants
        else None
    )


def too_old_python(package: Path, version: str | None) -> str | None:
    """Why this Python is too old for the package, or None."""
    found = re.match(r"(\d+)\.(\d+)", version or "")
    if not found or (int(found[1]), int(found[2])) >= (3, 12):
        return None
    for file in _python_files(package / "ops"):
        if f"{_NEEDS_312}=" in _text(file):
            return f"Python {version}: {file.relative_to(package.parent)} calls warnings.warn({_NEEDS_312}=), so every fallback raises TypeError"
    return None


def _python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The words that start Python for a checkout, and why these."""

    words: tuple[str, ...]
    python: Path
    why: str

    @property
    def packages(self) -> Path | None:
        """Its site-packages."""
        return site_packages(None if self.python == Path(sys.executable) else self.python)


def choose(checkout: Path) -> Interpreter:
    """The interpreter for the checkout.

    Raises:
        EnvironmentTroubleError: DEBUG_SPYRE_PYTHON names no program.
    """
    told = os.environ.get("DEBUG_SPYRE_PYTHON")
    if told:
        found = shutil.which(told)
        if found is None:
            raise EnvironmentTroubleError(
                f"DEBUG_SPYRE_PYTHON={told} is no program that can be run", next="unset DEBUG_SPYRE_PYTHON"
            )
        found = os.path.abspath(found)  # the run may begin in another folder
        return Interpreter((found,), Path(found), f"{told}, as DEBUG_SPYRE_PYTHON says")
    python = _project_python(checkout)
    if python is not None:
        return _for_project(checkout, python)
    active = os.environ.get("VIRTUAL_ENV")
    if active and (Path(active) / "bin/python").exists():
        python = Path(active) / "bin/python"
        return Interpreter((str(python),), python, "the active virtual environment; the checkout has no .venv")
    return Interpreter((sys.executable,), Path(sys.executable), "the current interpreter; the checkout has no .venv")


def first_on_path(python: str | Path, env: Mapping[str, str]) -> dict[str, str]:
    """PATH with the interpreter's own folder in front: `python`, `pytest` and `vllm` are those that `run` has."""
    folder = str(Path(python).parent)
    rest = [part for part in env.get("PATH", os.defpath).split(os.pathsep) if part != folder]
    return {"PATH": os.pathsep.join([folder, *rest])}


def _project_python(checkout: Path) -> Path | None:
    folder = Path(os.environ.get("UV_PROJECT_ENVIRONMENT") or ".venv")
    python = checkout / folder / "bin/python"
    return python if python.exists() else None


def _for_project(checkout: Path, python: Path) -> Interpreter:
    reason = drift(checkout, site_packages(python)) if (checkout / "uv.lock").is_file() else None
    uv = shutil.which("uv")
    if reason and uv:
        return Interpreter((uv, "run", "--no-sync", "python"), python, f"uv run --no-sync: {reason}")
    name = os.path.relpath(python, checkout)
    return Interpreter((str(python),), python, f"{name}, no sync: {reason}" if reason else f"{name} of the checkout")
