"""Expressions to values: one small visitor per node type. What the text does not tell becomes Unknown with its reason."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from debug_spyre.surface.loops import bind
from debug_spyre.surface.names import from_path
from debug_spyre.surface.values import (
    Dotted,
    Function,
    Imported,
    Items,
    Pairs,
    Place,
    Plain,
    Scope,
    Unknown,
    Value,
    Why,
    Word,
)

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module

Visitor = Callable[[Any, Scope, "Module"], Value]
_VISITORS: dict[type[ast.AST], Visitor] = {}
MOST_ITEMS = 5000
FILLED_LIST = "fallback_ops"  # the list that registrations append to; its members are sites of their own
OP_ATTRIBUTES = {"name", "_name", "__name__", "_qualified_op_name"}


def visits(kind: type[ast.AST]) -> Callable[[Visitor], Visitor]:
    """Register the visitor of a node type."""

    def register(visitor: Visitor) -> Visitor:
        _VISITORS[kind] = visitor
        return visitor

    return register


def evaluate(node: ast.AST | None, scope: Scope, module: Module) -> Value:
    """The value of an expression."""
    if node is None:
        return Plain(None)
    visitor = _VISITORS.get(type(node))
    return visitor(node, scope, module) if visitor else _hidden(node, scope)


def _hidden(node: ast.AST, scope: Scope) -> Unknown:
    """An expression that is not followed: unknown for the reason that a name in it is, if one is."""
    for inner in ast.walk(node):
        value = scope.get(inner.id) if isinstance(inner, ast.Name) else None
        if isinstance(value, Unknown) and value.why is not Why.TEXT:
            return value
    return Unknown()


def forced(value: Value | None, module: Module) -> Value:
    """The value behind an import inside the package."""
    for _ in range(20):
        if not isinstance(value, Imported):
            break
        value = module.package.lookup(value)
    return value if value is not None and not isinstance(value, Imported) else Unknown()


@visits(ast.Constant)
def _constant(node: ast.Constant, _scope: Scope, module: Module) -> Value:
    return Word(node.value, module.at(node)) if isinstance(node.value, str) else Plain(node.value)


@visits(ast.Name)
def _name(node: ast.Name, scope: Scope, module: Module) -> Value:
    value = scope.get(node.id)
    if node.id.endswith(FILLED_LIST):
        return Unknown(Why.TABLE)
    if value is None:
        return Dotted(node.id, module.at(node))
    if isinstance(value, Imported):
        value = forced(value, module)
    if isinstance(value, Dotted) and from_path(value.path) is None:
        return Dotted(value.path, module.at(node))  # an alias is where it is used, an op where it was written
    return value


@visits(ast.Attribute)
def _attribute(node: ast.Attribute, scope: Scope, module: Module) -> Value:
    base = evaluate(node.value, scope, module)
    return attribute_of(base, node.attr, module.end_of(node), module)


def attribute_of(base: Value, name: str, at: Place, module: Module) -> Value:
    """`base.name`."""
    if isinstance(base, Dotted):
        if name in OP_ATTRIBUTES and base.path.startswith(("torch.ops.", "torch._ops.ops.")):
            return base  # the name of an op stands for the op
        inside = module.package.attribute(base.path, name)
        return forced(inside, module) if inside is not None else Dotted(f"{base.path}.{name}", at)
    if isinstance(base, Unknown):
        return base
    if isinstance(base, Function):
        return Unknown(Why.TABLE)  # an attribute of a function is filled while it runs
    return base if isinstance(base, Word) and name in OP_ATTRIBUTES else Unknown()


def _elements(nodes: list[ast.expr], scope: Scope, module: Module) -> Items:
    items = Items()
    for node in nodes:
        if isinstance(node, ast.Starred):
            extend(items, evaluate(node.value, scope, module))
        else:
            items.values.append(evaluate(node, scope, module))
    return items


def extend(items: Items, more: Value) -> None:
    """Append what `more` holds; what can't be told leaves the list open."""
    if isinstance(more, Items):
        items.values += more.values[: MOST_ITEMS - len(items.values)]
        items.open |= more.open
    elif isinstance(more, Pairs):
        items.values += [key for key, _ in more.pairs]
        items.open |= more.open
    elif isinstance(more, Unknown):
        items.values.append(more)
    else:
        items.open = True


@visits(ast.List)
@visits(ast.Tuple)
@visits(ast.Set)
def _sequence(node: ast.List, scope: Scope, module: Module) -> Value:
    return _elements(node.elts, scope, module)


@visits(ast.Dict)
def _dict(node: ast.Dict, scope: Scope, module: Module) -> Value:
    pairs = Pairs()
    for key, item in zip(node.keys, node.values, strict=True):
        value = evaluate(item, scope, module)
        if key is not None:
            pairs.pairs.append((evaluate(key, scope, module), value))
        elif isinstance(value, Pairs):
            pairs.pairs += value.pairs
        else:
            pairs.open = True
    return pairs


@visits(ast.JoinedStr)
def _fstring(node: ast.JoinedStr, scope: Scope, module: Module) -> Value:
    text = ""
    for part in node.values:
        value = evaluate(part.value if isinstance(part, ast.FormattedValue) else part, scope, module)
        if isinstance(value, Word):
            text += value.text
        elif isinstance(value, Plain):
            text += str(value.value)
        else:
            return value if isinstance(value, Unknown) else Unknown()
    return Word(text, module.at(node))


@visits(ast.BinOp)
def _binary(node: ast.BinOp, scope: Scope, module: Module) -> Value:
    left, right = evaluate(node.left, scope, module), evaluate(node.right, scope, module)
    if isinstance(node.op, ast.Add | ast.BitOr) and isinstance(left, Items) and isinstance(right, Items):
        return Items([*left.values, *right.values], open=left.open or right.open)
    if isinstance(node.op, ast.Add) and isinstance(left, Word) and isinstance(right, Word):
        return Word(left.text + right.text, left.at)
    if isinstance(node.op, ast.BitOr) and isinstance(left, Pairs) and isinstance(right, Pairs):
        return Pairs([*left.pairs, *right.pairs], open=left.open or right.open)
    if isinstance(node.op, ast.Mod) and isinstance(left, Word):
        given = right.values if isinstance(right, Items) else [right]
        if all(isinstance(v, Word) for v in given):
            try:
                return Word(left.text % tuple(v.text for v in given if isinstance(v, Word)), left.at)
            except (TypeError, ValueError):
                return Unknown()
    sides = [left, right]
    partly = [side for side in sides if isinstance(side, Items)]
    if isinstance(node.op, ast.Add | ast.BitOr) and partly:
        return Items(list(partly[0].values), open=True)
    return next((side for side in sides if isinstance(side, Unknown)), Unknown())


@visits(ast.Subscript)
def _subscript(node: ast.Subscript, scope: Scope, module: Module) -> Value:
    base, key = evaluate(node.value, scope, module), evaluate(node.slice, scope, module)
    if isinstance(base, Items) and isinstance(key, Plain) and isinstance(key.value, int):
        return base.values[key.value] if -len(base.values) <= key.value < len(base.values) else Unknown()
    if isinstance(base, Pairs):
        return next((value for name, value in base.pairs if same(name, key)), Unknown())
    return base if isinstance(base, Unknown) else Unknown()


def same(one: Value, other: Value) -> bool:
    """Whether two constants are equal."""
    if isinstance(one, Word) and isinstance(other, Word):
        return one.text == other.text
    if isinstance(one, Dotted) and isinstance(other, Dotted):
        return one.path == other.path
    return isinstance(one, Plain) and isinstance(other, Plain) and bool(one.value == other.value)


@visits(ast.Lambda)
def _lambda(node: ast.Lambda, scope: Scope, module: Module) -> Value:
    return Function(node, module, scope)


@visits(ast.NamedExpr)
def _walrus(node: ast.NamedExpr, scope: Scope, module: Module) -> Value:
    value = evaluate(node.value, scope, module)
    bind(node.target, value, scope)
    return value


@visits(ast.Call)
def _call(node: ast.Call, scope: Scope, module: Module) -> Value:
    return module.package.call(node, scope, module)
