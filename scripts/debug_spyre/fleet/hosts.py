"""The hosts of a cluster as values: what each offers, whether they are alike, and the cards that they have together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.vocabulary.errors import EnvironmentTroubleError

RESOURCE = "spyre"
START = 'dask worker ADDRESS --resources "spyre=4"'
COMPARED = {"torch_spyre": "torch-spyre", "torch": "torch", "python": "Python"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a host's interpreter tells of itself; None: not installed."""

    machine: str  # the architecture
    python: str
    torch: str | None
    torch_spyre: str | None  # a digest of its files' content
    devices: tuple[str, ...]
    boot: str  # the same for all that share a kernel, and so the device files
    interpreter: str = ""
    host: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Facts:
        """From what `on_host facts` printed.

        Raises:
            KeyError: a fact is missing.
        """
        return cls(**{**{name: data[name] for name in cls.__dataclass_fields__}, "devices": tuple(data["devices"])})


@dataclass(frozen=True, slots=True)
class Host:
    """One Dask worker that offers cards."""

    worker: str  # its address
    name: str
    offered: int  # units of the resource
    facts: Facts


@dataclass(frozen=True, slots=True)
class HostCard:
    """A card of a worker's host: its place in that host's order, its device file there."""

    index: int
    device: str
    host: str
    worker: str

    @property
    def name(self) -> str:
        """The short name that people read."""
        return f"{self.host} card {self.index}"


def versions_differ(versions: Mapping[str, Mapping[str, str | None]]) -> None:
    """Client, scheduler and workers must have one version of distributed and one Python, for they hand code to each other.

    `versions`: who -> package -> version; the client is called `here`.

    Raises:
        EnvironmentTroubleError: they have not.
    """
    here = versions["here"]
    for who, theirs in versions.items():
        for package in ("distributed", "python"):
            mine, other = _short(package, here.get(package)), _short(package, theirs.get(package))
            if mine != other:
                raise EnvironmentTroubleError(
                    f"{who} has {package} {other}, and the driver here has {mine}: they can't work together",
                    next=f"DEBUG_SPYRE_CLUSTER_PYTHON=PYTHON with {package} {other}, or the same version there",
                )


def _short(package: str, version: str | None) -> str:
    return ".".join((version or "none").split(".")[:2]) if package == "python" else version or "none"


def hosts_of(answers: Mapping[str, Mapping[str, Any]], here: Facts, *, address: str) -> tuple[list[Host], list[str]]:
    """The workers that can run tests, and in words what is to be known of them.

    `answers`: by worker: name, resources and facts, or the trouble in their place.

    Raises:
        EnvironmentTroubleError: there is no worker with a card, or one that can't run tests.
    """
    offering = {w: a for w, a in answers.items() if int(a["resources"].get(RESOURCE, 0)) >= 1}
    if not offering:
        count = f"{len(answers)} workers, none with" if answers else "no worker, so none with"
        raise EnvironmentTroubleError(f"{address} has {count} the resource {RESOURCE!r}", next=START)
    hosts: list[Host] = []
    names = [_first_name(w, a) for w, a in offering.items()]
    for worker, answer in sorted(offering.items(), key=lambda item: str(item[1]["name"])):
        name = _first_name(worker, answer)
        name = name if names.count(name) == 1 else str(answer["name"])
        if answer.get("trouble"):
            raise EnvironmentTroubleError(f"worker {name}: {answer['trouble']}", next=answer.get("next") or START)
        facts = Facts.from_json(answer["facts"])
        if facts.machine != here.machine:
            raise EnvironmentTroubleError(
                f"worker {name} is a {facts.machine}, and this host is a {here.machine}: their results can't stand in one run",
                next=f"start workers on {here.machine} only, or debug-spyre on a {facts.machine}",
            )
        if not facts.devices:
            raise EnvironmentTroubleError(
                f"worker {name} offers {RESOURCE}={answer['resources'][RESOURCE]:g}, and its host shows no card",
                next=f"start that worker without {RESOURCE}, or where the cards are visible",
            )
        hosts.append(Host(worker, name, int(answer["resources"][RESOURCE]), facts))
    return hosts, [*differences(here, hosts), *_left_out(hosts)]


def _first_name(worker: str, answer: Mapping[str, Any]) -> str:
    name = str(answer["name"])
    return str(answer.get("host") or worker) if name == worker else name


def differences(here: Facts, hosts: Sequence[Host]) -> list[str]:
    """Where hosts differ from each other or from here, one line a fact. What is not installed here is not compared with here."""
    lines = []
    for fact, words in COMPARED.items():
        by_value: dict[str, list[str]] = {}
        mine = getattr(here, fact)
        if mine is not None:
            by_value[mine] = ["here"]
        for host in hosts:
            by_value.setdefault(getattr(host.facts, fact) or "none", []).append(host.name)
        if len(by_value) > 1:
            lines.append(f"{words} differs: " + "; ".join(f"{v} on {', '.join(who)}" for v, who in by_value.items()))
    return lines


def cards_of(hosts: Sequence[Host], most: int | None = None) -> list[HostCard]:
    """As many cards of each host as its worker offers, each card once, a card of every host in turn; `most` in all."""
    found: list[HostCard] = []
    seen: set[tuple[str, str]] = set()
    for host in hosts:
        own = [(n, d) for n, d in enumerate(host.facts.devices) if (host.facts.boot, d) not in seen][: host.offered]
        seen |= {(host.facts.boot, device) for _, device in own}
        found += [HostCard(index, device, host.name, host.worker) for index, device in own]
    return sorted(found, key=lambda card: card.index)[:most]


def _left_out(hosts: Sequence[Host]) -> list[str]:
    cards = cards_of(hosts)
    lines = []
    for host in hosts:
        count = sum(card.worker == host.worker for card in cards)
        if count < host.offered:
            lines.append(f"{host.name} offers {RESOURCE}={host.offered}; {count} of its cards can be used")
    return lines
