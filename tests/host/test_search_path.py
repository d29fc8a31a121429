"""Where an interpreter looks for packages: own first, then .pth folders, then the base's where the environment says so."""

import json
import os
import subprocess
import sys
import venv

import pytest

from debug_spyre.host import provenance as pv
from debug_spyre.host.fingerprint import backend_fingerprint, installed, search_path, site_packages
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.pytest_command import fallback_class
from debug_spyre.surface.io import doctor_checks as dc
from debug_spyre.surface.io.package_files import find_package

PYTHON = f"python3.{sys.version_info.minor}"
COMMIT, OTHER = "1" * 40, "2" * 40


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose .venv lies on a base below the same folder; nobody's own packages are seen."""
    for name in ("VIRTUAL_ENV", "DEBUG_SPYRE_PYTHON", "UV_PROJECT_ENVIRONMENT", "PYTHONUSERBASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    folder = tmp_path / "checkout"
    for packages in (own(folder), base(folder)):
        packages.mkdir(parents=True)
    for bin_folder in (folder / ".venv/bin", tmp_path / "base/bin"):
        bin_folder.mkdir()
        (bin_folder / "python").symlink_to(sys.executable)
    says(folder, "true")
    return folder


def own(checkout):
    return checkout / f".venv/lib/{PYTHON}/site-packages"


def base(checkout):
    return checkout.parent / f"base/lib/{PYTHON}/site-packages"


def says(checkout, flag):
    line = f"include-system-site-packages = {flag}\n" if flag else ""
    (checkout / ".venv/pyvenv.cfg").write_text(f"home = {checkout.parent}/base/bin\n{line}version = 3.12.1\n")


def put(packages, commit=COMMIT):
    record = packages / "torch_spyre-0.0.1.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Name: torch-spyre\nVersion: 0.0.1\n")
    vcs = {"url": "https://example.invalid/torch-spyre", "vcs_info": {"vcs": "git", "commit_id": commit}}
    (record / "direct_url.json").write_text(json.dumps(vcs))
    (packages / "torch_spyre/ops").mkdir(parents=True)
    (packages / "torch_spyre/__init__.py").write_text("")
    (packages / "torch_spyre/ops/fallbacks.py").write_text("class FallbackWarning(UserWarning): pass\n")
    (packages / f"torch-2.13.0+{commit[0]}.dist-info").mkdir()
    (packages / "vllm-0.27.1.dist-info").mkdir()


def seen(checkout):
    return pv.provenance(checkout)


def test_what_lies_in_the_base_is_found_by_doctor_op_runs_and_fingerprint(checkout):
    put(base(checkout))
    found = seen(checkout)
    assert found["torch"] == "2.13.0+1" and found["vllm"] == "0.27.1"
    assert found["torch_spyre"]["revision"] == COMMIT
    assert found["torch_spyre"]["path"] == str(base(checkout) / "torch_spyre")
    assert found["python"] == "3.12.1"
    libraries = {check.name: check for check in dc.examine(checkout)[0]}["libraries"]
    assert libraries.state is dc.State.OK and "torch 2.13.0" in libraries.text
    assert find_package(checkout).folder == base(checkout) / "torch_spyre"
    assert fallback_class(choose(checkout)) == "torch_spyre.ops.fallbacks.FallbackWarning"
    assert backend_fingerprint(own(checkout)) == backend_fingerprint(base(checkout)) is not None


@pytest.mark.parametrize("flag", ["false", None])
def test_without_the_flag_the_base_is_not_seen(checkout, flag):
    put(base(checkout))
    says(checkout, flag)
    found = seen(checkout)
    assert found["torch"] is None and found["torch_spyre"]["state"] == "absent"
    assert backend_fingerprint(own(checkout)) is None
    assert search_path(own(checkout)) == (own(checkout),)


def test_the_environments_own_package_wins(checkout):
    put(base(checkout))
    put(own(checkout), OTHER)
    found = seen(checkout)
    assert found["torch"] == "2.13.0+2" and found["torch_spyre"]["revision"] == OTHER
    assert installed(own(checkout)).source == own(checkout) / "torch_spyre"


def test_an_own_package_without_a_record_is_not_taken_for_the_bases(checkout):
    put(base(checkout))
    (own(checkout) / "torch_spyre").mkdir()
    (own(checkout) / "torch_spyre/__init__.py").write_text("")
    found = seen(checkout)["torch_spyre"]
    assert (found["state"], found["revision"]) == ("unknown", None)
    assert find_package(checkout).folder == own(checkout) / "torch_spyre"


def test_a_pth_names_folders_and_its_code_is_not_run(checkout, tmp_path):
    says(checkout, "false")
    extra, ran = tmp_path / "extra", tmp_path / "ran"
    extra.mkdir()
    put(extra)
    code = f"import pathlib; pathlib.Path({str(ran)!r}).touch()"
    (own(checkout) / "a.pth").write_text(f"# {tmp_path}\n{code}\n\n{tmp_path / 'missing'}\n{extra}\n")
    assert search_path(own(checkout)) == (own(checkout), extra)
    assert seen(checkout)["torch"] == "2.13.0+1" and not ran.exists()
    assert find_package(checkout).folder == extra / "torch_spyre"


def test_a_pth_that_cannot_be_read_as_text_or_is_a_folder_harms_nothing(checkout):
    (own(checkout) / "bytes.pth").write_bytes(b"\xff\xfe\0/\0\n")
    (own(checkout) / "folder.pth").mkdir()
    assert search_path(own(checkout))[0] == own(checkout)


def test_a_distributions_dist_packages_are_the_bases(checkout):
    debian = checkout.parent / "base/lib/python3/dist-packages"
    local = checkout.parent / f"base/local/lib/{PYTHON}/dist-packages"
    for folder in (debian, local):
        folder.mkdir(parents=True)
    put(debian)
    assert search_path(own(checkout)) == (own(checkout), local, debian)
    assert seen(checkout)["torch"] == "2.13.0+1"
    assert search_path(local) == (local, debian)


def test_an_interpreter_that_is_a_link_into_no_environment_is_that_of_its_target(tmp_path):
    python = tmp_path / f"usr/bin/{PYTHON}"
    packages = [tmp_path / f"usr/lib/{name}/site-packages" for name in ("python3.1", PYTHON)]
    for folder in (python.parent, tmp_path / "bin", *packages):
        folder.mkdir(parents=True)
    python.touch()
    (tmp_path / "bin/python").symlink_to(python)
    assert site_packages(tmp_path / "bin/python") == packages[1]
    assert site_packages(python) == packages[1]


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("user", [True, False])
def test_a_real_environment_looks_in_these_folders_in_this_order(tmp_path, monkeypatch, flag, user):
    """The oracle is Python itself: what `site` put on sys.path, without the standard library."""
    place, extra = tmp_path / "env", tmp_path / "extra"
    extra.mkdir()
    venv.create(place, system_site_packages=flag, with_pip=False, symlinks=True)
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "person"))
    (tmp_path / f"person/lib/{PYTHON}/site-packages").mkdir(parents=True)
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONNOUSERSITE"}}
    monkeypatch.delenv("PYTHONNOUSERSITE", raising=False)
    if not user:
        environment["PYTHONNOUSERSITE"] = "1"
        monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    python = place / "bin/python"
    packages = site_packages(python)
    (packages / "extra.pth").write_text(f"{extra}\nsub\n")
    (packages / "sub").mkdir()
    asked = "import sys, sysconfig; print('\\n'.join(p for p in sys.path if p and not p.endswith('.zip')))"
    told = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True, env=environment)
    standard = {os.path.dirname(os.__file__), os.path.join(os.path.dirname(os.__file__), "lib-dynload")}
    expected = [p for p in told.stdout.splitlines() if os.path.realpath(p) not in set(map(os.path.realpath, standard))]
    assert [os.path.realpath(p) for p in search_path(packages)] == [os.path.realpath(p) for p in expected]
