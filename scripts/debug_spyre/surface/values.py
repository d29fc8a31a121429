"""What an expression of a package's source stands for, as far as its text tells: words, dotted names, lists, functions.

Everything that carries a place (a word, a dotted name) keeps the line it was written on, so that an element of a list
is reported where it stands and not where the list begins.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from debug_spyre.surface.names import OpName, from_path, from_schema_name

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module


class Why(Enum):
    """Why a value is not known."""

    PARAMETER = "a parameter of the function"
    TABLE = "a table that registrations fill"
    TEXT = "not told by the text"


@dataclass(frozen=True, slots=True)
class Unknown:
    """No value. `why` decides whether a registration with it is a helper's body or an open question."""

    why: Why = Why.TEXT


class Place(NamedTuple):
    """Where something was written."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Word:
    """A string constant."""

    text: str
    at: Place


@dataclass(frozen=True, slots=True)
class Dotted:
    """A name outside the package, or inside it but not a constant: `torch.ops.aten.mm.default`."""

    path: str
    at: Place


@dataclass(slots=True)
class Items:
    """A list, tuple or set."""

    values: list[Value] = field(default_factory=list)
    open: bool = False  # more may be in it than the text tells
    maybe: bool = False  # what is in it depends on a condition that the text does not tell


@dataclass(slots=True)
class Pairs:
    """A dict."""

    pairs: list[tuple[Value, Value]] = field(default_factory=list)
    open: bool = False


@dataclass(frozen=True, slots=True)
class Plain:
    """A number, True, None."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the package with the names it sees."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: Module
    scope: Scope


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that another module of the package defines; looked up when it is needed."""

    module: str  # file
    name: str


@dataclass(frozen=True, slots=True)
class Library:
    """`torch.library.Library(ns, kind, key)`."""

    ns: str
    key: str | None


Value: TypeAlias = "Unknown | Word | Dotted | Items | Pairs | Plain | Function | Imported | Library"


class Scope:
    """Names and what they stand for; a function's scope looks into the one around it."""

    __slots__ = ("names", "outer")

    def __init__(self, outer: Scope | None = None) -> None:
        self.names: dict[str, Value] = {}
        self.outer = outer

    def get(self, name: str) -> Value | None:
        """The value, or None where the name is not known here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def set(self, name: str, value: Value) -> None:
        """Bind the name here."""
        self.names[name] = value


@dataclass(frozen=True, slots=True)
class OpAt:
    """An op and the place where it was written."""

    op: OpName
    at: Place


def op_of(value: Value) -> OpAt | None:
    """The op that one value stands for; None if it is none."""
    if isinstance(value, Word):
        op = from_schema_name(value.text)
    elif isinstance(value, Dotted):
        op = from_path(value.path)
    else:
        return None
    return OpAt(op, value.at) if op else None


def ops_of(value: Value) -> tuple[list[OpAt], list[Value]]:
    """(ops, what is none) of a value that may be one op or a list of them."""
    if isinstance(value, Items):
        ops: list[OpAt] = []
        rest: list[Value] = [Unknown()] if value.open else []
        for item in value.values:
            found, other = ops_of(item)
            ops += found
            rest += other
        return ops, rest
    if isinstance(value, Pairs):
        return ops_of(Items([key for key, _ in value.pairs], open=value.open))
    if isinstance(value, Plain) and value.value is None:
        return [], []
    op = op_of(value)
    return ([op], []) if op else ([], [value])


def reason_of(rest: list[Value]) -> Why:
    """The strongest reason why a registration has no op: an open question beats a helper's parameter."""
    reasons = {value.why for value in rest if isinstance(value, Unknown)} | {
        Why.TEXT for value in rest if not isinstance(value, Unknown)
    }
    for why in (Why.TEXT, Why.PARAMETER, Why.TABLE):
        if why in reasons:
            return why
    return Why.TEXT
