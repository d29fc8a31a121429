"""The command of a job while it runs: writes straight to its output file, watched for stall, time and a wish to stop.

`lock -- COMMAND` runs in the foreground with the caller's own streams.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from debug_spyre.card import holders
from debug_spyre.card.lock import Held, HolderInfo, acquire
from debug_spyre.host import processes
from debug_spyre.host.files import kept_going
from debug_spyre.host.fingerprint import site_packages
from debug_spyre.host.interpreter import choose, first_on_path
from debug_spyre.host.spyre_variables import FIRST_FAILURE, known_switches
from debug_spyre.runs.io import finish_run, run_environment, stacks
from debug_spyre.runs.io import run_folder as rf
from debug_spyre.runs.io.finish_run import end_orphans, grace_seconds, release_seconds
from debug_spyre.runs.io.progress_line import ResultsReader
from debug_spyre.runs.io.pytest_command import child_path
from debug_spyre.runs.io.run_folder import RunFolder
from debug_spyre.runs.outcome import End, clock
from debug_spyre.session.events import RunProgressed
from debug_spyre.session.io.workspace import Folder, find_checkout
from debug_spyre.vocabulary.errors import CardBusyError, DebugSpyreError, Exit, UsageError
from debug_spyre.vocabulary.words import RunStatus

Redraw = Callable[[Path], None]  # draws the page of a session folder again; never raises
LOOK_SECONDS = 0.5
PROGRESS_SECONDS = 2.0  # the page follows a run at most this often
SILENT_SECONDS = 30.0  # and this often where nothing happens
MOST_SHARE, SPREAD = (
    20,
    100,
)  # drawing takes at most 1/20 of the time; later progress is told less often, so that the journal stays small
RUN_ID = "DEBUG_SPYRE_RUN"
RESULTS = "DEBUG_SPYRE_RESULTS"
BUDGET = "DEBUG_SPYRE_TENSOR_BUDGET"


class Child:
    """Starts the command and stays with it."""

    def __init__(
        self, run: RunFolder, job: rf.Job, held: Held, *, who: dict[str, int], notes: list[str], redraw: Redraw
    ) -> None:
        self.run_folder, self.job, self.held = run, job, held
        self.who, self.notes, self.redraw = who, notes, redraw
        self.reader = ResultsReader(run.results)
        self.output = Path(job.folder) / job.output
        self.exit: int | None = None
        self.began = time.monotonic()
        self.alive_at = self.began
        self.size = -1
        self.progressed_at = self.began
        self.told, self.drawing_took = self.reader.progress, 0.0
        self.told_quiet = False

    def run(self) -> End:
        """Start it, wait for its end (or bring it about), reap what falls to us meanwhile."""
        try:
            pid = self._start()
        except OSError as error:
            with self.output.open("ab") as stream:
                stream.write(f"debug-spyre: {self.job.argv[0]}: {error.strerror}\n".encode())
            self.notes.append(f"{self.job.argv[0]} can't be started: {error.strerror}")
            return End(RunStatus.ERROR, 127 if isinstance(error, FileNotFoundError) else 126, 0.0)
        self.run_folder.say(rf.RUNNING, **self.who, child=pid)
        self.redraw(self.job.folder)
        end = self._watch(pid)
        if self.reader.is_kept():
            return end
        self.notes.append("the results file was rewritten while the run went on, so its results prove nothing")
        return End(RunStatus.INVALID, end.exit, end.seconds, "results rewritten")

    def _start(self) -> int:
        """The lock's descriptors go along, nothing else; the signal mask of the supervisor does not."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        output = os.open(self.output, flags, 0o600)
        descriptors = self.held.descriptors
        if os.environ.get(run_environment.NO_DESCRIPTOR):
            descriptors = ()
        try:
            started = subprocess.Popen(
                self.job.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.job.where,
                env=self._environment(),
                pass_fds=descriptors,
                start_new_session=True,
                preexec_fn=_plain_signals,  # noqa: PLW1509  one thread here, and only async-signal-safe calls
            )
        finally:
            os.close(output)
        self.process = started
        self.began = self.alive_at = self.progressed_at = time.monotonic()
        return started.pid

    def _environment(self) -> dict[str, str]:
        env = {**os.environ, **self.held.environment()}
        if self.job.pytest_args is None and self.job.python:
            env |= first_on_path(self.job.python, env)
        env |= self.job.env
        env[RUN_ID] = self.job.run
        env[processes.RUN_FOLDER] = str(self.run_folder.path)
        if FIRST_FAILURE not in env and known_switches(site_packages(self.job.python), [FIRST_FAILURE]):
            env[FIRST_FAILURE] = "1"  # torch-spyre writes a report of the first failure
        env.setdefault("PYTHONUNBUFFERED", "1")  # stdout and stderr in order, and nothing lost in an abort
        if self.job.pytest_args is not None:
            env.update(child_path(env))
            env[RESULTS] = str(self.run_folder.results)
            env[BUDGET] = str(finish_run.tensor_budget(self.job.folder))
        return env

    def _watch(self, pid: int) -> End:
        while True:
            if self._reap(pid):
                return End(None, self.exit, time.monotonic() - self.began)
            caught = signal.sigtimedwait({signal.SIGCHLD, *_STOPS}, LOOK_SECONDS)
            if caught is not None and caught.si_signo in _STOPS:
                return self._end(pid, RunStatus.INTERRUPTED, "ended on request")
            now = time.monotonic()
            self._look(now)
            if self.job.timeout is not None and now - self.began >= self.job.timeout:
                return self._end(
                    pid, RunStatus.TIMEOUT, f"ended after {self.job.timeout:g} s (--timeout){self._where()}"
                )
            if self.job.stall is not None and now - self.alive_at >= self.job.stall:
                reason = f"ended: no output and no result for {self.job.stall:g} s (--stall){self._where()}"
                return self._end(pid, RunStatus.STALLED, reason)

    def _reap(self, pid: int) -> bool:
        """Take in every child that ended; True where the command itself did."""
        with suppress(ChildProcessError):
            while True:
                ended, status = os.waitpid(-1, os.WNOHANG)
                if ended == 0:
                    break
                if ended == pid:
                    self.exit = os.waitstatus_to_exitcode(status)
                    self.process.returncode = self.exit
        return self.exit is not None

    def _take_in(self, pid: int) -> None:
        self._reap(pid)

    def _look(self, now: float) -> None:
        news = self.reader.look()
        with suppress(OSError):
            size = self.output.stat().st_size
            news = news or size != self.size
            self.size = size
        if news:
            self.alive_at = now
            self.told_quiet = False
        elif now - self.alive_at >= finish_run.quiet_seconds() and not self.told_quiet:
            self.told_quiet = True
            words = f"no output and no result for {clock(now - self.alive_at)}{self._where()}"
            self.notes.append(words)
            self.run_folder.say(rf.RUNNING, **self.who, child=self.process.pid, quiet=words)
        if self.reader.progress.started and self._is_time(now):
            self._progressed(now)

    def _is_time(self, now: float) -> bool:
        """Progress is due: something happened, and the last drawing is long enough ago."""
        since = now - self.progressed_at
        pause = max(PROGRESS_SECONDS, MOST_SHARE * self.drawing_took, (now - self.began) / SPREAD)
        return since >= max(pause, SILENT_SECONDS) or (since >= pause and self.reader.progress != self.told)

    def _progressed(self, now: float) -> None:
        self.progressed_at = now
        seen = self.reader.progress
        event = RunProgressed(
            run=self.job.run, done=seen.done, failed=seen.failed, collected=seen.collected, current=seen.current
        )
        with kept_going("the progress could not be recorded"):
            Folder(self.job.folder).journal.append(event)
            self.redraw(self.job.folder)
        self.told, self.drawing_took = seen, time.monotonic() - now

    def _where(self) -> str:
        self.reader.look()
        seen = self.reader.progress
        if not seen.current:
            return ""
        phase = {None: "the set-up of ", "setup": "the call of ", "call": "the teardown of "}.get(seen.phase, "")
        return f", in {phase}{seen.current}"

    def _end(self, pid: int, status: RunStatus, reason: str) -> End:
        """TERM to the command's group, grace, KILL; what it left elsewhere is ended afterwards."""
        mine = processes.read_process(pid)
        if status in {RunStatus.TIMEOUT, RunStatus.STALLED} and stacks.dump(self.run_folder.path, self.output):
            self.notes.append("the stacks of all threads stand at the end of the output")

        def find() -> list[processes.Process]:
            return [mine] if mine and self.exit is None and processes.is_same(mine.pid, mine.start) else []

        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGTERM)
        processes.end(find, grace=finish_run.grace_seconds(), reap=lambda: self._take_in(pid))
        self._reap(pid)
        self.notes.append(reason)
        return End(status, self.exit, time.monotonic() - self.began, reason)


_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


def _plain_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def run_locked(words: Sequence[str], *, cards: Sequence[str], wait: float | None, redraw: Redraw) -> int:
    """Run it and return its own exit status (128+n for signal n).

    Raises:
        CardBusyError: the lock or the device is held; UsageError: there is no such command.
    """
    processes.become_subreaper()

    def clean() -> None:
        for owner in end_orphans(cards):
            redraw(owner)

    clean()

    told: list[str] = []

    def blocked(holder: str) -> None:
        if holder not in told:
            told.append(holder)
            sys.stderr.write(f"debug-spyre: waiting for the card, held by {holder}\n")
        clean()

    held = acquire(cards, wait=wait, claim=HolderInfo(shlex.join(words)), blocked=blocked)
    try:
        if not held.nested:
            now = holders.wait_until_free(cards, seconds=5.0 if wait is None else wait)
            if now.state is holders.CardState.HELD:
                raise CardBusyError(f"the card is {now.says()}", next="debug-spyre lock")
        status = _run(words, held.descriptors, held.environment())
        processes.end(lambda: processes.descendants(os.getpid()), grace=grace_seconds(), reap=_reap)
        if not held.nested:
            now = holders.wait_until_free(cards, seconds=release_seconds())
            if now.state is holders.CardState.HELD:
                sys.stderr.write(f"debug-spyre: the command has ended, and the card is still {now.says()}\n")
                return int(Exit.STILL_HELD)
        return status
    finally:
        held.release()


def _run(words: Sequence[str], descriptors: Sequence[int], environment: dict[str, str]) -> int:
    try:
        env = {**os.environ, **environment, **_path()}
        child = subprocess.Popen(words, pass_fds=descriptors, env=env)
    except OSError as error:
        raise UsageError(
            f"{words[0]} can't be started: {error.strerror}", next="debug-spyre lock -- COMMAND"
        ) from error
    while True:
        try:
            code = child.wait()
            return Exit.SIGNALLED - code if code < 0 else code
        except KeyboardInterrupt:  # the terminal told the child too; it ends as it likes
            with suppress(ProcessLookupError):
                child.send_signal(signal.SIGINT)


def _path() -> dict[str, str]:
    """The checkout's own Python first, where there is a checkout."""
    try:
        return first_on_path(choose(find_checkout()).python, os.environ)
    except DebugSpyreError:
        return {}


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
