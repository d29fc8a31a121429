"""The layers hold: core is pure, imports point one way, verbs do not know each other, start-up is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "scripts/debug_spyre"
LAYERS = {"core": 0, "edge": 1, "verbs": 2}
SHARED_VERB_MODULES = {"verb", "answer", "table", "here"}
IMPURE = {
    "os", "sys", "time", "subprocess", "tempfile", "shutil", "socket", "random", "secrets", "signal", "fcntl", "threading",
    "multiprocessing", "urllib", "http", "pwd", "select", "uuid", "asyncio",
}  # fmt: skip
HEAVY = {"torch", "torch_spyre", "vllm", "numpy", "jinja2", "safetensors"}


def modules():
    return sorted(p for p in PACKAGE.rglob("*.py") if "bundle" not in p.parts)


def imports_of(path):
    """(name, at module level) of every import in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or "", id(node) in top
            yield from ((f"{node.module}.{alias.name}", id(node) in top) for alias in node.names)


def layer_of(name):
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "debug_spyre" else None


def test_there_are_modules_to_look_at():
    assert len(modules()) > 15


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down_only(path):
    own = path.relative_to(PACKAGE).parts[0]
    if own not in LAYERS:
        return
    for name, _ in imports_of(path):
        other = layer_of(name)
        if other in LAYERS:
            assert LAYERS[other] <= LAYERS[own], f"{own} must not import {name}"
        assert other not in {"cli", "__main__"}, f"{own} must not import {name}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda p: p.name)
def test_core_is_pure(path):
    names = {name.split(".")[0] for name, _ in imports_of(path)}
    assert not names & IMPURE, f"{path.name} imports {sorted(names & IMPURE)}"
    heavy = names & HEAVY
    assert heavy <= ({"numpy"} if "numerics" in path.parts else set()), f"{path.name} imports {sorted(heavy)}"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert not calls & {"print", "open", "input"}, f"{path.name} calls {sorted(calls & {'print', 'open', 'input'})}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "verbs").glob("*.py")), ids=lambda p: p.name)
def test_verbs_do_not_import_each_other(path):
    own = path.stem
    for name, _ in imports_of(path):
        parts = name.split(".")
        if parts[:2] == ["debug_spyre", "verbs"] and len(parts) > 2:
            assert parts[2] in SHARED_VERB_MODULES | {own} or own == "table", f"verbs.{own} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_are_imported_where_they_are_used(path):
    if "inside" in path.parts or "numerics" in path.parts:
        return
    for name, at_top in imports_of(path):
        assert not (at_top and name.split(".")[0] in HEAVY), f"{path.name} imports {name} when it is loaded"


def test_starting_up_imports_neither_torch_nor_the_backend():
    code = (
        "import sys; from debug_spyre.cli import main; from debug_spyre.verbs import table\n"
        "for name in table.BY_NAME: table.load(name)\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
