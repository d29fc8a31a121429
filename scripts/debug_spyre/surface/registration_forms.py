"""The ways in which torch-spyre registers an op, over all its eras: one small reader per call, found by the call's name.

A reader that knows the op records a site; one that can't tell it records the place as unresolved, unless the op is a
parameter of the helper it stands in or comes from a table that other registrations fill.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from debug_spyre.surface.evaluate import evaluate
from debug_spyre.surface.names import ATEN, OpName
from debug_spyre.surface.recorder import Recorder
from debug_spyre.surface.sites import Form, Site, Unresolved
from debug_spyre.surface.values import (
    Dotted,
    Function,
    Items,
    Pairs,
    Place,
    Plain,
    Scope,
    Unknown,
    Value,
    Why,
    Word,
    op_of,
    ops_of,
    reason_of,
)

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module

DEVICES = {"spyre", "privateuseone", "PrivateUse1"}
CUSTOM = "torch.ops."
_EXCLUDED_LIST = re.compile(r"(decomp\w*_to_exclude|decomps?_to_exclude|decompositions?_to_remove)$")


Registrar: TypeAlias = Callable[[Recorder, ast.Call, Scope, "Module", "Function | None"], Value]
_REGISTRARS: dict[str, Registrar] = {}


def reads(*names: str) -> Callable[[Registrar], Registrar]:
    """Register the reader of calls by these names."""

    def register(reader: Registrar) -> Registrar:
        _REGISTRARS.update(dict.fromkeys(names, reader))
        return reader

    return register


def registrar_of(node: ast.Call, name: str) -> Registrar | None:
    """The reader of this call, or None."""
    if name in {"append", "extend"} and isinstance(node.func, ast.Attribute):
        listed = node.func.value
        last = listed.attr if isinstance(listed, ast.Attribute) else getattr(listed, "id", "")
        return _listed if last.endswith("fallback_ops") else None
    if name == "pop" and isinstance(node.func, ast.Attribute):
        return _popped if isinstance(node.func.value, ast.Attribute) and node.func.value.attr == "lowerings" else None
    return _REGISTRARS.get(name)


def assigned_forms(recorder: Recorder, name: str, value: Value, at: Place, module: Module) -> None:
    """Lists and tables that count by their name: what is excluded, what falls back, shape functions."""
    if _EXCLUDED_LIST.search(name):
        recorder.sites += [
            Site(Form.EXCLUDED, o.op, o.at.file, o.at.line, f"decomposition, by {name}") for o in ops_of(value)[0]
        ]
    elif name.endswith("fallback_ops"):
        recorder.sites += [
            Site(Form.FALLBACK, o.op, o.at.file, o.at.line, f"in {name}", listed_only=True) for o in ops_of(value)[0]
        ]
    elif name.endswith("_meta_ops") and isinstance(value, Pairs):
        recorder.sites += [Site(Form.FAKE, o.op, o.at.file, o.at.line, f"in {name}") for o in ops_of(value)[0]]
    del at, module


def argument(node: ast.Call, index: int, name: str, scope: Scope, module: Module) -> Value | None:
    """An argument by its place or its keyword; None where it was not given."""
    if index < len(node.args) and not isinstance(node.args[index], ast.Starred):
        return evaluate(node.args[index], scope, module)
    for keyword in node.keywords:
        if keyword.arg == name:
            return evaluate(keyword.value, scope, module)
    return None


def _simple(
    form: Form, *, detail: str = "", compiled_only: bool = False, index: int = 0, keyword: str = "ops"
) -> Registrar:
    def read(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
        value = argument(node, index, keyword, scope, module)
        if value is None:
            value = argument(node, 99, "op", scope, module)
        if value is not None:
            recorder.add(form, value, node, module, function=function, detail=detail, compiled_only=compiled_only)
        return function or Unknown(Why.TABLE)

    return read


_REGISTRARS["register_torch_compile_kernel"] = _simple(Form.COMPILED_KERNEL)
_REGISTRARS["register_inplace_kernels"] = _simple(Form.INPLACE_KERNEL, detail="derived from the functional form")
_REGISTRARS["register_fallback_default"] = _simple(Form.FALLBACK)
_REGISTRARS["register_fallback"] = _simple(Form.FALLBACK)
_REGISTRARS["register_fallback_over_decomp"] = _simple(Form.FALLBACK, detail="over a decomposition", compiled_only=True)
for _name in ("register_spyre_decomposition", "register_spyre_decompositions"):
    _REGISTRARS[_name] = _simple(Form.DECOMPOSITION)
_REGISTRARS["register_spyre_decompositions_via_dispatchkey"] = _simple(Form.DECOMPOSITION, detail="eager only")
_REGISTRARS["register_decomposition"] = _simple(Form.DECOMPOSITION, detail="raw", index=0, keyword="aten_op")
for _name in ("register_spyre_lowering", "register_lowering"):
    _REGISTRARS[_name] = _simple(Form.LOWERING, keyword="op")
_REGISTRARS["make_fallback"] = _simple(Form.FALLBACK, detail="make_fallback", compiled_only=True, keyword="op")
for _name in ("unregister_lowering", "unregister_lowerings"):
    _REGISTRARS[_name] = _simple(Form.EXCLUDED, detail="lowering", keyword="op")
_REGISTRARS["remove_decompositions"] = _simple(Form.EXCLUDED, detail="decomposition", index=1, keyword="aten_ops")
_REGISTRARS["mark_lx_safe"] = _simple(Form.MARK, detail="scratchpad-safe")
_REGISTRARS["_register_effectful_op"] = _simple(Form.MARK, detail="has effects")


def _listed(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    value = argument(node, 0, "op", scope, module)
    if value is not None:
        recorder.add(Form.FALLBACK, value, node, module, detail="listed only", listed_only=True)
    del function
    return Plain(None)


def _popped(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    value = argument(node, 0, "op", scope, module)
    if value is not None and ops_of(value)[0]:
        recorder.add(Form.EXCLUDED, value, node, module, detail="lowering")
    del function
    return Unknown(Why.TABLE)


def devices_of(value: Value | None) -> set[str] | None:
    """Device names of a kernel; None where they are not told."""
    if isinstance(value, Word):
        return {part.strip() for part in value.text.split(",")}
    if isinstance(value, Items) and not value.open and all(isinstance(v, Word) for v in value.values):
        return {v.text for v in value.values if isinstance(v, Word)}
    if isinstance(value, Dotted) and value.path.endswith("PrivateUse1"):
        return {"PrivateUse1"}
    return None


@reads("register_kernel")
def _kernel(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    owner = evaluate(node.func.value, scope, module) if isinstance(node.func, ast.Attribute) else None
    own = op_of(owner) if isinstance(owner, Dotted) else None
    if own is not None:  # @custom_op_function.register_kernel("spyre")
        value: Value | None = Dotted(f"{CUSTOM}{own.op}", module.at(node))
        devices = devices_of(argument(node, 0, "device_types", scope, module))
    else:
        value = argument(node, 0, "op", scope, module)
        devices = devices_of(argument(node, 1, "device_types", scope, module))
        given = argument(node, 2, "func", scope, module)
        function = given if isinstance(given, Function) else function
    form = Form.KERNEL if devices is None or devices & DEVICES else Form.OTHER_DEVICE
    detail = (
        "" if devices and devices & DEVICES else f"for {', '.join(sorted(devices)) if devices else 'a device not told'}"
    )
    if value is not None:
        recorder.add(form, value, node, module, function=function, detail=detail)
    return function or Unknown(Why.TABLE)


@reads("py_impl")
def _py_impl(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    key = argument(node, 0, "k", scope, module)
    owner = evaluate(node.func.value, scope, module) if isinstance(node.func, ast.Attribute) else None
    if owner is not None and isinstance(key, Dotted) and key.path.endswith("PrivateUse1"):
        recorder.add(Form.KERNEL, owner, node, module, function=function, detail="py_impl")
    return function or Unknown(Why.TABLE)


@reads("custom_op", "triton_op")
def _custom_op(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    value = argument(node, 0, "name", scope, module)
    devices = devices_of(argument(node, 99, "device_types", scope, module))
    detail = "" if devices is None or devices & DEVICES else f"for {', '.join(sorted(devices))}"
    if value is not None:
        recorder.add(Form.CUSTOM_OP, value, node, module, function=function, detail=detail)
    op = op_of(value) if value is not None else None
    return Dotted(f"{CUSTOM}{op.op}", op.at) if op else Unknown(Why.TABLE)


@reads("register_graph_pattern", "register_lowering_pattern")
def _pattern(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    seen: set[OpName] = set()
    for inner in ast.walk(node.args[0]) if node.args else ():
        if isinstance(inner, ast.Attribute):
            found = op_of(evaluate(inner, scope, module))
            if found and found.op.overload and found.op not in seen:
                seen.add(found.op)
                recorder.sites.append(Site(Form.PATTERN, found.op, *found.at, "graph rewrite"))
    return function or Unknown(Why.TABLE)


@reads("register_model_fallback")
def _model_fallback(
    recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None
) -> Value:
    model, op = argument(node, 0, "model", scope, module), argument(node, 1, "op", scope, module)
    target = argument(node, 99, "target_module", scope, module)
    where = target.text if isinstance(target, Word) else "torch.Tensor"
    if isinstance(op, Word) and isinstance(model, Word):
        detail = f"{where}.{op.text} in model {model.text}, silently"
        recorder.sites.append(Site(Form.MODEL_FALLBACK, OpName(ATEN, op.text), *op.at, detail))
    elif reason_of([v for v in (model, op) if v is not None]) is Why.TEXT:
        recorder.unresolved.append(Unresolved(*module.at(node), module.lines[node.lineno - 1].strip()[:160]))
    return function or Unknown(Why.TABLE)


@reads("setattr")
def _setattr(recorder: Recorder, node: ast.Call, scope: Scope, module: Module, function: Function | None) -> Value:
    base, name, value = (argument(node, i, "", scope, module) for i in range(3))
    if base is not None and isinstance(name, Word) and value is not None:
        recorder.attribute_assigned(base, name.text, value, name.at, module)
    del function
    return Plain(None)
