"""The parts of the skill, and where this copy of it lies: a checkout of the project, a wheel, or an installed skill."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import debug_spyre
from debug_spyre.session.io.workspace import SKILL
from debug_spyre.vocabulary.errors import EnvironmentTroubleError

TEXTS = ("SKILL.md", "attention-notes.md", ".claude-plugin/plugin.json", "bin/debug-spyre")
LEFT_OUT = {"__pycache__", "bundle", "py.typed"}


@dataclass(frozen=True, slots=True)
class Bundle:
    """The parts of the skill as they lie here."""

    texts: Path  # the folder with SKILL.md, attention-notes.md and references
    scripts: Path  # the folder with the launcher and the guard
    package: Path
    templates: Path

    def files(self) -> dict[str, Path]:
        """Every file of an installed skill: its place there -> where it lies here.

        Raises:
            EnvironmentTroubleError: a part is missing.
        """
        found = {name: self.texts / name for name in TEXTS}
        found |= _below(self.texts / "references", "references")
        found |= {f"scripts/{name}": self.scripts / name for name in ("debug-spyre", "guard.py")}
        found |= _below(self.package, "scripts/debug_spyre")
        found |= _below(self.templates, "templates")
        missing = sorted(str(path) for path in found.values() if not path.is_file())
        if missing:
            raise EnvironmentTroubleError(
                f"this copy of debug-spyre is not whole: {missing[0]} is missing",
                next="install from a checkout of the project: scripts/debug-spyre install DIR",
            )
        return dict(sorted(found.items()))


def _below(folder: Path, target: str) -> dict[str, Path]:
    found = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not LEFT_OUT & set(parts) and path.suffix != ".pyc" and not _is_marker(path, folder):
            found["/".join((target, *parts))] = path
    return found


def _is_marker(path: Path, package: Path) -> bool:
    """An `__init__.py` that holds no code: Python finds the folder's modules without it."""
    if path.name != "__init__.py" or path.parent == package:
        return False
    return all(isinstance(node, ast.Expr) for node in ast.parse(path.read_bytes()).body)


def find_bundle(package: Path | None = None) -> Bundle:
    """The bundle that the running package belongs to.

    Raises:
        EnvironmentTroubleError: the package lies in none of the three layouts.
    """
    package = package or Path(debug_spyre.__file__).resolve().parent
    wheel = package / "bundle"
    if (wheel / "skill/SKILL.md").is_file():
        return Bundle(wheel / "skill", wheel / "scripts", package, wheel / "templates")
    top = package.parent.parent
    for texts in (top, top / SKILL):
        if (texts / "SKILL.md").is_file():
            return Bundle(texts, package.parent, package, top / "templates")
    raise EnvironmentTroubleError(
        f"{package} is no whole copy of debug-spyre: its SKILL.md is not beside it",
        next="install from a checkout of the project: scripts/debug-spyre install DIR",
    )
