"""Tests on the real torch_spyre: `make real PY=INTERPRETER` names an environment; without one each says that it proves nothing."""

import json
import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
NOT_PROVED = "not proved on the real package"
MAIN = f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); from debug_spyre.cli import main; sys.exit(main())"
INSIDE = ROOT / "scripts/debug_spyre/inside"


@pytest.fixture(scope="session")
def package():
    """The real package; a test without it is skipped, and counted as not proved."""
    python = os.environ.get("REAL_TORCH_SPYRE")
    if not python:
        pytest.skip(f"{NOT_PROVED}: make real PY=INTERPRETER")
    from tests.real_card import environment

    return environment.real_package(python, environment.default_work())


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory):
    """One compile cache for all tests: a kernel is compiled once."""
    return tmp_path_factory.mktemp("inductor")


class Bench:
    """A checkout whose interpreter has the real package, with a card of its own."""

    def __init__(self, folder, package, cache):
        self.package = package
        self.checkout, self.device = folder / "checkout", folder / "card"
        self.checkout.mkdir()
        self.device.touch()
        subprocess.run(["git", "init", "-q", str(self.checkout)], check=True)
        self.write("pyproject.toml", '[project]\nname = "spyre-inference"\nversion = "0.0.1"\n')
        more = {"DEBUG_SPYRE_LOCK_DIR": folder / "locks", "TORCHINDUCTOR_CACHE_DIR": cache, "HOME": folder}
        self.env = package.variables(self.device, **more)

    def write(self, name, text):
        path = self.checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def python(self, text, *, inside=False, env=None, timeout=300):
        """A script in a process on the card."""
        path = {"PYTHONPATH": str(INSIDE)} if inside else {}
        words = [str(self.package.python), str(self.write("script.py", text))]
        return subprocess.run(
            words, cwd=self.checkout, env=self.env | path | (env or {}), capture_output=True, text=True, timeout=timeout
        )

    def call(self, *words, env=None, timeout=600):
        """The command, as people start it."""
        return subprocess.run(
            [sys.executable, "-c", MAIN, *map(str, words)],
            cwd=self.checkout, env=self.env | (env or {}), capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip

    def json(self, *words, env=None):
        done = self.call(words[0], "--json", *words[1:], env=env)
        assert done.stdout, done.stderr
        return json.loads(done.stdout) | {"exit": done.returncode}

    def line(self, text):
        """A command line as our answers give it."""
        return self.call(*shlex.split(text)[1:])


@pytest.fixture
def bench(tmp_path, package, compile_cache):
    return Bench(tmp_path, package, compile_cache)
