"""The demo's surroundings: a copy of the plugin repo in a git repository of its own, and a simulated card with two faults."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError

ROOT = Path(__file__).resolve().parents[3]
PLUGIN_REPO = ROOT / "tests" / "simulated_card" / "plugin_repo"
FAULTS = "partial_reduction:op=mean:width=128,layout_width:op=mul"
USERS_FILE = "spyre_inference/platform.py"
USERS_EDIT = "\n# a colleague's unfinished thought, not committed: \u2603 '\"</script>\n"
PATCHED = "spyre_inference/custom_ops/rms_norm.py"
BEFORE = "    mean = torch.mean(small * small, dim=-1, keepdim=True)\n"
AFTER = (
    "    squares = (small * small).reshape(*small.shape[:-1], -1, 64)\n"
    "    mean = torch.mean(torch.mean(squares, dim=-1), dim=-1, keepdim=True)\n"
)


@dataclass(frozen=True, slots=True)
class Demo:
    """One demo: its checkout, the environment of its commands, and the user's own edit."""

    checkout: Path
    env: dict[str, str]
    users_digest: str

    def is_users_edit_untouched(self) -> bool:
        """The user's uncommitted file is byte-identical."""
        return digest_of(self.checkout / USERS_FILE) == self.users_digest

    def patch(self) -> None:
        """The source change that works round the first fault.

        Raises:
            BadInputError: the plugin repo's source is not as the demo knows it.
        """
        path = self.checkout / PATCHED
        text = path.read_text(encoding="utf-8")
        if BEFORE not in text:
            raise BadInputError(f"{path} is not the source that the demo patches", next="make demo in a clean checkout")
        path.write_text(text.replace(BEFORE, AFTER), encoding="utf-8")


def digest_of(path: Path) -> str:
    """Hex digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def prepare(into: Path | None) -> Demo:
    """Copy the plugin repo, commit it, add the user's edit.

    Raises:
        EnvironmentTroubleError: this is no source checkout, or the simulated card is not installed.
    """
    if not PLUGIN_REPO.is_dir():
        raise EnvironmentTroubleError(
            "the demo needs the source checkout: the simulated card is no part of an installed skill",
            next="git clone the project, then make demo",
        )
    if importlib.util.find_spec("torch_spyre") is None:
        raise EnvironmentTroubleError("the simulated card is not installed in this Python", next="make demo")
    base = into or Path(tempfile.mkdtemp(prefix="debug-spyre-demo-"))
    if into is not None and into.exists() and any(into.iterdir()):
        raise EnvironmentTroubleError(f"{into} is not empty", next="debug-spyre demo --keep EMPTY_FOLDER")
    checkout = base.resolve() / "spyre-inference"
    shutil.copytree(PLUGIN_REPO, checkout, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    git = ["git", "-C", str(checkout), "-c", "user.name=demo", "-c", "user.email=demo@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "plugin repo of the demo"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    users = checkout / USERS_FILE
    users.write_text(users.read_text(encoding="utf-8") + USERS_EDIT, encoding="utf-8")
    return Demo(checkout, _environment(base.resolve()), digest_of(users))


def _environment(base: Path) -> dict[str, str]:
    device = str(base / "device")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEBUG_SPYRE_", "SPYRE_SIM_", "CLAUDE"))}
    return {
        **kept,
        "DEBUG_SPYRE_PYTHON": sys.executable,
        "DEBUG_SPYRE_DEVICES": device,
        "DEBUG_SPYRE_LOCK_DIR": str(base / "lock"),
        "SPYRE_SIM_DEVICE": device,
        "SPYRE_SIM_FAULTS": FAULTS,
    }
