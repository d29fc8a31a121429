"""Errors of a whole session or of a fixture that all tests share; mocks that reach the compiler's own functions."""

import pytest

from debug_spyre.triage.grouping import group
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Kind, Stage
from test_rules import failure_of

HEAD = "============================= test session starts ==============================\n"
ERRORS = "==================================== ERRORS ====================================\n"
BUSY = '(EngineCore pid=77) RuntimeError: {"errno":"Device or resource busy","name":"RAS::VFIO::DeviceOpenFail"}\n'


def at_setup(name, message, captured="", line=7):
    return (
        f"_ ERROR at setup of {name} _\ntests/conftest.py:{line}: in engine\n    raise RuntimeError(text)\n"
        f"E   RuntimeError: {message}\n{captured}"
    )


def test_a_shared_fixture_has_the_verdict_of_its_first_error(read_text):
    died = "Engine core initialization failed. See root cause above."
    seen = f"---------------------------- Captured stdout setup -----------------------------\n{BUSY}"
    blocks = at_setup("test_a[0]", died, seen) + at_setup("test_a[1]", died) + at_setup("test_b", died, line=30)
    names = ("test_a[0]", "test_a[1]", "test_b")
    summary = "".join(f"ERROR tests/test_a.py::{n} - RuntimeError: Engine core initi...\n" for n in names)
    evidence = read_text(
        f"{HEAD}collected 3 items\n\n{ERRORS}{blocks}"
        f"=========================== short test summary info ============================\n{summary}"
        "============================== 3 errors in 0.10s ===============================\n"
    )
    rules = {f.nodeid.rsplit("::", 1)[-1]: f.rule for f in evidence.failures}
    assert rules == {"test_a[0]": "card-busy", "test_a[1]": "card-busy", "test_b": "engine-core"}
    assert sorted(len(c.nodeids) for c in group(evidence)) == [1, 2]


def test_an_exit_before_the_first_line_of_a_session_is_an_error_of_the_session(read_text):
    text = "card /dev/vfio/41 is held by pid 4242 (Device or resource busy)"
    evidence = read_text(f"Exit: {text}\n! _pytest.outcomes.Exit: {text} !\n")
    (failure,) = evidence.failures
    assert (failure.nodeid, failure.stage, failure.rule) == (None, Stage.ENVIRONMENT, "card-busy")


@pytest.mark.parametrize(
    ("counts", "line", "found"),
    [
        ("no tests ran in 0.49s", "ERROR: file or directory not found: tests/test_gone.py::test_x", 1),
        ("3 passed in 0.49s", "ERROR: file or directory not found: /data/report.html", 0),
    ],
)
def test_a_node_id_that_is_not_there_is_an_error_of_the_session(read_text, counts, line, found):
    evidence = read_text(f"{HEAD}collected 0 items\n\n============ {counts} ============\n{line}\n")
    assert [f.nodeid for f in evidence.failures] == [None] * found


def test_a_session_that_ran_no_test_is_refused(read_text):
    text = f"{HEAD}collected 0 items\n\n===== no tests ran in 0.49s =====\nERROR: Process completed with exit code 5.\n"
    with pytest.raises(BadInputError, match="a pytest session that ran no test"):
        read_text(text)


@pytest.mark.parametrize(
    ("text", "frames", "kind"),
    [
        ("TypeError: '>' not supported between instances of 'Mock' and 'int'", (), Kind.EXCEPTION),
        ("TypeError: 'MagicMock' is no size", ("torch/_inductor/graph.py:9: in run",), Kind.COMPILE),
    ],
)
def test_a_mock_in_a_part_of_the_compiler_is_a_test_bug(text, frames, kind):
    inside = (*frames, "torch_spyre/_inductor/pass_utils.py:3: in span")
    failure = failure_of(text, frames=("tests/test_a.py:3: in test_a", *inside))
    assert (failure.kind, failure.stage) == (kind, Stage.TEST_BUG)
