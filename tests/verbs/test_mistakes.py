"""Mistakes that people make: what is typed, the exit status, the sentence that helps. One table; each row is one call."""

import json

import pytest

NODE = "tests/test_a.py::test_b"
USAGE, BAD, NO, ENVIRONMENT = 64, 2, 1, 69

# Typed in a checkout without a session.
BEFORE = [
    # verbs and sub-verbs that other tools have
    ("statsu", USAGE, "there is no verb 'statsu'", "debug-spyre status"),
    ("log", USAGE, "there is no verb 'log'", "debug-spyre status"),
    ("start", USAGE, "there is no verb 'start'", "debug-spyre open"),
    ("undo", USAGE, "there is no verb 'undo'", "debug-spyre revert"),
    ("test tests", USAGE, "there is no verb 'test'", "debug-spyre run"),
    ("minimize", USAGE, "there is no verb 'minimize'", "debug-spyre repro"),
    ("discard", USAGE, "there is no verb 'discard'", "opened by mistake"),
    ("hypothesis", USAGE, "required: ACTION", "debug-spyre hypothesis --help"),
    ("hypothesis new x", USAGE, "did you mean add?", "debug-spyre hypothesis add --help"),
    ("hypothesis delete 1 why", USAGE, "did you mean drop?", "debug-spyre hypothesis drop --help"),
    ("hypothesis conclud 1 confirmed yes", USAGE, "did you mean conclude?", "debug-spyre hypothesis conclude --help"),
    ("close done", USAGE, "did you mean resolved?", "debug-spyre close resolved --help"),
    ("close stuck", USAGE, "did you mean blocked?", "debug-spyre close blocked --help"),
    ("close", USAGE, "required: status", "debug-spyre close --help"),
    # options
    ("status --breif", USAGE, "did you mean --brief?", "debug-spyre status --help"),
    ("status --quux", USAGE, "unrecognized arguments: --quux", "debug-spyre status --help"),
    ("prune --older soon", USAGE, "--older takes a number of days, not 'soon'", "debug-spyre prune --older 30"),
    ("prune --older -1", USAGE, "--older takes a number of days", "debug-spyre prune --older 30"),
    ("investigate --minutes 0 tests", USAGE, "leaves no time for a step", "debug-spyre investigate tests"),
    ("bisect --good a", USAGE, "--bad is missing", "debug-spyre bisect --good"),
    # tests that are not there: said before pytest is started
    ("run tests/test_a.py::test_c", USAGE, "tests/test_a.py defines no test_c; near: tests/test_a.py::test_b", "debug-spyre run tests/test_a.py::test_b"),
    ("triage tests/test_aa.py", USAGE, "there is no file tests/test_aa.py; near: tests/test_a.py", "debug-spyre triage tests/test_a.py"),
    ("investigate tests/test_aa.py", USAGE, "there is no file tests/test_aa.py; near: tests/test_a.py", "debug-spyre investigate tests/test_a.py"),
    ("shadow tests/test_a.py::test_c", USAGE, "tests/test_a.py defines no test_c", "debug-spyre shadow tests/test_a.py::test_b"),
    ("run test_a.py", USAGE, "there is no file test_a.py; near: tests/test_a.py", "debug-spyre run tests/test_a.py"),
    ("run -n 4 tests", USAGE, "starts several processes, and the card takes one", "debug-spyre run tests"),
    ("run --as baselin tests", USAGE, "did you mean baseline?", "debug-spyre run --as baseline"),
    # files and names
    ("triage --from nope.log", BAD, "cannot read nope.log: No such file", "with a file that exists"),
    ("triage --from tests/test_a.py", BAD, "it looks like source code", "what pytest or unittest printed"),
    ("compare a.pt b.pt", BAD, "there is no file a.pt", ".safetensors, .npy or .pt"),
    ("compare a.pt", USAGE, "required: B", "debug-spyre compare --help"),
    ("exec ls", USAGE, "the command stands after --", "debug-spyre exec -- ls"),
    ("exec --", USAGE, "the command stands after --", "debug-spyre exec -- COMMAND"),
    ("exec -- uv run pytest -n 2", USAGE, "the card takes one", ""),
    ("install /nope", ENVIRONMENT, "/nope is not a folder", "debug-spyre install CHECKOUT"),
    # what needs a session, a run, a triage
    ("hypothesis start 9", USAGE, "no session is open here", "debug-spyre investigate"),
    ("revert", USAGE, "no session is open here", "debug-spyre investigate"),
    ("escalate", USAGE, "no session is open here", "debug-spyre investigate"),
    ("finish", USAGE, "no session is open here", "debug-spyre investigate"),
    ("status --session nope", USAGE, "no session fits 'nope'", "debug-spyre investigate"),
    ("wait r99", USAGE, "there is no run r99", "debug-spyre status"),
    ("open", USAGE, "no triage in this checkout yet", "debug-spyre triage"),
    ("repro --run r9", USAGE, "unrecognized arguments: --run r9", "debug-spyre repro --help"),
    ("op", USAGE, "op needs a name", "debug-spyre op aten.mm"),
]  # fmt: skip

# Typed in a session that was just opened on one test.
INSIDE = [
    ("hypothesis start 9", USAGE, "there is no row 9: the queue has no rows", "debug-spyre hypothesis list"),
    ("hypothesis drop 1", USAGE, "a row is dropped by its number, with a reason", "debug-spyre hypothesis drop 1 REASON"),
    ("hypothesis drop 1 2 because", USAGE, "there is no row 1", "debug-spyre hypothesis list"),
    ("hypothesis conclude 1 confirmd yes", USAGE, "did you mean confirmed?", ""),
    ("cluster add tests/test_a.py::test_zzz --reason x", USAGE, "tests/test_a.py defines no test_zzz", "tests"),
    ("cluster add tests/test_z.py::test_b --reason x", USAGE, "there is no file tests/test_z.py; near: tests/test_a.py", ""),
    ("cluster add tests/test_a.py::test_b", USAGE, "required: --reason", "debug-spyre cluster add --help"),
    ("cluster probe tests/test_a.py::test_c", USAGE, "is no member of this cluster", "debug-spyre cluster list"),
    ("note finding", USAGE, "the note has no text", "debug-spyre note finding 'TEXT'"),
    ("close resolved", NO, "the members were not run before the fix", "debug-spyre validate"),
    ("close blocked --next later", NO, "says too little", "debug-spyre close blocked --next TEXT"),
    ("reopen", USAGE, "required: reason", "debug-spyre reopen --help"),
    ("reopen because", NO, "is open", ""),
    ("repro", NO, "no run of this session kept a failure to reproduce", "debug-spyre run --as baseline"),
    ("escalate", NO, "an escalation needs", "debug-spyre run --as baseline"),
    ("finish", NO, "nothing was changed", "debug-spyre close blocked --next TEXT"),
    ("validate", NO, "measurements before the fix are missing", "debug-spyre run --as baseline --members"),
    ("open again --members tests/test_a.py::test_b --cluster c1", USAGE, "one of them", ""),
]  # fmt: skip


def named(rows):
    return [pytest.param(*row, id=row[0]) for row in rows]


def check(ds, typed, status, sentence, following):
    done = ds(*typed.split(), stdin="", status=status)
    said = done.stdout + done.stderr
    assert sentence in said, said
    assert following in said, said
    assert len(done.stderr.splitlines()) <= 9


@pytest.mark.parametrize(("typed", "status", "sentence", "following"), named(BEFORE))
def test_a_mistake_without_a_session(ds, typed, status, sentence, following):
    check(ds, typed, status, sentence, following)


@pytest.mark.parametrize(("typed", "status", "sentence", "following"), named(INSIDE))
def test_a_mistake_in_a_session(ds, typed, status, sentence, following):
    ds("open", "oops", "--members", NODE)
    check(ds, typed, status, sentence, following)


@pytest.mark.parametrize(
    "typed", ["statsu", "close", "close done", "status", "triage --from nope.log", "run tests/no.py"]
)
def test_a_mistake_under_json_is_json_with_what_and_next(ds, typed):
    words = [*typed.split(), "--json"]
    done = ds(*words, status=BAD if "--from" in words else USAGE)
    error = json.loads(done.stdout)["error"]
    assert set(error) == {"what", "details", "next", "status"}
    assert error["status"] == done.returncode and error["what"] in done.stderr


def test_json_of_a_command_behind_the_dashes_is_not_ours(ds):
    assert ds("exec", "ls", "--", "x", "--json", status=USAGE).stdout == ""


def test_a_session_opened_by_mistake_is_closed_with_what_the_hint_says(ds):
    ds("open", "oops", "--members", NODE)
    hint = ds("discard", status=USAGE).stderr.splitlines()[1].partition("next: debug-spyre ")[2]
    words = hint.split(" '")
    closed = ds(*words[0].split(), words[1].rstrip("'"))
    assert "blocked" in closed.stdout


def test_a_test_that_only_a_plugin_or_a_class_knows_is_left_to_pytest(ds, checkout):
    (checkout / "tests/test_k.py").write_text(
        "class TestK:\n    def test_m(self): pass\n\nglobals()['test_made'] = lambda: None\n"
    )
    for node in ("tests/test_k.py::TestK::test_m", "tests/test_k.py::test_made"):
        assert "1 passed" in ds("run", node).stdout


def test_parameters_that_do_not_exist_are_not_said_to_be_a_missing_test(ds, checkout):
    (checkout / "tests/test_p.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', [1])\ndef test_p(n): pass\n"
    )
    said = ds("run", "tests/test_p.py::test_p[2]", status=4).stdout
    assert "it may be the parameters in brackets" in said


def test_nothing_is_coloured_and_nothing_overflows_on_a_dumb_narrow_terminal(ds):
    done = ds("--help", TERM="dumb", COLUMNS="40")
    assert "\x1b" not in done.stdout + done.stderr
    done = ds("triage", "tests", TERM="dumb", COLUMNS="40")
    assert "\x1b" not in done.stdout + done.stderr


def test_a_count_is_said_in_words_and_not_with_brackets(ds):
    assert "1 member," in ds("open", "one", "--members", NODE).stdout


def test_a_sweep_of_an_op_that_does_not_exist_claims_nothing(ds):
    done = ds("sweep", "aten.menn.dim", status=BAD)
    assert (
        "is wrong" not in done.stdout
        and "can't be called" in done.stderr
        and "debug-spyre op aten.menn.dim" in done.stderr
    )
