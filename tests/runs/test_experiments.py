"""Ready experiments: again and again, each alone, alone against the matrix with the spoiler found, an empty cache."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debug_spyre.runs.run_words import Seen, Spoilers, alone_against, isolated, repeated, smallest
from debug_spyre.vocabulary.evidence import Outcome

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
STATE = """
import pytest
seen = []
@pytest.mark.parametrize("n", range(4))
def test_before(n):
    seen.append(n)
def test_spoiled():
    assert 2 not in seen, "3 elements exceed atol=1"
def test_always_bad():
    assert False
"""


def table(place):
    return json.loads(next(place.logs.rglob("series.json")).read_text())


def test_alone_against_the_matrix_flags_what_changes_and_finds_the_spoiler(place):
    place.write("test it.py", STATE)
    done = place.json("run", "--alone", "test it.py")
    assert done["status"] == "failed" and done["status_of_process"] == 1
    assert {f["nodeid"] for f in done["failures"]} == {"test it.py::test_spoiled", "test it.py::test_always_bad"}
    made = table(place)
    assert made["data"]["carry_over"] == ["test it.py::test_spoiled"]
    row = next(r for r in made["data"]["rows"] if r["nodeid"] == "test it.py::test_spoiled")
    assert row["spoilers"] == ["test it.py::test_before[2]"] and row["minimal"] is True
    report = place.events("report_made")[0]
    assert report["verb"] == "run --alone" and any(
        "spoiled by test it.py::test_before[2]" in x for x in report["lines"]
    )
    assert len(place.events("run_finished")) == 1, "one job, one hold of the lock"


@pytest.mark.parametrize(("tries", "words"), [(1, "(1 try)"), (2, "(2 tries)")])
def test_one_try_is_said_as_one(tries, words):
    found = {"t::b": Spoilers(("t::a",), shown=True, complete=True, tries=tries)}
    lines, _ = alone_against({"t::b": Seen(Outcome.FAILED)}, {"t::b": Seen(Outcome.PASSED)}, found)
    assert any(line.endswith(f"spoiled by t::a {words}") for line in lines)


def test_what_spoiled_one_test_is_tried_first_for_the_next(place):
    """Eleven tests behind one spoiler took a search each: more than ten minutes where two processes a test are enough."""
    place.write("test_it.py", STATE.replace("def test_always_bad():\n    assert False\n", "".join(
        f"def test_spoiled_{n}():\n    assert 2 not in seen, '3 elements exceed atol=1'\n" for n in range(6))))  # fmt: skip
    place.call("run", "--alone", "test_it.py")
    rows = {r["nodeid"]: r for r in table(place)["data"]["rows"] if r.get("spoilers")}
    assert len(rows) == 7
    assert all(row["spoilers"] == ["test_it.py::test_before[2]"] and row["minimal"] for row in rows.values())
    told = place.events("report_made")[0]["lines"]
    assert len(told) == 10 and "more lines at the end of the output" in told[-1]
    whole, alone = 1, 7
    assert len(list(next(place.logs.rglob("parts")).iterdir())) <= whole + alone + 5 + 6


def test_a_series_says_which_of_its_processes_runs(place):
    place.write("test_it.py", "import time\ndef test_slow(): time.sleep(1.5)\n")
    begun = place.call("run", "--repeat", "3", "test_it.py", "--foreground", "4", env={"CLAUDECODE": "1"})
    assert begun.returncode == 79
    assert "of the series" in begun.stdout
    assert place.call("stop").returncode == 0


def test_isolate_runs_each_test_in_a_process_of_its_own(place):
    place.write("test_it.py", STATE)
    first = place.json("run", "test_it.py")
    stem = os.path.basename(os.path.dirname(first["output"]))
    done = place.json("run", "--isolate", "test_it.py", "--session", stem)
    assert done["counts"]["failed"] == 1 and done["scope"]["collected"] == 6
    assert table(place)["data"]["carry_over"] == ["test_it.py::test_spoiled"]


def test_repeat_tells_the_deterministic_from_the_wavering(place):
    place.write("test_it.py", """
        import pathlib
        def test_steady(): pass
        def test_wavers():
            mark = pathlib.Path(__file__).with_name("count")
            n = int(mark.read_text()) if mark.exists() else 0
            mark.write_text(str(n + 1))
            assert n % 2
    """.replace("\n        ", "\n"))  # fmt: skip
    done = place.json("run", "--repeat", "3", "test_it.py")
    assert done["status"] == "failed"
    rows = {r["nodeid"]: r["outcomes"] for r in table(place)["data"]["rows"]}
    assert rows["test_it.py::test_steady"] == ["passed"] * 3
    assert rows["test_it.py::test_wavers"] == ["failed", "passed", "failed"]
    assert table(place)["data"]["deterministic"] is False


@pytest.mark.parametrize("words", [["--repeat", "2"], ["--alone"]], ids=["repeat", "alone"])
def test_a_crash_under_an_experiment_is_no_selection_of_nothing(place, words):
    place.write("test_it.py", "import os\ndef test_dies(): os.kill(os.getpid(), 11)\n")
    done = place.json("run", *words, "test_it.py")
    assert done["status_of_process"] == 128 + 11
    assert done["status"] == "error" and done["valid"]
    assert not any("nothing was selected" in w for w in done["warnings"])
    assert done["failures"][0]["kind"] == "crash"


def test_a_fresh_cache_is_a_folder_of_its_own(place):
    """The cache of compiled kernels too, wherever the caller's own variables keep it."""
    place.write(
        "test_it.py",
        "import os\ndef test_it(): print({k: v for k, v in os.environ.items() if 'CACHE_DIR' in k}); assert 0\n",
    )
    shared = {
        "SPYRE_KERNEL_CACHE_DIR": str(place.checkout / "shared"),
        "TORCHINDUCTOR_CACHE_DIR": str(place.checkout / "mine"),
    }
    one = place.json("run", "--fresh-cache", "test_it.py", env=shared)
    given, seen = place.events("run_started")[0]["env"], open(one["output"]).read()
    for name, other in shared.items():
        assert f"{name}': '{given[name]}'" in seen
        assert not os.path.exists(given[name]) and given[name] != other


def test_repeat_once_repeats_nothing(place):
    assert place.call("run", "--repeat", "1", "t.py").returncode == 64


@given(
    st.integers(1, 24).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1, max_size=4)))
)
@settings(max_examples=150 * FUZZ, deadline=None)
def test_property_the_search_ends_in_a_set_that_spoils_and_from_which_nothing_can_go(case):
    size, guilty = case
    tests = [str(n) for n in range(size)]
    found = smallest(tests, lambda chosen: {str(n) for n in guilty} <= set(chosen), budget=10_000)
    assert found.shown and found.complete and found.tests == tuple(str(n) for n in sorted(guilty))


@given(st.integers(1, 60), st.integers(0, 12))
@settings(max_examples=60 * FUZZ, deadline=None)
def test_property_the_budget_is_kept_and_an_unfinished_search_says_so(size, budget):
    asked = []
    guilty = {"0", str(size - 1)}

    def spoils(chosen):
        asked.append(chosen)
        return guilty <= set(chosen)

    found = smallest([str(n) for n in range(size)], spoils, budget=budget)
    assert len(asked) == found.tries <= budget
    assert guilty <= set(found.tests) or not found.shown
    assert not found.complete or set(found.tests) == guilty


def test_tests_that_do_not_spoil_again_are_not_blamed():
    found = smallest(["a", "b"], lambda _: False, budget=9)
    assert found.tests == () and not found.shown


def test_an_experiment_that_saw_no_test_says_nothing():
    for lines, data in (repeated([{}, {}]), isolated({}, {}), alone_against({}, {}, {})):
        assert lines[-1] == "no test ran: this says nothing"
        assert data.get("deterministic") is not True


def test_other_figures_alone_and_in_the_matrix_are_told_apart_from_no_difference():
    bad, other = Seen(Outcome.FAILED, "1/2, 2.35"), Seen(Outcome.FAILED, "1/2, 63616")
    assert "never compare magnitudes" in alone_against({"t": bad}, {"t": other}, {})[0][-1]
    assert "do not depend" in alone_against({"t": bad}, {"t": bad}, {})[0][-1]
