"""Which checkout is meant, and where its sessions live."""

from __future__ import annotations

import os
from pathlib import Path

from debug_spyre.vocabulary.errors import EnvironmentTroubleError

SKILL = Path(".claude/skills/debug-spyre")


def find_checkout(start: Path | None = None) -> Path:
    """The root of the checkout around `start` (default: the working folder): the nearest parent with .git.

    Raises:
        EnvironmentTroubleError: there is none; sessions belong to a checkout.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / ".git").exists():
            return folder
    raise EnvironmentTroubleError(
        f"{here} is not inside a git checkout", next="cd into the checkout of spyre-inference and repeat the command"
    )


def logs_folder(checkout: Path) -> Path:
    """Where the sessions of this checkout live; DEBUG_SPYRE_LOGS overrides."""
    override = os.environ.get("DEBUG_SPYRE_LOGS")
    return Path(override).resolve() if override else checkout / SKILL / "logs"
