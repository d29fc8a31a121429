"""Logs made after public reports, where they lie beside the project: each has the right counts, failures and clusters."""

from pathlib import Path

import pytest

from debug_spyre.triage.io.logs_reader import triage_logs
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Counts

REPORTS = Path(__file__).parents[3] / "shared/reports"
if not REPORTS.is_dir():
    REPORTS = Path(__file__).parents[4] / "shared/reports"
pytestmark = pytest.mark.skipif(not REPORTS.is_dir(), reason="the reports are not beside this checkout")


def triage(name):
    return triage_logs([next(iter(sorted(REPORTS.rglob(name))))], checkout=None)


# name: (counts, failing tests, [(size, kind, stage) of the clusters, in any order]); None: not asked
SPAN = (Counts(failed=3, passed=3), 3, [(3, "mismatch", "numerics")])
WRAPPED = [
    "28-caretM", "29-quoted-mail", "30-indented", "31-docker-compose", "33-torchrun", "34-docker-json", "35-cri", "36-kubectl-ts",
    "37-oc-prefix", "38-torchrun-tee", "39-ts-command", "40-gitlab", "41-jenkins-ts", "42-azure", "43-buildkite-bk", "46-time",
    "47-nohup", "48-pre",
]  # fmt: skip
MODEL_OPS = [(3, "compile", "layout"), (4, "mismatch", "numerics"), (3, "exception", "dispatch"), (2, "exception", "layout"), (2, "crash", "runtime")]  # fmt: skip
FOURTEEN = Counts(failed=14, passed=536, skipped=474)
ANSWERS = {
    "02-pr-comment-summary.txt": (FOURTEEN, 14, MODEL_OPS),
    "02a-only-failed-lines.txt": (None, 14, MODEL_OPS),
    "02b-with-header.txt": (FOURTEEN, 14, MODEL_OPS),
    "02c-no-header-counts.txt": (FOURTEEN, 14, MODEL_OPS),
    "02d-header-no-counts.txt": (None, 14, MODEL_OPS),
    "02e-counts-first.txt": (FOURTEEN, 14, MODEL_OPS),
    "03-xfail-error-green.txt": (Counts(passed=332, xfailed=202, xpassed=12), 0, []),
    "04-max-in-assert-message.txt": (Counts(failed=2, passed=2), 2, [(2, "exception", "dispatch")]),
    "06-span-limit-wrong-values.txt": SPAN,
    "07-buildkite-server-exited.txt": (Counts(failed=5, passed=1), 5, [(5, "exception", None)]),
    "08-unittest-xmlrunner.txt": (
        Counts(failed=1, errors=1, passed=2, skipped=1), 2, [(1, "compile", "environment"), (1, "mismatch", None)],
    ),
    "10-parallel-sessions-tpu.txt": (Counts(failed=3, passed=1), 3, [(3, "exception", "environment")]),
    "11-caret-ansi-cat-v.txt": (Counts(failed=1, passed=1), 1, [(1, "exception", "runtime")]),
    "12-ascend-import-in-plugin.txt": (Counts(failed=1), 1, [(1, "exception", "environment")]),
    "13-cross-device-not-raised.txt": (Counts(failed=2, passed=2), 2, [(2, "exception", "dispatch")]),
    "14-host-stream-order.txt": (Counts(failed=2, passed=7, xfailed=1, xpassed=2), 2, [(2, None, "runtime")]),
    "15-absl-unittest.txt": (Counts(failed=1, passed=4), 1, [(1, "mismatch", None)]),
    "18-scalar-0d-junit.xml": (Counts(failed=6, passed=6), 6, [(6, "compile", "layout")]),
    "19-gaudi-gh-log-collect.txt": (Counts(errors=3), 3, [(3, "exception", "environment")]),
    "20-omni-server-fixture.txt": (Counts(failed=1, errors=1), 2, [(2, "exception", "environment")]),
    "21-backend-autoload-fails.txt": (Counts(errors=1), 1, [(1, "exception", "environment")]),
    "23-pytest9-subtests.txt": (Counts(failed=5, passed=2), 2, [(1, "exception", "dispatch"), (1, "mismatch", None)]),
    "01b-n1.txt": (Counts(failed=2, passed=2), 2, [(2, "crash", "runtime")]),
    "01c-serial.txt": (None, 1, [(1, "crash", "runtime")]),
    "06old.txt": SPAN,
    "22-span-error.txt": (Counts(failed=2, passed=40), 2, [(2, "compile", "codegen")]),
    "23-mean-names.txt": (Counts(failed=2, passed=40), 2, [(2, "mismatch", None)]),
    "24-scalar-count.txt": (Counts(failed=1, passed=3), 1, [(1, "mismatch", None)]),
    "25-unittest-plain.txt": (Counts(failed=1, errors=1, passed=3), 2, [(1, "exception", "dispatch"), (1, "mismatch", None)]),
    "26-cut-middle.txt": (None, 2, [(2, "mismatch", "numerics")]),
    "27-cut-head.txt": SPAN,
    "49.txt": (None, 2, [(2, "exception", None)]),
    "50.txt": (Counts(failed=1, passed=2), 1, [(1, "exception", None)]),
    "51-two-sessions-fail-then-pass.txt": (Counts(failed=3, passed=4), 3, [(3, "mismatch", "numerics")]),
    "52-aborted-core-dumped.txt": (None, 0, [(0, "crash", "runtime")]),
    "53-aborted-only.txt": (None, 0, [(0, "crash", "runtime")]),
    "55-same-text-two-paths.txt": (Counts(failed=2, passed=7, xfailed=1, xpassed=2), 2, [(2, None, "runtime")]),
    "56-same-text-no-inductor.txt": (Counts(failed=2, passed=7, xfailed=1, xpassed=2), 2, [(2, None, "runtime")]),
    "60.txt": (Counts(failed=1), 1, [(1, "exception", "layout")]),
} | {f"{name}.txt": SPAN for name in WRAPPED}  # fmt: skip


def asked(want, got):
    return tuple(None if w is None else g for w, g in zip(want, got, strict=True))


@pytest.mark.parametrize("name", ANSWERS)
def test_the_counts_failures_and_clusters_of_a_report(name):
    counts, failing, clusters = ANSWERS[name]
    found = triage(name)
    assert found.evidence.counts == counts
    assert len({f.nodeid for f in found.evidence.failures} - {None}) == failing
    got = sorted(((len(c.nodeids), c.kind.value, c.stage and c.stage.value) for c in found.clusters), key=str)
    left = list(got)
    for want in clusters:
        match = next((g for g in left if asked(want, g) == want), None)
        assert match, (want, got)
        left.remove(match)
    assert not left, got


@pytest.mark.parametrize("name", [f"{n}.txt" for n in WRAPPED])
def test_what_a_collector_puts_in_front_changes_nothing_of_the_answer(name):
    plain, carried = triage("06old.txt"), triage(name)
    assert [c.why for c in carried.clusters] == [c.why for c in plain.clusters]
    assert len(carried.evidence.failures) == len(plain.evidence.failures)


def test_a_script_s_own_output_is_refused_with_what_it_looks_like():
    with pytest.raises(BadInputError, match="a script's own output: 6 lines say that something passed, 2"):
        triage("16-script-div-fp32.txt")
