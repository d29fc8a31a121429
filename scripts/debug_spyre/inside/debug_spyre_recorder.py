"""pytest plugin: one JSON line per event, written at once, so that a run that dies still says how far it came.

Standard library and pytest only; inert unless DEBUG_SPYRE_RESULTS names the file. It changes no outcome: a fault of
its own becomes a `recorder_fault` line. Nothing is patched, nothing is imported for the target's sake.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import debug_spyre_conditions as conditions  # type: ignore[import-not-found]  # beside this file, on the child's path
import debug_spyre_tensors  # type: ignore[import-not-found]
import pytest
from debug_spyre_facts import MESSAGE_LIMIT, clip, compile_mode, exception_facts, message_of  # type: ignore[import-not-found]

TEXT_LIMIT = 64 * 1024


def pytest_configure(config: Any) -> None:
    """Start recording where asked to; a worker of xdist records nothing."""
    where = os.environ.get("DEBUG_SPYRE_RESULTS")
    if not where or hasattr(config, "workerinput"):
        return
    if getattr(config.option, "numprocesses", None) or getattr(config.option, "dist", "no") not in {"no", None}:
        raise pytest.UsageError("debug-spyre: xdist starts several processes, and the card takes one (take -n away)")
    recorder = Recorder(Path(where), config)
    config.pluginmanager.register(recorder, "debug_spyre_recording")


def _guarded(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A fault of ours is recorded and never reaches the target's test."""

    @functools.wraps(hook)
    def safely(self: Recorder, *args: Any) -> Any:
        try:
            return hook(self, *args)
        except Exception as error:  # noqa: BLE001  whatever it is, the test goes on
            self.write({"e": "recorder_fault", "hook": hook.__name__, "error": message_of(error)[:500]})
            return None

    return safely


class Recorder:
    """Writes what happens to the results file, one line an event, each with one write."""

    def __init__(self, where: Path, config: Any) -> None:
        self.config = config
        self.pid = os.getpid()
        self.current: str | None = None
        self.deselected: list[str] = []
        self.seen: dict[tuple[str, str], dict[str, Any]] = {}
        self.loaded: set[str] = set()
        self.keeper = debug_spyre_tensors.Keeper(where.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self.descriptor = os.open(where, flags, 0o600)
        self.answer_with_stacks(where.with_name("stacks.txt"), flags)

    def answer_with_stacks(self, where: Path, flags: int) -> None:
        """On SIGUSR1 the stacks of all threads go into that file: asked for before a run that hangs is ended."""
        if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
            self.stacks = os.open(where, flags, 0o600)
            faulthandler.register(signal.SIGUSR1, self.stacks, all_threads=True)

    def write(self, event: dict[str, Any]) -> None:
        """One line; a full disk or a closed file loses our line, never the test."""
        if os.getpid() != self.pid:
            return  # a forked child of a test: its parent reports
        try:
            text = json.dumps(event, ensure_ascii=False, allow_nan=False, default=str)
            os.write(self.descriptor, text.encode("utf-8", "replace") + b"\n")
        except (OSError, ValueError):
            return

    def listen_to_warnings(self) -> None:
        """With `-p no:warnings` nobody calls us: listen where Python shows warnings, and pass them on."""
        shown = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any, **named: Any
        ) -> None:
            self.write(_warning(message, category, filename, lineno, when="runtest", nodeid=self.current))
            shown(message, category, filename, lineno, *rest, **named)

        warnings.showwarning = show

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: Any) -> None:
        """The run's first line."""
        if not self.config.pluginmanager.hasplugin("warnings"):
            self.listen_to_warnings()  # not earlier: pytest puts Python's own back when it has configured itself
        self.write(
            {
                "e": "session_start",
                "at": time.time(),
                "pytest": pytest.__version__,
                "python": sys.version.split()[0],
                "pid": self.pid,
                "rootdir": str(session.config.rootpath),
                "args": [str(arg) for arg in session.config.invocation_params.args],
            }
        )
        self.tell_conditions()

    @_guarded
    def tell_conditions(self) -> None:
        """What the run stands on, before anything is collected."""
        self.write(conditions.at_start(self.config))

    @_guarded
    def tell_loaded(self, when: str) -> None:
        """Files loaded since the last time."""
        files = conditions.loaded(self.loaded)
        stale = conditions.stale_bytecode(self.config, files)
        if files:
            self.write({"e": "conditions", "when": when, "files": files, "stale": stale})

    def pytest_deselected(self, items: Any) -> None:
        """Ids that a filter took out."""
        self.deselected += [item.nodeid for item in items]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: Any) -> None:
        """The scope: what will run, in order."""
        ids = [item.nodeid for item in session.items]
        self.write({"e": "collected", "ids": ids, "deselected": self.deselected})
        self.tell_loaded("collected")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins: should the process die, this line names it."""
        self.current = nodeid
        self.write({"e": "start", "nodeid": nodeid, "at": time.time()})

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        """While the exception is at hand: its chain, its numbers, the tensors that were compared."""
        yield
        self.look(item, call)

    @_guarded
    def look(self, item: Any, call: Any) -> None:
        """Read the exception; the report's own line is written when pytest reports it."""
        mode = compile_mode() if call.when == "call" else None
        if mode is not None:
            self.write({"e": "mode", "nodeid": item.nodeid, "compile_mode": mode})
        if call.excinfo is None:
            return
        facts = exception_facts(call.excinfo.value)
        self.seen[item.nodeid, call.when] = facts
        if call.when == "call" and not call.excinfo.errisinstance(pytest.skip.Exception):
            kept = self.keeper.keep(item, call.excinfo.value, facts["mismatch"] is not None)
            if kept:
                self.write({"e": "tensors", "nodeid": item.nodeid, **kept})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """One line per phase that ended."""
        self.report(report)

    @_guarded
    def report(self, report: Any) -> None:
        """Write the report of one phase."""
        facts = self.seen.pop((report.nodeid, report.when), {"exceptions": [], "mismatch": None})
        text = report.longreprtext if report.longrepr else ""
        self.write(
            {
                "e": "report" if report.outcome in {"passed", "failed", "skipped"} else report.outcome,
                "nodeid": report.nodeid,
                "phase": report.when,
                "outcome": report.outcome,
                "seconds": round(float(report.duration), 6),
                "wasxfail": _optional_text(getattr(report, "wasxfail", None)),
                "strict_xpass": report.failed and text.startswith("[XPASS(strict)]"),
                "text": clip(text, TEXT_LIMIT),
                **facts,
                "sections": [[str(title), clip(str(body), TEXT_LIMIT)] for title, body in report.sections],
            }
        )
        if report.when == "teardown":
            self.current = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        """Keep the exception of a collection error; those of tests are seen above."""
        if getattr(report, "when", None) == "collect":
            self.collect_error(node, call, report)

    @_guarded
    def collect_error(self, node: Any, call: Any, report: Any) -> None:
        """A module that can't be collected."""
        facts = exception_facts(call.excinfo.value) if call.excinfo else {"exceptions": [], "mismatch": None}
        self.write(
            {
                "e": "report",
                "nodeid": report.nodeid or node.nodeid,
                "phase": "collect",
                "outcome": "failed",
                "seconds": round(float(call.duration), 6),
                "wasxfail": None,
                "strict_xpass": False,
                "text": clip(report.longreprtext, TEXT_LIMIT),
                **facts,
                "sections": [],
            }
        )

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str) -> None:
        """A warning with the test it fell in: FallbackWarning above all."""
        self.warning(warning_message, when, nodeid)

    @_guarded
    def warning(self, seen: Any, when: str, nodeid: str) -> None:
        """Write one warning."""
        self.write(_warning(seen.message, seen.category, seen.filename, seen.lineno, when=when, nodeid=nodeid or None))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: Any) -> None:
        """The run's last line: it came to its end."""
        self.tell_loaded("end")
        self.write({"e": "session_finish", "exit": int(exitstatus), "at": time.time()})


def _warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *, when: str, nodeid: str | None
) -> dict[str, Any]:
    name = f"{category.__module__}.{category.__qualname__}".removeprefix("builtins.")
    return {
        "e": "warning",
        "nodeid": nodeid,
        "category": name,
        "message": clip(str(message), MESSAGE_LIMIT),
        "file": filename,
        "line": lineno,
        "when": when,
    }


def _optional_text(value: Any) -> str | None:
    return None if value is None else str(value)
