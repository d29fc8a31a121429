"""What the body of a registered function gives away: work on the CPU without a FallbackWarning, int64 by another way."""

from __future__ import annotations

import ast
from functools import lru_cache

from debug_spyre.surface.notes import CALLS_BACK, CPU, CPU_SOMETIMES, INT64, WARNS

_MAKERS = {"ones", "zeros", "empty", "full", "rand", "randn", "tensor", "arange", "ones_like", "zeros_like"}


@lru_cache(maxsize=4096)
def notes_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> tuple[str, ...]:
    """The notes on one function, sorted."""
    seen = _Seen()
    body = node.body if isinstance(node.body, list) else []
    for statement in body:
        _look(statement, seen, branch=False)
    notes = set()
    if seen.warns:
        notes.add(WARNS)
    elif seen.cpu or (seen.made_on_host and seen.copies):
        notes.add(CPU)
    elif seen.cpu_in_branch:
        notes.add(CPU_SOMETIMES)
    if seen.int64:
        notes.add(INT64)
    if seen.calls_back:
        notes.add(CALLS_BACK)
    return tuple(sorted(notes))


class _Seen:
    __slots__ = ("calls_back", "copies", "cpu", "cpu_in_branch", "int64", "made_on_host", "warns")

    def __init__(self) -> None:
        self.calls_back = self.copies = self.cpu = self.cpu_in_branch = False
        self.int64 = self.made_on_host = self.warns = False


def _look(node: ast.AST, seen: _Seen, *, branch: bool) -> None:
    if isinstance(node, ast.Call):
        _call(node, seen, branch=branch)
    elif (isinstance(node, ast.Attribute) and "int64" in node.attr and node.attr != "int64") or (
        isinstance(node, ast.Name) and "int64" in node.id
    ):
        seen.int64 = True
    for child in ast.iter_child_nodes(node):
        inner = isinstance(node, ast.If | ast.Try | ast.For | ast.While | ast.IfExp)
        _look(child, seen, branch=branch or inner)


def _call(node: ast.Call, seen: _Seen, *, branch: bool) -> None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    on_cpu = any(k.arg == "device" and _is_cpu(k.value) for k in node.keywords)
    method = isinstance(node.func, ast.Attribute)
    if (
        (name == "cpu" and method and not node.args)
        or ((name == "to" or name.endswith("_to")) and any(map(_is_cpu, node.args)))
        or on_cpu
    ):
        if branch:
            seen.cpu_in_branch = True
        else:
            seen.cpu = True
    if name == "warn_fallback":
        seen.warns = True
    if name == "copy_":
        seen.copies = True
    if name in _MAKERS and method and not any(k.arg == "device" for k in node.keywords):
        home = getattr(node.func, "value", None)
        seen.made_on_host |= isinstance(home, ast.Name) and home.id == "torch" and not name.endswith("_like")
    if name in {"eager_fallback", "fallback_handler"} or _is_fallback_kernel(node.func):
        seen.calls_back = True


def _is_cpu(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _is_fallback_kernel(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "create"
        and (node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", ""))
        == "FallbackKernel"
    )
