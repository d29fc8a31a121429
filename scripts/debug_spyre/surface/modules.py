"""A package's modules run on paper: imports, assignments, loops, branches and calls of its own functions, nothing else.

Only what registrations need is followed. A registration inside a function counts where its op is told by the text;
what depends on the function's own parameters is a helper's body and is counted where the helper is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from debug_spyre.surface import comprehensions as _comprehensions  # noqa: F401  registers its visitors
from debug_spyre.surface import library_forms as _library_forms  # noqa: F401  registers its readers
from debug_spyre.surface.evaluate import attribute_of, evaluate, extend
from debug_spyre.surface.python_calls import call_builtin, call_method
from debug_spyre.surface.recorder import Recorder
from debug_spyre.surface.registration_forms import registrar_of
from debug_spyre.surface.statements import look_into, run_statements
from debug_spyre.surface.values import Function, Imported, Items, Place, Plain, Scope, Unknown, Value, Why

INTERESTING = re.compile(
    r"register_|custom_op|triton_op|fallback_ops|\.impl\(|lowerings\s*\[|lowerings\.pop|make_fallback|class \w*OpFuncs|_to_exclude"
    r"|remove_decomp|py_impl|torch\.nn\.functional\.\w+\s*=[^=]|torch\.\w+\s*=[^=]|Tensor\.\w+\s*=[^=]|F\.\w+\s*=[^=]"
    r"|\.define\(|inplaceable_ops|mark_lx_safe|_meta_ops|setattr\(torch|library\.impl\("
)
_NAMES_OPS = re.compile(r"\baten\b|torch\.ops|ops\.|::|getattr|\byield\b|partition|split\(")
DEEPEST = 10
MOST_STEPS = 60_000  # statements run on paper; a whole torch-spyre takes about 1,400


class Module:
    """One file: its names after it was run, and what it registered."""

    def __init__(self, package: Package, file: str, text: str) -> None:
        self.package = package
        self.file = file
        self.lines = text.splitlines()
        self.scope = Scope()
        self.dotted = dotted_name(file)
        self.called: set[int] = set()
        self.tree: ast.Module | None = None
        try:
            self.tree = ast.parse(text, filename=file)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            package.recorder.warnings.append(f"{file}{f':{line}' if line else ''}: not read, {error}")

    def at(self, node: ast.expr | ast.stmt) -> Place:
        """Where the node begins."""
        return Place(self.file, node.lineno)

    def end_of(self, node: ast.expr) -> Place:
        """Where an attribute chain ends: the line with its last name."""
        return Place(self.file, node.end_lineno or node.lineno)

    def is_interesting(self, node: ast.stmt) -> bool:
        """Whether something may be registered in it."""
        return INTERESTING.search(self.text_of(node)) is not None

    def text_of(self, node: ast.stmt | ast.expr) -> str:
        """The source lines of a node."""
        return "\n".join(self.lines[node.lineno - 1 : node.end_lineno])


def dotted_name(file: str) -> str:
    """`torch_spyre/ops/eager.py` as `torch_spyre.ops.eager`."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Package:
    """All files of a package, run in the order of their names, each once."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.by_dotted = {dotted_name(file): file for file in files if file.endswith(".py")}
        self.modules: dict[str, Module] = {}
        self.recorder = Recorder()
        self.depth = 0
        self.steps = 0

    def run(self) -> Recorder:
        """Run every file that may register something."""
        python = [file for file in sorted(self.files) if file.endswith(".py")]
        for file in python:
            if INTERESTING.search(self.files[file]):
                self.module(file)
        own = [name for name in self.recorder.helpers if name.isidentifier()]
        calls = re.compile(rf"\b(?:{'|'.join(own)})\(") if own else None
        for file in python:  # a file may register by a helper of the package alone
            if calls is not None and file not in self.modules and calls.search(self.files[file]):
                self.module(file)
        return self.recorder

    def module(self, file: str) -> Module:
        """The module of that file, run if it was not yet; a circular import sees what is there so far."""
        if file not in self.modules:
            module = self.modules[file] = Module(self, file, self.files[file])
            if module.tree is not None:
                run_statements(module.tree.body, module.scope, module)
                look_into(module.tree, module.scope, module)
        return self.modules[file]

    def goes_on(self, module: Module, statement: ast.stmt) -> bool:
        """Count a statement; a package that never ends is given up, and said."""
        self.steps += 1
        if self.steps == MOST_STEPS:
            self.recorder.warnings.append(
                f"{module.file}:{statement.lineno}: too much to follow, what comes after is not read"
            )
        return self.steps < MOST_STEPS

    def lookup(self, imported: Imported) -> Value | None:
        """What the other module calls by that name."""
        return self.module(imported.module).scope.get(imported.name)

    def attribute(self, path: str, name: str) -> Value | None:
        """`path.name` where path is a module of the package; None for any other."""
        file = self.by_dotted.get(path)
        if file is None or f"{path}.{name}" in self.by_dotted:
            return None
        value = self.module(file).scope.get(name)
        return value if value is not None else Unknown()

    # --- calls

    def call(
        self,
        node: ast.Call,
        scope: Scope,
        module: Module,
        applied: Function | None = None,
        decorator: bool = False,
    ) -> Value:
        """The value of a call; registrations among them are recorded. `applied`: the function it decorates."""
        if isinstance(node.func, ast.Call):  # register(...)(function)
            given = [evaluate(a, scope, module) for a in node.args]
            first = next((value for value in given if isinstance(value, Function)), None)
            made = self.call(node.func, scope, module, applied=first, decorator=True)
            return self.apply(made, given, {}) if isinstance(made, Function) else made
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        registrar = registrar_of(node, name)
        if registrar is not None:
            return registrar(self.recorder, node, scope, module, applied)
        known = call_builtin(name, node, scope, module) if isinstance(node.func, ast.Name) else None
        if known is not None:
            return known
        if isinstance(node.func, ast.Name) and self._is_foreign(scope.get(node.func.id)):
            return self._called(Unknown(), name, node, scope, module)
        callee = evaluate(node.func.value if isinstance(node.func, ast.Attribute) else node.func, scope, module)
        if isinstance(node.func, ast.Attribute):
            value = self._mutated(callee, name, node, scope, module) or call_method(callee, name, node, scope, module)
            if value is not None:
                return value
            callee = attribute_of(callee, name, module.at(node), module)
        made = self._called(callee, name, node, scope, module)
        if decorator and applied is not None and isinstance(made, Function):
            return self.apply(made, [applied], {})
        return made

    def _is_foreign(self, value: Value | None) -> bool:
        """A function of a module where nothing is registered: its file need not be read for a call."""
        return isinstance(value, Imported) and not INTERESTING.search(self.files[value.module])

    def _mutated(self, base: Value, name: str, node: ast.Call, scope: Scope, module: Module) -> Value | None:
        if not isinstance(base, Items) or name not in {"append", "extend", "add", "update", "remove"}:
            return None
        for argument in node.args:
            value = evaluate(argument, scope, module)
            if name in {"append", "add"}:
                base.values.append(value)
            elif name != "remove":
                extend(base, value)
        return Plain(None)

    def _called(self, callee: Value, name: str, node: ast.Call, scope: Scope, module: Module) -> Value:
        given = [evaluate(a.value if isinstance(a, ast.Starred) else a, scope, module) for a in node.args]
        named = {k.arg: evaluate(k.value, scope, module) for k in node.keywords if k.arg}
        if "overloads" in name and given:
            return given[0]  # an op's overloads stand for the op
        if isinstance(callee, Function):
            return self.apply(callee, given, named)
        reasons = [v for v in (*given, *named.values(), callee) if isinstance(v, Unknown)]
        return next((v for v in reasons if v.why is not Why.TEXT), Unknown())

    def apply(self, function: Function, given: list[Value] | None, named: dict[str, Value]) -> Value:
        """Run a function of the package with these values; `given` None: with unknown parameters."""
        node, module = function.node, function.module
        if isinstance(node, ast.Lambda):
            inner = Scope(function.scope)
            _bind_parameters(node, inner, function, given, named)
            return evaluate(node.body, inner, module)
        text = module.text_of(node)
        wanted = len(text) < 200 or INTERESTING.search(text) or (len(text) < 3000 and _NAMES_OPS.search(text))
        if self.depth >= DEEPEST or not wanted:
            return Unknown()
        self.depth += 1
        module.called.add(id(node))
        if given is None:
            self.recorder.looking_into.append(node.name)
        scope = Scope(function.scope)
        _bind_parameters(node, scope, function, given, named)
        returned = run_statements(node.body, scope, module)
        for child in node.body:
            if isinstance(child, ast.FunctionDef) and id(child) not in module.called and given is None:
                self.apply(Function(child, module, scope), None, {})
        if given is None:
            self.recorder.looking_into.pop()
        self.depth -= 1
        return Items() if not returned and "yield" in text else _one_of(returned)


def _bind_parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    scope: Scope,
    function: Function,
    given: list[Value] | None,
    named: dict[str, Value],
) -> None:
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    for name in [*names, *(a.arg for a in node.args.kwonlyargs)]:
        scope.set(name, Unknown(Why.PARAMETER))
    for extra in (node.args.vararg, node.args.kwarg):
        if extra is not None:
            scope.set(extra.arg, Unknown(Why.PARAMETER))
    if given is None:
        return
    for name, default in zip(reversed(names), reversed(node.args.defaults), strict=False):
        scope.set(name, evaluate(default, function.scope, function.module))
    for only, spare in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if spare is not None:
            scope.set(only.arg, evaluate(spare, function.scope, function.module))
    for name, value in zip(names, given, strict=False):
        scope.set(name, value)
    if node.args.vararg is not None:
        scope.set(node.args.vararg.arg, Items(given[len(names) :]))
    for name, value in named.items():
        scope.set(name, value)


def _one_of(returned: list[Value]) -> Value:
    known = [value for value in returned if not isinstance(value, Unknown)]
    if known and all(isinstance(value, Items) for value in known):
        merged = Items()
        for value in known:
            extend(merged, value)
        return merged
    if known:
        return known[0]
    return returned[0] if returned else Plain(None)
