"""Names of a test's parameters in the order in which its id shows them, from the source's own `parametrize` marks.

Only where the marks say it without doubt: literal names, no ids of their own for tuples; otherwise a function has no names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator


def names_in(source: str, file: str) -> dict[str, tuple[str, ...]]:
    """Names by function (`file::Class::test`); a file that is not Python has none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return dict(_visit(tree, file, ()))


def _visit(node: ast.AST, prefix: str, outer: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        own = _names(child.decorator_list)
        if own is None:
            continue
        name = f"{prefix}::{child.name}"
        if isinstance(child, ast.ClassDef):
            yield from _visit(child, name, (*own, *outer))
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
