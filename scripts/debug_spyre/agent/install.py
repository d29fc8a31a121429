"""The skill into a place and out again: a real copy, logs kept, whatever else lies there kept, half a copy never seen as whole.

The list of what was installed (`.installed.json`) stands in the skill's folder; a file there that is not ours or was
changed by hand is moved aside, never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from debug_spyre import __version__
from debug_spyre.agent.bundle_files import Bundle
from debug_spyre.host.files import make_folder, sha256_of, write_atomically
from debug_spyre.session.io.workspace import SKILL, find_checkout
from debug_spyre.vocabulary.errors import EnvironmentTroubleError

MANIFEST = ".installed.json"
ASIDE = "replaced"
IGNORED = "# written by debug-spyre install\nlogs/\nreplaced/\n__pycache__/\n"
EXECUTABLE = {"scripts/debug-spyre", "scripts/guard.py", "bin/debug-spyre"}
STANDARD_FIELDS = ("name:", "description:", "license:", "compatibility:")
OF_ONE_CLIENT = (".claude-plugin/", "bin/", "scripts/guard.py", "scripts/debug_spyre/agent/guard/")
OTHER_CLIENTS = {"bob": ".bob", "agents": ".agents"}  # option -> the folder in which such clients look for skills/


@dataclass(frozen=True, slots=True)
class Place:
    """Where a skill goes: its folder, the client's settings beside it, and how those name the guard's folder.

    `portable` is the skill's folder as a text names it, for clients that know neither our hooks nor our variables.
    """

    skill: Path
    settings: Path
    scripts: str
    portable: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What installing or removing does, file by file (places relative to the skill's folder)."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    moved_aside: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def project_place(start: Path, *, client: str | None = None) -> Place:
    """The checkout around `start`; `client` is a key of OTHER_CLIENTS.

    Raises:
        EnvironmentTroubleError: it is not in a checkout.
    """
    if not start.is_dir():
        raise EnvironmentTroubleError(f"{start} is not a folder", next="debug-spyre install CHECKOUT")
    top = find_checkout(start)
    if client is not None:
        folder = f"{OTHER_CLIENTS[client]}/skills/{SKILL.name}"
        return Place(top / folder, top / OTHER_CLIENTS[client] / "settings.json", "", folder)
    return Place(top / SKILL, top / ".claude/settings.json", f"$CLAUDE_PROJECT_DIR/{SKILL}/scripts")


def personal_place() -> Place:
    """The person's own folder of the client.

    Raises:
        EnvironmentTroubleError: there is no home folder.
    """
    home = os.environ.get("CLAUDE_CONFIG_DIR") or (
        os.path.join(os.environ["HOME"], ".claude") if os.environ.get("HOME") else ""
    )
    if not home:
        raise EnvironmentTroubleError(
            "HOME is not set, so there is no personal folder", next="debug-spyre install CHECKOUT"
        )
    skill = Path(home).resolve() / "skills/debug-spyre"
    return Place(skill, Path(home).resolve() / "settings.json", str(skill / "scripts"))


def install(bundle: Bundle, place: Place, *, dry_run: bool = False) -> Change:
    """Copy the skill; an older one is upgraded, its logs stay.

    Raises:
        EnvironmentTroubleError: the place can't be written, or a part of the bundle is missing.
    """
    files = {rel: _content(rel, source, place) for rel, source in bundle.files().items() if _belongs(rel, place)}
    if place.skill.exists() and bundle.texts.resolve() == place.skill.resolve():
        return Change(kept=tuple(files))
    known = installed_files(place.skill)
    aside = tuple(rel for rel, data in files.items() if _is_foreign(place.skill / rel, data, known.get(rel)))
    stale = tuple(rel for rel in known if rel not in files and (place.skill / rel).is_file())
    change = Change(tuple(files), stale, aside)
    if dry_run:
        return change
    _refuse_links(place.skill)
    make_folder(place.skill)
    for rel in aside:
        _move_aside(place.skill, rel)
    sums = {}
    for rel, data in files.items():
        make_folder((place.skill / rel).parent)
        write_atomically(place.skill / rel, data, mode=0o755 if rel in EXECUTABLE else 0o644)
        sums[rel] = sha256_of(place.skill / rel)
    for rel in stale:
        (place.skill / rel).unlink(missing_ok=True)
    _drop_caches(place.skill)
    _write_ignored(place.skill)
    manifest = json.dumps({"version": __version__, "files": sums}, indent=1)
    write_atomically(place.skill / MANIFEST, manifest + "\n")
    _drop_empty(place.skill)
    return change


def uninstall(place: Place, *, dry_run: bool = False) -> Change:
    """Take out what was installed and put back what was moved aside; logs and files changed by hand stay."""
    known = installed_files(place.skill)
    changed = tuple(rel for rel, digest in known.items() if _differs(place.skill / rel, digest))
    removed = tuple(rel for rel in known if rel not in changed and (place.skill / rel).is_file())
    back = _aside_files(place.skill)
    if dry_run or not known:
        return Change(removed=removed, moved_aside=back, kept=changed)
    for rel in removed:
        (place.skill / rel).unlink()
    (place.skill / MANIFEST).unlink(missing_ok=True)
    if _reads(place.skill / ".gitignore") == IGNORED and not (place.skill / "logs").exists():
        (place.skill / ".gitignore").unlink()
    _drop_caches(place.skill)
    for rel in back:
        if not (place.skill / rel).exists():
            make_folder((place.skill / rel).parent)
            os.replace(place.skill / ASIDE / rel, place.skill / rel)
    _drop_empty(place.skill)
    for folder in (place.skill.parent, place.skill.parent.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return Change(removed=removed, moved_aside=back, kept=changed)


def installed_files(skill: Path) -> dict[str, str]:
    """Place -> digest of what an earlier install wrote; empty where there was none."""
    try:
        data = json.loads((skill / MANIFEST).read_text(encoding="utf-8"))
        return {rel: digest for rel, digest in data["files"].items() if ".." not in Path(rel).parts}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}


def _belongs(rel: str, place: Place) -> bool:
    return place.portable is None or not rel.startswith(OF_ONE_CLIENT)


def _content(rel: str, source: Path, place: Place) -> bytes:
    data = source.read_bytes()
    if place.portable is None or not rel.endswith(".md"):
        return data
    return portable_text(data.decode("utf-8"), place.portable).encode("utf-8")


def portable_text(text: str, folder: str) -> str:
    """A text of the skill for a client without our hooks: the open standard's fields, no variables of one client."""
    head, mark, body = text.partition("\n---\n")
    if text.startswith("---\n") and mark:
        fields = [line for line in head.splitlines()[1:] if line.startswith(STANDARD_FIELDS)]
        text = "\n".join(["---", *fields, "---", body])
    lines = []
    for line in text.splitlines():
        if line.startswith("A hook refuses"):
            line = "Nothing refuses what breaks these rules before it runs: keep them yourself. The lock, the gate and the log hold."
        if "$ARGUMENTS" not in line:
            lines.append(line.replace("${CLAUDE_SKILL_DIR}", folder))
    return "\n".join(lines) + "\n"


def _drop_caches(skill: Path) -> None:
    for cache in (skill / "scripts").rglob("__pycache__"):
        shutil.rmtree(cache, ignore_errors=True)


def _is_foreign(target: Path, data: bytes, known: str | None) -> bool:
    """A file lies there that an install did not write, or that was changed since, and that is not the same anyway."""
    return target.is_file() and sha256_of(target) not in (known, hashlib.sha256(data).hexdigest())


def _differs(path: Path, digest: str) -> bool:
    return path.is_file() and sha256_of(path) != digest


def _refuse_links(skill: Path) -> None:
    """A skill folder, or scripts in it, that is a link would have us write somewhere else."""
    for path in (skill, skill / "scripts", skill / "scripts/debug_spyre", skill / "templates", skill / "references"):
        if path.is_symlink():
            raise EnvironmentTroubleError(
                f"{path} is a link to {os.readlink(path)}; installing would write there",
                next=f"rm {path} (only the link), then repeat the command",
            )


def _move_aside(skill: Path, rel: str) -> None:
    target = skill / ASIDE / rel
    make_folder(target.parent)
    if target.exists():
        return  # the first original stays; a later hand-made change is in git or was ours
    os.replace(skill / rel, target)


def _aside_files(skill: Path) -> tuple[str, ...]:
    folder = skill / ASIDE
    return tuple(str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file())


def _write_ignored(skill: Path) -> None:
    text = _reads(skill / ".gitignore")
    if text is None:
        write_atomically(skill / ".gitignore", IGNORED)
    elif "logs/" not in text.splitlines():
        write_atomically(skill / ".gitignore", text.rstrip("\n") + "\n" + IGNORED)


def _reads(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def _drop_empty(skill: Path) -> None:
    for folder in sorted((p for p in skill.rglob("*") if p.is_dir() and not p.is_symlink()), reverse=True):
        if "logs" not in folder.relative_to(skill).parts and not any(folder.iterdir()):
            folder.rmdir()
    if skill.is_dir() and not any(skill.iterdir()):
        skill.rmdir()
