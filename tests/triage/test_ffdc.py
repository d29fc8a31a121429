"""First-failure reports: this run's by pid and time, stale ones of others never; one read by itself."""

import json
import os
import time

import pytest

from debug_spyre.triage.io.ffdc_reports import keep_reports, reports_folder, reports_of
from debug_spyre.triage.io.logs_reader import read_logs, read_run
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Kind, Stage


def body(pid, category="compile_backend", message="dxp gave up on kernel 3"):
    failure = {"category": category, "exception_type": "RuntimeError", "message": message}
    return json.dumps({"metadata": {"pid": pid}, "failure": failure, "collector": {"completeness_pct": 83}}, indent=1)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    folder = reports_folder(os.environ)
    folder.mkdir(parents=True)

    def write(pid, category="compile_backend", age=0.0, **more):
        path = folder / f"ffdc_{category}_20260102T030405_000123_{pid}.json"
        path.write_text(body(pid, category, **more))
        os.utime(path, (time.time() - age,) * 2)
        return path

    return write


def run_of(tmp_path, text, pid=4242):
    results, output = tmp_path / "results.jsonl", tmp_path / "out.txt"
    report = {"e": "report", "nodeid": "a.py::t", "phase": "call", "outcome": "failed", "seconds": 1, "text": text}
    lines = [{"e": "session_start", "at": time.time(), "pid": pid}, report, {"e": "session_finish", "exit": 1}]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    output.write_text("")
    return read_run(results, output, checkout=None, reports=reports_of(results))


def test_the_report_of_the_runs_own_process_names_cause_and_stage(tmp_path, cache):
    path = cache(4242)
    evidence = run_of(tmp_path, "a.py:3: in t\nE   LookupError: dxp gave up on kernel 3")
    assert evidence.failures[0].stage is Stage.CODEGEN
    assert any(str(path) in w and "compile_backend" in w for w in evidence.warnings)


@pytest.mark.parametrize(("pid", "age"), [(1, 0), (4242, 3600)])
def test_a_report_of_another_process_or_of_before_is_not_this_runs(tmp_path, cache, pid, age):
    cache(pid, age=age)
    evidence = run_of(tmp_path, "a.py:3: in t\nE   LookupError: dxp gave up on kernel 3")
    assert evidence.failures[0].stage is None
    assert evidence.warnings == ()


def test_the_runs_own_reports_are_kept_beside_its_results(tmp_path, cache):
    path = cache(4242)
    cache(1)
    run_of(tmp_path, "a.py:3: in t\nE   LookupError: dxp gave up on kernel 3")
    assert [p.name for p in keep_reports(reports_of(tmp_path / "results.jsonl"), tmp_path)] == [path.name]
    path.unlink()
    assert (tmp_path / "ffdc" / path.name).read_text() == body(4242)


def test_a_damaged_report_is_left_alone(tmp_path, cache):
    cache(4242).write_text("{")
    assert run_of(tmp_path, "E   LookupError: x").warnings == ()


def test_a_comparison_is_not_explained_by_a_report(tmp_path, cache):
    cache(4242, message="Tensor-likes are not close!")
    evidence = run_of(
        tmp_path,
        "a.py:3: in t\nE   AssertionError: Tensor-likes are not close!\nE   Mismatched elements: 4 / 4 (100.0%)",
    )
    assert evidence.failures[0].stage is Stage.NUMERICS


def test_a_report_can_be_read_by_itself(tmp_path):
    path = tmp_path / "ffdc_runtime_launch_20260102T030405_000123_7.json"
    path.write_text(body(7, "runtime_launch"))
    (failure,) = read_logs([path], checkout=None).failures
    assert (failure.nodeid, failure.kind, failure.stage) == (None, Kind.EXCEPTION, Stage.RUNTIME)


def test_json_that_is_no_report_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{\n "failure": {"a": 1}\n}')
    with pytest.raises(BadInputError, match="no report"):
        read_logs([path], checkout=None)


@pytest.mark.parametrize(
    ("message", "raised", "fits"),
    [
        pytest.param("failed", "LookupError: the call failed", False, id="short, another class"),
        pytest.param("failed", "RuntimeError: the call failed", True, id="short, the same class"),
        pytest.param("failed", "other.RuntimeError: the call failed", True, id="short, the class with its module"),
        pytest.param("  \n ", "RuntimeError: the call   failed", False, id="only blanks"),
        pytest.param("dxp gave up on kernel 3", "LookupError: dxp gave up on kernel 3", True, id="long, another class"),
        pytest.param("dxp gave up on kernel 3", "RuntimeError: dxp gave up on kernel 4", False, id="another message"),
    ],
)
def test_a_short_message_tells_a_failure_only_with_its_class(tmp_path, cache, message, raised, fits):
    cache(4242, message=message)
    evidence = run_of(tmp_path, f"a.py:3: in t\nE   {raised}")
    assert (evidence.failures[0].stage is Stage.CODEGEN) is fits
