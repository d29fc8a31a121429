"""The folders in which an interpreter looks for packages, in its order, told from files alone: no Python is started.

Its own site-packages come first, then what a `.pth` file names, then the base's for an environment that includes them.
Lines of a `.pth` file that are code (`import ...`) are never executed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

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
    text = _text(path)
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
        for line in (_text(folder / name) or "").splitlines():
            if not line.strip() or line.startswith(("#", "import ", "import\t")):
                continue
            named = folder / line.rstrip()  # an absolute one stands for itself
            if named.is_dir():
                yield Path(os.path.normpath(named))


def _text(path: Path) -> str | None:
    try:
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError:
        return None
