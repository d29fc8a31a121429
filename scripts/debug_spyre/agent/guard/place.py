"""Where a command would run: the checkout, its sessions, the installed torch-spyre, files. Everything is looked up late."""

from __future__ import annotations

import posix
import time

from debug_spyre.agent.guard import light
from debug_spyre.agent.guard.tables import NAME

MAX_SCRIPT = 512_000
FRESH_SECONDS = 24 * 3600


class Place:
    """Facts about one place; a test makes another one."""

    def __init__(self, *, cwd: str, project: str | None, launcher: str, client: object = None) -> None:
        self.cwd = cwd
        self.launcher = launcher
        self.client = client
        self.project = project or checkout_of(cwd)
        self.written: dict[str, str] = {}  # files that the same call writes before it runs them
        self.calls: list[str] = []  # our calls so far that use the card
        self.archived = False  # git archive stood before
        self.bare_name = False  # our command was named without its path
        self._open: bool | None = None

    def note_written(self, path: str, text: str | None) -> None:
        """The same call writes this text into the file before it runs it."""
        real = self.real(path)
        if text is not None:
            self.written[real] = self.written.get(real, "") + text + "\n"

    def read(self, path: str) -> str | None:
        """The text of a file, None where it can't be read."""
        real = self.real(path)
        if real in self.written:
            return self.written[real]
        try:
            with open(real, "rb") as stream:
                return stream.read(MAX_SCRIPT).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def real(self, path: str) -> str:
        """The path without links and dots."""
        return light.real(light.join(self.cwd, path))

    def top(self) -> str:
        """The checkout's folder."""
        return light.real(self.project or self.cwd)

    def below(self, path: str, folder: str) -> str:
        """The path as it stands below the folder; empty where it doesn't lie there."""
        real, top = self.real(path), light.real(folder).rstrip("/") + "/"
        return real[len(top) :] if real.startswith(top) else ""

    def is_ours(self, word: str) -> bool:
        """The word names the debug-spyre command: bare, or a path that leads to this skill's launcher."""
        if word == NAME:
            self.bare_name = True
            return True
        folder = light.parent(self.launcher)
        others = light.join(folder, "../bin", NAME), light.join(self.project or folder, ".venv/bin", NAME)
        return light.name(word) == NAME and self.real(word) in map(light.real, (self.launcher, *others))

    def is_spyre_place(self) -> bool:
        """A pytest here would use the card: the checkout itself, or another tree that is made for Spyre."""
        root = checkout_of(self.cwd) or self.cwd
        is_spyre = any(light.kind(light.join(root, name)) for name in ("torch_spyre", "spyre_inference"))
        if is_spyre or f"{light.real(self.cwd)}/".startswith(f"{self.top()}/"):
            return True
        return "spyre" in (self.read(light.join(root, "pyproject.toml")) or "")

    def has_open_session(self) -> bool:
        """Some session of this checkout is being investigated."""
        if self._open is None:
            self._open = bool(live_journals(self.logs()))
        return self._open

    def logs(self) -> str:
        """Where the sessions of this checkout live."""
        override = light.variable("DEBUG_SPYRE_LOGS")
        return override or light.join(self.project or self.cwd, ".claude/skills/debug-spyre/logs")

    def local_build(self) -> str:
        """In words: the installed torch-spyre is not the pinned one, so that a sync would undo it. Empty: it is, or unknown."""
        text = self._record()
        if '"dir_info"' in text or '"file://' in text:
            return "a local build of torch-spyre is installed"
        locked = (self.read(light.join(self.top(), "uv.lock")) or "").partition('name = "torch-spyre"')[2]
        _, hash_sign, pin = locked[:800].partition("source = ")[2].partition("\n")[0].rpartition("#")
        pin = pin.partition('"')[0]
        commit = [*text.partition('"commit_id"')[2].split('"'), "", ""][1]
        if not commit or not hash_sign or commit.startswith(pin) or pin.startswith(commit):
            return ""
        return f"the installed torch-spyre ({commit[:9]}) differs from the pin ({pin[:9]})"

    def _record(self) -> str:
        """What the installed torch-spyre says of where it came from."""
        own = light.join(self.project or "", ".venv")
        for place in (light.variable("UV_PROJECT_ENVIRONMENT"), own, light.variable("VIRTUAL_ENV")):
            lib = light.join(self.cwd, place, "lib") if place else ""
            for folder in (light.join(lib, python, "site-packages") for python in light.listed(lib)):
                for name in light.listed(folder):
                    if name.startswith("torch_spyre-") and name.endswith(".dist-info"):
                        return self.read(light.join(folder, name, "direct_url.json")) or ""
        return ""


def checkout_of(start: str) -> str | None:
    """The git checkout around a folder."""
    folder = light.real(start)
    while not light.kind(light.join(folder, ".git")):
        if folder == "/":
            return None
        folder = light.parent(folder)
    return folder


def live_journals(logs: str) -> list[tuple[str, bytes]]:
    """(folder, bytes) of the sessions that are investigating and were touched within a day, oldest first."""
    found = []
    for folder in (light.join(logs, name) for name in light.listed(logs) if name.startswith("debug-")):
        try:
            with open(light.join(folder, "journal.jsonl"), "rb") as stream:
                is_fresh = time.time() - posix.fstat(stream.fileno()).st_mtime <= FRESH_SECONDS
                data = stream.read() if is_fresh else b""
        except OSError:
            continue
        if is_fresh and data.rfind(b'"kind":"session_closed"') <= data.rfind(b'"kind":"session_reopened"'):
            found.append((folder, data))
    return found
