"""What the checkout's test files say about their parameters; files outside the checkout are not read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from debug_spyre.triage.nodeids import file_of
from debug_spyre.triage.parameter_names import names_in

_LARGEST = 2_000_000
_MOST_FILES = 300


def parameter_names(nodeids: Iterable[str | None], checkout: Path | None) -> dict[str, tuple[str, ...]]:
    """Parameter names by test function, for the files of these node ids that lie in the checkout."""
    if checkout is None:
        return {}
    root = checkout.resolve()
    found: dict[str, tuple[str, ...]] = {}
    for file in list(dict.fromkeys(file_of(n) for n in nodeids if n))[:_MOST_FILES]:
        try:
            path = (root / file).resolve()
            if not file.endswith(".py") or not path.is_relative_to(root) or path.stat().st_size > _LARGEST:
                continue
            found.update(names_in(path.read_text(encoding="utf-8", errors="replace"), file))
        except (OSError, ValueError):
            continue
    return found
