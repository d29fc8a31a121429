"""Asks the registry of a torch_spyre in a child process, once a build; the answer is kept in the caches."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.host.interpreter import choose
from debug_spyre.host.provenance import revision_of
from debug_spyre.surface.asked import LeafTable, Registry, full_name
from debug_spyre.surface.builds import Build, build_from_answer, build_of
from debug_spyre.surface.io.package_files import DATA, Found, build_key, find_package, keep_text, load_surface
from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import Form, Surface
from debug_spyre.surface.verdicts import Index
from debug_spyre.vocabulary.errors import BadInputError, CardBusyError

SCRIPT = Path(__file__).parents[2] / "inside/debug_spyre_registry.py"
LEAVES = DATA / "leaves-2.13.0.tsv"
SECONDS = 120.0
REGISTRY = "-registry.json"
LONGEST = 300


@dataclass(frozen=True, slots=True)
class Asked:
    """The registry, or why it could not be asked."""

    registry: Registry | None
    how: str  # for people


def ask_registry(found: Found, surface: Surface, checkout: Path | None, *, caches: tuple[Path, ...] = ()) -> Asked:
    """What the package registers when it runs. Starts no device.

    A package that isn't installed, one whose compiled part is absent and one whose card is in use run with a stand-in for it.
    """
    if not _registers(found.folder):
        return Asked(None, "the source was read: the package has no _autoload to run")
    python = choose(checkout or Path.cwd()).python
    key = f"{build_key(found)}-{_stamp(python)}{REGISTRY}"
    for cache in caches:
        with suppress(OSError, ValueError, LookupError):
            return answer_of(json.loads((cache / key).read_text(encoding="utf-8")))
    told, trouble = None, ""
    if (found.folder / "_C.py").is_file() or (found.is_installed and any(found.folder.glob("_C*.so"))):
        told, trouble = _really(found, surface, python)
    if told is None:
        told, second = _in_child(found, surface, python, stub=True)
        if told is None:
            return Asked(None, f"the source was read: {second or trouble}")
        if trouble:
            told["soft"].insert(0, trouble)
    told["package"] = {"path": str(found.folder), "revision": revision_of(found.folder, checkout)}
    keep_text(caches, key, json.dumps(told))
    return answer_of(told)


def _really(found: Found, surface: Surface, python: Path) -> tuple[dict[str, Any] | None, str]:
    """With the compiled part, and so under the card's lock: never waiting for it."""
    from debug_spyre.card.lock import card_lock

    try:
        with card_lock(wait=0, command="op") as held:
            told, trouble = _in_child(found, surface, python, stub=False, descriptors=held.descriptors)
    except CardBusyError:
        return None, "the card is in use: asked with a stand-in for the compiled part"
    if told is not None and told["holds"]:
        return (
            None,
            f"importing it took the card ({', '.join(told['holds'])}): asked with a stand-in for the compiled part",
        )
    return told, f"with its compiled part it could not be asked: {trouble}" if told is None else ""


def _in_child(
    found: Found, surface: Surface, python: Path, *, stub: bool, descriptors: tuple[int, ...] = ()
) -> tuple[dict[str, Any] | None, str]:
    """(answer, "") or (None, why not)."""
    with tempfile.TemporaryDirectory(prefix="debug-spyre-op-") as name:
        folder = Path(name)
        question = {"folder": str(found.folder), "stub": stub, "cpp": list(_cpp(surface))}
        (folder / "question.json").write_text(json.dumps(question), encoding="utf-8")
        try:
            done = subprocess.run(
                [str(python), str(SCRIPT), str(folder / "question.json"), str(folder / "answer.json")],
                capture_output=True, text=True, errors="replace", env=_environment(found, folder), cwd=folder,
                timeout=_seconds(), pass_fds=descriptors, check=False, start_new_session=True, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, f"its import hung for {_seconds():g} s"
        except (OSError, subprocess.SubprocessError) as error:
            return None, f"{python} could not be started: {error}"
        with suppress(OSError, ValueError):
            told: dict[str, Any] = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
            if told["troubles"]:  # half of a registration would read as ops without a kernel
                return None, f"part of it can't be imported: {told['troubles'][0]}"
            return told, ""
        last = (done.stderr.strip().splitlines() or [""])[-1][:LONGEST]
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        return None, f"its registration ended with {ended}: {last}"


def _environment(found: Found, folder: Path) -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")
    if not found.is_installed:
        environment["PYTHONPATH"] = str(found.folder.parent)
    return environment


def _cpp(surface: Surface) -> Iterator[tuple[str, str]]:
    for site in surface.sites:
        if site.form is Form.CPP or (site.form is Form.CUSTOM_OP and site.detail == "C++ schema"):
            yield full_name(site.op, site.op.overload or "default"), site.place


def answer_of(told: dict[str, Any]) -> Asked:
    """The registry from what the child process told.

    Raises:
        LookupError, TypeError: it is no such thing.
    """
    registry = Registry(
        torch=told["torch"],
        stub=told["stub"],
        rows=told["overloads"],
        handlers=frozenset(told["handlers"]),
        refused=frozenset(told["refused"]),
        alone=frozenset(told["alone"]),
        leaves=LeafTable(LEAVES.read_text(encoding="ascii")),
        troubles=tuple(told["soft"]),
    )
    how = f"its registration ran under torch {registry.torch}"
    how += " with a stand-in for the compiled part" if registry.stub else ""
    return Asked(registry, how + "".join(f"; {t}" for t in registry.troubles[:2]))


def _registers(folder: Path) -> bool:
    with suppress(OSError):
        return "def _autoload" in (folder / "__init__.py").read_text(encoding="utf-8", errors="replace")
    return False


def _stamp(python: Path) -> str:
    """Changes with the interpreter's torch."""
    for path in sorted(python.parent.parent.glob("lib/python3*/site-packages/torch/version.py")):
        with suppress(OSError):
            return f"{path.stat().st_mtime_ns:x}"
    return "0"


def _seconds() -> float:
    """How long an import may take: DEBUG_SPYRE_ASK_SECONDS, else two minutes."""
    with suppress(ValueError):
        return float(os.environ.get("DEBUG_SPYRE_ASK_SECONDS") or SECONDS)
    return SECONDS


def all_packets(registry: Registry) -> list[OpName]:
    """Every packet of the dispatcher."""
    return [OpName(*name.split(".", 1)) for name in registry.names()]


def earlier_build(given: str, checkout: Path | None, *, caches: tuple[Path, ...]) -> tuple[Build, str]:
    """(the build, its name for people) of `--against GIVEN`.

    Raises:
        BadInputError: it is neither a folder with a torch_spyre, nor an answer of `op --all --json`, nor a revision asked before.
    """
    path = Path(given)
    if path.is_dir():
        found = find_package(checkout, given)
        surface = load_surface(found, caches=caches)
        asked = ask_registry(found, surface, checkout, caches=caches)
        if asked.registry is None:
            raise BadInputError(
                f"--against {given}: {asked.how}", next="debug-spyre op --against FILE, an answer of op --all --json"
            )
        return build_of(Index(surface), asked.registry, all_packets(asked.registry)), given
    if path.is_file():
        try:
            return build_from_answer(json.loads(path.read_text(encoding="utf-8"))), path.name
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInputError(
                f"--against {given}: not an answer of op --all --json ({error!r})",
                next="debug-spyre op --all --json > FILE",
            ) from error
    return _from_cache(given, caches)


def _from_cache(given: str, caches: tuple[Path, ...]) -> tuple[Build, str]:
    known = []
    kept = [path for cache in caches for path in cache.glob(f"*{REGISTRY}")]
    for path in sorted(kept, key=lambda p: p.stat().st_mtime, reverse=True):
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            told = json.loads(path.read_text(encoding="utf-8"))
            revision = str(told["package"]["revision"] or "")
            known += [revision[:12]] if revision else []
            if len(given) >= 4 and revision.startswith(given):
                registry = answer_of(told).registry
                assert registry is not None
                return build_of(Index(Surface()), registry, all_packets(registry)), revision[:12]
    raise BadInputError(
        f"--against {given}: no such folder or file, and no build of that revision was asked before "
        f"({'these were: ' + ' '.join(dict.fromkeys(known)) if known else 'none was'})",
        next="debug-spyre op --against DIR, with the folder of a torch_spyre checkout",
    )
