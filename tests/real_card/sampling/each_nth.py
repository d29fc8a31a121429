"""pytest plugin: of all collected tests each Nth (EVERY=N); outcomes go to the file OUTCOMES as they come, and what is in it isn't run again."""

import os
from pathlib import Path

OUT = Path(os.environ["OUTCOMES"])


def pytest_collection_modifyitems(items):
    known = {line.split(maxsplit=1)[1].split(" - ")[0].strip() for line in _lines() if not line.startswith("BEGUN")}
    items[:] = [item for item in items[:: int(os.environ.get("EVERY", "1"))] if item.nodeid not in known]


def pytest_runtest_logstart(nodeid):
    _write("BEGUN", nodeid)


def pytest_runtest_logreport(report):
    expected = hasattr(report, "wasxfail")
    if report.failed:
        lines = [line.strip() for line in report.longreprtext.splitlines() if line.strip()]
        said = (
            [line[1:].strip() for line in lines if line.startswith("E ")] or lines or [""]
        )  # [XPASS(strict)] ... has no E
        _write("FAILED" if report.when == "call" else "ERROR", report.nodeid, said[0][:200])
    elif report.skipped:
        _write("XFAIL" if expected else "SKIPPED", report.nodeid)
    elif report.when == "call":
        _write("XPASS" if expected else "PASSED", report.nodeid)


def _lines():
    return OUT.read_text(encoding="utf-8").splitlines() if OUT.exists() else []


def _write(outcome, nodeid, reason=""):
    with OUT.open("a", encoding="utf-8") as stream:
        stream.write(f"{outcome} {nodeid}" + (f" - {reason}" if reason else "") + "\n")
