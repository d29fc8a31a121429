"""repro: the smallest script that shows the fault, proved in fresh processes; or the CPU control of a test."""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from debug_spyre.escalation.readiness import failing_run, own_failure
from debug_spyre.examine.io.trials import BudgetSpentError, Trials
from debug_spyre.examine.typed_call import read_call
from debug_spyre.fleet.io.lane import chosen_cards
from debug_spyre.repro.io.proof import Proof, Prover
from debug_spyre.repro.io.repro_session import ReproSession
from debug_spyre.repro.io.suspects import Suspect, count_checked, find_fallback, find_suspect
from debug_spyre.repro.same_fault import Fingerprint, of_failure
from debug_spyre.runs.io.jobs import foreground_seconds
from debug_spyre.session.io import workspace
from debug_spyre.session.io.workspace import Folder, all_evidence
from debug_spyre.session.state import Session
from debug_spyre.verbs.session_option import add_cards_argument, add_session_argument, after_change, the_session
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import RefusedError, UsageError
from debug_spyre.vocabulary.evidence import Evidence, Failure


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--op", nargs="+", metavar="WORD", help="an op and its arguments: aten.mean.dim 'f16[8,513]' '[-1]' True"
    )
    parser.add_argument("--shadow", metavar="RUN", help="the suspect that this shadow run saved (default: the newest)")
    parser.add_argument("--test", metavar="NODEID", help="tier 3 at once, for this test (default: the probe)")
    parser.add_argument("--cpu", action="store_true", help="write and run the CPU control of the probe (or --test)")
    parser.add_argument(
        "--times", type=int, default=3, metavar="N", help="fresh processes that must all show it (default 3)"
    )
    parser.add_argument("--no-shrink", action="store_true", help="prove the call as it is")
    parser.add_argument("--runs", type=int, default=40, metavar="N", help="most processes for the search (default 40)")
    parser.add_argument(
        "--minutes", type=float, default=15.0, metavar="M", help="most minutes for the search (default 15)"
    )
    add_cards_argument(parser)
    parser.add_argument(
        "--foreground", type=float, metavar="S", help="wait this long; then status 79, and the same call goes on"
    )
    parser.add_argument("--hypothesis", type=int, metavar="N", help="the row that this belongs to")
    add_session_argument(parser)


def _repro(args: Namespace) -> int:
    if args.times < 1 or args.runs < 1 or args.minutes <= 0:
        raise UsageError("--times, --runs and --minutes must be positive", next="debug-spyre repro")
    folder = the_session(args)
    session = workspace.load_session(folder)
    row = args.hypothesis or (session.in_progress.number if session.in_progress else None)
    prover = Prover(folder, workspace.find_checkout(), _trials(args, folder, row), hypothesis=row, say=_say)
    if args.cpu:
        return _control(args, folder, session, prover)
    search = ReproSession(prover, args.times, shrink=not args.no_shrink, say=_say)
    evidence = all_evidence(folder, session)
    fingerprint = _search(args, search, session, evidence)
    return _report(args, folder, search, fingerprint, args.test or session.probe)


def _say(text: str) -> None:
    """Steps as they come, for people; an agent reads the answer only."""
    if not os.environ.get("CLAUDECODE"):
        warn(text)


def _trials(args: Namespace, folder: Folder, row: int | None) -> Trials:
    trials = Trials(
        folder,
        workspace.find_checkout(),
        args.runs,
        args.minutes * 60,
        hypothesis=row,
        foreground=foreground_seconds(args.foreground),
        cards=chosen_cards(args.cards)[0],
    )
    trials.load()
    return trials


def _search(
    args: Namespace, search: ReproSession, session: Session, evidence: Mapping[str, Evidence]
) -> Fingerprint | None:
    original = None
    try:
        if args.op:
            search.from_call(read_call(args.op[0], args.op[1:]), None)
            return None
        found = failing_run(session, evidence)
        probes = of_failure(found[1]) if found else None
        suspect = None if args.test else _suspect(args, search.prover.folder, session, probes)
        nodeid, failure = _fault_of(args, search, session, evidence, suspect)
        original = of_failure(failure) if failure else None
        if suspect is not None:
            proof = search.from_call(suspect.call, original, prelude=suspect.prelude)
            if proof.is_verified:
                return original
        elif not args.test:
            search.nothing_to_try(*count_checked(search.prover.folder, session))
        if nodeid is None or failure is None:
            raise RefusedError(
                "no run of this session kept a failure to reproduce",
                next="debug-spyre run --as baseline NODEID, or repro --op",
            )
        search.from_test(nodeid, failure)
    except BudgetSpentError as error:
        search.spent = True
        search.notes.append(error.what)
        if not search.proofs:
            raise
    return original


def _fault_of(
    args: Namespace,
    search: ReproSession,
    session: Session,
    evidence: Mapping[str, Evidence],
    suspect: Suspect | None,
) -> tuple[str | None, Failure | None]:
    """The test whose fault is to be shown, and what it showed: the test given, else the suspect's own, else the probe's."""
    nodeid = args.test or (suspect.nodeid if suspect else None)
    if nodeid in {None, session.probe}:
        found = failing_run(session, evidence)
        return session.probe, found[1] if found else None
    if nodeid not in {m.nodeid for m in session.members}:
        search.notes.append(f"{nodeid} is no member of this session: what is proved is its fault, not the session's")
    return nodeid, own_failure(session, evidence, nodeid)


def _suspect(args: Namespace, folder: Folder, session: Session, original: Fingerprint | None) -> Suspect | None:
    if original is not None and original.kind == "fallback":
        call = find_fallback(folder, session, run=args.shadow)
        return Suspect(call) if call else None
    return find_suspect(folder, session, run=args.shadow)


def _control(args: Namespace, folder: Folder, session: Session, prover: Prover) -> int:
    nodeid = args.test or session.probe
    if nodeid is None:
        raise UsageError("the cluster has no probe", next="debug-spyre repro --cpu --test NODEID")
    path, record = prover.control_of((nodeid,))
    html = after_change(folder)
    meaning = {
        0: "it passes on the CPU: the fault lies in torch-spyre's realisation",
        1: "it fails on the CPU too: the fault lies in our own logic (or the test)",
    }.get(
        record.exit if record.exit is not None else -1,
        f"the control could not run (exit {record.exit}): {record.output}",
    )
    lines = [f"cpu-control {record.id}: {meaning}", f"script: {path}", f"log: {html}"]
    data = {"run": record.id, "exit": record.exit, "meaning": meaning, "script": str(path), "log": str(html)}
    answer(lines, data, as_json=args.json)
    return 0 if record.exit == 0 else 1


def _report(
    args: Namespace, folder: Folder, search: ReproSession, fingerprint: Fingerprint | None, nodeid: str | None
) -> int:
    best = next((p for p in search.proofs if p.is_verified), search.proofs[-1])
    lines = [f"{best.script} (tier {best.tier}, {best.lines} lines): {best.stamp}"]
    lines += [f"  {text}" for text in search.thresholds]
    lines += [f"tier {p.tier} did not do: {_why(p)}" for p in search.proofs if p is not best]
    lines += [f"note: {text}" for text in search.notes]
    if search.spent:
        search.prover.trials.forget_proofs()
    else:
        search.prover.trials.forget()
    record = search.prover.record(search.proofs, fingerprint, lines, search.steps)
    html = after_change(folder)
    path = folder.path / best.script
    shown = [*lines, f"script: {path}", f"record: {record}", f"next: {_next(best, nodeid)}", f"log: {html}"]
    data = {
        "verified": best.is_verified,
        "stamp": best.stamp,
        "tier": best.tier,
        "lines": best.lines,
        "script": str(path),
        "thresholds": search.thresholds,
        "negative": [{"tier": p.tier, "why": _why(p)} for p in search.proofs if p is not best],
        "record": str(record),
        "log": str(html),
    }
    answer(shown, data, as_json=args.json)
    return 0 if best.is_verified else 1


def _why(proof: Proof) -> str:
    return proof.stamp if proof.shown else proof.why or proof.stamp


def _next(best: Proof, nodeid: str | None) -> str:
    if best.is_verified:
        return "debug-spyre escalate --preview"
    if best.control is False:
        return "debug-spyre repro --cpu"
    if best.tier == 3 and not best.shown and nodeid:  # it passes by itself: what ran before it may matter
        return f"debug-spyre run --alone {shlex.quote(nodeid.split('::', maxsplit=1)[0])}"
    return "debug-spyre ladder"


VERBS = {"repro": Verb(_arguments, _repro, "debug-spyre repro --op aten.mean.dim 'f16[8,513]' '[-1]' True")}
