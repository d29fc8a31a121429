"""The hooks: one event of the client in, one answer out. What fails inside is asked and said, never passed over."""

from __future__ import annotations

import posix
import sys

from debug_spyre.agent.guard import light
from debug_spyre.agent.guard.finding import ALLOW, ASK, NOTHING, Finding, deny
from debug_spyre.agent.guard.judge import decide
from debug_spyre.agent.guard.light import parse_json, to_json
from debug_spyre.agent.guard.place import Place, live_journals
from debug_spyre.agent.guard.shell_words import quote
from debug_spyre.agent.guard.tables import NAME

MOST_CHARS = 1200  # of the state after a compaction: 400 tokens at 3 characters each, measured 3.4 and more
ENDED = ("completed", "failed", "killed", "stopped")  # what no longer runs in the client's background


def main(scripts: str) -> int:
    """Read one hook event on stdin, print the answer; `scripts` is the folder of the launcher."""
    event: dict[str, object] = {}
    try:
        read = parse_json(sys.stdin.buffer.read().decode("utf-8", "replace"))
        event = read if isinstance(read, dict) else {}
        cwd, launcher = str(event.get("cwd") or posix.getcwd()), light.join(posix.getcwd(), scripts, NAME)
        project, client = light.variable("CLAUDE_PROJECT_DIR"), event.get("session_id")
        place = Place(cwd=cwd, project=project, launcher=launcher, client=client)
        said = answer(event, place, project_wide="--project" in sys.argv[1:])
    except Exception as error:  # noqa: BLE001  a guard that fails inside says so
        why = f"the debug-spyre guard failed inside ({type(error).__name__}: {error}); no rule was checked"
        is_silent = event.get("hook_event_name") in ("Stop", "SessionStart")
        fields: dict[str, object] = {"permissionDecision": ASK, "permissionDecisionReason": why}
        said = {"systemMessage": why} if is_silent else _output("PreToolUse", fields)
    if said is not None:
        sys.stdout.write(to_json(said) + "\n")
    return 0


def answer(event: dict[str, object], place: Place, *, project_wide: bool) -> dict[str, object] | None:
    """What the hook prints for this event; None prints nothing."""
    name = event.get("hook_event_name")
    if name == "PreToolUse":
        return _before_a_tool(event, place, project_wide=project_wide)
    stem = current(place, any_client=not project_wide) if name in ("Stop", "SessionStart") else None
    if stem is None:
        return None
    if name == "SessionStart":
        return _output(name, {"additionalContext": facts(stem, place)})
    tasks = event.get("background_tasks")
    is_waiting = isinstance(tasks, list) and any(not (isinstance(t, dict) and t.get("status") in ENDED) for t in tasks)
    if event.get("permission_mode") == "plan" or is_waiting:  # the end of that work wakes the agent by itself
        return None
    said = ask_launcher(place, ["status", "--hook", "--session", stem], to_json(event))
    found = parse_json(said) if said else None
    return found if isinstance(found, dict) else None


def _before_a_tool(event: dict[str, object], place: Place, *, project_wide: bool) -> dict[str, object] | None:
    tool, read = str(event.get("tool_name")), event.get("tool_input")
    given = read if isinstance(read, dict) else {}
    found = judge_question(place) if tool == "AskUserQuestion" else decide(tool, given, place)
    fields: dict[str, object] = {}
    if found.stops or found.verdict == ALLOW:
        told = f"{NAME} {found.rule}: {found.reason}"
        fields = {"permissionDecision": found.verdict, "permissionDecisionReason": told}
    if place.bare_name and found.verdict != "deny":
        line = f'PATH={quote(light.parent(place.launcher))}:"$PATH"; {given.get("command")}'
        fields["updatedInput"] = {**given, "command": line}  # the same line where the bare name is found
    transcript = light.tail_of(str(event.get("transcript_path") or ""))
    if b'"compact_boundary"' in transcript:
        context = facts_after_compaction(transcript, place, any_client=not project_wide)
        fields = {**fields, "additionalContext": context} if context else fields
    return _output("PreToolUse", fields) if fields else None


def _output(event: str, fields: dict[str, object]) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def judge_question(place: Place) -> Finding:
    """S5: while this client's session is open, nobody is asked which way to go."""
    if place.client is None or current(place, any_client=False) is None:
        return NOTHING
    why = "the loop is autonomous: put every candidate on the queue"
    told = f"{NAME} hypothesis add 'TEXT' --test 'COMMAND'"
    last = "what only a person can decide is the next action of `close blocked`"
    return deny("S5", f"{why} ({told}) and test the rows in order; {last}")


def current(place: Place, *, any_client: bool) -> str | None:
    """The session of this client; else, where the skill itself is in use, the only live one."""
    live, mark = live_journals(place.logs()), f'"client":{to_json(place.client)}'.encode()
    own = [folder for folder, data in live if place.client and mark in data.partition(b"\n")[0]]
    found = own[-1:] or [folder for folder, _ in live if any_client and len(live) == 1]
    return light.name(found[0]) if found else None


def facts(stem: str, place: Place) -> str:
    """The state of the session as facts, for a client that has just compacted its context."""
    said = ask_launcher(place, ["status", "--brief", "--session", stem])
    told = said or f"{stem} is open; its command gave no answer within 10 s: {NAME} doctor"
    return f"debug-spyre session in progress (its command is {NAME}):\n{told}"[:MOST_CHARS]


def facts_after_compaction(transcript: bytes, place: Place, *, any_client: bool) -> str | None:
    """The same facts at the first tool call after a compaction, once: hooks of a skill aren't told of it, measured."""
    stem = current(place, any_client=any_client)
    if stem is None:
        return None
    before, mark, after = transcript.rpartition(b'"compact_boundary"')
    boundary = before.rpartition(b"\n")[2] + mark + after.partition(b"\n")[0]
    path = light.join(place.logs(), stem, ".compaction-seen")
    try:
        if light.tail_of(path) == boundary:
            return None
        with open(path, "wb") as stream:
            stream.write(boundary)
    except OSError:
        return None
    return facts(stem, place)


def ask_launcher(place: Place, words: list[str], text: str = "") -> str:
    """What our own command says to that, nothing where it can't."""
    import subprocess

    command = [place.launcher, *words]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=10, cwd=place.top(), check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
