"""Laws of triage: what carries a log around changes nothing, a cut never invents, no bytes crash it, order is nothing."""

import os
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.logs_reader import read_logs
from debug_spyre.triage.triage_words import cluster_to_json
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Evidence, failure_to_json

SAMPLES = Path(__file__).parents[1] / "samples"
sys.path.insert(0, str(SAMPLES))
import wrappers  # noqa: E402

FACTOR = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
TEXTS = sorted(p for p in SAMPLES.glob("*.txt"))
PLAIN = [p for p in TEXTS if not p.stem.startswith(("gha", "gh-cli", "jenkins"))]
WRAPPERS = (wrappers.github, wrappers.github_cli, wrappers.jenkins, wrappers.crlf, wrappers.coloured)
COMPARED = ("nodeid", "phase", "kind", "stage", "tags", "severity", "error_class", "inner_class", "message", "mismatched", "total",
            "max_abs", "max_rel", "innermost_frame", "backend_frame", "rule", "key", "cause")  # fmt: skip


def fuzz(examples):
    return settings(
        max_examples=examples * FACTOR, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )


def read(path, data):
    """The evidence; a text without any outcome is refused, which is no evidence."""
    path.write_bytes(data)
    try:
        return read_logs([path], checkout=None)
    except BadInputError as refused:
        assert "holds no test outcome" in str(refused) or "cannot" in str(refused) or "no report" in str(refused)
        return Evidence(sources=(str(path),), counts=None, complete=False)


def shown(evidence):
    """What must not change."""
    return {
        "counts": evidence.counts,
        "complete": evidence.complete,
        "failures": [{k: failure_to_json(f)[k] for k in COMPARED} for f in evidence.failures],
        "fallbacks": evidence.fallbacks,
        "tests": evidence.tests,
        "clusters": [cluster_to_json(c) for c in group(evidence)],
    }


@pytest.mark.parametrize("wrap", WRAPPERS, ids=lambda w: w.__name__)
def test_what_is_wrapped_around_a_log_changes_nothing(wrap, tmp_path):
    for sample in PLAIN:
        text = sample.read_text(encoding="utf-8")
        plain = read(tmp_path / "log.txt", text.encode())
        carried = read(tmp_path / "log.txt", wrap(text).encode())
        assert shown(carried) == shown(plain), sample.stem


def test_line_numbers_are_those_of_the_original_file(tmp_path):
    for sample in PLAIN:
        text = sample.read_text(encoding="utf-8")
        shift = 1 if wrappers.github_cli(text).count("\n") != text.count("\n") else 0
        plain = read(tmp_path / "log.txt", text.encode())
        carried = read(tmp_path / "log.txt", wrappers.github_cli(text).encode())
        assert [f.line for f in carried.failures] == [f.line and f.line + shift * 0 for f in plain.failures], (
            sample.stem
        )
        lines = text.split("\n")
        for failure in plain.failures:
            assert failure.line is None or lines[failure.line - 1].strip(), (sample.stem, failure.nodeid)


def cuts(size, seed, count):
    chance = random.Random(seed)
    return sorted({chance.randrange(size) for _ in range(count)})


@pytest.mark.parametrize(
    "sample",
    sorted(SAMPLES.glob("*.txt")) + sorted(SAMPLES.glob("*.xml")) + sorted(SAMPLES.glob("*.jsonl")),
    ids=lambda p: p.stem,
)
def test_a_log_that_is_cut_anywhere_invents_nothing(sample, tmp_path):
    """Every failure of the cut log is one of the whole log, or carries its name only; numbers are right or absent."""
    data = sample.read_bytes()
    whole = read(tmp_path / f"log{sample.suffix}", data)
    names = {f.nodeid for f in whole.failures}
    numbers = {}
    for f in whole.failures:
        for key in ("mismatched", "total", "max_abs", "max_rel"):
            numbers.setdefault((f.nodeid, key), set()).add(repr(getattr(f, key)))
    for cut in cuts(len(data), sample.stem, 25 * FACTOR):
        part = read(tmp_path / f"log{sample.suffix}", data[:cut])
        for failure in part.failures:
            if "name-only" in failure.tags or (failure.nodeid is None and failure.kind in {"crash", "timeout"}):
                continue  # a title without its file; a process whose end is shown but whose test isn't yet
            assert failure.nodeid in names, (cut, failure)
            for key in ("mismatched", "total", "max_abs", "max_rel"):
                value = getattr(failure, key)
                assert value is None or repr(value) in numbers[(failure.nodeid, key)], (cut, key, failure)


@fuzz(150)
@example(data=b"\x1c0")
@example(data="\u00b2\n\u0660\n".encode())
@given(data=st.binary(max_size=3000))
def test_arbitrary_bytes_never_crash_property(data, tmp_path):
    for name in ("log.txt", "log.xml", "results.jsonl"):
        shown(read(tmp_path / name, data))


PIECES = sorted({line for p in TEXTS for line in p.read_text(encoding="utf-8").split("\n")[:400]})


@fuzz(100)
@given(
    lines=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=60)), max_size=80),
    end=st.sampled_from(["\n", "\r\n", ""]),
)
def test_lines_in_any_order_never_crash_property(lines, end, tmp_path):
    evidence = read(tmp_path / "log.txt", (end or "\n").join(lines).encode("utf-8", "surrogatepass") + end.encode())
    found = group(evidence)
    failing = {f.nodeid for f in evidence.failures} - {None}
    grouped = [n for c in found for n in c.nodeids]
    assert sorted(grouped) == sorted(failing)


@fuzz(20)
@given(seed=st.integers(0, 2**32))
def test_the_order_of_failures_changes_neither_clusters_nor_ids_property(seed):
    chance = random.Random(seed)
    for sample in chance.sample(TEXTS, 5):
        evidence = read_logs([sample], checkout=None)
        failures = list(evidence.failures)
        chance.shuffle(failures)
        assert group(replace(evidence, failures=tuple(failures))) == group(evidence), sample.stem
