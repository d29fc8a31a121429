"""The hooks: one event of the client in, one answer out. What fails inside is asked and said, never passed over."""

from __future__ import annotations

import posix
import sys

from debug_spyre.agent.guard import light
from debug_spyre.agent.guard.finding import ALLOW, ASK, NOTHING, Finding, deny
from debug_spyre.agent.guard.judge import decide
from debug_spyre.agent.guard.light import parse_json, tail_of, to_json
from debug_spyre.agent.guard.place import Place, live_journals
from debug_spyre.agent.guard.shell_words import quote
from debug_spyre.agent.guard.tables import NAME


def main(scripts: str) -> int:
    """Read one hook event on stdin, print the answer; `scripts` is the folder of the launcher."""
    event: dict[str, object] = {}
    try:
        read = parse_json(sys.stdin.buffer.read().decode("utf-8", "replace"))
        event = read if isinstance(read, dict) else {}
        client = event.get("session_id")
        place = Place(
            cwd=str(event.get("cwd") or posix.getcwd()),
            project=light.variable("CLAUDE_PROJECT_DIR"),
            launcher=light.join(posix.getcwd(), scripts, NAME),
            client=client if isinstance(client, str) else None,
        )
        said = answer(event, place, project_wide="--project" in sys.argv[1:])
    except Exception as error:  # noqa: BLE001  a guard that fails inside says so
        why = f"the debug-spyre guard failed inside ({type(error).__name__}: {error}); no rule was checked"
        is_silent = event.get("hook_event_name") in ("Stop", "SessionStart")
        said = {"systemMessage": why} if is_silent else _output(permissionDecision=ASK, permissionDecisionReason=why)
    if said is not None:
        sys.stdout.write(to_json(said) + "\n")
    return 0


def answer(event: dict[str, object], place: Place, *, project_wide: bool) -> dict[str, object] | None:
    """What the hook prints for this event; None prints nothing."""
    name = event.get("hook_event_name")
    if name == "PreToolUse":
        return _before_a_tool(event, place, project_wide=project_wide)
    if name == "Stop":
        left = judge_stop(event, place, any_client=not project_wide)
        return {"decision": "block", "reason": left} if left else None
    if name == "SessionStart":
        from debug_spyre.agent.guard import sessions

        text = sessions.facts(place, any_client=not project_wide)
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}} if text else None
    return None


def _before_a_tool(event: dict[str, object], place: Place, *, project_wide: bool) -> dict[str, object] | None:
    tool, given = str(event.get("tool_name")), event.get("tool_input")
    if not isinstance(given, dict):
        given = {}
    found = judge_question(place) if tool == "AskUserQuestion" else decide(tool, given, place)
    fields: dict[str, object] = {}
    if found.stops or found.verdict == ALLOW:
        reason = f"debug-spyre {found.rule}: {found.reason}" if found.rule else found.reason
        fields = {"permissionDecision": found.verdict, "permissionDecisionReason": reason}
    if place.bare_name and found.verdict != "deny":
        fields["updatedInput"] = {**given, "command": with_our_path(str(given.get("command")), place)}
    transcript = str(event.get("transcript_path") or "")
    if b'"compact_boundary"' in tail_of(transcript):
        from debug_spyre.agent.guard import sessions

        context = sessions.facts_after_compaction(transcript, place, any_client=not project_wide)
        fields = {**fields, "additionalContext": context} if context else fields
    return _output(**fields) if fields else None


def _output(**fields: object) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


def with_our_path(command: str, place: Place) -> str:
    """The same line where the bare name is found: in pipes, loops and inner shells too."""
    return f'PATH={quote(light.parent(place.launcher))}:"$PATH"; {command}'


def judge_question(place: Place) -> Finding:
    """S5: while this client's session is open, nobody is asked which way to go."""
    from debug_spyre.agent.guard import sessions

    if not any(sessions.client_of(data) == place.client for _, data in live_journals(place.logs())):
        return NOTHING
    told = f"{NAME} hypothesis add 'TEXT' --test 'COMMAND'"
    return deny(
        "S5",
        f"the loop is autonomous: put every candidate on the queue ({told}) and test the rows in order; what only a person can decide is the next action of `close blocked`",
    )


def judge_stop(event: dict[str, object], place: Place, *, any_client: bool) -> str | None:
    """Q7: what remains, in words, if the agent may not stop yet; None lets it stop."""
    if event.get("permission_mode") == "plan" or _has_background_work(event.get("background_tasks")):
        return None
    from debug_spyre.agent.guard import sessions

    state = sessions.current(place, any_client=any_client)
    request = sessions.last_request(str(event.get("transcript_path") or ""))
    if state is None or state.in_flight() or sessions.asked_to_pause(request):
        return None
    if not sessions.may_hold(state, again=bool(event.get("stop_hook_active"))):
        return None
    return f"The session {state.stem} is still investigating and no run is in flight; {state.left()}. (Rule Q7; a person who wants a pause says so.)"


def _has_background_work(tasks: object) -> bool:
    """A command still runs in the client's background: its end wakes the agent by itself."""
    ended = ("completed", "failed", "killed", "stopped")
    return isinstance(tasks, list) and any(not (isinstance(t, dict) and t.get("status") in ended) for t in tasks)
