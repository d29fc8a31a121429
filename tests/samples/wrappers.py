"""What carries a log around: CI time stamps, colours, prefixes, line ends. Each takes and returns a whole log."""

from __future__ import annotations

import math
import re
from typing import Any


def json_number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def github(log: str) -> str:
    """Time stamps, a byte order mark, groups and the runner's last words."""
    head = ["##[group]Run make test", "shell: /usr/bin/bash -e {0}", "##[endgroup]"]
    tail = ["##[error]Process completed with exit code 1."]
    lines = [*head, *log.rstrip("\n").split("\n"), *tail]
    stamped = [f"2026-06-02T21:04:{n // 1000 % 60:02d}.{n % 1000:03d}1234Z {line}" for n, line in enumerate(lines)]
    return "\ufeff" + "\n".join(stamped) + "\n"


def github_cli(log: str) -> str:
    """As `gh run view --log` prints it: job and step in front."""
    lines = log.rstrip("\n").split("\n")
    return "".join(f"test (3.12)\tRun tests\t2026-06-02T21:04:11.1234567Z {line}\n" for line in lines)


def jenkins(log: str) -> str:
    return "".join(f"[2026-06-02T21:04:11.123Z] {line}\n" for line in log.rstrip("\n").split("\n"))


def crlf(log: str) -> str:
    return log.replace("\n", "\r\n")


def coloured(log: str) -> str:
    """Colour codes around every line and around words that matter."""
    marked = re.sub(r"(FAILED|ERROR|PASSED|E  )", "\x1b[31m\\1\x1b[0m", log)
    return "".join(f"\x1b[1m{line}\x1b[0m\x1b[K\n" for line in marked.rstrip("\n").split("\n"))


def tags(log: str) -> str:
    """Marks of a test configuration between the word and the node id."""
    return re.sub(r"^(FAILED|ERROR) (?=tests/)", r"\1 [TAGS = op__add,dtype__float16] ", log, flags=re.MULTILINE)


def table_after(log: str) -> str:
    rows = ["", "File                         passed  failed", "---------------------------  ------  ------"]
    rows += ["tests/test_matrix.py              2       7", "total                             2       7", "exit code: 1"]
    return log.rstrip("\n") + "\n" + "\n".join(rows) + "\n"


def cancelled(log: str) -> str:
    return log.rstrip("\n") + "\n##[error]The operation was canceled.\n"


def uv_front(log: str) -> str:
    front = "   Building torch-spyre @ git+https://example.org/torch-spyre.git@0123abc\n"
    front += "      Built torch-spyre @ git+https://example.org/torch-spyre.git@0123abc\n"
    return front + "Uninstalled 1 package in 3ms\nInstalled 1 package in 6ms\n" + log


def engine(log: str) -> str:
    """Lines of a vLLM engine's process in front."""
    front = "(EngineCore_DP0 pid=4711) /work/plugin/spyre_inference/layers.py:8: FallbackWarning: aten.tril.default is falling back to cpu\n"
    front += '(EngineCore_DP0 pid=4711)   warn_fallback("aten.tril.default", 2)\n'
    return front + log


def tags_everywhere(log: str) -> str:
    """A plugin's marks in progress lines too."""
    return re.sub(r"(\[gw\d\] \[ *\d+%\] \w+) (?=tests/)", r"\1 [TAGS = op__add dtype__float16] ", tags(log))


def after_another_build(log: str) -> str:
    """The same tests before, in another build: they fail with another class."""
    before = re.sub(r"AssertionError: Tensor-likes are not close!", "RuntimeError: Bundle not found: /x", log)
    before = re.sub(r"E   (?:Mismatched|Greatest).*\n", "", before)
    return "=== Attempt 1/2: suite ===\n" + before + "=== Attempt 2/2: suite ===\n" + log


def engine_prefix(log: str) -> str:
    return "".join(f"(EngineCore_DP0 pid=4711) ERROR 06-02 12:00:00 [core.py:700] {line}\n" for line in log.rstrip("\n").split("\n"))
