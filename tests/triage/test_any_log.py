"""Any log that people have: parts, pipes, archives, what collectors write in front, other runners, crashes told by a runner."""

import bz2
import gzip
import json
import lzma
import os
import random
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from drawn_logs import drawn, drawn_prefix, real_runs, wrong

from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.logs_reader import read_logs
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Counts, Kind

HEAD = "============================= test session starts ==============================\n"
LOG = (
    HEAD + "rootdir: /home/user/x\ncollected 3 items\n\ntests/test_a.py .FF [100%]\n\n"
    "=================================== FAILURES ===================================\n"
    "__________________________________ test_b[1] ___________________________________\n"
    "tests/test_a.py:3: in test_b\n    f()\nE   RuntimeError: no stick\n"
    "----------------------------- Captured stdout call -----------------------------\nhello\n"
    "__________________________________ test_b[2] ___________________________________\n"
    "tests/test_a.py:3: in test_b\n    f()\nE   RuntimeError: no stick\n"
    "=========================== short test summary info ============================\n"
    "FAILED tests/test_a.py::test_b[1] - RuntimeError: no stick\nFAILED tests/test_a.py::test_b[2] - RuntimeError: no stick\n"
    "========================= 2 failed, 1 passed in 1.00s ==========================\n"
)
NAMES = ["tests/test_a.py::test_b[1]", "tests/test_a.py::test_b[2]"]
COUNTS = Counts(failed=2, passed=1)


def is_read(evidence):
    assert sorted(f.nodeid for f in evidence.failures) == NAMES
    assert evidence.counts == COUNTS
    assert len(group(evidence)) == 1


# drawn


@pytest.fixture(scope="module")
def runs():
    return real_runs(6)


@pytest.mark.timeout(600)
def test_drawn_logs_are_read_as_they_are_true(runs, tmp_path):
    told = [text for seed in range(50) for text in wrong(drawn(seed, runs), tmp_path / "log.txt")]
    assert not told, "\n".join(told[:10])


@pytest.mark.parametrize("seed", range(200))
def test_a_drawn_prefix_changes_nothing(read_text, seed):
    chance = random.Random(seed)
    prefix = drawn_prefix(chance)
    is_read(read_text("".join(f"{prefix(n)}{line}\n" for n, line in enumerate(LOG.splitlines()))))


# no evidence, no green


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "an empty file"),
        (b" \n\n", "nothing but blanks"),
        (b"%PDF-1.7 stuff", "a PDF"),
        (bytes(range(256)) * 20, "binary data"),
        (b"\x28\xb5\x2f\xfd0000", "zstd"),
        (b"<!DOCTYPE html><html></html>", "a web page"),
        (b"import os\n\n\ndef f():\n    return 1\n", "source code"),
        (
            b"check 1: PASS\ncheck 2: FAIL\ncheck 3: FAIL\n",
            "1 line says that something passed, 2 that something failed",
        ),
        (b"gcc x.c\nx.c:1: error: no such thing\n", "its last error: x.c:1: error: no such thing"),
        (HEAD.encode() + b"collected 3 items\n", "ended before its first outcome"),
        (b'{"a": 1}', "JSON that is no report of tests"),
    ],
)
def test_what_holds_no_outcome_is_refused_with_what_it_looks_like(read_text, data, says):
    with pytest.raises(BadInputError, match="holds no test outcome") as refused:
        read_text(data)
    assert says in str(refused.value)


def test_letters_alone_are_evidence_that_tests_failed(read_text):
    evidence = read_text("..F.s.\n")
    assert (evidence.counts, evidence.seen) == (None, Counts(failed=1, passed=4, skipped=1))


@pytest.mark.parametrize("counts", ["3 failed, 2 passed in 1.0s", "=== 3 failed, 2 passed in 1.0s ==="])
def test_counts_alone_are_evidence(read_text, counts):
    assert read_text(counts + "\n").counts == Counts(failed=3, passed=2)


# pipes, archives, folders


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, lambda d: d.decode().encode("utf-16")])
def test_a_packed_log_reads_like_a_plain_one(read_text, pack):
    is_read(read_text(pack(LOG.encode())))


def test_an_archive_and_a_folder_read_each_log_once(tmp_path):
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("0_build (3.12).txt", LOG)
        archive.writestr("build (3.12)/4_Run tests.txt", LOG)  # the same job again, step by step
        archive.writestr("1_lint.txt", "all fine\n")
    is_read(read_logs([tmp_path / "run.zip"], checkout=None))
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as archive:
        (tmp_path / "a.log").write_text(LOG, encoding="utf-8")
        archive.add(tmp_path / "a.log", "logs/a.log")
    is_read(read_logs([tmp_path / "run.tar.gz"], checkout=None))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x.log").write_text(LOG, encoding="utf-8")
    (folder / "conf.py").write_text(LOG, encoding="utf-8")
    is_read(read_logs([folder], checkout=None))


def test_a_damaged_archive_says_so(read_text):
    with pytest.raises(BadInputError, match="cannot unpack"):
        read_text(gzip.compress(LOG.encode())[:60])


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_pipe_reads_like_a_file_and_says_how_to_go_on(tmp_path, name):
    done = subprocess.run(
        [sys.executable, "-m", "debug_spyre", "triage", "--from", name],
        input=LOG, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "scripts")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 failed, 1 passed: 1 cluster\n")
    assert "--from FILE" in done.stdout
    assert "a pipe can be read once" in done.stderr


def test_an_endless_device_ends_with_an_error():
    with pytest.raises(BadInputError, match="is a device, not a log"):
        read_logs([Path("/dev/zero")], checkout=None)


def test_an_endless_pipe_ends_at_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("debug_spyre.triage.io.sources.LIMIT", 1 << 20)
    os.mkfifo(tmp_path / "pipe")
    writer = subprocess.Popen(["/bin/sh", "-c", f"yes > '{tmp_path}/pipe' 2>/dev/null"])
    with pytest.raises(BadInputError, match="has not ended"):
        read_logs([tmp_path / "pipe"], checkout=None)
    writer.wait(20)


# several processes in one text


@pytest.mark.parametrize(
    "form", ["[rank{}]: ", "web-{} | ", "[pod/spyre-{}-abcde/tests] ", "2026-08-01T10:00:00Z node{} "]
)
def test_lines_of_several_processes_are_told_apart(read_text, form):
    first = LOG.splitlines()
    second = [line.replace("test_a.py", "test_z.py") for line in first]
    text = "".join(f"{form.format(1)}{a}\n{form.format(2)}{b}\n" for a, b in zip(first, second, strict=True))
    evidence = read_text(text)
    assert evidence.counts == Counts(failed=4, passed=2)
    assert len({f.nodeid for f in evidence.failures}) == 4
    assert len(evidence.sessions) == 2


def test_a_line_that_a_container_cut_in_pieces_is_joined(read_text):
    lines = [line for line in LOG.splitlines() for line in ([line[:30], line[30:]] if len(line) > 60 else [line])]
    stamps = ["P" if len(line) == 30 else "F" for line in lines]
    is_read(
        read_text("".join(f"2026-08-01T10:00:00.1Z stdout {s} {line}\n" for s, line in zip(stamps, lines, strict=True)))
    )


def test_text_out_of_nested_json(read_text):
    lines = [
        {"ts": n, "kubernetes": {"pod": "a"}, "record": {"message": line}} for n, line in enumerate(LOG.splitlines())
    ]
    is_read(read_text("".join(json.dumps(line) + "\n" for line in lines)))


# crashes in a runner's words


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ("Error: Process completed with exit code 134.", 6),
        ("subshell exited with status 139", 11),
        ("make: *** [Makefile:12: test] Segmentation fault (core dumped)", 11),
        ("make: *** [Makefile:12: test] Error 139", 11),
        ("subprocess.CalledProcessError: Command 'pytest' died with <Signals.SIGFPE: 8>.", 8),
        ("ERROR: command terminated: return code: -11", 11),
        ("tests-1 exited with code 136", 8),
    ],
)
def test_the_signal_that_a_runner_tells(read_text, line, signal):
    text = HEAD + "collected 9 items\n\na/test_a.py::test_b PASSED [ 11%]\na/test_a.py::test_c " + f"\n{line}\n"
    text += 'Traceback (most recent call last):\n  File "up.py", line 7, in <module>\nFileNotFoundError: report.xml\n'
    evidence = read_text(text)
    (failure,) = evidence.failures
    assert (failure.kind, failure.nodeid, evidence.signal) == (Kind.CRASH, "a/test_a.py::test_c", signal)


def test_an_exit_status_alone_is_a_crash_of_the_session(read_text):
    text = (
        HEAD + "collected 9 items\n\na/test_a.py::test_b PASSED [ 11%]\nError: Process completed with exit code 139.\n"
    )
    (failure,) = read_text(text).failures
    assert (failure.kind, failure.nodeid, failure.error_class) == (Kind.CRASH, None, "Segmentation fault")


def test_a_missing_report_is_never_the_cause_of_a_subshell_that_a_signal_ended(read_text):
    text = (
        "FileNotFoundError: [Errno 2] No such file or directory: '/x/shard_0.xml'\n"
        "[device_tests] ERROR: pytest subshell exited abnormally (segfault or signal?) for tests/test_lx.py\n"
        "[device_tests] WARNING: pytest exited with signal (code 139) for tests/test_lx.py\n"
        "[device_tests] *** SIGNAL EXIT - retrying with -n1 ***\n"
    )
    (failure,) = read_text(text).failures
    assert (failure.kind, failure.error_class) == (Kind.CRASH, "Segmentation fault")


def test_failed_lines_of_a_numbered_list(read_text):
    lines = [f"{n}. 2026-09-02T15:29:45.3372976Z FAILED tests/test_a.py::test_b[{n}] - RuntimeError: x" for n in (1, 2)]
    assert sorted(f.nodeid for f in read_text("## (2) Failed\n\n" + "\n".join(lines) + "\n").failures) == NAMES


# unittest


def test_unittest_with_subtests_and_a_module_that_cannot_be_loaded(tmp_path, read_text):
    (tmp_path / "test_u.py").write_text(
        "import unittest\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        for n in range(3):\n"
        "            with self.subTest(n=n):\n                self.assertLess(n, 1)\n    def test_b(self):\n        pass\n"
        "    @unittest.skip('x')\n    def test_c(self):\n        pass\n    @unittest.expectedFailure\n    def test_d(self):\n        self.fail()\n",
        encoding="utf-8",
    )
    (tmp_path / "test_broken.py").write_text("import no_such_thing\n", encoding="utf-8")
    for words in (["-v"], []):
        done = subprocess.run(
            [sys.executable, "-m", "unittest", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        evidence = read_text(done.stderr)
        assert {f.nodeid for f in evidence.failures} == {"test_u.T.test_a", "test_broken"}
        assert evidence.counts == Counts(passed=1, failed=2, errors=1, skipped=1, xfailed=1)
        assert evidence.complete


# JSON of pytest's plugins


def test_reportlog_lines(read_text):
    lines = [
        {"pytest_version": "9.0.2", "$report_type": "SessionStart"},
        {"nodeid": "a.py::t[1]", "outcome": "passed", "when": "call", "longrepr": None, "$report_type": "TestReport"},
        {
            "nodeid": "a.py::t[2]", "outcome": "failed", "when": "call", "$report_type": "TestReport",
            "longrepr": {"chain": [[{"reprentries": [{"data": {
                "lines": ["    def t():", ">       f()", "E   RuntimeError: Host compute stream id 65"],
                "reprfileloc": {"path": "a.py", "lineno": 4, "message": "RuntimeError"}}}]}, None, None]]},
        },
        {"exitstatus": 1, "$report_type": "SessionFinish"},
    ]  # fmt: skip
    evidence = read_text("".join(json.dumps(line) + "\n" for line in lines))
    (failure,) = evidence.failures
    assert (failure.nodeid, failure.error_class, failure.innermost_frame) == ("a.py::t[2]", "RuntimeError", "a.py:4")
    assert (evidence.counts, evidence.complete) == (Counts(failed=1, passed=1), True)


def test_the_object_of_json_report(read_text):
    crash = {"outcome": "failed", "longrepr": "a.py:3: in t\nE   RuntimeError: no", "duration": 0.1}
    tests = [
        {
            "nodeid": "a.py::t",
            "outcome": "failed",
            "setup": {"outcome": "passed"},
            "call": crash,
            "teardown": {"outcome": "passed"},
        },
        {"nodeid": "a.py::x", "outcome": "xfailed", "setup": {"outcome": "passed"}, "call": {"outcome": "skipped"}},
    ]
    evidence = read_text(
        json.dumps({"exitcode": 1, "summary": {"failed": 1}, "collectors": [], "tests": tests}, indent=1)
    )
    assert [f.nodeid for f in evidence.failures] == ["a.py::t"]
    assert evidence.counts == Counts(failed=1, xfailed=1)
