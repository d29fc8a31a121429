"""The page's templates, rendered with escaping on (only our own CSS and JS enter unescaped), and whether a file that a finding names is there."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from debug_spyre.host.fingerprint import package_folder, search_path
from debug_spyre.host.interpreter import choose
from debug_spyre.vocabulary.errors import DebugSpyreError, EnvironmentTroubleError

_PLACE = re.compile(r"(?::\d+(?:-\d+)?){1,2}$")


def is_there(reference: str, checkout: Path, *more: Path) -> bool:
    """FILE or FILE:LINE names a file that is there; an address on the web is not looked for."""
    if "://" in reference:
        return True
    name = os.path.expanduser(_PLACE.sub("", reference.strip()))
    return any(os.path.isfile(folder / name) for folder in (Path.cwd(), checkout, *more, *_packages(checkout)))


def _packages(checkout: Path) -> Iterable[Path]:
    with suppress(DebugSpyreError):
        packages = choose(checkout).packages
        backend = package_folder(packages)  # of an editable installation it lies elsewhere
        return (*search_path(packages), *([backend.parent] if backend else []))
    return ()


PACKAGE = Path(__file__).resolve().parent.parent
PLACES = (PACKAGE.parent.parent / "templates", PACKAGE / "bundle" / "templates")
MARKER = "log.html.j2"


def templates_folder() -> Path:
    """Where the templates lie: beside the scripts (checkout, installed skill) or in the wheel's bundle.

    Raises:
        EnvironmentTroubleError: in none of these.
    """
    for place in PLACES:
        if (place / MARKER).is_file():
            return place
    raise EnvironmentTroubleError(
        f"the page's templates are missing: looked in {PLACES[0]} and {PLACES[1]}",
        next="debug-spyre install puts the skill in place again",
    )


def render_template(name: str, **values: Any) -> str:
    """The page that a template makes of a view.

    Raises:
        EnvironmentTroubleError: no templates, or no jinja2 in this Python.
    """
    html: str = _environment(templates_folder()).get_template(name).render(**values)
    return html


@cache
def _environment(folder: Path) -> Any:
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as error:
        raise EnvironmentTroubleError(
            f"this Python has no jinja2: {error}",
            next="DEBUG_SPYRE_PYTHON=PYTHON with the checkout's interpreter (torch brings jinja2)",
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(folder)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=_compiled(jinja2, _compiled_folder()),
    )

    def raw(name: str) -> Markup:
        return Markup(_own_file(folder / name))  # noqa: S704  our own CSS and JS, never outside text

    def digest(name: str) -> str:
        octets = hashlib.sha256(_own_file(folder / name).encode()).digest()
        return "sha256-" + base64.b64encode(octets).decode()

    environment.globals.update(raw=raw, hash=digest)
    return environment


def _compiled_folder() -> Path | None:
    """Where compiled templates are kept: where Python keeps what it compiles, else in the user's cache folder."""
    places = [] if sys.dont_write_bytecode else [PACKAGE / "__pycache__"]
    root = os.environ.get("XDG_CACHE_HOME") or (os.path.expanduser("~/.cache") if os.environ.get("HOME") else "")
    if root.startswith("/"):
        places.append(Path(root) / "debug-spyre" / "templates")
    return next((place for place in places if _is_ours(place)), None)


def _is_ours(place: Path) -> bool:
    """Compiled code is read from here: nobody else may be able to write it."""
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o755)
        found = place.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & 0o022
        and os.access(place, os.W_OK)
    )


def _compiled(jinja2: Any, place: Path | None) -> Any:
    """The compiled templates of this Python (0.2 s a start); where they can't be kept, nothing is kept."""
    if place is None:
        return None

    class Compiled(jinja2.FileSystemBytecodeCache):  # type: ignore[misc]
        def load_bytecode(self, bucket: Any) -> None:
            with suppress(OSError, ValueError, EOFError, TypeError):
                super().load_bytecode(bucket)

        def dump_bytecode(self, bucket: Any) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    return Compiled(str(place), f"%s.{sys.implementation.cache_tag}.jinja")


@cache
def _own_file(path: Path) -> str:
    return path.read_text(encoding="utf-8")
