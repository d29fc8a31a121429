"""A real git checkout and the real command, run as a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gate.conftest import folder, interpreter, place, repository

__all__ = ["folder", "interpreter", "place", "repository"]

COMMAND = Path(__file__).parents[2] / "scripts/debug-spyre"


class Command:
    """The command in one checkout."""

    def __init__(self, cwd, env):
        self.cwd = cwd
        self.env = env

    def __call__(self, *words, stdin="", status=0, **env):
        done = subprocess.run(
            [COMMAND, *words],
            cwd=self.cwd,
            env={**self.env, **env},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == status, f"{words} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *words, **more):
        return json.loads(self(*words, "--json", **more).stdout)


@pytest.fixture
def checkout(tmp_path):
    """A git checkout with one commit and one uncommitted edit of the user's."""
    root = tmp_path / "check out"
    (root / "tests").mkdir(parents=True)
    (root / "tests/test_a.py").write_text("def test_b(): pass\n")
    (root / "plugin.py").write_text("x = 1\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@e", "-C", str(root)]
    subprocess.run([*git[:1], "init", "-q", str(root)], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "start"], check=True)
    (root / "plugin.py").write_text("x = 1  # the user's own edit\n")
    return root


@pytest.fixture
def ds(checkout):
    """The command in that checkout."""
    return Command(checkout, {**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable})
