"""Counts what each test does on the card and on the CPU: device ops, transfers, CPU ops of code that is no test.

pytest plugin (`-p debug_spyre_work`). It changes nothing and imports no torch: a test that loaded none has no such work.
Under the dispatch mode compiled functions run op by op, before the fix as after it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

TRANSFERS = {"_to_copy", "copy_", "_copy_from", "_copy_from_and_resize"}


class Work:
    """One test's counts; a transfer or CPU op is told with the place in the code that asked for it."""

    def __init__(self) -> None:
        self.device: Counter[str] = Counter()
        self.cpu: Counter[tuple[str, str]] = Counter()
        self.moved: Counter[tuple[str, str]] = Counter()

    def to_json(self, nodeid: str) -> dict[str, Any]:
        """The line of the results file."""
        told = {name: [[what, site, n] for (what, site), n in getattr(self, name).items()] for name in ("cpu", "moved")}
        return {"e": "work", "nodeid": nodeid, "device": dict(self.device), **told}


def _mode(work: Work, root: str) -> Any:
    from debug_spyre_tally import site_of  # type: ignore[import-not-found]
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        """Lets every op through and counts it."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            _count(work, func, (args, kwargs or {}), result, site_of(root))
            return result

    return Counting()


def _count(work: Work, func: Any, given: Any, result: Any, site: str) -> None:
    name = str(func.name()).replace("::", ".", 1).removesuffix(".default")
    before, after = set(_devices(given)), set(_devices(result))
    plain = func.overloadpacket.__name__
    where = {kind for kind in before | after if kind != "meta"}
    if plain in TRANSFERS and len(where) > 1:
        ways = (
            "to the CPU"
            if "cpu" in after and plain == "_to_copy"
            else "to the card"
            if plain == "_to_copy"
            else "between"
        )
        if not _is_test(site):
            work.moved[ways, site] += 1
    elif where - {"cpu"}:
        work.device[name] += 1
    elif "cpu" in where and not _is_test(site) and not func.is_view:
        work.cpu[name, site] += 1


def _is_test(site: str) -> bool:
    file = site.rpartition(":")[0]
    name = os.path.basename(file)
    return (
        site == "unknown"
        or name.startswith("test_")
        or name.endswith("_test.py")
        or name == "conftest.py"
        or "tests/" in f"/{file}"
    )


def _devices(value: Any) -> Generator[str, None, None]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _devices(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _devices(item)
    elif type(value).__module__.startswith("torch") and hasattr(value, "device") and hasattr(value, "dtype"):
        yield value.device.type


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item: Any) -> Generator[None, None, None]:
    """Count while the test's body runs."""
    work = Work()
    with _mode(work, str(item.config.rootpath)) if "torch" in sys.modules else contextlib.nullcontext():
        yield
    _write(work.to_json(item.nodeid))


def _write(line: dict[str, Any]) -> None:
    where = os.environ.get("DEBUG_SPYRE_RESULTS")
    if where:
        with open(where, "ab", buffering=0) as stream:
            stream.write(json.dumps(line).encode() + b"\n")
