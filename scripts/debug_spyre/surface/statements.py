"""Statements run on paper: one small step per node type. Both sides of an open question are followed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from debug_spyre.surface.decided_conditions import decided
from debug_spyre.surface.evaluate import evaluate, extend, forced
from debug_spyre.surface.loops import bind, iterated
from debug_spyre.surface.registration_forms import assigned_forms
from debug_spyre.surface.sites import Unresolved
from debug_spyre.surface.values import Dotted, Function, Imported, Items, Pairs, Scope, Unknown, Value, Why

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module

Step = Callable[[Any, Scope, "Module"], "list[Value] | None"]
MOST_PAIRS = 500
_STEPS: dict[type[ast.stmt], Step] = {}


def runs(*kinds: type[ast.stmt]) -> Callable[[Step], Step]:
    """Register the step of a node type."""

    def register(step: Step) -> Step:
        _STEPS.update(dict.fromkeys(kinds, step))
        return step

    return register


def run_statements(body: list[ast.stmt], scope: Scope, module: Module) -> list[Value]:
    """Run these statements; returns what they return or yield."""
    returned: list[Value] = []
    for statement in body:
        step = _STEPS.get(type(statement))
        if step is not None and module.package.goes_on(module, statement):
            returned += step(statement, scope, module) or []
    return returned


@runs(ast.Import)
def _import(node: ast.Import, scope: Scope, module: Module) -> None:
    for alias in node.names:
        name = alias.asname or alias.name.split(".")[0]
        scope.set(name, Dotted(alias.name if alias.asname else name, module.at(node)))


@runs(ast.ImportFrom)
def _import_from(node: ast.ImportFrom, scope: Scope, module: Module) -> None:
    source = node.module or ""
    if node.level:
        parts = module.dotted.split(".")
        keep = len(parts) - node.level + (1 if module.file.endswith("__init__.py") else 0)
        source = ".".join([*parts[:keep], *([source] if source else [])])
    file = module.package.by_dotted.get(source)
    for alias in node.names:
        whole = f"{source}.{alias.name}"
        if alias.name == "*" and file:
            scope.names.update(
                {k: v for k, v in module.package.module(file).scope.names.items() if not k.startswith("_")}
            )
        elif file and whole not in module.package.by_dotted:
            scope.set(alias.asname or alias.name, Imported(file, alias.name))
        else:
            scope.set(alias.asname or alias.name, Dotted(whole, module.at(node)))


@runs(ast.Assign)
def _assign(node: ast.Assign, scope: Scope, module: Module) -> None:
    _assign_to(node.targets, node.value, scope, module)


@runs(ast.AnnAssign)
def _ann_assign(node: ast.AnnAssign, scope: Scope, module: Module) -> None:
    if node.value is not None:
        _assign_to([node.target], node.value, scope, module)


def _assign_to(targets: list[ast.expr], source: ast.expr, scope: Scope, module: Module) -> None:
    value = evaluate(source, scope, module)
    for target in targets:
        if isinstance(target, ast.Subscript):
            base = evaluate(target.value, scope, module)
            key = evaluate(target.slice, scope, module)
            if isinstance(base, Pairs) and len(base.pairs) < MOST_PAIRS:
                base.pairs.append((key, value))
            module.package.recorder.item_assigned(_last_name(target.value, base), key, value, module.at(target), module)
        elif isinstance(target, ast.Attribute):
            base = evaluate(target.value, scope, module)
            module.package.recorder.attribute_assigned(base, target.attr, value, module.at(target), module)
        else:
            bind(target, value, scope)
            if isinstance(target, ast.Name) and scope is module.scope:
                assigned_forms(module.package.recorder, target.id, value, module.at(target), module)


def _last_name(node: ast.expr, base: Value) -> str:
    if isinstance(base, Dotted):
        return base.path.rsplit(".", 1)[-1]
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@runs(ast.AugAssign)
def _aug_assign(node: ast.AugAssign, scope: Scope, module: Module) -> None:
    if not isinstance(node.target, ast.Name):
        return
    before, more = scope.get(node.target.id), evaluate(node.value, scope, module)
    before = forced(before, module) if before is not None else Items()
    if isinstance(before, Items):
        merged = Items(list(before.values), open=before.open)
        extend(merged, more)
        scope.set(node.target.id, merged)
    if node.target.id.endswith("fallback_ops"):
        assigned_forms(module.package.recorder, node.target.id, more, module.at(node), module)


@runs(ast.Expr)
def _expr(node: ast.Expr, scope: Scope, module: Module) -> list[Value]:
    if isinstance(node.value, ast.Yield):
        return [Items([evaluate(node.value.value, scope, module)])]
    if isinstance(node.value, ast.YieldFrom):
        return [evaluate(node.value.value, scope, module)]
    evaluate(node.value, scope, module)
    return []


@runs(ast.Return)
def _return(node: ast.Return, scope: Scope, module: Module) -> list[Value]:
    return [evaluate(node.value, scope, module)] if node.value is not None else []


@runs(ast.For, ast.AsyncFor)
def _for(node: ast.For, scope: Scope, module: Module) -> list[Value]:
    returned: list[Value] = []
    spare = Items()
    over = evaluate(node.iter, scope, module)
    maybe = isinstance(over, Items) and over.maybe
    module.package.recorder.conditions += maybe
    for value in iterated(over, spare):
        bind(node.target, value, scope)
        returned += run_statements(node.body, scope, module)
    module.package.recorder.conditions -= maybe
    if spare.open and module.is_interesting(node):
        module.package.recorder.unresolved.append(Unresolved(*module.at(node), module.lines[node.lineno - 1].strip()))
    return returned + run_statements(node.orelse, scope, module)


@runs(ast.While)
def _while(node: ast.While, scope: Scope, module: Module) -> list[Value]:
    return run_statements(node.body, scope, module)


@runs(ast.With, ast.AsyncWith)
def _with(node: ast.With, scope: Scope, module: Module) -> list[Value]:
    for item in node.items:
        value = evaluate(item.context_expr, scope, module)
        if item.optional_vars is not None:
            bind(item.optional_vars, value, scope)
    return run_statements(node.body, scope, module)


@runs(ast.If)
def _if(node: ast.If, scope: Scope, module: Module) -> list[Value]:
    holds = decided(node.test, scope, module)
    if holds is not None:
        return run_statements(node.body if holds else node.orelse, scope, module)
    before = dict(scope.names)
    open_question = not any(isinstance(v, Unknown) and v.why is Why.PARAMETER for v in before.values())
    module.package.recorder.conditions += open_question
    returned = run_statements(node.body, scope, module)
    after = dict(scope.names)
    returned += run_statements(node.orelse, scope, module)
    module.package.recorder.conditions -= open_question
    for name, value in scope.names.items():  # a list that both branches bind: either may hold
        other = after.get(name)
        if value is not other and other is not before.get(name) and isinstance(value, Items):
            scope.names[name] = Items([*(other.values if isinstance(other, Items) else []), *value.values])
    return returned


@runs(ast.Try, ast.TryStar)
def _try(node: ast.Try, scope: Scope, module: Module) -> list[Value]:
    returned = run_statements(node.body, scope, module)
    for handler in node.handlers:
        run_statements(handler.body, Scope(scope), module)
    return returned + run_statements([*node.orelse, *node.finalbody], scope, module)


@runs(ast.Match)
def _match(node: ast.Match, scope: Scope, module: Module) -> list[Value]:
    return [value for case in node.cases for value in run_statements(case.body, scope, module)]


@runs(ast.ClassDef)
def _class_def(node: ast.ClassDef, scope: Scope, module: Module) -> None:
    module.package.recorder.class_defined(node, module)
    inner = Scope(scope)
    scope.set(node.name, Unknown(Why.TABLE))
    if module.is_interesting(node):
        run_statements(node.body, inner, module)
        look_into(node, inner, module)


@runs(ast.FunctionDef, ast.AsyncFunctionDef)
def _function_def(node: ast.FunctionDef, scope: Scope, module: Module) -> None:
    function = Function(node, module, scope)
    scope.set(node.name, function)
    value: Value = function
    for decorator in reversed(node.decorator_list):
        if isinstance(decorator, ast.Call):
            value = module.package.call(decorator, scope, module, applied=function, decorator=True) or value
        else:
            made = evaluate(decorator, scope, module)
            if isinstance(made, Function):
                value = module.package.apply(made, [function], {}) or value
    if isinstance(value, Dotted):  # a custom op keeps its name
        scope.set(node.name, value)


def look_into(node: ast.Module | ast.ClassDef | ast.FunctionDef, scope: Scope, module: Module) -> None:
    """Look into functions that nobody called on paper; their parameters stay unknown."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if id(child) not in module.called and module.is_interesting(child):
                module.package.apply(Function(child, module, scope), None, {})
        elif isinstance(child, ast.If | ast.Try | ast.With):
            look_into(child, scope, module)  # type: ignore[arg-type]
