"""The state of a long session, kept beside its journal: a verb that records need not read 25,000 lines again.

It is a cache, bound to the digest of the journal's bytes that it stands for; any other bytes, and the journal is read whole.
The gate, the page and `status` never use it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from debug_spyre import __version__
from debug_spyre.host.files import PRIVATE, write_atomically
from debug_spyre.session import events as ev
from debug_spyre.session.replay import KEPT, Draft, member_from, member_to
from debug_spyre.session.state import Departed, Hypothesis, Override, Run
from debug_spyre.vocabulary.codec import from_json, to_json
from debug_spyre.vocabulary.errors import EnvironmentTroubleError
from debug_spyre.vocabulary.words import HypothesisStatus, RunStatus, Status

NAME = "journal.state"
LEAST_BYTES = 200_000  # shorter journals are read whole in 10 ms
BEHIND_BYTES = 100_000  # so much may come after it before it is written anew
T = TypeVar("T")


def load(folder: Path, data: bytes) -> tuple[Draft, int] | None:
    """The kept state and how many of the journal's bytes it stands for; None where it stands for other bytes."""
    if len(data) < LEAST_BYTES:
        return None
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        head, _, body = (folder / NAME).read_bytes().partition(b"\n")
        told = json.loads(head)
        size = int(told["bytes"])
        if told["form"] == _form() and size <= len(data) and told["digest"] == _digest(data[:size]):
            return _from_plain(json.loads(body)), size
    return None


def keep(folder: Path, draft: Draft, data: bytes, *, known: int) -> None:
    """Keep this state, which the whole lines of `data` make, unless the one kept at `known` bytes is new enough."""
    if len(data) < LEAST_BYTES or len(data) - known < BEHIND_BYTES:
        return
    head = {"form": _form(), "bytes": len(data), "digest": _digest(data)}
    text = f"{json.dumps(head)}\n{json.dumps(_to_plain(draft), separators=(',', ':'))}"
    with suppress(EnvironmentTroubleError):
        write_atomically(folder / NAME, text, mode=PRIVATE)


@cache
def _form() -> str:
    shape = [[f.name for f in fields(cls)] for cls in (Run, Hypothesis, Override, Departed)]
    return f"{__version__} {_digest(json.dumps([shape, sorted(KEPT.values())]).encode())[:12]}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _to_plain(draft: Draft) -> dict[str, Any]:
    head = dict(draft.head)
    said = {name: ev.to_line(head.pop(name)) for name in ("validation", "closing") if head.get(name) is not None}
    approval = head.pop("approval", None)
    return {
        "head": head | {"status": head["status"].value},
        "said": said,
        "approval": to_json(approval),
        "members": [member_to(m) for m in draft.members.values()],
        "departed": [to_json(d) for d in draft.departed],
        "runs": _columns(draft.runs.values(), Run),
        "rows": _columns(draft.rows, Hypothesis),
        "overrides": [to_json(x) for x in draft.kept["overrides"]],
        "links": draft.kept["links"],
        "kept": {name: [ev.to_line(e) for e in draft.kept[name]] for name in _lists()},
    }


def _from_plain(data: dict[str, Any]) -> Draft:
    head = data["head"]
    head["status"] = Status(head["status"])
    head["matrix"] = None if head["matrix"] is None else tuple(head["matrix"])
    head |= {name: ev.from_line(line) for name, line in data["said"].items()}
    if data["approval"] is not None:
        head["approval"] = from_json(Override, data["approval"])
    draft = Draft(
        head,
        members={m.nodeid: m for m in map(member_from, data["members"])},
        departed=[from_json(Departed, d) for d in data["departed"]],
        runs={run.id: run for run in _rows(Run, data["runs"], RunStatus)},
        rows=_rows(Hypothesis, data["rows"], HypothesisStatus),
    )
    draft.kept["overrides"] = [from_json(Override, x) for x in data["overrides"]]
    draft.kept["links"] = [tuple(link) for link in data["links"]]
    for name, lines in data["kept"].items():
        draft.kept[name] = [ev.from_line(line) for line in lines]
    return draft


def _lists() -> Iterable[str]:
    return (*KEPT.values(), "artifacts", "reopened")


def _columns(values: Iterable[Any], cls: type) -> list[list[Any]]:
    """A column for each field: half the time of one object a row."""
    rows = list(values)
    return [[getattr(row, f.name) for row in rows] for f in fields(cls)]


def _rows(cls: type[T], columns: list[list[Any]], status: Any) -> list[T]:
    """Built without checks: the file is ours, and a check of each field would take as long as the journal."""
    found = []
    for f, column in zip(fields(cls), columns, strict=True):  # type: ignore[arg-type]
        if f.name == "status":
            words = {word.value: word for word in status}
            found.append([words[value] for value in column])
        else:
            found.append([tuple(value) if type(value) is list else value for value in column])
    return [cls(*row) for row in zip(*found, strict=True)]
