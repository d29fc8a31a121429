"""Which switches the installed torch-spyre knows: those whose names stand in its own Python files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from debug_spyre.host.fingerprint import package_folder

FIRST_FAILURE = "TORCH_SPYRE_FFDC"


def known_switches(packages: Path | None, names: Iterable[str]) -> frozenset[str]:
    """Those of these variables that the torch_spyre in this site-packages folder reads; empty where there is none."""
    folder = package_folder(packages) if packages else None
    return switches_in(folder, names) if folder else frozenset()


def switches_in(folder: Path, names: Iterable[str]) -> frozenset[str]:
    """The same for a torch_spyre folder."""
    wanted = {name.encode() for name in names}
    found: set[bytes] = set()
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            if name.endswith(".py") and found != wanted:
                with suppress(OSError):
                    text = (Path(here) / name).read_bytes()
                    found |= {switch for switch in wanted - found if switch in text}
    return frozenset(name.decode() for name in found)
