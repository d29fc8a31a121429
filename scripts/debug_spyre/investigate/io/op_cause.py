"""A cause whose tests met a wrong or refused call: the call alone, its condition, what it explains, and the proof."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from debug_spyre.examine.condition import Condition
from debug_spyre.examine.dossier import Cause, call_text, condition_of, sentence_of
from debug_spyre.examine.features import features, packet_of
from debug_spyre.examine.io.engine import Engine
from debug_spyre.examine.io.engines import engine_on
from debug_spyre.examine.io.one_call import CallCause, Recorded, examine, smallest_wrong
from debug_spyre.examine.search import Answer
from debug_spyre.investigate.causes import Draft, Ledger, known_limits
from debug_spyre.investigate.io import proving
from debug_spyre.investigate.io.matrix import Work
from debug_spyre.investigate.io.sessions import (
    CauseSession,
    add_row,
    conclude,
    conclude_seeds,
    measure_before,
    open_for,
)
from debug_spyre.repro.same_fault import Fingerprint, is_same_refusal, stable_words
from debug_spyre.runs.io.records import RunRecord
from debug_spyre.session.io.workspace import load_session, past_sessions
from debug_spyre.session.state import find_similar
from debug_spyre.surface.io.limits_probe import load_limits
from debug_spyre.vocabulary.words import Status


def explains(
    engine: Engine, cause: CallCause, condition: Condition, tests: Sequence[str], ledger: Ledger
) -> tuple[dict[str, int], list[str]]:
    """How the condition judges what it has not seen: all lines of the ledger of this op; and the tests left over."""
    lines = ledger.of_op(packet_of(cause.call["op"]))
    missing = [line for line in lines if not line.out]
    shapes = engine.verdicts([line.call for line in missing], only_shapes=True)
    outs = {id(line): verdict.out for line, verdict in zip(missing, shapes, strict=True)}
    place = cause.space.dim_place if cause.space else None
    predicted = {
        (line.number, line.verdict): condition.holds(
            features(line.call, line.out or outs.get(id(line), ()), dim_place=place)
        )
        for line in lines
    }
    bad = "refused" if cause.bad is Answer.REFUSED else "wrong"
    left = [
        test
        for test in tests
        if not any(predicted.get((m.number, m.verdict)) for m in ledger.met_by(test) if m.verdict == bad)
    ]
    others = [line for line in lines if line.verdict in {bad, "right"}]
    were = [line for line in others if line.verdict == bad]
    wrong = [line for line in others if predicted[line.number, line.verdict] != (line.verdict == bad)]
    numbers = {
        "tests": len(tests) - len(left),
        "of": len(tests),
        "calls": len(others) + (cause.found.unseen if cause.found else 0),
        "predicted_wrong": sum(predicted[x.number, x.verdict] for x in others)
        + (cause.found.unseen_wrong if cause.found else 0),
        "were_wrong": len(were) + (cause.found.unseen_wrong if cause.found else 0),
        "contradictions": len(wrong),
    }
    return numbers, left


MOST_SPLITS = 2


@dataclass(frozen=True, slots=True)
class Scene:
    """What all causes of one investigation share. `shadow` None: it was not run, or left no ledger."""

    work: Work
    words: tuple[str, ...]
    ledger: Ledger
    shadow: RunRecord | None
    died: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """One cause under way: its name, session, draft, and how often it was split off another."""

    scene: Scene
    session: CauseSession
    name: str
    draft: Draft
    split: int = 0


def op_cause(place: Place) -> list[Cause]:
    """The cause, and others for the tests that its condition leaves over."""
    scene, draft, name = place.scene, place.draft, place.name
    assert draft.first is not None
    assert scene.shadow is not None
    recorded = _recorded(draft, scene.ledger, scene.shadow)
    row = add_row(
        place.session,
        f"{draft.first.op} at {draft.first.site} is {draft.verdict} in the failing tests",
        "debug-spyre investigate",
    )
    folder = place.session.folder.path
    engine = engine_on(scene.work.cards, folder, scene.work.checkout, folder / "investigate" / name, hypothesis=row)
    left: list[str] = []
    numbers = None
    try:
        scene.work.say(f"{name}: {draft.first.op} at {draft.first.site}: alone, then its condition")
        seen = examine(engine, recorded, seed=place.split, has_time=scene.work.has_time, same=is_same_refusal)
        if seen.found and seen.found.condition:
            numbers, left = explains(engine, seen, seen.found.condition, draft.tests, scene.ledger)
    finally:
        record = engine.close()
    runs = [scene.shadow.id, *([record.id] if record else [])]
    tests = tuple(t for t in draft.tests if t not in left)
    cause = _proved(replace_draft(place, tests or draft.tests), seen, numbers, runs, row)
    if not left:
        return [cause]
    if (
        not tests
        or place.split >= MOST_SPLITS
        or not scene.work.has_time(f"{name}: {len(left)} tests that its condition leaves")
    ):
        return [replace(cause, open=(*cause.open, f"{len(left)} tests not explained"))]
    return [cause, *_rest(place, left)]


def replace_draft(place: Place, tests: Sequence[str]) -> Place:
    """The same cause with these tests."""
    return replace(place, draft=replace(place.draft, tests=tuple(tests)))


def _rest(place: Place, left: Sequence[str]) -> list[Cause]:
    """What a condition leaves over is a cause of its own: another session, the same op."""
    draft, scene, name = place.draft, place.scene, f"{place.name}{'bcd'[place.split]}"
    met = [m for m in (draft.first, *draft.also) if m is not None and m.nodeid in left]
    met = met or [m for t in left for m in scene.ledger.met_by(t) if m.op == (draft.first.op if draft.first else "")]
    rest = replace(draft, tests=tuple(left), first=met[0] if met else draft.first, also=tuple(met[1:]))
    session = open_for(scene.work, name, rest, scene.words)
    measure_before(session)
    return op_cause(Place(scene, session, name, rest, place.split + 1))


def _recorded(draft: Draft, ledger: Ledger, shadow: RunRecord) -> Recorded:
    """The call with its values where they were kept, and the calls before it."""
    assert draft.first is not None
    if draft.first.suspect:
        path = shadow.folder / "suspects" / draft.first.suspect / "call.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        return Recorded(data["call"], str(draft.verdict), tuple(data.get("prelude") or ()))
    return Recorded(dict(ledger.call(draft.first.number) or {}), str(draft.verdict))


def _original(draft: Draft) -> Fingerprint:
    """What a script has to show to be one of this cause."""
    said = (draft.first.said if draft.first else None) or ""
    return Fingerprint("error", words=stable_words(said)) if draft.verdict == "refused" else Fingerprint("difference")


def _proved(place: Place, seen: CallCause, numbers: Any, runs: list[str], row: int) -> Cause:
    work, session, name, draft = place.scene.work, place.session, place.name, place.draft
    assert draft.first is not None
    sentence = sentence_of(draft.first.op, seen)
    prover = proving.prover_of(session, row, max(work.minutes / 4, 2.0))
    told = proving.control(session, prover) if work.has_time(f"{name}: the CPU control") else None
    repro = None
    if work.has_time(f"{name}: the proof") and not (seen.manner == "order" and not seen.before):
        work.say(f"{name}: proof")
        repro = proving.prove(session, prover, smallest_wrong(seen), seen.before, _original(draft))
    is_proved = bool(repro and repro["proved"] == f"{proving.TIMES}/{proving.TIMES}" and repro.get("control") is True)
    control = told["control"] if told else None
    claim = "cause" if is_proved and control == proving.PASSES else "located"
    more = [told["run"]] if told else []
    runs = list(dict.fromkeys([*runs, *more, *(repro["runs"] if repro else [])]))
    open_points = list(seen.open)
    if control == proving.ELSEWHERE and told:
        open_points.append(f"the control says nothing: {told['why']}")
    if repro and not is_proved:
        open_points.append(str(repro["why"]))
    cause = Cause(
        id=name, session=session.folder.stem, sentence=sentence, op=draft.first.op, claim=claim, manner=seen.manner,
        tests=draft.tests, clusters=draft.clusters, condition=condition_of(seen), wrong_values=seen.said,
        explains=numbers, needs_before=tuple(call_text(c) for c in seen.before), control=control,
        repro={k: repro[k] for k in ("path", "tier", "lines", "proved")} if repro and repro["path"] else None,
        ways_round=tuple(seen.ways), known=_known(place, draft.first.op),
        runs=tuple(runs), open=tuple(open_points), call=call_text(seen.call), site=draft.first.site,
        fallbacks=_fallbacks_of(place.scene, draft.tests),
    )  # fmt: skip
    verdict = "confirmed" if claim == "cause" else "inconclusive"
    conclude(session, row, verdict, sentence, runs)
    conclude_seeds(session, cause, told, runs)
    return cause


def _fallbacks_of(scene: Scene, tests: Sequence[str]) -> tuple[str, ...] | None:
    """The ops that fell back in these tests; None where that is not known."""
    seen = scene.shadow.evidence if scene.shadow else None
    if seen is None or not {t.nodeid for t in seen.tests} >= set(tests):
        return None
    return tuple(dict.fromkeys(op for t in seen.tests if t.nodeid in tests for op in t.fallbacks))


def _known(place: Place, op: str) -> dict[str, Any]:
    """Known limitations of the op, and past sessions with such a failure."""
    logs = place.session.folder.path.parent
    past = [s for s in past_sessions(logs) if s.status is not Status.INVESTIGATING]
    cluster = load_session(place.session.folder).cluster
    similar = find_similar(cluster, past, except_stem=place.session.folder.stem)
    return {"limits": known_limits(op, load_limits()), "similar": [s.stem for s in similar[:3]]}
