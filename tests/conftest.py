"""What all tests share: a home of their own, and names that break careless code."""

import os
import subprocess

import pytest

HOSTILE = [
    "plain",
    "with space",
    "quote\"and'apostrophe",
    "a::b[c(d=1,e)]",
    "</script><img src=x onerror=alert(1)>",
    "ünï-☃-\u202eRTL",
    "back`tick$(id);|&\\",
    "esc\x1b[31mred",
    "new\nline\ttab",
    "{{ 7*7 }}{% raw %}",
]


@pytest.fixture(params=HOSTILE, ids=range(len(HOSTILE)))
def hostile(request):
    """One name that breaks careless code."""
    return request.param


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch, tmp_path_factory):
    """No test sees the session of whoever runs it, nor the host's card, lock or home."""
    for name in list(os.environ):
        if name.startswith(("DEBUG_SPYRE_", "SPYRE_", "CLAUDE", "PYTEST_ADDOPTS")) and name != "DEBUG_SPYRE_FUZZ":
            monkeypatch.delenv(name)
    private = tmp_path_factory.mktemp("surroundings")
    monkeypatch.setenv("DEBUG_SPYRE_LOCK_DIR", str(private / "locks"))
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", str(private / "device"))
    monkeypatch.setenv("SPYRE_SIM_DEVICE", str(private / "device"))
    monkeypatch.setenv("HOME", str(private))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


@pytest.fixture
def open_session():
    """Makes a checkout with one open session in it, whose probe is test_it.py::test_it; returns the session's folder."""
    from debug_spyre.session.events import SessionOpened
    from debug_spyre.session.io.workspace import new_session_folder

    def opened(checkout):
        checkout.mkdir()
        subprocess.run(["git", "init", "-q", str(checkout)], check=True)
        folder = new_session_folder(checkout / ".claude/skills/debug-spyre/logs", "debug-20261130-100000-x")
        probe = "test_it.py::test_it"
        folder.journal.append(
            SessionOpened(
                stem=folder.stem,
                slug="x",
                symptom="s",
                members=({"nodeid": probe},),
                checkout=str(checkout),
                probe=probe,
            )
        )
        return folder

    return opened


FIRST = (  # files that take longest, so that none of them is the last one: a file stays with one worker
    "tests/demo/test_demo.py",
    "tests/investigate/test_on_the_card.py",
    "tests/repro/test_on_the_card.py",
    "tests/runs/test_jobs.py",
    "tests/examine/test_shadow_on_card.py",
    "tests/agent/test_client.py",
    "tests/verbs/test_whole_loop.py",
    "tests/verbs/test_sessions.py",
    "tests/fleet/test_matrix_over_cards.py",
    "tests/simulated/test_plugin_repo.py",
    "tests/fleet/test_bisect_command.py",
    "tests/examine/test_examining_verbs.py",
)


def pytest_collection_modifyitems(items):
    """The longest files first; the order within a file stays."""
    items.sort(key=lambda item: next((n for n, path in enumerate(FIRST) if item.nodeid.startswith(path)), len(FIRST)))


def pytest_terminal_summary(terminalreporter):
    """Promises that were tried on the simulated card only are counted, never silently left out."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum("not proved on the real package" in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(f"NOT PROVED ON THE REAL PACKAGE: {count} tests (make real PY=INTERPRETER)")
