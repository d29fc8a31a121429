"""The finished sample in docs/sample: the demo's sessions as they end, made by `make sample`.

python tests/demo/make_sample.py            runs the demo and copies its sessions, without what only this machine needs
python tests/demo/make_sample.py --redraw   only draws the pages anew from the journals that are there

The demo runs below /tmp and by a Python that is found there, so that no path of this machine gets into the sample.
"""

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "docs/sample"
PLACE, PYTHON = Path("/tmp/debug-spyre-demo"), Path("/tmp/debug-spyre-python")
LEFT_OUT = (
    "tree",
    "investigate",
    "*.map.json",
    "*.zip",
    "*.pt",
    "*.safetensors",
    "supervisor.log",
    "journal.lock",
    "*.head-*",
)


def main(words: list[str]) -> int:
    """Make the sample, or draw its pages anew."""
    if words != ["--redraw"]:
        _run_demo()
    redraw(SAMPLE)
    found = _private(SAMPLE)
    for line in found[:10]:
        print(f"of this machine: {line}", file=sys.stderr)
    size = sum(p.stat().st_size for p in SAMPLE.rglob("*") if p.is_file())
    print(f"{SAMPLE.relative_to(ROOT)}: {size / 1024:.0f} kB")
    return 1 if found else 0


def redraw(sample: Path) -> None:
    """Draw the page of each session from its journal."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from debug_spyre.page.io import page
    from debug_spyre.session.io.workspace import session_folders

    for folder in session_folders(sample):
        page.render(folder)
    page.render_index(sample)


def _run_demo() -> None:
    for path in (PLACE, SAMPLE):
        shutil.rmtree(path, ignore_errors=True)
    PYTHON.unlink(missing_ok=True)
    PYTHON.symlink_to(Path(sys.executable).parents[1])
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("DEBUG_SPYRE", "SPYRE_", "CLAUDE", "PYTHON", "VIRTUAL"))
    }
    own = {"USER": "demo", "LOGNAME": "demo", "TZ": "UTC", "PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin"}
    words = [str(PYTHON / "bin/python"), "-m", "debug_spyre", "demo", "--keep", str(PLACE), "--json"]
    done = subprocess.run(words, env=env | own, stdout=subprocess.PIPE, text=True, check=True)
    logs = Path(json.loads(done.stdout)["index"]).parent
    for session in json.loads(done.stdout)["sessions"]:
        stem = session["session"]
        shutil.copytree(logs / stem, SAMPLE / stem, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.rmtree(PLACE)
    PYTHON.unlink()


def _private(sample: Path) -> list[str]:
    """Lines that name this machine, its user or its folders."""
    words = {socket.gethostname(), str(Path.home()), str(ROOT)} | ({getpass.getuser()} - {"root"})
    found = []
    for path in sorted(p for p in sample.rglob("*") if p.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{path.relative_to(sample)}: {w}" for w in words if w in text]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
