"""The verb as people call it: reading logs, running a matrix, comparing, refusing; real processes and files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests/samples"
TESTS = """
import pytest

@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("hidden", [64, 128, 256, 512])
def test_wide(hidden, mode):
    if hidden >= 256:
        raise RuntimeError(f"Program size ({hidden}) exceeds allocated device memory")

def test_fine():
    pass
"""


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "plugin"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests/test_wide.py").write_text(TESTS)
    (folder / "pyproject.toml").write_text("[project]\nname = 'p'\nversion = '1'\n")
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


@pytest.fixture
def call(tmp_path, checkout):
    device, locks = tmp_path / "device", tmp_path / "locks"
    device.touch()
    locks.mkdir()

    def run(*words, cwd=checkout, **env):
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith(("DEBUG_SPYRE", "CLAUDE", "SPYRE_SIM", "PYTEST"))
        }
        clean |= {
            "PYTHONPATH": str(ROOT / "scripts"),
            "DEBUG_SPYRE_PYTHON": sys.executable,
            "DEBUG_SPYRE_DEVICES": str(device),
            "DEBUG_SPYRE_LOCK_DIR": str(locks),
            "SPYRE_SIM_DEVICE": str(device),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        }
        command = [sys.executable, "-m", "debug_spyre", *words]
        return subprocess.run(command, cwd=cwd, env={**clean, **env}, capture_output=True, text=True, timeout=120)

    return run


@pytest.mark.parametrize("sample", ["tb-short.txt", "junit-xunit2.xml", "conftest-error.txt", "green-but-killed.txt"])
def test_every_form_of_answer_is_given_for_a_log(call, sample):
    path = str(SAMPLES / sample)
    text, data, page = (
        call("triage", "--from", path),
        call("triage", "--from", path, "--json"),
        call("triage", "--from", path, "--markdown"),
    )
    assert (text.returncode, data.returncode, page.returncode) == (0, 0, 0), text.stderr + data.stderr + page.stderr
    answer = json.loads(data.stdout)
    assert answer["schema"] == 1
    assert answer["sources"] == [path]
    assert f"{len(answer['clusters'])} cluster" in text.stdout
    assert page.stdout.startswith("## Triage")


def test_reading_logs_writes_nothing_and_needs_no_checkout(call, tmp_path, checkout):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = call("triage", "--from", str(SAMPLES / "tb-short.txt"), cwd=elsewhere)
    assert done.returncode == 0
    assert "not in a git checkout" in done.stderr
    assert list(elsewhere.iterdir()) == []
    call("triage", "--from", str(SAMPLES / "tb-short.txt"))
    assert not (checkout / ".claude").exists()


def test_several_logs_are_one_answer(call):
    paths = [str(SAMPLES / n) for n in ("tb-short.txt", "device-cascade.txt")]
    answer = json.loads(call("triage", "--from", *paths, "--json").stdout)
    assert answer["sources"] == paths
    assert answer["counts"]["failed"] == 11


def test_a_comparison_says_what_is_new_and_gone(call):
    now, before = str(SAMPLES / "tb-short.txt"), str(SAMPLES / "device-cascade.txt")
    answer = json.loads(call("triage", "--from", now, "--against", before, "--json").stdout)
    assert (len(answer["trend"]["new"]), len(answer["trend"]["gone"])) == (4, 1)
    same = json.loads(call("triage", "--from", now, "--against", now, "--json").stdout)
    assert same["trend"] == {"new": [], "gone": [], "changed": []}


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--from", "none.txt"], 2, "cannot read none.txt"),
        (["--from", "tests"], 2, "holds no log"),
        (["--from", str(SAMPLES / "tb-short.txt"), "--against", "nothing"], 2, "'nothing' is neither"),
        (["--from", str(SAMPLES / "tb-short.txt"), "--rules", "none.toml"], 2, "cannot read none.toml"),
        (["tests", "--from", str(SAMPLES / "tb-short.txt")], 64, "runs nothing"),
        (["--from", str(SAMPLES / "tb-short.txt"), "-k", "x"], 64, "runs nothing"),
        (["--last"], 64, "no matrix was run"),
        (["--last", "tests"], 64, "tests has no meaning"),
        (["tests", "-n", "2"], 64, ""),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_type(call, checkout, words, status, says):
    done = call("triage", *words)
    assert done.returncode == status, done.stdout + done.stderr
    assert says in done.stderr
    assert "next:" in done.stderr
    assert not (checkout / ".claude/skills/debug-spyre/logs/triage").exists()


def test_a_matrix_is_run_once_kept_and_can_be_opened(call, checkout):
    done = call("triage", "tests", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["counts"] == {"passed": 5, "failed": 4, "errors": 0, "skipped": 0, "xfailed": 0, "xpassed": 0}
    (cluster,) = answer["clusters"]
    assert [s["text"] for s in cluster["separators"]] == ["all 4 failing have hidden >= 256; 0 of 4 passing do"]
    folder = Path(answer["folder"])
    assert folder.parent == checkout / ".claude/skills/debug-spyre/logs/triage"
    kept = json.loads((folder / "triage.json").read_text())
    assert kept["clusters"] == answer["clusters"]
    assert kept["pytest_args"] == ["tests"]
    assert (folder / "full-matrix.txt").read_text().count("FAILED") == 4
    last = json.loads(call("triage", "--last", "--json").stdout)
    assert last["clusters"] == answer["clusters"]
    again = json.loads(
        call("triage", "--from", str(SAMPLES / "tb-short.txt"), "--against", folder.name, "--json").stdout
    )
    assert len(again["trend"]["gone"]) == 1
    opened = call("open", cluster["slug"], "--json")
    assert opened.returncode == 0, opened.stderr


def test_a_matrix_without_failures_has_no_clusters(call):
    done = call("triage", "tests/test_wide.py::test_fine")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 passed: 0 clusters")
    assert "next:" not in done.stdout


def test_a_selection_without_tests_is_said_with_pytests_own_status(call):
    done = call("triage", "tests", "-k", "nothing")
    assert done.returncode == 5, done.stdout + done.stderr


def test_bytes_that_are_not_utf_8_survive_in_the_json(call, tmp_path):
    path = tmp_path / "log.txt"
    text = (SAMPLES / "tb-short.txt").read_bytes().replace(b"Mod(d0, 71)", b"Mod(d0, \xe9\xff)")
    path.write_bytes(text)
    answer = json.loads(call("triage", "--from", str(path), "--json").stdout)
    names = [f["nodeid"].encode("utf-8", "surrogateescape") for f in answer["failures"]]
    assert any(name.endswith(b"[Mod(d0, \xe9\xff)]") for name in names)
    assert call("triage", "--from", str(path)).returncode == 0
    assert call("triage", "--from", str(path), "--markdown").returncode == 0


def test_a_silent_fallback_is_offered_as_a_session(call, checkout):
    text = (
        "============================= test session starts ==============================\n"
        "=============================== warnings summary ===============================\n"
        "tests/test_wide.py::test_fine\n  /w/l.py:8: FallbackWarning: aten.sin.default is falling back to cpu\n    x\n\n"
        "====== 1 passed, 1 warning in 1.0s ======\n"
    )
    (checkout / "log.txt").write_text(text)
    done = call("triage", "--from", "log.txt")
    last = done.stdout.strip().split("\n")[-1]
    assert (
        last
        == "next: debug-spyre open sin-falls-back --falls-back aten.sin.default --members tests/test_wide.py::test_fine"
    )
    opened = call(*last.removeprefix("next: debug-spyre ").split())
    assert opened.returncode == 0, opened.stderr
