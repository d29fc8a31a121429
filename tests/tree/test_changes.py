"""What a patch touches, read from patches that git itself made."""

import os

import pytest
from tests.gate.conftest import state_of

from debug_spyre.tree.changes import Changes, changes_from_json, is_test, read_patch
from debug_spyre.tree.io.snapshot import snapshot
from debug_spyre.tree.io.test_code import patch_since


@pytest.fixture
def patched(repository, folder):
    """A function that changes files and reads the patch of it."""

    def change(files):
        tree = snapshot(repository, folder)
        for name, content in files.items():
            place = repository / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_patch(patch_since(repository, tree, folder))

    return change


def test_each_file_is_named_whatever_it_is_called(patched, hostile):
    name = f"spyre_inference/{hostile.replace('/', '_')}.txt"
    found = patched({name: "new\n", "spyre_inference/b.bin": b"\0\1", "spyre_inference/empty": ""})
    assert set(found.files) == {name, "spyre_inference/b.bin", "spyre_inference/empty"}
    assert found.tests == ()


def test_lines_that_look_like_headers_are_lines(patched):
    text = "-- a/tests/test_x.py\n++ b/tests/test_x.py\ndiff --git a/tests/t.py b/tests/t.py\n@@ -1 +1 @@\n"
    found = patched({"spyre_inference/ops.py": text})
    assert found.files == ("spyre_inference/ops.py",)
    assert found.tests == ()


def test_a_mode_change_and_a_deletion_are_changes(repository, folder):
    tree = snapshot(repository, folder)
    before = state_of(repository)
    os.chmod(repository / "run.sh", 0o644)
    os.unlink(repository / "tests/test_ops.py")
    found = read_patch(patch_since(repository, tree, folder))
    assert set(found.files) == {"run.sh", "tests/test_ops.py"}
    assert found.tests == ("tests/test_ops.py",)
    assert before != state_of(repository)


@pytest.mark.parametrize(
    ("line", "flagged"),
    [
        ("assert_close(a, b, rtol=1e-1)", True),
        ("ATOL = 5.0", True),
        ("max_outliers=50", True),
        ("tolerance = 3", True),
        ("values.tolist()", False),
        ("control = atoll", False),
    ],
)
def test_a_moved_tolerance_is_seen_anywhere(patched, line, flagged):
    found = patched({"spyre_inference/ops.py": f"def rms(x):\n    return x\n{line}\n"})
    assert bool(found.tolerances) is flagged
    if flagged:
        assert found.tolerances[0].startswith("spyre_inference/ops.py: +")


def test_a_skip_counts_in_tests_only(patched):
    assert patched({"spyre_inference/ops.py": "skip = 1\n"}).tolerances == ()
    assert patched({"tests/test_ops.py": "@pytest.mark.skip\ndef test_ops(): pass\n"}).tolerances != ()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/test_a.py", True),
        ("tests/data/golden.json", True),
        ("conftest.py", True),
        ("pkg/test_inside.py", True),
        ("pkg/inside_test.py", True),
        ("spyre_inference/testing.py", False),
        ("spyre_inference/latest/a.py", False),
        ("contests/a.py", False),
    ],
)
def test_what_is_a_test(path, expected):
    assert is_test(path) is expected


def test_only_tests_needs_at_least_one_file():
    assert not Changes().only_tests
    assert Changes(files=("tests/a.py",), tests=("tests/a.py",)).only_tests
    assert not Changes(files=("tests/a.py", "b.py"), tests=("tests/a.py",)).only_tests


def test_the_journal_s_form_comes_back_whole():
    found = Changes(("a", "tests/b"), ("tests/b",), ("a: +rtol=1",))
    assert changes_from_json(found.to_json()) == found
    assert changes_from_json({}) == Changes()


def test_no_patch_is_no_change():
    assert read_patch(b"") == Changes()


def patch_of(name, *lines):
    minus = sum(line[0] in "- " for line in lines)
    plus = sum(line[0] in "+ " for line in lines)
    head = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,{minus} +1,{plus} @@\n"
    return (head + "".join(line + "\n" for line in lines)).encode()


@pytest.mark.parametrize(
    "lines",
    [
        ["-@pytest.mark.xfail"],
        ['-@pytest.mark.xfail(strict=True, reason="the card rounds (June)")', " def test_a():"],
        ["-    @pytest.mark.xfail(", '-        strict=True, reason="x",', "-    )"],
        ["-@pytest.mark.xfail(raises=(ValueError, KeyError))", "-@mark.xfail(reason='y')"],
    ],
)
def test_a_file_that_only_lost_xfail_marks_is_stricter_and_no_edited_test(lines):
    found = read_patch(patch_of("tests/test_a.py", *lines))
    assert (found.unmarked, found.tests, found.tolerances) == (("tests/test_a.py",), (), ())
    assert found.only_tests and changes_from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "lines",
    [
        ["-@pytest.mark.xfail", "+@pytest.mark.skip"],
        ["-@pytest.mark.xfail", "-    assert x == 1"],
        ["-@pytest.mark.xfail(strict=True)", "+@pytest.mark.xfail(strict=False)"],
        ["+@pytest.mark.xfail"],
        ["-@pytest.mark.skip"],
        ["-@pytest.mark.xfail; assert x == 1"],
        ["-x = pytest.mark.xfail"],
    ],
)
def test_a_mark_that_is_put_on_or_goes_with_something_else_is_an_edited_test(lines):
    found = read_patch(patch_of("tests/test_a.py", *lines))
    assert (found.unmarked, found.tests) == ((), ("tests/test_a.py",))


def test_source_that_loses_a_mark_is_no_test_at_all():
    found = read_patch(patch_of("spyre_inference/ops.py", "-@pytest.mark.xfail"))
    assert found.unmarked == () and found.tests == ()
