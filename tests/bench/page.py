"""Rendering: 1,000 experiments, a matrix of 10,000, 400 members: <= 1 s and <= 1 MB; a small session beside it."""

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from debug_spyre.page.io import page

HERE = Path(__file__).parent
SCRIPTS = Path(page.__file__).parents[3]
WHOLE = "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from debug_spyre.page.io import page; from debug_spyre.session.io.workspace import Folder; page.render(Folder(Path(sys.argv[2])))"


def _story():
    spec = importlib.util.spec_from_file_location("page_tests_story", HERE.parent / "page/story.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(folder, repeats=7):
    """(median wall, median CPU) seconds of a render in a warm process."""
    page.render(folder)
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        page.render(folder)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def whole_process(folder, repeats=7):
    """Median seconds of a process that renders once, and of a bare Python."""

    def once(*words):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True)
        return time.perf_counter() - start

    once("-c", WHOLE, str(SCRIPTS), str(folder.path))
    renders = [once("-c", WHOLE, str(SCRIPTS), str(folder.path)) for _ in range(repeats)]
    return statistics.median(renders), statistics.median([once("-c", "pass") for _ in range(repeats)])


def main():
    story = _story()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        os.environ["XDG_CACHE_HOME"] = str(root / "cache")
        rows = [
            ("huge", story.huge(root / "huge").folder),
            ("usual", story.realistic(root / "usual", ending="shut").folder),
        ]
        for name, folder in rows:
            wall, cpu = measure(folder)
            octets, twin = folder.html.stat().st_size, folder.markdown.stat().st_size
            within = (
                " (budget 1 s of CPU, 1 MB: " + ("held)" if cpu <= 1 and octets <= 1_000_000 else "MISSED)")
                if name == "huge"
                else ""
            )
            print(f"render {name:6s} {wall:.3f} s wall, {cpu:.3f} s CPU, {octets:,} bytes, twin {twin:,}{within}")
        wall, bare = whole_process(rows[1][1])
        print(f"process that renders the usual session once {wall:.3f} s, bare Python {bare:.3f} s")
        start = time.perf_counter()
        page.render_index(root / "huge")
        print(f"index of the huge session {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
