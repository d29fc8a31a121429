"""The ops that an expression of a package's source names: attribute chains, quoted names, and the lists that names stand for.

Nothing is evaluated: a name is followed to what is assigned to it, a loop variable to what is looped over, a function to what it gives
back. What the text does not show that way is asked of the registry.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from debug_spyre.surface.names import OpName, from_path, from_schema_name

DEEPEST = 8
GROWS = {"append", "extend", "add", "update"}
FILLED = "fallback_ops"  # the list that registrations append to: its members are sites of their own
Found = tuple[OpName, str, int]  # op, file, line


Names = dict[str, list[ast.AST]]


@dataclass(frozen=True, slots=True)
class Module:
    """One file as it is seen from inside these functions (none: from its top). A name may stand for several expressions."""

    file: str
    tree: ast.Module
    names: dict[int, Names] = field(default_factory=dict)  # by function; 0: the file's own
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)  # name to (module, name there)
    functions: tuple[ast.FunctionDef, ...] = ()

    def inside(self, function: ast.FunctionDef) -> Module:
        """The same, seen from inside that function too."""
        return replace(self, functions=(*self.functions, function))

    def bound(self, name: str) -> tuple[list[ast.AST], Module] | None:
        """What the name stands for in the innermost function that binds it, and the view of there."""
        for depth in range(len(self.functions), -1, -1):
            names = self.names.get(id(self.functions[depth - 1]) if depth else 0, {})
            if name in names:
                return names[name], replace(self, functions=self.functions[:depth])
        return None


@dataclass(slots=True)
class Text:
    """All modules of a package by their dotted names, each read when it is needed."""

    files: Mapping[str, str]
    troubles: list[str] = field(default_factory=list)  # files that Python can't read
    _by_dotted: dict[str, str] = field(default_factory=dict)
    _read: dict[str, Module | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for file in self.files:
            self._by_dotted[file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")] = file

    def module(self, file: str) -> Module | None:
        """The module in that file; None where it can't be read."""
        if file not in self._read:
            self._read[file] = None
            try:
                self._read[file] = read_module(file, self.files[file])
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                line = getattr(error, "lineno", None)
                self.troubles.append(f"{file}{f':{line}' if line else ''}: not read, {error}")
        return self._read[file]

    def imported(self, dotted: str) -> Module | None:
        """The module of that dotted name, if it is the package's own."""
        file = self._by_dotted.get(dotted)
        return self.module(file) if file else None

    def ops(self, node: ast.AST | None, module: Module, seen: frozenset[int] = frozenset()) -> Iterator[Found]:
        """Every op in it, each where it is written."""
        if node is None or id(node) in seen or len(seen) > 40:
            return
        seen |= {id(node)}
        path = self.path(node, module)
        op = from_path(path) if path else None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            op = from_schema_name(node.value)
        if op is not None:
            yield op, module.file, int(getattr(node, "end_lineno", 0) or getattr(node, "lineno", 1) or 1)
        elif isinstance(node, ast.JoinedStr):
            yield from self._fstring(node, module, seen)
        elif isinstance(node, ast.Call) and _called(node) == "getattr" and len(node.args) > 1:
            yield from self._getattr(node, module, seen)
        elif isinstance(node, ast.Name):
            for value, home in () if node.id.endswith(FILLED) else self.values(node.id, module):
                yield from self.ops(value, home, seen)
        elif isinstance(node, ast.FunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return | ast.Yield | ast.YieldFrom):
                    yield from self.ops(inner.value, module.inside(node), seen)
        elif isinstance(node, ast.comprehension):
            yield from self.ops(node.iter, module, seen)
        elif isinstance(node, ast.Dict):
            for member in (*node.keys, *node.values):
                yield from self.ops(member, module, seen)
        else:
            for part in ast.iter_child_nodes(node):
                yield from self.ops(part, module, seen)

    def _getattr(self, node: ast.Call, module: Module, seen: frozenset[int]) -> Iterator[Found]:
        base = self.path(node.args[0], module)
        for word, file, line in self.words(node.args[1], module, seen):
            op = from_path(f"{base}.{word}") if base else None
            if op is not None:
                yield op, file, line

    def _fstring(self, node: ast.JoinedStr, module: Module, seen: frozenset[int]) -> Iterator[Found]:
        """Quoted text with names in it, whatever they stand for."""
        parts = [
            [str(p.value)] if isinstance(p, ast.Constant) else [word for word, _, _ in self.words(p, module, seen)]
            for p in node.values
        ]
        for combined in itertools.product(*parts) if len(parts) <= 3 else ():
            op = from_schema_name("".join(combined))
            if op is not None:
                yield op, module.file, node.lineno

    def words(
        self, node: ast.AST, module: Module, seen: frozenset[int] = frozenset()
    ) -> Iterator[tuple[str, str, int]]:
        """The words that it may stand for."""
        if id(node) in seen or len(seen) > 40:
            return
        seen |= {id(node)}
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield from ((word, module.file, node.lineno) for word in node.value.split())
        elif isinstance(node, ast.Name):
            for value, home in self.values(node.id, module):
                yield from self.words(value, home, seen)
        else:
            for part in ast.iter_child_nodes(node):
                yield from self.words(part, module, seen)

    def values(self, name: str, module: Module, depth: int = 0) -> list[tuple[ast.AST, Module]]:
        """What the name stands for, here or where it is imported from."""
        here = module.bound(name)
        found = [(node, here[1]) for node in here[0]] if here else []
        home = module.imported.get(name)
        other = self.imported(home[0]) if home else None
        if home and other is not None and depth < DEEPEST:
            found += self.values(home[1], other, depth + 1)
        return found

    def path(self, node: ast.AST | None, module: Module, depth: int = 0) -> str:
        """`torch.ops.aten.mm` of an attribute chain, with aliases followed; empty for anything else."""
        if depth > DEEPEST:
            return ""
        if isinstance(node, ast.Attribute):
            base = self.path(node.value, module, depth + 1)
            last = node.attr
            if from_path(base) is not None and last in {"name", "_name", "__name__", "_qualified_op_name", "overloads"}:
                return base
            return f"{base}.{last}" if base else ""
        if not isinstance(node, ast.Name):
            return ""
        values = [] if node.id.endswith(FILLED) else self.values(node.id, module)
        chains = [(value, home) for value, home in values if isinstance(value, ast.Attribute | ast.Name)]
        paths = {self.path(value, home, depth + 1) for value, home in chains} if len(chains) == len(values) else set()
        home = module.imported.get(node.id)
        outside = ".".join(home).strip(".") if home and home[0] not in self._by_dotted else ""
        return paths.pop() if len(paths) == 1 else outside


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def read_module(file: str, text: str) -> Module:
    """The module's names.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: Python can't read it.
    """
    module = Module(file, ast.parse(text, filename=file))
    _collect(module, module.tree, module.names.setdefault(0, {}))
    return module


def _collect(module: Module, node: ast.AST, names: Names) -> None:
    """The names that are bound in this node, those of a function apart."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            names.setdefault(child.name, []).append(child)
            own = module.names.setdefault(id(child), {})
            arguments = child.args
            own.update({a.arg: [] for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)})
            _collect(module, child, own)
            continue
        if isinstance(child, ast.Assign):
            for target in child.targets:
                _bind(names, target, child.value)
        elif isinstance(child, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and child.value is not None:
            _bind(names, child.target, child.value)
        elif isinstance(child, ast.For | ast.comprehension):
            _bind(names, child.target, child.iter)
        elif isinstance(child, ast.Import):
            for alias in child.names:
                module.imported[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0],
                    "",
                )
        elif isinstance(child, ast.ImportFrom):
            _import(module, child)
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr in GROWS:
            names.setdefault(getattr(child.func.value, "id", ""), []).extend(child.args)
        _collect(module, child, names)


def _bind(names: Names, target: ast.expr, value: ast.AST) -> None:
    for name in ast.walk(target):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
            names.setdefault(name.id, []).append(value)


def _import(module: Module, node: ast.ImportFrom) -> None:
    parts = module.file.removesuffix(".py").replace("/", ".").split(".")
    source = (
        ".".join([*parts[: len(parts) - node.level], *([node.module] if node.module else [])])
        if node.level
        else node.module or ""
    )
    for alias in node.names:
        module.imported[alias.asname or alias.name] = (source, alias.name)
