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
    }
    assert {name for name in held if answers[name] != "held"} == set(), told["checks"]
    # a child that was forked after the import finds no runtime: the package marks it as forked
    assert answers["fork-after-import"] == "differs"
