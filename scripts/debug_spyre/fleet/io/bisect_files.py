"""A bisection on disk: its request, what is known so far, and what `op` says of two of its builds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from debug_spyre.fleet.bisect_record import Record, Seen
from debug_spyre.fleet.bisection import history_of
from debug_spyre.fleet.io.revisions import Revisions
from debug_spyre.host.files import write_atomically
from debug_spyre.host.fingerprint import package_folder, site_packages
from debug_spyre.host.git import git
from debug_spyre.runs.io.jobs import SCRIPTS
from debug_spyre.vocabulary.errors import BadInputError

REQUEST, STATE, VERB = "bisection.json", "bisect.json", "bisect"
REVISIONS = "revisions"
OPS_SECONDS = 600.0
_COMMAND = "import sys; sys.path.insert(0, sys.argv.pop(1)); from debug_spyre.cli import main; sys.exit(main())"


def load(folder: Path) -> Record:
    """The record as it stands, its history read from the clone.

    Raises:
        BadInputError: there is no bisection in that folder.
    """
    try:
        request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError(f"there is no bisection in {folder}: {error}", next="debug-spyre bisect --help") from error
    state: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    listed = git(Path(request["clone"]), "rev-list", "--topo-order", "--parents", request["bad"], f"^{request['good']}")
    runs = [
        Seen(r["revision"], r["run"], None if r["keys"] is None else tuple(r["keys"])) for r in state.get("runs", ())
    ]
    return Record(
        request["good"],
        request["bad"],
        history_of(listed.decode().splitlines()),
        float(request["confidence"]),
        int(request["runs"]),
        tuple(runs),
        state.get("unbuilt", {}),
    )


def state_of(folder: Path) -> dict[str, Any]:
    """bisect.json as it is."""
    with suppress(OSError, ValueError):
        found = json.loads((folder / STATE).read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def keep(folder: Path, more: dict[str, Any]) -> None:
    """Add to bisect.json, whole or not at all."""
    write_atomically(folder / STATE, json.dumps({**state_of(folder), **more}, ensure_ascii=False))


def ops_changed(revisions: Revisions, before: str, after: str, checkout: Path) -> dict[str, Any]:
    """What `op --against` says of two builds: another process of ours, for each build is asked in its own environment."""
    found = [package_folder(site_packages(revisions.place(r) / "env/bin/python")) for r in (before, after)]
    lacking = [revision[:12] for revision, package in zip((before, after), found, strict=True) if package is None]
    if lacking:
        return {"trouble": f"{lacking[0]} was not built"}
    words = ["op", "--json", "--package", str(found[1]), "--against", str(found[0])]
    env = {**os.environ, "DEBUG_SPYRE_PYTHON": str(revisions.place(after) / "env/bin/python")}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _COMMAND, str(SCRIPTS), *words],
            cwd=checkout, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=OPS_SECONDS,
        )  # fmt: skip
        changes = json.loads(done.stdout)["changes"]
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        return {"trouble": f"op --against said nothing ({type(error).__name__})", "between": [before, after]}
    return {"between": [before, after], "changes": changes}
