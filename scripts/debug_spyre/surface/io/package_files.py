"""The files of a torch-spyre package on disk: found without importing it, read once, their surface cached by mtime."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from debug_spyre import __version__
from debug_spyre.host.files import write_atomically
from debug_spyre.host.fingerprint import PACKAGE, installed, package_folder
from debug_spyre.host.interpreter import choose
from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import Form, Site, Surface, Unresolved
from debug_spyre.vocabulary.errors import BadInputError, DebugSpyreError, EnvironmentTroubleError

DATA = Path(__file__).parents[1] / "data"
SUFFIXES = (".py", ".cpp", ".cc")
BIGGEST = 4_000_000
FORMAT = 3  # of the cache
_SKIPPED = {"__pycache__", ".git", "build", "tests", ".mypy_cache"}
_GENERATED = ("codegen/inputs/Metadata.yaml", "codegen/inputs/spyre_torch_ops.cpp", "codegen/templates")


@dataclass(frozen=True, slots=True)
class Found:
    """A package folder and how it was found."""

    folder: Path
    why: str
    is_installed: bool


def find_package(checkout: Path | None, given: str | None = None) -> Found:
    """The torch_spyre folder that is meant: `given`, else the one installed for the checkout.

    Raises:
        BadInputError: `given` is no such folder; EnvironmentTroubleError: none is installed, or only half of it.
    """
    if given is not None:
        return _given(Path(given).absolute())
    chosen = choose(checkout or Path.cwd())
    found = installed(chosen.packages)
    folder = package_folder(chosen.packages)
    if folder is not None and any(folder.glob("*.py")):
        return Found(folder, f"{chosen.python}", is_installed=True)
    half = "only half installed" if found or folder else "not installed"
    where = chosen.packages or chosen.python
    raise EnvironmentTroubleError(
        f"torch-spyre is {half} in {where}",
        next="debug-spyre op NAME --package DIR, with the folder of a torch_spyre checkout",
    )


def _given(path: Path) -> Found:
    if not path.is_dir():
        kind = "a file" if path.is_file() else "missing"
        raise BadInputError(
            f"--package {path}: {kind}, and a folder is needed", next="debug-spyre op NAME --package DIR"
        )
    inner = path / PACKAGE
    if path.name != PACKAGE and inner.is_dir():
        path = inner
    if not any(path.glob("*.py")) and not any(path.glob("*/*.py")):
        raise BadInputError(f"--package {path}: no Python file in it", next="debug-spyre op NAME --package DIR")
    return Found(path, "--package", is_installed=False)


def load_surface(found: Found, *, caches: tuple[Path, ...] = ()) -> Surface:
    """The package's surface, from the cache if no file changed."""
    paths = dict(_paths(found))
    key = _key(found, paths)
    for cache in caches:
        known = _cached(cache / f"{key}.json")
        if known is not None:
            return known
    from debug_spyre.surface.registry import read_surface

    files, troubles = {}, []
    for name, path in paths.items():
        try:
            files[name] = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            troubles.append(f"{name}: not read, {error.strerror or error}")
    pure = (found.folder / "_C.py").exists() and not any(found.folder.glob("_C*.so"))
    surface = read_surface(files, compiled=not pure)
    if troubles:
        from dataclasses import replace

        surface = replace(surface, warnings=(*surface.warnings, *troubles))
    _keep(caches, key, surface)
    return surface


def cache_folders(logs: Path | None) -> tuple[Path, ...]:
    """Where the cache may live: the user's cache folder, else the logs folder. The first that can be written is used."""
    root = os.environ.get("XDG_CACHE_HOME") or (os.path.expanduser("~/.cache") if os.environ.get("HOME") else "")
    folders = [Path(root) / "debug-spyre/surface"] if root and os.path.isabs(root) else []
    if logs is not None and logs.is_dir():
        folders.append(logs / ".cache/surface")
    return tuple(folders)


def _paths(found: Found) -> Iterator[tuple[str, Path]]:
    base = found.folder
    yield from _walk(base, base.name if base.name == PACKAGE else PACKAGE, SUFFIXES)
    for name in () if found.is_installed else _GENERATED:
        path = base.parent / name
        if path.is_dir():
            yield from _walk(path, name, (".jinja2",))
        elif path.is_file():
            yield name, path


def _walk(base: Path, prefix: str, suffixes: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Files below `base`; links to folders are not followed, so a circle of them ends."""
    for here, folders, names in os.walk(base, followlinks=False):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED)
        relative = os.path.relpath(here, base)
        for name in sorted(names):
            path = Path(here) / name
            if name.endswith(suffixes) and _size(path) <= BIGGEST:
                yield f"{prefix}/{name}" if relative == "." else f"{prefix}/{relative}/{name}", path


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # a broken or circular link: reading it will say so


def build_key(found: Found) -> str:
    """Changes with every file of the package, and with our own."""
    return _key(found, dict(_paths(found)))


def _key(found: Found, paths: dict[str, Path]) -> str:
    digest = hashlib.sha256(f"{FORMAT} {__version__} {found.folder} {found.is_installed}\n".encode())
    for name, path in paths.items():
        try:
            seen = path.stat()
            digest.update(f"{name} {seen.st_size} {seen.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
        except OSError:
            digest.update(f"{name} ?\n".encode("utf-8", "surrogateescape"))
    for source in sorted(
        [*DATA.parent.glob("*.py"), *DATA.parent.parent.glob("inside/debug_spyre_[rs]*.py")]
    ):  # a changed reader reads again
        digest.update(f"{source.name} {source.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def _keep(caches: tuple[Path, ...], key: str, surface: Surface) -> None:
    keep_text(caches, f"{key}.json", json.dumps(surface_to_json(surface)))


def keep_text(caches: tuple[Path, ...], name: str, text: str) -> None:
    """In the first cache folder that can be written; nowhere if none can."""
    for cache in caches:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            write_atomically(cache / name, text, mode=0o600)
            _prune(cache)
            return
        except (OSError, DebugSpyreError):
            continue


def _prune(cache: Path, *, most: int = 20) -> None:
    kept = sorted(cache.glob("*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in kept[most:]:
        with suppress(OSError):
            path.unlink()


def _cached(path: Path) -> Surface | None:
    try:
        return surface_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def surface_to_json(surface: Surface) -> dict[str, Any]:
    """A surface as the cache holds it."""
    data = {name: getattr(surface, name) for name in Surface.__slots__}
    data["sites"] = [[s.form.value, s.op.ns, s.op.packet, s.op.overload, *_tail(s)] for s in surface.sites]
    data["unresolved"] = [asdict(u) for u in surface.unresolved]
    return data


def _tail(site: Site) -> list[Any]:
    return [site.file, site.line, site.detail, site.notes, site.compiled_only, site.listed_only, site.assumed]


def surface_from_json(data: dict[str, Any]) -> Surface:
    """Inverse of surface_to_json.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: it is no such thing.
    """
    sites = tuple(
        Site(
            Form(row[0]), OpName(row[1], row[2], row[3]), row[4], row[5], row[6], tuple(row[7]), row[8], row[9], row[10]
        )
        for row in data["sites"]
    )
    return Surface(
        **{
            **data,
            "sites": sites,
            "unresolved": tuple(Unresolved(**u) for u in data["unresolved"]),
            "warnings": tuple(data["warnings"]),
        }
    )


# -- custom ops that the plugin in the checkout registers itself, by vLLM's own call: torch-spyre's registration has none of them

CALL = b"direct_register_custom_op"
SKIPPED = {"tests", "build", "node_modules", "__pycache__"}


def plugin_sites(checkout: Path) -> tuple[Site, ...]:
    """Their sites, read from the checkout's Python files."""
    from debug_spyre.surface.finder import find_sites

    files = {}
    for here, folders, names in os.walk(checkout):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        for name in names:
            path = Path(here) / name
            if name.endswith(".py"):
                with suppress(OSError):
                    raw = path.read_bytes()
                    if CALL in raw:
                        files[path.relative_to(checkout).as_posix()] = raw.decode("utf-8", "replace")
    return tuple(site for site in find_sites(files).sites if site.op.ns == "vllm")
