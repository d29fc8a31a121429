"""What the tests of the skill share: the guard as a module, a checkout with an installed torch-spyre, journals."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
SKILL = Path(".claude/skills/debug-spyre")
HOSTILE = 'it\'s "odd" <b>&é</script> [x(a=1,b)]'


def load_guard():
    spec = importlib.util.spec_from_file_location("guard_under_test", ROOT / "scripts/guard.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def guard():
    return load_guard()


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


@pytest.fixture
def world(guard, checkout):
    """Makes a World of that checkout."""

    def make(cwd=None, client="client-1"):
        launcher = str(checkout / SKILL / "scripts/debug-spyre")
        return guard.World(cwd=str(cwd or checkout), project=str(checkout), launcher=launcher, client=client)

    return make


@pytest.fixture(scope="session")
def kit():
    """The functions above, for tests (test modules can't import a conftest)."""
    return SimpleNamespace(
        ROOT=ROOT, SKILL=SKILL, HOSTILE=HOSTILE, LOCAL=LOCAL, set_build=set_build, write_session=write_session,
        run_hook=run_hook, load_guard=load_guard, events=events,
    )  # fmt: skip


def run_hook(event, *, cwd, project=None, args=(), python=sys.executable, guard=ROOT / "scripts/guard.py", env=None):
    """The guard as the client runs it: a process of its own with the event on stdin."""
    surroundings = {"PATH": "/usr/bin:/bin", "CLAUDE_PROJECT_DIR": str(project or cwd), **(env or {})}
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
