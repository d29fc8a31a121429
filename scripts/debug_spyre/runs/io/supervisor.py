"""The supervisor of one job: a process of its own session that holds the card's lock until the card is free again.

It imports no torch and keeps nothing of its caller: killing the caller, the supervisor or the child at any moment
never hands the card over while a test still runs, for the child holds the lock's descriptor too.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from debug_spyre.card import holders as card
from debug_spyre.card.lock import Held, HolderInfo, acquire
from debug_spyre.host import files, processes
from debug_spyre.runs.io import finish_run, run_environment
from debug_spyre.runs.io import run_folder as rf
from debug_spyre.runs.io.child import Child, Redraw
from debug_spyre.runs.io.finish_run import end_orphans
from debug_spyre.runs.io.run_folder import RunFolder
from debug_spyre.runs.outcome import End
from debug_spyre.session.events import RunStarted
from debug_spyre.session.io.workspace import Folder
from debug_spyre.session.replay import replay
from debug_spyre.vocabulary.errors import CardBusyError, DebugSpyreError, Exit
from debug_spyre.vocabulary.words import RunStatus

BLOCKED_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGQUIT}
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}
SETTLE_SECONDS = 5.0  # the kernel lets go of the device a moment after a process ended
ORPHAN_LOOK_SECONDS = 1.0


class _StoppedError(Exception):
    """Asked to end before the run began."""


def main(words: Sequence[str], redraw: Redraw) -> None:
    """Fork once more, so that nobody's child is left behind; then supervise. `words`: the run's folder, job.json's descriptor."""
    if os.fork():
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_SIGNALS)
    files.in_supervisor = True
    processes.take_name("debug-spyre")
    run = RunFolder(Path(words[0]))
    os.set_inheritable(int(words[1]), False)  # the lock on job.json is ours alone
    try:
        _supervise(run, redraw)
    except BaseException:  # noqa: BLE001  whatever it is, it stands in supervisor.log
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(int(Exit.BUG))
    os._exit(0)


def _supervise(run: RunFolder, redraw: Redraw) -> None:
    job = run.job()
    me = processes.read_process(os.getpid())
    who = {"supervisor": os.getpid(), "start": me.start if me else 0}
    run.say(rf.WAITING, **who)
    notes = list(job.notes)
    trouble = processes.become_subreaper()
    if trouble:
        notes.append(f"orphans of the run may escape: no child subreaper here ({trouble})")
    try:
        cards = card.devices(job.cards)
        notes += run_environment.drop_unless_stand_in(cards)
        provenance = run_environment.provenance_of(job)
        held = _take_card(run, job, cards, who, redraw) if job.needs_card else Held((), (), nested=True)
        try:
            started = _begin(job, provenance, who)
        except BaseException:
            held.release()
            raise
    except DebugSpyreError as error:
        status = int(error.status)
        run.say(rf.REFUSED, **who, status=status, error=error.what, next=error.next, details=list(error.details))
        return
    except _StoppedError:
        run.say(rf.REFUSED, **who, status=int(Exit.SIGNALLED) + signal.SIGINT, error="interrupted")
        return
    _carry_out(run, job, held, cards=cards, started=started, who=who, notes=notes, redraw=redraw)


def _take_card(run: RunFolder, job: rf.Job, cards: Sequence[str], who: dict[str, int], redraw: Redraw) -> Held:
    """The locks, then the proof that nobody has the device open.

    Raises:
        CardBusyError: somebody has; the locks are let go.
    """
    trusting = bool(os.environ.get(run_environment.NO_HOLDER_CHECK))

    def clean() -> None:
        for owner in () if trusting else end_orphans(cards):
            redraw(owner)

    clean()
    looked = time.monotonic()
    said = ""

    def blocked(holder: str) -> None:
        nonlocal looked, said
        if STOP_SIGNALS & signal.sigpending():
            raise _StoppedError
        if holder != said:
            said = holder
            run.say(rf.WAITING, **who, holder=holder)
        if time.monotonic() - looked >= ORPHAN_LOOK_SECONDS:
            looked = time.monotonic()
            clean()

    session = job.folder.name
    me = HolderInfo(_shown(job.argv), cwd=str(job.where), session=session, run=job.run)
    held = acquire(cards, wait=job.wait, claim=me, blocked=blocked)
    try:
        if not held.nested and not trusting:
            clean()
            _prove_free(run, job, cards, who)
    except BaseException:
        held.release()
        raise
    return held


def _prove_free(run: RunFolder, job: rf.Job, cards: Sequence[str], who: dict[str, int]) -> None:
    patience = SETTLE_SECONDS if job.wait is None else min(job.wait, 3600.0) if job.wait > 0 else 0.3
    now = _wait_for_device(run, cards, who, patience)
    if now.state is card.CardState.HELD and job.reap:
        foreign = [p for p in now.processes if p.uid == os.getuid()]
        processes.end(lambda: [p for p in foreign if processes.is_same(p.pid, p.start)])
        now = _wait_for_device(run, cards, who, SETTLE_SECONDS)
    if now.state is card.CardState.HELD:
        raise CardBusyError(
            f"the card is {now.says()}",
            details=("  it does not hold our lock: it was started without debug-spyre, or it outlived its run",),
            next="end it yourself, or repeat the command with --reap (your own processes only)",
        )


def _wait_for_device(run: RunFolder, cards: Sequence[str], who: dict[str, int], seconds: float) -> card.Holders:
    deadline = time.monotonic() + seconds
    said = ""
    while True:
        now = card.holders(cards, probe=True)
        if now.state is not card.CardState.HELD or time.monotonic() >= deadline:
            return now
        if STOP_SIGNALS & signal.sigpending():
            raise _StoppedError
        if now.says() != said:
            said = now.says()
            run.say(rf.WAITING, **who, holder=said.removeprefix("held by "))
        time.sleep(card.POLL_SECONDS)


def _begin(job: rf.Job, provenance: run_environment.Provenance, who: dict[str, int]) -> RunStarted:
    """Append RunStarted; a run of a session belongs to the row in progress unless told otherwise."""
    tree, backend = run_environment.tree_of(job), provenance.backend()

    def made(events: tuple[object, ...]) -> tuple[RunStarted, ...]:
        row = job.hypothesis
        if row is None and finish_run.is_session(events):
            current = replay(events).in_progress  # type: ignore[arg-type]
            row = current.number if current else None
        return (
            RunStarted(
                run=job.run,
                verb=job.verb,
                name=job.name,
                argv=job.argv,
                output=job.output,
                results=f"{rf.RUNS}/{job.run}/results.jsonl" if job.pytest_args is not None else None,
                pytest_args=job.pytest_args,
                env=job.env,
                hypothesis=row,
                members_only=job.members_only,
                cwd=str(job.where),
                provenance=provenance.facts,
                tree_digest=tree,
                backend=backend,
                supervisor=who["supervisor"],
            ),
        )

    started = Folder(job.folder).journal.append_with(made)[0]
    assert isinstance(started, RunStarted)
    return started


def _carry_out(
    run: RunFolder,
    job: rf.Job,
    held: Held,
    *,
    cards: Sequence[str],
    started: RunStarted,
    who: dict[str, int],
    notes: list[str],
    redraw: Redraw,
) -> None:
    child = Child(run, job, held, who=who, notes=notes, redraw=redraw)
    end = child.run()
    left = _end_survivors(run)
    holders: tuple[str, ...] = ()
    if not held.nested:
        held_still = card.wait_until_free(cards, seconds=finish_run.release_seconds())
        if held_still.state is card.CardState.HELD:
            holders = tuple(p.says() for p in held_still.processes) or (held_still.reason,)
            end = End(RunStatus.ORPHANS, end.exit, end.seconds, end.reason)
    notes += [f"could not be ended: {p.says()}" for p in left]
    seen = run_environment.look_again(job, started)
    held.release()
    run.say(rf.READING, **who)
    finish_run.settle(run, job, started, end, seen=seen, notes=notes, holders=holders)
    redraw(job.folder)
    run.say(rf.FINISHED, **who)


def _end_survivors(run: RunFolder) -> list[processes.Process]:
    """Whatever the run left behind, forked twice or spawned away: TERM, grace, KILL."""

    def find() -> list[processes.Process]:
        mine = {p.pid: p for p in processes.descendants(os.getpid())}
        for process in processes.run_folders().get(str(run.path), []):
            mine.setdefault(process.pid, process)
        return list(mine.values())

    def reap() -> None:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    reap()
    left = processes.end(find, grace=finish_run.grace_seconds(), reap=reap)
    reap()
    return left


def _shown(argv: Sequence[str]) -> str:
    return " ".join(argv)[:300]
