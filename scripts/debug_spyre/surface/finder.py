"""Where a package's Python registers its ops: every call, decorator and list that does, over all eras, found by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from debug_spyre.surface.names import ATEN, OpName, from_schema_name
from debug_spyre.surface.op_expressions import Found, Module, Text
from debug_spyre.surface.sites import Form, Site, Unresolved, notes_of

DEVICES = {"spyre", "privateuseone", "PrivateUse1"}
INTERESTING = re.compile(
    r"register_|custom_op|triton_op|fallback_ops|\.impl\(|lowerings\s*\[|lowerings\.pop|make_fallback|_to_exclude|remove_decomp|py_impl"
    r"|torch\.nn\.functional\.\w+\s*=[^=]|torch\.\w+\s*=[^=]|Tensor\.\w+\s*=[^=]|\.define\(|inplaceable_ops|mark_lx_safe|_meta_ops"
)
# the call's name: the form, how it is said, whether it counts in compiled graphs only
CALLS = {
    "register_torch_compile_kernel": (Form.COMPILED_KERNEL, "", False),
    "register_inplace_kernels": (Form.INPLACE_KERNEL, "derived from the functional form", False),
    "register_fallback_default": (Form.FALLBACK, "", False),
    "register_fallback": (Form.FALLBACK, "", False),
    "register_fallback_over_decomp": (Form.FALLBACK, "over a decomposition", True),
    "make_fallback": (Form.FALLBACK, "make_fallback", True),
    "register_spyre_decomposition": (Form.DECOMPOSITION, "", False),
    "register_spyre_decompositions": (Form.DECOMPOSITION, "", False),
    "register_spyre_decompositions_via_dispatchkey": (Form.DECOMPOSITION, "eager only", False),
    "register_decomposition": (Form.DECOMPOSITION, "raw", False),
    "register_spyre_lowering": (Form.LOWERING, "", False),
    "register_lowering": (Form.LOWERING, "", False),
    "unregister_lowering": (Form.EXCLUDED, "lowering", False),
    "unregister_lowerings": (Form.EXCLUDED, "lowering", False),
    "remove_decompositions": (Form.EXCLUDED, "decomposition", False),
    "register_graph_pattern": (Form.PATTERN, "graph rewrite", False),
    "register_lowering_pattern": (Form.PATTERN, "graph rewrite", False),
    "mark_lx_safe": (Form.MARK, "scratchpad-safe", False),
    "_register_effectful_op": (Form.MARK, "has effects", False),
    "register_kernel": (Form.KERNEL, "", False),
    "py_impl": (Form.KERNEL, "py_impl", False),
    "impl": (Form.KERNEL, "Library.impl", False),
    "custom_op": (Form.CUSTOM_OP, "", False),
    "triton_op": (Form.CUSTOM_OP, "", False),
    "direct_register_custom_op": (Form.CUSTOM_OP, "of the plugin", False),
    "define": (Form.CUSTOM_OP, "schema only", False),
}
LISTS = (
    (re.compile(r"decomp\w*_to_(?:exclude|remove)$"), Form.EXCLUDED, "decomposition, by {}"),
    (re.compile(r"fallback_ops$"), Form.FALLBACK, "in {}"),
    (re.compile(r"_meta_ops$"), Form.FAKE, "in {}"),
)
TABLES = {"lowerings": Form.LOWERING, "decompositions": Form.DECOMPOSITION, "inplaceable_ops": Form.MARK}
PATCHED = {"torch.nn.functional", "torch.Tensor", "torch.linalg", "torch"}


@dataclass(slots=True)
class Finding:
    """What was found, and the registrations whose op the text does not show."""

    sites: list[Site] = field(default_factory=list)
    unresolved: list[Unresolved] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def find_sites(files: Mapping[str, str]) -> Finding:
    """Every registration in these Python files; `files`: path beginning with the package's name, and text."""
    text = Text(files)
    found = Finding(warnings=text.troubles)
    for file in sorted(files):
        module = text.module(file) if INTERESTING.search(files[file]) else None
        if module is not None:
            _Reader(text, module, files[file].splitlines(), found).read(module.tree.body)
    return found


@dataclass(slots=True)
class _Reader:
    """Goes through one module once."""

    text: Text
    module: Module
    lines: list[str]
    found: Finding

    def read(self, nodes: Iterable[ast.AST]) -> None:
        """These nodes and what is in them."""
        for child in nodes:
            if isinstance(child, ast.FunctionDef):
                for decorator in child.decorator_list:
                    self.expression(decorator, child)
                replace(self, module=self.module.inside(child)).read(child.body)
            elif isinstance(child, ast.Assign | ast.AnnAssign | ast.AugAssign) and child.value is not None:
                self.assigned(child)
                self.expression(child.value, None)
            elif isinstance(child, ast.expr):
                self.expression(child, None)
            else:
                self.read(ast.iter_child_nodes(child))

    def expression(self, node: ast.expr, decorated: ast.FunctionDef | None) -> None:
        """Every registering call in it."""
        for call in ast.walk(node):
            if isinstance(call, ast.Call):
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if name in CALLS:
                    self.call(name, call, decorated or self.given(call))
                elif name in {"append", "extend"} and self.owner(call).endswith("fallback_ops"):
                    self.add(Form.FALLBACK, call, call.args, detail="listed only", listed_only=True)
                elif name == "pop" and self.owner(call) == "lowerings" and not isinstance(call.args[0], ast.Name):
                    self.add(Form.EXCLUDED, call, call.args[:1], detail="lowering")
                elif name == "register_model_fallback":
                    self.model_fallback(call)

    def call(self, name: str, call: ast.Call, function: ast.FunctionDef | None) -> None:
        """One registering call."""
        form, detail, compiled_only = CALLS[name]
        nodes: list[ast.AST] = [
            *call.args[:1],
            *(k.value for k in call.keywords if k.arg in {"ops", "op", "aten_op", "aten_ops"}),
        ]
        if form is Form.PATTERN:
            nodes = list(call.args[:1])
        elif name == "remove_decompositions":
            nodes = list(call.args[1:])
        elif name in {"register_kernel", "py_impl", "impl", "custom_op", "triton_op"}:
            devices = self.devices(call)
            if name in {"py_impl", "impl"} and not devices & DEVICES:
                return
            if "fallthrough" in ast.dump(call):
                return
            if devices and not devices & DEVICES:
                detail = f"for {', '.join(sorted(devices))}"
                form = Form.OTHER_DEVICE if form is Form.KERNEL else form
            if name in {"register_kernel", "py_impl"} and isinstance(call.func, ast.Attribute):
                made = [
                    op for node in self.custom_op_of(call.func.value) for op, _, _ in self.text.ops(node, self.module)
                ]
                if made:
                    self.found.sites += [
                        self.site(form, (op, self.module.file, call.lineno), detail, function) for op in made
                    ]
                    return
        if name == "direct_register_custom_op":  # vLLM's own way
            named = [k.value for k in call.keywords if k.arg == "op_name"] or call.args[:1]
            words = [found for node in named for found in self.text.words(node, self.module)]
            self.found.sites += [
                self.site(form, (OpName("vllm", w), file, line), detail, None) for w, file, line in words
            ]
            return
        ops = [self.in_library(call, node) for node in nodes] if name in {"impl", "define"} else []
        if any(ops):
            self.found.sites += [
                self.site(form, (op, self.module.file, call.lineno), detail, function) for op in ops if op
            ]
            return
        if name == "define":
            return
        self.add(form, call, nodes, detail=detail, compiled_only=compiled_only, function=function)

    def add(
        self, form: Form, call: ast.Call, nodes: list[ast.AST] | list[ast.expr], *,
        detail: str = "", compiled_only: bool = False, listed_only: bool = False, function: ast.FunctionDef | None = None,
    ) -> None:  # fmt: skip
        """A site for each op in these nodes; a call that shows none is unresolved, unless the function around it is handed the op."""
        ops = list(dict.fromkeys(found for node in nodes for found in self.text.ops(node, self.module)))
        if form is Form.PATTERN:
            ops = [found for found in ops if found[0].overload]
        for found in ops:
            site = self.site(form, found, detail, function)
            self.found.sites.append(replace(site, compiled_only=compiled_only, listed_only=listed_only))
        if not ops and nodes and form is not Form.PATTERN and not self.module.functions and not _is_empty(nodes):
            self.found.unresolved.append(
                Unresolved(self.module.file, call.lineno, self.lines[call.lineno - 1].strip()[:160])
            )

    def site(self, form: Form, found: Found, detail: str, function: ast.FunctionDef | None) -> Site:
        """One site; a derived in-place kernel is one of the packet with an underscore."""
        op, file, line = found
        if form is Form.INPLACE_KERNEL:
            op = OpName(op.ns, f"{op.packet}_")
        return Site(form, op, file, line, detail, notes_of(function) if function is not None else ())

    def assigned(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        """Lists and tables that count by their name, and functions of torch that are replaced."""
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                for pattern, form, said in LISTS:
                    if pattern.search(target.id) and not isinstance(node.value, ast.Name | ast.Call):
                        listed = form is Form.FALLBACK
                        self.found.sites += [
                            replace(self.site(form, op, said.format(target.id), None), listed_only=listed)
                            for op in self.text.ops(node.value, self.module)
                        ]
            elif isinstance(target, ast.Subscript):
                table = getattr(target.value, "attr", getattr(target.value, "id", ""))
                if table in TABLES:
                    function = next((v for v in self.functions(node.value)), None)
                    self.found.sites += [
                        self.site(TABLES[table], op, f"set in {table}", function)
                        for op in self.text.ops(target.slice, self.module)
                    ]
            elif isinstance(target, ast.Attribute) and not target.attr.startswith("_"):
                base = self.text.path(target.value, self.module)
                if base in PATCHED and not isinstance(node.value, ast.Constant):
                    function = next((v for v in self.functions(node.value)), None)
                    op = (OpName(ATEN, target.attr), self.module.file, target.lineno)
                    self.found.sites.append(self.site(Form.PATCH, op, f"{base}.{target.attr} is replaced", function))

    def model_fallback(self, call: ast.Call) -> None:
        """A fallback for one model."""
        words = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        target: object = next(
            (k.value.value for k in call.keywords if k.arg == "target_module" and isinstance(k.value, ast.Constant)),
            "torch.Tensor",
        )
        if len(words) > 1:
            op = (OpName(ATEN, words[1]), self.module.file, call.lineno)
            detail = f"{target!s}.{words[1]} in model {words[0]}, silently"
            self.found.sites.append(self.site(Form.MODEL_FALLBACK, op, detail, None))

    # --- parts of a call

    def owner(self, call: ast.Call) -> str:
        """The last name before the method's."""
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        return getattr(base, "attr", getattr(base, "id", ""))

    def functions(self, node: ast.AST | None) -> Iterator[ast.FunctionDef]:
        """Functions that a name stands for."""
        for value, _ in self.text.values(getattr(node, "id", ""), self.module):
            if isinstance(value, ast.FunctionDef):
                yield value

    def given(self, call: ast.Call) -> ast.FunctionDef | None:
        """The function among the arguments."""
        return next((f for node in call.args[1:] for f in self.functions(node)), None)

    def devices(self, call: ast.Call) -> set[str]:
        """The devices that the call names, in its arguments or by its library."""
        said = {
            w
            for node in (*call.args[1:], *(k.value for k in call.keywords))
            for w, _, _ in self.text.words(node, self.module)
        }
        said |= (
            {w for a in call.args[:1] for w, _, _ in self.text.words(a, self.module)}
            if self.custom_op_of(getattr(call.func, "value", None))
            else set()
        )
        said |= {n.attr for a in call.args for n in ast.walk(a) if isinstance(n, ast.Attribute)} & DEVICES
        library = self.library(call)
        said |= {str(a.value) for a in library.args[2:] if isinstance(a, ast.Constant)} if library else set()
        return {w for text in said for w in text.split(",")} & (DEVICES | {"cpu", "cuda", "meta", "mps", "xpu"})

    def library(self, call: ast.Call) -> ast.Call | None:
        """`torch.library.Library(...)` that the method's owner, or the first argument, stands for."""
        nodes = [call.func.value if isinstance(call.func, ast.Attribute) else None, *call.args[:1]]
        for node in nodes:
            for value, _ in self.text.values(getattr(node, "id", ""), self.module):
                if (
                    isinstance(value, ast.Call)
                    and isinstance(value.func, ast.Attribute | ast.Name)
                    and "Library" in ast.dump(value.func)
                ):
                    return value
        return None

    def in_library(self, call: ast.Call, node: ast.AST) -> OpName | None:
        """The op that a library's own method names: the namespace is the library's."""
        library = self.library(call)
        names = [n.value for n in (node, *call.args[1:2]) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        if library is None or not names or not isinstance(namespace := getattr(library.args[0], "value", None), str):
            return None
        name = names[0].partition("(")[0]
        return from_schema_name(name if "::" in name else f"{namespace}::{name}")

    def custom_op_of(self, node: ast.AST | None) -> list[ast.AST]:
        """The name that a function was made a custom op under."""
        return [
            argument
            for function in self.functions(node) if node is not None
            for decorator in function.decorator_list
            if isinstance(decorator, ast.Call) and "custom_op" in ast.dump(decorator.func)
            for argument in decorator.args[:1]
        ]  # fmt: skip


def _is_empty(nodes: list[ast.AST] | list[ast.expr]) -> bool:
    return all(isinstance(node, ast.List | ast.Tuple) and not node.elts for node in nodes)
