"""`op` on a package of 27,000 lines: <= 0.4 s cold, <= 0.2 s warm, whole process; provenance, doctor beside it."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
REPEATS = 7
PLAIN = "def f{n}(x, y=None):\n    z = [x, y, {n}]\n    if y is not None and x > {n}:\n        z.append(x + y)\n    return z\n\n\n"
OPS = ["mm", "bmm", "add", "mul", "div", "exp", "log", "sum", "mean", "relu", "tanh", "sqrt", "eq", "ge", "gt", "lt"]


def write_package(folder):
    """68 files, 27,000 lines, of which a few register ops as the real ones do."""
    (folder / "ops").mkdir(parents=True)
    (folder / "_inductor").mkdir()
    (folder / "__init__.py").write_text("")
    head = "import torch\naten = torch.ops.aten\n"
    kernels = (
        head
        + "COMPILED_OPS = [\n"
        + "".join(f"    aten.{o},\n" for o in OPS)
        + "]\nregister_torch_compile_kernel(COMPILED_OPS)\n"
    )
    (folder / "ops/eager.py").write_text(kernels)
    lowerings = head + "".join(
        f"@register_spyre_lowering(torch.ops.aten.{o}.default)\ndef lower_{o}(x):\n    return x\n\n\n" for o in OPS
    )
    (folder / "_inductor/lowering.py").write_text(lowerings + "".join(PLAIN.format(n=n) for n in range(200)))
    for number in range(65):
        text = "".join(PLAIN.format(n=n) for n in range(57))
        extra = "register_pass = None\n" if number % 3 == 0 else ""
        (folder / f"_inductor/pass_{number}.py").write_text(head + extra + text)


def used():
    """Processor seconds of all children so far: on a busy machine these count."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def timed(words, cwd, env):
    start, before = time.perf_counter(), used()
    subprocess.run(
        [sys.executable, "-m", "debug_spyre", *words], cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - start, used() - before


def said(rows):
    whole, cpu = zip(*rows, strict=True)
    return f"median {statistics.median(whole):.3f} s, best {min(whole):.3f} s, processor {statistics.median(cpu):.3f} s"


def bare(cwd):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], cwd=cwd, check=True)
    return time.perf_counter() - start


def main():
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        given = os.environ.get("DEBUG_SPYRE_BENCH_PACKAGE")
        package = Path(given) if given else root / "torch_spyre"
        if not given:
            write_package(package)
        count = sum(p.read_text(errors="replace").count("\n") for p in package.rglob("*.py"))
        none = {**os.environ, "PYTHONPATH": str(SCRIPTS), "XDG_CACHE_HOME": "/proc/none"}
        warm = {**none, "XDG_CACHE_HOME": str(root / "cache")}
        words = ["op", "aten.mm", "--package", str(package)]
        start = [bare(root) for _ in range(REPEATS)]
        cold = [timed(words, root, none) for _ in range(REPEATS)]
        timed(words, root, warm)
        kept = [timed(words, root, warm) for _ in range(REPEATS)]
        every = [timed([*words[:1], "--all", *words[2:]], root, warm) for _ in range(REPEATS)]
        print(f"package: {count} lines; Python alone {statistics.median(start):.3f} s")
        print(f"op cold   {said(cold)} (budget 0.4)")
        print(f"op warm   {said(kept)} (budget 0.2)")
        print(f"op --all  {said(every)}, warm")
        checkout = Path(__file__).parents[2]
        logs = {**none, "DEBUG_SPYRE_LOGS": str(root / "logs"), "DEBUG_SPYRE_DEVICES": str(root / "device")}
        (root / "device").touch()
        doctor = [timed(["doctor"], checkout, logs) for _ in range(REPEATS)]
        print(f"doctor    {said(doctor)} (budget 1)")
        code = "import time; from pathlib import Path; from debug_spyre.host.provenance import provenance; p = provenance(Path('.'))\nt = time.perf_counter(); provenance(Path('.')); print(f'provenance {time.perf_counter() - t:.3f} s in a process (aim 0.05)')"
        subprocess.run([sys.executable, "-c", code], cwd=checkout, env=none, check=True)


if __name__ == "__main__":
    main()
