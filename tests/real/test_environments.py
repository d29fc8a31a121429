"""What `make real` says of an environment that it can't use: one line, what is wrong and what to do. Needs no real package."""

import shlex
import subprocess
import sys

import pytest
from tests.real_card import environment

ERA = ("ops/eager.py", "execution/async_compile.py", "_inductor/codegen/bundle.py")


@pytest.fixture
def python(tmp_path):
    """A Python that sees the files given here before everything else."""

    def made(*files, torch="2.13.0", wants="torch~=2.13.0"):
        packages = tmp_path / "packages"
        stubs = [f"{name}/__init__.py" for name in ("torch", "pytest", "numpy", "jinja2")]
        for name in (*stubs, *files):
            (packages / name).parent.mkdir(parents=True, exist_ok=True)
            (packages / name).write_text("")
        for name, version, needs in (("torch", torch, ""), ("torch_spyre", "0.0.1", f"Requires-Dist: {wants}\n")):
            info = packages / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        shim = tmp_path / "python"
        shim.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(packages))} exec {shlex.quote(sys.executable)} "$@"\n')
        shim.chmod(0o755)
        return shim

    return made


def refusal(python, tmp_path):
    with pytest.raises(environment.Unusable) as raised:
        environment.real_package(python, tmp_path / "work")
    text = str(raised.value)
    assert len(text.splitlines()) == 1 and ";" in text, text
    return text


def test_no_program(tmp_path):
    assert "is no program that can be run" in refusal(tmp_path / "nowhere/python", tmp_path)


def test_a_program_that_is_no_python(tmp_path):
    assert "does not answer as Python does" in refusal("/bin/ls", tmp_path)


def test_the_simulated_card_is_not_taken_for_the_real_package(tmp_path):
    assert "is the simulated card" in refusal(sys.executable, tmp_path)


def test_a_package_without_its_compiled_part(python, tmp_path):
    assert "half made: no compiled _C" in refusal(
        python("torch_spyre/__init__.py", *(f"torch_spyre/{p}" for p in ERA)), tmp_path
    )


@pytest.mark.parametrize("missing", ERA)
def test_a_package_of_another_era(python, tmp_path, missing):
    there = [f"torch_spyre/{part}" for part in ERA if part != missing]
    said = refusal(python("torch_spyre/__init__.py", "torch_spyre/_C.so", *there), tmp_path)
    assert f"of another era: no {missing}" in said


def test_another_torch(python, tmp_path):
    files = ["torch_spyre/__init__.py", "torch_spyre/_C.so", *(f"torch_spyre/{part}" for part in ERA)]
    assert "torch 2.11.0 is installed and this torch_spyre wants torch~=2.13.0" in refusal(
        python(*files, torch="2.11.0"), tmp_path
    )


def test_a_package_that_does_not_load(python, tmp_path):
    files = ["torch_spyre/__init__.py", "torch_spyre/_C.so", *(f"torch_spyre/{part}" for part in ERA)]
    assert "does not load or gives a wrong sum" in refusal(python(*files), tmp_path)


def test_without_an_environment_make_real_says_how_much_is_not_proved():
    root = environment.HOME.parents[1]
    done = subprocess.run([sys.executable, "-m", "tests.real_card.prove"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("NOT PROVED ON THE REAL PACKAGE: ") and "make real PY=INTERPRETER" in done.stdout
