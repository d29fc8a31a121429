"""The tree keeps its order: rooms import upwards in docs/architecture.md only, what computes is pure, no cycles, a light start."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "scripts/debug_spyre"
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
ROOMS = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
WORLDLY = {"host", "card", "agent", "demo", "verbs"}  # rooms that touch the world as a whole
TOP = {"cli", "worker", "__main__"}  # start a program: they may import every room, no room imports them
SHARED_VERB_MODULES = {"verb", "table", "session_option"}
IMPURE = {
    "os", "sys", "time", "subprocess", "tempfile", "shutil", "socket", "random", "secrets", "signal", "fcntl", "threading",
    "multiprocessing", "urllib", "http", "pwd", "select", "uuid", "asyncio",
}  # fmt: skip
HEAVY = {"torch", "torch_spyre", "vllm", "numpy", "jinja2", "safetensors"}
OLD_READER = "surface"  # the reader of source text: its modules call each other in a circle


def modules():
    return sorted(p for p in PACKAGE.rglob("*.py") if not {"bundle", "inside"} & set(p.relative_to(PACKAGE).parts))


def name_of(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


NAMES = {name_of(p) for p in modules()}


@cache
def imports_of(path):
    """((name, at module level), ...) of every import in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append((node.module or "", id(node) in top))
            found += [(f"{node.module}.{alias.name}", id(node) in top) for alias in node.names]
    return tuple(found)


def own_imports(path):
    """The package's own modules that this file imports, as `room.module`."""
    names = (name.removeprefix("debug_spyre.") for name, _ in imports_of(path) if name.startswith("debug_spyre."))
    return {name for name in names if name in NAMES}


def room_of(name):
    return name.split(".")[0]


def is_pure(name):
    return room_of(name) not in WORLDLY | TOP and ".io." not in f".{name}."


def test_the_page_names_every_room_and_no_other():
    there = {p.name for p in PACKAGE.iterdir() if p.is_dir() and any(p.glob("*.py"))} - {"bundle", "inside"}
    assert set(ROOMS) == there
    assert len(ROOMS) == len(set(ROOMS))
    assert len(NAMES) > 200


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_above_it_in_the_table(room):
    for path in (p for p in modules() if room_of(name_of(p)) == room):
        for name in own_imports(path):
            assert room_of(name) not in TOP, f"{name_of(path)} imports {name}"
            assert ROOMS.index(room_of(name)) <= ROOMS.index(room), f"{name_of(path)} imports {name}"


def test_no_circle_of_files():
    graph = {name_of(p): own_imports(p) for p in modules() if room_of(name_of(p)) != OLD_READER}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"these files import each other: {error.args[1]}")


@pytest.mark.parametrize("room", [r for r in ROOMS if r not in WORLDLY])
def test_what_computes_touches_nothing(room):
    pure = [p for p in modules() if room_of(name_of(p)) == room and is_pure(name_of(p))]
    assert pure, room
    for path in pure:
        for name in own_imports(path):
            assert is_pure(name), f"{name_of(path)} computes, {name} touches the world"
        names = {name.split(".")[0] for name, _ in imports_of(path)}
        assert not names & IMPURE, f"{name_of(path)} imports {sorted(names & IMPURE)}"
        allowed = {"numpy"} if room == "numerics" else set()
        assert names & HEAVY <= allowed, f"{name_of(path)} imports {sorted(names & HEAVY)}"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        assert not calls & {"print", "open", "input"}, (
            f"{name_of(path)} calls {sorted(calls & {'print', 'open', 'input'})}"
        )


def test_the_test_process_s_folder_imports_nothing_of_the_package_but_the_comparison_of_tensors_where_it_is_used():
    inside = sorted((PACKAGE / "inside").glob("*.py"))
    assert inside
    for path in inside:
        for name, at_top in imports_of(path):
            if name.split(".")[0] == "debug_spyre":
                assert not at_top, f"{path.name} imports {name} when it is loaded"
                assert name.split(".")[1] == "numerics", f"{path.name} imports {name}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "verbs").glob("*.py")), ids=lambda p: p.name)
def test_verbs_do_not_import_each_other(path):
    own = path.stem
    for name in own_imports(path):
        if room_of(name) == "verbs":
            assert name.split(".")[1] in SHARED_VERB_MODULES | {own} or own == "table", f"verbs.{own} imports {name}"


@pytest.mark.parametrize("room", ROOMS)
def test_heavy_libraries_are_imported_where_they_are_used(room):
    for path in (p for p in modules() if room_of(name_of(p)) == room and room != "numerics"):
        for name, at_top in imports_of(path):
            assert not (at_top and name.split(".")[0] in HEAVY), f"{name_of(path)} imports {name} when it is loaded"


def test_starting_up_imports_neither_torch_nor_the_backend():
    code = (
        "import sys; from debug_spyre.cli import main; from debug_spyre.verbs import table\n"
        "for name in table.BY_NAME: table.load(name)\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


FLOWS = dict(re.findall(r"^### (\w+)\n\n((?:.+\n?)+)", PAGE, re.MULTILINE))


def test_the_page_tells_the_main_flows():
    assert {"run", "triage", "close", "shadow", "repro"} <= set(FLOWS)


@pytest.mark.parametrize("flow", FLOWS)
def test_each_step_of_a_flow_is_a_module_that_an_earlier_step_imports(flow):
    steps = [step for step in re.findall(r"`([\w.]+)`", FLOWS[flow]) if step in NAMES or "." in step]
    assert steps[0] == "cli"
    reached = {"cli"} | {name for name in NAMES if name.startswith("verbs.")}  # verbs are loaded by name
    for step in steps:
        assert step in NAMES, f"{flow}: there is no module {step}"
        assert step in reached or step == "worker", f"{flow}: no earlier step imports {step}"
        reached |= own_imports(PACKAGE / (step.replace(".", "/") + ".py"))
