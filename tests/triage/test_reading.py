"""Reading terminal text, JUnit and results: names, phases, ends, notes; what a form does not say stays unknown."""

import json

import pytest

from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.logs_reader import read_logs, read_run
from debug_spyre.triage.lines import LONGEST
from debug_spyre.triage.nodeids import candidates, domain, from_junit, split_nodeid
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Counts, Kind, Outcome

HEAD = "============================= test session starts ==============================\n"
END = "=========================== short test summary info ============================\n"
HOSTILE = 'tests/test_a.py::TestX::test_b[</script> "q" \x1b[31mred a::b - c [x](y) \u202ertl \u00fc]'


def failing(nodeid, error="RuntimeError: x", summary=None):
    summary = f"FAILED {nodeid} - {error}\n" if summary is None else summary
    return (
        "=================================== FAILURES ===================================\n"
        f"____ {domain(nodeid)} ____\n"
        f"tests/test_a.py:3: in test_b\n    f()\nE   {error}\n{END}{summary}"
        "============================== 1 failed in 0.10s ===============================\n"
    )


def test_a_hostile_node_id_survives(read_text):
    printed = HOSTILE.replace("\x1b[31m", "")  # colours are taken out of a line
    evidence = read_text(HEAD + failing(HOSTILE))
    assert [f.nodeid for f in evidence.failures] == [printed]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("tests/a.py::test_b PASSED", ("tests/a.py::test_b", " PASSED")),
        ("a.py::T::test_b[(0, 16)] Fatal Python error: x", ("a.py::T::test_b[(0, 16)]", " Fatal Python error: x")),
        ("a.py::t[x[::2] - stride 2] - Err", ("a.py::t[x[::2] - stride 2]", " - Err")),
        ("a.py::t[a]b - c]", ("a.py::t[a]b - c]", "")),
        ("a.py::t[a [b - c", None),
        ("no id here", None),
    ],
)
def test_where_a_node_id_ends(text, want):
    assert split_nodeid(text) == want


def test_every_reading_of_a_summary_line_is_offered():
    assert candidates("a.py::t[b - c] - RuntimeError: d - e")[0] == "a.py::t[b - c]"
    assert "a.py::t - b" in candidates("a.py::t - b - c")


@pytest.mark.parametrize(
    ("classname", "name", "file", "want"),
    [
        ("tests.inductor.test_gather", "test_g[a.b::c]", None, "tests/inductor/test_gather.py::test_g[a.b::c]"),
        ("tests.test_a.TestX.Inner", "test_b", None, "tests/test_a.py::TestX::Inner::test_b"),
        ("tests.test_a.TestX", "test_b", "tests/test_a.py", "tests/test_a.py::TestX::test_b"),
        ("checks.conformance.Suite", "check", None, "checks/conformance.py::Suite::check"),
        ("", "tests.test_a", None, "tests/test_a.py"),
    ],
)
def test_a_node_id_is_rebuilt_from_junit(classname, name, file, want):
    assert from_junit(classname, name, file) == want


def test_two_sessions_give_the_counts_and_the_failures_of_both(read_text):
    other = failing("tests/test_c.py::test_b").replace("1 failed", "1 failed, 3 passed")
    evidence = read_text(HEAD + failing("tests/test_a.py::test_b") + HEAD + other)
    assert evidence.counts == Counts(failed=2, passed=3)
    assert [s.counts for s in evidence.sessions] == [Counts(failed=1), Counts(failed=1, passed=3)]
    assert {f.nodeid for f in evidence.failures} == {"tests/test_a.py::test_b", "tests/test_c.py::test_b"}
    assert any("2 test sessions" in w for w in evidence.warnings)


def test_a_test_that_passes_in_a_later_session_is_a_flake(read_text):
    text = (
        HEAD
        + failing("tests/test_a.py::test_b")
        + HEAD
        + "tests/test_a.py::test_b PASSED [100%]\n\n====== 1 passed in 1.0s ======\n"
    )
    evidence = read_text(text)
    assert evidence.failures[0].tags == ("flake",)
    assert evidence.tests[0].outcome is Outcome.PASSED


def test_a_log_that_just_ends_is_incomplete_and_invents_no_failure(read_text):
    evidence = read_text(HEAD + "collected 2 items\n\na/test_a.py::test_b PASSED [ 50%]\na/test_a.py::test_c ")
    assert (evidence.complete, evidence.counts, evidence.failures) == (False, None, ())
    assert any("ends" in w for w in evidence.warnings)


def test_a_cancelled_job_names_the_test_that_was_running(read_text):
    text = HEAD + "a/test_a.py::test_b PASSED [ 50%]\na/test_a.py::test_c \n##[error]The operation was canceled.\n"
    failure = read_text(text).failures[0]
    assert (failure.nodeid, failure.kind, failure.error_class) == ("a/test_a.py::test_c", Kind.TIMEOUT, None)


def test_a_watcher_that_ends_a_green_run_is_no_failure(read_text):
    text = (
        HEAD + "collected 1 item\n\na/test_a.py::test_b PASSED [100%]\n[stall-watcher] No new output for 300s\nKilled\n"
    )
    evidence = read_text(text)
    assert evidence.failures == ()
    assert any("from outside" in w for w in evidence.warnings)


def test_uv_in_front_is_a_note(read_text):
    front = "      Built torch-spyre @ git+https://x/torch-spyre.git@abc\nUninstalled 1 package in 3ms\nInstalled 1 package in 6ms\n"
    evidence = read_text(front + HEAD + "====== 1 passed in 1.0s ======\n")
    assert any("uv replaced" in w and "abc" in w for w in evidence.warnings)


def test_every_spelling_of_a_fallback_is_read(read_text):
    lines = [
        "x/layers.py:8: FallbackWarning: aten.tril.default is falling back to cpu",
        "(EngineCore_DP0 pid=12) x/layers.py:9: FallbackWarning: torch.ops.spyre.full is falling back to cpu",
        "(EngineCore pid=12) WARNING 06-02 12:00:00 [layers.py:3] x/layers.py:10: FallbackWarning: aten::arange.start_step is falling back to cpu",
        "x/layers.py:11: torch_spyre.ops.fallbacks.FallbackWarning: conversion from torch.int64 to torch.float16 is falling back to cpu",
        "x/layers.py:12: FallbackWarning:",
        "   spyre::max_dim_int64_fallback is falling back to cpu",
        "prose about a FallbackWarning: nothing",
    ]
    evidence = read_text("\n".join(lines) + "\n")
    assert [(f.op, f.line) for f in evidence.fallbacks] == [
        ("aten.tril.default", 8),
        ("torch.ops.spyre.full", 9),
        ("aten::arange.start_step", 10),
        ("conversion from torch.int64 to torch.float16", 11),
        ("spyre::max_dim_int64_fallback", 12),
    ]


def test_a_fallback_belongs_to_the_tests_that_the_warnings_section_names(read_text):
    text = (
        HEAD + "=============================== warnings summary ===============================\n"
        "a/test_a.py::test_b[x - y]\na/test_a.py::test_c\n"
        "  /w/layers.py:8: FallbackWarning: aten.sin is falling back to cpu\n    return x.sin()\n\n"
        "a/test_a.py: 14 warnings\n  /w/layers.py:9: FallbackWarning: aten.cos is falling back to cpu\n    x\n\n"
        "-- Docs: https://docs.pytest.org\n====== 3 passed, 16 warnings in 1.0s ======\n"
    )
    first, second = read_text(text).fallbacks
    assert first.nodeids == ("a/test_a.py::test_b[x - y]", "a/test_a.py::test_c")
    assert second.nodeids == ("a/test_a.py: 14 warnings",)


def test_a_script_without_pytest_gives_its_traceback(read_text):
    text = (
        "(EngineCore_DP0 pid=7) ERROR 06-02 12:00:00 [core.py:7] Traceback (most recent call last):\n"
        '(EngineCore_DP0 pid=7) ERROR 06-02 12:00:00 [core.py:7]   File "/w/torch_spyre/_inductor/pass_utils.py", line 582, in check\n'
        "(EngineCore_DP0 pid=7) ERROR 06-02 12:00:00 [core.py:7]     raise Unsupported(\n"
        "(EngineCore_DP0 pid=7) ERROR 06-02 12:00:00 [core.py:7] torch_spyre._inductor.errors.Unsupported: Spyre backend does not support: Unexpected stick expression d1 + 32\n"
        "Traceback (most recent call last):\n"
        '  File "/w/run.py", line 3, in <module>\n    main()\n'
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    (failure,) = read_text(text).failures
    assert (failure.nodeid, failure.phase, failure.rule) == (None, "session", "layout-stick-expression")
    assert failure.backend_frame == "/w/torch_spyre/_inductor/pass_utils.py:582"


def test_a_late_traceback_does_not_redden_a_green_run(read_text):
    text = (
        HEAD
        + '====== 3 passed in 1.0s ======\nException ignored in atexit:\nTraceback (most recent call last):\n  File "x.py", line 1, in f\nOSError: x\n'
    )
    evidence = read_text(text)
    assert (evidence.failures, evidence.complete) == ((), True)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("ERROR: file or directory not found: tests/nope.py", "not found"),
        ("pytest: error: unrecognized arguments: --nope", "unrecognized"),
        ("INTERNALERROR> Traceback (most recent call last):\nINTERNALERROR> RuntimeError: boom", "boom"),
        ("ImportError while loading conftest '/w/conftest.py'.\nconftest.py:1: in <module>\n    import x\nE   ModuleNotFoundError: No module named 'x'", "No module"),
    ],
)  # fmt: skip
def test_a_session_that_never_ran_has_one_failure_without_a_node_id(read_text, line, word):
    (failure,) = read_text(f"{line}\n").failures
    assert failure.nodeid is None
    assert word in failure.message


def test_a_line_of_ten_megabytes_costs_no_memory_and_hides_nothing(read_text):
    text = HEAD + "a/test_a.py::test_b " + "x" * 10_000_000 + "\n" + failing("tests/test_a.py::test_b")
    evidence = read_text(text)
    assert [f.nodeid for f in evidence.failures] == ["tests/test_a.py::test_b"]
    assert LONGEST < 100_000


def test_bytes_that_are_not_utf_8_survive(read_text):
    evidence = read_text(
        (HEAD + failing("tests/test_a.py::test_b", "RuntimeError: caf\udce9")).encode("utf-8", "surrogateescape")
    )
    assert evidence.failures[0].message.encode("utf-8", "surrogateescape").endswith(b"caf\xe9")


def test_a_progress_bar_in_the_same_line_hides_nothing(read_text):
    text = HEAD + "10%|#  |\r50%|##  |\rtests/test_a.py::test_b FAILED [100%]\n" + failing("tests/test_a.py::test_b")
    assert [t.outcome for t in read_text(text).tests] == [Outcome.FAILED]


@pytest.mark.parametrize(("name", "says"), [("missing.txt", "cannot read"), (".", "holds no log")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, says):
    with pytest.raises(BadInputError, match=says):
        read_logs([tmp_path / name], checkout=None)


def test_damaged_xml_gives_what_it_has_and_says_so(read_text):
    text = '<?xml version="1.0"?><testsuites><testsuite tests="2"><testcase classname="tests.test_a" name="test_b"><failure message="AssertionError: x">E   AssertionError: x</failure></testcase><testcase class'
    evidence = read_text(text, name="out.xml")
    assert [f.nodeid for f in evidence.failures] == ["tests/test_a.py::test_b"]
    assert not evidence.complete
    assert any("XML" in w for w in evidence.warnings)


def test_a_failed_test_whose_teardown_fails_too_is_counted_once(read_text):
    """Pytest writes two cases for it: 1 failed, 2 passed, 2 errors is what it prints itself."""
    failure = '<failure message="AssertionError: x">E   AssertionError: x</failure>'
    teardown = '<error message="failed on teardown with &quot;RuntimeError: y&quot;">E   RuntimeError: y</error>'
    cases = (("test_a", failure), ("test_a", teardown), ("test_b", teardown), ("test_c", ""))
    text = "".join(f'<testcase classname="test_d" name="{name}">{inner}</testcase>' for name, inner in cases)
    evidence = read_text(f'<?xml version="1.0"?><testsuites><testsuite>{text}</testsuite></testsuites>', name="out.xml")
    assert evidence.counts == Counts(failed=1, passed=2, errors=2)
    assert [t.outcome for t in evidence.tests] == [Outcome.FAILED, Outcome.ERROR, Outcome.PASSED]


def test_a_test_that_passes_in_a_later_log_is_a_flake(tmp_path):
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    first.write_text(HEAD + failing("tests/test_a.py::test_b"), encoding="utf-8")
    passing = "tests/test_a.py::test_b PASSED [100%]\n\n============ 1 passed in 0.10s ============\n"
    second.write_text(HEAD + passing, encoding="utf-8")
    assert "flake" in read_logs([first, second], checkout=None).failures[0].tags
    assert "flake" not in read_logs([second, first], checkout=None).failures[0].tags


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}collected 9{'9' * 5000} items\n",
        f"{HEAD}gw0 [9{'9' * 5000}]\n",
        f'{HEAD}Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n  File "a.py", line {"9" * 5000} in f\n',
        f'{HEAD}Traceback (most recent call last):\n  File "a.py", line {"9" * 5000}\nE: x\n',
        f"{HEAD}a.py::test_b[{'9' * 400}x2] FAILED\na.py::test_b[2x2] FAILED\na.py::test_b[1x2] PASSED\n",
        HEAD + failing("a.py::test_b", f"AssertionError: Mismatched elements: {'9' * 900} / 1 (100.0%)"),
    ],
)
def test_numbers_of_any_length_stop_no_reading(read_text, text):
    evidence = read_text(text + "a.py::test_z PASSED\n")
    assert evidence.collected is None and all((f.mismatched or 0) < 10**18 for f in evidence.failures)
    group(evidence)


def test_facts_of_a_damaged_results_file_stop_no_reading(read_text):
    report = {
        "e": "report",
        "nodeid": "a.py::t",
        "phase": "call",
        "outcome": "failed",
        "text": "E   AssertionError: Tensor-likes are not close!",
        "exceptions": [{"cls": "AssertionError", "message": "m", "frames": [{"file": "a", "line": "x"}]}],
        "mismatch": {"mismatched": float("inf"), "total": "many", "max_abs": 2.0},
    }
    lines = ['{"e": "session_start"}', json.dumps(report)]
    (failure,) = read_text("\n".join(lines) + "\n", name="results.jsonl").failures
    assert (failure.mismatched, failure.total, failure.max_abs) == (None, None, 2.0)


def test_entities_in_xml_do_not_grow(read_text):
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><testsuites><testsuite><testcase classname="a" name="&b;"/></testsuite></testsuites>'
    evidence = read_text(bomb, name="out.xml")
    assert len(evidence.tests) <= 1


def lines_of(*objects):
    return "".join(json.dumps(o) + "\n" for o in objects)


START = ({"e": "session_start", "at": 0}, {"e": "collected", "ids": ["a.py::t1", "a.py::t2", "a.py::t3"]})


def report(nodeid, phase, outcome="passed", **more):
    return {"e": "report", "nodeid": nodeid, "phase": phase, "outcome": outcome, "seconds": 0.5, **more}


def test_results_give_outcomes_numbers_fallbacks_and_the_innermost_cause(tmp_path):
    path = tmp_path / "results.jsonl"
    chain = [
        {"cls": "torch._inductor.exc.InductorError", "message": "Unsupported: x", "frames": [{"file": "a.py", "line": 1, "name": "t"}]},
        {"cls": "Unsupported", "message": "Spyre backend does not support: Unexpected stick expression d0", "frames": [{"file": "torch_spyre/p.py", "line": 9, "name": "f"}]},
    ]  # fmt: skip
    path.write_text(
        lines_of(
            *START,
            report("a.py::t1", "setup"),
            report("a.py::t1", "call"),
            report("a.py::t1", "teardown"),
            {"e": "warning", "nodeid": "a.py::t1", "category": "torch_spyre.ops.fallbacks.FallbackWarning", "message": "aten.tril.default is falling back to cpu", "file": "l.py", "line": 4},
            report("a.py::t2", "call", "failed", text="a.py:3: in t\nE   AssertionError: Tensor-likes are not close!", mismatch={"mismatched": 3, "total": 4, "max_abs": "inf", "max_rel": "nan"}, exceptions=[]),
            report("a.py::t3", "call", "failed", text="a.py:1: in t\ntorch_spyre/p.py:9: in f\nE   torch._inductor.exc.InductorError: Unsupported: Spyre backend does not support: Unexpected stick expression d0", exceptions=chain),
            {"e": "mode", "nodeid": "a.py::t1", "compile_mode": "NONE"},
            {"e": "session_finish", "exit": 1},
        )
    )  # fmt: skip
    evidence = read_logs([path], checkout=None)
    assert evidence.counts == Counts(passed=1, failed=2)
    assert evidence.complete
    first, second = evidence.failures
    assert (first.kind, first.mismatched, first.total, first.max_abs) == (Kind.MISMATCH, 3, 4, float("inf"))
    assert (second.kind, second.rule, second.backend_frame) == (
        Kind.COMPILE,
        "layout-stick-expression",
        "torch_spyre/p.py:9",
    )
    assert evidence.tests[0].fallbacks == ("aten.tril.default",)
    assert (evidence.tests[0].compile_mode, evidence.tests[0].seconds) == ("NONE", 1.5)
    assert evidence.fallbacks[0].nodeids == ("a.py::t1",)


def test_a_run_that_died_names_the_test_that_had_no_report(tmp_path):
    results, output = tmp_path / "results.jsonl", tmp_path / "out.txt"
    results.write_text(
        lines_of(
            *START,
            {"e": "start", "nodeid": "a.py::t1"},
            report("a.py::t1", "setup"),
            {"e": "start", "nodeid": "a.py::t2"},
            report("a.py::t2", "setup"),
        )
        + '{"e": "rep'
    )
    output.write_text(
        HEAD
        + 'a.py .Fatal Python error: Segmentation fault\n\nCurrent thread 0x01 (most recent call first):\n  File "/w/torch_spyre/x.py", line 5 in f\n'
    )
    evidence = read_run(results, output, checkout=None)
    (failure,) = evidence.failures
    assert (failure.nodeid, failure.kind, failure.innermost_frame) == ("a.py::t2", Kind.CRASH, "/w/torch_spyre/x.py:5")
    assert not evidence.complete


def test_a_run_without_results_is_read_from_its_output(tmp_path):
    output = tmp_path / "out.txt"
    output.write_text(HEAD + failing("tests/test_a.py::test_b"))
    assert read_run(tmp_path / "results.jsonl", output, checkout=None).counts == Counts(failed=1)


def test_an_expected_failure_a_strict_pass_and_a_teardown_error_are_told_apart(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(
        lines_of(
            *START,
            report("a.py::t1", "call", "skipped", wasxfail="#1"),
            report("a.py::t2", "call", "failed", strict_xpass=True, text="[XPASS(strict)] #2"),
            report("a.py::t3", "call"),
            report("a.py::t3", "teardown", "failed", text="E   ValueError: closed twice"),
            {"e": "session_finish", "exit": 1},
        )
    )
    evidence = read_logs([path], checkout=None)
    assert evidence.counts == Counts(passed=1, failed=1, errors=1, xfailed=1)
    assert [t.outcome for t in evidence.tests] == [Outcome.XFAILED, Outcome.FAILED, Outcome.ERROR]
    assert [(f.phase, f.rule) for f in evidence.failures] == [("call", "strict-xpass"), ("teardown", None)]


def test_marks_between_the_word_and_the_node_id_are_left_out(read_text):
    text = HEAD + failing("tests/test_a.py::test_b", summary="FAILED [TAGS = op__add dtype__f16] [INPUT SHAPES = [2, 3], (4)] tests/test_a.py::test_b - RuntimeError: x\nXPASS [TAGS = a] tests/test_a.py::test_c - known\n")  # fmt: skip
    evidence = read_text(text)
    assert [f.nodeid for f in evidence.failures] == ["tests/test_a.py::test_b"]
    assert [t.nodeid for t in evidence.tests if t.outcome is Outcome.XPASSED] == ["tests/test_a.py::test_c"]


def test_a_table_after_the_counts_is_no_session(read_text):
    table = "tests/test_a.py::test_b FAILED [ 10%]\ntests/test_a.py ..F [100%]\ntests/test_z.py::test_q FAILED\n"
    evidence = read_text(HEAD + failing("tests/test_a.py::test_b") + table)
    assert evidence.counts == Counts(failed=1)
    assert [f.nodeid for f in evidence.failures] == ["tests/test_a.py::test_b"]


def test_a_second_quiet_session_without_a_heading_is_one(read_text):
    second = "F. [100%]\n" + failing("tests/test_c.py::test_b").replace("1 failed", "1 failed, 1 passed")
    evidence = read_text(HEAD + failing("tests/test_a.py::test_b") + second)
    assert evidence.counts == Counts(failed=2, passed=1)
    assert len(evidence.failures) == 2


def test_the_same_tests_that_fail_otherwise_after_a_build_count_once_as_they_failed_last(read_text):
    evidence = read_text(
        HEAD
        + failing("tests/test_a.py::test_b", "RuntimeError: old")
        + HEAD
        + failing("tests/test_a.py::test_b", "ValueError: new")
    )
    assert [f.error_class for f in evidence.failures] == ["ValueError"]


def test_a_busy_card_after_the_tests_own_crash_is_no_new_failure(read_text):
    crash = (
        HEAD
        + 'tests/test_a.py::test_b Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  File "/w/x.py", line 5 in f\n\n'
    )
    busy = '{"errno":"Device or resource busy","name":"RAS::VFIO::DeviceOpenFail"}'
    evidence = read_text(crash + HEAD + failing("tests/test_a.py::test_b", f"RuntimeError: {busy}"))
    assert [f.kind for f in evidence.failures] == [Kind.CRASH]


def test_a_session_that_was_interrupted_says_so_and_has_no_failure_for_it(read_text):
    text = (
        HEAD
        + "a/test_a.py::test_b PASSED [ 50%]\na/test_a.py::test_c \n\n!!!!!!!!!!!!!!! KeyboardInterrupt !!!!!!!!!!!!!!!\n/w/x.py:3: KeyboardInterrupt\n(to show a full traceback on KeyboardInterrupt use --full-trace)\n====== 1 passed in 1.0s ======\n"
    )
    evidence = read_text(text)
    assert (evidence.failures, evidence.counts) == ((), Counts(passed=1))
    assert any("KeyboardInterrupt" in w for w in evidence.warnings)


def test_a_forked_test_that_died_is_a_crash(read_text):
    text = HEAD + failing("tests/test_a.py::test_b").replace(
        "tests/test_a.py:3: in test_b\n    f()\nE   RuntimeError: x\n", ":-1: running the test CRASHED with signal 11\n"
    )
    (failure,) = read_text(text).failures
    assert (failure.nodeid, failure.kind) == ("tests/test_a.py::test_b", Kind.CRASH)


def test_an_outcome_on_a_line_of_its_own_belongs_to_the_test_that_runs(read_text):
    text = (
        HEAD
        + "a/test_a.py::test_b C0801 17:38:04.8 1 scheduler.py:1] x\nC0801 17:38:04.8 1 scheduler.py:1] y\nPASSED [0.4987s]\na/test_a.py::test_c XFAIL [0.0018s]\n====== 1 passed, 1 xfailed in 1.0s ======\n"
    )
    assert [(t.nodeid, t.outcome) for t in read_text(text).tests] == [
        ("a/test_a.py::test_b", Outcome.PASSED),
        ("a/test_a.py::test_c", Outcome.XFAILED),
    ]


def test_workers_that_crash_are_named_each_by_its_own_test(read_text):
    def block(worker, nodeid):
        return f"_________ tests/test_w.py _________\n[{worker}] linux -- Python 3.12.13 /v/bin/python3\nworker '{worker}' crashed while running '{nodeid}'\n"

    names = ["tests/test_w.py::A::test_x", "tests/test_w.py::B::test_x[a - b]"]
    text = (
        HEAD
        + "=================================== FAILURES ===================================\n"
        + block("gw0", names[0])
        + block("gw1", names[1])
        + END
    )
    text += "".join(f"FAILED {n}\n" for n in names) + "====== 2 failed in 1.0s ======\n"
    evidence = read_text(text)
    assert [(f.nodeid, f.kind) for f in evidence.failures] == [(n, Kind.CRASH) for n in names]
    assert [len(c.nodeids) for c in group(evidence)] == [2]


@pytest.mark.parametrize("line", ["____________ epoch 3 of 7 ____________", "______ banner ______", "_ _ _ _ _"])
def test_lines_that_captured_output_draws_are_no_failures(read_text, line):
    text = HEAD + failing("tests/test_a.py::test_b").replace(
        END, f"----------------------------- Captured stdout call -----------------------------\n{line}\nloss 3\n{END}"
    )
    evidence = read_text(text)
    assert [f.nodeid for f in evidence.failures] == ["tests/test_a.py::test_b"]
