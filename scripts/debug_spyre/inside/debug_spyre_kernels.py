"""Keeps compiled functions apart from each other while a dispatch mode is on.

Compiling a torch function or a torch.nn module under a dispatch mode makes dynamo skip a code object that all functions of that
kind share, those inside a backend's eager kernels too: from then on these kernels call themselves until the stack ends. Each
function gets a code object of its own here. Nothing else of torch is changed, and dynamo is not imported for it.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

WHERE = "torch._dynamo.external_utils"
SHARING = ("wrap_inline", "wrap_inline_with_error_on_graph_break")
MARK = "_debug_spyre_own_code"


def keep_apart() -> None:
    """Now, if dynamo is there; else as soon as it is imported. Calling it twice does nothing more."""
    if WHERE in sys.modules:
        _mend(sys.modules[WHERE])
    elif not any(isinstance(finder, _OnImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnImport())


def _mend(module: types.ModuleType) -> None:
    for name in SHARING:
        shared = getattr(module, name, None)
        if shared is not None and not hasattr(shared, MARK):  # a torch without it shares no code
            setattr(module, name, _with_own_code(shared))


def _with_own_code(shared: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(shared)
    def wrap(*args: Any, **kwargs: Any) -> Any:
        made = shared(*args, **kwargs)
        made.__code__ = made.__code__.replace(co_name=made.__code__.co_name)
        return made

    setattr(wrap, MARK, True)
    return wrap


class _OnImport(importlib.abc.MetaPathFinder):
    """Mends the one module when it is loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name != WHERE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def create_module(self, spec: Any) -> Any:
        return self.inner.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self.inner.exec_module(module)
        _mend(module)
