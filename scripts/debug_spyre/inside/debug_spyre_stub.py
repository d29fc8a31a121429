"""A stand-in for `torch_spyre._C`: whatever is asked of it is there, compares equal to itself and does nothing.

With it a package's Python part registers what it registers, without the compiled part and without a card.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

_PARTS = re.compile(r"^ *from (?:torch_spyre|\.) import (_[a-z]\w*) *(?:#.*)?$", re.MULTILINE)
_IMPORTED = re.compile(r"^ *(?:from|import) +(\w+)", re.MULTILINE)


class Anything:
    """Stands for any object of the compiled part."""

    def __init__(self, name: str) -> None:
        self.stands_for = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = Anything(name)
        setattr(self, name, made)
        return made

    def __call__(self, *_args: Any, **_named: Any) -> Any:
        """Whatever is called gives another one."""
        return Anything(f"{self.stands_for}()")

    def __getitem__(self, _key: Any) -> Any:
        return self

    def __iter__(self) -> Any:
        return iter(())

    def __or__(self, _other: Any) -> Any:
        return self

    __ror__ = __or__

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def __index__(self) -> int:
        return 64

    __int__ = __index__

    def __mro_entries__(self, _bases: Any) -> tuple[type, ...]:
        return (object,)

    def __instancecheck__(self, _value: Any) -> bool:
        return False


class Module(types.ModuleType):
    """A module of anythings."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = Anything(name)
        setattr(self, name, made)
        return made


def install(folder: Path, cpp: list[str]) -> list[Any]:
    """Put the stand-in where the package looks for its compiled part, and register what C++ would."""
    import torch

    package = folder.name
    sys.modules[f"{package}._C"] = Module(f"{package}._C")
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*.py")]
    for part in sorted({name for text in texts for name in _PARTS.findall(text)}):
        if not (folder / part).is_dir() and not (folder / f"{part}.py").is_file():
            sys.modules[f"{package}.{part}"] = Module(f"{package}.{part}")
    for name in sorted({name for text in texts for name in _IMPORTED.findall(text)} - {package, "__future__"}):
        if not exists(name):
            sys.modules[name] = re if name == "regex" else Module(name)
    kept = []
    for full in cpp:
        namespace, _, name = full.partition("::")
        library = torch.library.Library(namespace, "FRAGMENT")
        kept.append(library)
        if not torch._C._dispatch_has_kernel(full) and namespace != "aten":
            library.define(f"{name}(Tensor x) -> Tensor")
        if torch._C._dispatch_has_kernel(full) or namespace != "aten":
            torch.library.impl(full, "PrivateUse1", lib=library)(_never)
    return kept


def exists(name: str) -> bool:
    """Whether there is such a module."""
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, AttributeError, ValueError):
        return False


def _never(*_args: Any, **_named: Any) -> None:
    raise RuntimeError("the compiled part of torch-spyre is not there")
