"""Calls whose value Python itself defines: getattr with a constant, list, zip, methods of words and dicts."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from debug_spyre.surface.evaluate import OP_ATTRIBUTES, attribute_of, evaluate, extend, same
from debug_spyre.surface.loops import iterated
from debug_spyre.surface.values import Dotted, Function, Items, Pairs, Plain, Scope, Unknown, Value, Why, Word

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module

_FILLED = ("decompositions", "lowerings", "fallback_ops")  # tables that registrations fill
_SAME_LIST = {"list", "tuple", "set", "sorted", "frozenset", "reversed", "iter"}


def call_builtin(name: str, node: ast.Call, scope: Scope, module: Module) -> Value | None:
    """The value of a call that every Python has, or None for any other."""
    arguments = node.args
    if name == "getattr" and len(arguments) >= 2:
        key = evaluate(arguments[1], scope, module)
        base = evaluate(arguments[0], scope, module)
        if isinstance(key, Word):
            return attribute_of(base, key.text, module.at(node), module)
        return key if isinstance(key, Unknown) else Unknown()
    if name in _SAME_LIST and len(arguments) <= 1:
        inner = evaluate(arguments[0], scope, module) if arguments else Items()
        items = Items()
        extend(items, inner)
        return items
    if name == "dict" and not arguments:
        return Pairs([(Word(k.arg, module.at(node)), evaluate(k.value, scope, module)) for k in node.keywords if k.arg])
    if name == "str" and len(arguments) == 1:
        return evaluate(arguments[0], scope, module)
    if name in {"map", "filter"} and len(arguments) == 2:
        return _mapped(name, arguments, scope, module)
    if name == "zip":
        columns = [iterated(evaluate(a, scope, module)) for a in arguments]
        return Items([Items(list(row)) for row in zip(*columns, strict=False)])
    if name == "enumerate" and arguments:
        return Items([Items([Plain(i), v]) for i, v in enumerate(iterated(evaluate(arguments[0], scope, module)))])
    return None


def _mapped(name: str, arguments: list[ast.expr], scope: Scope, module: Module) -> Value:
    function, over = evaluate(arguments[0], scope, module), evaluate(arguments[1], scope, module)
    items = Items()
    values = iterated(over, items)
    if name == "filter":
        items.values, items.maybe = values, True
    elif isinstance(function, Function):
        items.values = [module.package.apply(function, [value], {}) for value in values]
    else:
        items.values = [value if isinstance(value, Unknown) else Unknown() for value in values]
    return items


def call_method(base: Value, name: str, node: ast.Call, scope: Scope, module: Module) -> Value | None:
    """The value of a method of a known value, or None where it is not one of ours."""
    given = [evaluate(a, scope, module) for a in node.args]
    if isinstance(base, Pairs) and name in {"items", "keys", "values"}:
        rows: dict[str, list[Value]] = {
            "items": [Items([key, value]) for key, value in base.pairs],
            "keys": [key for key, _ in base.pairs],
            "values": [value for _, value in base.pairs],
        }
        return Items(rows[name], open=base.open)
    if isinstance(base, Dotted) and name in {"items", "keys", "values"} and base.path.endswith(_FILLED):
        return Unknown(Why.TABLE)
    if isinstance(base, Pairs) and name == "get" and given:
        return next((value for key, value in base.pairs if same(key, given[0])), Unknown())
    if isinstance(base, Word):
        return _word_method(base, name, given)
    if isinstance(base, Dotted | Word) and name in OP_ATTRIBUTES:
        return attribute_of(base, name, module.at(node), module)
    return base if isinstance(base, Unknown) else None


def _word_method(base: Word, name: str, given: list[Value]) -> Value:
    words = [value.text for value in given if isinstance(value, Word)]
    if name in {"replace", "removeprefix", "removesuffix", "strip", "lower", "upper"} and len(words) == len(given):
        return Word(getattr(base.text, name)(*words), base.at)
    if name in {"split", "partition", "rpartition"} and len(words) == len(given):
        return Items([Word(part, base.at) for part in getattr(base.text, name)(*words)])
    if name == "format" and len(words) == len(given):
        try:
            return Word(base.text.format(*words), base.at)
        except (IndexError, KeyError, ValueError):
            return Unknown()
    if name == "join" and len(given) == 1 and isinstance(given[0], Items):
        parts = [value.text for value in given[0].values if isinstance(value, Word)]
        if len(parts) == len(given[0].values):
            return Word(base.text.join(parts), base.at)
    return Unknown()
