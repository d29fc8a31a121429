"""The installed backend: which Python, drift from the pin, a silent re-install under a run."""

import json
import os
import shutil

import pytest

from debug_spyre.host import fingerprint
from debug_spyre.host.interpreter import choose
from debug_spyre.runs.io.pytest_command import fallback_class, pytest_command

LOCK = """
version = 1
[[package]]
name = "torch-spyre"
version = "0.0.1"
source = { git = "https://example.invalid/torch-spyre?rev=main#1111111111111111111111111111111111111111" }
"""
PIN = "1" * 40


def install(
    packages,
    *,
    direct=None,
    version="0.0.1",
    era="ops/fallbacks.py",
    source="class FallbackWarning(UserWarning): pass\n",
):
    record = packages / f"torch_spyre-{version}.dist-info"
    shutil.rmtree(record, ignore_errors=True)
    record.mkdir(parents=True)
    (record / "METADATA").write_text(f"Name: torch_spyre\nVersion: {version}\n")
    (record / "RECORD").write_text("")
    if direct:
        (record / "direct_url.json").write_text(json.dumps(direct))
    file = packages / "torch_spyre" / era
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    return file


def from_git(commit):
    return {"url": "https://example.invalid/torch-spyre", "vcs_info": {"vcs": "git", "commit_id": commit}}


LOCAL = {"url": "file:///home/x/torch spyre", "dir_info": {}}


def test_no_backend_has_no_fingerprint(tmp_path):
    assert fingerprint.backend_fingerprint(tmp_path) is None


@pytest.mark.parametrize("change", ["content", "time", "new file", "record", "gone"])
def test_any_change_of_the_installed_files_changes_the_fingerprint(tmp_path, change):
    file = install(tmp_path)
    before = fingerprint.backend_fingerprint(tmp_path)
    assert before == fingerprint.backend_fingerprint(tmp_path)
    if change == "content":
        file.write_text("class FallbackWarning(UserWarning): 'longer'\n")
    elif change == "time":
        os.utime(file, ns=(1, 1))
    elif change == "new file":
        (tmp_path / "torch_spyre/_C.so").write_bytes(b"x")
    elif change == "record":
        (tmp_path / "torch_spyre-0.0.1.dist-info/direct_url.json").write_text(json.dumps(LOCAL))
    else:
        file.unlink()
    assert fingerprint.backend_fingerprint(tmp_path) != before


def test_compiled_caches_do_not_count(tmp_path):
    install(tmp_path)
    before = fingerprint.backend_fingerprint(tmp_path)
    (tmp_path / "torch_spyre/__pycache__").mkdir()
    (tmp_path / "torch_spyre/__pycache__/x.py").write_text("x")
    assert fingerprint.backend_fingerprint(tmp_path) == before


def test_an_editable_installation_is_followed_to_its_source(tmp_path):
    source, packages = tmp_path / "src tree", tmp_path / "packages"
    direct = {"url": source.as_uri(), "dir_info": {"editable": True}}
    install(packages, direct=direct)
    shutil.rmtree(packages / "torch_spyre")
    (source / "torch_spyre").mkdir(parents=True)
    (source / "torch_spyre/__init__.py").write_text("a = 1\n")
    before = fingerprint.backend_fingerprint(packages)
    (source / "torch_spyre/__init__.py").write_text("a = 12\n")
    assert fingerprint.backend_fingerprint(packages) != before


@pytest.mark.parametrize(
    ("direct", "says"),
    [
        (from_git(PIN), None),
        (from_git("2" * 40), "222222222222, uv.lock pins 111111111111"),
        (LOCAL, "a local build"),
        (None, "no revision"),
    ],
)
def test_drift_from_the_pin_is_told_in_words(tmp_path, direct, says):
    install(tmp_path / "packages", direct=direct)
    (tmp_path / "uv.lock").write_text(LOCK)
    found = fingerprint.drift(tmp_path, tmp_path / "packages")
    assert found is None if says is None else says in found


def project(tmp_path, monkeypatch, direct, *, uv=True):
    """A uv project with a .venv; `uv` a program of that name."""
    for name in ("DEBUG_SPYRE_PYTHON", "VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT"):
        monkeypatch.delenv(name, raising=False)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    install(tmp_path / ".venv/lib/python3.12/site-packages", direct=direct)
    (tmp_path / "uv.lock").write_text(LOCK)
    tools = tmp_path / "tools"
    tools.mkdir()
    if uv:
        (tools / "uv").write_text("#!/bin/sh\n")
        (tools / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    return python


def test_a_local_build_is_run_with_no_sync(tmp_path, monkeypatch):
    project(tmp_path, monkeypatch, LOCAL)
    chosen = choose(tmp_path)
    assert chosen.words[1:] == ("run", "--no-sync", "python") and "local build" in chosen.why


def test_without_uv_or_without_drift_the_projects_own_python_runs(tmp_path, monkeypatch):
    python = project(tmp_path, monkeypatch, from_git(PIN))
    assert choose(tmp_path).words == (str(python),)


def test_no_uv_in_a_pod_is_no_obstacle_to_a_local_build(tmp_path, monkeypatch):
    python = project(tmp_path, monkeypatch, LOCAL, uv=False)
    chosen = choose(tmp_path)
    assert chosen.words == (str(python),) and "local build" in chosen.why


def test_without_a_venv_the_active_or_the_current_interpreter_runs(tmp_path, monkeypatch):
    import sys

    for name in ("DEBUG_SPYRE_PYTHON", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    assert choose(tmp_path).words == (sys.executable,)


@pytest.mark.parametrize(
    ("era", "module"),
    [
        ("ops/fallbacks.py", "torch_spyre.ops.fallbacks"),
        ("fallbacks.py", "torch_spyre.fallbacks"),
        ("x/y.py", "torch_spyre.x.y"),
    ],
)
def test_fallback_as_error_names_the_class_where_the_installed_era_has_it(place, monkeypatch, era, module):
    install(place.packages, era=era)
    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", str(place.python))
    assert fallback_class(choose(place.checkout)) == f"{module}.FallbackWarning"
    argv, env = pytest_command(place.checkout, ["tests"], fallback_as_error=True)
    assert "debug_spyre_strict" in argv and env["DEBUG_SPYRE_STRICT"] == f"{module}.FallbackWarning"


@pytest.mark.parametrize("words", [["-W", "{}"], ["-W{}"], ["--pythonwarnings={}"]])
def test_pytests_own_filter_for_fallbacks_becomes_ours(place, monkeypatch, words):
    install(place.packages, era="ops/fallbacks.py")
    monkeypatch.setenv("DEBUG_SPYRE_PYTHON", str(place.python))
    given = [word.format("error::torch_spyre.ops.fallbacks.FallbackWarning") for word in words]
    argv, env = pytest_command(place.checkout, ["tests", *given])
    assert "debug_spyre_strict" in argv and not any("error::" in word for word in argv)
    assert env["DEBUG_SPYRE_STRICT"] == "torch_spyre.ops.fallbacks.FallbackWarning"
    assert "debug_spyre_strict" not in pytest_command(place.checkout, ["tests"])[0]


def test_fallback_as_error_without_a_backend_says_so(place):
    done = place.call("run", "--fallback-as-error")
    assert done.returncode == 69 and "FallbackWarning" in done.stderr and "doctor" in done.stderr


def reinstalling_test(place, extra=""):
    file = install(place.packages, direct=from_git(PIN))
    return place.write("test_it.py", f"def test_it():\n open({str(file)!r}, 'a').write('x = 1')\n{extra}")


def test_a_re_install_under_a_run_makes_its_evidence_worthless_and_never_0(place):
    reinstalling_test(place)
    done = place.json("run", "test_it.py")
    assert done["status"] == "invalid" and done["valid"] is False
    assert done["exit"] == 0 and done["status_of_process"] == 78
    assert "torch-spyre changed under the run" in done["warnings"][0]


def test_a_declared_change_is_said_and_counts(place):
    reinstalling_test(place)
    done = place.json("run", "test_it.py", "--expect-change", "torch-spyre")
    assert done["status"] == "passed" and done["valid"] is True and "as declared" in done["warnings"][0]


def test_another_backend_than_in_the_run_before_is_said_unless_declared(place):
    file = install(place.packages, direct=from_git(PIN))
    first = place.json("exec", "--", "true")
    stem = os.path.basename(os.path.dirname(first["output"]))
    file.write_text("# rebuilt\n")
    second = place.json("exec", "--session", stem, "--", "true")
    assert second["valid"] is True and any("another one than in r1" in w for w in second["warnings"])
    file.write_text("# rebuilt again\n")
    third = place.json("exec", "--session", stem, "--expect-change", "torch-spyre", "--", "true")
    assert not any("another one" in w for w in third["warnings"])


def test_uvs_lines_at_the_front_of_the_output_are_recognised(place):
    lines = "Uninstalled 1 package in 2ms\\nInstalled 1 package in 1ms\\n - torch-spyre==0.0.1 (from file:///x)\\n + torch-spyre==0.0.1 (from git+https://y)\\n"
    done = place.json("exec", "--", "sh", "-c", f"printf '{lines}'")
    assert "Uninstalled 1 package in 2ms" in done["warnings"][0] and "- torch-spyre" in done["warnings"][0]


def test_a_verbose_run_sets_the_vendors_variables_before_python_starts(place):
    place.write(
        "test_it.py",
        "import os\ndef test_it(): print(os.environ['DTLOG_LEVEL'], os.environ['TORCH_SENDNN_LOG'], os.environ['DT_DEEPRT_VERBOSE']); assert 0\n",
    )
    done = place.json("run", "--verbose-backend", "test_it.py")
    assert done["output"].endswith("/verbose.log") and "info INFO 1" in open(done["output"]).read()


def test_a_target_without_pytest_is_said_with_the_remedy(place):
    place.write("test_it.py", "def test_it(): pass\n")
    place.python.write_text('#!/bin/sh\necho "$0: No module named pytest" >&2\nexit 1\n')
    done = place.json("run", "test_it.py")
    assert done["status_of_process"] == 69 and done["valid"] is False
    assert "DEBUG_SPYRE_PYTHON" in done["warnings"][0]
