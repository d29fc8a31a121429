"""Which torch-spyre is installed, cheaply: the folders in which an interpreter looks for packages, the package's record, its files.

No import, no Python started. Compared before and after each run: a silent re-install (plain `uv run`) makes the run's evidence worthless.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sysconfig
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

_VERSIONED = re.compile(r"python3\.\d+")
_SITE = {"site-packages", "dist-packages"}
_LARGEST = 1_000_000


def search_path(packages: Path | None) -> tuple[Path, ...]:
    """The folders for the interpreter whose own site-packages are these; each once, only those that exist."""
    found: dict[str, Path] = {}  # by their real path: an environment's lib64 is most often a link to its lib
    for folder in _sites(packages) if packages is not None else ():
        if folder.is_dir():
            for named in (folder, *_named_in(folder)):
                found.setdefault(os.path.realpath(named), named)
    return tuple(found.values())


def own_sites(prefix: Path, python: str = "python3*") -> Iterator[Path]:
    """The site-packages below a prefix; a distribution's own Python calls them dist-packages."""
    for pattern in (f"lib/{python}/site-packages", f"lib64/{python}/site-packages"):
        yield from sorted(prefix.glob(pattern))
    if (prefix / "lib/python3/dist-packages").is_dir():
        yield from sorted(prefix.glob(f"local/lib/{python}/dist-packages"))
        yield prefix / "lib/python3/dist-packages"


def _sites(packages: Path) -> Iterator[Path]:
    yield packages
    python = packages.parent.name
    if packages.name not in _SITE or not _VERSIONED.fullmatch(python):
        return
    prefix = packages.parents[2]
    settings = _settings(prefix / "pyvenv.cfg")
    if settings is None:
        if packages.name == "dist-packages" and prefix.name == "local":
            prefix = prefix.parent
        yield from _of_base(prefix, python)
        return
    yield prefix / "lib64" / python / "site-packages"
    home = settings.get("home")
    if home and settings.get("include-system-site-packages", "").lower() == "true":
        yield from _of_base(Path(os.path.realpath(home)).parent, python)


def _of_base(prefix: Path, python: str) -> Iterator[Path]:
    """The person's own packages, then the base's. On Red Hat's systems pip installs below /usr/local for /usr/bin."""
    home = os.environ.get("PYTHONUSERBASE") or (os.path.expanduser("~/.local") if os.environ.get("HOME") else "")
    if home and not os.environ.get("PYTHONNOUSERSITE"):
        yield Path(home) / "lib" / python / "site-packages"
    if (prefix / "lib/python3/dist-packages").is_dir():
        yield prefix / "local/lib" / python / "dist-packages"
        yield prefix / "lib/python3/dist-packages"
        return
    for root in (prefix / "local", prefix):
        for lib in ("lib64", "lib"):
            yield root / lib / python / "site-packages"


def _settings(path: Path) -> dict[str, str] | None:
    """What a pyvenv.cfg says; None where there is none: no virtual environment."""
    text = _content(path)
    if text is None:
        return None
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _named_in(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(n for n in os.listdir(folder) if n.endswith(".pth") and not n.startswith("."))
    except OSError:
        return
    for name in names:
        for line in (_content(folder / name) or "").splitlines():
            if not line.strip() or line.startswith(("#", "import ", "import\t")):
                continue
            named = folder / line.rstrip()  # an absolute one stands for itself
            if named.is_dir():
                yield Path(os.path.normpath(named))


def _content(path: Path) -> str | None:
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError:
        return None


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
    given = Path(python).absolute()  # not resolved: a venv's python is a link
    version = re.fullmatch(r"python3\.\d+", given.resolve().name)
    for prefix in dict.fromkeys((given.parent.parent, given.resolve().parent.parent)):
        found = list(own_sites(prefix))
        if found:
            same = (p for p in found if version and p.parent.name == version[0])
            return next(same, found[0])
    return None


def installed(packages: Path | None) -> Installed | None:
    """What the interpreter with these site-packages finds; None where there is no torch-spyre with a record."""
    return installed_in(search_path(packages))


def installed_in(folders: Sequence[Path]) -> Installed | None:
    """The same for these folders alone: the first that has a record or the package decides."""
    for place, folder in enumerate(folders):
        records = _records(folder)
        if records:
            return _installed(records[0], folders[place:])
        if (folder / PACKAGE / "__init__.py").is_file():
            return None  # imported from here, whatever a later folder's record says
    return None


def package_folder(packages: Path | None) -> Path | None:
    """The folder of the package that is found there, with or without a record; None where there is none."""
    folders = search_path(packages)
    found = installed_in(folders)
    if found is not None:
        return found.source
    return next((f / PACKAGE for f in folders if (f / PACKAGE).is_dir()), None)


def _installed(record: Path, folders: Sequence[Path]) -> Installed:
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
        source=_source(folders, direct),
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
    found, source = installed(packages), package_folder(packages)
    if found is None and source is None:
        return None
    digest = hashlib.sha256()
    if found is not None:
        for name in ("direct_url.json", "RECORD", "METADATA"):
            digest.update(_text(found.record / name).encode("utf-8", "surrogateescape"))
    for line in _files(source):
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def _records(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("torch_spyre-*.dist-info") if p.is_dir())


def _source(folders: Sequence[Path], direct: dict[str, Any]) -> Path | None:
    """Beside the record, where an editable installation points to, else in a later folder."""
    if (folders[0] / PACKAGE).is_dir():
        return folders[0] / PACKAGE
    if (direct.get("dir_info") or {}).get("editable"):
        root = Path(unquote(urlparse(str(direct.get("url"))).path))
        return next((p for p in (root / PACKAGE, root / "src" / PACKAGE) if p.is_dir()), None)
    return next((f / PACKAGE for f in folders[1:] if (f / PACKAGE).is_dir()), None)


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
