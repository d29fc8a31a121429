"""Results that the test process forged are found by what its parent sees; honest runs of all sorts are left alone."""

import pytest

from debug_spyre.runs.io.progress_line import ResultsReader
from debug_spyre.runs.outcome import End, judge
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Outcome, TestRecord
from debug_spyre.vocabulary.words import RunStatus


def judged(exit_status, outcome, tail="", *, complete=True, failure=False):
    failures = (Failure("t::a", "call", Kind.EXCEPTION),) if failure else ()
    seen = Evidence(
        (), None, complete, failures, tests=(TestRecord("t::a", outcome), TestRecord("t::b", Outcome.PASSED))
    )
    end = End(None, exit_status, 1.0)
    return judge(end, seen, is_pytest=True, changed=False, head="", tail=tail, has_results=True)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(judged(1, Outcome.PASSED, "=== 1 failed, 1 passed in 0.10s ==="), id="results rewritten at exit"),
        pytest.param(judged(1, Outcome.PASSED, "1 passed, 1 error in 2.00s"), id="quiet, an error left out"),
        pytest.param(judged(0, Outcome.PASSED, complete=False), id="os._exit(0) in a test"),
        pytest.param(judged(0, Outcome.FAILED, failure=True), id="exit status set to 0"),
    ],
)
def test_a_forged_run_does_not_count_and_says_why(found):
    assert found.status is RunStatus.INVALID
    assert not found.valid
    assert "prove nothing" in found.warnings[0]


@pytest.mark.parametrize(
    "found",
    [
        judged(0, Outcome.PASSED, "=== 2 passed in 0.10s ==="),
        judged(0, Outcome.PASSED, "1 failed in 0.10s\n" + "x" * 500 + "\n=== 2 passed in 0.10s ==="),
        judged(0, Outcome.PASSED, "1 failed in 0.10s\n=== 2 passed in 0.10s ==="),
        judged(1, Outcome.FAILED, "=== 1 failed, 1 passed in 0.10s ===", failure=True),
        judged(1, Outcome.PASSED, "2 passed in 1.00s\nFAIL Required test coverage of 90% not reached"),
        judged(0, Outcome.XFAILED, "1 passed, 1 xfailed in 1.00s"),
        judged(-6, Outcome.CRASHED, complete=False, failure=True),
    ],
)
def test_honest_runs_count(found):
    assert found.valid


@pytest.mark.parametrize("way", ["rewritten", "emptied", "removed", "first line changed"])
def test_a_results_file_is_only_added_to(tmp_path, way):
    path = tmp_path / "results.jsonl"
    path.write_text('{"e": "start"}\n{"e": "report"}\n')
    reader = ResultsReader(path)
    reader.look()
    with path.open("a") as stream:
        stream.write('{"e": "more"}\n')
    assert reader.is_kept()
    reader.look()
    assert reader.is_kept()
    if way == "removed":
        path.unlink()
    else:
        path.write_text({"rewritten": "x" * 99, "emptied": ""}.get(way, path.read_text().replace("start", "begun")))
    assert not reader.is_kept()
