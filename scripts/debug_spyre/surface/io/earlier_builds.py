"""The other build of `op --against`: a folder, an answer that was kept, or a revision that was asked before."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from debug_spyre.surface.asked import Registry
from debug_spyre.surface.builds import Build, build_from_answer, build_of
from debug_spyre.surface.index import Index
from debug_spyre.surface.io.asking import REGISTRY, answer_of, ask_registry
from debug_spyre.surface.io.package_files import find_package, load_surface
from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import Surface
from debug_spyre.vocabulary.errors import BadInputError


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
