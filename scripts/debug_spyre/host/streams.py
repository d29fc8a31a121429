"""Standard output and error that never stop a verb: closed, full or without a reader, what was to be done is done once.

A stream that can't take the answer is remembered, and the exit status says so at the end (docs/exit-statuses.md).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from debug_spyre.vocabulary.errors import Exit


class Stream:
    """A text stream whose faults are kept instead of raised; `fault` is the first."""

    def __init__(self, stream: TextIO | None, name: str) -> None:
        self._stream = stream
        self.name = name
        self.fault: OSError | None = None if stream is not None else OSError("it is closed")
        self.used = False

    def write(self, text: str) -> int:
        """Write what can be written."""
        self.used = self.used or bool(text)
        self._do("write", text)
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        self._do("flush")

    def _do(self, what: str, *words: str) -> None:
        if self._stream is None or self.fault is not None:
            return
        try:
            getattr(self._stream, what)(*words)
        except (OSError, ValueError) as error:
            self.fault = error if isinstance(error, OSError) else OSError("it is closed")
            with suppress(OSError, ValueError):  # what is still buffered must not fail once more when Python ends
                if self._stream.fileno() in {1, 2}:
                    null = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(null, self._stream.fileno())
                    os.close(null)

    def isatty(self) -> bool:
        """A person reads it."""
        return self._stream is not None and self.fault is None and self._stream.isatty()

    @property
    def encoding(self) -> str:
        """Its encoding, that of UTF-8 where it is closed."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def buffer(self) -> Any:
        """Its bytes; those of a closed one go nowhere."""
        return self._stream.buffer if self._stream is not None else open(os.devnull, "wb")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def is_lost(self) -> bool:
        """Something was to be said here and could not be. A reader that went away wanted no more."""
        return self.used and self.fault is not None and not isinstance(self.fault, BrokenPipeError)


@contextmanager
def kept_streams() -> Iterator[tuple[Stream, Stream]]:
    """Put such streams in place of the process's own; first of all, descriptors 0 to 2 are opened where they are closed.

    A file that is opened later (the journal) would otherwise become descriptor 1, and the next print would go into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                null = os.open(os.devnull, os.O_RDWR)
                if null != number:
                    os.dup2(null, number)
                    os.close(null)
    before = sys.stdout, sys.stderr
    out, err = Stream(sys.stdout, "standard output"), Stream(sys.stderr, "standard error")
    sys.stdout, sys.stderr = out, err
    try:
        yield out, err
        out.flush()
        err.flush()
    finally:
        sys.stdout, sys.stderr = before


def status_of(out: Stream, status: int) -> int:
    """The verb's own status; Exit.LOST where it went well and its answer is lost, which standard error says."""
    if not out.is_lost:
        return status
    print(
        f"debug-spyre: the answer could not be written to standard output ({getattr(out.fault, 'strerror', None) or out.fault}); "
        "what the verb does is done and recorded once, so do not repeat it",
        file=sys.stderr,
    )
    print("  next: debug-spyre status", file=sys.stderr)
    return status or int(Exit.LOST)
