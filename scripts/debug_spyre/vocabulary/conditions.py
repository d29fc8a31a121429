"""The conditions of a run, as one value, and how two such values differ in words.

Two measurements are comparable only under the same conditions. Files that the checkout's tree digest covers are no
condition: they are what a fix changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from debug_spyre.vocabulary.codec import from_json

BACKEND = "torch_spyre"
SHOWN = 60


@dataclass(frozen=True, slots=True)
class Loaded:
    """Loaded files of one package or one single file. `newest`: the latest change time among them, in ns."""

    where: str
    digest: str
    newest: int
    files: int = 1
    late: bool = False  # loaded while tests ran, so a run that was cut short may lack it
    always: bool = False  # its presence alone counts: conftest.py, sitecustomize, .pth


@dataclass(frozen=True, slots=True)
class Conditions:
    """What one test process told of itself. `ended_ns`: when the run was over, by the clock of the file system."""

    python: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    ini: dict[str, str] = field(default_factory=dict)
    loaded: dict[str, Any] = field(default_factory=dict)  # name -> Loaded, as JSON
    stale: tuple[str, ...] = ()
    complete: bool = True
    ended_ns: int = 0

    def of(self, name: str) -> Loaded | None:
        """What was loaded under this name."""
        told = self.loaded.get(name)
        return None if told is None else from_json(Loaded, told, name)


@dataclass(frozen=True, slots=True)
class Difference:
    """One condition that is not the same: its name, and what it was and is."""

    name: str
    text: str


def differences(before: Conditions, after: Conditions) -> tuple[Difference, ...]:
    """Everything that differs between the conditions of two runs, the backend's own files included."""
    return tuple(_differences(before, after))


def _differences(before: Conditions, after: Conditions) -> Iterator[Difference]:
    if before.python != after.python:
        yield Difference("python", f"{' '.join(before.python)} -> {' '.join(after.python)}")
    yield from _mapping("variable", before.environment, after.environment)
    yield from _listed("sys.path", before.path, after.path)
    yield from _listed("plugin", before.plugins, after.plugins)
    yield from _mapping("pytest option", before.options, after.options)
    yield from _mapping("pytest configuration", before.ini, after.ini)
    for place in after.stale:
        yield Difference(f"bytecode of {place}", "the cached bytecode is not what the source compiles to")
    for name in sorted({*before.loaded, *after.loaded}):
        text = _changed(before.of(name), after.of(name), before, after)
        if text:
            yield Difference(name, text)


def _mapping(kind: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was != now:
            yield Difference(f"{kind} {name}", f"{_word(was)} -> {_word(now)}")


def _word(value: str | None) -> str:
    return "not set" if value is None else repr(value if len(value) <= SHOWN else value[:SHOWN] + "…")


def _listed(kind: str, before: tuple[str, ...], after: tuple[str, ...]) -> Iterator[Difference]:
    added = [x for x in after if x not in before]
    gone = [x for x in before if x not in after]
    for word, entries in (("new", added), ("gone", gone)):
        for entry in entries:
            yield Difference(f"{kind} {entry}", word)
    if not added and not gone and before != after:
        yield Difference(kind, "another order")


def _changed(was: Loaded | None, now: Loaded | None, before: Conditions, after: Conditions) -> str | None:
    if was is None and now is not None:
        known = now.newest <= before.ended_ns  # it lay there unchanged already, and was not needed then
        cut = now.late and not before.complete
        return None if not now.always and (known or cut) else f"loaded after the fix only ({now.where})"
    if now is None and was is not None:
        cut = was.late and not after.complete
        return f"loaded before the fix only ({was.where})" if was.always and not cut else None
    assert was is not None
    assert now is not None
    if was.where != now.where:
        return f"comes from {now.where}, before from {was.where}"
    if was.digest == now.digest:
        return None
    if now.files > 1 or was.files > 1:  # the digest is of the files that were loaded, which may be others
        return None if now.newest <= before.ended_ns else f"files of it were changed ({now.where})"
    return f"another content ({now.where})"
