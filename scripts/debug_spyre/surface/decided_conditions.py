"""Which conditions the text alone decides, and what an expression with one stands for: where it is open, both sides."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from debug_spyre.surface.evaluate import evaluate, same, visits
from debug_spyre.surface.values import Dotted, Items, Pairs, Plain, Scope, Unknown, Value, Why, Word

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module


@visits(ast.IfExp)
def _conditional(node: ast.IfExp, scope: Scope, module: Module) -> Value:
    holds = decided(node.test, scope, module)
    if holds is not None:
        return evaluate(node.body if holds else node.orelse, scope, module)
    chosen, other = evaluate(node.body, scope, module), evaluate(node.orelse, scope, module)
    if isinstance(chosen, Items) and isinstance(other, Items):
        return Items([*chosen.values, *other.values], open=chosen.open or other.open, maybe=True)
    return other if isinstance(chosen, Unknown) else chosen


@visits(ast.BoolOp)
def _or(node: ast.BoolOp, scope: Scope, module: Module) -> Value:
    values = [evaluate(value, scope, module) for value in node.values]
    unknown = [value for value in values if isinstance(value, Unknown)]
    if isinstance(node.op, ast.Or) and not unknown:
        return next((v for v in values if not _is_empty(v)), values[-1])
    return next((v for v in unknown if v.why is not Why.TEXT), Unknown())


def _is_empty(value: Value) -> bool:
    empty_word = isinstance(value, Word) and not value.text
    return (
        empty_word or (isinstance(value, Plain) and not value.value) or (isinstance(value, Items) and not value.values)
    )


def decided(node: ast.expr, scope: Scope, module: Module) -> bool | None:
    """Whether a condition holds, where the text alone tells."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = decided(node.operand, scope, module)
        return None if inner is None else not inner
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left = evaluate(node.left, scope, module)
        right = evaluate(node.comparators[0], scope, module)
        return _compare(node.ops[0], left, right)
    value = evaluate(node, scope, module)
    if isinstance(value, Plain):
        return bool(value.value)
    return bool(value.text) if isinstance(value, Word) else None


def _compare(operator: ast.cmpop, left: Value, right: Value) -> bool | None:
    positive = isinstance(operator, ast.Eq | ast.Is | ast.In)
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        kinds = (Word, Plain, Dotted)
        if not isinstance(left, kinds) or not isinstance(right, kinds):
            return None
        if isinstance(left, Dotted) != isinstance(right, Dotted) and Plain(None) not in (left, right):
            return None
        return same(left, right) == positive
    if isinstance(operator, ast.In | ast.NotIn) and isinstance(left, Word | Dotted):
        if isinstance(right, Items) and not right.open:
            return any(same(left, value) for value in right.values) == positive
        if isinstance(right, Pairs) and not right.open:
            return any(same(left, key) for key, _ in right.pairs) == positive
    return None
