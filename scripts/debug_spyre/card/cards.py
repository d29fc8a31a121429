"""The cards of this host in the order in which Spyre's runtime counts them, and the environment of a process on some of them.

`SPYRE_DEVICES` of a process names its cards by their place in that order: torch-spyre's own parallel runner sets nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.host.compile_cache import compile_cache
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
