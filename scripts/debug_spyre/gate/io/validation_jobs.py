"""The jobs of a validation: the members and the matrix once more, exactly as they were run before the fix."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.fleet.io.lane import over_cards_as_before
from debug_spyre.gate.before_after import BeforeAfter, Measure
from debug_spyre.gate.validation import Present, Step
from debug_spyre.host.files import PRIVATE, write_atomically
from debug_spyre.host.fingerprint import backend_fingerprint
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.jobs import JobSpec, run_job
from debug_spyre.runs.io.pytest_command import pytest_command
from debug_spyre.runs.io.run_folder import RunFolder, run_folders_of
from debug_spyre.session.io.workspace import Folder, load_evidence
from debug_spyre.session.state import Session
from debug_spyre.tree.io.snapshot import tree_digest
from debug_spyre.vocabulary.errors import RefusedError
from debug_spyre.vocabulary.evidence import Evidence
from debug_spyre.vocabulary.words import BASELINE, FULL_MATRIX, POST_FIX, POST_FIX_MATRIX, WORK_AFTER, WORK_BEFORE

KEPT = "finish.json"
NAMES = ("cause", "wasted", "signal", "next_action")


def kept_texts(session: Path) -> dict[str, str]:
    """The texts by name; none where nothing is kept or the file is damaged."""
    try:
        data = json.loads((session / KEPT).read_text(encoding="utf-8"))
        return {name: str(data[name]) for name in NAMES if data.get(name)}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def keep_texts(session: Path, given: Mapping[str, str | None]) -> dict[str, str]:
    """Add what this call was given to what is kept; returns all of it."""
    texts = kept_texts(session) | {name: text for name in NAMES if (text := (given.get(name) or "").strip())}
    write_atomically(session / KEPT, json.dumps(texts, ensure_ascii=False), mode=PRIVATE)
    return texts


def forget_texts(session: Path) -> None:
    """The session is closed: they are in its journal."""
    (session / KEPT).unlink(missing_ok=True)


_COUNTS = (WORK_BEFORE, WORK_AFTER)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a run may take, wait for the card, or be silent."""

    timeout: float | None = None
    stall: float | None = None
    wait: float | None = None


def present(checkout: Path) -> Present:
    """Tree and backend now."""
    packages = choose(checkout).packages
    return Present(tree_digest(checkout), backend_fingerprint(packages) if packages else None)


def gate_evidence(folder: Folder, session: Session) -> dict[str, Evidence]:
    """Evidence of the runs that the gate compares, and of no others: a long session has many."""
    names = {BASELINE, FULL_MATRIX, POST_FIX, POST_FIX_MATRIX, *_COUNTS}
    return load_evidence(folder, [run for run in session.runs.values() if run.name in names])


def running(folder: Folder) -> RunFolder | None:
    """The run of a validation that is under way, if any."""
    for run in run_folders_of(folder.path):
        if run.has_live_supervisor() and run.job().name in {POST_FIX, POST_FIX_MATRIX, *_COUNTS}:
            return run
    return None


def job_for(step: Step, m: BeforeAfter, folder: Folder, limits: Limits) -> JobSpec:
    """The run of this step: the words and the environment of its counterpart before the fix.

    Raises:
        RefusedError: nothing says what the matrix is.
    """
    checkout = Path(m.session.checkout)
    words, env = _as_before(step, m)
    interpreter = choose(checkout)
    argv, env = pytest_command(
        checkout, words, name=step.name, env=env, plugins=("debug_spyre_work",) if step.name in _COUNTS else (),
        known=_known(m), interpreter=interpreter, verb="validate",
    )  # fmt: skip
    spec = JobSpec(
        folder=folder.path,
        checkout=checkout,
        verb="validate",
        name=step.name,
        argv=argv,
        pytest_args=tuple(words),
        env=env,
        members_only=step.name != POST_FIX_MATRIX,
        timeout=limits.timeout,
        stall=limits.stall,
        wait=limits.wait,
        python=str(interpreter.python),
    )
    spread = next((run for run in reversed(m.session.runs.values()) if run.name == FULL_MATRIX), None)
    return over_cards_as_before(spec, spread.id) if spread and step.name == POST_FIX_MATRIX else spec


def count_before(folder: Folder, session: Session) -> None:
    """Count what the members do without the fix, where that is all that is missing: the tree is at its start again."""
    m = BeforeAfter(session, gate_evidence(folder, session))
    wanted = m.work_after is not None and m.work_before is None and m.before_members is not None
    if wanted and m.patched != m.start and tree_digest(Path(session.checkout)) == m.start:
        run_job(job_for(Step(WORK_BEFORE, "the members without the fix"), m, folder, Limits()), foreground=None)


def _as_before(step: Step, m: BeforeAfter) -> tuple[tuple[str, ...], dict[str, str]]:
    members = tuple(x.nodeid for x in m.session.members)
    is_matrix = step.name == POST_FIX_MATRIX
    before = m.before_matrix if is_matrix else m.before_members
    env = {k: v for k, v in before.run.env.items() if k != "PYTHONPATH"} if before else {}
    if not is_matrix:
        words = before.run.pytest_args if before else None
        has_all = before is not None and before.sight is not None and set(members) <= set(before.sight.nodeids)
        return (words if words and has_all else members), env
    asked = before.run.pytest_args if before else None
    words = m.session.matrix if asked is None else asked
    if words is None:  # no words at all are a matrix too: pytest's own selection
        raise RefusedError(
            "no matrix is known for this session, so a regression could not be seen",
            next="debug-spyre revert, then debug-spyre run --as full-matrix PYTEST-ARGS",
        )
    return words, env


def _known(m: BeforeAfter) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for measure in (*m.before, *m.after):
        if isinstance(measure, Measure) and measure.sight is not None:
            found |= dict.fromkeys(measure.sight.nodeids)
    return tuple(found)
