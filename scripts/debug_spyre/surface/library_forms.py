"""Registrations by a torch.library.Library object: impl, fallback for a whole key, define."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from debug_spyre.surface.evaluate import evaluate
from debug_spyre.surface.names import from_schema_name
from debug_spyre.surface.recorder import Recorder
from debug_spyre.surface.registration_forms import CUSTOM, DEVICES, argument, devices_of, reads
from debug_spyre.surface.sites import Form
from debug_spyre.surface.values import Dotted, Function, Library, Scope, Unknown, Value, Why, Word

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module


@reads("Library")
def _library(_recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    ns, key = argument(node, 0, "ns", scope, module), argument(node, 2, "dispatch_key", scope, module)
    del function
    return Library(ns.text if isinstance(ns, Word) else "?", key.text if isinstance(key, Word) else None)


@reads("impl")
def _impl(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    owner = evaluate(node.func.value, scope, module) if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, Library):  # lib.impl("add.Tensor", kernel, "PrivateUse1")
        name, kernel, key = (
            argument(node, i, k, scope, module) for i, k in enumerate(("op_name", "fn", "dispatch_key"))
        )
        _library_impl(recorder, node, module, owner, name=name, kernel=kernel, key=key)
    elif isinstance(owner, Dotted) and owner.path.endswith("library"):  # torch.library.impl(lib or name, ...)
        first = argument(node, 0, "lib", scope, module)
        second = argument(node, 1, "name", scope, module)
        if isinstance(first, Library):
            key = argument(node, 2, "dispatch_key", scope, module)
            _library_impl(recorder, node, module, first, name=second, kernel=function, key=key)
        elif first is not None and (devices_of(second) or DEVICES) & DEVICES:
            recorder.add(Form.KERNEL, first, node, module, function=function)
    return function or Unknown(Why.TABLE)


def _library_impl(
    recorder: Recorder,
    node: ast.Call,
    module: Module,
    library: Library,
    *,
    name: Value | None,
    kernel: Value | None,
    key: Value | None,
) -> None:
    word = key.text if isinstance(key, Word) else library.key
    if isinstance(kernel, Dotted) and "fallthrough" in kernel.path:
        return
    if word not in DEVICES or name is None:
        return
    op = from_schema_name(f"{library.ns}::{name.text}") if isinstance(name, Word) else None
    value = Dotted(f"{CUSTOM}{op}", name.at) if op and isinstance(name, Word) else name
    function = kernel if isinstance(kernel, Function) else None
    recorder.add(Form.KERNEL, value, node, module, function=function, detail="Library.impl")


@reads("fallback")
def _catch_all(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    owner = evaluate(node.func.value, scope, module) if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, Library):
        kernel, key = argument(node, 0, "fn", scope, module), argument(node, 1, "dispatch_key", scope, module)
        word = key.text if isinstance(key, Word) else owner.key
        passes_through = isinstance(kernel, Dotted) and "fallthrough" in kernel.path
        if word in DEVICES and not passes_through:
            recorder.catch_all = "{}:{}".format(*module.at(node))
    del function
    return Unknown(Why.TABLE)


@reads("define")
def _define(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    owner = evaluate(node.func.value, scope, module) if isinstance(node.func, ast.Attribute) else None
    value = argument(node, 0, "schema", scope, module)
    if isinstance(value, Word):
        text = value.text.partition("(")[0]
        if isinstance(owner, Library):
            text = f"{owner.ns}::{text}"
        if "::" in text:
            recorder.add(Form.CUSTOM_OP, Word(text, value.at), node, module, detail="schema only")
    del function
    return Unknown(Why.TABLE)
