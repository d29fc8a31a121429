"""The demo's surroundings: a copy of the plugin repo in a git repository of its own, and a simulated card with two faults."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError

PACKAGE = Path(__file__).resolve().parents[1]
PLACES = (PACKAGE.parents[1] / "tests/simulated_card", PACKAGE / "bundle/simulated_card")  # a checkout, a wheel
ENTRY_POINT = "[torch.backends]\ntorch_spyre = torch_spyre:_autoload\n"
NEEDED = ("torch", "numpy", "pytest")
FAULTS = "partial_reduction:op=mean:width=128,layout_width:op=mul"
USERS_FILE = "spyre_inference/platform.py"
USERS_EDIT = "\n# a colleague's unfinished thought, not committed: \u2603 '\"</script>\n"
PATCHED_OP = "aten.mean"
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

    @property
    def logs(self) -> Path:
        """Where the sessions of the demo's checkout lie."""
        return self.checkout / ".claude/skills/debug-spyre/logs"

    @staticmethod
    def has_patch_for(op: str | None) -> bool:
        """The demo has a source change that goes round a fault of this op."""
        return (op or "").startswith(PATCHED_OP)

    def patch_for(self, op: str | None) -> bool:
        """Make the source change that goes round a wrong mean; False where this op has none.

        Raises:
            BadInputError: the plugin repo's source is not as the demo knows it.
        """
        if not self.has_patch_for(op):
            return False
        path = self.checkout / PATCHED
        text = path.read_text(encoding="utf-8")
        if BEFORE not in text:
            raise BadInputError(f"{path} is not the source that the demo patches", next="make demo in a clean checkout")
        path.write_text(text.replace(BEFORE, AFTER), encoding="utf-8")
        return True

    @staticmethod
    def patch_text() -> str:
        """That change, as a diff shows it."""
        return "\n".join([*(f"  -{x}" for x in BEFORE.splitlines()), *(f"  +{x}" for x in AFTER.splitlines())])


def digest_of(path: Path) -> str:
    """Hex digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def prepare(into: Path | None, faults: str = FAULTS) -> Demo:
    """Copy the plugin repo, commit it, add the user's edit; `faults` as the simulated card takes them.

    Raises:
        EnvironmentTroubleError: the simulated card, torch, numpy or pytest is missing, or the folder is not empty.
    """
    source = next((place for place in PLACES if (place / "plugin_repo").is_dir()), None)
    if source is None:
        raise EnvironmentTroubleError(
            "an installed skill does not contain the simulated card that the demo needs",
            next="run `make demo` in a clone of the project, or `debug-spyre demo` from its wheel",
        )
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EnvironmentTroubleError(
            f"{sys.executable} has no {', '.join(missing)}, which the demo needs",
            next="pip install 'debug-spyre[demo]', or run `make demo` in a clone of the project",
        )
    base = into or Path(tempfile.mkdtemp(prefix="debug-spyre-demo-"))
    if into is not None and into.exists() and any(into.iterdir()):
        raise EnvironmentTroubleError(f"{into} is not empty", next="debug-spyre demo --keep EMPTY_FOLDER")
    checkout = base.resolve() / "spyre-inference"
    shutil.copytree(source / "plugin_repo", checkout, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    git = ["git", "-C", str(checkout), "-c", "user.name=demo", "-c", "user.email=demo@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "plugin repo of the demo"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    users = checkout / USERS_FILE
    users.write_text(users.read_text(encoding="utf-8") + USERS_EDIT, encoding="utf-8")
    python = _make_python(base.resolve() / "environment", source / "backend")
    return Demo(checkout, _environment(base.resolve(), python, faults), digest_of(users))


def _make_python(venv: Path, backend: Path) -> Path:
    """A virtual environment with the simulated torch_spyre, and everything that this Python has besides."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, capture_output=True)
    packages = next(venv.glob("lib/python3*/site-packages"))
    (packages / "base.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    shutil.copytree(backend / "torch_spyre", packages / "torch_spyre", ignore=shutil.ignore_patterns("__pycache__"))
    info = packages / "torch_spyre-0.0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-spyre\nVersion: 0.0.1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINT, encoding="utf-8")
    return venv / "bin/python"


def _environment(base: Path, python: Path, faults: str) -> dict[str, str]:
    device = str(base / "device")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEBUG_SPYRE_", "SPYRE_SIM_", "CLAUDE"))}
    return {
        **kept,
        "DEBUG_SPYRE_PYTHON": str(python),
        "DEBUG_SPYRE_DEVICES": device,
        "DEBUG_SPYRE_LOCK_DIR": str(base / "lock"),
        "SPYRE_SIM_DEVICE": device,
        "SPYRE_SIM_FAULTS": faults,
    }
