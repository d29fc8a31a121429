"""Ready experiments on a run: again and again, each test alone, alone against the matrix, an empty compile cache."""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace

from debug_spyre.runs.io.jobs import SCRIPTS, JobSpec
from debug_spyre.vocabulary.errors import UsageError

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.runs.io.series import main; sys.exit(main(sys.argv[2:]))"
CACHE = "TORCHINDUCTOR_CACHE_DIR"
KERNELS = "SPYRE_KERNEL_CACHE_DIR"  # torch-spyre keeps compiled kernels below Inductor's cache, or here (2026-09)


def with_experiment(
    spec: JobSpec, *, repeat: int | None = None, isolate: bool = False, alone: bool = False, fresh_cache: bool = False
) -> JobSpec:
    """The job changed into the experiment: one job, one hold of the lock, several pytest processes one after another.

    Raises:
        UsageError: a number that makes no sense.
    """
    if fresh_cache:
        cache = spec.folder / "cache" / secrets.token_hex(4)
        spec = replace(
            spec,
            env={**spec.env, CACHE: str(cache), KERNELS: str(cache / "kernels")},
            notes=(*spec.notes, f"an empty compile cache: {cache}"),
        )
    if repeat is not None and repeat < 2:
        raise UsageError(f"--repeat {repeat} repeats nothing", next="debug-spyre run --repeat 5 ...")
    kind = "repeat" if repeat else "isolate" if isolate else "alone" if alone else None
    if kind is None:
        return spec
    driver = (sys.executable, "-P", "-c", _BOOT, str(SCRIPTS), kind, str(repeat or 0), "--")
    return replace(spec, argv=(*driver, *spec.argv))
