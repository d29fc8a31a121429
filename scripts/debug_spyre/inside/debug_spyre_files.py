"""pytest plugin: this process runs the test files that a driver outside hands it, one after the other, in one session.

Inert unless DEBUG_SPYRE_FILES gives two descriptors, "in:out", or the folder of two named pipes, `down` and `up`. Lines of JSON: we say which files there are and what each
needs, ask for a file, and run it as pytest would. Before the last test of a file we ask for the next one, since pytest
tears down fixtures by the test that follows.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

VARIABLE = "DEBUG_SPYRE_FILES"
PARAMETERS = ("tensor_parallel_size", "tp_size", "tp", "world_size", "num_cards")
MARKS = {"cards": ("n", "count"), "distributed": ("num_gpus", "num_cards", "world_size")}


def pytest_configure(config: Any) -> None:
    """Take part where a driver is; the tests never see its descriptors."""
    where = os.environ.pop(VARIABLE, None)
    if where and not hasattr(config, "workerinput"):
        reading, writing = descriptors(where)
        for descriptor in (reading, writing):
            os.set_inheritable(descriptor, False)
        config.pluginmanager.register(Files(reading, writing), "debug_spyre_files_of_a_driver")


def descriptors(where: str) -> tuple[int, int]:
    """To read from and to write to. A driver that is gone is no reason to wait: reading then ends at once."""
    first, colon, second = where.partition(":")
    if colon and first.isdecimal() and second.isdecimal():
        return int(first), int(second)
    reading = os.open(os.path.join(where, "down"), os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    writing = os.open(os.path.join(where, "up"), os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(writing, True)
    return reading, writing


class Files:
    """Runs what it is told."""

    def __init__(self, reading: int, writing: int) -> None:
        self.answers = os.fdopen(reading, encoding="utf-8")
        self.writing = writing

    def say(self, **message: Any) -> None:
        """One line to the driver."""
        os.write(self.writing, json.dumps(message).encode() + b"\n")

    def ask(self) -> str | None:
        """The next file; None: no more."""
        self.say(ask=True)
        line = self.answers.readline()
        return json.loads(line).get("file") if line else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """In place of pytest's own loop."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        if session.config.option.collectonly:
            return True
        groups: dict[str, list[Any]] = {}
        for item in session.items:
            groups.setdefault(item.nodeid.partition("::")[0], []).append(item)
        self.say(
            files=[[name, max(map(cards_needed, items))] for name, items in groups.items()],
            ids=[item.nodeid for item in session.items],
        )
        name = self.ask()
        while name is not None:
            name = self.run_file(session, name, groups)
        return True

    def run_file(self, session: Any, name: str, groups: dict[str, list[Any]]) -> str | None:
        """All its tests; returns the file after it."""
        items = groups.get(name, [])
        if not items:
            self.say(done=name, missing=True)
            return self.ask()
        following: str | None = None
        for number, item in enumerate(items, 1):
            if number < len(items):
                after = items[number]
            else:
                following = self.ask()
                after = next(iter(groups.get(following or "", ())), None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        self.say(done=name)
        return following


def cards_needed(item: Any) -> int:
    """How many cards the test says it needs at once: by a mark (`cards(2)`, vLLM's `distributed(num_gpus=2)`) or a parameter."""
    found = [1]
    for name, keys in MARKS.items():
        for mark in item.iter_markers(name):
            found += [value for value in (*mark.args[:1], *(mark.kwargs.get(key) for key in keys)) if _is_count(value)]
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    found += [parameters[name] for name in PARAMETERS if _is_count(parameters.get(name))]
    return max(found)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
