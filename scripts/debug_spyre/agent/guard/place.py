"""Where a command would run: the checkout, its sessions, the installed torch-spyre, files. Everything is looked up late."""

from __future__ import annotations

import posix

from debug_spyre.agent.guard import paths
from debug_spyre.agent.guard.tables import NAME

MAX_SCRIPT = 512_000
FRESH_SECONDS = 24 * 3600
TAIL = 400_000  # bytes of a transcript that are looked at


class Place:
    """Facts about one place; a test makes another one."""

    def __init__(self, *, cwd: str, project: str | None, launcher: str, client: str | None = None) -> None:
        self.cwd = cwd
        self.launcher = launcher
        self.client = client
        self.project = project or checkout_of(cwd)
        self.written: dict[str, str] = {}  # files that the same call writes before it runs them
        self.bare_name = False  # our command was named without its path
        self._open: bool | None = None

    def read(self, path: str) -> str | None:
        """The text of a file, None where it can't be read."""
        if path in self.written:
            return self.written[path]
        try:
            with open(paths.join(self.cwd, paths.expand(path)), "rb") as stream:
                return stream.read(MAX_SCRIPT).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def real(self, path: str) -> str:
        """The path without links and dots."""
        return paths.real(paths.join(self.cwd, paths.expand(path)))

    def top(self) -> str:
        """The checkout's folder."""
        return paths.real(self.project or self.cwd)

    def inside(self, path: str, folder: str) -> bool:
        """The path lies below the folder."""
        return self.real(path).startswith(paths.real(folder).rstrip("/") + "/")

    def is_ours(self, word: str) -> bool:
        """The word names the debug-spyre command: bare, or a path that leads to this skill's launcher."""
        if word == NAME:
            self.bare_name = True
            return True
        if paths.name(word) != NAME:
            return False
        beside = paths.join(self.project, ".venv/bin/debug-spyre") if self.project else self.launcher
        return self.real(word) in (paths.real(self.launcher), paths.real(beside)) or self.real(word) == paths.real(
            paths.join(paths.parent(self.launcher), "../bin/debug-spyre")
        )

    def is_spyre_place(self) -> bool:
        """A pytest here would use the card: the checkout itself, or another tree that is made for Spyre."""
        here, top = paths.real(self.cwd), self.top()
        if here == top or here.startswith(top + "/"):
            return True
        root = checkout_of(here) or here
        if any(paths.kind(paths.join(root, name)) == paths.DIRECTORY for name in ("torch_spyre", "spyre_inference")):
            return True
        return "spyre" in (self.read(paths.join(root, "pyproject.toml")) or "")

    def has_open_session(self) -> bool:
        """Some session of this checkout is being investigated."""
        if self._open is None:
            self._open = any(True for _ in live_journals(self.logs()))
        return self._open

    def is_here(self, folder: str) -> bool:
        """The folder belongs to the checkout of the sessions: not to another clone, a worktree or one nested in it."""
        root = checkout_of(self.real(folder))
        return root is not None and self.project is not None and root == checkout_of(self.project)

    def logs(self) -> str:
        """Where the sessions of this checkout live."""
        override = paths.variable("DEBUG_SPYRE_LOGS")
        return override or paths.join(self.project or self.cwd, ".claude/skills/debug-spyre/logs")

    def local_build(self) -> str | None:
        """In words: the installed torch-spyre is not the pinned one, so that a sync would undo it. None: it is, or unknown."""
        for folder in self._records():
            text = self.read(paths.join(folder, "direct_url.json"))
            if text is None:
                continue
            if '"dir_info"' in text or '"file://' in text:
                return "a local build of torch-spyre is installed"
            _, _, rest = text.partition('"commit_id"')
            commit = (rest.split('"') + [""] * 2)[1]
            pin = self._pin()
            if commit and pin and not commit.startswith(pin) and not pin.startswith(commit):
                return f"the installed torch-spyre ({commit[:9]}) differs from the pin ({pin[:9]})"
        return None

    def _records(self) -> list[str]:
        """The folders in which installed torch-spyres say where they came from."""
        places = [paths.variable("UV_PROJECT_ENVIRONMENT"), self.project and paths.join(self.project, ".venv")]
        for place in [*places, paths.variable("VIRTUAL_ENV")]:
            lib = paths.join(self.cwd, place, "lib") if place else ""
            packages = [paths.join(lib, python, "site-packages") for python in paths.listed(lib)]
            found = [
                paths.join(folder, name)
                for folder in packages
                for name in paths.listed(folder)
                if name.startswith("torch_spyre-") and name.endswith(".dist-info")
            ]
            if found:
                return found
        return []

    def _pin(self) -> str | None:
        _, _, text = (self.read(paths.join(self.top(), "uv.lock")) or "").partition('name = "torch-spyre"')
        source = text[:800].partition("source = ")[2].partition("\n")[0]
        return source.rpartition("#")[2].partition('"')[0] or None if "#" in source else None


def checkout_of(start: str) -> str | None:
    """The git checkout around a folder."""
    folder = paths.real(start)
    while not paths.kind(paths.join(folder, ".git")):
        if paths.parent(folder) == folder:
            return None
        folder = paths.parent(folder)
    return folder


def live_journals(logs: str) -> list[tuple[str, bytes]]:
    """(folder, bytes) of the sessions that are investigating and were touched within a day, oldest first."""
    import time

    found = []
    for name in paths.listed(logs):
        folder = paths.join(logs, name)
        try:
            path = paths.join(folder, "journal.jsonl")
            if not name.startswith("debug-") or time.time() - posix.stat(path).st_mtime > FRESH_SECONDS:
                continue
            with open(path, "rb") as stream:
                data = stream.read()
        except OSError:
            continue
        if data.rfind(b'"kind":"session_closed"') <= data.rfind(b'"kind":"session_reopened"'):
            found.append((folder, data))
    return found


def tail_of(path: str) -> bytes:
    """The last part of a file, empty where it can't be read."""
    try:
        with open(path, "rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - TAIL))
            return stream.read()
    except OSError:
        return b""
