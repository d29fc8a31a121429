"""make release-check: sdist and wheel build from a clone and from each other; skill and demo work from the wheel.

Prints each step with its seconds; ends with status 1 and the output of the first step that fails.
"""

import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def step(what, *words, cwd):
    began = time.monotonic()
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True)
    print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)
    if done.returncode:
        sys.exit(
            f"failed with status {done.returncode}: {' '.join(map(str, words))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout


def wheel_of(folder):
    (found,) = (folder / "dist").glob("*.whl")
    return found


def files_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def main():
    with tempfile.TemporaryDirectory(prefix="debug-spyre-release-") as name:
        base = Path(name)
        clone = base / "clone"
        step("clone", "git", "clone", "--quiet", ROOT, clone, cwd=base)
        build = (sys.executable, "-m", "build", "--no-isolation", ".")
        step("sdist and wheel from the clone", *build, cwd=clone)
        (sdist,) = (clone / "dist").glob("*.tar.gz")
        step("unpack the sdist", "tar", "xzf", sdist, cwd=base)
        unpacked = base / sdist.name.removesuffix(".tar.gz")
        step("sdist and wheel from the sdist", *build, cwd=unpacked)
        if files_of(wheel_of(clone)) != files_of(wheel_of(unpacked)):
            sys.exit("the wheel of the clone and the wheel of the sdist hold different files")
        step("new environment", sys.executable, "-m", "venv", base / "venv", cwd=base)
        python = base / "venv/bin/python"
        step(
            "install the wheel with [demo]",
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            f"{wheel_of(clone)}[demo]",
            cwd=base,
        )
        command = base / "venv/bin/debug-spyre"
        checkout = base / "checkout"
        step("git init", "git", "init", "--quiet", checkout, cwd=base)
        print(step("install the skill", command, "install", checkout, cwd=base))
        step("demo from the wheel", command, "demo", "--keep", base / "demo", "--json", cwd=base)


if __name__ == "__main__":
    main()
