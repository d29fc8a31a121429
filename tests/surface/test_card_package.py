"""The simulated card's own package, read from its text, asked of the registry, and what its text says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "tests/simulated_card/backend"


def ask(home, *words, package=BACKEND):
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
    words = ("op", *words, "--json", "--package", str(package))
    return subprocess.run(
        [sys.executable, "-m", "debug_spyre", *words], capture_output=True, text=True, cwd=home, env=environment
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    done = ask(tmp_path_factory.mktemp("asked"), "--all", "sort", "matmul")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_answer_is_the_registrys_and_the_text_agrees_in_eager(told, tmp_path_factory):
    assert {op["modes"]["eager"]["source"] for op in told["ops"]} == {"registry"}
    read = json.loads(ask(tmp_path_factory.mktemp("read"), "--all", "--text").stdout)
    own = {"kernel", "fallback", "decomposition", "custom-op"}
    texts = {
        (op["name"], overload): verdicts["eager"]
        for op in read["ops"]
        if not any(
            "conditional" in site["notes"] for site in op["sites"]
        )  # the text can't tell whether the condition holds
        for overload, verdicts in op["overloads"].items()
    }
    asked = {(op["name"], o): verdicts["eager"] for op in told["ops"] for o, verdicts in op["overloads"].items()}
    common = {key for key in texts.keys() & asked.keys() if texts[key] in own and asked[key] != "composite"}
    assert len(common) > 100
    differ = {key: (texts[key], asked[key]) for key in common if texts[key] != asked[key]}
    assert differ == {}


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
