"""Proving a repro: fresh processes under the lock, N of N, the same fault as the original, and a CPU control that passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from debug_spyre.examine.io.trials import Trials
from debug_spyre.host.files import PRIVATE, make_folder, sha256_of, write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.repro.same_fault import Fingerprint, agree, control_script, of_failure
from debug_spyre.repro.script import NOT_SHOWN, SHOWN
from debug_spyre.runs.io.jobs import JobSpec, RunRecord, run_job
from debug_spyre.runs.io.pytest_command import pytest_command
from debug_spyre.session.events import ArtifactSaved, ReportMade
from debug_spyre.session.io.workspace import Folder
from debug_spyre.vocabulary.evidence import Failure
from debug_spyre.vocabulary.words import CPU_CONTROL, RunStatus

SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Proof:
    """What the fresh processes showed of one script."""

    script: str
    tier: int
    shown: int
    times: int
    runs: tuple[str, ...]
    control: bool | None  # the CPU control passes; None: not tried
    same: bool
    why: str
    lines: int
    thresholds: tuple[str, ...] = ()

    @property
    def is_verified(self) -> bool:
        """N of N, the same fault, and fine on the CPU."""
        return self.shown == self.times > 0 and self.same and self.control is True

    @property
    def stamp(self) -> str:
        """VERIFIED, or UNVERIFIED with the reason."""
        if self.is_verified:
            return f"VERIFIED: {self.shown} of {self.times} fresh processes, the CPU control passes"
        if self.shown < self.times:
            return f"UNVERIFIED: fresh process {self.shown + 1} of {self.times} does not show it"
        if not self.same:
            return f"UNVERIFIED: {self.why}"
        return "UNVERIFIED: the CPU control fails too" if self.control is False else "UNVERIFIED: no CPU control"


@dataclass(slots=True)
class Prover:
    """Runs scripts of one session under the lock."""

    folder: Folder
    checkout: Path
    trials: Trials
    hypothesis: int | None = None
    say: Callable[[str], None] = lambda _text: None

    def run_script(self, path: Path, *, name: str | None = None) -> RunRecord:
        """One fresh process; a hang ends after five minutes with the card free."""
        chosen = choose(self.checkout)
        return run_job(
            JobSpec(
                folder=self.folder.path,
                checkout=self.checkout,
                verb="repro",
                name=name,
                argv=(*chosen.words, str(path)),
                hypothesis=self.hypothesis,
                timeout=SECONDS,
            )
        )

    def prove_script(
        self, name: str, text: str, on_cpu: str, *, tier: int, times: int, crashes: bool = False
    ) -> tuple[int, list[str], bool]:
        """Write the script and its CPU form; returns how often it showed, the runs, and whether the CPU is fine."""
        path = self.write(name, text)
        control = self.write(name.replace(".py", "_control.py"), on_cpu)  # repro_cpu.py is the test's
        runs, shown = [], 0
        digest = sha256_of(path)[:24]
        for number in range(times):
            seen = self.trials.once(f"proof-{digest}-{number}", lambda: self.run_script(path))
            runs.append(seen["run"])
            shows = _died(seen) if crashes else seen["exit"] == SHOWN
            shown += shows
            self.say(f"tier {tier}, process {number + 1} of {times}: {'shows' if shows else 'does not show'}")
            if not shows:
                break
        on_host = self.trials.once(f"control-{digest}", lambda: self.run_script(control))
        runs.append(on_host["run"])
        return shown, runs, on_host["exit"] == NOT_SHOWN

    def prove_test(
        self, name: str, text: str, nodeid: str, original: Failure, *, times: int
    ) -> tuple[int, list[str], str]:
        """Write the pytest file and run its one test; a run shows when it fails with the same fault."""
        path = self.write(name, text)
        runs, shown, why = [], 0, "it passes"
        _, bracket, parameters = nodeid.partition("[")
        test = nodeid.split("[", maxsplit=1)[0].split("::", 1)[1]
        local = f"{path}::{test}{bracket}{parameters}"
        for number in range(times):
            record = self._pytest(local)
            runs.append(record.id)
            failures = record.evidence.failures if record.evidence else ()
            same, why = (False, "it passes") if not failures else agree(of_failure(original), of_failure(failures[0]))
            shown += same
            self.say(f"tier 3, process {number + 1} of {times}: {'shows' if same else 'does not show'} ({why})")
            if not same:
                break
        return shown, runs, why

    def _pytest(self, nodeid: str) -> RunRecord:
        argv, env = pytest_command(self.checkout, [nodeid, f"--rootdir={self.checkout}", "-p", "no:cacheprovider"])
        return run_job(
            JobSpec(
                folder=self.folder.path,
                checkout=self.checkout,
                verb="repro",
                name=None,
                argv=argv,
                env=env,
                pytest_args=(nodeid,),
                hypothesis=self.hypothesis,
                timeout=SECONDS,
            )
        )

    def control_of(self, nodeids: tuple[str, ...]) -> tuple[Path, RunRecord]:
        """The CPU control of tests: written as repro_cpu.py and run under the name cpu-control."""
        path = self.write("repro_cpu.py", control_script(nodeids))
        return path, self.run_script(path, name=CPU_CONTROL)

    def write(self, name: str, text: str) -> Path:
        """A script in the session's folder, listed as an artifact."""
        return self.keep(name, text)

    def keep(self, name: str, content: str | bytes) -> Path:
        """A file in the session's folder, listed as an artifact."""
        path = self.folder.path / name
        write_atomically(path, content, mode=PRIVATE)
        self.folder.journal.append(ArtifactSaved(path=name, sha256=sha256_of(path), size=path.stat().st_size))
        return path

    def record(self, proofs: list[Proof], fingerprint: Fingerprint | None, lines: list[str], steps: list[Any]) -> Path:
        """The verification record, and the event that names it."""
        make_folder(self.folder.path / "repro")
        path = self.folder.path / "repro" / "verification.json"
        best = next((p for p in proofs if p.is_verified), proofs[-1] if proofs else None)
        data = {
            "schema": 1,
            "fault": fingerprint.says() if fingerprint else None,
            "proofs": [{**asdict(p), "stamp": p.stamp} for p in proofs],
            "steps": [asdict(s) for s in steps],
        }
        write_atomically(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n", mode=PRIVATE)
        self.folder.journal.append(
            ReportMade(
                verb="repro",
                lines=tuple(lines[:10]),
                report="repro/verification.json",
                hypothesis=self.hypothesis,
                data={
                    "script": best.script if best else None,
                    "stamp": best.stamp if best else "UNVERIFIED: nothing was written",
                    "tier": best.tier if best else None,
                    "kept": [s.text for s in steps if s.kept],
                    "dropped": [s.text for s in steps if not s.kept],
                },
            )
        )
        return path


def _died(seen: dict[str, Any]) -> bool:
    """The process was ended by a signal, or had to be ended because it hung."""
    if seen.get("status") in {RunStatus.TIMEOUT.value, RunStatus.STALLED.value}:
        return True
    return seen["exit"] is not None and (seen["exit"] < 0 or seen["exit"] >= 128)
