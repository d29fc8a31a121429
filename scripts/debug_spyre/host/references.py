"""Whether the file that a finding refers to is there: in the session, the checkout, or where packages are installed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from debug_spyre.host.fingerprint import package_folder
from debug_spyre.host.interpreter import choose
from debug_spyre.host.search_path import search_path
from debug_spyre.vocabulary.errors import DebugSpyreError

_PLACE = re.compile(r"(?::\d+(?:-\d+)?){1,2}$")


def is_there(reference: str, checkout: Path, *more: Path) -> bool:
    """FILE or FILE:LINE names a file that is there; an address on the web is not looked for."""
    if "://" in reference:
        return True
    name = os.path.expanduser(_PLACE.sub("", reference.strip()))
    return any(os.path.isfile(folder / name) for folder in (Path.cwd(), checkout, *more, *_packages(checkout)))


def _packages(checkout: Path) -> Iterable[Path]:
    with suppress(DebugSpyreError):
        packages = choose(checkout).packages
        backend = package_folder(packages)  # of an editable installation it lies elsewhere
        return (*search_path(packages), *([backend.parent] if backend else []))
    return ()
