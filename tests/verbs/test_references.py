"""A finding may refer to a file of the checkout or of an installed package; one that is not there is said, not refused."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("reference", "is_there"),
    [
        ("plugin.py", True),
        ("plugin.py:1", True),
        ("tests/test_a.py:1-2", True),
        ("pytest/__init__.py:3", True),
        ("https://example.invalid/x.py#L3", True),
        ("plugin.py.old:1", False),
        ("torch_spyre/ops/nothing.py:120", False),
        ("tests", False),
    ],
)
def test_a_reference_to_no_file_is_noted_and_said(ds, reference, is_there):
    ds("open", "slug", "--members", "tests/test_a.py::test_b")
    done = ds("note", "finding", "the reduction stops here", "--reference", reference)
    assert ("no such file" in done.stderr) is not is_there
    assert reference in Path(done.stdout.partition("log: ")[2].strip()).read_text()
