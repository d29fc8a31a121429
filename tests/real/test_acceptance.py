"""doctor --acceptance on the real package."""


def test_every_check_answers(bench):
    told = bench.json("doctor", "--acceptance", "--minutes", "14")
    answers = {row["check"]: row["answer"] for row in told["checks"]}
    held = {
        "who-holds",
        "second-process",
        "number-format",
        "dispatch-mode",
        "layout-after-module-to",
        "missing-kernel",
        "ffdc",
        "fork-before-backend",
    }
    assert {name for name in held if answers[name] != "held"} == set(), told["checks"]
    # torch-spyre marks a child that was forked after its import: it gets no runtime, and debug-spyre makes no such child
    why = next(row["why"] for row in told["checks"] if row["check"] == "fork-before-backend")
    assert "one that was forked after the backend's import did not" in why
