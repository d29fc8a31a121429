"""The conditions of a test process, recorded by the process itself: variables, loaded files, plugins, configuration, sys.path.

Standard library only. Paths are given, not read: the supervisor computes their digests. Cached bytecode of the
checkout is compared with its source here, since only this interpreter can compile for itself.
"""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

INSIDE = os.path.dirname(os.path.abspath(__file__))
_STDLIB = tuple(sorted({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")}))
_SITES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
# how pytest shows its results, and where; none of it changes an outcome
_DISPLAY = frozenset(
    ["file_or_dir", "tbstyle", "verbose", "color", "code_highlight", "durations", "durations_min", "xmlpath", "junitprefix", "basetemp", "cacheclear", "reportchars", "showlocals", "showcapture", "xfail_tb", "no_header", "no_summary", "no_fold_skipped", "fold_skipped", "quiet", "log_file", "debug", "rootdir", "inifilename", "plugins", "traceconfig", "pastebin", "help", "version", "collectonly"]
)  # fmt: skip


def variables() -> dict[str, str]:
    """The environment that the process was started with; what code set since then is not in it."""
    try:
        pairs = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environ)
    told = (os.fsdecode(pair).partition("=") for pair in pairs if b"=" in pair)
    return {name: value for name, _, value in told}


def at_start(config: Any) -> dict[str, Any]:
    """Interpreter, variables, search path, plugins and effective configuration; asked when the session begins."""
    return {
        "e": "conditions",
        "when": "start",
        "python": [sys.executable, sys.version.split()[0]],
        "root": str(config.rootpath),
        "environment": variables(),
        "path": [entry for entry in sys.path if os.path.abspath(entry) != INSIDE],
        "plugins": sorted(set(_plugins(config))),
        "options": dict(_options(config)),
        "ini": _ini(config),
        "startup": sorted(_startup_files()),
    }


def _plugins(config: Any) -> Iterator[str]:
    for name, plugin in config.pluginmanager.list_name_plugin():
        kind = plugin if isinstance(plugin, types.ModuleType) else type(plugin)
        module = getattr(kind, "__name__", "") if isinstance(kind, types.ModuleType) else kind.__module__
        if module.startswith("debug_spyre_") or str(name).endswith("conftest.py") or "Session" in str(name):
            continue
        if plugin is None:
            yield f"no:{name}"
        elif module.split(".")[0] not in {"_pytest", "pytest"}:
            yield module if isinstance(plugin, types.ModuleType) else f"{module}.{kind.__qualname__}"


def _options(config: Any) -> Iterator[tuple[str, str]]:
    for name, value in sorted(vars(config.option).items()):
        if name not in _DISPLAY and isinstance(value, str | int | float | list | tuple | bool):
            yield name, repr(value)
    own = [word for word in getattr(config.option, "plugins", None) or () if not str(word).startswith("debug_spyre_")]
    yield "plugins", repr(own)


def _ini(config: Any) -> dict[str, str]:
    raw = vars(config).get("_inicfg")  # the name without the underscore is deprecated since 9.1
    if raw is None:
        raw = getattr(config, "inicfg", None) or {}
    return {"file": str(config.inipath or ""), **{str(k): str(getattr(v, "value", v)) for k, v in sorted(raw.items())}}


def _startup_files() -> Iterator[str]:
    """Files that Python reads before any test: .pth in the site folders."""
    for folder in dict.fromkeys(os.path.abspath(entry) for entry in sys.path):
        if (folder + os.sep).endswith(_SITES):
            with contextlib.suppress(OSError):
                yield from (entry.path for entry in os.scandir(folder) if entry.name.endswith(".pth"))


def loaded(known: set[str]) -> dict[str, str]:
    """File -> module of everything that is loaded from outside the standard library and is not in `known` yet."""
    found = {}
    for name, module in list(sys.modules.items()):
        place = getattr(module, "__file__", None)
        if not isinstance(place, str) or place in known or not os.path.isabs(place):
            continue
        known.add(place)
        inside = place.startswith(_STDLIB) and not any(site in place for site in _SITES)
        if not inside and not place.startswith(INSIDE + os.sep):
            found[place] = name
    return found


def stale_bytecode(config: Any, files: dict[str, str]) -> list[str]:
    """Modules of the checkout whose cached bytecode is not what their source compiles to."""
    root, found = str(config.rootpath) + os.sep, []
    for place, name in files.items():
        if not place.startswith(root) or any(site in place for site in _SITES) or not place.endswith(".py"):
            continue
        with contextlib.suppress(Exception):
            if not _is_honest(config, place, sys.modules[name]):
                found.append(place)
    return found


def _is_honest(config: Any, place: str, module: Any) -> bool:
    loader = type(getattr(module, "__loader__", None)).__name__
    cached = Path(getattr(module, "__cached__", None) or importlib.util.cache_from_source(place))
    if loader == "AssertionRewritingHook":
        from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test

        cached = cached.with_name(Path(place).stem + PYC_TAIL)
        if not _is_used(cached, place):
            return True
        expected = _rewrite_test(Path(place), config)[1]
    else:
        if not _is_used(cached, place):
            return True
        expected = compile(Path(place).read_bytes(), place, "exec", dont_inherit=True)
    return _same_code(marshal.loads(cached.read_bytes()[16:]), expected)  # noqa: S302  read as Python itself reads it


def _is_used(cached: Path, place: str) -> bool:
    """Python takes this bytecode for the source: time and size in its head fit, or it is not to be checked."""
    try:
        head = cached.read_bytes()[:16]
    except OSError:
        return False
    if int.from_bytes(head[4:8], "little"):
        return True
    info = os.stat(place)
    fits = (int(info.st_mtime) & 0xFFFFFFFF, info.st_size & 0xFFFFFFFF)
    return (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")) == fits


def _same_code(one: Any, other: Any) -> bool:
    if isinstance(one, types.CodeType) and isinstance(other, types.CodeType):
        if (one.co_code, one.co_names, one.co_name) != (other.co_code, other.co_names, other.co_name):
            return False
        pairs = zip(one.co_consts, other.co_consts, strict=False)
        return len(one.co_consts) == len(other.co_consts) and all(_same_code(a, b) for a, b in pairs)
    return type(one) is type(other) and (one == other or repr(one) == repr(other))
