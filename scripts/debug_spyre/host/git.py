"""Plumbing calls to git that read a checkout and never write into its repository.

The repository is named by GIT_DIR, so another owner ("dubious ownership") is no obstacle; hooks, watchers and the
caller's own GIT_* variables stay out; nothing is fetched. Objects that are made here go to a folder that is given.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from debug_spyre.vocabulary.errors import EnvironmentTroubleError

SETTINGS = (  # nothing of the repository's own is run
    "safe.directory=*",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.autocrlf=false",
    "core.quotePath=false",
    "gc.auto=0",
)
# states in which the working files belong to an operation of git that has not ended
_HALF_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert of git's own",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or am",
    "BISECT_LOG": "a bisect",
}


class GitFailedError(EnvironmentTroubleError):
    """git is missing or refused; its own words are in the message."""


def git(
    checkout: Path,
    *words: str,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    allowed: tuple[int, ...] = (0,),
) -> bytes:
    """Run one plumbing command; returns its stdout.

    Raises:
        GitFailedError: git can't be run or ended with a status that is not allowed.
    """
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    surroundings |= {
        "GIT_DIR": str(checkout / ".git"),
        "GIT_WORK_TREE": str(checkout),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        **(env or {}),
    }
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    try:
        done = subprocess.run(
            ["git", *settings, *words], cwd=checkout, env=surroundings, input=stdin or b"", capture_output=True
        )
    except OSError as error:
        raise GitFailedError(
            f"git can't be run in {checkout}: {error.strerror or error}", next="install git, then repeat the command"
        ) from error
    if done.returncode not in allowed:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitFailedError(
            f"git {words[0]} failed in {checkout}: {said[-1] if said else f'status {done.returncode}'}",
            next=f"git -C {checkout} status",
        )
    return done.stdout


def lines_of(data: bytes) -> list[bytes]:
    """The entries of a NUL-separated answer."""
    return [entry for entry in data.split(b"\0") if entry]


def head_of(checkout: Path) -> str | None:
    """The commit that HEAD names, or None before the first one."""
    answer = git(checkout, "rev-parse", "--verify", "--quiet", "HEAD", allowed=(0, 1)).decode().strip()
    return answer or None


def branch_of(checkout: Path) -> str | None:
    """The branch's short name, None where HEAD is detached."""
    answer = git(checkout, "symbolic-ref", "--quiet", "--short", "HEAD", allowed=(0, 1)).decode("utf-8", "replace")
    return answer.strip() or None


def objects_of(checkout: Path) -> Path:
    """The folder of the repository's own objects."""
    answer = git(checkout, "rev-parse", "--git-path", "objects")
    return (checkout / os.fsdecode(answer.rstrip(b"\n"))).resolve()


def half_way(checkout: Path) -> str | None:
    """The operation of git that has not ended yet, in words, or None."""
    for name, words in _HALF_WAY.items():
        place = os.fsdecode(git(checkout, "rev-parse", "--git-path", name).rstrip(b"\n"))
        if os.path.lexists(checkout / place):
            return words
    if git(checkout, "ls-files", "-u", "-z"):
        return "a merge with conflicts"
    return None


def index_entries(checkout: Path) -> dict[bytes, tuple[str, str]]:
    """What the user's index holds: path -> (mode, object id); of a conflict the last stage."""
    found = {}
    for entry in lines_of(git(checkout, "ls-files", "-s", "-z")):
        head, path = entry.split(b"\t", 1)
        mode, name, _stage = head.decode().split(" ")
        found[path] = (mode, name)
    return found


def untracked(checkout: Path) -> list[bytes]:
    """Paths that git neither tracks nor ignores; a repository inside the checkout stands as one name with a slash."""
    return lines_of(git(checkout, "ls-files", "-o", "--exclude-standard", "-z"))
