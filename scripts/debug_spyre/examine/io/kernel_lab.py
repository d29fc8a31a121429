"""Front end or back end: torch-spyre's own OpSpec Lab captures the kernels of a failing test, and each is run alone.

A captured kernel is a script without the compiler's front end. Where one fails alone, the back end fails; where all run, the fault lies
before them or between them. The lab is part of torch-spyre's source tree: an installed copy without it is not examined.
"""

from __future__ import annotations

from pathlib import Path

from debug_spyre.examine.io.examination import Examination
from debug_spyre.host.files import read_ends, write_atomically
from debug_spyre.host.fingerprint import package_folder
from debug_spyre.host.interpreter import choose
from debug_spyre.vocabulary.words import RunStatus

CAPTURE = "tests/op_specs/capture.py"
MOST_KERNELS, EDGE = 6, 4096
_TEST = """import os, pytest
os.chdir({checkout!r})
code = pytest.main({words!r})
if code:
    raise RuntimeError(f"pytest ended with {{code}}")
"""


def lab_of(packages: Path | None) -> Path | None:
    """The capture script of the source tree that is installed; None where the tree has none, or only a copy is installed."""
    folder = package_folder(packages) if packages else None
    path = folder.parent / CAPTURE if folder else None
    return path if path is not None and path.is_file() else None


def split_by_kernels(work: Examination, words: list[str], error: str) -> list[str]:
    """What the captured kernels show of the error that the test ends with; nothing where there is no lab."""
    chosen = choose(work.place.checkout)
    lab = lab_of(chosen.packages)
    if lab is None:
        return []
    folder = work.place.folder.path / "kernels"
    script = folder / "run_test.py"
    folder.mkdir(mode=0o700, exist_ok=True)
    write_atomically(script, _TEST.format(checkout=str(work.place.checkout), words=["-q", "-x", *words]))
    out = folder / "captured"
    python = str(chosen.python)
    capture = (python, str(lab), str(script), "--out", str(out), "--save-inputs")
    taken = work.run(capture, env={}, name="ladder-capture")
    kernels = sorted(out.glob("*.py"), key=lambda p: p.stat().st_mtime)[-MOST_KERNELS:]
    if not kernels:
        return [f"kernels: none was reached ({taken.id}): the compiler's front end fails, before any kernel is made"]
    failing = []
    for kernel in reversed(kernels):  # the last one made is the one at which the test ended
        record = work.run((python, str(kernel)), env={}, name=f"ladder-{kernel.stem}"[:60])
        if record.status is not RunStatus.PASSED:
            _, tail, _ = read_ends(Path(work.place.folder.path / record.output), head=0, tail=EDGE)
            last = (tail.decode("utf-8", "replace").strip().splitlines() or [record.status.value])[-1][:160]
            failing.append(f"  {kernel.name} fails alone ({record.id}): {last}")
    where = f"{len(kernels)} captured by OpSpec Lab in {folder.name}/{out.name}"
    if failing:
        return [
            f"kernels: {where}; {len(failing)} of them fail without the front end: the back end fails on {error or 'them'}",
            *failing,
        ]
    return [f"kernels: {where}; each runs alone: the fault lies in the front end, or between the kernels"]
