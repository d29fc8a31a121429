"""Facts from a checkout's own source: where it accepts a fallback, and the names of a test's parameters. Found by AST, nothing runs.

An assertion that an op does *not* fall back is no acceptance.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from debug_spyre.triage.nodeids import base_and_parameters, file_of
from debug_spyre.vocabulary.evidence import Fallback


def names_in(source: str, file: str) -> dict[str, tuple[str, ...]]:
    """Names by function (`file::Class::test`); a file that is not Python has none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return dict(_visit_parameter_names(tree, file, ()))


def _visit_parameter_names(node: ast.AST, prefix: str, outer: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        own = _names(child.decorator_list)
        if own is None:
            continue
        name = f"{prefix}::{child.name}"
        if isinstance(child, ast.ClassDef):
            yield from _visit_parameter_names(child, name, (*own, *outer))
        elif child.name.startswith("test") and (own or outer):
            yield name, (*own, *outer)


def _names(marks: list[ast.expr]) -> tuple[str, ...] | None:
    """The names of stacked marks: the one nearest to the function comes first in the id."""
    found: list[str] = []
    for mark in reversed(marks):
        if not isinstance(mark, ast.Call) or not ast.unparse(mark.func).endswith("mark.parametrize"):
            continue
        given = mark.args[0] if mark.args else None
        names = _literal(given)
        if names is None:
            return None
        told = any(k.arg == "ids" for k in mark.keywords) or "id=" in ast.unparse(mark)
        if told and len(names) > 1:
            return None  # one text stands for the whole tuple
        found += names
    return tuple(found)


def _literal(node: ast.expr | None) -> list[str] | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [part.strip() for part in node.value.split(",") if part.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        texts = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        return texts if len(texts) == len(node.elts) else None
    return None


WORD = "FallbackWarning"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One place that accepts fallbacks. `function` None: the whole file; `is_global`: every test."""

    file: str
    line: int
    function: str | None
    message: str | None  # a pattern that the warning's text must match
    is_global: bool = False

    @property
    def place(self) -> str:
        """file:line."""
        return f"{self.file}:{self.line}"


def find_acceptances(source: str, file: str) -> tuple[Acceptance, ...]:
    """The acceptances of one Python file; a file that is not Python has none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(_visit(tree, file, None))


def from_settings(text: str, file: str) -> tuple[Acceptance, ...]:
    """Filters in pyproject.toml, pytest.ini, setup.cfg, tox.ini: they hold for every test."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.split("#", 1)[0]
        if WORD in bare and re.search(r"\b(?:ignore|default|once|module)\b", bare):
            found.append(Acceptance(file, number, None, _filter_message(bare.strip().strip("\"',")), is_global=True))
    return tuple(found)


def _visit(node: ast.AST, file: str, function: str | None) -> Iterator[Acceptance]:
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = child.name if function is None else f"{function}::{child.name}"
            for mark in child.decorator_list:
                yield from _of_call(mark, file, inside)
        if isinstance(child, ast.Call):
            yield from _of_call(child, file, function)
        if isinstance(child, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "pytestmark" for t in child.targets
        ):
            for part in ast.walk(child.value):
                yield from _of_call(part, file, function)
            continue
        yield from (a for a in _visit(child, file, inside) if not _is_decorator(child, a))


def _is_decorator(child: ast.AST, found: Acceptance) -> bool:
    marks = getattr(child, "decorator_list", ())
    return any(mark.lineno == found.line for mark in marks)


def _of_call(node: ast.AST, file: str, function: str | None) -> Iterator[Acceptance]:
    if not isinstance(node, ast.Call):
        return
    name = ast.unparse(node.func).rsplit(".", 1)[-1]
    texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if name == "filterwarnings" and texts and len(node.args) == 1 and WORD in texts[0]:
        if texts[0].split(":", 1)[0] != "error":
            yield Acceptance(file, node.lineno, function, _filter_message(texts[0]))
    elif name in {"filterwarnings", "simplefilter"} and texts[:1] == ["ignore"] and _names_warning(node):
        message = _keyword(node, "message") or (texts[1] if len(texts) > 1 else None)
        yield Acceptance(file, node.lineno, function, message)
    elif name in {"warns", "deprecated_call"} and _names_warning(node):
        yield Acceptance(file, node.lineno, function, _keyword(node, "match"))


def _names_warning(node: ast.Call) -> bool:
    values = [*node.args, *(k.value for k in node.keywords)]
    return any(WORD in ast.unparse(v) for v in values)


def _keyword(node: ast.Call, name: str) -> str | None:
    for keyword in node.keywords:
        if keyword.arg == name and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
            return keyword.value.value
    return None


def _filter_message(text: str) -> str | None:
    parts = text.split(":")
    return parts[1] if len(parts) > 2 and parts[1] else None


def mark(fallbacks: Sequence[Fallback], acceptances: Sequence[Acceptance]) -> tuple[Fallback, ...]:
    """The fallbacks, those that the checkout accepts with the place that does."""
    return tuple(_marked(fallback, acceptances) for fallback in fallbacks)


def _marked(fallback: Fallback, acceptances: Sequence[Acceptance]) -> Fallback:
    for acceptance in acceptances:
        if _message_fits(fallback, acceptance) and _scope_fits(fallback, acceptance):
            return replace(fallback, accepted=acceptance.place)
    return fallback


def _message_fits(fallback: Fallback, acceptance: Acceptance) -> bool:
    if acceptance.message is None:
        return True
    text = f"{fallback.op} is falling back to cpu"
    try:
        return re.search(acceptance.message, text) is not None
    except re.error:
        return acceptance.message in text


def _scope_fits(fallback: Fallback, acceptance: Acceptance) -> bool:
    if acceptance.is_global:
        return True
    return bool(fallback.nodeids) and all(_inside(nodeid, acceptance) for nodeid in fallback.nodeids)


def _inside(nodeid: str, acceptance: Acceptance) -> bool:
    path = file_of(nodeid).split(": ", 1)[0]
    if not (path == acceptance.file or acceptance.file.endswith("/" + path) or path.endswith("/" + acceptance.file)):
        return False
    if acceptance.function is None:
        return True
    base = base_and_parameters(nodeid)[0]
    names = base.split("::", 1)[1] if "::" in base else ""
    return names == acceptance.function or names.startswith(acceptance.function + "::")
