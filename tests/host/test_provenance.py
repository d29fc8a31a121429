"""Which torch-spyre a run saw is told from files alone: pin, record, git; secrets never leave."""

import json
import os
import subprocess
import sys

import pytest

from debug_spyre.host import provenance as pv
from debug_spyre.host.spyre_variables import MASK, listed_variables, shown

PIN = "f8d4f43b" + "0" * 32
OTHER = "1234567890" * 4
LOCK = '[[package]]\nname = "torch-spyre"\nversion = "0.0.1"\nsource = {{ git = "https://example.org/x?rev=a#{0}" }}\n'


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    folder = tmp_path / "checkout"
    packages = folder / ".venv/lib/python3.12/site-packages"
    packages.mkdir(parents=True)
    (folder / ".venv/bin").mkdir()
    (folder / ".venv/bin/python").symlink_to(sys.executable)
    (folder / ".venv/pyvenv.cfg").write_text("home = /usr\nversion = 3.12.1\n")
    for name in ("torch-2.13.0+cpu", "vllm-0.27.1"):
        (packages / f"{name}.dist-info").mkdir()
    return folder


def install(checkout, direct, *, package=True):
    packages = checkout / ".venv/lib/python3.12/site-packages"
    record = packages / "torch_spyre-0.0.1.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-spyre\nVersion: 0.0.1\n")
    if direct is not None:
        (record / "direct_url.json").write_text(json.dumps(direct))
    if package:
        (packages / "torch_spyre").mkdir()


def from_git(commit):
    return {"url": "https://user:tok3n@example.org/torch-spyre", "vcs_info": {"vcs": "git", "commit_id": commit}}


@pytest.mark.parametrize(
    ("direct", "lock", "state", "revision"),
    [
        (from_git(PIN), PIN, "pinned", PIN),
        (from_git(OTHER), PIN, "drifted", OTHER),
        (from_git(OTHER), None, "unknown", OTHER),
        ({"url": "file:///nowhere/torch-spyre", "dir_info": {}}, PIN, "local", None),
        (None, PIN, "unknown", None),
    ],
)
def test_the_state_is_told_by_record_and_pin(direct, lock, state, revision, checkout):
    install(checkout, direct)
    if lock:
        (checkout / "uv.lock").write_text(LOCK.format(lock))
    found = pv.provenance(checkout)["torch_spyre"]
    assert (found["state"], found["revision"], found["pin"]) == (state, revision, lock)
    assert found["path"].endswith("site-packages/torch_spyre")


def test_a_password_in_the_url_is_masked(checkout):
    install(checkout, from_git(PIN))
    assert "tok3n" not in json.dumps(pv.provenance(checkout))


def test_nothing_installed_is_absent_and_half_of_it_has_no_path(checkout):
    assert pv.provenance(checkout)["torch_spyre"]["state"] == "absent"
    install(checkout, from_git(PIN), package=False)
    assert pv.provenance(checkout)["torch_spyre"]["path"] is None


def test_versions_and_python_come_from_folders(checkout):
    seen = pv.provenance(checkout)
    assert (seen["torch"], seen["vllm"], seen["python"]) == ("2.13.0+cpu", "0.27.1", "3.12.1")
    assert seen["host"]["arch"]


def git(folder, *words):
    return subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def test_head_branch_and_changes_of_a_checkout(tmp_path):
    git(tmp_path, "init", "-q", "-b", "topic/x")
    assert pv.git_state(tmp_path)["head"] is None
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "one")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert pv.git_state(tmp_path) == {"head": head, "branch": "topic/x", "dirty": 0}
    (tmp_path / "a").write_text("2")
    (tmp_path / "ünï b").write_text("3")
    assert pv.git_state(tmp_path)["dirty"] == 2
    git(tmp_path, "pack-refs", "--all")
    assert pv.head_of(tmp_path) == head
    git(tmp_path, "checkout", "-q", "--detach")
    assert pv.git_state(tmp_path)["branch"] is None
    assert pv.head_of(tmp_path / "deeper/still") == head


def test_a_worktree_is_read(tmp_path):
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-qm", "one", "--allow-empty")
    git(main, "worktree", "add", "-q", "../other")
    assert pv.head_of(tmp_path / "other") == git(main, "rev-parse", "HEAD")


def test_a_local_build_takes_the_revision_of_its_checkout(checkout, tmp_path):
    source = tmp_path / "torch spyre"
    source.mkdir()
    git(source, "init", "-q")
    git(source, "commit", "-qm", "one", "--allow-empty")
    (source / "new.py").write_text("")
    install(checkout, {"url": f"file://{str(source).replace(' ', '%20')}", "dir_info": {"editable": False}})
    found = pv.provenance(checkout)["torch_spyre"]
    assert (found["state"], found["revision"], found["dirty"]) == ("local", git(source, "rev-parse", "HEAD"), 1)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root to give a folder away")
def test_a_checkout_of_another_owner_is_read(tmp_path):
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "one", "--allow-empty")
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, 12345, 12345)
    state = pv.git_state(tmp_path)
    assert state["head"] and state["dirty"] == 0


def test_looking_at_a_checkout_runs_nothing_of_its_own(tmp_path):
    """It may be another owner's: its settings name programs that git would start as us."""
    folder, ran = tmp_path / "checkout", tmp_path / "ran"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-qm", "one", "--allow-empty")
    watcher = tmp_path / "watcher"
    watcher.write_text(f"#!/bin/sh\necho x >> '{ran}'\nprintf '/\\0'\n")
    watcher.chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(watcher))
    (folder / "new.py").write_text("x = 1\n")
    assert pv.git_state(folder)["dirty"] == 1
    assert not ran.exists()
    git(folder, "status")
    assert ran.exists(), "the trap is none: git did not start it either"


def test_the_callers_own_git_variables_do_not_lead_elsewhere(tmp_path, monkeypatch):
    """Under a hook of git GIT_DIR names the repository that the hook belongs to."""
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q", "-b", name)
        git(tmp_path / name, "commit", "-qm", name, "--allow-empty")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere/.git"))
    assert pv.git_state(tmp_path / "here")["branch"] == "here"


def test_without_git_the_head_is_still_told(tmp_path, monkeypatch):
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "one", "--allow-empty")
    head = git(tmp_path, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", "/nowhere")
    assert pv.git_state(tmp_path) == {"head": head, "branch": None, "dirty": None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPYRE_TOKEN", "abc"),
        ("VLLM_API_KEY", "abc"),
        ("VLLM_REPO_URL", "https://me:pw@example.org/x"),
        ("SPYRE_NOTE", "hf_abcdefghijkl"),
        ("DT_PASSWORD", "x"),
        ("PYTEST_ADDOPTS", "--api-key=abc"),
        ("SPYRE_NOTE", "glpat-abcdefghijklmnopqrst"),
    ],
)
def test_secrets_are_masked(name, value):
    assert shown(name, value) == MASK
    assert value not in json.dumps(listed_variables({name: value}))


def test_listed_variables_are_shown_and_no_others():
    seen = listed_variables(
        {"AIU_WORLD_SIZE": "1", "SPYRE_DEVICES": "0,1", "TORCH_LOGS": "+inductor", "EDITOR": "vi", "GITHUB_TOKEN": "x"}
    )
    assert seen == {"AIU_WORLD_SIZE": "1", "SPYRE_DEVICES": "0,1", "TORCH_LOGS": "+inductor"}


def test_one_line_for_the_log(checkout):
    install(checkout, from_git(PIN))
    line = pv.as_text(pv.provenance(checkout))
    assert line.startswith("torch-spyre f8d4f43b0000 (unknown), torch 2.13.0+cpu, vllm 0.27.1, python 3.12.1")


def test_a_package_that_a_path_file_finds_in_a_git_checkout_is_a_local_build_of_it(checkout, tmp_path):
    """Its record names no source; the folder it is imported from does. The plugin's own checkout is no such source."""
    install(checkout, None, package=False)
    tree = tmp_path / "tree"
    (tree / "torch_spyre").mkdir(parents=True)
    (tree / "torch_spyre/__init__.py").write_text("")
    packages = checkout / ".venv/lib/python3.12/site-packages"
    (packages / "tree.pth").write_text(f"{tree}\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-C", str(tree)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    seen = pv.torch_spyre_of(checkout, packages)
    assert (seen["state"], seen["revision"], seen["dirty"], seen["url"]) == ("local", head, 0, str(tree))
    assert pv.revision_of(tree / "torch_spyre", checkout) == head
    assert pv.torch_spyre_of(tree, packages)["revision"] is None
