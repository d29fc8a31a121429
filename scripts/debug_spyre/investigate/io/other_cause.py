"""Failing tests in which no op is wrong by itself: order, graph only, host logic, a stale mark, a crash; the cheapest run decides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from debug_spyre.examine.dossier import Cause, call_text
from debug_spyre.investigate.causes import CLEAN, DIED, STALE, Draft
from debug_spyre.investigate.io import proving
from debug_spyre.investigate.io.sessions import CauseSession, add_row, conclude, conclude_seeds
from debug_spyre.repro.same_fault import Fingerprint
from debug_spyre.runs.io.jobs import SCRIPTS
from debug_spyre.session.io.workspace import load_session
from debug_spyre.vocabulary.evidence import Outcome

BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from debug_spyre.cli import main; sys.exit(main(sys.argv[1:]))"


def look_otherwise(session: CauseSession, name: str, draft: Draft, died: dict[str, Any] | None) -> Cause:
    """The cause of tests without a wrong op, as far as one run each tells."""
    state = load_session(session.folder)
    probe = state.probe or draft.tests[0]
    baseline = state.last_run("baseline")
    runs = [r.id for r in (state.last_run("full-matrix"), baseline) if r is not None]
    clean = draft.kind == CLEAN
    if draft.kind == STALE:
        return _stale(session, name, draft, probe, runs)
    if draft.kind == DIED and died is not None:
        return _died(session, name, draft, died, runs)
    alone = _outcome_alone(session, probe)
    if clean and alone is Outcome.PASSED:
        return _order(session, name, draft, probe, runs)
    return _from_control(session, name, draft, probe, runs, clean=clean)


def _outcome_alone(session: CauseSession, probe: str) -> Outcome | None:
    record = session.run([probe], name="baseline")
    tests = record.evidence.tests if record.evidence else ()
    return next((t.outcome for t in tests if t.nodeid == probe), None)


def _stale(session: CauseSession, name: str, draft: Draft, probe: str, runs: Sequence[str]) -> Cause:
    sentence = f"{_count(draft)} marked xfail(strict) and pass now: the mark is stale, the code is right"
    row = add_row(session, "the xfail mark is stale: the test passes now", "debug-spyre investigate")
    conclude(session, row, "confirmed", sentence, runs)
    return _cause(
        _Of(session, name, draft), sentence, "stale-mark", "cause", runs, open=(f"take the mark off {probe}",)
    )


def _died(session: CauseSession, name: str, draft: Draft, died: dict[str, Any], runs: Sequence[str]) -> Cause:
    hangs = "stalled" in str(died["died"]) or "timeout" in str(died["died"])
    sentence = f"{died['op']} at {died['site']} {'hangs' if hangs else 'ends the process'} ({died['died']})"
    row = add_row(session, f"{died['op']} at {died['site']} ends the process", "debug-spyre investigate")
    prover = proving.prover_of(session, row, 5.0)
    repro = None if hangs else proving.prove(session, prover, [died["call"]], (), Fingerprint("crash"))
    proved = bool(repro and repro["proved"] == f"{proving.TIMES}/{proving.TIMES}" and repro.get("control") is True)
    runs = [*runs, *(repro["runs"] if repro else [])]
    conclude(session, row, "confirmed" if proved else "inconclusive", sentence, runs)
    shown = {k: repro[k] for k in ("path", "tier", "lines", "proved")} if repro and repro["path"] else None
    claim = "cause" if proved else "located"
    return _cause(
        _Of(session, name, draft), sentence, "hang" if hangs else "crash", claim, runs, op=died["op"], repro=shown,
        call=call_text(died["call"]), site=died["site"],
    )  # fmt: skip


def _order(session: CauseSession, name: str, draft: Draft, probe: str, runs: Sequence[str]) -> Cause:
    sentence = (
        f"{_count(draft)} fail in the matrix and pass alone, and no op is wrong by itself: an earlier test matters"
    )
    row = add_row(session, "an earlier test of the matrix makes it fail", "debug-spyre investigate")
    conclude(session, row, "confirmed", sentence, runs)
    file = probe.partition("::")[0]
    cause = _cause(
        _Of(session, name, draft),
        sentence,
        "order",
        "located",
        runs,
        open=(f"which earlier test: debug-spyre run --alone {file}",),
    )
    conclude_seeds(session, cause, None, runs)
    return cause


def _from_control(
    session: CauseSession, name: str, draft: Draft, probe: str, runs: Sequence[str], *, clean: bool
) -> Cause:
    row = add_row(session, "it fails on the CPU in the same way: our own logic, or the test", "debug-spyre repro --cpu")
    told = proving.control(session, proving.prover_of(session, row, 5.0))
    runs = [*runs, told["run"]]
    if told["control"] == proving.ALIKE:
        sentence = f"{_count(draft)} fail on the CPU in the same way: our own logic or the test, not the card"
        conclude(session, row, "confirmed", sentence, [told["run"]])
        cause = _cause(_Of(session, name, draft), sentence, "host-logic", "cause", runs, control=proving.ALIKE)
        conclude_seeds(session, cause, told, runs)
        return cause
    verdict = "ruled-out" if told["control"] == proving.PASSES else "inconclusive"
    conclude(session, row, verdict, f"the control {told['control']}: {told['why']}", [told["run"]])
    if clean:
        told_by = ladder(session, probe, row)
        where = f": {told_by['conclusion']}" if told_by else ""
        sentence = f"{_count(draft)} fail only in compiled graphs, op by op they pass{where}"
        opened = () if told_by else (f"which rung: debug-spyre ladder {probe}",)
        runs = [*runs, *(told_by["runs"] if told_by else [])]
        return _cause(
            _Of(session, name, draft), sentence, "graph-only", "located", runs, control=told["control"], open=opened
        )
    sentence = f"{_count(draft)} fail, and no op that was checked is wrong by itself"
    opened = ("what was not checked: see the shadow run",)
    return _cause(
        _Of(session, name, draft), sentence, "host-logic", "located", runs, control=told["control"], open=opened
    )


def ladder(session: CauseSession, probe: str, row: int) -> dict[str, Any] | None:
    """The probe under the ladder's switches: its conclusion and its runs; None where it gave no answer."""

    def do() -> dict[str, Any] | None:
        words = ["ladder", "--session", session.folder.stem, "--hypothesis", str(row), "--json", probe]
        done = subprocess.run(
            [sys.executable, "-P", "-c", BOOT, str(SCRIPTS), *words], capture_output=True, text=True, check=False
        )
        try:
            data = json.loads(done.stdout)
            return {"conclusion": data["conclusion"], "runs": [step["run"] for step in data["steps"]]}
        except (ValueError, KeyError, TypeError):
            return None

    found: dict[str, Any] | None = session.work.once(f"{session.key}/ladder", do)
    return found


def _count(draft: Draft) -> str:
    return f"{len(draft.tests)} {'test' if len(draft.tests) == 1 else 'tests'}"


@dataclass(frozen=True, slots=True)
class _Of:
    session: CauseSession
    name: str
    draft: Draft


def _cause(of: _Of, sentence: str, manner: str, claim: str, runs: Sequence[str], **more: Any) -> Cause:
    session, name, draft = of.session, of.name, of.draft
    return Cause(
        id=name, session=session.folder.stem, sentence=sentence, op=more.pop("op", None), claim=claim, manner=manner,
        tests=draft.tests, clusters=draft.clusters, runs=tuple(dict.fromkeys(runs)), **more,
    )  # fmt: skip
