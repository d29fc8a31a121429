"""One rung of the ladder inside a test process: an inert dispatch mode, or another compile backend for the plugin's code.

pytest plugin (`-p debug_spyre_ladder`); the rung is named in DEBUG_SPYRE_LADDER. The backend's own eager kernels are
compiled functions themselves and stay as they are: replacing their compiler would make them call themselves.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import pytest
import torch
from debug_spyre_kernels import keep_apart  # type: ignore[import-not-found]
from torch.utils._python_dispatch import TorchDispatchMode

OP_BY_OP, EAGER, AOT_EAGER = "op-by-op", "eager", "aot_eager"
RUNG = os.environ.get("DEBUG_SPYRE_LADDER", "")


class Inert(TorchDispatchMode):
    """Does nothing; under it compiled functions run op by op."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        return func(*args, **(kwargs or {}))


def with_backend(backend: str) -> None:
    """Every torch.compile of code that isn't the backend's own uses this one."""
    original = torch.compile

    @functools.wraps(original)
    def compile_with(model: Any = None, **options: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        if f"{os.sep}torch_spyre{os.sep}" not in caller:
            options = {k: v for k, v in options.items() if k not in {"mode", "options"}} | {"backend": backend}
        if model is None:
            return lambda fn: original(fn, **options)
        return original(model, **options)

    torch.compile = compile_with


def pytest_configure() -> None:
    """Before anything of the target is imported."""
    keep_apart()
    if RUNG in {EAGER, AOT_EAGER}:
        with_backend(RUNG)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Any:
    """Fixtures, test and teardown under the mode."""
    if RUNG == OP_BY_OP:
        with Inert():
            yield
    else:
        yield
