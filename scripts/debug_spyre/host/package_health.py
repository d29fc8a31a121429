"""What keeps an installed torch-spyre from working, seen from its files: no import, no card."""

from __future__ import annotations

import re
from pathlib import Path

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
