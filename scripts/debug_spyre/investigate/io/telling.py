"""What an investigation leaves in each session: its part of the dossier, the report on the page, and the seeded rows that a run answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from debug_spyre.examine.dossier import MOST_LINES, Cause, Dossier, cause_lines, dossier_to
from debug_spyre.host.files import PRIVATE, write_atomically
from debug_spyre.investigate.io.sessions import CauseSession, conclude
from debug_spyre.investigate.io.work import DOSSIER, Work
from debug_spyre.session.events import ReportMade
from debug_spyre.session.io.workspace import find_session, load_session, logs_folder


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
    if text.startswith("shapes beyond a limit") and cause.condition:
        sizes = any(t["feature"].startswith(("size", "numel", "rows", "sticks")) for t in cause.condition.terms)
        return ("confirmed" if sizes else "ruled-out", cause.sentence, engine)
    if text.startswith("an op that is taken for on-device") and cause.fallbacks is not None:
        named = ", ".join(cause.fallbacks)
        told = f"{named} falls back" if named else "no op of the matrix falls back under the shadow"
        return ("confirmed" if named else "ruled-out", told, list(cause.runs[:1]))
    if text.startswith("only the order of float16 sums differs") and is_call:
        return "ruled-out", f"no rounding does that: {cause.sentence}", engine
    return None
