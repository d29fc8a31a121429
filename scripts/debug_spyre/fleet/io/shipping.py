"""`--hosts`: what is sent, that a person confirms it, and the job whose driver goes to the cluster.

Nothing is connected to before a person said yes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from debug_spyre.fleet.io.lane import WHOLE
from debug_spyre.fleet.io.on_host import BOOT as HOST_BOOT
from debug_spyre.host.files import PRIVATE, make_folder, write_atomically
from debug_spyre.host.git import git, lines_of
from debug_spyre.runs import pytest_words
from debug_spyre.runs.io.finding_runs import TRIAGE
from debug_spyre.runs.io.jobs import SCRIPTS, JobSpec
from debug_spyre.runs.io.records import RunRecord
from debug_spyre.runs.io.run_folder import RunFolder
from debug_spyre.session.io.workspace import make_logs
from debug_spyre.tree.io.scan import LINK, MOST_BYTES, Scan, object_format, object_id, read_bytes, scan
from debug_spyre.tree.io.snapshot import printable, tree_digest
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, RefusedError, UsageError
from debug_spyre.vocabulary.masking import is_secret_file
from debug_spyre.vocabulary.words import RunStatus

CLUSTER_PYTHON = "DEBUG_SPYRE_CLUSTER_PYTHON"
OLDEST = (2025, 7)
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.fleet.io.cluster import main; sys.exit(main(sys.argv[2:]))"
LOOK_SECONDS = 150.0
INSTALL = (
    "python3 -m venv DIR; DIR/bin/pip install 'debug-spyre[cluster]'; then DEBUG_SPYRE_CLUSTER_PYTHON=DIR/bin/python"
)
SHOWN = 6
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[\w.\[\]:-]+:\d+/?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the call says of hosts."""

    address: str
    approved: bool
    cards: str | None = None  # --cards: all, or at most so many


def over_hosts(spec: JobSpec, wanted: Wanted) -> JobSpec:
    """The job over the hosts of a cluster, after a person said yes and the hosts were found fit.

    Raises:
        UsageError: pytest words that several processes can't follow; RefusedError: nobody said yes;
        EnvironmentTroubleError: no Dask, no scheduler, no fit worker.
    """
    if wanted.cards not in {None, "all"} and not str(wanted.cards).isdecimal():
        raise UsageError(
            f"--cards {wanted.cards} lists cards of this host", next="with --hosts: --cards all or --cards N"
        )
    if not _ADDRESS.fullmatch(wanted.address):
        raise UsageError(
            f"--hosts {wanted.address} is no address of a Dask scheduler",
            next="as the scheduler prints it: --hosts tcp://HOST:8786, or tls://HOST:8786",
        )
    refused = [word.option for word in pytest_words.split(spec.pytest_args or ()) if word.option in WHOLE]
    if refused:
        raise UsageError(f"{refused[0]} stops or orders one process, and --hosts means several", next="take it out")
    python = cluster_python()
    shipment = Shipment(spec.checkout)
    _confirm(shipment, wanted, spec)
    options: dict[str, Any] = {
        "address": wanted.address,
        "token": secrets.token_hex(8),
        "checkout": str(spec.checkout),
        "python": spec.python,
        "pytest_args": _from_root(spec.checkout, spec.pytest_args or ()),
        "env": spec.env,
        "stall": spec.stall,
        "most": int(wanted.cards) if wanted.cards and wanted.cards.isdecimal() else None,
        "here": _facts(str(spec.python)),
        "digest": tree_digest(spec.checkout),
    }
    options["answers"] = _look(python, options)
    if spec.folder.parent.name == TRIAGE:
        make_logs(spec.folder.parent.parent)
    make_folder(spec.folder)
    archive = spec.folder / f"tree-{options['token']}.tar"
    write_atomically(archive, shipment.archive(), mode=PRIVATE)
    options["archive"] = str(archive)
    at = spec.argv.index("pytest") + 1
    argv = (*spec.argv[:at], *_from_root(spec.checkout, spec.argv[at:]))
    return _job(replace(spec, notes=(*spec.notes, *shipment.notes())), python, options, argv)


def _job(spec: JobSpec, python: str, options: dict[str, Any], argv: Sequence[str]) -> JobSpec:
    driver = (python, "-P", "-c", BOOT, str(SCRIPTS), json.dumps(options), "--", *argv)
    return replace(spec, argv=driver, stall=None, needs_card=False, cards=None)


def has_left(record: RunRecord) -> bool:
    """It went to hosts, and its driver died or ran out of hosts before all was done."""
    if record.status in {RunStatus.RUNNING, RunStatus.INTERRUPTED, RunStatus.PASSED} or record.exit in {0, 1}:
        return False
    job = RunFolder(record.folder).job()
    return job.argv[3:4] == (BOOT,) and Path(json.loads(job.argv[5])["archive"]).is_file()


def to_go_on(run: RunFolder, record: RunRecord) -> JobSpec | None:
    """The job that does what a driver that died has left; None where there is nothing of that kind.

    Raises:
        RefusedError: the checkout is no longer what was sent.
    """
    if not has_left(record):
        return None
    job = run.job()
    options = json.loads(job.argv[5])
    if tree_digest(job.checkout) != options["digest"]:
        raise RefusedError(
            f"the checkout has changed since {run.id} was sent to its hosts, so what it has left can't be run any more",
            next="put it back and repeat the command, or run anew",
        )
    options["resume"] = [*(options.get("resume") or ()), run.id]
    words = {name: getattr(job, name) for name in JobSpec.__dataclass_fields__}
    return _job(JobSpec(**words), job.argv[0], options, job.argv[7:])


def cluster_python() -> str:
    """The Python that has Dask: the one named, else the one that runs this.

    Raises:
        EnvironmentTroubleError: there is none, or its Dask is too old.
    """
    told = os.environ.get(CLUSTER_PYTHON)
    python = shutil.which(told) if told else sys.executable if find_spec("distributed") else None
    if python is None:
        what = (
            f"{CLUSTER_PYTHON}={told} is no program"
            if told
            else "--hosts needs Dask distributed, and this Python has none"
        )
        raise EnvironmentTroubleError(what, next=INSTALL)
    code = "from importlib.metadata import version; print(version('distributed'))"  # importing it would take a second
    try:
        done = subprocess.run(
            [python, "-P", "-c", code], capture_output=True, text=True, timeout=LOOK_SECONDS, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentTroubleError(f"{python} can't be asked for Dask: {error}", next=INSTALL) from error
    found = done.stdout.strip()
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word of it"])[-1]
        raise EnvironmentTroubleError(f"{python} has no Dask distributed: {last[:160]}", next=INSTALL)
    numbers = tuple(int(word) for word in found.split(".")[:2] if word.isdecimal())
    if numbers < OLDEST:
        raise EnvironmentTroubleError(
            f"{python} has distributed {found}; {'.'.join(map(str, OLDEST))} is the oldest", next=INSTALL
        )
    return os.path.abspath(python)


class Shipment:
    """The files of the checkout as they are now: tracked with uncommitted edits, untracked ones that are not ignored."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.algorithm = object_format(checkout)
        self.found: Scan = scan(checkout, algorithm=self.algorithm)
        self.withheld: list[bytes] = []
        self.data: dict[bytes, bytes] = {}
        for path, entry in self.found.files.items():
            if entry.sha is None:
                continue
            data = read_bytes(os.fsencode(checkout) + b"/" + path)
            if object_id(data, self.algorithm) != entry.sha:
                raise RefusedError(
                    f"{printable(os.fsdecode(path))} changed while it was read", next="repeat the command"
                )
            if entry.mode != LINK and is_secret_file(os.fsdecode(os.path.basename(path)), data):
                self.withheld.append(path)
            else:
                self.data[path] = data
        self.edited = set(lines_of(git(checkout, "diff", "--name-only", "-z", "HEAD", allowed=(0, 128))))

    def says(self) -> list[str]:
        """What is sent and what is not."""
        tracked = sum(path in self.found.tracked for path in self.data)
        edited = sum(path in self.edited for path in self.data if path in self.found.tracked)
        size = sum(map(len, self.data.values()))
        lines = [
            f"{tracked} tracked files ({edited} with uncommitted edits) and {len(self.data) - tracked} untracked ones, {size / 1e6:.1f} MB"
        ]
        return [*lines, "not sent: what git ignores, logs, .git", *self.notes()]

    def notes(self) -> list[str]:
        """What the hosts don't get, though it belongs to the tree."""
        lines = []
        if self.withheld:
            names = [printable(os.fsdecode(path)) for path in self.withheld]
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            lines.append(f"not sent, since they look like secrets: {', '.join(names[:SHOWN])}{more}")
        if self.found.skipped:
            lines.append(f"not sent: {len(self.found.skipped)} untracked files larger than {MOST_BYTES >> 20} MB")
        return lines

    def archive(self) -> bytes:
        """A tar file of them."""
        return _packed([(os.fsdecode(p), self.found.files[p].mode, data) for p, data in self.data.items()])


def package_archive() -> bytes:
    """Our own package, for hosts that need not have it."""
    files = sorted(p for p in (SCRIPTS / "debug_spyre").rglob("*") if p.is_file() and p.suffix != ".pyc")
    rows = [(str(p.relative_to(SCRIPTS)), "100644", p.read_bytes()) for p in files if "bundle" not in p.parts]
    return _packed(rows)


def _packed(rows: Sequence[tuple[str, str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for name, mode, data in rows:
            member = tarfile.TarInfo(name)
            if mode == LINK:
                member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(data)
                packed.addfile(member)
                continue
            member.size, member.mode = len(data), int(mode[-3:], 8)
            packed.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def digest(data: bytes) -> str:
    """One short name for these bytes."""
    return hashlib.sha256(data).hexdigest()[:16]


def _confirm(shipment: Shipment, wanted: Wanted, spec: JobSpec) -> None:
    """A person says yes each time: the tree leaves this host.

    Raises:
        RefusedError: nobody did.
    """
    if wanted.approved:
        return
    lines = [
        f"--hosts sends this tree to the Dask workers at {wanted.address}:",
        *(f"  {line}" for line in shipment.says()),
    ]
    if spec.env:
        lines.append(f"  variables: {', '.join(sorted(spec.env))}")
    if not wanted.address.startswith("tls://"):
        lines.append("  without TLS: whoever reaches that scheduler can read it, and can run code on its hosts")
    if sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write("\n".join(lines) + "\nSend it? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in {"y", "yes"}:
            return
        raise RefusedError("nothing was sent", next="debug-spyre VERB --cards all")
    raise RefusedError(
        "a person has to confirm what is sent, each time",
        details=tuple(f"  {line}" for line in lines),
        next="debug-spyre VERB --ship-approved, typed by a person in a terminal of their own",
    )


def _from_root(checkout: Path, words: Sequence[str]) -> list[str]:
    """Files of the checkout by their names below it: it lies elsewhere on the hosts."""
    return [word.removeprefix(f"{checkout}{os.sep}") for word in words]


def _facts(python: str) -> dict[str, Any]:
    """The facts of the host where we are, by the interpreter that would run the tests here."""
    done = subprocess.run(
        [python, "-P", "-c", HOST_BOOT, str(SCRIPTS), "facts"], capture_output=True, text=True, timeout=LOOK_SECONDS
    )
    try:
        return dict(json.loads(done.stdout))
    except ValueError as error:
        last = (done.stderr.strip().splitlines() or ["no word of it"])[-1]
        raise EnvironmentTroubleError(
            f"{python} can't run debug-spyre: {last[:160]}", next="debug-spyre doctor"
        ) from error


def _look(python: str, options: dict[str, Any]) -> dict[str, Any]:
    """Look at the hosts before anything is written; returns what each worker answered.

    Raises:
        EnvironmentTroubleError: they are not fit.
    """
    words = [python, "-P", "-c", BOOT, str(SCRIPTS), json.dumps(options)]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=LOOK_SECONDS, errors="replace", stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentTroubleError(
            f"{options['address']} did not answer in {LOOK_SECONDS:g} s", next="dask scheduler"
        ) from error
    try:
        said = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        last = (done.stderr.strip().splitlines() or ["no word of it"])[-1]
        raise EnvironmentTroubleError(f"the hosts could not be looked at: {last[:200]}", next=INSTALL) from error
    if "error" in said:
        raise EnvironmentTroubleError(said["error"], next=said["next"])
    return dict(said["answers"])
