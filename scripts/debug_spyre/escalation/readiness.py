"""Whether a session may be handed over (rules X1-X3)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from debug_spyre.session.state import Run, Session
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Stage
from debug_spyre.vocabulary.words import BASELINE, CPU_CONTROL, RunStatus


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that is missing: a code, a sentence and the command that gets it."""

    code: str
    text: str
    next: str


def lacks(session: Session, evidence: Mapping[str, Evidence]) -> tuple[Lack, ...]:
    """What is missing for an escalation; empty means it may go."""
    probe = session.probe or (session.members[0].nodeid if session.members else None)
    found: list[Lack] = []
    if probe is None:
        found.append(
            Lack("node-id", "the cluster has no failing node id", "debug-spyre cluster add NODEID --reason TEXT")
        )
    if failing_run(session, evidence) is None:
        found.append(
            Lack(
                "traceback",
                "no run kept a failure with its traceback",
                f"debug-spyre run --as baseline {shlex.quote(probe or 'NODEID')}",
            )
        )
    found += _control(session)
    if revision(session) is None:
        found.append(Lack("revision", "the revision of torch-spyre is unknown to every run", "debug-spyre doctor"))
    return tuple(found)


def _control(session: Session) -> list[Lack]:
    run = session.last_run(CPU_CONTROL)
    if run is None:
        return [
            Lack(
                "cpu-control",
                "there is no CPU control",
                "debug-spyre repro --cpu, or debug-spyre exec --as cpu-control -- python repro_cpu.py",
            )
        ]
    if run.status is not RunStatus.PASSED and run.exit != 0:
        text = (
            f"the CPU control {run.id} fails too (exit {run.exit}): the fault lies in our own logic, not in torch-spyre"
        )
        return [
            Lack(
                "cpu-control-fails",
                text,
                "debug-spyre hypothesis add 'our own logic is wrong' --test 'debug-spyre exec -- python repro_cpu.py'",
            )
        ]
    return []


def failing_run(session: Session, evidence: Mapping[str, Evidence]) -> tuple[Run, Failure] | None:
    """The run whose failure is shown to the team: the newest baseline of the probe, else any run that kept one.

    A member whose predicate is a fallback passes; there the fallback stands for the failure.
    """
    runs = [r for r in session.runs.values() if r.is_finished and r.valid and r.id in evidence]
    runs.sort(key=lambda r: (r.name == BASELINE and not r.members_only, r.started_seq), reverse=True)
    ids = {m.nodeid for m in session.members}
    for wanted in ({session.probe}, ids):
        for run in runs:
            for failure in evidence[run.id].failures:
                if failure.nodeid in wanted and (failure.message or failure.innermost_frame):
                    return run, failure
    return _fallback(session, runs, evidence)


def own_failure(session: Session, evidence: Mapping[str, Evidence], nodeid: str) -> Failure | None:
    """What that test showed in the first run that kept it: as it is, before anything watched it; None where it never failed."""
    for run in sorted(session.runs.values(), key=lambda r: r.started_seq):
        for failure in evidence[run.id].failures if run.is_finished and run.valid and run.id in evidence else ():
            if failure.nodeid == nodeid and (failure.message or failure.innermost_frame):
                return failure
    return None


def _fallback(session: Session, runs: list[Run], evidence: Mapping[str, Evidence]) -> tuple[Run, Failure] | None:
    ops = {m.op: m.nodeid for m in session.members if m.predicate == "falls-back" and m.op}
    for run in runs:
        for seen in evidence[run.id].fallbacks:
            if seen.op in ops:
                place = f"{seen.file}:{seen.line}" if seen.file else None
                failure = Failure(
                    next(iter(seen.nodeids), ops[seen.op]), "call", Kind.EXCEPTION, innermost_frame=place,
                    message=f"{seen.op} falls back to the CPU", error_class="FallbackWarning", stage=Stage.FALLBACK,
                )  # fmt: skip
                return run, failure
    return None


def revision(session: Session) -> str | None:
    """What identifies the torch-spyre that the runs saw: its revision, else what is known of a local build."""
    for run in reversed(session.runs.values()):
        seen = (run.provenance or {}).get("torch_spyre") or {}
        found, pin = seen.get("revision"), seen.get("pin")
        if found:
            dirty = " with uncommitted changes" if seen.get("dirty") else ""
            return f"{found}{dirty}"
        if pin and seen.get("state") == "pinned":
            return str(pin)
        if pin and run.backend:
            return f"a local build without a recorded revision (fingerprint {run.backend}); uv.lock pins {pin}"
    return None
