"""The static answers against the dispatcher's, in a process of its own with the backend loaded: disagreement is printed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.card.lock import card_lock
from debug_spyre.host.interpreter import choose
from debug_spyre.surface.index import Index
from debug_spyre.surface.io.package_files import Found
from debug_spyre.surface.notes import CONDITIONAL
from debug_spyre.surface.op_verdict import OpAnswer
from debug_spyre.vocabulary.errors import EnvironmentTroubleError

SCRIPT = Path(__file__).parents[1] / "inside/debug_spyre_dispatcher.py"
SECONDS = 180
OWN = {"kernel", "fallback", "decomposition", "custom-op"}


@dataclass(frozen=True, slots=True)
class Exact:
    """What the dispatcher said: disagreements in words, and what kept it from saying more."""

    torch: str | None
    checked: int
    disagreements: tuple[str, ...]
    troubles: tuple[str, ...]
    conditional: tuple[str, ...] = ()  # registered under a condition that does not hold here

    @property
    def lines(self) -> list[str]:
        """For people."""
        if not self.checked:
            return [f"dispatcher: nothing could be checked: {'; '.join(self.troubles) or 'no op in common'}"]
        if self.troubles:
            return [
                f"torch {self.torch}: {self.checked} overloads exist, but the backend did not load, so no kernel was checked",
                *(f"  {d}" for d in (*self.disagreements[:20], *self.troubles[:3])),
            ]
        said = f"dispatcher (torch {self.torch}): {self.checked} overloads checked, {len(self.disagreements)} disagree"
        inactive = (
            [f"  the condition of {', '.join(self.conditional[:6])} does not hold here"] if self.conditional else []
        )
        return [said, *(f"  {d}" for d in self.disagreements[:20]), *inactive]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "torch": self.torch,
            "checked": self.checked,
            "disagreements": list(self.disagreements),
            "troubles": list(self.troubles),
            "conditional": list(self.conditional),
        }


def compare_with_dispatcher(answers: list[OpAnswer], index: Index, package: Found, checkout: Path | None) -> Exact:
    """Ask the target's torch about the packets of these answers.

    Raises:
        EnvironmentTroubleError: torch could not be asked; CardBusyError: somebody has the card's lock.
    """
    packets = sorted({a.name.packet_name for a in answers if a.known})
    with card_lock(
        wait=0, command="op --exact"
    ) as held:  # the backend is loaded: nothing else may use the card meanwhile
        told = _ask(packets, package, checkout, descriptors=held.descriptors)
    disagreements: list[str] = []
    conditional: list[str] = []
    checked = 0
    for answer in answers:
        seen = told["packets"].get(answer.name.packet_name)
        if seen is None:
            continue
        for overload, has in seen.items():
            if answer.name.overload not in {None, overload}:
                continue
            checked += 1
            if told["troubles"] and overload in answer.overloads:
                continue  # the backend is not (wholly) there: the dispatcher can't tell its kernels
            found_here = _disagreement(answer, overload, has)
            site = answer.overloads[overload].eager.site if overload in answer.overloads else None
            if found_here and site is not None and CONDITIONAL in site.notes and not has["own"]:
                conditional.append(f"{answer.name.packet_name}.{overload}")
            else:
                disagreements += found_here
    version = str(told["torch"])
    if index.table.version and not version.startswith(index.table.version):
        disagreements.append(
            f"the shipped table of overloads is of torch {index.table.version}, installed is {version}"
        )
    return Exact(version, checked, tuple(disagreements), tuple(told["troubles"]), tuple(conditional))


def _disagreement(answer: OpAnswer, overload: str, has: dict[str, bool]) -> list[str]:
    both = answer.overloads.get(overload)
    name = f"{answer.name.packet_name}.{overload}"
    if both is None:
        return [f"{name}: torch has this overload, the static answer does not"]
    verdict = both.eager
    said = verdict.verdict in OWN and verdict.own
    real = has["own"] or (verdict.verdict == "custom-op" and has["explicit"])
    if said == real:
        return []
    return [f"{name}: read as {verdict.verdict}, the dispatcher has {'a' if real else 'no'} kernel of its own"]


def _ask(
    packets: list[str], found: Found, checkout: Path | None, *, descriptors: tuple[int, ...] = ()
) -> dict[str, Any]:
    python = choose(checkout or Path.cwd()).python
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    if not found.is_installed:
        environment["PYTHONPATH"] = str(found.folder.parent)
    with tempfile.TemporaryDirectory(prefix="debug-spyre-op-") as folder:
        question = Path(folder) / "question.json"
        question.write_text(json.dumps({"packets": packets}), encoding="utf-8")
        try:
            done = subprocess.run(
                [str(python), str(SCRIPT), str(question)],
                capture_output=True,
                text=True,
                errors="replace",
                env=environment,
                cwd=folder,
                timeout=SECONDS,
                pass_fds=descriptors,  # should we be killed, the lock stays while torch has the card
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EnvironmentTroubleError(f"torch could not be asked: {error}", next="debug-spyre op NAME") from error
    try:
        told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise EnvironmentTroubleError(
            f"torch could not be asked with {python}: {last}", next="debug-spyre op NAME"
        ) from None
    return told
