"""A bundle made in one checkout, unpacked in another folder, in an environment with torch and the backend only."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

COMMAND = Path(__file__).parents[2] / "scripts/debug-spyre"
TEST = """
import torch
def test_it():
    torch.manual_seed(3)
    x = torch.randn(7, 200).half()
    torch.testing.assert_close(x.to("spyre").mean(-1).cpu(), x.mean(-1), rtol=1e-2, atol=1e-2)
"""
LOCK = (
    '[[package]]\nname = "torch-spyre"\nversion = "0.0.1"\nsource = { git = "https://example.org/x#abcdef1234567" }\n'
)
pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A Python that finds torch with what it needs and the backend, and nothing else."""
    torch = pytest.importorskip("torch")
    site = Path(torch.__file__).parents[1]
    place = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    python = place / "venv/bin/python"
    words = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    library = Path(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip())
    wanted = {"torch", "torchgen", "functorch", "torch_spyre", *_needed("torch")}
    for entry in site.iterdir():
        name = entry.name.split("-")[0].split(".")[0].lower()
        if name in wanted or entry.name == "typing_extensions.py":
            (library / entry.name).symlink_to(entry)
    return python


def _needed(package, seen=None):
    """Names of the distributions that a package needs, theirs too."""
    seen = set() if seen is None else seen
    try:
        lines = requires(package) or []
    except PackageNotFoundError:
        return seen
    for line in lines:
        name = line.split(";")[0].split(" ")[0].split("=")[0].split("<")[0].split(">")[0].split("[")[0].strip("~!()")
        if "extra ==" not in line and name.lower() not in seen:
            seen.add(name.lower())
            _needed(name, seen)
    return seen


@pytest.fixture
def bundle(tmp_path, monkeypatch, open_session):
    """The zip of an investigated fault; `repro` is given the words."""
    monkeypatch.setenv("SPYRE_SIM_FAULTS", "partial_reduction:op=mean:width=70")
    monkeypatch.setenv("SPYRE_SIM_COMPILE", "0")
    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", sys.executable)
    monkeypatch.setenv("DEBUG_SPYRE_LOCK_DIR", str(tmp_path / "lock"))
    for name in ("SPYRE_SIM_DEVICE", "DEBUG_SPYRE_DEVICES"):
        monkeypatch.setenv(name, str(tmp_path / "device"))
    checkout = tmp_path / "check out"
    folder = open_session(checkout)
    (checkout / "test_it.py").write_text(TEST)
    (checkout / "uv.lock").write_text(LOCK)

    def made(*repro):
        for words in (
            ["run", "--as", "baseline", "test_it.py::test_it"],
            ["shadow"],
            ["repro", *repro],
            ["repro", "--cpu"],
            ["escalate"],
        ):
            done = subprocess.run([COMMAND, *words], cwd=checkout, capture_output=True, text=True)
            assert done.returncode in {0, 1}, done.stdout + done.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        return folder.path / "escalation.zip"

    return made


@pytest.mark.parametrize(("words", "is_saved"), [(["--times", "1"], False), (["--times", "1", "--no-shrink"], True)])
def test_the_script_shows_the_fault_there_and_none_where_there_is_none(bundle, bare, tmp_path, words, is_saved):
    archive = bundle(*words)
    shutil.rmtree(tmp_path / "check out/.claude/skills/debug-spyre/logs/debug-20261130-100000-x/runs")
    elsewhere = tmp_path / "some where else"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(elsewhere)
    place = elsewhere / "escalation"
    assert (place / "repro_inputs.pt").is_file() is is_saved
    assert json.loads((place / "verification.json").read_text())["proofs"][0]["control"] is True
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DEBUG_SPYRE", "PYTHON"))}

    def run(name, **more):
        words = [bare, "-s", place / name]
        return subprocess.run(words, cwd=tmp_path, env={**env, **more}, capture_output=True, text=True)

    assert run("repro.py").returncode == 0, run("repro.py").stderr
    assert run("repro.py", SPYRE_SIM_FAULTS="").returncode == 3
    assert run("repro_control.py").returncode == 3


def test_the_bare_environment_has_no_pytest_and_no_numpy(bare):
    for name in ("pytest", "numpy", "vllm", "jinja2" if "jinja2" not in _needed("torch") else "ruff"):
        assert subprocess.run([bare, "-s", "-c", f"import {name}"], capture_output=True).returncode == 1
