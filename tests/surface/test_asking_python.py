"""The interpreter is asked what it would import: whatever way a package comes onto its path."""

import sys
import venv

import pytest

from debug_spyre.surface.io import doctor_checks as dc
from debug_spyre.surface.io.asking_python import Python, ask_python
from debug_spyre.surface.io.doctor_checks import State


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    return folder


def packages_of(environment):
    return next(environment.glob("lib/python3*/site-packages"))


def write(folder, name, version):
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text("raise SystemExit('it was imported')\n")
    record = folder / f"{name}-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_chained_pth_files_namespaces_and_editable_finders_count(environment, tmp_path):
    write(tmp_path / "base", "torch", "2.13.0")
    write(tmp_path / "further", "vllm", "0.27.1")
    (tmp_path / "space/torch_spyre").mkdir(parents=True)  # a namespace: no __init__.py
    packages = packages_of(environment)
    (packages / "one.pth").write_text(f"{tmp_path / 'base'}\n{tmp_path / 'space'}\n")
    (packages / "two.pth").write_text(f"import site; site.addsitedir({str(tmp_path / 'chain')!r})\n")
    (tmp_path / "chain").mkdir()
    (tmp_path / "chain/three.pth").write_text(f"{tmp_path / 'further'}\n")
    seen = ask_python(environment / "bin/python", tmp_path)
    assert seen.version == sys.version_info[:3]
    assert (seen.said("torch"), seen.said("vllm")) == ("2.13.0", "0.27.1")
    assert seen.places("torch_spyre") == [tmp_path / "space/torch_spyre"]
    assert seen.has("spyre_inference") is False


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho no json\n", "no program"])
def test_an_interpreter_that_gives_no_answer_is_not_known_and_nothing_is_proposed(text, tmp_path):
    python = tmp_path / "python"
    python.write_text(text)
    python.chmod(0o755)
    seen = ask_python(python, tmp_path)
    assert seen.has("torch") is None and str(python) in seen.trouble
    found = list(dc._libraries(patient(tmp_path, seen)))[0]
    assert found.state is State.WARN and "uv sync" not in found.remedy


def patient(folder, python, **torch_spyre):
    spyre = {
        "state": "absent",
        "path": None,
        "revision": None,
        "pin": None,
        "url": None,
        "version": None,
        "dirty": None,
        **torch_spyre,
    }
    return dc.Patient(folder, {"torch_spyre": spyre, "torch": None, "vllm": None, "python": None}, python)


def test_a_package_that_only_the_interpreter_finds_is_not_called_absent(tmp_path):
    package = tmp_path / "torch_spyre"
    package.mkdir()
    (package / "_C.py").write_text("")
    seen = Python((3, 12, 1), {"torch_spyre": {"version": None, "places": [str(package)]}})
    (found,) = dc._torch_spyre(patient(tmp_path, seen))
    assert found.state is State.WARN and "uv" not in found.remedy and str(package) in found.text
