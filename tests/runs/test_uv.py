"""With the real uv and a real lock file, no network: uv takes a local build back, our run does not let it."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
pytestmark = pytest.mark.skipif(UV is None, reason="uv is not installed here")

BACKEND = """
import base64, hashlib, pathlib, zipfile
def build_wheel(where, config_settings=None, metadata_directory=None):
    name = "torch_spyre-0.0.1"
    files = {str(p): p.read_bytes() for p in pathlib.Path("torch_spyre").rglob("*.py")}
    files[f"{name}.dist-info/METADATA"] = b"Metadata-Version: 2.1\\nName: torch-spyre\\nVersion: 0.0.1\\n"
    files[f"{name}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{k},sha256={digest(v)},{len(v)}\\n" for k, v in files.items()) + f"{name}.dist-info/RECORD,,\\n"
    files[f"{name}.dist-info/RECORD"] = record.encode()
    with zipfile.ZipFile(pathlib.Path(where) / f"{name}-py3-none-any.whl", "w") as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return f"{name}-py3-none-any.whl"
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "torch-spyre"\nversion = "0.0.1"\n'


def git(folder, *words):
    subprocess.run(
        ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e@x", *words], check=True, capture_output=True
    )


class Pinned:
    """A project whose uv.lock pins a tiny torch-spyre to a revision of a local repository."""

    def __init__(self, place, folder):
        self.place = place
        self.backend = folder / "torch-spyre"
        (self.backend / "torch_spyre").mkdir(parents=True)
        (self.backend / "pyproject.toml").write_text(PROJECT)
        (self.backend / "backend.py").write_text(BACKEND)
        (self.backend / "torch_spyre/__init__.py").write_text("WHICH = 'pinned'\n")
        git(self.backend, "init", "-q")
        git(self.backend, "add", ".")
        git(self.backend, "commit", "-qm", "x")
        place.write(
            "pyproject.toml",
            '[project]\nname = "plugin"\nversion = "0"\nrequires-python = ">=3.11"\ndependencies = ["torch-spyre"]\n'
            f'[tool.uv.sources]\ntorch-spyre = {{ git = "{self.backend.as_uri()}" }}\n',
        )
        self.env = place.env
        for name in ("DEBUG_SPYRE_PYTHON", "VIRTUAL_ENV", "UV_PYTHON"):  # nothing may lead uv into our own environment
            self.env.pop(name, None)
        self.python = place.checkout / ".venv/bin/python"
        self.env |= {
            "UV_CACHE_DIR": str(folder / "uv cache"),
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "PATH": f"{Path(UV).parent}{os.pathsep}{os.environ['PATH']}",
        }
        self.uv("venv", "--python", sys._base_executable, ".venv")
        self.uv("sync")
        packages = next((place.checkout / ".venv/lib").glob("python*/site-packages"))
        (packages / "lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")  # pytest, without a download

    def uv(self, *words):
        done = subprocess.run([UV, *words], cwd=self.place.checkout, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def install_local_build(self):
        (self.backend / "torch_spyre/__init__.py").write_text("WHICH = 'local'\n")
        self.uv(
            "pip",
            "install",
            "--no-deps",
            "--force-reinstall",
            "--no-cache",
            "--python",
            str(self.python),
            str(self.backend),
        )

    def which(self):
        return self.uv("run", "--no-sync", "python", "-c", "import torch_spyre; print(torch_spyre.WHICH)").strip()


@pytest.fixture
def pinned(place, tmp_path):
    return Pinned(place, tmp_path)


def test_a_local_build_survives_our_run_and_not_a_plain_uv_run(pinned):
    place = pinned.place
    place.write("test_it.py", "import torch_spyre\ndef test_it(): assert torch_spyre.WHICH == 'local'\n")
    pinned.install_local_build()
    assert pinned.which() == "local"
    text = place.call("run", "test_it.py")
    assert text.returncode == 0, text.stdout + text.stderr
    assert "python: uv run --no-sync: the installed torch-spyre is a local build" in text.stdout
    assert pinned.which() == "local"
    taken_back = pinned.uv("run", "python", "-c", "import torch_spyre; print(torch_spyre.WHICH)")
    assert "pinned" in taken_back and "Uninstalled 1 package" in taken_back, "uv really does take it back"


def test_uv_taking_the_build_back_under_a_run_is_found_and_makes_78(pinned):
    place = pinned.place
    pinned.install_local_build()
    place.write(
        "test_it.py", f"import subprocess\ndef test_it(): subprocess.run([{UV!r}, 'sync', '--inexact'], check=True)\n"
    )
    done = place.json("run", "test_it.py")
    assert done["status"] == "invalid" and done["status_of_process"] == 78, done
    assert pinned.which() == "pinned"


def test_plain_uv_run_is_refused_where_it_would_sync(pinned):
    done = pinned.place.call("exec", "--", "uv", "run", "python", "x y.py")
    assert done.returncode == 64
    assert "next: debug-spyre exec -- uv run --no-sync python 'x y.py'" in done.stderr
