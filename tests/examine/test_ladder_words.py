"""Where a failure enters, from what the rungs showed."""

import pytest

from debug_spyre.examine.shadow_report import RUNGS, Step, conclusion, ladder_lines


def climbed(**showed):
    every = {rung.name: "mismatch" for rung in RUNGS} | {
        name.replace("_", "-"): word for name, word in showed.items() if name != "aot_eager"
    }
    if "aot_eager" in showed:
        every["aot_eager"] = showed["aot_eager"]
    return {
        name: Step(name, word, 0 if word == "passed" else 1, 1, f"r{n}") for n, (name, word) in enumerate(every.items())
    }


@pytest.mark.parametrize(
    ("showed", "words"),
    [
        ({}, "op by op"),
        ({"op_by_op": "passed"}, "enters with tracing"),
        ({"op_by_op": "passed", "eager": "passed"}, "aot_eager"),
        ({"op_by_op": "passed", "eager": "passed", "aot_eager": "passed"}, "backend's own compiler"),
        ({"caches_off": "passed"}, "stale compiled artefact"),
        ({"one_core": "passed"}, "division of work"),
        ({"logging": "passed"}, "timing"),
        ({"no-pool-planning": "passed"}, "planner of the card's memory"),
        ({"validators": "passed"}, "checks of every pass"),
        ({"no-lx-planning": "passed"}, "planner of the cores' scratchpads"),
        ({"as_is": "passed"}, "does not fail as it is"),
        ({"as_is": "unknown"}, "not known"),
        ({"op_by_op": "passed", "eager": "unknown", "aot_eager": "passed"}, "not decided"),
        ({"op_by_op": "crash"}, "crash and mismatch"),
    ],
)
def test_where_it_enters(showed, words):
    assert words in conclusion(climbed(**showed))


def test_unknown_is_not_pass():
    assert climbed(eager="unknown")["eager"].fails is None


def test_a_line_for_every_rung():
    lines = ladder_lines(climbed())
    assert len(lines) == len(RUNGS) + 1
    assert all(any(rung.name in line for line in lines) for rung in RUNGS)


def test_a_rung_that_was_left_out_did_not_fail_to_answer():
    steps = {name: step for name, step in climbed().items() if name in {"as-is", "eager"}}
    assert conclusion(steps) == "not decided: op-by-op, aot_eager not run"
    silent = climbed(op_by_op="unknown")
    del silent["aot_eager"]
    assert conclusion(silent) == "not decided: op-by-op gave no answer; aot_eager not run"


def erring(**errors):
    """Every rung fails with an error; the words of some."""
    steps = climbed(
        **dict.fromkeys(("as_is", "op_by_op", "eager", "aot_eager", "caches_off", "one_core", "logging"), "error")
    )
    named = {name.replace("_", "-") if name != "aot_eager" else name: words for name, words in errors.items()}
    return {
        name: Step(name, "error", 1, 1, s.run, named.get(name, "no layout"), named.get(name, "no layout"))
        for name, s in steps.items()
    }


def test_one_error_on_every_rung_is_one_failure():
    assert conclusion(erring()).startswith("it shows op by op")


@pytest.mark.parametrize("rung", ["op_by_op", "eager", "aot_eager"])
def test_a_rung_that_fails_with_another_error_decides_nothing(rung):
    said = conclusion(erring(**{rung: "stick-aligned storage_offset"}))
    assert said.startswith("not decided: ") and "stick-aligned storage_offset" in said
    assert "one op's own kernel" not in said


def test_a_switch_that_gives_another_error_is_said_and_the_rest_decides():
    said = conclusion(erring(logging="device busy"))
    assert said.startswith("it shows op by op") and "with another error on logging" in said


def test_a_mismatch_and_an_error_are_told_as_before():
    steps = climbed(op_by_op="crash")
    steps["op-by-op"] = Step("op-by-op", "crash", 1, 1, "r1", "abort", "v1|crash|abort")
    assert "crash and mismatch" in conclusion(steps)
