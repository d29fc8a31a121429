"""pytest's arguments: what is refused and with which exact replacement, what is added, what is left alone."""

import shlex

import pytest

from debug_spyre.runs import pytest_words
from debug_spyre.vocabulary.errors import UsageError

KNOWN = (
    "tests/attention/test_a.py::test_decode[decode(q=1,kv=256)]",
    "tests/attention/test_a.py::test_decode[decode(q=1,kv=512)]",
    "tests/attention/test_a.py::test_decode[mixed(decode+prefill)]",
)


def refusal(*args, known=()):
    with pytest.raises(UsageError) as caught:
        pytest_words.check(args, known=known)
    return caught.value


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        (["-n", "4", "tests"], "debug-spyre run tests"),
        (["-n4", "tests", "-x"], "debug-spyre run tests -x"),
        (["tests", "-nauto"], "debug-spyre run tests"),
        (["tests", "--numprocesses=2", "--dist", "loadfile"], "debug-spyre run tests"),
        (["--dist=each", "tests/a b.py"], "debug-spyre run 'tests/a b.py'"),
        (["-p", "xdist", "tests"], "debug-spyre run tests"),
        (["-pxdist.plugin", "tests"], "debug-spyre run tests"),
        (["tests", "--forked"], "debug-spyre run tests"),
    ],
)
def test_several_processes_are_refused_with_the_same_call_without_them(args, kept):
    assert refusal(*args).next == kept


def test_the_fault_is_named_with_the_words_as_they_were_written():
    assert "-n 4" in refusal("-n", "4").what
    assert "--dist=each" in refusal("--dist=each").what


@pytest.mark.parametrize("bad", ["decode(q=1,kv=256)", "a(", "b)", "q=1", "x,y", "a[1]", "a]"])
@pytest.mark.parametrize("written", [lambda k: ["-k", k], lambda k: ["-k" + k], lambda k: ["--keyword=" + k]])
def test_a_keyword_that_pytest_cannot_read_is_refused(bad, written):
    assert bad in refusal("tests", *written(bad)).what


def test_the_remedy_for_a_bad_keyword_is_the_exact_node_ids_where_they_are_known():
    error = refusal("-k", "decode(q=1,kv=256)", "--tb=long", "tests/attention", known=KNOWN)
    assert shlex.split(error.next) == ["debug-spyre", "run", "--tb=long", KNOWN[0]]


def test_alternatives_and_negations_of_a_bad_keyword_are_understood():
    error = refusal("-k", "kv=256 or mixed(", known=KNOWN)
    assert shlex.split(error.next)[2:] == [KNOWN[0], KNOWN[2]]
    error = refusal("-k", "decode(q=1 and not kv=256", known=KNOWN)
    assert shlex.split(error.next)[2:] == [KNOWN[1]]


def test_the_remedy_for_a_bad_keyword_lists_the_ids_where_they_are_unknown():
    assert refusal("-k", "a=b", "tests/x.py").next == "debug-spyre run tests/x.py --collect-only -q"


@pytest.mark.parametrize("words", [["-W", "error::UserWarning"], ["-Werror::UserWarning"], ["-W", "error::Warning"]])
def test_a_blanket_warning_filter_is_refused_for_the_exact_one(words):
    assert refusal(*words, "tests").next == "debug-spyre run --fallback-as-error tests"


@pytest.mark.parametrize(
    "args",
    [
        ["tests/a.py::test_b[decode(q=1,kv=256)]"],
        ["-k", "rms and not wide", "tests"],
        ["-W", "error::torch_spyre.ops.fallbacks.FallbackWarning"],
        ["-W", "error::DeprecationWarning"],
        ["-W", "ignore::UserWarning"],
        ["-m", "upstream", "-vv", "-rA", "--maxfail=2"],
        ["-p", "no:cacheprovider"],
        ["--deselect", "tests/a.py::test_n[-n 4]", "tests"],
        ["--", "-n"],
        [],
    ],
)
def test_ordinary_words_pass(args):
    pytest_words.check(args)


def test_what_the_mission_always_wants_is_added_unless_given():
    assert pytest_words.completed(["tests"], tb="short") == ("-m", "not upstream", "--tb=short", "tests")
    assert pytest_words.completed(["-m", "upstream", "--tb=line"], tb="long") == ("-m", "upstream", "--tb=line")
    assert pytest_words.completed(["-mupstream"], tb="long") == ("--tb=long", "-mupstream")


def test_selections_are_told_from_the_values_of_options():
    args = ["-k", "rms", "tests/a b.py::t[x::y]", "--tb", "long", "-W", "error::X", "--deselect=z", "tests/ü.py"]
    assert pytest_words.selections(args) == ("tests/a b.py::t[x::y]", "tests/ü.py")


def test_only_options_that_change_behaviour_belong_to_the_scope():
    args = ["-v", "-rA", "--tb=long", "-m", "not upstream", "tests", "-vvs", "-p", "debug_spyre_shadow"]
    assert pytest_words.options(args) == ()
    assert pytest_words.options(["-x", "--upstream", "-W", "error::X", "-p", "no:randomly"]) == (
        "--upstream",
        "-W=error::X",
        "-p=no:randomly",
        "-x",
    )
