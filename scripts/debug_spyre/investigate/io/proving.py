"""The proof of a cause: the CPU control, the smallest script, N of N fresh processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from debug_spyre.examine.call import Call, Program, Tensor, call_from_json
from debug_spyre.examine.features import JsonCall
from debug_spyre.examine.io.trials import BudgetSpentError, Trials
from debug_spyre.investigate.io.sessions import CauseSession
from debug_spyre.repro.io.first_look import Shown
from debug_spyre.repro.io.proof import Prover
from debug_spyre.repro.io.repro_session import ReproSession
from debug_spyre.repro.same_fault import Fingerprint, agree, of_answer, of_failure
from debug_spyre.repro.script import Fault, script
from debug_spyre.repro.writing import by_seed
from debug_spyre.session.io.workspace import all_evidence, load_session
from debug_spyre.vocabulary.errors import DebugSpyreError
from debug_spyre.vocabulary.evidence import Failure
from debug_spyre.vocabulary.words import CPU_CONTROL

TIMES = 3
RUNS = 30
PASSES, ALIKE, ELSEWHERE = "passes", "fails-alike", "stopped-elsewhere"


def prover_of(session: CauseSession, row: int | None, minutes: float) -> Prover:
    """Runs scripts of the session under the lock."""
    trials = Trials(session.folder, session.work.checkout, RUNS, minutes * 60, hypothesis=row, cards=session.work.cards)
    return Prover(session.folder, session.work.checkout, trials, hypothesis=row)


def control(session: CauseSession, prover: Prover) -> dict[str, Any]:
    """The probe on the CPU: passes, fails alike, or stopped for another reason than the failure (then it says nothing)."""

    def do() -> dict[str, Any]:
        state = load_session(session.folder)
        probe = state.probe or state.members[0].nodeid
        _, record = prover.control_of((probe,))
        if record.exit == 0:
            return {"control": PASSES, "run": record.id, "why": "it passes"}
        original = failure_of(session, probe)
        failures = record.evidence.failures if record.evidence else ()
        seen = next((f for f in failures if f.nodeid in {probe, None}), failures[0] if failures else None)
        if original is None or seen is None:
            return {"control": ELSEWHERE, "run": record.id, "why": f"exit {record.exit}, and no failure of the test"}
        same, why = agree(of_failure(original), of_failure(seen))
        if same and _line(original) != _line(seen):
            same, why = False, f"it stops at {_line(seen)}, the failure at {_line(original)}"
        return {"control": ALIKE if same else ELSEWHERE, "run": record.id, "why": why}

    found: dict[str, Any] = session.work.once(f"{session.key}/control", do)
    return found


def failure_of(session: CauseSession, nodeid: str) -> Failure | None:
    """The test's failure in the newest run of the session that kept one."""
    state = load_session(session.folder)
    kept = all_evidence(session.folder, state)
    for run in reversed(list(state.runs)):
        if run in kept:
            found = next((f for f in kept[run].failures if f.nodeid == nodeid and f.message), None)
            if found and state.runs[run].name != CPU_CONTROL:
                return found
    return None


def _line(failure: Failure) -> str | None:
    """The line of the test or the code at which it stopped, its folder left out."""
    return failure.innermost_frame.rpartition("/")[2] if failure.innermost_frame else None


def prove(
    session: CauseSession, prover: Prover, calls: Sequence[JsonCall], before: Sequence[JsonCall], original: Fingerprint
) -> dict[str, Any] | None:
    """The smallest of these calls that shows it as a script, in N fresh processes; None where no script does."""

    def do() -> dict[str, Any] | None:
        search = ReproSession(prover, TIMES, shrink=False)
        try:
            earlier = tuple(call_from_json(plain_json(c)) for c in before)
            shown = _first_that_shows(prover, [call_from_json(plain_json(c)) for c in calls], earlier, original)
            if shown is None:
                return {
                    "path": None,
                    "tier": 1,
                    "lines": 0,
                    "proved": f"0/{TIMES}",
                    "why": "no script shows it",
                    "runs": [],
                }
            proof = search.from_shown(shown)
        except (BudgetSpentError, DebugSpyreError) as error:
            return {"path": None, "tier": 1, "lines": 0, "proved": f"0/{TIMES}", "why": error.what, "runs": []}
        finally:
            prover.trials.forget()
        lines = [f"{proof.script} (tier {proof.tier}, {proof.lines} lines): {proof.stamp}"]
        prover.record(search.proofs, None, lines, search.steps)
        return {
            "path": str(session.folder.path / proof.script) if proof.shown else None, "tier": proof.tier, "lines": proof.lines,
            "proved": f"{proof.shown}/{proof.times}", "why": proof.stamp, "runs": list(proof.runs), "control": proof.control,
        }  # fmt: skip

    found: dict[str, Any] | None = session.work.once(f"{session.key}/proof", do)
    return found


def plain_json(call: JsonCall) -> JsonCall:
    """Without what only the engine reads."""
    return {key: value for key, value in call.items() if key not in {"form", "mode"}}


def _seeded(tensor: Tensor) -> Tensor:
    """Saved values are a storage without the layout of its allocation: where that counts, values by seed must do."""
    return by_seed(tensor) if tensor.layout is not None and tensor.fill == "file" else tensor


def _first_that_shows(
    prover: Prover, calls: Sequence[Call], before: tuple[Call, ...], original: Fingerprint
) -> Shown | None:
    """The first call whose script shows the fault, and how it shows; each in a process of its own where others come before."""
    programs = [Program(call.map_tensors(_seeded), prelude=before) for call in calls]
    answers = prover.trials.evaluate([script(program, Fault()) for program in programs], isolated=bool(before))
    for program, answer in zip(programs, answers, strict=True):
        found = of_answer(answer)
        if found is not None and agree(original, found)[0]:
            exact = bool((answer.get("difference") or {}).get("exact"))
            program = replace(program, call=replace(program.call, exact=exact or program.call.exact))
            return Shown(program, found, isolated=bool(before))
    return None
