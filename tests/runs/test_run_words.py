"""The answer to a run in words: what to type next."""

from pathlib import Path

import pytest

from debug_spyre.runs.io.records import RunRecord
from debug_spyre.runs.run_words import says
from debug_spyre.vocabulary.words import RunStatus


@pytest.mark.parametrize(
    ("status", "following"),
    [(RunStatus.FAILED, "debug-spyre hypothesis seed"), (RunStatus.PASSED, "debug-spyre status --session stem")],
)
def test_a_baseline_that_passed_gives_no_theories(status, following):
    record = RunRecord(
        id="r1", status=status, exit=0, seconds=1.0, valid=True, evidence=None, output=Path("r1.log"), results=None,
        folder=Path("r1"), scope={"members_only": False}, counts={"passed": 1}, warnings=(), digest=(), name="baseline", session="stem",
    )  # fmt: skip
    assert says(record.to_json(), stem="stem").splitlines()[-1] == f"next: {following}"
