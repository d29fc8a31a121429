"""Revisions of torch-spyre on disk: a source tree and an environment of its own for each, made by the user's command.

The user's clone is read only: its objects are borrowed by a repository of ours. The target's environment is read only: each
environment of ours sees its packages behind its own, and is checked to hold the torch-spyre that was built for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.fleet.bisect_record import Record, Seen
from debug_spyre.fleet.bisection import history_of
from debug_spyre.host.files import make_folder, read_ends, write_atomically
from debug_spyre.host.fingerprint import PACKAGE, backend_fingerprint, package_folder, search_path, site_packages
from debug_spyre.host.git import SETTINGS, GitFailedError, git, objects_of
from debug_spyre.runs.io.jobs import SCRIPTS
from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError

DONE = "built.json"
OUTPUT = "build.txt"
_ASK = f"import importlib.util as u; s = u.find_spec({PACKAGE!r}); print(s.origin or '' if s else '')"


@dataclass(frozen=True, slots=True)
class Built:
    """A revision that was built, or why it can't be."""

    python: Path
    seconds: float
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Revisions:
    """All that is made lies below `folder`; `build` runs in the source tree, with VIRTUAL_ENV and PATH of the new environment."""

    folder: Path
    clone: Path
    build: tuple[str, ...]
    target: Path  # the target's Python

    def place(self, revision: str) -> Path:
        """The folder of one revision."""
        return self.folder / revision[:12]

    def prepare(self) -> None:
        """A repository of ours over the objects of the clone, with its tags."""
        repository = self._repository
        if not (repository / "HEAD").is_file():
            make_folder(self.folder)
            self._git("init", "--quiet", "--bare", str(repository))
        write_atomically(repository / "objects/info/alternates", f"{objects_of(self.clone)}\n")
        tags = git(self.clone, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags").decode(
            "utf-8", "replace"
        )
        write_atomically(repository / "packed-refs", f"# pack-refs with: \n{tags}")
        self._git("worktree", "prune")

    def made(self, revision: str) -> Built:
        """The revision's environment, built now unless that was tried before.

        Raises:
            EnvironmentTroubleError: the build changed the target's environment, or the new one does not hide the target's package.
        """
        place = self.place(revision)
        with suppress(OSError, ValueError, KeyError):
            data = json.loads((place / DONE).read_text(encoding="utf-8"))
            return Built(place / "env/bin/python", float(data["seconds"]), data["trouble"])
        began = time.monotonic()
        shutil.rmtree(place, ignore_errors=True)  # of a build that was killed
        make_folder(place)
        self._git("worktree", "prune")
        self._git("worktree", "add", "--quiet", "--detach", "--force", str(place / "source"), revision)
        self._environment(place)
        before = self._fingerprint()
        trouble = self._build(place) or self._check(place)
        if self._fingerprint() != before:
            raise EnvironmentTroubleError(
                f"the build command changed the target's torch-spyre, in {site_packages(self.target)}",
                details=(f"  its output: {place / OUTPUT}",),
                next="repair that environment; the command has to install into $VIRTUAL_ENV: python -m pip, or uv pip without --python",
            )
        built = Built(place / "env/bin/python", time.monotonic() - began, trouble)
        write_atomically(place / DONE, json.dumps({"seconds": built.seconds, "trouble": trouble}))
        return built

    def is_made(self, revision: str) -> bool:
        """It was built, or tried."""
        return (self.place(revision) / DONE).is_file()

    def remove_but(self, kept: Sequence[str]) -> None:
        """Take away the environments and sources of the others; what their builds printed stays."""
        names = {revision[:12] for revision in kept}
        for place in self.folder.iterdir():
            if place.name not in names and place != self._repository:
                for part in ("source", "env", "cache"):
                    shutil.rmtree(place / part, ignore_errors=True)
        self._git("worktree", "prune")

    def replay(self, bad: str, good: str, said: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """What `git bisect` itself makes of these (good|bad|skip, revision): its last words, and its log."""
        with suppress(GitFailedError):
            self._git("bisect", "reset")
        self._git("update-ref", "--no-deref", "HEAD", bad)  # bisect wants to know where it began
        words = self._git("bisect", "start", "--no-checkout", bad, good)
        for word, revision in said:
            words = self._git("bisect", word, revision, allowed=(0, 1, 2, 10))
        return words, self._git("bisect", "log")

    @property
    def _repository(self) -> Path:
        return self.folder / "git"

    def _git(self, *words: str, allowed: tuple[int, ...] = (0,)) -> str:
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
        }
        done = subprocess.run(
            ["git", *settings, "-C", str(self.folder), "--git-dir", str(self._repository), *words],
            env=env, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        if done.returncode not in allowed:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise GitFailedError(
                f"git {words[0]} {words[1] if len(words) > 1 else ''} failed: {said[-1] if said else done.returncode}",
                next=f"git -C {self.clone} fsck",
            )
        return done.stdout.decode("utf-8", "replace")

    def _environment(self, place: Path) -> None:
        """A virtual environment that finds the target's packages behind its own."""
        env = place / "env"
        made = subprocess.run(
            [str(self.target), "-m", "venv", "--without-pip", str(env)], stdin=subprocess.DEVNULL, capture_output=True
        )
        own = site_packages(env / "bin/python")
        behind = search_path(site_packages(self.target))
        if made.returncode or own is None:
            said = made.stderr.decode("utf-8", "replace").strip().splitlines()
            raise EnvironmentTroubleError(
                f"{self.target} can't make a virtual environment: {said[-1] if said else made.returncode}",
                next="install the package that has Python's venv module (python3-venv)",
            )
        lines = [str(folder) for folder in behind]
        lines += [
            f"import site; site.addsitedir({str(folder)!r})" for folder in behind[:1]
        ]  # for its editable packages
        (own / "zz_target.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name in ("pip", "pip3"):  # the target's own script would install there
            script = env / "bin" / name
            script.write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n', encoding="utf-8")
            script.chmod(0o755)

    def _build(self, place: Path) -> str | None:
        env = build_environment(os.environ, place / "env")
        with (place / OUTPUT).open("wb") as stream:
            try:
                done = subprocess.run(
                    self.build, cwd=place / "source", env=env, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
                )
            except OSError as error:
                raise BadInputError(
                    f"{self.build[0]} can't be started: {error.strerror}", next="debug-spyre bisect --build COMMAND ..."
                ) from error
        if done.returncode == 0:
            return None
        last = read_ends(place / OUTPUT, tail=4096)[1].decode("utf-8", "replace").strip().splitlines()
        return f"the build ended with {done.returncode}: {last[-1][:200] if last else 'no output'}"

    def _check(self, place: Path) -> str | None:
        """The new environment holds a torch-spyre of its own."""
        env = build_environment(os.environ, place / "env")
        asked = subprocess.run(
            [str(place / "env/bin/python"), "-c", _ASK],
            cwd=place,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        origin = asked.stdout.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        if origin[0] and Path(origin[0]).resolve().is_relative_to(place.resolve()):
            return None
        return f"after the build the environment has {f'the torch_spyre of {origin[0]}' if origin[0] else 'no torch_spyre'}"

    def _fingerprint(self) -> str | None:
        packages = site_packages(self.target)
        return backend_fingerprint(packages) if packages else None


def build_environment(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The variables of a build: installers find the new environment, and refuse to go elsewhere."""
    left_out = {
        "PYTHONPATH",
        "PYTHONHOME",
        "CONDA_PREFIX",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_USER",
        "UV_PYTHON",
        "UV_SYSTEM_PYTHON",
    }
    kept = {k: v for k, v in env.items() if k not in left_out and not k.startswith("GIT_")}
    return kept | {
        "VIRTUAL_ENV": str(folder),
        "UV_PROJECT_ENVIRONMENT": str(folder),
        "PATH": f"{folder / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PYTHONNOUSERSITE": "1",
    }


def commit_facts(clone: Path, revision: str) -> dict[str, Any]:
    """Subject, message, date and files of a commit."""
    text = git(clone, "show", "--no-patch", "--format=%s%x00%cs%x00%B", revision).decode("utf-8", "replace")
    subject, date, message = text.split("\0", 2)
    names = git(
        clone, "diff-tree", "--no-commit-id", "--name-only", "-r", "-m", "--first-parent", "--root", "-z", revision
    )
    files = [name.decode("utf-8", "replace") for name in names.split(b"\0") if name]
    return {"sha": revision, "subject": subject, "date": date, "message": message.strip(), "files": sorted(set(files))}


# -- a bisection's own files: its request, what is known so far, and what `op` says of two of its builds

REQUEST, STATE, VERB = "bisection.json", "bisect.json", "bisect"
REVISIONS = "revisions"
OPS_SECONDS = 600.0
_COMMAND = "import sys; sys.path.insert(0, sys.argv.pop(1)); from debug_spyre.cli import main; sys.exit(main())"


def load(folder: Path) -> Record:
    """The record as it stands, its history read from the clone.

    Raises:
        BadInputError: there is no bisection in that folder.
    """
    try:
        request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError(f"there is no bisection in {folder}: {error}", next="debug-spyre bisect --help") from error
    state: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    listed = git(Path(request["clone"]), "rev-list", "--topo-order", "--parents", request["bad"], f"^{request['good']}")
    runs = [
        Seen(r["revision"], r["run"], None if r["keys"] is None else tuple(r["keys"])) for r in state.get("runs", ())
    ]
    return Record(
        request["good"],
        request["bad"],
        history_of(listed.decode().splitlines()),
        float(request["confidence"]),
        int(request["runs"]),
        tuple(runs),
        state.get("unbuilt", {}),
    )


def state_of(folder: Path) -> dict[str, Any]:
    """bisect.json as it is."""
    with suppress(OSError, ValueError):
        found = json.loads((folder / STATE).read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def keep(folder: Path, more: dict[str, Any]) -> None:
    """Add to bisect.json, whole or not at all."""
    write_atomically(folder / STATE, json.dumps({**state_of(folder), **more}, ensure_ascii=False))


def ops_changed(revisions: Revisions, before: str, after: str, checkout: Path) -> dict[str, Any]:
    """What `op --against` says of two builds: another process of ours, for each build is asked in its own environment."""
    found = [package_folder(site_packages(revisions.place(r) / "env/bin/python")) for r in (before, after)]
    lacking = [revision[:12] for revision, package in zip((before, after), found, strict=True) if package is None]
    if lacking:
        return {"trouble": f"{lacking[0]} was not built"}
    words = ["op", "--json", "--package", str(found[1]), "--against", str(found[0])]
    env = {**os.environ, "DEBUG_SPYRE_PYTHON": str(revisions.place(after) / "env/bin/python")}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _COMMAND, str(SCRIPTS), *words],
            cwd=checkout, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=OPS_SECONDS,
        )  # fmt: skip
        changes = json.loads(done.stdout)["changes"]
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        return {"trouble": f"op --against said nothing ({type(error).__name__})", "between": [before, after]}
    return {"between": [before, after], "changes": changes}
