"""Comprehensions, one round for each value that the text tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from debug_spyre.surface.decided_conditions import decided
from debug_spyre.surface.evaluate import MOST_ITEMS, evaluate, visits
from debug_spyre.surface.loops import bind, iterated
from debug_spyre.surface.values import Items, Pairs, Scope, Value

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module


@visits(ast.ListComp)
@visits(ast.SetComp)
@visits(ast.GeneratorExp)
def _comprehension(node: ast.ListComp, scope: Scope, module: Module) -> Value:
    items = Items()
    for inner in _rounds(node.generators, scope, module, items):
        items.values.append(evaluate(node.elt, inner, module))
        if len(items.values) >= MOST_ITEMS:
            break
    return items


@visits(ast.DictComp)
def _dict_comprehension(node: ast.DictComp, scope: Scope, module: Module) -> Value:
    keys = Items()
    pairs = Pairs()
    for inner in _rounds(node.generators, scope, module, keys):
        pairs.pairs.append((evaluate(node.key, inner, module), evaluate(node.value, inner, module)))
    pairs.open = keys.open
    pairs.pairs += [(value, value) for value in keys.values]
    return pairs


def _rounds(generators: list[ast.comprehension], scope: Scope, module: Module, into: Items) -> Iterator[Scope]:
    first, rest = generators[0], generators[1:]
    for value in iterated(evaluate(first.iter, scope, module), into):
        inner = Scope(scope)
        bind(first.target, value, inner)
        if any(decided(condition, inner, module) is False for condition in first.ifs):
            continue
        if rest:
            yield from _rounds(rest, inner, module, into)
        else:
            yield inner
