"""A run's own folder, runs/<id>: what is to be done (job.json), how far it is (state.json), and whether anybody minds it.

The supervisor holds a kernel lock on job.json for as long as it lives: no pid has to be trusted.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from debug_spyre.card.lock_file import is_held
from debug_spyre.host.files import PRIVATE, make_folder, write_atomically
from debug_spyre.session.io.journal import JOURNAL, Journal
from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError
from debug_spyre.vocabulary.words import VERBOSE

RUNS = "runs"
LIVE = "lanes/live.jsonl"  # of a run over several cards: what its processes say, as it comes
WAITING, RUNNING, READING, FINISHED, REFUSED = "waiting", "running", "reading", "finished", "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What to run, where, and under which limits. `wait` for the card: None for ever, 0 not at all; seconds otherwise."""

    folder: Path  # the session's, or a triage's
    checkout: Path
    verb: str
    name: str | None
    argv: tuple[str, ...]
    pytest_args: tuple[str, ...] | None = None
    env: dict[str, str] = field(default_factory=dict)
    hypothesis: int | None = None
    members_only: bool = False
    timeout: float | None = None
    stall: float | None = None
    wait: float | None = None
    plugins: tuple[str, ...] = ()
    cards: str | None = None
    needs_card: bool = True  # False: a driver that touches no card; the runs that it starts take theirs
    reap: bool = False
    expect_change: tuple[str, ...] = ()
    python: str | None = None  # default: the interpreter of the checkout
    cwd: Path | None = None  # default: the checkout
    notes: tuple[str, ...] = ()  # said with the run's warnings: the interpreter chosen, say


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(JobSpec):
    """A spec that was given a run and an output file, as job.json holds it."""

    run: str
    output: str  # relative to the folder

    @property
    def where(self) -> Path:
        """The folder in which the command starts."""
        return self.cwd or self.checkout

    @property
    def output_path(self) -> Path:
        """The file that the command writes to."""
        return self.folder / self.output

    def to_json(self) -> dict[str, Any]:
        """Paths as words."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Job:
        """Inverse of to_json; keys of another version are left out.

        Raises:
            TypeError: a key is missing or has another type.
        """
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        for name in ("folder", "checkout", "cwd"):
            known[name] = Path(known[name]) if known.get(name) else None
        for name in ("argv", "pytest_args", "plugins", "expect_change", "notes"):
            known[name] = tuple(known[name]) if known.get(name) is not None else None
        return cls(**known)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def id(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def owner(self) -> Path:
        """The session's (or triage's) folder."""
        return self.path.parent.parent

    @property
    def results(self) -> Path:
        """What the recorder writes."""
        return self.path / "results.jsonl"

    @property
    def results_there(self) -> Path | None:
        """The results; of a driver that was killed before it merged them, what its processes had said."""
        for path in (self.results, self.path / LIVE):
            with suppress(OSError):
                if path.stat().st_size:
                    return path
        return self.results if self.results.exists() else None

    @property
    def evidence(self) -> Path:
        """The whole evidence of the run."""
        return self.path / "evidence.json"

    @property
    def job_file(self) -> Path:
        """job.json. The kernel lock on this file tells that a supervisor is alive."""
        return self.path / "job.json"

    def job(self) -> Job:
        """What was to be done.

        Raises:
            BadInputError: there is no job, or it can't be read.
        """
        try:
            data = json.loads(self.job_file.read_text(encoding="utf-8"))
            return Job.from_json(data)
        except (OSError, ValueError, TypeError) as error:
            raise BadInputError(f"{self.job_file} can't be read: {error}", next="debug-spyre status") from error

    def state(self) -> dict[str, Any]:
        """How far it is; empty where nothing was said yet."""
        try:
            found = json.loads((self.path / "state.json").read_text(encoding="utf-8"))
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}

    def say(self, state: str, **facts: Any) -> None:
        """Replace state.json. A full disk is ignored: the journal is what counts."""
        with suppress(EnvironmentTroubleError):
            write_atomically(self.path / "state.json", json.dumps({"state": state, **facts}), mode=PRIVATE)

    def has_live_supervisor(self) -> bool:
        """Tell whether the run's supervisor, or the caller that is starting one, is alive."""
        return is_held(self.job_file) is True

    def write_job(self, job: Job) -> int:
        """Write job.json; returns its descriptor with the lock held, to be given to the supervisor."""
        descriptor = os.open(self.job_file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            data = json.dumps(job.to_json()).encode("ascii")  # words that are not UTF-8 survive as escapes
            if os.write(descriptor, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def forget(self, output: Path) -> None:
        """Remove a run that never began: its folder, its empty output file, and the owner's folder if it was made for it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if output.is_file() and output.stat().st_size == 0:
            output.unlink(missing_ok=True)
        journal = self.owner / JOURNAL
        with suppress(OSError):
            if journal.stat().st_size == 0:  # a session's never is: it begins with session_opened
                (self.owner / RUNS).rmdir()
                journal.unlink()
                self.owner.rmdir()


def run_folders_of(folder: Path) -> Iterator[RunFolder]:
    """The run folders of a session or triage, oldest first."""
    found = [p for p in (folder / RUNS).glob("r*") if p.name[1:].isdigit() and p.is_dir()]
    yield from (RunFolder(p) for p in sorted(found, key=lambda p: int(p.name[1:])))


def reserve(folder: Path, name: str | None) -> tuple[RunFolder, str]:
    """A new run's folder and its output file (relative), the number given under the journal's lock.

    Raises:
        EnvironmentTroubleError: nothing can be written there.
    """
    make_folder(folder / RUNS)
    chosen: list[tuple[RunFolder, str]] = []

    def take(events: tuple[Any, ...]) -> tuple[Any, ...]:
        used = [event.run for event in events if getattr(event, "kind", "") == "run_started"]
        used += [found.id for found in run_folders_of(folder)]
        number = 1 + max((int(run[1:]) for run in used if run[1:].isdigit()), default=0)
        mine = RunFolder(folder / RUNS / f"r{number}")
        make_folder(mine.path, exclusive=True)
        chosen.append((mine, _output(folder, mine.id, name)))
        return ()

    Journal(folder).append_with(take)
    return chosen[0]


def _output(folder: Path, run: str, name: str | None) -> str:
    """The output's name, the file made now and empty, never over another."""
    stem, suffix = name or run, ".log" if name == VERBOSE else ".txt"
    for count in range(1, 10_000):
        file = f"{stem}{'' if count == 1 else f'-{count}'}{suffix}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(folder / file, flags, PRIVATE))
        except FileExistsError:
            continue
        except OSError as error:
            raise EnvironmentTroubleError(
                f"cannot make {folder / file}: {error.strerror}", next="free space, or set DEBUG_SPYRE_LOGS=DIR"
            ) from error
        return file
    raise EnvironmentTroubleError(f"{folder} has 10,000 outputs called {stem}", next="choose another --as NAME")
