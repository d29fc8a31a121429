"""Where ops are registered: frozen sites out of source text, what a registered function's body gives away, what could not be read."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from debug_spyre.surface.names import OpName

WARNS = "warns"  # emits FallbackWarning itself
CPU = "cpu"  # computes on the CPU
CPU_SOMETIMES = "cpu-in-a-branch"
INT64 = "int64"  # another way for int64
CALLS_BACK = "eager-in-a-branch"  # Inductor calls the eager kernel for some inputs


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


class Form(StrEnum):
    """What a site does. The first group is what `op --json` calls a site; the second is listed as related."""

    COMPILED_KERNEL = "compiled-kernel"
    KERNEL = "kernel"
    INPLACE_KERNEL = "inplace-kernel"
    FALLBACK = "fallback"
    DECOMPOSITION = "decomposition"
    EXCLUDED = "excluded"
    LOWERING = "lowering"
    CUSTOM_OP = "custom-op"
    CPP = "cpp"

    OTHER_DEVICE = "other-device"  # a kernel for the CPU, say
    PATCH = "patch"  # a Python function replaced
    FAKE = "fake"  # a shape function
    PATTERN = "pattern"  # a graph rewrite
    MARK = "mark"  # metadata of a compiler pass
    AUTOCAST = "autocast"
    MODEL_FALLBACK = "model-fallback"


SITES = frozenset(list(Form)[:9])


@dataclass(frozen=True, slots=True)
class Site:
    """One registration of one op, or of all overloads of a packet."""

    form: Form
    op: OpName
    file: str
    line: int
    detail: str = ""  # how it was written, where that matters
    notes: tuple[str, ...] = ()  # what its body shows: int64, cpu, cpu-in-a-branch, warns, ...
    compiled_only: bool = False
    listed_only: bool = False  # in the list of fallback ops, without a kernel of its own
    assumed: bool = False  # from the shipped list of compiled registrations

    @property
    def place(self) -> str:
        """file:line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A registration whose op could not be told from the text alone."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Surface:
    """Everything that a package registers, as far as its text tells."""

    sites: tuple[Site, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    warnings: tuple[str, ...] = ()  # files that could not be read
    files: int = 0
    lines: int = 0
