"""Every numeric and compile fault of the card, its parameters drawn at test time: from shadow to a proved script."""

import os
import subprocess
import sys

import drawn_repros
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.long]
DRAWS = max(1, int(float(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))))


@pytest.fixture(scope="module")
def draws():
    """One line for each kind of fault and draw, all drawn in one process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", drawn_repros.__file__, str(DRAWS), "0"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", sorted(drawn_repros.CASES))
def test_every_kind_of_fault_becomes_a_verified_script_of_the_smallest_size(draws, kind):
    lines = [line for line in draws.splitlines() if line.startswith(f"{kind} ")]
    assert lines
    assert all(" fine " in line and " NOT FINE " not in line for line in lines), draws


def test_no_numeric_or_compile_fault_of_the_card_is_left_out():
    from torch_spyre.faults import copies, refusals, results

    assert {f.name for module in (results, copies, refusals) for f in module.FAULTS} == set(drawn_repros.CASES)
