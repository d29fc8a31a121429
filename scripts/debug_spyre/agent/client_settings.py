"""The client's settings file: our hooks in, our hooks out, everything else byte for byte as it was in meaning and order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debug_spyre.host.files import make_folder, write_atomically
from debug_spyre.vocabulary.errors import BadInputError

MARK = "debug-spyre/scripts"
TOOLS = "Bash|Edit|Write|MultiEdit|NotebookEdit|Monitor|AskUserQuestion"
SECONDS = 20


def hook_command(scripts: str, *, flag: str = "--project") -> str:
    """The shell line that runs the guard (imported, so that its compiled form is kept); failing to run, it asks."""
    said = (
        '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask",'
        '"permissionDecisionReason":"the debug-spyre guard could not run; no rule was checked"}}'
    )
    code = "import sys; sys.path.insert(0, sys.argv[1]); import guard; guard.main()"
    pythons = 'python3 "$CLAUDE_PROJECT_DIR/.venv/bin/python"'
    tries = f'for p in {pythons}; do "$p" -IS -c \'{code}\' "{scripts}" {flag} && exit; done'
    return f"{tries}; printf '%s' '{said}'"


def our_hooks(scripts: str) -> dict[str, list[dict[str, Any]]]:
    """The hooks of the whole project, as the settings file spells them."""
    hook = {"type": "command", "command": hook_command(scripts), "timeout": SECONDS}
    return {
        "PreToolUse": [{"matcher": TOOLS, "hooks": [hook]}],
        "Stop": [{"hooks": [hook]}],
        "SessionStart": [{"matcher": "compact", "hooks": [hook]}],
    }


def with_hooks(settings: dict[str, Any], scripts: str) -> dict[str, Any]:
    """The settings with our hooks in them, once."""
    settings = without_hooks(settings)
    hooks = dict(settings.get("hooks") or {})
    for event, groups in our_hooks(scripts).items():
        hooks[event] = [*(hooks.get(event) or []), *groups]
    return {**settings, "hooks": hooks}


def without_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without our hooks; a group or list that only we filled goes too."""
    hooks = settings.get("hooks")
    if not isinstance(hooks, dict):
        return dict(settings)
    kept: dict[str, Any] = {}
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            kept[event] = groups
            continue
        left = [group for group in map(_without_ours, groups) if group is not None]
        if left or not groups:
            kept[event] = left
    result = {**settings, "hooks": kept}
    if hooks and not kept:
        del result["hooks"]
    return result


def _without_ours(group: Any) -> Any:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    left = [hook for hook in group["hooks"] if not _is_ours(hook)]
    if len(left) == len(group["hooks"]):
        return group
    return {**group, "hooks": left} if left else None


def _is_ours(hook: Any) -> bool:
    return isinstance(hook, dict) and MARK in str(hook.get("command")) and "guard" in str(hook.get("command"))


def read_settings(path: Path) -> tuple[dict[str, Any], str | None]:
    """(settings, text as it stands); an absent file is empty settings and no text.

    Raises:
        BadInputError: the file is no JSON object; it is left as it is.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"cannot read {path}: {error}", next="mend the file, then repeat the command") from error
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise BadInputError(
            f"{path} is not valid JSON ({error}); it was left as it is", next="mend the file, then repeat the command"
        ) from error
    if not isinstance(settings, dict):
        raise BadInputError(f"{path} holds no JSON object; it was left as it is", next="mend the file, then repeat")
    return settings, text


def write_settings(path: Path, settings: dict[str, Any], before: str | None) -> None:
    """Write in the file's own indentation; settings that became empty and were no file before are no file again."""
    target = path.resolve()
    if not settings and (before is None or _is_only_ours(before)):
        target.unlink(missing_ok=True)
        if target.parent.is_dir() and not any(target.parent.iterdir()):
            target.parent.rmdir()
        return
    make_folder(target.parent)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    text = json.dumps(settings, ensure_ascii=False, indent=_indent_of(before))
    write_atomically(target, text + ("\n" if before is None or before.endswith("\n") else ""), mode=mode)


def _is_only_ours(before: str) -> bool:
    settings = json.loads(before) if before.strip() else {}
    return bool(settings) and not without_hooks(settings)


def _indent_of(text: str | None) -> int | str:
    for line in (text or "").splitlines()[1:]:
        stripped = line.lstrip(" \t")
        if stripped and stripped != line:
            lead = line[: len(line) - len(stripped)]
            return "\t" if lead[0] == "\t" else len(lead)
    return 2


PERMISSIONS: dict[str, tuple[str, ...]] = {
    "allow": (
        "Bash(debug-spyre:*)",
        "Bash(.claude/skills/debug-spyre/scripts/debug-spyre:*)",
        "Edit(/spyre_inference/**)",
        "Edit(/tests/**)",
    ),
    "ask": (
        "Bash(git commit:*)",
        "Bash(git push:*)",
        "Bash(gh pr create:*)",
        "Bash(gh pr merge:*)",
        "Bash(pip install:*)",
        "Bash(uv pip install:*)",
        "Bash(uv sync:*)",
        "Bash(uv add:*)",
        "Bash(*debug-spyre exec *git *)",
        "Bash(*debug-spyre exec *pip *)",
        "Bash(*debug-spyre lock *git *)",
        "Bash(*debug-spyre lock *pip *)",
        "Edit(/.venv/**)",
        "Edit(/pyproject.toml)",
        "Edit(/uv.lock)",
    ),
    "deny": (
        "Bash(run_in_background:true)",
        "Bash(*debug-spyre * --patch-approved*)",
        "Bash(*debug-spyre * --override*)",
        "Bash(*debug-spyre * --reap*)",
        "Bash(*debug-spyre * --build-approved*)",
        "Bash(*debug-spyre * --ship-approved*)",
        "Bash(pytest:*)",
        "Bash(python -m pytest:*)",
        "Bash(uv run pytest:*)",
        "Bash(uv run --no-sync pytest:*)",
        "AskUserQuestion",
    ),
}


def permissions(launcher: Path) -> dict[str, Any]:
    """Rules for the settings file of a client whose hooks are disabled; they suffice for the loop."""
    rules = {name: list(entries) for name, entries in PERMISSIONS.items()}
    rules["allow"].insert(1, f"Bash({launcher}:*)")
    return {"permissions": rules}


def as_text(rules: dict[str, Any]) -> str:
    """The rules as they are pasted into a settings file."""
    return json.dumps(rules, ensure_ascii=False, indent=2)
