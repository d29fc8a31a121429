"""What merely accompanies a run (provenance, digests, the page) may fail: it is told, and the run goes on."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from debug_spyre.vocabulary.errors import DebugSpyreError

in_supervisor = False  # set by the supervisor: its stderr is supervisor.log


@contextmanager
def kept_going(what: str, notes: list[str] | None = None) -> Iterator[None]:
    """A fault in what merely accompanies a run is told, never the run's end."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        if in_supervisor:  # its stderr is supervisor.log; a person is told in one line, if at all
            traceback.print_exc()
            sys.stderr.flush()
        if notes is not None:
            notes.append(f"{what}: {error.what if isinstance(error, DebugSpyreError) else error!r}")
