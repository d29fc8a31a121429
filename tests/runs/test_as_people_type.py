"""What people type and paste: from a sub-folder, with a bare `python`, without any words, with a name that is off."""

import shlex
import subprocess

import pytest

TESTS = """
import plugin
def test_wrong(): assert plugin.VALUE == 2
def test_right(): pass
"""


@pytest.fixture
def checkout(place):
    place.write("tests/test_it.py", TESTS)
    place.write("plugin.py", "VALUE = 1\n")
    place.write("pytest.ini", "[pytest]\npythonpath = .\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@e", "-C", str(place.checkout)]
    subprocess.run([*git, "add", "plugin.py", "tests", "pytest.ini"], check=True)
    subprocess.run([*git, "commit", "-qm", "start"], check=True)
    return place


def pasted(place, answer):
    """Run the `next:` line of an answer as a shell would."""
    (line,) = [x.strip() for x in answer.splitlines() if x.strip().startswith("next: ")]
    words = shlex.split(line.removeprefix("next: "))
    assert words[0] == "debug-spyre"
    return place.call(*words[1:])


@pytest.mark.parametrize("verb", ["exec", "lock"])
@pytest.mark.parametrize("python", ["python", "sh"])
def test_a_bare_python_is_the_one_that_run_uses(place, verb, python):
    """An environment that nobody activated: `python` on PATH is another one, without torch."""
    place.python.write_text(place.python.read_text().replace("exec", "echo a python of the checkout; exec"))
    words = ["python", "-c", "print(1)"] if python == "python" else ["sh", "-c", "python -c 'print(1)'"]
    done = place.call(verb, "--", *words)
    said = done.stdout if verb == "lock" else next(place.logs.rglob("r1.txt")).read_text()
    assert done.returncode == 0 and "a python of the checkout" in said, said + done.stderr


def test_a_path_given_for_exec_wins(place):
    own = place.checkout.parent / "own"
    own.mkdir()
    (own / "python").write_text("#!/bin/sh\necho mine\n")
    (own / "python").chmod(0o755)
    place.call("exec", "--env", f"PATH={own}", "--", "python")
    assert "mine" in next(place.logs.rglob("r1.txt")).read_text()


@pytest.mark.parametrize(
    ("words", "selected"),
    [
        (["tests/test_it.py::test_right"], ["tests/test_it.py::test_right"]),  # an id that our own answer gave
        (["test_it.py::test_right"], ["tests/test_it.py::test_right"]),
        (["--deselect", "test_it.py::test_wrong"], ["tests/test_it.py::test_right"]),
        ([], ["tests/test_it.py::test_wrong", "tests/test_it.py::test_right"]),
    ],
)
def test_a_run_from_a_sub_folder_selects_what_is_meant(checkout, words, selected):
    checkout.write("other/test_other.py", "def test_other(): pass\n")
    done = checkout.json("run", *words, cwd=checkout.checkout / "tests")
    assert done["scope"]["selected"] == selected
    (started,) = checkout.events("run_started")
    assert all(not word.startswith("test_it") for word in started["pytest_args"]), "validate repeats it from the root"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["tests/nowhere"], "file or directory not found: tests/nowhere"),
        (["tests/test_it.py::test_right[nope]"], "not found:"),
        (["--no-such-option"], "unrecognized arguments: --no-such-option"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "triage"])
def test_pytest_s_own_words_say_why_no_test_ran(checkout, verb, words, reason):
    done = checkout.call(verb, *words)
    assert done.returncode == 4
    (line,) = [line for line in done.stdout.splitlines() if "no test ran" in line]
    assert reason in line
    assert "hypothesis conclude" not in done.stdout


def test_no_session_is_opened_on_a_triage_that_ran_nothing(checkout):
    checkout.call("triage", "tests/nowhere")
    refused = checkout.call("open", "--cluster", "c1")
    assert refused.returncode == 64
    assert "tests/nowhere" in refused.stderr and "no test ran" in refused.stderr
    assert "next: debug-spyre triage tests" in refused.stderr


def test_a_failing_test_is_named_once_with_what_it_shows_below(checkout):
    said = checkout.call("run", "tests").stdout.splitlines()
    (at,) = [n for n, line in enumerate(said) if "test_wrong" in line]
    assert said[at] == "  FAILED tests/test_it.py::test_wrong"
    assert "assert 1 == 2" in said[at + 1]


def test_a_triage_without_words_is_a_matrix_that_validate_repeats(checkout):
    assert checkout.call("triage").returncode == 0
    assert checkout.call("open", "--cluster", "c1").returncode == 0
    assert checkout.call("run", "--as", "baseline", "--members").returncode == 1
    checkout.write("plugin.py", "VALUE = 2\n")
    done = checkout.call("validate")
    assert "matrix: 0 new failures" in done.stdout, done.stdout + done.stderr


def test_with_two_sessions_what_an_answer_proposes_can_be_pasted(checkout):
    for slug in ("first", "second"):
        opened = checkout.call("open", slug, "--members", "tests/test_it.py::test_wrong")
    assert "second" in checkout.events("session_opened")[-1]["slug"]
    baseline = pasted(checkout, opened.stdout)
    assert baseline.returncode == 1 and "r1 baseline" in baseline.stdout
    listed = checkout.call("status")
    assert listed.returncode == 0 and pasted(checkout, listed.stdout).returncode == 0
    for words in (["hypothesis", "list"], ["run", "tests/test_it.py::test_right"]):
        refused = checkout.call(*words)
        assert refused.returncode == 64 and "several sessions" in refused.stderr
        assert pasted(checkout, refused.stderr).returncode == 0


def test_the_usage_line_shows_the_words_that_are_passed_on(place):
    assert "[PYTEST-ARGS]" in place.call("run", "--help").stdout
    assert "-- COMMAND" in place.call("exec", "--help").stdout
