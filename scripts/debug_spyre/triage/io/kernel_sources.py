"""Finds the wrappers of the kernels that a run's failures name, in the compile cache that the run used."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from debug_spyre.host.files import read_ends
from debug_spyre.host.spyre_variables import compile_cache
from debug_spyre.triage.kernels import Origin, kernels_in, origins, said
from debug_spyre.vocabulary.evidence import Evidence

MOST_KERNELS, MOST_WRAPPERS, LARGEST = 8, 600, 4 << 20
EDGE = 200_000


def kernel_lines(evidence: Evidence, output: Path, env: Mapping[str, str]) -> list[str]:
    """A line for each kernel that a failure or the end of the output names: its ops, and the source lines that called them."""
    words = [text for failure in evidence.failures for text in (failure.message, failure.cause) if text]
    if evidence.failures:
        _, tail, _ = read_ends(output, head=0, tail=EDGE)
        words.append(tail.decode("utf-8", "replace"))
    wanted = kernels_in("\n".join(words))[:MOST_KERNELS]
    found = _origins(compile_cache(env), wanted) if wanted else {}
    return [said(name, found[name]) for name in wanted if found.get(name)]


def _origins(cache: Path, wanted: list[str]) -> dict[str, list[tuple[Origin, ...]]]:
    """The newest wrappers first: of two graphs with a kernel of one name the failing one was compiled last."""
    wrappers = []
    for path in cache.glob("??/*.py"):
        with suppress(OSError):
            seen = path.stat()
            wrappers += [(seen.st_mtime, path)] if seen.st_size <= LARGEST else []
    found: dict[str, list[tuple[Origin, ...]]] = {}
    for _, path in sorted(wrappers, reverse=True)[:MOST_WRAPPERS]:
        with suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
            if any(name in text for name in wanted):
                for name, ops in origins(text).items():
                    if name in wanted and ops and ops not in found.setdefault(name, []):
                        found[name].append(ops)
    return found
