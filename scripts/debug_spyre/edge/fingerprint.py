"""Which torch-spyre is installed, cheaply: its record and the sizes and times of its files. No import, no Python started.

Compared before and after each run: a silent re-install (plain `uv run`) makes the run's evidence worthless.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sysconfig
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

PACKAGE = "torch_spyre"
_SKIPPED = {"__pycache__", ".git", "build", ".mypy_cache"}
_SUFFIXES = (".py", ".so", ".json", ".yaml", ".cpp", ".h", ".pyi")


@dataclass(frozen=True, slots=True)
class Installed:
    """The installed torch-spyre as its own record tells it."""

    version: str | None
    url: str | None
    commit: str | None  # of an installation from git
    is_local: bool  # from a folder or a file on this machine
    record: Path  # its .dist-info
    source: Path | None  # the folder of the package


def site_packages(python: str | Path | None = None) -> Path | None:
    """The site-packages of that interpreter (default: this one), by looking at its folders only."""
    if python is None:
        return Path(sysconfig.get_paths()["purelib"])
    prefix = Path(python).absolute().parent.parent  # not resolved: a venv's python is a link
    found = sorted(prefix.glob("lib/python3*/site-packages")) + sorted(prefix.glob("lib64/python3*/site-packages"))
    return found[0] if found else None


def installed(packages: Path | None) -> Installed | None:
    """What is installed there; None where there is no torch-spyre."""
    records = _records(packages)
    if not records:
        return None
    record = records[0]
    direct: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        direct = json.loads((record / "direct_url.json").read_text(encoding="utf-8"))
    url = direct.get("url")
    version = re.search(r"^Version: (.+)$", _text(record / "METADATA"), re.MULTILINE)
    local = bool(url and url.startswith("file:") and "vcs_info" not in direct)
    return Installed(
        version=version[1].strip() if version else None,
        url=url,
        commit=(direct.get("vcs_info") or {}).get("commit_id"),
        is_local=local,
        record=record,
        source=_source(packages, direct),
    )


def pinned(checkout: Path) -> str | None:
    """The revision (or version) that the checkout's uv.lock pins torch-spyre to; None where there is no such pin."""
    try:
        locked = tomllib.loads((checkout / "uv.lock").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    for package in locked.get("package", []):
        if package.get("name") == "torch-spyre":
            git = str(package.get("source", {}).get("git") or "")
            return git.rpartition("#")[2] or package.get("version")
    return None


def drift(checkout: Path, packages: Path | None) -> str | None:
    """Why a sync would take the installed torch-spyre away, in words; None where it agrees with the pin."""
    found, pin = installed(packages), pinned(checkout)
    if found is None or pin is None:
        return None
    if found.is_local:
        return f"the installed torch-spyre is a local build ({found.url})"
    if found.commit and found.commit != pin:
        return f"the installed torch-spyre is {found.commit[:12]}, uv.lock pins {pin[:12]}"
    if not found.commit and found.version != pin:
        return f"the installed torch-spyre is {found.version} with no revision, uv.lock pins {pin[:12]}"
    return None


def backend_fingerprint(packages: Path | None = None) -> str | None:
    """Sixteen hex digits over the record and the files; None where no torch-spyre is installed there."""
    packages = site_packages() if packages is None else packages
    found = installed(packages)
    if found is None and not (packages and (packages / PACKAGE).is_dir()):
        return None
    digest = hashlib.sha256()
    if found is not None:
        for name in ("direct_url.json", "RECORD", "METADATA"):
            digest.update(_text(found.record / name).encode("utf-8", "surrogateescape"))
    source = found.source if found else (packages / PACKAGE if packages else None)
    for line in _files(source):
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def _records(packages: Path | None) -> list[Path]:
    if packages is None:
        return []
    return sorted(p for p in packages.glob("torch_spyre-*.dist-info") if p.is_dir())


def _source(packages: Path | None, direct: dict[str, Any]) -> Path | None:
    if packages is not None and (packages / PACKAGE).is_dir():
        return packages / PACKAGE
    if (direct.get("dir_info") or {}).get("editable"):
        root = Path(unquote(urlparse(str(direct.get("url"))).path))
        return next((p for p in (root / PACKAGE, root / "src" / PACKAGE) if p.is_dir()), None)
    return None


def _files(folder: Path | None) -> Iterator[str]:
    if folder is None:
        return
    stack = [str(folder)]
    found = []
    while stack:
        here = stack.pop()
        with suppress(OSError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED:
                        stack.append(entry.path)
                elif entry.name.endswith(_SUFFIXES):
                    seen = entry.stat()
                    found.append(f"{os.path.relpath(entry.path, folder)} {seen.st_size} {seen.st_mtime_ns}\n")
    yield from sorted(found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
