"""Asks the target's own interpreter what it would import: chained .pth files, editable installs, namespaces and base environments count."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 30
NAMES = ("torch", "vllm", "pytest", "torch_spyre", "spyre_inference")
_SCRIPT = """
import importlib.metadata as m, importlib.util as u, json, sys
def one(name):
    try:
        spec = u.find_spec(name)
    except Exception as error:
        return {"trouble": type(error).__name__ + ": " + str(error)}
    if spec is None:
        return None
    try:
        version = m.version(name.replace("_", "-"))
    except Exception:
        version = None
    places = list(spec.submodule_search_locations or ())
    return {"version": version, "places": places or [spec.origin]}
print(json.dumps({"python": list(sys.version_info[:3]), "prefix": sys.prefix, "found": {n: one(n) for n in sys.argv[1:]}}))
"""


@dataclass(frozen=True, slots=True)
class Python:
    """What the interpreter said; `trouble` where it could not be asked."""

    version: tuple[int, ...] | None
    found: dict[str, dict[str, Any] | None]
    trouble: str = ""

    def has(self, name: str) -> bool | None:
        """It would import it; None where nobody can tell."""
        return None if self.version is None else bool(self.found.get(name))

    def said(self, name: str) -> str:
        """Its version in words."""
        seen = self.found.get(name)
        if self.version is None:
            return "not known"
        if not seen:
            return "not found"
        return str(seen.get("trouble") or seen.get("version") or "of unknown version")

    def places(self, name: str) -> list[Path]:
        """Its folders."""
        return [Path(p) for p in (self.found.get(name) or {}).get("places", ()) if p]


def ask_python(python: Path, where: Path) -> Python:
    """What that interpreter finds, started in the folder where the tests would start; it imports none of it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONHOME"}
    try:
        done = subprocess.run(
            [str(python), "-c", _SCRIPT, *NAMES], capture_output=True, text=True, errors="replace", cwd=where,
            env=environment, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        told = json.loads(done.stdout.strip().splitlines()[-1])
        return Python(tuple(told["python"]), told["found"])
    except subprocess.TimeoutExpired:
        return Python(None, {}, f"{python} gave no answer in {SECONDS} s")
    except OSError as error:
        return Python(None, {}, f"{python} can't be started: {error.strerror or error}")
    except (IndexError, ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:200]
        return Python(None, {}, f"{python} gave no answer: {last}")
