"""How the tests of another project are counted: `make real TREE=... PLUGIN=...`. Needs no real package."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

from tests.real_card.others import run_others, told

TESTS = """
import os, pytest
def test_good(): pass
def test_bad(): assert 1 == 2
def test_dies(): os._exit(9)
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected(): assert False
@pytest.mark.xfail(strict=True, reason="was refused")
def test_works_by_now(): pass
@pytest.fixture
def broken(): raise ValueError("no card")
def test_error(broken): pass
def test_conv(): assert False
def test_last(): pass
"""


def test_each_outcome_is_counted_and_each_failure_named_though_one_takes_the_process_with_it(tmp_path):
    (tmp_path / "test_them.py").write_text(TESTS)
    plain = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    real = SimpleNamespace(
        python=Path(sys.executable),
        said={},
        variables=lambda device, **more: plain | {k: str(v) for k, v in more.items()},
    )
    rows = run_others(real, tmp_path, ["test_them.py"], 1)
    lines = list(told(rows))
    assert lines[0] == "  tests: 1 died, 1 error, 2 failed, 2 passed, 1 skipped, 1 xfail, 33.3 % of those that ran"
    assert lines[1].startswith("  tests of conv, fp8, pool: 1 failed")
    assert "  failed: test_them.py::test_bad: assert 1 == 2" in lines
    assert "  failed: test_them.py::test_works_by_now: [XPASS(strict)] was refused" in lines
    assert "  died: test_them.py::test_dies: exit 9" in lines
    assert "  error: test_them.py::test_error: ValueError: no card" in lines
    assert len(run_others(real, tmp_path, ["test_them.py"], 4)) == 3
