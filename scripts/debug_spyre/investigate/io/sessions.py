"""The sessions of an investigation: one a cause, opened with its runs, measured before anything is tested, rows concluded by runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from debug_spyre.examine.dossier import MOST_LINES, Cause, Dossier, base_of, cause_lines, dossier_to, own_fallbacks
from debug_spyre.host.files import PRIVATE, write_atomically
from debug_spyre.host.interpreter import choose
from debug_spyre.investigate.causes import Draft
from debug_spyre.investigate.io.matrix import DOSSIER, Work
from debug_spyre.queue import queue_rules
from debug_spyre.queue.io.rows import situation
from debug_spyre.queue.queue_words import seed_event
from debug_spyre.queue.seed_rules import seeds
from debug_spyre.runs.io.jobs import JobSpec, RunRecord, run_job
from debug_spyre.runs.io.pytest_command import pytest_command
from debug_spyre.runs.io.records import load_record
from debug_spyre.runs.io.run_folder import RUNS, RunFolder
from debug_spyre.session import events as ev
from debug_spyre.session.events import ReportMade
from debug_spyre.session.io.workspace import Folder, find_session, load_session, logs_folder, slugify
from debug_spyre.session.state import Member
from debug_spyre.triage.io import opening
from debug_spyre.triage.io.triages import read_triage
from debug_spyre.vocabulary.errors import RefusedError
from debug_spyre.vocabulary.safe_text import one_line
from debug_spyre.vocabulary.words import BASELINE, Status

ORIGIN = "investigate"
VIEWS = ("strided", "offset", "expanded", "layout")  # features that speak of how a tensor lies


@dataclass(frozen=True, slots=True)
class CauseSession:
    """The session of one draft."""

    work: Work
    folder: Folder
    key: str

    def run(
        self, words: Sequence[str], *, name: str | None, members: bool = False, row: int | None = None
    ) -> RunRecord:
        """One pytest run of the session, once."""

        def do() -> str:
            interpreter = choose(self.work.checkout)
            argv, env = pytest_command(
                self.work.checkout, words, name=name, interpreter=interpreter, known=tuple(words)
            )
            spec = JobSpec(
                folder=self.folder.path, checkout=self.work.checkout, verb="run", name=name, argv=argv, env=env,
                pytest_args=tuple(words), members_only=members, hypothesis=row, python=str(interpreter.python),
            )  # fmt: skip
            return run_job(spec).id

        kind = f"{name or 'run'}{'-members' if members else ''}"
        run = self.work.once(f"{self.key}/{kind}/{len(words)}", do)
        return load_record(RunFolder(self.folder.path / RUNS / run))

    def change(self, make: Any) -> None:
        """Append the events that `make(session)` gives, in one step under the journal's lock."""
        self.folder.journal.record(make)
        self.work.redraw(self.folder.path)


def open_for(work: Work, key: str, draft: Draft, words: tuple[str, ...]) -> CauseSession:
    """The session of a draft: members, the matrix and the shadow run taken in. Opened once, whatever was killed."""
    stem = work.once(f"{key}/session", lambda: _open(work, key, draft, words))
    return CauseSession(work, find_session(logs_folder(work.checkout), stem=stem), key)


def _open(work: Work, key: str, draft: Draft, words: tuple[str, ...]) -> str:
    source = f"{work.folder} {key}"
    for folder in reversed(list(_all_sessions(work))):
        if _source_of(folder) == source:  # opened, and killed before it was written down
            return folder.stem
    triage = read_triage(work.folder)
    clusters = [c for c in triage.clusters if c["id"] in draft.clusters]
    first = clusters[0] if clusters else {}
    probe = next((c["probe"] for c in clusters if c.get("probe") in draft.tests), draft.tests[0])
    op = draft.packet.removeprefix("aten.") if draft.packet else ""
    plan = opening.Opening(
        slug=slugify(f"{op} {draft.verdict or draft.kind}") or "failing-tests",
        symptom=one_line(str(first.get("why") or f"{len(draft.tests)} tests: {draft.kind}"), 240),
        members=tuple(Member(nodeid) for nodeid in draft.tests),
        probe=probe,
        cluster={k: v for k, v in first.items() if k != "nodeids"} or None,
        matrix=words,
        source=source,
        runs_from=Folder(work.folder),
    )
    folder = opening.open_session(work.checkout, logs_folder(work.checkout), plan)
    if len(clusters) != 1 or set(first.get("nodeids") or ()) != set(draft.tests):
        why = f"the first op that differs is {draft.packet}" if draft.packet else f"they are alike: {draft.kind}"
        named = ", ".join(c["id"] for c in clusters) or "no cluster"
        folder.journal.append(ev.FindingNoted(text=f"members regrouped from {named} of the triage: {why}"))
    work.redraw(folder.path)
    return folder.stem


def _all_sessions(work: Work) -> Iterable[Folder]:
    from debug_spyre.session.io.workspace import session_folders

    return session_folders(logs_folder(work.checkout))


def _source_of(folder: Folder) -> str | None:
    from debug_spyre.session.io.workspace import first_event

    return first_event(folder).get("source")


def measure_before(session: CauseSession) -> None:
    """Baseline of the probe, all members, and the seeded queue: what a fix will be compared with."""
    state = load_session(session.folder)
    members = [m.nodeid for m in state.members]
    probe = state.probe or members[0]
    session.run([probe], name=BASELINE)
    if len(members) > 1:
        session.run(members, name=BASELINE, members=True)
    session.work.once(f"{session.key}/seeded", lambda: _seed(session))


def _seed(session: CauseSession) -> bool:
    try:
        proposed = seeds(situation(session.folder, load_session(session.folder)))
    except RefusedError:
        return False

    def rows(now: Any) -> list[ev.Event]:
        number, known = queue_rules.next_number(now), {h.text for h in now.hypotheses}
        fresh = [seed for seed in proposed if seed.text not in known]
        return [seed_event(seed, number + i) for i, seed in enumerate(fresh)]

    session.change(rows)
    return True


def add_row(session: CauseSession, text: str, test: str) -> int:
    """A row of our own, written down before it is tested, and in progress; its number."""

    def do() -> int:
        def make(now: Any) -> list[ev.Event]:
            same = next((h for h in now.hypotheses if h.text == text), None)
            number = same.number if same else queue_rules.next_number(now)
            added = ev.HypothesisAdded(number=number, text=text, test=test, confidence="high", origin=ORIGIN)
            started = ev.HypothesisStarted(number=number, command=test)
            return [*([] if same else [added]), *([started] if now.in_progress is None else [])]

        session.change(make)
        return next(h.number for h in load_session(session.folder).hypotheses if h.text == text)

    return int(session.work.once(f"{session.key}/row/{text}", do))


def conclude(session: CauseSession, number: int, verdict: str, sentence: str, runs: Sequence[str]) -> None:
    """The verdict on a row by these runs; a row that was not started begins with it. Nothing is concluded twice."""

    def make(now: Any) -> list[ev.Event]:
        row = now.hypothesis(number)
        known = tuple(r for r in dict.fromkeys(runs) if r in now.runs)
        if row is None or row.is_concluded or not known or now.status is not Status.INVESTIGATING:
            return []
        begun = (
            [] if row.status == "in-progress" else [ev.HypothesisStarted(number=number, command=f"shown by {known[0]}")]
        )
        return [
            *begun,
            ev.HypothesisConcluded(number=number, verdict=verdict, sentence=sentence, runs=known),
        ]

    session.change(make)


def tell(work: Work, cause: Cause, dossier: Dossier) -> None:
    """The session's own dossier and the report in its journal; told once for each state of the cause."""
    if cause.session is None:
        return
    folder = find_session(logs_folder(work.checkout), stem=cause.session)
    own = replace(dossier, causes=tuple(c for c in dossier.causes if c.session == cause.session), unexplained=())
    text = json.dumps(dossier_to(own), ensure_ascii=False)

    def do() -> bool:
        write_atomically(folder.path / DOSSIER, text, mode=PRIVATE)
        folder.journal.append(
            ReportMade(
                verb="investigate",
                lines=tuple(cause_lines(cause)[:MOST_LINES]),
                report=DOSSIER,
                run=next((r for r in cause.runs if r in load_session(folder).runs), None),
                data={"causes": [c.id for c in own.causes], "complete": dossier.complete},
            )
        )
        return True

    work.once(f"told/{cause.id}/{cause.claim}/{dossier.complete}", do)
    work.redraw(folder.path)


def conclude_seeds(session: CauseSession, cause: Cause, control: dict[str, Any] | None, runs: Sequence[str]) -> None:
    """The seeded rows that these runs answer; what no run answers stays queued."""
    for row in load_session(session.folder).hypotheses:
        if row.origin != "seed" or row.is_concluded:
            continue
        answer = _answer(row.text, cause, control)
        if answer is not None:
            verdict, sentence, by = answer
            conclude(session, row.number, verdict, sentence, by or runs)


def _answer(text: str, cause: Cause, control: dict[str, Any] | None) -> tuple[str, str, list[str]] | None:
    """(verdict, sentence, runs) for a seeded row; None where nothing measured answers it."""
    is_call = cause.manner in {"wrong-values", "refused"}
    engine = list(cause.runs[1:2])
    fallen = text.partition(" runs on the CPU at ")
    if fallen[1] and cause.claim == "cause" and is_call:
        if base_of(fallen[0]) == base_of(cause.op or ""):
            return "confirmed", cause.sentence, engine
        return "ruled-out", f"its results were compared as well; {cause.op} is the first that differs", engine
    if text.startswith("one op on the card gives a wrong result by itself"):
        return ("confirmed" if cause.manner == "wrong-values" else "ruled-out", cause.sentence, engine)
    if text.startswith("the test is wrong") and control and control["control"] != "stopped-elsewhere":
        passes = control["control"] == "passes"
        return (
            "ruled-out" if passes else "confirmed",
            f"the test {'passes' if passes else 'fails alike'} on the CPU",
            [control["run"]],
        )
    if text.startswith("state of an earlier test carries over"):
        if cause.manner == "order":
            return "confirmed", cause.sentence, list(cause.runs)
        return ("ruled-out", "the call alone in a fresh process is wrong as well", engine) if is_call else None
    if text.startswith(("shapes beyond a limit", "a stride, view or contiguous()")) and cause.manner == "order":
        return "ruled-out", f"the same call alone is right: {cause.sentence}", list(cause.runs)
    if text.startswith("shapes beyond a limit") and cause.condition:
        sizes = any(t["feature"].startswith(("size", "numel", "rows", "sticks")) for t in cause.condition.terms)
        return ("confirmed" if sizes else "ruled-out", cause.sentence, engine)
    if text.startswith("a stride, view or contiguous()") and cause.condition:
        views = any(t["feature"].startswith(VIEWS) for t in cause.condition.terms)
        return ("confirmed" if views else "ruled-out", cause.sentence, engine)
    if text.startswith("an op that is taken for on-device") and cause.fallbacks is not None:
        named = ", ".join(own_fallbacks(cause) or cause.fallbacks)
        told = f"{named} falls back in these tests" if named else "no op falls back in these tests"
        is_other = cause.claim == "cause" and not own_fallbacks(cause)
        told += f", and {cause.op} is the first that differs" if named and is_other else ""
        return ("ruled-out" if is_other or not named else "confirmed", told, list(cause.runs[:1]))
    if text.startswith("only the order of float16 sums differs") and is_call:
        return "ruled-out", f"no rounding does that: {cause.sentence}", engine
    return None
