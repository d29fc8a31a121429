"""Custom ops that the plugin in the checkout registers itself, by vLLM's own call: torch-spyre's registration has none of them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from debug_spyre.surface.finder import find_sites
from debug_spyre.surface.sites import Site

CALL = b"direct_register_custom_op"
SKIPPED = {"tests", "build", "node_modules", "__pycache__"}


def plugin_sites(checkout: Path) -> tuple[Site, ...]:
    """Their sites, read from the checkout's Python files."""
    files = {}
    for here, folders, names in os.walk(checkout):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        for name in names:
            path = Path(here) / name
            if name.endswith(".py"):
                with suppress(OSError):
                    raw = path.read_bytes()
                    if CALL in raw:
                        files[path.relative_to(checkout).as_posix()] = raw.decode("utf-8", "replace")
    return tuple(site for site in find_sites(files).sites if site.op.ns == "vllm")
