"""The cards of this host as Spyre's runtime counts them, those that the environment shows, and who really holds them.

The device itself is the truth, not our lock: a process that never asked us is found here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from debug_spyre.host.processes import PROC, Process, read_process
from debug_spyre.host.spyre_variables import compile_cache
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, UsageError

VFIO = Path("/dev/vfio")
PCI = Path("/sys/bus/pci/devices")
DEVICES = "DEBUG_SPYRE_DEVICES"
CHOSEN = "SPYRE_DEVICES"
SIZE = "AIU_WORLD_SIZE"
ADDRESSES = ("PCIDEVICE_IBM_COM_AIU_PF", "PCIDEVICE_IBM_COM_AIU_VF")
CACHE = "TORCHINDUCTOR_CACHE_DIR"
_RANK = re.compile(r"AIU_WORLD_RANK_(\d+)")


@dataclass(frozen=True, slots=True)
class Card:
    """One card: its place in the runtime's order, its device file, its PCI address where that is known."""

    index: int
    device: str
    address: str | None = None

    @property
    def name(self) -> str:
        """The short name that people read: the place in the order."""
        return f"card {self.index}"


def visible_cards() -> tuple[Card, ...]:
    """The cards that the environment shows, after `SPYRE_DEVICES`; an index that no card has is left out."""
    cards = _all_cards(os.environ)
    wanted = _indices(os.environ)
    chosen = tuple(card for index in wanted for card in cards if card.index == index)
    return chosen or cards


def card_facts() -> list[dict[str, str | None]]:
    """What a run should record of its cards: device file, PCI address, and PF or VF where the host tells."""
    cards = visible_cards()
    return [
        {"device": c.device, "address": (at := c.address or _address_in(c.device)), "function": function_of(at)}
        for c in cards
    ]


def function_of(address: str | None, pci: Path = PCI) -> str | None:
    """VF for a virtual function (it has a physical one), PF for a physical one; None where the host does not show it."""
    if address is None or not (pci / address).exists():
        given = [name.rpartition("_")[2] for name in ADDRESSES if os.environ.get(name)]
        return given[0] if len(given) == 1 else None
    return "VF" if (pci / address / "physfn").exists() else "PF"


def _address_in(device: str) -> str | None:
    """The one PCI device of a VFIO group."""
    try:
        names = os.listdir(f"/sys/kernel/iommu_groups/{Path(device).name}/devices")
    except OSError:
        return None
    return names[0] if len(names) == 1 else None


def choose_cards(text: str) -> tuple[Card, ...]:
    """The cards that `--cards all|N|LIST` means. A single number is a count; a list names cards by index or device file.

    Raises:
        UsageError: the words fit no card; EnvironmentTroubleError: no card is visible, or the variables contradict the host.
    """
    cards = visible_cards()
    _check(cards)
    shown = ", ".join(f"{card.index} ({card.device})" for card in cards)
    if text == "all":
        return cards
    if text.isdecimal():
        if not 1 <= int(text) <= len(cards):
            raise UsageError(
                f"--cards {text} asks for {text} cards, and the environment shows {len(cards)}: {shown}",
                next=f"debug-spyre VERB --cards {len(cards)}",
            )
        return cards[: int(text)]
    words = [word for word in text.split(",") if word]
    found = [card for card in cards if {str(card.index), card.device} & set(words)]
    known = {name for card in found for name in (str(card.index), card.device)}
    missing = [word for word in words if word not in known]
    if missing or not found:
        raise UsageError(
            f"there is no card {', '.join(missing) or '(none named)'}; the environment shows {shown}",
            next="debug-spyre VERB --cards all",
        )
    return tuple(found)


def card_environment(cards: Sequence[Card], env: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that has these cards and no others: their indices and a compile cache of their own."""
    names = "-".join(str(card.index) for card in cards)
    return {
        CHOSEN: ",".join(str(card.index) for card in cards),
        CACHE: str(compile_cache(env) / "cards" / names),
    }


def _all_cards(env: Mapping[str, str]) -> tuple[Card, ...]:
    given = env.get(DEVICES)
    if given is not None:
        return tuple(Card(n, path) for n, path in enumerate(sorted({p for p in given.split(os.pathsep) if p})))
    try:
        groups = sorted((name for name in os.listdir(VFIO) if name.isdecimal()), key=int)
    except OSError:
        return ()
    by_group = {group: address for address in _addresses(env) if (group := _group_of(address)) in groups}
    ordered = [*by_group, *(group for group in groups if group not in by_group)] if by_group else groups
    return tuple(Card(n, str(VFIO / group), by_group.get(group)) for n, group in enumerate(ordered))


def _addresses(env: Mapping[str, str]) -> list[str]:
    """PCI addresses in the runtime's order: by rank where ranks are given, else as the device plugin lists them."""
    ranks = sorted((int(found[1]), value) for name, value in env.items() if (found := _RANK.fullmatch(name)))
    listed = [word.strip() for name in ADDRESSES for word in env.get(name, "").split(",")]
    return list(dict.fromkeys(word for word in [*(value for _, value in ranks), *listed] if word))


def _group_of(address: str) -> str | None:
    try:
        return Path(os.readlink(PCI / address / "iommu_group")).name
    except OSError:
        return None


def _indices(env: Mapping[str, str]) -> list[int]:
    return [int(word) for word in env.get(CHOSEN, "").split(",") if word.strip().isdecimal()]


def _check(cards: Sequence[Card]) -> None:
    """More than one source says which cards there are: where they contradict each other, no guess is made."""
    if not cards:
        raise EnvironmentTroubleError(
            "no card is visible here: there is none to spread over", next="debug-spyre doctor"
        )
    unknown = [index for index in _indices(os.environ) if index not in {card.index for card in _all_cards(os.environ)}]
    if unknown:
        raise EnvironmentTroubleError(
            f"{CHOSEN}={os.environ[CHOSEN]} names card {', '.join(map(str, unknown))}, "
            f"and the host shows {len(_all_cards(os.environ))} (0 to {len(_all_cards(os.environ)) - 1})",
            next=f"set {CHOSEN} to cards that exist, or unset it",
        )
    size = os.environ.get(SIZE, "")
    if size.isdecimal() and int(size) > len(_all_cards(os.environ)):
        raise EnvironmentTroubleError(
            f"{SIZE}={size}, and the host shows {len(_all_cards(os.environ))} cards: {', '.join(c.device for c in cards)}",
            next=f"set {SIZE} to the number of cards that this process may use",
        )


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


def holder_of_removed(path: Path) -> Process | None:
    """Who holds the lock of a file that lay here and was removed or replaced since; None where nobody is seen to.

    The kernel's lock belongs to the file, not to its name. Processes of other users can only be looked into by root.
    """
    link = f"{path} (deleted)"  # what the kernel shows of such a file
    for name in os.listdir(PROC):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            numbers = [n for n in os.listdir(f"{PROC}/{name}/fd") if _target(f"{PROC}/{name}/fd/{n}") == link]
            if any("FLOCK" in Path(f"{PROC}/{name}/fdinfo/{n}").read_text(encoding="utf-8") for n in numbers):
                return read_process(int(name))
        except OSError:
            continue
    return None


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
