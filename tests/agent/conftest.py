"""What the tests of the skill share: the guard as a module, a checkout with an installed torch-spyre, journals."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from debug_spyre.agent.guard import hooks, light, shell, shell_words
from debug_spyre.agent.guard.place import Place

ROOT = Path(__file__).parents[2]
SKILL = Path(".claude/skills/debug-spyre")
HOSTILE = 'it\'s "odd" <b>&é</script> [x(a=1,b)]'


def decide(tool, given, place):
    """What the client gets to hear: verdict (None: nothing), rule, reason, and the line that runs in place of the given one."""
    said = hooks.answer(
        {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given}, place, project_wide=False
    )
    output = (said or {}).get("hookSpecificOutput", {})
    reason = output.get("permissionDecisionReason", "")
    head, _, rest = reason.partition(": ")
    command = output.get("updatedInput", {}).get("command")
    rule = head.removeprefix("debug-spyre ")
    return SimpleNamespace(verdict=output.get("permissionDecision"), rule=rule, reason=rest, command=command)


@pytest.fixture(scope="session")
def guard():
    """The guard's own functions."""
    return SimpleNamespace(
        decide=decide, Reader=shell.Reader, ShellError=shell_words.ShellError, quote=shell_words.quote,
        parse_json=light.parse_json, to_json=light.to_json,
    )  # fmt: skip


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A git checkout of a plugin with its environment: torch-spyre as pinned in uv.lock."""
    monkeypatch.delenv("DEBUG_SPYRE_LOGS", raising=False)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("UV_PROJECT_ENVIRONMENT", raising=False)
    top = tmp_path / "plug in's"
    (top / "spyre_inference/custom_ops").mkdir(parents=True)
    (top / "spyre_inference/__init__.py").write_text("")
    (top / "spyre_inference/custom_ops/rms_norm.py").write_text("EPS = 1e-6\n")
    (top / "tests").mkdir()
    (top / "tests/test_rms_norm.py").write_text("def test_it():\n    pass\n")
    (top / "pyproject.toml").write_text('[project]\nname = "spyre-inference"\n')
    (top / "uv.lock").write_text(
        'version = 1\n\n[[package]]\nname = "torch-spyre"\nversion = "0.0.1"\n'
        'source = { git = "https://example.invalid/torch-spyre?rev=f8d4f43b#f8d4f43b00000000000000000000000000000000" }\n'
    )
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / SKILL / "scripts").mkdir(parents=True)
    launcher = top / SKILL / "scripts/debug-spyre"
    launcher.write_text("#!/bin/sh\nexit 0\n")
    launcher.chmod(0o755)
    set_build(top, {"vcs_info": {"vcs": "git", "commit_id": "f8d4f43b" + "0" * 32}, "url": "https://example.invalid/x"})
    return top


def set_build(top, direct_url):
    """The record of the installed torch-spyre."""
    info = top / ".venv/lib/python3.12/site-packages/torch_spyre-0.0.1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "direct_url.json").write_text(json.dumps(direct_url))


LOCAL = {"url": "file:///elsewhere/torch-spyre", "dir_info": {}}


def events(*kinds, client="client-1", stem="debug-20261130-101112-rmsnorm-wide", start=0):
    """Journal lines of these (kind, fields)."""
    lines = []
    head = {
        "stem": stem, "slug": "rmsnorm-wide", "symptom": "wide rows are wrong", "checkout": "/x", "client": client,
        "members": [{"nodeid": f"tests/a.py::t[{HOSTILE}]", "predicate": {"kind": "fails"}}], "probe": "tests/a.py::t[1]",
    }  # fmt: skip
    for number, (kind, fields) in enumerate([("session_opened", head), *kinds], start=1 + start):
        body = {"v": 1, "seq": number, "at": "2026-11-30T10:11:12.000Z", "by": "agent", "kind": kind, **fields}
        lines.append(json.dumps(body, ensure_ascii=False, separators=(",", ":")))
    return lines


def write_session(top, *kinds, client="client-1", stem="debug-20261130-101112-rmsnorm-wide", torn=""):
    """A session's folder with this journal; returns the folder."""
    folder = top / SKILL / "logs" / stem
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(events(*kinds, client=client, stem=stem)) + "\n" + torn
    (folder / "journal.jsonl").write_text(text, encoding="utf-8")
    return folder


def copy_guard(top):
    """The guard as an install puts it beside the launcher of that checkout."""
    scripts = top / SKILL / "scripts"
    shutil.copy(ROOT / "scripts/guard.py", scripts)
    for folder in ("debug_spyre", "debug_spyre/agent", "debug_spyre/agent/guard"):
        (scripts / folder).mkdir()
        for source in (ROOT / "scripts" / folder).glob("*.py" if folder.endswith("guard") else "__init__.py"):
            shutil.copy(source, scripts / folder)
    return scripts / "guard.py"


@pytest.fixture
def world(checkout):
    """Makes a Place in that checkout."""

    def make(cwd=None, client="client-1"):
        launcher = str(checkout / SKILL / "scripts/debug-spyre")
        return Place(cwd=str(cwd or checkout), project=str(checkout), launcher=launcher, client=client)

    return make


@pytest.fixture(scope="session")
def kit():
    """The functions above, for tests (test modules can't import a conftest)."""
    return SimpleNamespace(
        ROOT=ROOT, SKILL=SKILL, HOSTILE=HOSTILE, LOCAL=LOCAL, set_build=set_build, write_session=write_session,
        run_hook=run_hook, events=events, copy_guard=copy_guard,
    )  # fmt: skip


def run_hook(event, *, cwd, project=None, args=(), python=sys.executable, guard=ROOT / "scripts/guard.py", env=None):
    """The guard as the client runs it: a process of its own with the event on stdin."""
    surroundings = {
        "PATH": "/usr/bin:/bin", "CLAUDE_PROJECT_DIR": str(project or cwd), "DEBUG_SPYRE_PYTHON": sys.executable, **(env or {}),
    }  # fmt: skip
    text = event if isinstance(event, bytes) else json.dumps({"cwd": str(cwd), **event}).encode()
    return subprocess.run(
        [python, "-IS", str(guard), *args], input=text, capture_output=True, cwd=cwd, env=surroundings, timeout=60
    )


def pytest_terminal_summary(terminalreporter, config):
    """The table of the client tests: mode x command -> verdict."""
    rows = getattr(config, "modes_and_commands", [])
    if rows:
        terminalreporter.section("client: mode, command -> ran | asked | refused")
    for mode, command, verdict in rows:
        terminalreporter.write_line(f"{mode:18s} {command[:80]:80s} -> {verdict}")
