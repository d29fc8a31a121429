"""What the run on paper finds, as it finds it: sites, open questions, the code generator's handlers."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from debug_spyre.surface.bodies import notes_of
from debug_spyre.surface.names import ATEN, OpName
from debug_spyre.surface.notes import CONDITIONAL
from debug_spyre.surface.sites import Form, Site, Unresolved
from debug_spyre.surface.values import Dotted, Function, Place, Plain, Unknown, Value, Why, Word, ops_of, reason_of

if TYPE_CHECKING:
    from debug_spyre.surface.modules import Module

_PATCHED = ("torch.nn.functional", "torch.Tensor", "torch.linalg", "torch")
_HANDLERS = re.compile(r"OpFuncs$")
_TABLES = {
    "lowerings": Form.LOWERING,
    "spyre_lowerings": Form.LOWERING,
    "decompositions": Form.DECOMPOSITION,
    "spyre_decompositions": Form.DECOMPOSITION,
    "inplaceable_ops": Form.MARK,
}


@dataclass(slots=True)
class Recorder:
    """What the run on paper found."""

    sites: list[Site] = field(default_factory=list)
    unresolved: list[Unresolved] = field(default_factory=list)
    handlers: dict[str, tuple[str, int]] = field(default_factory=dict)
    handler_class: str | None = None
    catch_all: str | None = None
    warnings: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)  # functions that register what they are given
    looking_into: list[str] = field(default_factory=list)  # functions nobody called on paper, the outer one first
    conditions: int = 0  # how many open questions are around the statement that runs

    def add(
        self,
        form: Form,
        value: Value,
        call: ast.expr | ast.stmt,
        module: Module,
        *,
        function: Function | None = None,
        detail: str = "",
        compiled_only: bool = False,
        listed_only: bool = False,
    ) -> None:
        """Record a site for each op in the value; what is none is unresolved or a helper's."""
        ops, rest = ops_of(value)
        notes = notes_of(function.node) if function is not None else ()
        notes += (CONDITIONAL,) if self.conditions else ()
        for found in ops:
            self.sites.append(
                Site(
                    form=form,
                    op=found.op,
                    file=found.at.file,
                    line=found.at.line,
                    detail=detail,
                    notes=notes,
                    compiled_only=compiled_only,
                    listed_only=listed_only,
                )
            )
        if rest and reason_of(rest) is Why.PARAMETER:
            self.helpers.update(self.looking_into)
        if rest and reason_of(rest) is Why.TEXT:
            self.unresolved.append(Unresolved(*module.at(call), module.lines[call.lineno - 1].strip()[:160]))

    def item_assigned(self, table: str, key: Value, value: Value, at: Place, module: Module) -> None:
        """`lowerings[op] = function` and its like."""
        form = {"lowerings": Form.LOWERING, "decompositions": Form.DECOMPOSITION, "inplaceable_ops": Form.MARK}.get(
            table
        )
        if form is None or (isinstance(value, Unknown) and value.why is Why.TABLE):
            return
        ops, rest = ops_of(key)
        notes = notes_of(value.node) if isinstance(value, Function) and not isinstance(value.node, ast.Lambda) else ()
        self.sites += [Site(form, o.op, o.at.file, o.at.line, f"set in {table}", notes) for o in ops]
        if rest and not ops and reason_of(rest) is Why.TEXT and not isinstance(key, Word):
            self.unresolved.append(Unresolved(at.file, at.line, module.lines[at.line - 1].strip()[:160]))

    def attribute_assigned(self, base: Value, name: str, value: Value, at: Place, _module: Module) -> None:
        """`torch.nn.functional.gelu = function`."""
        if not isinstance(base, Dotted) or name.startswith("_") or base.path not in _PATCHED:
            return
        if isinstance(value, Plain):
            return
        notes = notes_of(value.node) if isinstance(value, Function) and not isinstance(value.node, ast.Lambda) else ()
        self.sites.append(
            Site(Form.PATCH, OpName(ATEN, name), at.file, at.line, f"{base.path}.{name} is replaced", notes)
        )

    def class_defined(self, node: ast.ClassDef, module: Module) -> None:
        """The class whose methods are the pointwise ops that the code generator knows."""
        if not _HANDLERS.search(node.name):
            return
        self.handler_class = self.handler_class or node.name
        for child in node.body:
            if isinstance(child, ast.FunctionDef) and not child.name.startswith("_"):
                self.handlers.setdefault(child.name, (module.file, child.lineno))
