"""The queue: its order, what may start, what a verdict needs, and the starter set that evidence supports."""

import pytest
from tests.gate.conftest import Story

from debug_spyre.queue import queue_rules
from debug_spyre.queue.seed_rules import seeds
from debug_spyre.queue.seeds import Situation
from debug_spyre.session import events as ev
from debug_spyre.vocabulary.errors import RefusedError, UsageError
from debug_spyre.vocabulary.evidence import Evidence, Failure, Fallback, Kind, Outcome, Severity, Stage, TestRecord

PROBE = "tests/test_rms.py::test_rms[hidden(256)]"


def added(story, text="h", **kw):
    number = sum(e.kind == "hypothesis_added" for e in story.events) + 1
    story.add(ev.HypothesisAdded(number=number, text=text, test="c", **kw))
    return number


def test_confident_and_cheap_first_then_cheap_then_code_changes_and_full_runs():
    story = Story()
    added(story, "full", test_class="full-run", confidence="high", cost_seconds=10)
    added(story, "change", test_class="code-change", confidence="high", cost_seconds=1)
    added(story, "low", confidence="low", cost_seconds=1)
    added(story, "slow", confidence="high", cost_seconds=61)
    added(story, "as long as a full run", confidence="high", cost_seconds=181)
    added(story, "best", confidence="high", cost_seconds=60)
    added(story, "medium", cost_seconds=2)
    found = [h.text for h in queue_rules.in_order(story.session.hypotheses)]
    assert found == ["best", "slow", "medium", "low", "change", "full", "as long as a full run"]


def test_ties_go_to_the_row_that_the_baseline_supports():
    story = Story()
    added(story, "bare", cost_seconds=5)
    added(story, "supported", cost_seconds=5, reason="FallbackWarning")
    assert queue_rules.in_order(story.session.hypotheses)[0].text == "supported"


def test_the_row_in_progress_stands_first_and_concluded_ones_last():
    story = Story()
    story.row("ruled-out"), story.row("queued"), story.row("in-progress")
    assert [h.number for h in queue_rules.in_order(story.session.hypotheses)] == [3, 2, 1]


def test_nothing_starts_before_a_baseline_that_counts():
    story = Story()
    added(story)
    row = story.session.hypothesis(1)
    with pytest.raises(RefusedError, match="baseline") as refused:
        queue_rules.check_start(story.session, row)
    assert "run --as baseline" in refused.value.next
    story.run("full-matrix", {"t::a": "failed"})
    with pytest.raises(RefusedError, match="baseline"):
        queue_rules.check_start(story.session, row)
    story.run("baseline", {"t::a": "failed"}, valid=False)
    with pytest.raises(RefusedError, match="baseline"):
        queue_rules.check_start(story.session, row)
    story.run("baseline", {"t::a": "failed"}, members_only=False)
    queue_rules.check_start(story.session, row)


def test_one_row_at_a_time_and_a_verdict_stands():
    story = Story()
    story.run("baseline", {"t::a": "failed"})
    story.row("in-progress"), story.row("queued"), story.row("confirmed"), story.row("inconclusive")
    for number in (1, 2):
        with pytest.raises(RefusedError):
            queue_rules.check_start(story.session, story.session.hypothesis(number))
    story.add(ev.HypothesisDropped(number=1, reason="r"))
    queue_rules.check_start(story.session, story.session.hypothesis(2))
    queue_rules.check_start(story.session, story.session.hypothesis(4))
    with pytest.raises(RefusedError):
        queue_rules.check_start(story.session, story.session.hypothesis(3))


def conclude(story, number=1, named=()):
    session = story.session
    return queue_rules.check_conclude(session, queue_rules.row_of(session, number), named)


def started():
    story = Story()
    story.run("baseline", {"t::a": "failed"})
    added(story)
    story.add(ev.HypothesisStarted(number=1, command="debug-spyre run t::a"))
    return story


def test_a_verdict_needs_something_that_was_done_since_the_start():
    story = started()
    with pytest.raises(RefusedError, match="nothing was run") as refused:
        conclude(story)
    assert refused.value.next == "debug-spyre run t::a"
    assert conclude(story, named=("r1",)) == ("r1",), "any run of the session may be cited"
    story.run(None, {"t::a": "failed"})
    assert conclude(story) == ("r2",)
    assert conclude(story, named=("r1", "r2")) == ("r1", "r2")


def test_an_invalid_run_or_one_of_another_row_shows_nothing():
    story = started()
    story.run(None, {"t::a": "failed"}, valid=False)
    with pytest.raises(RefusedError, match="nothing was run"):
        conclude(story)


@pytest.mark.parametrize(
    "event",
    [
        ev.ExperimentNoted(text="by hand"),
        ev.ExperimentNoted(text="by hand", hypothesis=1),
        ev.ReportMade(verb="op", lines=("aten.mm: kernel",)),
    ],
)
def test_hand_work_and_reports_count_for_a_verdict(event):
    story = started()
    story.add(event)
    assert conclude(story) == ()


def test_an_invalid_run_can_not_be_cited():
    story = started()
    story.run(None, {"t::a": "failed"}, valid=False)
    with pytest.raises(RefusedError, match="proves nothing"):
        conclude(story, named=("r2",))


def test_a_row_that_an_earlier_run_answers_is_started_and_concluded_by_it():
    story = Story()
    story.run("baseline", {"t::a": "failed"})
    added(story)
    row = story.session.hypothesis(1)
    with pytest.raises(RefusedError, match="no run is named"):
        conclude(story)
    for event in queue_rules.concluding(row, "ruled-out", "it passes", conclude(story, named=("r1",))):
        story.add(event)
    assert (story.session.hypothesis(1).status, story.session.hypothesis(1).runs) == ("ruled-out", ("r1",))
    with pytest.raises(RefusedError, match="ruled-out already"):
        conclude(story, named=("r1",))


@pytest.mark.parametrize("before", ["ruled-out", "confirmed", "dropped"])
def test_a_wrong_verdict_is_taken_back_with_a_reason_and_a_run_and_both_stay_in_the_log(before):
    story = Story()
    story.run("baseline", {"t::a": "failed"})
    story.row(before)
    row = story.session.hypothesis(1)
    with pytest.raises(RefusedError, match="no run is named"):
        queue_rules.check_conclude(story.session, row, (), instead=True)
    runs = queue_rules.check_conclude(story.session, row, ("r1",), instead=True)
    for event in queue_rules.concluding(
        row, "inconclusive", "it needs a second look", runs, instead="r1 ran </b> elsewhere"
    ):
        story.add(event)
    now = story.session.hypothesis(1)
    assert (now.status, now.runs) == ("inconclusive", ("r1",))
    for words in ("it needs a second look", f"before: {before}", "taken back: r1 ran </b> elsewhere"):
        assert words in now.outcome


def test_hand_work_on_another_row_does_not_count():
    story = started()
    story.add(ev.ExperimentNoted(text="by hand", hypothesis=2))
    with pytest.raises(RefusedError, match="nothing was run"):
        conclude(story)


def test_a_run_that_is_none_and_a_row_that_is_none_are_usage():
    story = started()
    story.run(None, {"t::a": "failed"})
    with pytest.raises(UsageError, match="r9"):
        conclude(story, named=("r9",))
    with pytest.raises(UsageError, match="no row 7"):
        conclude(story, number=7)


def test_eleven_lines_are_too_many():
    assert len(queue_rules.check_excerpt(["x"] * 10)) == 10
    with pytest.raises(UsageError, match="at most 10"):
        queue_rules.check_excerpt(["x"] * 11)
    assert len(queue_rules.check_excerpt(["y" * 100_000])[0]) == queue_rules.LINE_WIDTH


def test_the_same_row_is_not_queued_twice_until_it_is_concluded():
    story = Story()
    added(story, "The Layout  is off")
    with pytest.raises(RefusedError, match="row 1"):
        queue_rules.check_new(story.session, "the layout is off")
    queue_rules.check_new(story.session, "the layout is odd")
    story.add(ev.HypothesisDropped(number=1, reason="r"))
    queue_rules.check_new(story.session, "the layout is off")


def test_a_closed_session_takes_no_rows():
    story = Story()
    queue_rules.check_open(story.session)
    story.add(ev.SessionClosed(status="blocked", next_action="x"))
    with pytest.raises(RefusedError) as refused:
        queue_rules.check_open(story.session)
    assert refused.value.next.startswith("debug-spyre reopen")


def test_nothing_explains_only_when_all_are_tested_and_none_is_confirmed():
    story = Story()
    assert not queue_rules.nothing_explains(story.session)
    story.row("ruled-out")
    assert queue_rules.nothing_explains(story.session)
    story.row("queued")
    assert not queue_rules.nothing_explains(story.session)
    story.add(ev.HypothesisDropped(number=2, reason="r"))
    assert queue_rules.nothing_explains(story.session)
    story.row("confirmed")
    assert not queue_rules.nothing_explains(story.session)


# the starter set ----------------------------------------------------------------------------------------------------


def evidence(*failures, fallbacks=(), tests=()):
    return Evidence((), None, True, failures=failures, fallbacks=fallbacks, tests=tests)


def mismatch(**kw):
    return Failure(PROBE, "call", Kind.MISMATCH, **kw)


def proposed(*failures, probe=PROBE, cluster=None, matrix=None, seconds=4.0, fallbacks=(), tests=(), tensors=()):
    situation = Situation(
        evidence(*failures, fallbacks=fallbacks, tests=tests), probe, (probe,), cluster or {}, matrix, seconds, tensors
    )
    return seeds(situation)


def rules(found):
    return {seed.rule for seed in found}


def test_what_nothing_supports_is_not_proposed():
    found = proposed(mismatch(severity=Severity.INCONCLUSIVE))
    assert rules(found) == {"overload", "test", "carry-over"}
    assert {s.confidence for s in found} == {"low"}


FALLBACK = Fallback("spyre.cumsum", "spyre_inference/ops.py", 12, (PROBE,))


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("fallback", {"fallbacks": (FALLBACK,)}),
        ("overload", {"fallbacks": (FALLBACK,)}),
        ("dtype", {"fallbacks": (FALLBACK,)}),
        ("dtype", {"failures": (mismatch(message="expected dtype int64 but got float16"),)}),
        ("layout", {"failures": (mismatch(stage=Stage.LAYOUT),)}),
        ("layout", {"failures": (mismatch(pattern="equal to the reference transposed"),)}),
        ("layout", {"failures": (mismatch(message="tensor must be contiguous"),)}),
        ("shape", {"cluster": {"separators": [{"parameter": "hidden", "text": "all failing have hidden >= 256"}]}}),
        ("shape", {"cluster": {"separators": [{"parameter": "2", "failing": ["256", "320"], "text": "t"}]}}),
        ("wrong-op", {"failures": (mismatch(severity=Severity.STRUCTURAL),)}),
        ("accumulation", {"failures": (mismatch(severity=Severity.ACCUMULATION),)}),
        ("broadcast", {"failures": (mismatch(pattern="every 64th row (period 64), overflow", max_abs=65504.0),)}),
        ("compile", {"failures": (Failure(PROBE, "call", Kind.COMPILE),)}),
        ("card", {"failures": (Failure(PROBE, "setup", Kind.EXCEPTION, tags=("card-busy",)),)}),
        ("card", {"failures": (Failure(PROBE, "call", Kind.TIMEOUT),)}),
    ],
)
def test_each_rule_speaks_up_on_its_evidence_and_is_silent_without(rule, arguments):
    failures = arguments.pop("failures", (mismatch(),))
    found = proposed(*failures, **arguments)
    spoken = [s for s in found if s.rule == rule and s.confidence != "low"]
    assert spoken, rules(found)
    assert all(
        s.reason and s.test.startswith("debug-spyre ") and s.test_class in queue_rules.TEST_CLASSES for s in found
    )
    silent = proposed(mismatch())
    assert not [s for s in silent if s.rule == rule and s.confidence != "low"]


def test_a_parameter_that_is_no_size_is_no_shape():
    separators = [{"parameter": "mode", "failing": ["compilation_STOCK"], "text": "t"}]
    assert "shape" not in rules(proposed(mismatch(), cluster={"separators": separators}))


def test_a_fallback_of_another_test_says_nothing():
    other = Fallback("spyre.cumsum", "spyre_inference/ops.py", 12, ("tests/other.py::t",))
    assert "fallback" not in rules(proposed(mismatch(), fallbacks=(other,)))


@pytest.mark.parametrize(
    ("pattern", "max_abs"), [("every 64th row (period 64)", 3.0), ("overflow in a block", 65504.0), (None, 65504.0)]
)
def test_the_broadcast_diagnostic_needs_a_period_and_an_overflow(pattern, max_abs):
    assert "broadcast" not in rules(proposed(mismatch(pattern=pattern, max_abs=max_abs)))


def test_the_broadcast_row_names_the_diagnostic_and_is_a_code_change():
    found = [s for s in proposed(mismatch(pattern="period 64", max_abs=61000.0)) if s.rule == "broadcast"]
    assert ".expand(...).contiguous()" in found[0].text
    assert found[0].test_class == "code-change"


@pytest.mark.parametrize(
    ("probe", "frame", "expected"),
    [
        (PROBE, None, False),
        (PROBE, "spyre_inference/ops.py:3", False),
        ("tests/test_spyre_attn.py::test_decode[decode(q=1,kv=256)]", None, True),
        (PROBE, "spyre_inference/attention/paged.py:90", True),
    ],
)
def test_the_attention_set_comes_only_where_attention_code_takes_part(probe, frame, expected):
    failure = Failure(probe, "call", Kind.MISMATCH, innermost_frame=frame, message="mask looks wrong")
    found = [s for s in proposed(failure, probe=probe) if s.rule == "attention"]
    assert bool(found) is expected
    if expected:
        assert len(found) == 6
        assert [s.confidence for s in found].count("medium") >= 1


def test_a_test_that_passes_alone_and_fails_in_the_matrix_points_at_carry_over():
    matrix = evidence(mismatch(), tests=(TestRecord(PROBE, Outcome.FAILED),))
    found = proposed(tests=(TestRecord(PROBE, Outcome.PASSED),), matrix=matrix)
    best = next(s for s in found if s.rule == "carry-over")
    assert best.confidence == "high"
    assert found[0] is best
    assert best.test == f"debug-spyre run --alone {PROBE.partition('::')[0]}", "alone it passes with any cache"


def test_other_magnitudes_alone_and_in_the_matrix_point_there_too():
    matrix = evidence(mismatch(max_abs=2.35))
    found = proposed(mismatch(max_abs=63616.0), matrix=matrix)
    assert next(s for s in found if s.rule == "carry-over").confidence == "medium"


def test_the_set_is_ranked_and_what_changes_code_comes_last():
    found = proposed(
        mismatch(pattern="period 64", max_abs=61000.0, severity=Severity.ACCUMULATION),
        fallbacks=(FALLBACK,),
        cluster={"separators": [{"parameter": "hidden", "text": "t"}]},
    )
    assert found[-1].rule in {"broadcast", "shape"}
    assert found[0].confidence == "high"
    assert (found[0].cost_seconds or 0) <= 60


def test_a_hostile_name_stays_one_word_of_the_command(hostile):
    import shlex

    probe = f"tests/t.py::test[{hostile}]"
    failure = Failure(probe, "call", Kind.COMPILE, message=hostile)
    for seed in proposed(failure, probe=probe):
        if seed.rule != "overload":
            assert probe in shlex.split(seed.test), seed.test


def every_seed():
    failures = (
        mismatch(
            pattern="period 64, transposed, overflow", max_abs=61000.0, severity=Severity.ACCUMULATION, stage=Stage.LAYOUT,
            message="dtype int64 in aten.mm.out",
        ),
        Failure(PROBE, "call", Kind.COMPILE, severity=Severity.STRUCTURAL),
        Failure(PROBE, "call", Kind.TIMEOUT, tags=("card-busy",), innermost_frame="attention.py:3"),
    )  # fmt: skip
    separators = [{"parameter": "hidden", "text": "t"}]
    return proposed(*failures, fallbacks=(FALLBACK,), cluster={"separators": separators}, tensors=(("a.npy", "b.npy"),))


def test_every_rule_can_speak_and_every_ready_command_is_one_that_its_verb_takes():
    import shlex
    from argparse import ArgumentParser

    from debug_spyre.queue.seed_rules import RULES
    from debug_spyre.verbs import table

    found = every_seed()
    assert len(rules(found)) == len(RULES)
    for seed in found:
        program, name, *words = shlex.split(seed.test)
        assert program == "debug-spyre"
        verb = table.load(name)
        parser = ArgumentParser(exit_on_error=False)
        verb.add_arguments(parser)
        _, left = parser.parse_known_args(words)
        assert not [word for word in left if word.startswith("--")], seed.test
        assert verb.rest or not left, seed.test


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("spyre::copy_from_d2d of a sliced view requires a stick-aligned storage_offset", "spyre.copy_from_d2d"),
        ("Could not run 'aten::erf.out' with arguments from the 'spyre' backend", "aten.erf.out"),
        ("torch.ops.vllm.spyre_convert failed", "vllm.spyre_convert"),
    ],
)
def test_an_op_keeps_its_namespace(text, op):
    (seed,) = [s for s in proposed(mismatch(message=text)) if s.text.startswith(f"{op} has no kernel")]
    assert seed.test == f"debug-spyre op {op}"


def test_many_overloads_are_told_apart():
    found = proposed(mismatch(message="Could not run 'aten::mm.out' with arguments from the 'spyre' backend"))
    assert any("aten.mm.out" in s.text for s in found)
