"""Other forms of one log: broken lines, documents, mail, plugins that print their own way, Windows, memory that ran out."""

import json
import quopri
import zipfile

import pytest

from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.logs_reader import read_logs
from debug_spyre.triage.triage_words import headline
from debug_spyre.triage.wrapped import Unwrapper, width_of
from debug_spyre.vocabulary.evidence import Counts, Kind, Stage

NAMES = ["tests/test_ops.py::test_add[128]", "tests/test_ops.py::test_add[64]", "tests/test_ops.py::test_roll"]
COUNTS = Counts(failed=3, passed=2)
ADD = (
    "tests/test_ops.py:10: in test_add\n    assert_close(got, torch.ones(size))\nE   AssertionError: Tensor-likes are not close!\nE   \n"
    "E   Mismatched elements: 32 / 64 (50.0%)\nE   Greatest absolute difference: 6.5 at index (1,) (up to 1e-05 allowed)\n"
    "E   Greatest relative difference: 6.5 at index (1,) (up to 1.3e-06 allowed)\n"
)
ROLL = (
    "tests/test_ops.py:17: in test_roll\n    raise NotImplementedError(text)\n"
    "E   NotImplementedError: Could not run 'aten::roll' with arguments from the 'spyre' backend. This could be because it is not there.\n"
)


def ruler(mark, text, width):
    return f" {text} ".center(width, mark)


def plain(width=120):
    """A log as a terminal of that width shows it."""
    progress = [
        ("add[8]", "PASSED"),
        ("add[64]", "FAILED"),
        ("add[128]", "FAILED"),
        ("roll", "FAILED"),
        ("fine", "PASSED"),
    ]
    lines = [ruler("=", "test session starts", width), "rootdir: /home/user/project", "collected 5 items", ""]
    lines += [
        f"tests/test_ops.py::test_{n} {w}".ljust(width - 7) + f" [{20 * k:>3}%]" for k, (n, w) in enumerate(progress, 1)
    ]
    lines += ["", ruler("=", "FAILURES", width)]
    for name, text in (("test_add[64]", ADD), ("test_add[128]", ADD), ("test_roll", ROLL)):
        lines += [ruler("_", name, width), *text.rstrip("\n").split("\n")]
    lines += [ruler("=", "short test summary info", width)]
    lines += [
        f"FAILED tests/test_ops.py::test_{n} - AssertionError: Tensor-likes are not close!"
        for n in ("add[64]", "add[128]")
    ]
    lines += [
        "FAILED tests/test_ops.py::test_roll - NotImplementedError: Could not run 'aten::roll' with arguments from the 'spyre' back..."
    ]
    return [*lines, ruler("=", "3 failed, 2 passed in 1.00s", width)]


def is_read(evidence):
    assert sorted(f.nodeid for f in evidence.failures) == NAMES
    assert evidence.counts == COUNTS
    assert sorted(len(c.nodeids) for c in group(evidence)) == [1, 2]


# lines that a terminal broke


@pytest.mark.parametrize("width", range(47, 119, 5))
@pytest.mark.parametrize("end", ["as printed", "blanks lost", "padded"])
def test_a_copy_from_a_terminal_of_any_width_reads_like_the_log(read_text, width, end):
    pieces = [line[at : at + width] for line in plain() for at in range(0, max(1, len(line)), width)]
    shape = {"as printed": str, "blanks lost": str.rstrip, "padded": lambda piece: piece.ljust(width)}[end]
    is_read(read_text("\n".join(map(shape, pieces)) + "\n"))


def test_a_broken_copy_behind_a_prefix_reads_like_the_log(read_text):
    pieces = [line[at : at + 70].rstrip() for line in plain() for at in range(0, max(1, len(line)), 70)]
    is_read(read_text("\n".join(f"> {piece}" for piece in pieces) + "\n"))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_log_that_no_terminal_broke_stays_as_it_is(width):
    assert width_of([line.rstrip() for line in plain(width)]) == 0


def test_a_joined_line_has_the_number_of_its_first_piece():
    joiner = Unwrapper(40)
    found = [joiner.feed(n, line) for n, line in enumerate(["a" * 40, "b" * 40, "c", "d"], start=1)]
    assert [f for f in [*found, joiner.end()] if f] == [(1, "a" * 40 + "b" * 40 + "c"), (4, "d")]


# documents, tables, mail


def test_one_json_document_of_log_entries(read_text):
    for data in (
        [{"message": x} for x in plain()],
        {"events": [{"t": n, "message": x} for n, x in enumerate(plain())]},
        plain(),
    ):
        is_read(read_text(json.dumps(data, indent=1), name="log.json"))


def test_a_journal_whose_message_is_a_list_of_bytes(read_text):
    lines = [{"MESSAGE": list(f"\x1b[1m{x}\x1b[0m".encode()) if "FAILED" in x else x} for x in plain()]
    is_read(read_text("".join(json.dumps(line) + "\n" for line in lines)))


@pytest.mark.parametrize("is_minimal", [False, True])
def test_a_table_of_comma_separated_values(read_text, is_minimal):
    def cell(text):
        return text if is_minimal and not {",", '"'} & set(text) else '"' + text.replace('"', '""') + '"'

    is_read(read_text("time,message\r\n" + "".join(f"2026-08-01T10:00:00Z,{cell(x)}\r\n" for x in plain())))


def test_values_in_logfmt(read_text):
    is_read(read_text("".join(f"ts={n} level=info msg={json.dumps(x)}\n" for n, x in enumerate(plain()))))


def test_a_mail_in_quoted_printable(read_text):
    head = b"From: ci\nContent-Transfer-Encoding: quoted-printable\n\n"
    is_read(read_text(head + quopri.encodestring("\n".join(plain()).encode())))


def test_line_numbers_on_lines_of_their_own(read_text):
    is_read(read_text("".join(f"{n}\n{x}\n" for n, x in enumerate(plain(), start=1))))


# a report beside the log of the same run

JUNIT = (
    '<testsuites><testsuite>{}<testcase classname="tests.test_ops" name="test_add[8]" file="tests/test_ops.py"/>'
    '<testcase classname="tests.test_ops" name="test_fine" file="tests/test_ops.py"/></testsuite></testsuites>'
)
CASE = (
    '<testcase classname="tests.test_ops" name="{}" file="tests/test_ops.py"><failure message="no">E   RuntimeError: no'
    "</failure></testcase>"
)


def test_a_junit_file_beside_the_log_of_its_run_counts_once(tmp_path):
    cases = "".join(CASE.format(name.partition("::")[2]) for name in NAMES)
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("ci.log", "\n".join(plain()) + "\n")
        archive.writestr("junit.xml", JUNIT.format(cases))
    evidence = read_logs([tmp_path / "run.zip"], checkout=None)
    is_read(evidence)
    assert any("the same run" in text for text in evidence.warnings)


def test_a_junit_file_of_another_run_is_added(tmp_path):
    (tmp_path / "ci.log").write_text("\n".join(plain()) + "\n", encoding="utf-8")
    (tmp_path / "other.xml").write_text(JUNIT.format(CASE.format("test_new")), encoding="utf-8")
    evidence = read_logs([tmp_path / "ci.log", tmp_path / "other.xml"], checkout=None)
    assert evidence.counts == Counts(failed=4, passed=4)


# plugins


BAR = "\u2015" * 20
MARKS = {"PASSED": "\u2713", "FAILED": "\u2a2f"}


def sugar(lines):
    found = []
    for line in lines:
        if line.startswith("____"):
            line = f"{BAR} {line.strip('_ ')} {BAR}"
        elif "test session starts" in line:
            line = "Test session starts (platform: linux, Python 3.11.7, pytest 9.2.0, pytest-sugar 1.1.1)"
        elif line.endswith("%]"):
            name, word = line.split()[:2]
            line = f" {name} {MARKS[word]}     20% \u2588\u2588        "
        elif "FAILURES" in line or "short test summary" in line or line.startswith("FAILED"):
            continue
        elif " in 1.00s" in line:
            line = "\nResults (1.00s):\n       3 failed\n         - tests/test_ops.py:5 test_add[64]\n       2 passed"
        found.append(line)
    return found


def test_the_text_of_pytest_sugar(read_text):
    is_read(read_text("\n".join(sugar(plain())) + "\n"))


def test_the_list_of_counts_of_pytest_pretty(read_text):
    lines = plain()
    is_read(read_text("\n".join([*lines[:-5], "Results (2.63s):", "         3 failed", "         2 passed"]) + "\n"))


def test_the_boxes_of_pytest_rich(read_text):
    text = (
        "\u256d\u2500\u2500 tests/test_ops.py::test_roll \u2500\u2500\u256e\n\u2502 tests/test_ops.py:17 in test_roll      \u2502\n"
        "\u2502 \u2771 17 \u2502   raise NotImplementedError(text) \u2502\n\u2502 E NotImplementedError: no such kernel  \u2502\n\u2570\u2500\u2500\u256f\n\n"
        "\u256d\u2500\u2500 Summary \u2500\u2500\u256e\n\u2502   3  Total Tests           \u2502\n\u2502   2  Passed       (66.6%)  \u2502\n"
        "\u2502   1  Failed       (33.3%)  \u2502\n\u2570\u2500\u2500\u256f\n"
    )
    evidence = read_text(text)
    (failure,) = evidence.failures
    assert (failure.nodeid, failure.error_class) == ("tests/test_ops.py::test_roll", "NotImplementedError")
    assert evidence.counts == Counts(failed=1, passed=2)


# Windows, and memory that ran out

BEGUN = "============ test session starts ============\nrootdir: D:\\a\\spyre\ncollected 3 items\n\n"
RUNNING = f"{BEGUN}tests/test_ops.py::test_a PASSED [ 33%]\ntests/test_ops.py::test_b "
NAME = "tests/test_ops.py::test_b"


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ("Error: Process completed with exit code 3221225477.", 11),
        ("Error: Process completed with exit code -1073741819.", 11),
        ("##[error]Cmd.exe exited with code '-1073741819'.", 11),
        ("python.exe exited with code 0xC0000005", 11),
        ("process exited with exit status: 0xc00000fd", 11),
        ("Process finished with exit code -1073740791 (0xC0000409)", 6),
        ("ERROR: return code: 3221226356", 6),
        ("exit code 3221225501", 4),
        ("exit code -1073741676", 8),
    ],
)
def test_the_exit_status_of_a_windows_crash(read_text, line, signal):
    evidence = read_text(f"{RUNNING}\r\n{line}\r\n".encode())
    (failure,) = evidence.failures
    assert (failure.nodeid, failure.kind, evidence.signal) == (NAME, Kind.CRASH, signal)


@pytest.mark.parametrize("code", ["1", "3", "65536", "1234567890", "4294967295"])
def test_another_exit_status_is_no_crash(read_text, code):
    assert not read_text(f"{RUNNING}\nexit code {code}\n").failures


@pytest.mark.parametrize(("said", "signal"), [("access violation", 11), ("stack overflow", 11), ("code 0xc0000374", 6)])
@pytest.mark.parametrize("is_verbose", [True, False])
def test_a_windows_fault_names_signal_test_and_backend_frame(read_text, said, signal, is_verbose):
    dump = (
        f"Windows fatal exception: {said}\n\nThread 0x00001a2c (most recent call first):\n  <no Python frame>\n\n"
        "Current thread 0x00000b3c (most recent call first):\n"
        '  File "D:\\a\\spyre\\torch_spyre\\ops\\eager.py", line 55 in launch\n'
        '  File "D:\\a\\spyre\\tests\\test_ops.py", line 7 in test_b\n'
        '  File "D:\\a\\spyre\\.venv\\Lib\\site-packages\\_pytest\\python.py", line 187 in pytest_pyfunc_call\n'
    )
    evidence = read_text(RUNNING + dump if is_verbose else f"{BEGUN}tests\\test_ops.py .{dump}")
    (failure,) = evidence.failures
    assert (failure.nodeid, failure.kind, failure.error_class, evidence.signal) == (NAME, Kind.CRASH, said, signal)
    assert failure.backend_frame == "D:\\a\\spyre\\torch_spyre\\ops\\eager.py:55"


def test_a_windows_exception_that_the_run_outlived_is_no_failure(read_text):
    text = (
        f"{RUNNING}Windows fatal exception: code 0x8001010d\n\nPASSED [ 66%]\ntests/test_ops.py::test_c PASSED [100%]\n"
    )
    evidence = read_text(f"{text}\n====== 3 passed in 1.00s ======\n")
    assert (evidence.failures, evidence.counts) == ((), Counts(passed=3))


@pytest.mark.parametrize(
    "line",
    [
        "    Reason:       OOMKilled",
        "[ 1234.567] Out of memory: Killed process 4711 (python) total-vm:123456kB, anon-rss:9999kB",
        "Memory cgroup out of memory: Killed process 4711 (python)",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.",
    ],
)
def test_a_host_that_ran_out_of_memory_is_the_cause_and_not_the_card(read_text, line):
    (failure,) = read_text(f"{RUNNING}\n{line}\n    Exit Code:    137\n").failures
    assert (failure.nodeid, failure.kind, failure.rule, failure.stage) == (
        NAME,
        Kind.CRASH,
        "host-memory",
        Stage.ENVIRONMENT,
    )


def test_a_kill_alone_does_not_say_why(read_text):
    (failure,) = read_text(f"{RUNNING}\ntests-1 exited with code 137\n").failures
    assert (failure.kind, failure.rule) == (Kind.CRASH, "process-died")


# counts and clusters agree


@pytest.mark.parametrize("letters", ["", ".", "..F", "sx.F"])
@pytest.mark.parametrize("said", ["Fatal Python error: Aborted", "Windows fatal exception: access violation"])
def test_a_process_that_dies_behind_its_letters_adds_none(read_text, letters, said):
    dump = f'{said}\n\nCurrent thread 0x00007fa5f09dc740 (most recent call first):\n  File "/p/conftest.py", line 6 in device\n'
    evidence = read_text(f"{BEGUN}tests/test_ops.py {letters}{dump}")
    assert (evidence.seen.failed, evidence.seen.passed) == (1, letters.count("."))
    assert [f.kind for f in evidence.failures] == [Kind.CRASH]


@pytest.mark.parametrize("printed", ["Error in the card", "some text", "Running", "Found it"])
def test_what_a_test_prints_behind_its_file_is_no_outcome(read_text, printed):
    text = f"{BEGUN}tests/test_ops.py {printed}\n.F\n\nFAILED tests/test_ops.py::test_b - RuntimeError: x\n"
    assert read_text(text).seen == Counts(passed=1, failed=1)


def test_a_crash_that_passed_in_a_new_process_is_told_in_the_headline(read_text):
    again = BEGUN + "tests/test_ops.py::test_b PASSED [100%]\n\n====== 1 passed in 0.18s ======\n"
    text = f"{RUNNING}Fatal Python error: Aborted\n\nCurrent thread 0x0a (most recent call first):\n"
    evidence = read_text(f'{text}  File "D:\\a\\spyre\\tests\\test_ops.py", line 7 in test_b\n\n{again}')
    assert headline(evidence, 1) == "1 passed, 1 passed only when run again: 1 cluster"


def test_a_list_that_somebody_wrote_down_keeps_its_headings_out_of_the_texts(read_text):
    text = "## (1) Failed\n\n1. FAILED t/test_a.py::test_n[1]\n\n## (1) Errors\n\n1. ERROR t/test_a.py::test_n[4] - RuntimeError: VFIO 0 is busy\n"
    evidence = read_text(text)
    assert {(f.nodeid, f.message) for f in evidence.failures} == {
        ("t/test_a.py::test_n[1]", None), ("t/test_a.py::test_n[4]", "RuntimeError: VFIO 0 is busy"),
    }  # fmt: skip
    assert len(group(evidence)) == 2


@pytest.mark.parametrize("mark", ["\u00b2", "\u2460", "\u0663", "12\u00b3"])
def test_signs_that_only_look_like_numbers_do_no_harm(read_text, mark):
    is_read(read_text("\n".join([*plain(), *[mark] * 40]) + "\n"))
