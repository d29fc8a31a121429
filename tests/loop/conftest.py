"""A real git repository with the user's own uncommitted and staged work in it, and a session folder beside it."""

import os
import subprocess
from pathlib import Path

import pytest

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def git(where, *words, **kw):
    done = subprocess.run(
        ["git", *words], cwd=where, capture_output=True, env={**os.environ, **IDENTITY}, check=True, **kw
    )
    return done.stdout


def state_of(checkout):
    """Everything a user would miss: each file's bytes, kind and exec bit, the index and HEAD."""
    files = {}
    for place in sorted(Path(checkout).rglob("*")):
        rel = os.fsencode(place.relative_to(checkout))
        if rel.startswith(b".git/") or rel == b".git" or b"/logs/" in rel:
            continue
        if place.is_symlink():
            files[rel] = ("link", os.readlink(place))
        elif place.is_file():
            files[rel] = (bool(place.stat().st_mode & 0o100), place.read_bytes())
    index = git(checkout, "ls-files", "-s", "-z")
    head = (Path(checkout) / ".git/HEAD").read_bytes()
    return files, index, head


@pytest.fixture
def repository(tmp_path):
    """Committed source and tests, an unstaged edit, a staged edit, a staged new file, an untracked file, a deletion."""
    checkout = tmp_path / 'check out\'s "odd" naïve'
    checkout.mkdir()
    git(checkout, "init", "-q", "-b", "main")
    write = lambda name, text: (
        (checkout / name).parent.mkdir(parents=True, exist_ok=True),
        (checkout / name).write_bytes(text.encode() if isinstance(text, str) else text),
    )
    write("spyre_inference/ops.py", "def rms(x):\n    return x\n")
    write("spyre_inference/blob.bin", bytes(range(256)) * 8)
    write("tests/test_ops.py", "def test_ops():\n    assert True\n")
    write("README.md", "read me\n")
    write("gone.txt", "the user deleted this\n")
    write("run.sh", "#!/bin/sh\n")
    os.chmod(checkout / "run.sh", 0o755)
    os.symlink("spyre_inference/ops.py", checkout / "link.py")
    write(".gitignore", "*.log\nbuild/\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "start")
    write("README.md", "read me\r\nmixed ends\n")
    write("tests/test_ops.py", "def test_ops():\n    assert 1\n")
    git(checkout, "add", "tests/test_ops.py")
    write("tests/test_ops.py", "def test_ops():\n    assert 2\n")
    write("spyre_inference/staged.py", "x = 1\n")
    git(checkout, "add", "spyre_inference/staged.py")
    write("notes by hand.txt", "mine\n")
    write("debug.log", "ignored\n")
    os.unlink(checkout / "gone.txt")
    return checkout


@pytest.fixture
def folder(repository):
    """A session's folder in the place where sessions lie."""
    place = repository / ".claude/skills/debug-spyre/logs/debug-20261130-010203-x"
    place.mkdir(parents=True)
    return place
