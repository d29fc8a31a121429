"""A test module cut down to one test and what it needs, so that a pytest repro stands alone: source text in, text out."""

from __future__ import annotations

import ast
from collections.abc import Iterable

ALWAYS = {"pytestmark", "pytest_plugins"}


def prune(test_source: str, name: str, *, fixtures_from: Iterable[str] = ()) -> str:
    """The test `name` (or Class::name) with the definitions that it reaches, conftest fixtures first.

    Raises:
        KeyError: there is no such test; SyntaxError: a source is not Python.
    """
    top = name.split("::", maxsplit=1)[0]
    modules = [*map(_Module, fixtures_from), _Module(test_source)]
    if top not in modules[-1].defined:
        raise KeyError(top)
    wanted = _closure(modules, {top, *ALWAYS})
    parts = [module.text(wanted) for module in modules]
    head = "\n".join(dict.fromkeys(line for module in modules for line in module.imports(wanted)))
    futures = [line for line in head.split("\n") if line.startswith("from __future__")]
    rest = [line for line in head.split("\n") if line and not line.startswith("from __future__")]
    return "\n".join([*dict.fromkeys(futures), *rest, "", *(part for part in parts if part)]) + "\n"


def _closure(modules: list[_Module], start: set[str]) -> set[str]:
    wanted: set[str] = set()
    pending = set(start)
    while pending:
        name = pending.pop()
        wanted.add(name)
        for module in modules:
            for used in module.uses.get(name, ()):
                if used not in wanted:
                    pending.add(used)
    return wanted


class _Module:
    """One source's top-level statements by the names that they define and use."""

    def __init__(self, source: str) -> None:
        self.lines = source.splitlines()
        self.tree = ast.parse(source)
        self.defined: set[str] = set()
        self.uses: dict[str, set[str]] = {}
        self.statements: list[tuple[set[str], ast.stmt]] = []
        for node in self.tree.body:
            names = _names_of(node)
            used = _used_by(node)
            automatic = _is_automatic(node)
            self.statements.append((names | ({"pytestmark"} if automatic else set()), node))
            self.defined |= names
            for name in names:
                self.uses.setdefault(name, set()).update(used)
            if automatic:
                self.uses.setdefault("pytestmark", set()).update(used | names)

    def imports(self, wanted: set[str]) -> list[str]:
        """Import statements that bind a wanted name (or the future)."""
        found = []
        for names, node in self.statements:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
                if future or names & wanted:
                    found.append(ast.unparse(node))
        return found

    def text(self, wanted: set[str]) -> str:
        """The wanted definitions in their own words."""
        parts = []
        for names, node in self.statements:
            if isinstance(node, (ast.Import, ast.ImportFrom)) or not names & wanted:
                continue
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            parts.append("\n".join(self.lines[first - 1 : node.end_lineno]))
        return "\n\n\n".join(parts)


def _names_of(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _used_by(node: ast.stmt) -> set[str]:
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for item in ast.walk(node):
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = item.args
            found |= {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value.isidentifier():
            found.add(item.value)  # usefixtures("name"), indirect=["name"]
    return found


def _is_automatic(node: ast.stmt) -> bool:
    """An autouse fixture acts on the test without being named."""
    return any("autouse=True" in ast.unparse(d) for d in getattr(node, "decorator_list", []))
