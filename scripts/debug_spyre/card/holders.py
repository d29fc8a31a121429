"""The cards that the environment shows, and who really holds them: free, held by ..., or unknown.

The device itself is the truth, not our lock: a process that never asked us is found here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from debug_spyre.card.cards import VFIO, visible_cards
from debug_spyre.host.processes import PROC, Process, read_process
from debug_spyre.vocabulary.errors import UsageError

ANONYMOUS = "anon_inode:[vfio-device]"
POLL_SECONDS = 0.1


class CardState(StrEnum):
    """The three answers."""

    FREE = "free"
    HELD = "held"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Holders:
    """Who holds the cards; `reason` says why it is unknown, or how it was found."""

    state: CardState
    processes: tuple[Process, ...] = ()
    reason: str = ""

    def says(self) -> str:
        """In words."""
        if self.state is CardState.FREE:
            return "free"
        if self.state is CardState.UNKNOWN:
            return f"unknown ({self.reason})"
        return "held by " + ("; ".join(p.says() for p in self.processes) or self.reason)


def devices(cards: str | None = None) -> tuple[str, ...]:
    """The device files of the cards, sorted. `cards` (comma-separated names or paths) selects some of them.

    Raises:
        UsageError: a card that was asked for does not exist.
    """
    found = sorted(card.device for card in visible_cards())
    if cards is None:
        return tuple(found)
    wanted = [word for word in cards.split(",") if word]
    chosen = [path for path in found if path in wanted or Path(path).name in wanted]
    missing = [word for word in wanted if word not in {*chosen, *(Path(p).name for p in chosen)}]
    if missing or not chosen:
        raise UsageError(
            f"there is no card {', '.join(missing) or '(none named)'}; the environment shows {', '.join(found) or 'none'}",
            next="debug-spyre lock",
        )
    return tuple(chosen)


def holders(cards: Sequence[str] | None = None, *, probe: bool = False) -> Holders:
    """Who has the cards open now: free, held by these processes, or unknown.

    `probe` also tries to open the devices. Do that only while holding our lock: it disturbs a process that is starting.
    """
    paths = devices() if cards is None else tuple(cards)
    found, blind = _scan(paths)
    if found:
        return Holders(CardState.HELD, tuple(found))
    if not paths:
        return Holders(CardState.UNKNOWN, reason="no card is visible here")
    if probe:  # also where nobody was seen: /proc may hide other users, and a container other processes
        answers = [_try_open(path) for path in paths]
        if any(answer is CardState.HELD for answer in answers):
            return Holders(CardState.HELD, reason="a process that this user can't look into")
        if all(answer is CardState.FREE for answer in answers):
            return Holders(CardState.FREE, reason="tried by opening it")
    if blind:
        return Holders(CardState.UNKNOWN, reason="processes of other users can't be looked into")
    return Holders(CardState.FREE)


def wait_until_free(cards: Sequence[str], *, seconds: float) -> Holders:
    """Poll until nobody holds the cards, for at most `seconds`; return the last answer."""
    deadline = time.monotonic() + seconds
    while True:
        now = holders(cards, probe=True)
        if now.state is not CardState.HELD or time.monotonic() >= deadline:
            return now
        time.sleep(POLL_SECONDS)


def _scan(paths: Sequence[str]) -> tuple[list[Process], int]:
    wanted = {os.path.realpath(path) for path in paths} | set(paths)
    names = os.listdir(PROC)
    found, blind = [], 0 if "1" in names else 1  # /proc can be mounted so that it hides other users' processes
    for name in names:
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            links = os.listdir(f"{PROC}/{name}/fd")
        except PermissionError:
            blind += 1
            continue
        except OSError:
            continue
        if _holds({_target(f"{PROC}/{name}/fd/{link}") for link in links}, wanted):
            process = read_process(int(name))
            if process is not None:
                found.append(process)
    return found, blind


def _holds(targets: set[str], wanted: set[str]) -> bool:
    if targets & wanted:
        return True
    # the anonymous descriptor does not say whose it is: a group file of another device open beside it does
    real = any(path.startswith(f"{VFIO}/") for path in wanted)
    other = any(path.startswith(f"{VFIO}/") and path != f"{VFIO}/vfio" for path in targets)
    return real and ANONYMOUS in targets and not other


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _try_open(path: str) -> CardState:
    """Opening is enough to know: the driver lets one process in. A plain file stands for a card by its flock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return CardState.FREE
    except OSError as error:
        return CardState.HELD if error.errno == errno.EBUSY else CardState.UNKNOWN
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return CardState.FREE
    except BlockingIOError:
        return CardState.HELD
    finally:
        os.close(descriptor)
