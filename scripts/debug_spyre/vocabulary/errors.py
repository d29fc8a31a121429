"""The one family of expected errors: each says what happened and what to do next, and carries its exit status."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses of every verb (design: one table). A command that is run keeps its own instead."""

    YES = 0
    NO = 1
    BAD_INPUT = 2
    USAGE = 64
    ENVIRONMENT = 69
    BUG = 70
    LOST = 74
    BUSY = 75
    STALLED = 76
    STILL_HELD = 77
    INVALID = 78
    RUNNING = 79
    TIMEOUT = 124
    SIGNALLED = 128


class DebugSpyreError(Exception):
    """An expected failure: `what` happened with the value in it, `next` the one thing that moves on."""

    status: Exit = Exit.NO

    def __init__(self, what: str, *, next: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.next = next
        self.details = details


class RefusedError(DebugSpyreError):
    """The answer is no: a rule or the gate forbids it."""

    status = Exit.NO


class BadInputError(DebugSpyreError):
    """A file, name or value that was given can't be read; nothing was written."""

    status = Exit.BAD_INPUT


class UsageError(DebugSpyreError):
    """The call's words are off, or it does not say which session is meant."""

    status = Exit.USAGE


class EnvironmentTroubleError(DebugSpyreError):
    """The surroundings don't allow it: no git, nothing writable, no pytest, no card."""

    status = Exit.ENVIRONMENT


class CardBusyError(DebugSpyreError):
    """Somebody holds the card's lock or the device itself."""

    status = Exit.BUSY
