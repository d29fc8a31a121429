"""What `install` proposes next does something: after a dry run it is the install itself."""

import os
import shlex
import subprocess
import sys

import pytest
from tests.verbs.conftest import COMMAND


def install(*words, cwd, home):
    env = {**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable, "HOME": str(home)}
    env.pop("CLAUDE_CONFIG_DIR", None)
    done = subprocess.run([COMMAND, "install", *words], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "options", [[], ["--guard"], ["--personal"], ["--personal", "--guard"], ["--bob"], ["--agents"]]
)
def test_after_a_dry_run_comes_the_install_itself(checkout, tmp_path, options):
    elsewhere, home = tmp_path / "else where", tmp_path / "home"
    elsewhere.mkdir()
    home.mkdir()
    where = [] if "--personal" in options else [str(checkout)]
    planned = install(*where, *options, "--dry-run", cwd=elsewhere, home=home)
    words = shlex.split(planned[-1])
    assert words[:3] == ["next:", "debug-spyre", "install"] and "--dry-run" not in words
    done = install(*words[3:], cwd=elsewhere, home=home)
    assert [line.replace("would be ", "").replace("would ", "") for line in planned[:-1]] == done[:-1]


def test_where_the_skill_is_the_one_that_runs_there_is_nothing_to_install(tmp_path):
    said = install("--dry-run", cwd=COMMAND.parents[1], home=tmp_path)
    assert "here already" in said[0] and "/debug-spyre" in said[-1]
