"""The command itself: help for everything, one line for every mistake, the launcher in poor surroundings."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.verbs import table

ROOT = Path(__file__).parents[2]
COMMAND = ROOT / "scripts/debug-spyre"


@pytest.mark.parametrize("name", table.BY_NAME)
def test_every_verb_has_help_with_an_example_and_json(ds, name):
    done = ds(name, "--help")
    assert f"debug-spyre {name}" in done.stdout
    assert "example:" in done.stdout


def test_the_first_screen_lists_every_verb(ds):
    text = ds("--help").stdout
    for name in table.BY_NAME:
        assert f"  {name} " in text
    assert len(text.splitlines()) <= 45


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([], ""),
        (["hypotesis"], "debug-spyre hypothesis"),
        (["frobnicate"], "debug-spyre --help"),
        (["status", "--nope"], "--help"),
        (["status", "--brie"], "--help"),  # options are typed whole, so that what looks for one finds it
        (["close", "resolved", "--overr", "members-pass", "x"], "--help"),
        (["close", "resolved", "--patch", "x"], "--help"),
        (["lock", "--rea", "--", "true"], "the command stands after --"),
        (["hypothesis", "add", "x", "--tes", "y"], "--help"),
        (["hypothesis", "start", "1", "--comm", "y"], "--help"),
        (["cluster", "move", "a", "--rea", "y"], "--help"),
    ],
)
def test_words_that_are_off_give_one_hint_and_status_64(ds, words, hint):
    done = ds(*words, status=64)
    assert hint in done.stderr
    assert len(done.stderr.splitlines()) <= 4


def test_the_launcher_works_through_links_from_anywhere(tmp_path):
    link = tmp_path / "a link"
    link.symlink_to(COMMAND)
    done = subprocess.run(
        [link, "--version"],
        cwd="/",
        capture_output=True,
        text=True,
        env={**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable},
    )
    assert done.stdout.startswith("debug-spyre ")


def test_the_launcher_says_what_it_looked_for_when_there_is_no_python(tmp_path):
    for name in ("sh", "dirname", "readlink"):
        (tmp_path / name).symlink_to(shutil.which(name))
    copy = tmp_path / "scripts" / "debug-spyre"
    copy.parent.mkdir()
    shutil.copy(COMMAND, copy)
    done = subprocess.run(
        [copy, "--version"], cwd=tmp_path, capture_output=True, text=True, env={"PATH": str(tmp_path)}
    )
    assert done.returncode == 69
    assert "DEBUG_SPYRE_PYTHON" in done.stderr


def test_an_interpreter_that_may_not_be_started_is_named_and_not_called_missing(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o644)
    for name in ("sh", "dirname", "readlink", "id"):
        (tmp_path / name).symlink_to(shutil.which(name))
    copy = tmp_path / "scripts/debug-spyre"
    copy.parent.mkdir()
    shutil.copy(COMMAND, copy)
    environment = {"PATH": str(tmp_path), "DEBUG_SPYRE_PYTHON": str(python)}
    done = subprocess.run([copy, "--version"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 69 and "permission denied for" in done.stderr and str(python) in done.stderr
    done = subprocess.run(
        [copy, "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**environment, "DEBUG_SPYRE_PYTHON": "/no/python"},
    )
    assert done.returncode == 69 and "permission denied" not in done.stderr


def test_a_fault_of_ours_is_saved_and_its_path_printed(tmp_path, monkeypatch, capsys):
    from debug_spyre import cli

    monkeypatch.setattr(table, "load", lambda _name: 1 / 0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cli.main(["status"]) == 70
    said = capsys.readouterr().err
    (saved,) = tmp_path.glob("debug-spyre-bug-*.txt")
    assert str(saved) in said
    assert "ZeroDivisionError" in saved.read_text()


def test_an_answer_into_a_closed_pipe_is_no_error(ds):
    done = subprocess.run(f"'{COMMAND}' --help | head -1", shell=True, capture_output=True, text=True, env=ds.env)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["status"], 69, "the environment is not ready"),
        (["run"], 69, "the environment is not ready"),
        (["hypothesis", "nonsense"], 64, None),
        (["--version"], 0, None),
    ],
)
def test_an_answer_ends_with_its_status_in_words_on_stderr(words, status, said, tmp_path):
    done = subprocess.run([str(COMMAND), *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    if said:
        assert done.stderr.rstrip().splitlines()[-1] == f"status {status}: {said}"
    assert "status " not in done.stdout
