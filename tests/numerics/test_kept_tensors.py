"""After a run its kept tensors are compared: pattern, severity and reason reach the failure, and nothing raises."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from debug_spyre.numerics.io.kept_tensors import COMPARISONS, compare_kept
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Severity

HOSTILE = "tests/t est.py::test_«x»[a='</script>',\u202e(b)]"


@pytest.fixture
def run(tmp_path):
    """A run's folder with tensors; returns (folder, write(pairs, others, tensors))."""
    folder = tmp_path / "runs" / "r1"
    (folder / "tensors").mkdir(parents=True)

    def write(tensors, pairs=(), others=(), nodeid=HOSTILE):
        save_file(tensors, folder / "tensors/001.safetensors")
        line = {"e": "tensors", "nodeid": nodeid, "pairs": list(pairs), "others": list(others), "omitted": []}
        with (folder / "results.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"e": "start", "nodeid": nodeid}) + "\n" + json.dumps(line) + "\n")

    return folder, write


def evidence(*failures):
    return Evidence(sources=("x",), counts=None, complete=True, failures=failures)


FAILED = Failure(
    nodeid=HOSTILE, phase="call", kind=Kind.MISMATCH, severity=Severity.ACCUMULATION, reason="by its ratio"
)
PAIR = {
    "file": "tensors/001.safetensors",
    "actual": "actual0",
    "expected": "expected0",
    "names": ["out", "ref"],
    "rtol": None,
    "atol": None,
}


def rolled():
    good = torch.randn(32, 64, generator=torch.Generator().manual_seed(0)).half()
    return {"actual0": good.roll(1, 0), "expected0": good}


def test_the_pattern_wins_over_what_the_ratio_suggested(run):
    folder, write = run
    write(rolled(), [PAIR])
    (failure,) = compare_kept(folder, evidence(FAILED)).failures
    assert failure.severity is Severity.STRUCTURAL
    assert "rolled by 1 along axis 0" in failure.pattern
    assert failure.mismatched == 2048 or failure.total == 2048
    (entry,) = json.loads((folder / COMPARISONS).read_text(encoding="utf-8"))["comparisons"]
    assert entry["nodeid"] == HOSTILE and entry["picture"]["values"] and entry["verdict"] == "structural"


def test_the_tests_own_tolerance_is_used(run):
    folder, write = run
    good = torch.randn(32, 64, generator=torch.Generator().manual_seed(0)).half()
    write({"actual0": good * 1.01, "expected0": good}, [{**PAIR, "rtol": 0.1, "atol": 0.1}])
    (failure,) = compare_kept(folder, evidence(FAILED)).failures
    assert failure == FAILED


def test_the_first_selector_that_differs_is_named(run):
    folder, write = run
    mask = torch.zeros(4, 8, dtype=torch.bool)
    wrong = mask.clone()
    wrong[2, 5] = True
    tensors = {**rolled(), "other0": torch.arange(4), "other1": mask, "other2": wrong}
    others = [{"file": PAIR["file"], "key": f"other{i}", "name": n} for i, n in enumerate(["rows", "mask_cpu", "mask"])]
    write(tensors, [PAIR], others)
    (failure,) = compare_kept(folder, evidence(FAILED)).failures
    assert "bool tensor mask differs from mask_cpu in 1 of 32 places, first at (2, 5): True for False" in failure.reason


def test_without_tensors_the_evidence_is_left_alone(run):
    folder, _ = run
    before = evidence(FAILED)
    assert compare_kept(folder, before) is before


@pytest.mark.parametrize(
    "pair",
    [
        {**PAIR, "file": "tensors/none.safetensors"},
        {**PAIR, "file": "../../../etc/passwd"},
        {**PAIR, "actual": "nothing"},
        {"file": PAIR["file"]},
        {**PAIR, "expected": "other0"},
        "nonsense",
    ],
)
def test_what_can_not_be_compared_is_a_warning(run, pair):
    folder, write = run
    write({**rolled(), "other0": torch.ones(3)}, [pair])
    after = compare_kept(folder, evidence(FAILED))
    assert after.failures == (FAILED,)
    assert len(after.warnings) == 1 and "kept tensors of" in after.warnings[0]


def test_a_torn_results_file_is_read_as_far_as_it_goes(run):
    folder, write = run
    write(rolled(), [PAIR])
    with (folder / "results.jsonl").open("ab") as stream:
        stream.write(b'{"e":"tensors","nodeid":"x","pairs":[{"fi\n\xff\xfe"tensors"')
    (failure,) = compare_kept(folder, evidence(FAILED)).failures
    assert failure.pattern


def test_without_numpy_it_says_so_and_goes_on(run, tmp_path):
    folder, write = run
    write(rolled(), [PAIR])
    (tmp_path / "numpy.py").write_text("raise ImportError('none here')", encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from debug_spyre.vocabulary.evidence import Evidence\n"
        "from debug_spyre.numerics.io.kept_tensors import compare_kept\n"
        f"print(compare_kept(Path({str(folder)!r}), Evidence(('x',), None, True)).warnings)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert "needs numpy" in done.stdout, done.stderr


def test_other_failures_stay_as_they_are(run):
    folder, write = run
    write(rolled(), [PAIR])
    other = replace(FAILED, nodeid="tests/other.py::test")
    crash = replace(FAILED, kind=Kind.CRASH)
    assert compare_kept(folder, evidence(other, crash)).failures == (other, crash)


def test_the_worst_of_several_pairs_speaks(run):
    folder, write = run
    good = torch.randn(32, 64, generator=torch.Generator().manual_seed(0)).half()
    noisy = good + 0.004 * torch.randn(32, 64, generator=torch.Generator().manual_seed(1)).half()
    tensors = {"actual0": noisy, "expected0": good, "actual1": good.roll(1, 1), "expected1": good.clone()}
    write(tensors, [PAIR, {**PAIR, "actual": "actual1", "expected": "expected1"}])
    (failure,) = compare_kept(folder, evidence(FAILED)).failures
    assert "along axis 1" in failure.pattern
    assert np.isfinite(failure.max_abs)
