"""The tree: its digest, the snapshot at open, the saved patch, and the way back that costs the user nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gate.conftest import git, state_of

from debug_spyre.tree.io import revert as tree_revert
from debug_spyre.tree.io import scan
from debug_spyre.tree.io.revert import finish, revert
from debug_spyre.tree.io.snapshot import changes_since, edited_files, load_start, snapshot, tree_digest
from debug_spyre.tree.io.test_code import patch_since
from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError, RefusedError


def experiment(checkout):
    """What a session does to a tree: edits, a new file, a deletion, a mode, a binary, a link, a folder for a file."""
    (checkout / "spyre_inference/ops.py").write_text("def rms(x):\n    return x + 1\n")
    (checkout / "tests/test_ops.py").write_text("def test_ops():\n    assert 3\n")
    (checkout / "spyre_inference/blob.bin").write_bytes(b"\0\1\2" * 99)
    (checkout / "new pkg").mkdir()
    (checkout / "new pkg/ü\"'\n.py").write_text("y = 2\n")
    (checkout / "tests/empty").write_bytes(b"")
    os.unlink(checkout / "notes by hand.txt")
    os.chmod(checkout / "run.sh", 0o644)
    os.unlink(checkout / "link.py")
    os.symlink("/etc/passwd", checkout / "link.py")
    os.unlink(checkout / "spyre_inference/staged.py")
    (checkout / "spyre_inference/staged.py").mkdir()
    (checkout / "spyre_inference/staged.py/inner.py").write_text("z = 3\n")


def test_the_user_gets_every_byte_back_and_the_index_and_head_are_as_they_were(repository, folder):
    before, tree = state_of(repository), snapshot(repository, folder)
    experiment(repository)
    assert state_of(repository) != before
    done = revert(repository, tree, folder)
    assert state_of(repository) == before
    assert done.digest == tree["digest"] == tree_digest(repository)
    assert done.patched != done.digest
    assert not (repository / "new pkg").exists()


def test_the_saved_patch_put_on_again_gives_the_experiment_again(repository, folder):
    tree = snapshot(repository, folder)
    experiment(repository)
    wanted, patched = state_of(repository)[0], tree_digest(repository)
    done = revert(repository, tree, folder)
    assert done.patched == patched
    git(repository, "apply", "--whitespace=nowarn", str(done.patch))
    assert state_of(repository)[0] == wanted
    assert tree_digest(repository) == patched


def test_a_dry_run_names_the_files_and_changes_nothing(repository, folder):
    tree = snapshot(repository, folder)
    experiment(repository)
    before = state_of(repository)
    done = revert(repository, tree, folder, dry_run=True)
    assert {c.name: c.what for c in done.changes}["notes by hand.txt"] == "deleted"
    assert {c.name: c.what for c in done.changes}["tests/empty"] == "created"
    assert state_of(repository) == before
    assert not list(folder.glob("*.patch"))


def test_nothing_changed_means_nothing_reverted_and_no_patch(repository, folder):
    tree = snapshot(repository, folder)
    done = revert(repository, tree, folder)
    assert done.changes == ()
    assert done.patch is None
    assert patch_since(repository, tree) == b""


def test_a_name_that_breaks_careless_code_survives(repository, folder, hostile):
    name = hostile.replace("/", "_")
    (repository / "spyre_inference" / name).write_text("before\n")
    before, tree = state_of(repository), snapshot(repository, folder)
    (repository / "spyre_inference" / name).write_text("after\n")
    (repository / "tests" / (name + "2")).write_text("made by the session\n")
    done = revert(repository, tree, folder)
    assert len(done.changes) == 2
    assert state_of(repository) == before
    git(repository, "apply", str(done.patch))
    assert (repository / "spyre_inference" / name).read_text() == "after\n"


def test_a_name_that_is_no_text_survives(repository, folder):
    place = os.fsencode(repository) + b"/spyre_inference/\xff\xfe.py"
    with open(place, "wb") as stream:
        stream.write(b"a")
    before, tree = state_of(repository), snapshot(repository, folder)
    json.dumps(tree).encode()
    with open(place, "wb") as stream:
        stream.write(b"b")
    done = revert(repository, tree, folder)
    assert state_of(repository) == before
    json.dumps(done.files).encode()


def test_what_the_session_staged_is_unstaged_with_its_file(repository, folder):
    before, tree = state_of(repository), snapshot(repository, folder)
    experiment(repository)
    git(repository, "add", "-A")
    revert(repository, tree, folder)
    after = state_of(repository)
    assert after[0] == before[0]
    untouched = {b"notes by hand.txt", b"gone.txt", b"README.md"}
    changed = set(after[1].split(b"\0")) ^ set(before[1].split(b"\0"))
    left = {entry.split(b"\t")[1] for entry in changed if entry}
    assert {path for path in left if not path.startswith(b".claude/")} <= untouched


def test_a_line_end_filter_does_not_touch_the_bytes(repository, folder):
    (repository / ".gitattributes").write_text("*.md text eol=crlf\n*.py ident filter=upper\n")
    git(repository, "config", "filter.upper.clean", "tr a-z A-Z")
    git(repository, "config", "core.autocrlf", "true")
    before, tree = state_of(repository), snapshot(repository, folder)
    (repository / "README.md").write_bytes(b"other\nlines\r\n")
    (repository / "spyre_inference/ops.py").write_text("x\n")
    revert(repository, tree, folder)
    assert state_of(repository)[0] == before[0]


def test_no_commit_yet_is_no_obstacle(tmp_path):
    checkout, folder = tmp_path / "young", tmp_path / "session"
    checkout.mkdir(), folder.mkdir()
    git(checkout, "init", "-q")
    (checkout / "a.py").write_text("1\n")
    tree = snapshot(checkout, folder)
    assert tree["head"] is None
    (checkout / "a.py").write_text("2\n")
    revert(checkout, tree, folder)
    assert (checkout / "a.py").read_text() == "1\n"


def test_the_repository_itself_is_never_written(repository, folder):
    def content():
        return {p: p.read_bytes() for p in (repository / ".git").rglob("*") if p.is_file()}

    before = content()
    tree = snapshot(repository, folder)
    tree_digest(repository)
    (repository / "spyre_inference/ops.py").write_text("new\n")
    patch_since(repository, tree)
    revert(repository, tree, folder)
    assert content() == before


def test_a_read_only_repository_is_no_obstacle(repository, folder):
    if os.getuid() == 0:
        pytest.skip("root may write anywhere")
    subprocess.run(["chmod", "-R", "a-w", str(repository / ".git")], check=True)
    tree = snapshot(repository, folder)
    assert tree["digest"]


@pytest.mark.root
def test_another_owner_is_no_obstacle(repository, folder):
    if os.getuid() != 0:
        pytest.skip("needs to be root")
    subprocess.run(["chown", "-R", "12345", str(repository)], check=True)
    assert subprocess.run(["git", "status"], cwd=repository, capture_output=True).returncode != 0
    tree = snapshot(repository, folder)
    (repository / "spyre_inference/ops.py").write_text("new\n")
    assert revert(repository, tree, folder).digest == tree["digest"]


def test_the_logs_folder_does_not_count(repository, folder):
    before, tree = tree_digest(repository), snapshot(repository, folder)
    (folder / "baseline.txt").write_text("output\n")
    git(repository, "add", "-f", str(folder / "baseline.txt"))
    assert tree_digest(repository) == before
    assert edited_files(repository, tree, folder) == ()


def test_a_logs_folder_inside_the_source_does_not_count_either(repository, monkeypatch):
    logs = repository / "spyre_inference/logs"
    monkeypatch.setenv("DEBUG_SPYRE_LOGS", str(logs))
    before = tree_digest(repository)
    (logs / "debug-x").mkdir(parents=True)
    (logs / "debug-x/a.py").write_text("output\n")
    assert tree_digest(repository) == before


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("spyre_inference/data.json", True),
        ("tests/conftest.py", True),
        ("conftest.py", True),
        ("pytest.ini", True),
        ("output of a run.txt", False),
        ("scratch/dump.bin", False),
        ("scratch/module.py", True),
        ("debug2.log", False),
        ("spyre_inference/__pycache__/ops.cpython-311.pyc", False),
        (".pytest_cache/v/x", False),
        (".claude/settings.local.json", False),
    ],
)
def test_the_digest_is_over_what_tests_can_see(repository, name, counts):
    before = tree_digest(repository)
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).write_text("x\n")
    assert (tree_digest(repository) != before) is counts


def test_the_digest_depends_on_bytes_modes_and_names_only(repository):
    first = tree_digest(repository)
    ops = repository / "spyre_inference/ops.py"
    text = ops.read_bytes()
    ops.write_bytes(b"other")
    assert tree_digest(repository) != first
    ops.write_bytes(text)
    assert tree_digest(repository) == first
    git(repository, "add", "-A", "spyre_inference")
    assert tree_digest(repository) == first
    os.chmod(ops, 0o755)
    assert tree_digest(repository) != first


def test_no_git_means_unknown_and_says_why(repository, folder, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert tree_digest(repository) is None
    tree = snapshot(repository, folder)
    assert tree["digest"] is None
    with pytest.raises(BadInputError, match="git can't be run"):
        revert(repository, tree, folder)


def test_a_merge_under_way_refuses_before_anything_is_touched(repository, folder):
    tree = snapshot(repository, folder)
    experiment(repository)
    (repository / ".git/MERGE_HEAD").write_bytes(git(repository, "rev-parse", "HEAD"))
    before = state_of(repository)
    with pytest.raises(RefusedError, match="a merge"):
        revert(repository, tree, folder)
    assert state_of(repository) == before
    assert not list(folder.glob("*.patch"))


def test_a_moved_head_refuses_unless_it_is_said(repository, folder):
    tree = snapshot(repository, folder)
    git(repository, "commit", "-q", "-am", "the user's own")
    (repository / "spyre_inference/ops.py").write_text("new\n")
    before = state_of(repository)
    with pytest.raises(RefusedError, match="HEAD was"):
        revert(repository, tree, folder)
    assert state_of(repository) == before
    revert(repository, tree, folder, head_moved=True)
    assert "return x\n" in (repository / "spyre_inference/ops.py").read_text()
    assert state_of(repository)[1:] == before[1:]


def test_an_edited_gitignore_does_not_cost_the_user_what_it_hid(repository, folder):
    (repository / "build").mkdir()
    (repository / "build/precious.bin").write_bytes(b"hours of work")
    before, tree = state_of(repository), snapshot(repository, folder)
    (repository / ".gitignore").write_text("nothing\n")
    assert [c.name for c in edited_files(repository, tree, folder)] == [".gitignore"]
    revert(repository, tree, folder)
    assert state_of(repository) == before


def test_a_file_that_a_new_gitignore_hides_is_not_taken_for_deleted(repository, folder):
    before, tree = state_of(repository), snapshot(repository, folder)
    (repository / ".gitignore").write_text("*.log\nbuild/\n*.txt\n")
    assert [c.name for c in edited_files(repository, tree, folder)] == [".gitignore"]
    revert(repository, tree, folder)
    assert state_of(repository) == before


def test_a_large_untracked_file_is_left_alone(repository, folder, monkeypatch):
    monkeypatch.setattr(scan, "MOST_BYTES", 1000)
    (repository / "weights.bin").write_bytes(b"w" * 2000)
    tree = snapshot(repository, folder)
    assert tree["skipped"] == ["weights.bin"]
    (repository / "weights.bin").write_bytes(b"v" * 3000)
    (repository / "dump.bin").write_bytes(b"d" * 2000)
    assert revert(repository, tree, folder).changes == ()
    assert (repository / "dump.bin").exists()
    assert not any(p.stat().st_size > 1900 for p in folder.rglob("*") if p.is_file() and p.name != "start.json")


def test_links_are_not_followed_out_of_the_checkout(repository, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "ops.py").write_text("not ours\n")
    before, tree = state_of(repository), snapshot(repository, folder)
    os.rename(repository / "spyre_inference", tmp_path / "moved")
    os.symlink(outside, repository / "spyre_inference")
    revert(repository, tree, folder)
    assert state_of(repository) == before
    assert (outside / "ops.py").read_text() == "not ours\n"


def test_a_pipe_in_the_tree_does_not_hang(repository, folder):
    tree = snapshot(repository, folder)
    os.unlink(repository / "spyre_inference/blob.bin")
    os.mkfifo(repository / "spyre_inference/pipe")
    assert {c.name for c in edited_files(repository, tree, folder)} == {"spyre_inference/blob.bin"}


def test_a_repository_inside_the_checkout_is_not_entered(repository, folder):
    inner = repository / "torch-spyre"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "a.py").write_text("1\n")
    tree = snapshot(repository, folder)
    (inner / "a.py").write_text("2\n")
    revert(repository, tree, folder)
    assert (inner / "a.py").read_text() == "2\n"


@pytest.mark.parametrize("moment", ["before a file", "in a file"])
def test_a_killed_revert_goes_on_and_keeps_the_whole_patch(repository, folder, moment):
    before, tree = state_of(repository), snapshot(repository, folder)
    experiment(repository)
    patched = tree_digest(repository)
    code = (
        "import os, sys, json\n"
        "from pathlib import Path\n"
        "from debug_spyre.tree.io import revert as tree_revert\n"
        "owner, name = (tree_revert, '_write') if sys.argv[4] == 'before a file' else (os, 'replace')\n"
        "inner, left = getattr(owner, name), [3]\n"
        "def dies(*a):\n"
        "    if name == 'replace' and b'.debug-spyre-' not in os.fsencode(a[0]): return inner(*a)\n"
        "    left[0] -= 1\n"
        "    if not left[0]: os.kill(os.getpid(), 9)\n"
        "    inner(*a)\n"
        "setattr(owner, name, dies)\n"
        "tree_revert.revert(Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]))\n"
    )
    scripts = str(Path(tree_revert.__file__).parents[3])
    ended = subprocess.run(
        [sys.executable, "-c", code, str(repository), json.dumps(tree), str(folder), moment],
        env={**os.environ, "PYTHONPATH": scripts},
        capture_output=True,
    )
    assert ended.returncode == -9, ended.stderr
    assert state_of(repository) != before
    assert tree_digest(repository) not in {patched, tree["digest"]}
    assert bool(list(repository.rglob(".debug-spyre-*"))) == (moment == "in a file")
    done = revert(repository, tree, folder)
    assert state_of(repository) == before
    assert done.resumed
    assert done.patched == patched
    assert not list(repository.rglob(".debug-spyre-*"))
    assert [p.name for p in folder.glob("*.patch")] == ["fix.patch"]
    finish(folder)
    git(repository, "apply", "--whitespace=nowarn", str(done.patch))
    assert tree_digest(repository) == patched


def test_an_edit_after_a_killed_revert_gets_a_patch_of_its_own(repository, folder):
    tree = snapshot(repository, folder)
    (repository / "spyre_inference/ops.py").write_text("first\n")
    revert(repository, tree, folder)  # never recorded, as if killed before the journal
    (repository / "spyre_inference/ops.py").write_text("second\n")
    done = revert(repository, tree, folder)
    assert not done.resumed
    assert done.patch.name == "fix-2.patch"
    assert b"+second" in done.patch.read_bytes()


def test_a_place_that_cannot_be_written_says_so_and_a_second_call_goes_on(repository, folder):
    before, tree = state_of(repository), snapshot(repository, folder)
    (repository / "spyre_inference/ops.py").write_text("first\n")
    os.unlink(repository / "run.sh")
    (repository / "run.sh").mkdir()
    (repository / "run.sh/kept.log").write_text("ignored, so not ours to remove\n")
    with pytest.raises(EnvironmentTroubleError, match=r"cannot put back 'run\.sh'"):
        revert(repository, tree, folder)
    os.unlink(repository / "run.sh/kept.log")
    revert(repository, tree, folder)
    assert state_of(repository) == before


def test_a_session_that_was_carved_out_uses_its_origins_snapshot(repository, folder, tmp_path):
    tree = snapshot(repository, folder)
    (repository / "spyre_inference/ops.py").write_text("first\n")
    other = tmp_path / "carved"
    other.mkdir()
    done = revert(repository, tree, other)
    assert done.patch == other / "fix.patch"
    assert done.digest == tree["digest"]


def test_the_snapshot_survives_the_loss_of_what_git_had_not_committed(repository, folder):
    before, tree = state_of(repository), snapshot(repository, folder)
    git(repository, "reset", "-q", "--hard")
    git(repository, "gc", "-q", "--prune=now")
    revert(repository, tree, folder)
    files, index, _ = state_of(repository)
    assert files == before[0]


def test_a_damaged_snapshot_is_said_so(repository, folder):
    tree = snapshot(repository, folder)
    (folder / "tree/start.json").write_text("{")
    with pytest.raises(BadInputError, match="no snapshot"):
        changes_since(repository, load_start(tree, folder))


def test_a_linked_worktree_is_a_checkout_like_any_other(repository, tmp_path):
    linked, folder = tmp_path / "linked", tmp_path / "session"
    folder.mkdir()
    git(repository, "worktree", "add", "-q", "--detach", str(linked))
    (linked / "README.md").write_text("the user's\n")
    tree = snapshot(linked, folder)
    (linked / "spyre_inference/ops.py").write_text("new\n")
    assert revert(linked, tree, folder).digest == tree["digest"]
    assert (linked / "README.md").read_text() == "the user's\n"
    (repository / ".git/worktrees/linked/MERGE_HEAD").write_bytes(git(repository, "rev-parse", "HEAD"))
    with pytest.raises(RefusedError, match="a merge"):
        revert(linked, tree, folder)


def test_a_submodule_is_left_alone(repository, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "a.py").write_text("1\n")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "x")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    tree = snapshot(repository, folder)
    (repository / "sub/a.py").write_text("2\n")
    (repository / "spyre_inference/ops.py").write_text("new\n")
    assert [c.name for c in revert(repository, tree, folder).changes] == ["spyre_inference/ops.py"]
    assert (repository / "sub/a.py").read_text() == "2\n"


def test_a_repository_that_names_objects_by_sha256(tmp_path):
    checkout, folder = tmp_path / "sha256", tmp_path / "session"
    checkout.mkdir(), folder.mkdir()
    git(checkout, "init", "-q", "--object-format=sha256")
    (checkout / "a.py").write_text("1\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "x")
    (checkout / "a.py").write_text("2\n")
    before, tree = state_of(checkout), snapshot(checkout, folder)
    (checkout / "a.py").write_text("3\n")
    (checkout / "b.py").write_text("new\n")
    git(checkout, "add", "-A")
    done = revert(checkout, tree, folder)
    assert state_of(checkout)[0] == before[0]
    assert git(checkout, "diff", "--cached", "--name-only") == b""
    git(checkout, "apply", str(done.patch))
    assert (checkout / "a.py").read_text() == "3\n"


def test_files_that_appear_and_vanish_meanwhile_do_not_break_the_digest(repository):
    import threading

    stop = threading.Event()

    def churn():
        n = 0
        while not stop.is_set():
            place = repository / f"tests/churn{n % 7}.txt"
            place.write_text("x")
            place.unlink()
            n += 1

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        assert all(tree_digest(repository) for _ in range(5))
    finally:
        stop.set()
        churning.join()
