"""Which changes are the session's own, and which changed files are test code although their names don't say so."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from debug_spyre.host.git import GitFailedError, index_entries
from debug_spyre.tree.changes import Changes, expectations, is_test
from debug_spyre.tree.io.scan import covered_files, is_under_source, source_folders
from debug_spyre.tree.io.snapshot import Change, Start, changes_since, load_start, patch_of

_SECRET = re.compile(
    rb"(?:^|/)(?:\.env(?:\..*|rc)?|\.netrc|\.pgpass|\.pypirc|\.npmrc|\.git-credentials|credentials(?:\.\w+)?|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*"
    rb"|[^/]*\.(?:pem|key|p12|pfx|jks|keystore|kdbx)|secrets?\.(?:json|ya?ml|toml|ini|env)|(?:hf|github)_?token[^/]*)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Split:
    """The session's own changes, and the files that are left as they are with the reason."""

    own: tuple[Change, ...]
    left: tuple[tuple[Change, str], ...]


def split(checkout: Path, start: Start, changes: Iterable[Change], *, keep: Collection[bytes] = ()) -> Split:
    """Tell the session's own changes from others; `keep` are paths that the caller says are not its own."""
    judge = _Judge(checkout, start, frozenset(index_entries(checkout)), tuple(keep))
    judged = [(change, judge.why_left(change)) for change in changes]
    return Split(tuple(c for c, why in judged if not why), tuple((c, why) for c, why in judged if why))


def patch_since(checkout: Path, tree: Mapping[str, Any], folder: Path | None = None) -> bytes:
    """The patch of the session's own changes since the snapshot; empty where there are none.

    Raises:
        BadInputError: there is no snapshot; EnvironmentTroubleError: git can't answer or a file changes meanwhile.
    """
    start = load_start(tree, folder)
    return patch_of(checkout, start, split(checkout, start, changes_since(checkout, start)).own)


@dataclass(frozen=True, slots=True)
class _Judge:
    checkout: Path
    start: Start
    staged: frozenset[bytes]
    keep: tuple[bytes, ...]

    def why_left(self, change: Change) -> str:
        """Why this file stays as it is; empty where it is the session's own."""
        path = change.path
        if any(path == name or path.startswith(name + b"/") for name in self.keep):
            return "as asked"
        if path in self.start.index or change.after is None:
            return ""
        if _SECRET.search(path):
            return "it may hold secrets"
        if path in self.staged or any(name.startswith(path + b"/") for name in self.start.files):
            return ""  # staged, or in the way of a folder that was there
        if not is_under_source(path, source_folders(self.start.index)):
            return "no test sees it, so it is no part of the experiment"
        try:
            is_ours = os.lstat(os.fsencode(self.checkout) + b"/" + path).st_uid == os.getuid()
        except OSError:
            is_ours = True
        return "" if is_ours else "another user made it"


_WORDS = re.compile(r"expect|golden|reference|oracle|fixture|testing|test_|_test|tolerance|assert", re.IGNORECASE)


def with_test_code(changes: Changes, patch: bytes, checkout: Path) -> Changes:
    """The changes with every file among the tests that only tests import, directly or through each other."""
    asked = [name for name in changes.files if name.endswith(".py") and name not in (*changes.tests, *changes.unmarked)]
    found = [*changes.tests, *_only_tests_import(asked, checkout)] if asked else list(changes.tests)
    return replace(changes, tests=tuple(found), expectations=expectations(patch, found))


def _only_tests_import(asked: list[str], checkout: Path) -> Iterator[str]:
    try:
        sources = [os.fsdecode(path) for path in covered_files(checkout) if path.endswith(b".py")]
    except GitFailedError:
        return
    imports = {name: _imports(checkout / name, name) for name in sources}
    for name in asked:
        importers = _importers(name, imports)
        if importers and all(map(is_test, importers)) and _says_what_is_expected(checkout / name, name):
            yield name


def _says_what_is_expected(place: Path, name: str) -> bool:
    """Only values, or names that say so: code under test may be imported by nobody but its tests, too."""
    if _WORDS.search(name):
        return True
    with suppress(OSError, SyntaxError, ValueError):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        defined = [node.name for node in ast.walk(ast.parse(place.read_bytes())) if isinstance(node, kinds)]
        return not defined or any(map(_WORDS.search, defined))
    return False


def _importers(name: str, imports: dict[str, set[str]]) -> set[str]:
    """Files that import this one; a file that is imported by tests only stands for its own importers."""
    found: set[str] = set()
    todo, known = [name], {name}
    while todo:
        module = _modules(todo.pop())
        direct = {other for other, names in imports.items() if names & module and other not in known}
        known |= direct
        for other in direct:
            nested = {x for x, names in imports.items() if names & _modules(other) and x != other}
            if is_test(other) or not nested or not all(map(is_test, nested)):
                found.add(other)
            else:
                todo.append(other)
    return found


def _modules(name: str) -> set[str]:
    """The names under which this file can be imported: with its folders, and without the first (src/)."""
    parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
    return {".".join(parts), ".".join(parts[1:])} - {""}


def _imports(place: Path, name: str) -> set[str]:
    found: set[str] = set()
    package = name.removesuffix(".py").split("/")[:-1]
    with suppress(OSError, SyntaxError, ValueError):
        for node in ast.walk(ast.parse(place.read_bytes())):
            found.update(_named(node, package))
    return found


def _named(node: ast.AST, package: list[str]) -> Iterable[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = (
            [*package[: len(package) - node.level + 1], *filter(None, [node.module])]
            if node.level
            else [node.module or ""]
        )
        for start in (base, base[1:]) if node.level else (base,):
            if start:
                yield ".".join(start)
                yield from (".".join([*start, alias.name]) for alias in node.names)
