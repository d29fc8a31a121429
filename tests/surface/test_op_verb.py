"""`op` as a process: real packages on disk, short answers, bad inputs said, the cache, no torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.surface.io.package_files import (
    cache_folders,
    find_package,
    load_surface,
    surface_from_json,
    surface_to_json,
)
from debug_spyre.surface.sites import Form

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "tests/simulated_card/backend"
EAGER = "import torch\naten = torch.ops.aten\nregister_torch_compile_kernel([aten.mm, aten.add])\n"


def op(*words, cwd, env=None):
    return subprocess.run(
        [sys.executable, "-m", "debug_spyre", "op", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts"), **(env or {})},
    )


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "torch_spyre"
    (folder / "ops").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "ops/eager.py").write_text(EAGER)
    return folder


def test_an_answer_is_short_and_names_the_places(package):
    done = op("aten::mm.out", "--package", package, cwd=package.parent)
    assert done.returncode == 0, done.stderr
    assert "torch_spyre/ops/eager.py:3" in done.stdout
    assert len(done.stdout.splitlines()) <= 8


def test_every_op_of_the_card_is_said_in_eight_lines():
    from debug_spyre.surface.op_verdict import answer_on, lines_of
    from debug_spyre.surface.verdicts import Index

    index = Index(load_surface(find_package(None, str(BACKEND))))
    lengths = [len(lines_of(answer_on(index, name))) for name in index.packets()]
    assert len(lengths) > 80
    assert max(lengths) <= 8


def test_json_has_the_keys_of_the_contract(package):
    told = json.loads(op("mm", "aten.where", "zzzz", "--package", package, "--json", cwd=package.parent).stdout)
    assert list(told)[0] == "schema"
    assert told["package"]["path"] == str(package)
    first = told["ops"][0]
    assert first["name"] == "aten.mm"
    assert first["modes"]["eager"]["verdict"] == "kernel"
    assert first["overloads"]["default"]["eager"] == "kernel"
    assert set(first["overloads"]["default"]["works"]) == {"eager", "compiled"}
    assert {k: first["sites"][0][k] for k in ("form", "op", "overload", "file", "line")} == {
        "form": "compiled-kernel", "op": "aten.mm", "overload": None, "file": "torch_spyre/ops/eager.py", "line": 3,
    }  # fmt: skip
    assert "aten.zzzz" in told["suggestions"]
    assert told["unresolved"] == []


def test_an_unknown_name_is_no_with_near_ones(package):
    done = op("aten.mn", "--package", package, cwd=package.parent)
    assert done.returncode == 1
    assert "aten.mm" in done.stdout


def test_two_hundred_names_at_once(package):
    import torch

    schemas = sorted({schema.name for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")})
    names = schemas[:: len(schemas) // 200][:200]
    told = json.loads(op(*names, "--package", package, "--json", cwd=package.parent).stdout)
    assert len(told["ops"]) == 200


def test_a_syntax_error_in_one_file_leaves_the_others_read(package):
    (package / "ops/broken.py").write_text("register_torch_compile_kernel([aten.exp\n")
    done = op("mm", "--package", package, cwd=package.parent)
    assert done.returncode == 0
    assert "torch_spyre/ops/broken.py" in done.stderr
    assert "kernel" in done.stdout


def test_circles_of_links_end(package):
    (package / "loop").symlink_to(package)
    (package / "itself.py").symlink_to(package / "itself.py")
    done = op("mm", "--package", package, cwd=package.parent)
    assert done.returncode == 0
    assert "itself.py" in done.stderr
    assert done.stdout.count("eager.py:3") == 1


def test_modules_that_import_each_other_in_a_circle_are_read(package):
    (package / "ops/one.py").write_text("from .two import B\nA = [1]\nregister_torch_compile_kernel(B)\n")
    (package / "ops/two.py").write_text("import torch\nfrom .one import A\nB = [torch.ops.aten.exp]\n")
    assert "ops/two.py:3" in op("exp", "--package", package, cwd=package.parent).stdout


@pytest.mark.parametrize("what", ["missing", "file", "empty", "halfway"])
def test_no_package_is_said_with_the_way_on(what, tmp_path):
    target = tmp_path / "torch_spyre"
    if what == "file":
        target.write_text("")
    elif what == "empty":
        target.mkdir()
    elif what == "halfway":
        (target / "_inductor").mkdir(parents=True)
        (target / "_inductor/notes.txt").write_text("x")
    done = op("mm", "--package", target, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert str(target) in done.stderr and "next:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("half", [False, True])
def test_an_environment_without_it_or_with_half_of_it_is_said(half, tmp_path):
    python = tmp_path / ".venv/bin/python"
    packages = tmp_path / ".venv/lib/python3.12/site-packages"
    python.parent.mkdir(parents=True)
    packages.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / ".git").mkdir()
    if half:
        (packages / "torch_spyre-0.0.1.dist-info").mkdir()
    done = op("mm", cwd=tmp_path, env={"VIRTUAL_ENV": ""})
    assert done.returncode == 69
    assert ("half installed" if half else "not installed") in done.stderr


def test_without_a_name_the_call_is_off(tmp_path):
    assert op(cwd=tmp_path).returncode == 64


def test_a_checkout_folder_serves_as_well(package):
    assert "eager.py:3" in op("mm", "--package", package.parent, cwd=package.parent).stdout


def test_a_relative_folder_is_made_absolute(package):
    told = json.loads(op("mm", "--package", "torch_spyre", "--json", cwd=package.parent).stdout)
    assert told["package"]["path"] == str(package)


def test_hostile_names_and_files_break_nothing(package, hostile):
    name = hostile.replace("/", "_").replace("\n", "_")
    (package / f"{name}.py").write_text(EAGER, errors="surrogateescape")
    done = op(hostile, "mm", "--package", package, cwd=package.parent)
    assert done.returncode in {0, 1}
    assert "aten.mm" in done.stdout
    assert "Traceback" not in done.stderr


def test_neither_torch_nor_the_backend_is_imported(package):
    code = (
        "import sys\nfrom debug_spyre.cli import main\n"
        f"main(['op', 'mm', '--all', '--package', {str(package)!r}])\n"
        "print(sorted({'torch', 'torch_spyre', 'numpy', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


# --- the cache


def test_a_surface_survives_the_cache(package):
    (package / "ops/fallbacks.py").write_text(
        "import torch\nfallback_ops = []\nfallback_ops.append(torch.ops.aten.sin)\nregister_fallback(what())\n"
    )
    surface = load_surface(find_package(None, str(package)))
    assert surface.sites and surface.unresolved
    assert surface_from_json(json.loads(json.dumps(surface_to_json(surface)))) == surface


def test_the_second_reading_comes_from_the_cache_until_a_file_changes(package, tmp_path):
    cache = tmp_path / "cache"
    found = find_package(None, str(package))
    first = load_surface(found, caches=(cache,))
    kept = list(cache.iterdir())
    assert len(kept) == 1
    marked = json.loads(kept[0].read_text()) | {"lines": 12345}
    kept[0].write_text(json.dumps(marked))
    assert load_surface(found, caches=(cache,)).lines == 12345
    (package / "ops/eager.py").write_text(EAGER + "# more\n")
    again = load_surface(found, caches=(cache,))
    assert again.lines == first.lines + 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"sites": 1}', '{"sites": [[]], "unresolved": []}'])
def test_a_damaged_cache_is_read_past(content, package, tmp_path):
    cache = tmp_path / "cache"
    found = find_package(None, str(package))
    whole = load_surface(found, caches=(cache,))
    next(cache.iterdir()).write_text(content)
    assert load_surface(found, caches=(cache,)) == whole


def test_a_cache_that_cannot_be_written_is_done_without(package, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    surface = load_surface(find_package(None, str(package)), caches=(blocked / "below", Path("/proc/nowhere")))
    assert [s.form for s in surface.sites] == [Form.COMPILED_KERNEL] * 2


def test_without_a_home_there_is_no_cache_folder(monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folders(None) == ()


# --- ops of a run


def test_ops_of_a_runs_evidence_and_what_to_escalate(package, tmp_path):
    evidence = {
        "sources": ["x"], "counts": None, "complete": True,
        "fallbacks": [
            {"op": "aten.mm.default", "file": "a.py", "line": 3, "nodeids": ["t"]},
            {"op": "conversion from torch.int64 to torch.float16", "file": "a.py", "line": 4, "nodeids": ["t"]},
        ],
    }  # fmt: skip
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(evidence))
    done = op("--from", path, "--package", package, cwd=tmp_path)
    assert "aten.mm.default fell back in 1 test\n" in done.stdout
    assert "aten.mm.default: registered with a kernel, but fell back: debug-spyre escalate" in done.stdout
    assert "spyre.to_dtype_cpu" in done.stdout
    told = json.loads(op("--from", path, "--package", package, "--json", cwd=tmp_path).stdout)
    assert told["escalate"] == ["aten.mm.default"]

    named = op("aten.mm", "aten.add", "--from", path, "--package", package, cwd=tmp_path).stdout
    assert "aten.mm.default fell back in 1 test" in named
    assert "to_dtype_cpu" not in named
    assert "aten.add: registered" not in named
    assert "no fallback of these ops" in op("aten.add", "--from", path, "--package", package, cwd=tmp_path).stdout


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"sources": 1}'])
def test_evidence_that_cannot_be_read_is_bad_input(content, package, tmp_path):
    path = tmp_path / "evidence.json"
    path.write_text(content)
    done = op("--from", path, "--package", package, cwd=tmp_path)
    assert done.returncode == 2
    assert "evidence" in done.stderr


def test_a_run_that_is_not_there_is_said(package, tmp_path):
    assert op("--from", "r99", "--package", package, cwd=tmp_path).returncode == 64
