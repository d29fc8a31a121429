"""Looks through a checkout's source for the fallbacks that it accepts and for parameters; reads text only, nothing outside the checkout."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from debug_spyre.triage.accepting import WORD, Acceptance, find_acceptances, from_settings, mark, names_in
from debug_spyre.triage.nodeids import file_of
from debug_spyre.vocabulary.evidence import Evidence

_MOST_FILES_parameter_sources = 300


def parameter_names(nodeids: Iterable[str | None], checkout: Path | None) -> dict[str, tuple[str, ...]]:
    """Parameter names by test function, for the files of these node ids that lie in the checkout."""
    if checkout is None:
        return {}
    root = checkout.resolve()
    found: dict[str, tuple[str, ...]] = {}
    for file in list(dict.fromkeys(file_of(n) for n in nodeids if n))[:_MOST_FILES_parameter_sources]:
        try:
            path = (root / file).resolve()
            if not file.endswith(".py") or not path.is_relative_to(root) or path.stat().st_size > _LARGEST:
                continue
            found.update(names_in(path.read_text(encoding="utf-8", errors="replace"), file))
        except (OSError, ValueError):
            continue
    return found


_SKIP = frozenset(
    {".git", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", "site-packages", ".tox", "logs"}
)
_SETTINGS = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg")
_LARGEST = 2_000_000
_MOST_FILES = 20_000


def mark_accepted(evidence: Evidence, checkout: Path) -> Evidence:
    """The evidence with each fallback that the checkout accepts marked with file:line."""
    return replace(evidence, fallbacks=mark(evidence.fallbacks, acceptances_of(checkout)))


def acceptances_of(checkout: Path) -> tuple[Acceptance, ...]:
    """Every acceptance in the checkout, in the order of its paths."""
    found: list[Acceptance] = []
    for name in _SETTINGS:
        text = _text(checkout / name)
        if text is not None and WORD in text:
            found += from_settings(text, name)
    for path in _python_files(checkout):
        text = _text(path)
        if text is not None and WORD in text:
            found += find_acceptances(text, path.relative_to(checkout).as_posix())
    return tuple(found)


def _python_files(checkout: Path) -> Iterator[Path]:
    seen = 0
    for folder, folders, files in os.walk(checkout):
        folders[:] = sorted(f for f in folders if f not in _SKIP and not f.startswith("."))
        for name in sorted(files):
            if name.endswith(".py"):
                seen += 1
                if seen > _MOST_FILES:
                    return
                yield Path(folder) / name


def _text(path: Path) -> str | None:
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
