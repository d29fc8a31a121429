"""The driver of an investigation: the command of one supervised job, from the matrix to the dossier; every step is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import Card, visible_cards
from debug_spyre.examine.dossier import Cause, Dossier, dossier_from
from debug_spyre.gate.io.validation_jobs import present
from debug_spyre.investigate.causes import OP, Draft, Ledger, draft_causes, next_of
from debug_spyre.investigate.io.matrix import Redraw, Work, ledger_of, run_matrix, run_shadow
from debug_spyre.investigate.io.op_cause import Place, Scene, op_cause
from debug_spyre.investigate.io.other_cause import look_otherwise
from debug_spyre.investigate.io.sessions import measure_before, open_for, tell
from debug_spyre.runs.io.records import RunRecord
from debug_spyre.vocabulary.errors import DebugSpyreError, Exit, RefusedError
from debug_spyre.vocabulary.evidence import Evidence, Outcome

FAILING = {Outcome.FAILED, Outcome.ERROR}


def main(words: Sequence[str], redraw: Redraw) -> int:
    """`words`: the request's file. Exit status 0: done, whatever was found; what was found stands in the dossier."""
    request = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    folder = Path(words[0]).parent
    work = Work(folder, Path(request["checkout"]), float(request["minutes"]), redraw, cards_of(request))
    work.load()
    now = present(work.checkout)
    card = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith(("SPYRE_", "SENCORES", "TORCH_SENDNN")))
    try:
        work.check_under({"the tree": now.tree, "torch-spyre": now.backend, "the card's variables": card})
    except RefusedError as error:
        work.say(error.what)
        return int(Exit.USAGE)  # 1 would be a traceback of ours, too
    dossier = investigate(work, tuple(request["words"]))
    work.write(dossier)
    return 0


def cards_of(request: dict[str, Any]) -> tuple[Card, ...]:
    """The cards over which independent runs are spread; the job holds their locks."""
    return tuple(card for card in visible_cards() if card.device in (request.get("cards") or ()))


def investigate(work: Work, words: tuple[str, ...]) -> Dossier:
    """All steps; what is known from an earlier call is taken as it is."""
    work.say(f"matrix: {' '.join(words) or 'all tests'}")
    matrix = run_matrix(work, words)
    facts = {"run": matrix.id, "counts": matrix.counts, "seconds": round(matrix.seconds, 1)}
    blank = Dossier(
        facts, work.seconds, {"minutes": work.minutes, "left_out": []}, next="debug-spyre doctor", complete=False
    )
    failing = failing_of(matrix.evidence)
    work.say(f"{len(failing)} of {len(matrix.evidence.tests) if matrix.evidence else 0} tests fail")
    if not failing:
        told = "debug-spyre doctor" if matrix.counts is None else "nothing fails: there is nothing to investigate"
        return replace(blank, next=told, complete=True, seconds=round(work.seconds, 1))
    work.write(blank)
    ledger, died, shadow = _shadow(work, words, matrix)
    drafts = _drafts(work, matrix, failing, ledger, died)
    causes: list[Cause] = []
    unexplained: list[str] = []
    for number, draft in enumerate(drafts, start=1):
        name = f"k{number}"
        if not work.has_time(f"{name}: {draft.packet or draft.kind}, {len(draft.tests)} tests"):
            unexplained += draft.tests
            continue
        try:
            causes += _cause(Scene(work, words, ledger, shadow, died), name, draft)
        except DebugSpyreError as error:
            work.say(f"{name}: {error.what}")
            work.left_out.append(f"{name}, {len(draft.tests)} tests: {error.what}")
        work.write(_dossier(work, blank, causes, unexplained, complete=False))
    explained = {test for cause in causes for test in cause.tests}
    dossier = _dossier(work, blank, causes, [t for t in failing if t not in explained], complete=not work.left_out)
    for cause in causes:
        tell(work, cause, dossier)
    return dossier


def failing_of(evidence: Evidence | None) -> list[str]:
    """Node ids of the failing tests, in the run's order."""
    if evidence is None:
        return []
    ended = [t.nodeid for t in evidence.tests if t.outcome in FAILING]
    return list(dict.fromkeys([*ended, *(f.nodeid for f in evidence.failures if f.nodeid)]))


def _shadow(
    work: Work, words: tuple[str, ...], matrix: RunRecord
) -> tuple[Ledger, dict[str, Any] | None, RunRecord | None]:
    if not work.has_time("shadow in context"):
        return Ledger(), None, None
    work.say("shadow: the matrix again, each op of the card repeated on the CPU")
    shadow = run_shadow(work, words, matrix.evidence.selected if matrix.evidence else ())
    try:
        ledger, died = ledger_of(shadow)
    except DebugSpyreError as error:
        work.say(error.what)
        return Ledger(), None, shadow
    bad = sum(line.verdict != "right" for line in ledger.lines)
    work.say(f"{len(ledger.lines)} distinct calls, {bad} of them wrong or refused ({shadow.seconds:.0f} s)")
    return ledger, died, shadow


def _drafts(
    work: Work, matrix: RunRecord, failing: Sequence[str], ledger: Ledger, died: dict[str, Any] | None
) -> list[Draft]:
    triage = json.loads((work.folder / "triage.json").read_text(encoding="utf-8"))
    clusters = {nodeid: c["id"] for c in triage["clusters"] for nodeid in c["nodeids"] if nodeid}
    failures = matrix.evidence.failures if matrix.evidence else ()
    marks = {f.nodeid for f in failures if "XPASS(strict)" in f"{f.message} {f.cause} {f.reason}" and f.nodeid}
    drafts = draft_causes(failing, ledger, clusters, stale=tuple(marks), died=(died or {}).get("nodeid"))
    for draft in drafts:
        work.say(
            f"{len(draft.tests)} tests: {draft.packet or draft.kind}{f' is {draft.verdict}' if draft.verdict else ''}"
        )
    return drafts


def _cause(scene: Scene, name: str, draft: Draft) -> list[Cause]:
    """The cause of a draft, and of what its condition leaves over."""
    work = scene.work
    known = work.known.get(f"{name}/causes")
    if known is not None:
        return list(dossier_from({"matrix": {}, "seconds": 0.0, "budget": {}, "causes": known}).causes)
    session = open_for(work, name, draft, scene.words)
    work.say(f"{name}: session {session.folder.stem}")
    measure_before(session)
    if draft.kind == OP and draft.first is not None and scene.shadow is not None:
        causes = op_cause(Place(scene, session, name, draft))
    else:
        causes = [look_otherwise(session, name, draft, scene.died)]
    work.known[f"{name}/causes"] = [asdict(cause) for cause in causes]
    work.save()
    for cause in causes:
        work.say(f"{cause.id} {cause.claim}: {cause.sentence}")
    return causes


def _dossier(work: Work, blank: Dossier, causes: Sequence[Cause], left: Sequence[str], *, complete: bool) -> Dossier:
    return replace(
        blank,
        seconds=round(work.seconds, 1),
        budget={"minutes": work.minutes, "left_out": list(work.left_out)},
        causes=tuple(causes),
        unexplained=tuple(left),
        next=next_of(causes, work.left_out),
        complete=complete,
    )
