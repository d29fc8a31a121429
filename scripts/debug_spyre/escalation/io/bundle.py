"""The escalation bundle: a folder and a zip, every text file redacted by one map, with checksums; never overwritten.

The map from placeholders to what they stand for lies beside the bundle's folder, never inside it.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import pwd
import re
import shutil
import socket
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from debug_spyre.escalation.redaction import Private, Redactor, identifiers
from debug_spyre.host.files import PRIVATE, write_atomically
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, RefusedError
from debug_spyre.vocabulary.masking import secret_values

BINARY = (".safetensors", ".npy", ".pt", ".png")
ENDINGS = ("", ".zip", ".map.json")  # the folder, its archive, the map of what was hidden
DEFAULT_CAP = 20 * 1024 * 1024
TAIL_BYTES = 256 * 1024
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the bundle. Text is redacted; tensors are taken as they are and named in the preview."""

    name: str
    text: str | None = None
    path: Path | None = None
    must: bool = False  # may not be left out for its size


@dataclass(frozen=True, slots=True)
class Plan:
    """The bundle before it is written."""

    files: tuple[tuple[str, bytes], ...]
    omitted: tuple[str, ...]
    redactor: Redactor = field(compare=False)


def private_of_this_host() -> Private:
    """User, host, homes and secret values that must not leave this host."""
    users = {os.environ.get("USER", ""), os.environ.get("LOGNAME", ""), os.environ.get("SUDO_USER", "")}
    homes = {os.environ.get("HOME", "")}
    try:
        entry = pwd.getpwuid(os.getuid())
        users.add(entry.pw_name)
        homes.add(entry.pw_dir)
        users.add(getpass.getuser())
    except (KeyError, OSError):
        pass
    host = socket.gethostname()
    hosts = {host, host.split(".")[0], os.environ.get("HOSTNAME", "")}
    return Private(
        users=tuple(sorted(u for u in users if u)),
        hosts=tuple(sorted(h for h in hosts if h)),
        homes=tuple(sorted(h for h in homes if h and h != "/")),
        secrets=secret_values(os.environ),
    )


def plan_bundle(entries: Iterable[Entry], *, private: Private, cap: int = DEFAULT_CAP) -> Plan:
    """Redact every text entry by one map and keep within `cap` bytes; what was left out is listed."""
    entries = list(entries)
    names = frozenset[str]().union(*(identifiers(_source(e)) for e in entries if e.name.endswith(".py")))
    redactor = Redactor(replace(private, identifiers=private.identifiers | names))
    files: list[tuple[str, bytes]] = []
    omitted: list[str] = []
    size = 0
    for entry in sorted(entries, key=lambda e: not e.must):
        data = _content(entry, redactor)
        name = _safe_name(redactor.redact(entry.name))
        if not entry.must and size + len(data) > cap:
            omitted.append(f"{name}: {len(data)} bytes, over the cap of {cap}")
            continue
        size += len(data)
        files.append((name, data))
    return Plan(tuple(sorted(files)), tuple(omitted), redactor)


def _source(entry: Entry) -> str:
    if entry.text is not None:
        return entry.text
    return entry.path.read_text(encoding="utf-8", errors="replace") if entry.path else ""


def _content(entry: Entry, redactor: Redactor) -> bytes:
    if entry.path is not None and entry.path.suffix in BINARY:
        return entry.path.read_bytes()
    return redactor.redact(_source(entry)).encode("utf-8", "replace")


def _safe_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._/-]", "_", name)


def tail_of(path: Path, *, most: int = TAIL_BYTES) -> str:
    """The last bytes of an output with a head line that says what was cut and where the tail begins."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        skipped = max(0, size - most)
        before = 0
        while before < skipped:
            block = stream.read(min(1 << 20, skipped - before))
            before += len(block)
        data = stream.read()
    if not skipped:
        return data.decode("utf-8", "replace")
    with path.open("rb") as stream:
        lines = sum(chunk.count(b"\n") for chunk in _blocks(stream, skipped))
    return (
        f"[cut: the first {lines} lines, {skipped} bytes of {size}; what follows begins in line {lines + 1}]\n"
        + data.decode("utf-8", "replace")
    )


def _blocks(stream: object, count: int) -> Iterable[bytes]:
    left = count
    while left > 0:
        block: bytes = stream.read(min(1 << 20, left))  # type: ignore[attr-defined]
        if not block:
            return
        left -= len(block)
        yield block


def write_bundle(plan: Plan, folder: Path) -> tuple[Path, Path]:
    """Write the folder, its SHA256SUMS, the zip beside it and the map outside it; returns folder and zip.

    Raises:
        RefusedError: the folder or the zip exists; EnvironmentTroubleError: the disk is full or not writable.
    """
    paths = tuple(folder.with_name(folder.name + ending) for ending in ENDINGS)
    _, archive, private_map = paths
    for path in paths:
        if path.exists():
            raise RefusedError(
                f"{path} exists; a bundle is never overwritten", next="debug-spyre escalate --name OTHER"
            )
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in plan.files)
    files = (*plan.files, ("SHA256SUMS", sums.encode()))
    scratch = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".bundle-", dir=folder.parent))
        inside = scratch / folder.name
        for name, data in files:
            target = inside / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        _zip(files, scratch / archive.name, folder.name)
        write_atomically(private_map, json.dumps(plan.redactor.map, indent=1, sort_keys=True) + "\n", mode=PRIVATE)
        os.rename(inside, folder)
        os.rename(scratch / archive.name, archive)
    except OSError as error:
        private_map.unlink(missing_ok=True)
        raise EnvironmentTroubleError(
            f"cannot write the bundle {folder}: {error.strerror or error}",
            next="free space and repeat debug-spyre escalate",
        ) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
    return folder, archive


def _zip(files: Iterable[tuple[str, bytes]], path: Path, prefix: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            info = zipfile.ZipInfo(f"{prefix}/{name}", ZIP_TIME)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
