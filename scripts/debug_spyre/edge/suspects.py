"""The call that a shadow run saved as its suspect, read for a repro."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.core.errors import BadInputError, UsageError
from debug_spyre.core.repro.call import Call, call_from_json
from debug_spyre.core.session import Session
from debug_spyre.edge.workspace import Folder


@dataclass(frozen=True, slots=True)
class Suspect:
    """A call, and the calls of the same op before it where they may matter."""

    call: Call
    prelude: tuple[Call, ...] = ()


def find_suspect(folder: Folder, session: Session, *, run: str | None = None) -> Suspect | None:
    """The newest saved suspect, or the named run's.

    Raises:
        UsageError: the named run saved none; BadInputError: its file can't be read.
    """
    runs = [run] if run else [r.id for r in reversed(session.runs.values())]
    for name in runs:
        path = folder.path / "runs" / name / "suspect" / "call.json"
        if path.is_file():
            return read_suspect(path)
    if run:
        raise UsageError(f"run {run} saved no suspect", next="debug-spyre shadow NODEID")
    return None


def read_suspect(path: Path) -> Suspect:
    """The suspect in that file.

    Raises:
        BadInputError: it is damaged or of an unknown form.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        call = call_from_json(data["call"])
        prelude = tuple(call_from_json(c) for c in data.get("prelude") or ())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"cannot read the suspect {path}: {error}", next="debug-spyre shadow NODEID") from error
    return Suspect(call, prelude)
