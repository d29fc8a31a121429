"""The call that a shadow run saved as its suspect, or saw fall back, read for a repro."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.examine.call import Call, call_from_json
from debug_spyre.host.files import make_folder, write_atomically
from debug_spyre.session.io.workspace import Folder
from debug_spyre.session.state import Session
from debug_spyre.vocabulary.errors import BadInputError, UsageError


@dataclass(frozen=True, slots=True)
class Suspect:
    """A call, the calls that ran before it in the same process, and the test that made it."""

    call: Call
    prelude: tuple[Call, ...] = ()
    nodeid: str | None = None


def find_suspect(folder: Folder, session: Session, *, run: str | None = None) -> Suspect | None:
    """The newest saved suspect, or the named run's.

    Raises:
        UsageError: the named run saved none; BadInputError: its file can't be read.
    """
    for name in _runs(session, run):
        path = folder.path / "runs" / name / "suspect" / "call.json"
        if path.is_file():
            return read_suspect(path)
    if run:
        raise UsageError(f"run {run} saved no suspect", next="debug-spyre shadow NODEID")
    return None


def find_fallback(folder: Folder, session: Session, *, run: str | None = None) -> Call | None:
    """The first call that fell back to the CPU in the newest shadow run that saw one, or in the named run.

    One of the ops that the session's members fall back on goes before others.

    Raises:
        BadInputError: it is of an unknown form.
    """
    ops = {m.op for m in session.members if m.op}
    for name, report in _reports(folder, _runs(session, run)):
        fallbacks = [f for f in report.get("fallbacks") or () if f.get("call")]
        if not fallbacks:
            continue
        try:
            return call_from_json(min(fallbacks, key=lambda f: f.get("op") not in ops)["call"])
        except (KeyError, TypeError) as error:
            raise BadInputError(
                f"cannot read the fallback of {name}: {error}", next="debug-spyre shadow NODEID"
            ) from error
    return None


def count_checked(folder: Folder, session: Session) -> tuple[str | None, int]:
    """The newest shadow run, and how many ops it found right; (None, 0) where there is none."""
    for name, report in _reports(folder, _runs(session, None)):
        return name, sum(bool(op.get("checked")) and not op.get("off") for op in report.get("ops") or ())
    return None, 0


def _reports(folder: Folder, runs: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in runs:
        try:
            report = json.loads((folder.path / "runs" / name / "shadow.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(report, dict):
            yield name, report


def with_death(run: Path, how: str) -> dict[str, Any] | None:
    """The report of a shadow run that did not end by itself: the op in flight is the suspect; None where it did end.

    `how` says how it ended. What is kept of the call (inside/debug_spyre_flight.py) goes where `repro` looks for it.
    """
    try:
        now = json.loads((run / "flight.now").read_text(encoding="utf-8"))
        lines = (run / "flight.jsonl").read_text(encoding="utf-8").splitlines()
        call = json.loads(lines[now["number"]])["call"]
        suspect = {"op": now["op"], "site": now["site"], "nodeid": now["nodeid"], "died": how, "call": call}
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None
    report: dict[str, Any] = {"schema": 1}
    with suppress(OSError, ValueError):  # an earlier suspect was reported before the end
        report |= json.loads((run / "shadow.json").read_text(encoding="utf-8"))
    report["suspect"] = suspect
    make_folder(run / "suspect")
    write_atomically(run / "suspect" / "call.json", json.dumps({"schema": 1, **suspect}, ensure_ascii=False))
    write_atomically(run / "shadow.json", json.dumps(report, ensure_ascii=False))
    return report


def _runs(session: Session, run: str | None) -> list[str]:
    return [run] if run else [r.id for r in reversed(session.runs.values())]


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
    return Suspect(call, prelude, data.get("nodeid"))
