"""The session that an agent works on, as far as the hooks need it: rows, the run in flight, what to do next."""

from __future__ import annotations

import posix

from debug_spyre.agent.guard import light
from debug_spyre.agent.guard.light import parse_json, tail_of
from debug_spyre.agent.guard.place import Place, live_journals
from debug_spyre.agent.guard.tables import NAME, PAUSE_WORDS

MOST_HOLDS = 2
MOST_CHARS = 1400  # of the state after a compaction: about 400 tokens
STATUS_OF = {"hypothesis_added": "queued", "hypothesis_started": "in-progress", "hypothesis_dropped": "dropped"}


def objects(data: bytes) -> list[dict[str, object]]:
    """The JSON objects, one a line; what can't be read is left out."""
    found = []
    for line in data.split(b"\n"):
        try:
            value = parse_json(line.decode("utf-8", "replace")) if line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


class State:
    """One session, read from its journal without the rest of the package."""

    def __init__(self, folder: str, data: bytes) -> None:
        self.folder = folder
        self.stem = light.name(folder)
        self.rows: dict[object, dict[str, object]] = {}
        self.running: dict[object, object] = {}  # run -> its supervisor
        self.opened: dict[str, object] = {}
        self.summary = ""
        self.mark: object = 0  # number of the last event that is no mere progress
        for event in objects(data):
            self._take(str(event.get("kind")), event)

    def _take(self, kind: str, event: dict[str, object]) -> None:
        number = event.get("number")
        if kind != "run_progressed":
            self.mark = event.get("seq")
        if kind == "session_opened":
            self.opened = event
        elif kind == "hypothesis_added":
            self.rows[number] = {"text": event.get("text"), "status": "queued", "outcome": None}
        elif number in self.rows and kind.startswith("hypothesis_"):
            status = STATUS_OF.get(kind) or event.get("verdict") or self.rows[number]["status"]
            self.rows[number].update(status=status, outcome=event.get("sentence") or event.get("reason"))
        elif kind == "run_started":
            self.running[event.get("run")] = event.get("supervisor")
        elif kind == "run_finished":
            self.running.pop(event.get("run"), None)
        elif kind == "summary_noted":
            self.summary = str(event.get("text") or "")

    def with_status(self, status: str) -> list[object]:
        """Numbers of the rows in that status."""
        return [number for number, row in self.rows.items() if row["status"] == status]

    def in_flight(self) -> list[object]:
        """Runs whose supervisor still lives."""
        return [run for run, pid in self.running.items() if _lives(pid)]

    def left(self) -> str:
        """What remains to be done, with the command."""
        queued, busy = self.with_status("queued"), self.with_status("in-progress")
        if busy:
            return f"row {busy[0]} is in progress: run its command, then {NAME} hypothesis conclude {busy[0]} ..."
        if queued:
            count = f"{len(queued)} row{'s' if len(queued) > 1 else ''}"
            text = str(self.rows[queued[0]]["text"])[:120]
            return f"{count} queued (next: {queued[0]}, {text}): {NAME} hypothesis start {queued[0]}"
        if not self.rows:
            return f"no hypothesis is queued: {NAME} hypothesis seed"
        return f"every row has a verdict: {NAME} validate if the probe is cleared, else the next tier of experiments or {NAME} close blocked with a concrete next action"

    def told(self) -> str:
        """The state in words, from the journal alone."""
        members = self.opened.get("members")
        count = len(members) if isinstance(members, list) else 0
        lines = [
            f"debug-spyre session {self.stem} is investigating.",
            f"Cluster: {self.opened.get('slug')} ({count} members), {self.opened.get('symptom')}. Probe: {self.opened.get('probe')}.",
            f"Next: {self.left()}",
        ]
        lines += [f"Run {run} is in flight: {NAME} wait {run}" for run in self.in_flight()]
        lines += [f"Summary: {self.summary[:400]}"] if self.summary else []
        rows = [
            f"#{number} {row['status']}: {str(row['text'])[:80]}"
            + (f" -> {str(row['outcome'])[:80]}" if row["outcome"] else "")
            for number, row in self.rows.items()
        ]
        return "\n".join(lines + rows)


def _lives(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return True  # not known yet: the run has only just begun
    try:
        posix.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def client_of(data: bytes) -> object:
    """The client session that opened it."""
    return next((event.get("client") for event in objects(data.partition(b"\n")[0])), None)


def current(place: Place, *, any_client: bool) -> State | None:
    """The session of this client; else, where the skill itself is in use, the only live one."""
    live = live_journals(place.logs())
    own = [pair for pair in live if place.client and client_of(pair[1]) == place.client]
    if own:
        return State(*own[-1])
    return State(*live[0]) if any_client and len(live) == 1 else None


def asked_to_pause(text: str) -> bool:
    """The person's last words ask for a pause; a long text or a slash command does not."""
    for mark in ".,!":
        text = text.replace(mark, " ")
    low = " " + " ".join(text.lower().split()) + " "
    if not low.strip() or len(low) > 300 or low.startswith(" /"):
        return False
    return low == " stop " or any(f" {word} " in low for word in PAUSE_WORDS)


def last_request(transcript: str) -> str:
    """The last thing that a person typed, from the client's transcript; empty where it can't be read."""
    lines = [line for line in tail_of(transcript).split(b"\n") if b'"user"' in line]
    for line in reversed(lines):
        for entry in objects(line):
            if entry.get("type") != "user" or entry.get("isMeta") or entry.get("isSidechain"):
                continue
            message = entry.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            if isinstance(content, list):
                parts = [part for part in content if isinstance(part, dict)]
                is_result = any(part.get("type") == "tool_result" for part in parts)
                content = "" if is_result else " ".join(str(part.get("text") or "") for part in parts)
            if isinstance(content, str) and content.strip() and not content.lstrip().startswith("<"):
                return content
    return ""


def may_hold(state: State, *, again: bool) -> bool:
    """At most twice per state of the session, and only where that can be remembered."""
    path = light.join(state.folder, ".stop-holds")
    try:
        with open(path, encoding="utf-8") as stream:
            known, _, count = stream.read().strip().partition(" ")
    except OSError:
        known, count = "", "0"
    used = int(count) if known == str(state.mark) and count.isdigit() else 0
    if used >= MOST_HOLDS:
        return False
    return _remember(path, f"{state.mark} {used + 1}\n") or not again


def _remember(path: str, text: str) -> bool:
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError:
        return False
    return True


def facts(place: Place, *, any_client: bool) -> str | None:
    """The state of the session as facts, for a client that has just compacted its context."""
    state = current(place, any_client=any_client)
    return _facts_of(state, place) if state else None


def _facts_of(state: State, place: Place) -> str:
    return (_said_by_launcher(state, place) or state.told())[:MOST_CHARS]


def facts_after_compaction(transcript: str, place: Place, *, any_client: bool) -> str | None:
    """The same facts at the first tool call after a compaction, once: hooks of a skill aren't told of it, measured."""
    data = tail_of(transcript)
    at = data.rfind(b'"compact_boundary"')
    state = current(place, any_client=any_client) if at >= 0 else None
    if state is None:
        return None
    line = data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at)]
    mark = line.find(b'"timestamp"')
    boundary = line[mark : mark + 60].decode("utf-8", "replace") if mark >= 0 else str(len(line))
    path = light.join(state.folder, ".compaction-seen")
    if tail_of(path).decode("utf-8", "replace") == boundary or not _remember(path, boundary):
        return None
    return _facts_of(state, place)


def _said_by_launcher(state: State, place: Place) -> str | None:
    """What `status --brief` says."""
    import subprocess

    command = [place.launcher, "status", "--brief", "--session", state.stem]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, cwd=place.top(), stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    text = done.stdout.strip()
    return (
        f"debug-spyre session in progress (its command is {NAME}):\n{text}" if done.returncode == 0 and text else None
    )
