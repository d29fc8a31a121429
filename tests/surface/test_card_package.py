"""The simulated card's own package, read from its text, against what the real dispatcher says after loading it."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from debug_spyre.card.lock import lock_path

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "tests/simulated_card/backend"


def exact(home, *words, package=BACKEND):
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "scripts"),
        "SPYRE_SIM_DEVICE": str(home / "device"),
        "DEBUG_SPYRE_PYTHON": sys.executable,
        "HOME": str(home),
        "DEBUG_SPYRE_LOCK_DIR": str(home),
        "DEBUG_SPYRE_DEVICES": str(home / "device"),
    }
    (home / "device").touch()
    words = ("op", *words, "--exact", "--json", "--package", str(package))
    return subprocess.run(
        [sys.executable, "-m", "debug_spyre", *words], capture_output=True, text=True, cwd=home, env=environment
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    done = exact(tmp_path_factory.mktemp("exact"), "--all", "sort", "matmul")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_backend_is_not_loaded_while_somebody_has_the_card(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBUG_SPYRE_LOCK_DIR", str(tmp_path))
    with lock_path(str(tmp_path / "device")).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        done = exact(tmp_path, "mm")
    assert done.returncode == 75
    assert done.stdout == ""


def test_a_backend_that_does_not_load_is_no_disagreement(tmp_path):
    package = tmp_path / "torch_spyre"
    (package / "ops").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('no library')\n")
    (package / "ops/eager.py").write_text("import torch\nregister_torch_compile_kernel([torch.ops.aten.mm])\n")
    told = json.loads(exact(tmp_path, "mm", package=package).stdout)
    assert told["exact"]["disagreements"] == []
    assert "no library" in told["exact"]["troubles"][0]


def test_every_op_agrees_with_the_dispatcher(told):
    assert told["exact"]["troubles"] == []
    assert told["exact"]["checked"] > 250
    assert told["exact"]["disagreements"] == []


def test_nothing_in_it_is_unresolved(told):
    assert told["unresolved"] == []
    assert told["warnings"] == []


@pytest.mark.parametrize(
    ("name", "eager", "compiled"),
    [
        ("aten.mm", "kernel", "lowering"),
        ("aten.cumsum", "fallback", "fallback"),
        ("aten.layer_norm", "decomposition", "decomposition"),
        ("aten.relu_", "kernel", "upstream"),
        ("spyre.max_dim_int64_fallback", "fallback", "fallback"),
        ("spyre.silu", "custom-op", "lowering"),
        ("aten.normal_", "kernel", "fallback"),
    ],
)
def test_what_wins_is_said(name, eager, compiled, told):
    found = next(op for op in told["ops"] if op["name"] == name)
    assert (found["modes"]["eager"]["verdict"], found["modes"]["compiled"]["verdict"]) == (eager, compiled)


def test_the_shipped_table_is_what_this_torch_has(tmp_path):
    torch = pytest.importorskip("torch")
    shipped = ROOT / "scripts/debug_spyre/surface/data/aten-2.13.0.tsv"
    if not torch.__version__.startswith("2.13.0"):
        pytest.skip(f"the table is of torch 2.13.0, here is {torch.__version__}")
    script = ROOT / "tests/surface/make_aten_table.py"
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, env=environment, cwd=tmp_path)
    assert (tmp_path / "aten-2.13.0.tsv").read_text() == shipped.read_text()
