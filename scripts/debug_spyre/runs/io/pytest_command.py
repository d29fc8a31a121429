"""The command line and environment of one pytest run: interpreter, rules, recorder. Nothing is started here."""

from __future__ import annotations

import ast
import difflib
import itertools
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from debug_spyre.host.fingerprint import package_folder
from debug_spyre.host.interpreter import Interpreter, choose
from debug_spyre.runs import pytest_words
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, UsageError
from debug_spyre.vocabulary.words import BASELINE

RECORDER = "debug_spyre_recorder"
STRICT, STRICT_CLASS = "debug_spyre_strict", "DEBUG_SPYRE_STRICT"
_OWN_FILTER = re.compile(r"error::torch_spyre\.[\w.]*FallbackWarning")
TYPED = frozenset({"run", "triage", "shadow", "ladder"})  # a person has just typed what to select
MOST_FILES = 2000  # test files looked at for one that is near
INSIDE = Path(__file__).resolve().parents[2] / "inside"
VERBOSE = {"TORCH_SENDNN_LOG": "INFO", "DT_DEEPRT_VERBOSE": "1", "DTLOG_LEVEL": "info"}
ERAS = ("ops/fallbacks.py", "fallbacks.py")  # newest first


def pytest_command(
    checkout: Path,
    args: Sequence[str],
    *,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
    plugins: Iterable[str] = (),
    fallback_as_error: bool = False,
    verbose_backend: bool = False,
    known: Iterable[str] = (),
    interpreter: Interpreter | None = None,
    verb: str = "run",
) -> tuple[tuple[str, ...], dict[str, str]]:
    """(argv, environment overrides) of a pytest run in the checkout.

    Raises:
        UsageError: the rules refuse an argument; EnvironmentTroubleError: the filter's class can't be found.
    """
    pytest_words.check(args, known=known, verb=verb)
    if verb in TYPED:
        check_node_ids(checkout, args, known=known, verb=verb)
    overrides = dict(env or {})
    check_environment(overrides)
    chosen = interpreter or choose(checkout)
    words = [*chosen.words, "-m", "pytest"]
    args, asked = without_own_filter(args)
    if fallback_as_error or asked:
        plugins = (STRICT, *plugins)
        overrides[STRICT_CLASS] = fallback_class(chosen)
    for plugin in (RECORDER, *plugins):
        words += ["-p", plugin]
    words += pytest_words.completed(args, tb="long" if name == BASELINE else "short")
    if verbose_backend:
        overrides = {**VERBOSE, **overrides}
    return tuple(words), overrides


def check_node_ids(checkout: Path, args: Sequence[str], *, known: Iterable[str] = (), verb: str = "run") -> None:
    """A file or a function that is not there is said before pytest is started, with what is near.

    Only what can be known from the files: a class, a parameter, and tests that a plugin collects are pytest's to judge,
    and so are `known` ids: a member that has gone is a result.

    Raises:
        UsageError: a selected file or function does not exist.
    """
    words, seen = pytest_words.split(args), set(known)
    if any(word.option in {"--pyargs", "--rootdir", "-c"} for word in words):
        return
    for text in (text for word in words if word.option is None for text in word.written if text not in seen):
        path, _, inner = text.partition("::")
        file = checkout / path
        if not path.endswith(".py"):
            continue
        if not file.is_file():
            beside = sorted(str(p.relative_to(checkout)) for p in _test_files(checkout))
            raise _not_there(f"there is no file {path}", difflib.get_close_matches(path, beside, n=3, cutoff=0.5), verb)
        function = inner.partition("[")[0]
        if function and "::" not in function:
            names = _defined(file)
            if names is not None and function not in names:
                tests = sorted(name for name in names if name.lower().startswith("test"))
                near = difflib.get_close_matches(function, tests, n=3, cutoff=0.4)
                raise _not_there(f"{path} defines no {function}", [f"{path}::{name}" for name in near], verb)


def _not_there(what: str, near: Sequence[str], verb: str) -> UsageError:
    return UsageError(
        what + (f"; near: {', '.join(near)}" if near else ""),
        next=f"debug-spyre {verb} {shlex.quote(near[0] if near else 'tests')}",
    )


def _test_files(checkout: Path) -> Iterator[Path]:
    found = (p for pattern in ("test_*.py", "*_test.py") for p in checkout.glob(f"tests/**/{pattern}"))
    return itertools.islice(found, MOST_FILES)


def _defined(file: Path) -> set[str] | None:
    """The names at a module's top, also within if and try; None where they can't be known: a star import, no Python."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError):
        return None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"globals", "setattr", "exec"}
        ):
            return None
    return None if "*" in names else names


def without_own_filter(args: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """The words without a filter that makes FallbackWarning an error, and whether there was one: pytest can't apply it itself."""
    words = pytest_words.split(args)
    kept = [
        word
        for word in words
        if not (word.option in {"-W", "--pythonwarnings"} and _OWN_FILTER.fullmatch(word.value or ""))
    ]
    return (
        (tuple(text for word in kept for text in word.written), True)
        if len(kept) < len(words)
        else (tuple(args), False)
    )


def from_root(checkout: Path, args: Sequence[str], here: Path | None = None) -> tuple[str, ...]:
    """The same selection said from the checkout's root, where every run begins: node ids are what pytest calls them there.

    What is not below `here` (default: the working folder) stays as it is: a node id that one of our answers gave.
    Without any selection the folder itself is meant, as pytest means it.
    """
    root, here = checkout.resolve(), (here or Path.cwd()).resolve()
    if here == root or not here.is_relative_to(root):
        return tuple(args)

    def moved(text: str) -> str:
        path, colons, rest = text.partition("::")
        return os.path.relpath(here / path, root) + colons + rest if path and (here / path).exists() else text

    words = pytest_words.split(args)
    selections = [word for word in words if word.option is None]
    found: list[str] = [] if selections else [os.path.relpath(here, root)]
    for word in words:
        if word.option is None:
            found += [moved(text) for text in word.written]
        elif word.option in {"--deselect", "--ignore"} and word.value is not None:
            found.append(f"{word.option}={moved(word.value)}")
        else:
            found += word.written
    return tuple(found)


def child_path(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """PYTHONPATH for the test process: our plugins' folder in front of what is there."""
    before = (env or {}).get("PYTHONPATH") or os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(INSIDE), *([before] if before else [])])}


def fallback_class(interpreter: Interpreter) -> str:
    """The full path of FallbackWarning in the installed torch-spyre, found in its files without importing it.

    Raises:
        EnvironmentTroubleError: no torch-spyre, or no such class in it.
    """
    source = package_folder(interpreter.packages)
    if source is not None:
        for file in (*(source / era for era in ERAS), *sorted(source.rglob("*.py"))):
            if file.is_file() and "class FallbackWarning(" in file.read_text(encoding="utf-8", errors="replace"):
                parts = file.relative_to(source).with_suffix("").parts
                return ".".join(("torch_spyre", *parts, "FallbackWarning"))
    where = source or interpreter.packages or interpreter.python
    raise EnvironmentTroubleError(
        f"no FallbackWarning is defined under {where}", next="debug-spyre doctor shows which torch-spyre is installed"
    )


def check_environment(overrides: Mapping[str, str]) -> None:
    """Arguments can also come by PYTEST_ADDOPTS: the same rules hold there.

    Raises:
        UsageError: they are refused.
    """
    text = overrides.get("PYTEST_ADDOPTS", os.environ.get("PYTEST_ADDOPTS", ""))
    try:
        words = shlex.split(text)
    except ValueError:
        return
    try:
        pytest_words.check(words)
    except UsageError as error:
        raise UsageError(
            f"PYTEST_ADDOPTS: {error.what}", next="unset PYTEST_ADDOPTS, or take these words out"
        ) from error


def check_command(checkout: Path, words: Sequence[str]) -> None:
    """The same rules for a command given to `exec`: no xdist, no `-k` that can't be read, no `uv run` that syncs.

    Raises:
        UsageError: they are refused, with what stands in their place.
    """
    names = [Path(word).name for word in words]
    at = next((n for n, name in enumerate(names) if name in {"pytest", "py.test"}), None)
    if at is not None and (at == 0 or words[at - 1] in {"-m", "run", "--no-sync"} or names[0] in {"uv", "env"}):
        pytest_words.check(words[at + 1 :])
    if names[:2] == ["uv", "run"] and "--no-sync" not in words and (checkout / "uv.lock").is_file():
        raise UsageError(
            "plain `uv run` syncs: it takes a local torch-spyre away without a word",
            next=f"debug-spyre exec -- {shlex.join([*words[:2], '--no-sync', *words[2:]])}",
        )
