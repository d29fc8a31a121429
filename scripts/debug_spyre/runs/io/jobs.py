"""Jobs: what the card verbs hand to a supervisor, and how the caller follows one. Killing the caller loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from debug_spyre.host.files import PRIVATE, make_folder
from debug_spyre.host.interpreter import choose
from debug_spyre.host.processes import is_same
from debug_spyre.runs.io import run_folder as rf
from debug_spyre.runs.io.finding_runs import TRIAGE
from debug_spyre.runs.io.finish_run import recover
from debug_spyre.runs.io.progress_line import ProgressLine, Silent
from debug_spyre.runs.io.records import RunRecord, load_record
from debug_spyre.runs.io.run_folder import Job, JobSpec, RunFolder
from debug_spyre.session.io.workspace import make_logs
from debug_spyre.vocabulary.errors import BadInputError, CardBusyError, DebugSpyreError, EnvironmentTroubleError, Exit

SCRIPTS = Path(__file__).resolve().parents[3]
POLL_SECONDS = 0.05
AGENT_FOREGROUND = 100.0
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.worker import main; main(sys.argv[2:])"
__all__ = [
    "JobSpec", "RunRecord", "follow", "follow_steps", "foreground_seconds", "last_lines", "request_stop", "run_job", "submit",
]  # fmt: skip


class NeverBegan(KeyboardInterrupt):
    """The run was ended on request while it waited for the card; nothing of it is kept."""


def foreground_seconds(given: float | None) -> float | None:
    """How long a verb follows its job: as told, else to the end for people and 100 s under an agent's client."""
    if given is not None:
        return given
    return AGENT_FOREGROUND if os.environ.get("CLAUDECODE") else None


def run_job(
    spec: JobSpec, *, foreground: float | None = None, started: Callable[[RunFolder], None] = lambda _run: None
) -> RunRecord:
    """Start the supervisor and follow the job to its end, or for `foreground` seconds (status running then).

    Raises:
        CardBusyError: the card was not to be had in the time given; DebugSpyreError: the run could not begin.
    """
    run = submit(spec)
    started(run)
    return follow(run, foreground=foreground)


def submit(spec: JobSpec) -> RunFolder:
    """Reserve the run and start its supervisor; returns at once.

    Raises:
        EnvironmentTroubleError: nothing can be written, or no process can be started.
    """
    folder = spec.folder.resolve()
    if folder.parent.name == TRIAGE:
        make_logs(folder.parent.parent)
    make_folder(folder)
    run, output = rf.reserve(folder, spec.name)
    job = Job(
        **{f.name: getattr(spec, f.name) for f in fields(spec)}
        | {
            "folder": folder,
            "argv": _with_plugins(spec.argv, spec.plugins),
            "python": spec.python or str(choose(spec.checkout).python),
        },
        run=run.id,
        output=output,
    )
    try:
        minded = run.write_job(job)
    except OSError as error:
        run.forget(folder / output)
        raise EnvironmentTroubleError(
            f"cannot write in {run.path}: {error.strerror}", next="free space on the disk and repeat the command"
        ) from error
    try:
        _start(run, minded)
    except EnvironmentTroubleError:
        run.forget(folder / output)
        raise
    finally:
        os.close(minded)
    return run


def follow(run: RunFolder, *, foreground: float | None = None) -> RunRecord:
    """Wait for the job's end, saying how far it is. Ctrl-C of a person ends the run; our own death does not.

    Raises:
        CardBusyError: the run was given up since the card is busy; DebugSpyreError: it could not begin.
    """
    line: ProgressLine = Silent() if os.environ.get("CLAUDECODE") else ProgressLine(run)
    deadline = None if foreground is None else time.monotonic() + foreground
    stopping = False
    while True:
        try:
            if _is_over(run):
                line.end()
                return _ended(run)
            if deadline is not None and time.monotonic() >= deadline and not stopping:
                line.end()
                return load_record(run)
            line.look()
            time.sleep(POLL_SECONDS)
        except NeverBegan:
            raise
        except KeyboardInterrupt:
            if stopping:
                raise
            stopping = True
            line.end()
            sys.stderr.write(f"debug-spyre: ending {run.id} (once more Ctrl-C: leave it to its supervisor)\n")
            request_stop(run)


def request_stop(run: RunFolder) -> bool:
    """Ask the run's supervisor to end it; False where no supervisor lives."""
    for _ in range(100):  # a supervisor that is just being born has not said its name yet
        state = run.state()
        if state.get("state") in {rf.FINISHED, rf.REFUSED} or not run.has_live_supervisor():
            return False
        pid, start = state.get("supervisor"), state.get("start")
        if isinstance(pid, int) and isinstance(start, int) and is_same(pid, start):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            return True
        time.sleep(0.05)
    return False


def _is_over(run: RunFolder) -> bool:
    return run.state().get("state") in {rf.FINISHED, rf.REFUSED} or not run.has_live_supervisor()


def _ended(run: RunFolder) -> RunRecord:
    state = run.state()
    if state.get("state") == rf.REFUSED:
        raise _refusal(run, state)
    if state.get("state") != rf.FINISHED:
        recover(run.owner)
    return load_record(run)


def _refusal(run: RunFolder, state: dict[str, object]) -> DebugSpyreError:
    """The supervisor's own error, raised here; the run never began, so nothing of it is kept."""
    details = state.get("details")
    with suppress(BadInputError):
        run.forget(run.job().output_path)
    if state.get("status") == Exit.SIGNALLED + signal.SIGINT:
        raise NeverBegan
    family = CardBusyError if state.get("status") == Exit.BUSY else EnvironmentTroubleError
    return family(
        str(state.get("error") or "the run could not begin"),
        next=str(state.get("next") or ""),
        details=tuple(str(line) for line in details) if isinstance(details, list) else (),
    )


def _with_plugins(argv: tuple[str, ...], plugins: tuple[str, ...]) -> tuple[str, ...]:
    missing = [plugin for plugin in plugins if plugin not in argv]
    if not missing or "pytest" not in argv:
        return argv
    at = argv.index("pytest") + 1
    return (*argv[:at], *(word for plugin in missing for word in ("-p", plugin)), *argv[at:])


def _start(run: RunFolder, minded: int) -> None:
    """A process of its own session with nothing of ours: neither standard streams nor descriptors."""
    from debug_spyre.card.lock import inherited_descriptors

    log = os.open(run.path / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
    try:
        first = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, str(SCRIPTS), str(run.path), str(minded)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=(minded, *inherited_descriptors()),
            start_new_session=True,
        )
        first.wait()  # it has forked: the supervisor is nobody's child here
    except OSError as error:
        raise EnvironmentTroubleError(
            f"cannot start a supervisor: {error.strerror}", next="ulimit -u; free processes or memory"
        ) from error
    finally:
        os.close(log)


# -- a job that says its own steps: new lines of its output are passed on, for people


def follow_steps(
    run: RunFolder, *, limit: float | None, shows: Callable[[str], bool] = lambda _line: True
) -> RunRecord:
    """The run's record at its end, or after `limit` seconds. `shows` says which lines of the output are passed on."""
    began, shown = time.monotonic(), 0
    quiet = bool(os.environ.get("CLAUDECODE"))
    while run.has_live_supervisor() and (limit is None or time.monotonic() - began < limit):
        time.sleep(0.1)
        shown = shown if quiet else _pass_on(run, shown, shows)
    if run.has_live_supervisor():
        return follow(run, foreground=0.0)
    if not quiet:
        _pass_on(run, shown, shows)
    return follow(run)


def _pass_on(run: RunFolder, shown: int, shows: Callable[[str], bool]) -> int:
    """New whole lines of the job's output, on stderr."""
    try:
        with run.job().output_path.open("rb") as stream:
            stream.seek(shown)
            text = stream.read()
    except (OSError, BadInputError):
        return shown
    whole = text[: text.rfind(b"\n") + 1]
    for line in whole.decode("utf-8", "replace").splitlines():
        if shows(line):
            sys.stderr.write(f"debug-spyre: {line}\n")
    return shown + len(whole)


def last_lines(record: RunRecord, count: int) -> list[str]:
    """The last lines of the output that are not empty."""
    try:
        lines = record.output.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line[:200] for line in lines if line.strip()][-count:]
