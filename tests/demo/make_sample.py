"""The finished sample in docs/sample: the pages of the demo's sessions and the bundle that it hands over, made by `make sample`.

The demo runs from a copy of the last commit below /tmp and by a Python that is found there, so that no path of this
machine gets into the sample; what does so nevertheless is named, and the exit status is 1.
"""

import getpass
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "docs/sample"
PLACE, SOURCE, PYTHON = (
    Path("/tmp/debug-spyre-demo"),
    Path("/tmp/debug-spyre-source"),
    Path("/tmp/debug-spyre-python"),
)


def main() -> int:
    """Make the sample."""
    _prepare()
    own = {"USER": "demo", "LOGNAME": "demo", "TZ": "UTC", "PYTHONPATH": str(SOURCE / "scripts")}
    kept = ("DEBUG_SPYRE", "SPYRE_", "CLAUDE", "PYTHON", "VIRTUAL")
    env = {k: v for k, v in os.environ.items() if not k.startswith(kept)} | own
    words = [str(PYTHON / "bin/python"), "-m", "debug_spyre", "demo", "--keep", str(PLACE), "--json"]
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, check=True)
    sessions = json.loads(done.stdout)["sessions"]
    shutil.rmtree(SAMPLE / "bundle", ignore_errors=True)
    for page in SAMPLE.glob("*.html"):
        page.unlink()
    for session in sessions:
        shutil.copy(session["log"], SAMPLE)
    handed_over = next(s for s in sessions if s["status"] == "blocked")
    shutil.copytree(Path(handed_over["issue"]).parent, SAMPLE / "bundle")
    for path in (PLACE, SOURCE):
        shutil.rmtree(path)
    PYTHON.unlink()
    found = private_words(SAMPLE)
    for line in found[:10]:
        print(f"of this machine: {line}", file=sys.stderr)
    return 1 if found else 0


def _prepare() -> None:
    for path in (PLACE, SOURCE):
        shutil.rmtree(path, ignore_errors=True)
    SAMPLE.mkdir(exist_ok=True)
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(SOURCE, filter="data")
    PYTHON.unlink(missing_ok=True)
    PYTHON.symlink_to(Path(sys.executable).parents[1])


def private_words(sample: Path) -> list[str]:
    """Files that name this machine, its user or its folders."""
    words = {str(Path.home()), str(ROOT), getpass.getuser(), socket.gethostname()} - {"/root", "root"}
    told = {w for w in words if len(w) > 4}
    files = sorted(p for p in sample.rglob("*") if p.is_file())
    return [f"{p.relative_to(sample)}: {w}" for p in files for w in told if w.encode() in p.read_bytes()]


if __name__ == "__main__":
    sys.exit(main())
