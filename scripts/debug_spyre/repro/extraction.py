"""A test module cut down to one test and what it needs, so that a pytest repro stands alone: source text in, text out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

ALWAYS = {"pytestmark", "pytest_plugins"}


def prune(
    test_source: str, name: str, *, fixtures_from: Iterable[str] = (), local: Mapping[str, str] | None = None
) -> str:
    """The test `name` (or Class::name) with the definitions that it reaches, conftest fixtures first.

    `local` maps the names of modules that lie beside the test to their sources: they are written into the file.

    Raises:
        KeyError: there is no such test; SyntaxError: a source is not Python.
    """
    top = name.split("::", maxsplit=1)[0]
    modules = [*map(_Module, fixtures_from), _Module(test_source)]
    if top not in modules[-1].defined:
        raise KeyError(top)
    wanted = _closure(modules, {top, *ALWAYS})
    inlined = _inlined(modules, wanted, local or {})
    lines = dict.fromkeys(line for module in modules for line in module.imports(wanted, without=set(local or {})))
    lines |= dict.fromkeys(line for source in inlined.values() for line in _Module(source).futures())
    futures = [line for line in lines if line.startswith("from __future__")]
    rest = [line for line in lines if not line.startswith("from __future__")]
    spaces = [_namespace(module, source, set(inlined)) for module, source in inlined.items()]
    bound = list(dict.fromkeys(line for module in modules for line in module.bindings(wanted, set(inlined))))
    parts = [part for part in (module.text(wanted) for module in modules) if part]
    needs = ["from types import SimpleNamespace"] if inlined else []
    return (
        "\n\n\n".join(["\n".join([*futures, *needs, *rest]), *spaces, *(["\n".join(bound)] if bound else []), *parts])
        + "\n"
    )


def _inlined(modules: list[_Module], wanted: set[str], local: Mapping[str, str]) -> dict[str, str]:
    """The local modules that wanted names come from, and those that these need themselves, in the order of need."""
    found: dict[str, str] = {}

    def take(name: str) -> None:
        if name in found or name not in local:
            return
        for needed in _Module(local[name]).imported():
            take(needed)
        found[name] = local[name]

    for module in modules:
        for name in module.imported(wanted):
            take(name)
    return found


def _namespace(name: str, source: str, inlined: set[str]) -> str:
    """A module's source inside a function, so that its names stay its own."""
    module = _Module(source)
    every = module.defined | ALWAYS
    lines = [line for line in module.imports(every, without=inlined) if not line.startswith("from __future__")]
    lines += [*module.bindings(every, inlined), *module.text(every).splitlines()]
    body = "\n".join(f"    {line}" if line.strip() else "" for line in lines)
    return f"def _module_{name}():\n{body}\n    return SimpleNamespace(**locals())\n\n\n_{name} = _module_{name}()"


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
            automatic = _is_automatic(node) or _acts(node)
            self.statements.append((names | ({"pytestmark"} if automatic else set()), node))
            self.defined |= names
            for name in names:
                self.uses.setdefault(name, set()).update(used)
            if automatic:
                self.uses.setdefault("pytestmark", set()).update(used | names)

    def imports(self, wanted: set[str], *, without: set[str]) -> list[str]:
        """Import statements that bind a wanted name (or the future), but for those of the modules `without`."""
        found = []
        for names, node in self.statements:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
                if not future and not names & wanted:
                    continue
                elsewhere = [alias for alias in node.names if _module_of(node, alias) not in without]
                if elsewhere:
                    found.append(ast.unparse(_with_names(node, elsewhere)))
        return found

    def futures(self) -> list[str]:
        """Its imports from the future."""
        return [line for line in self.imports(set(), without=set()) if line.startswith("from __future__")]

    def imported(self, wanted: set[str] | None = None) -> list[str]:
        """Modules that bind a wanted name, or all that are imported."""
        return [
            module
            for names, node in self.statements
            if isinstance(node, (ast.Import, ast.ImportFrom)) and (wanted is None or names & wanted)
            for module in _modules_of(node)
        ]

    def bindings(self, wanted: set[str], inlined: set[str]) -> list[str]:
        """Assignments that give the names imported from inlined modules."""
        found = []
        for names, node in self.statements:
            if not isinstance(node, (ast.Import, ast.ImportFrom)) or not names & wanted:
                continue
            for alias in node.names:
                bound = alias.asname or alias.name
                if isinstance(node, ast.Import) and alias.name in inlined:
                    found.append(f"{bound} = _{alias.name}")
                elif isinstance(node, ast.ImportFrom) and node.module in inlined:
                    found.append(f"{bound} = _{node.module}.{alias.name}")
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


def _module_of(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    return node.module or "" if isinstance(node, ast.ImportFrom) else alias.name


def _modules_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    return list(dict.fromkeys(_module_of(node, alias) for alias in node.names))


def _with_names(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.Import | ast.ImportFrom:
    """The statement with these names only."""
    if isinstance(node, ast.Import):
        return ast.Import(names)
    return ast.ImportFrom(node.module, names, node.level)


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


def _acts(node: ast.stmt) -> bool:
    """A bare call at the top (torch.manual_seed, importorskip) acts without being named."""
    return isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)


def _is_automatic(node: ast.stmt) -> bool:
    """An autouse fixture acts on the test without being named."""
    return any("autouse=True" in ast.unparse(d) for d in getattr(node, "decorator_list", []))
