"""What a loop sees of a value, and what its names are bound to."""

from __future__ import annotations

import ast

from debug_spyre.surface.values import Items, Pairs, Scope, Unknown, Value


def iterated(value: Value, into: Items | None = None) -> list[Value]:
    """What a loop over the value sees; an unknown one gives one round with that unknown."""
    if isinstance(value, Items):
        if value.open and into is not None:
            into.open = True
        return list(value.values)
    if isinstance(value, Pairs):
        return [key for key, _ in value.pairs]
    return [value if isinstance(value, Unknown) else Unknown()]


def bind(target: ast.expr, value: Value, scope: Scope) -> None:
    """Assign to a name or unpack over several."""
    if isinstance(target, ast.Name):
        scope.set(target.id, value)
    elif isinstance(target, ast.Starred):
        bind(target.value, Unknown(), scope)
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.values if isinstance(value, Items) and len(value.values) == len(target.elts) else None
        spare = value if isinstance(value, Unknown) else Unknown()
        for index, part in enumerate(target.elts):
            bind(part, parts[index] if parts else spare, scope)
