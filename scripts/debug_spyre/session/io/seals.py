"""Digests of the files that an event names, and whether a session's journal and files are still what was written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from debug_spyre.host.files import CACHE, Digests
from debug_spyre.session import chain
from debug_spyre.session import events as ev

HEAD = "journal.head"
_FILES = re.compile(rb',"digests":(\{[^{}]*\}),"prev":"')
SHOWN = 3


def files_of(folder: Path, event: ev.Event) -> dict[str, str]:
    """Path -> digest of the files in the session's folder that this event names and that are there."""
    digests = Digests(folder.parent / CACHE)
    found = {}
    for name in _named(event):
        told = digests.of(str(folder / name))
        if told is not None and not Path(name).is_absolute():
            found[name] = told[0]
    return found


def _named(event: ev.Event) -> Iterator[str]:
    if isinstance(event, ev.SessionOpened):
        yield "tree/start.json"
    elif isinstance(event, ev.RunFinished):
        yield f"runs/{event.run}/results.jsonl"
        yield from filter(None, (event.evidence, event.output))
    elif isinstance(event, ev.TreeReverted):
        yield from filter(None, [event.patch])
    elif isinstance(event, ev.ArtifactSaved):
        yield event.path
    elif isinstance(event, ev.ReportMade) and event.verb != "escalate":  # a person edits the text of a bundle
        yield from filter(None, [event.report])
    elif isinstance(event, ev.ExperimentNoted):
        yield from filter(None, [event.output])


def write_head(folder: Path, number: int, line: bytes) -> None:
    """Say beside the journal which line is its last. A crash before this leaves an older line named, which stays true."""
    with suppress(OSError):
        (folder / HEAD).write_text(f"{number} {chain.digest(line)}\n", encoding="ascii")


def read_head(folder: Path) -> tuple[int, str] | None:
    """(number, digest) of the line that was last when it was written; None where nothing says so."""
    try:
        number, told = (folder / HEAD).read_text(encoding="ascii").split()
        return int(number), told
    except (OSError, ValueError):
        return None


def trouble(folder: Path) -> str | None:
    """Where the journal or a file that it names is not what was written, in words; None where all is."""
    try:
        data = (folder / "journal.jsonl").read_bytes()
    except OSError:
        return None
    lines = data.split(b"\n")[:-1]
    told = chain.check(lines, read_head(folder)).says()
    return told or _changed_files(folder, lines)


def _changed_files(folder: Path, lines: list[bytes]) -> str | None:
    named: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(lines, start=1):
        found = _FILES.search(line[-4000:])
        if found:
            with suppress(ValueError):
                named |= {str(name): (str(value), number) for name, value in json.loads(found[1]).items()}
    digests = Digests(folder.parent / CACHE)
    bad = []
    for name, (value, number) in named.items():
        now = digests.of(str(folder / name))
        if now is not None and now[0] != value:
            bad.append(f"{name} (line {number})")
    if not bad:
        return None
    more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
    return f"files were changed after the journal recorded them: {', '.join(bad[:SHOWN])}{more}"
