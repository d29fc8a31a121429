"""The page's templates: found beside the package, rendered with escaping on; only our own CSS and JS enter unescaped."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from debug_spyre.core.errors import EnvironmentTroubleError

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
    )

    def raw(name: str) -> Markup:
        return Markup(_own_file(folder / name))  # noqa: S704  our own CSS and JS, never outside text

    def digest(name: str) -> str:
        octets = hashlib.sha256(_own_file(folder / name).encode()).digest()
        return "sha256-" + base64.b64encode(octets).decode()

    environment.globals.update(raw=raw, hash=digest)
    return environment


@cache
def _own_file(path: Path) -> str:
    return path.read_text(encoding="utf-8")
