"""Clusters, separators, probes, slugs, trend and the words for them."""

import itertools
import random
from dataclasses import dataclass

import pytest

from debug_spyre.session.io.workspace import check_slug
from debug_spyre.triage import grouping
from debug_spyre.triage.digest import digest
from debug_spyre.triage.grouping import choose_probe, group
from debug_spyre.triage.nodeids import components, features
from debug_spyre.triage.separators import separators
from debug_spyre.triage.signature import normalise, signature
from debug_spyre.triage.triage_words import (
    cluster_from_json,
    cluster_to_json,
    code,
    escape,
    markdown,
    say,
    trend,
    triage_to_json,
)
from debug_spyre.vocabulary.evidence import Counts, Evidence, Failure, Fallback, Kind, Outcome, Severity, Stage
from debug_spyre.vocabulary.evidence import TestRecord as Record

HOSTILE = "tests/t.py::test_x[</script>|`\"' *_a_* [b](c) \u202e]"


@dataclass(frozen=True)
class SimpleCluster:
    slug: str


def mismatch(nodeid, **more):
    values = {
        "mismatched": 90,
        "total": 100,
        "max_abs": 4.0,
        "max_rel": 9.0,
        "severity": Severity.STRUCTURAL,
        "stage": Stage.CODEGEN,
    }
    return Failure(nodeid=nodeid, phase="call", kind=Kind.MISMATCH, **{**values, **more})


def error(nodeid, cause, **more):
    return Failure(nodeid=nodeid, phase="call", kind=Kind.EXCEPTION, error_class="RuntimeError", cause=cause, **more)


def evidence(failures, passing=(), **more):
    tests = [Record(f.nodeid, Outcome.FAILED) for f in failures if f.nodeid] + [
        Record(n, Outcome.PASSED) for n in passing
    ]
    return Evidence(sources=("log.txt",), counts=Counts(failed=len(failures), passed=len(passing)), complete=True, failures=tuple(failures), tests=tuple(tests), **more)  # fmt: skip


def ids(name, *values):
    return [f"tests/t.py::{name}[{v}]" for v in values]


def test_failures_that_differ_in_shapes_only_are_one_cluster():
    found = group(evidence([mismatch(n) for n in ids("test_a", "64-relu", "128-silu", "7x65")]))
    assert len(found) == 1
    assert len(found[0].nodeids) == 3


def test_severity_and_function_tell_comparisons_apart():
    small = mismatch("tests/t.py::test_a[1]", severity=Severity.ACCUMULATION, max_abs=0.02)
    found = group(evidence([mismatch("tests/t.py::test_a[2]"), small, mismatch("tests/t.py::test_b")]))
    assert sorted(len(c.nodeids) for c in found) == [1, 1, 1]
    assert found[-1].severity is Severity.ACCUMULATION


def test_one_text_in_several_functions_is_one_cluster_and_two_texts_in_one_are_two():
    failures = [error("tests/t.py::test_a", "launch of kernel_3 failed at 0x7f12"), error("tests/u.py::test_b", "launch of kernel_9 failed at 0xffee"), error("tests/t.py::test_c", "no room")]  # fmt: skip
    assert [len(c.nodeids) for c in group(evidence(failures))] == [2, 1]


def test_after_a_crash_a_busy_card_is_folded_under_it_and_before_it_is_not():
    crash = Failure(
        nodeid="tests/t.py::test_a", phase="call", kind=Kind.CRASH, error_class="Aborted", source="l", line=10
    )
    busy = [error(n, "busy", tags=("card-busy",), rule="card-busy", source="l", line=20) for n in ids("test_b", 1, 2)]
    (cluster,) = group(evidence([crash, *busy]))
    assert cluster.nodeids == ("tests/t.py::test_a", *ids("test_b", 1, 2))
    assert cluster.folded == tuple(ids("test_b", 1, 2))
    assert cluster.probe == "tests/t.py::test_a"
    early = [error(f.nodeid, "busy", tags=("card-busy",), rule="card-busy", source="l", line=1) for f in busy]
    assert len(group(evidence([crash, *early]))) == 2


def test_expected_failures_of_the_same_function_are_named_as_hidden():
    failures = [mismatch(n) for n in ids("test_a", 1, 2)]
    found = evidence(failures)
    found = Evidence(**{**{k: getattr(found, k) for k in Evidence.__slots__}, "tests": (*found.tests, Record("tests/t.py::test_a[3]", Outcome.XFAILED), Record("tests/t.py::test_z", Outcome.XFAILED))})  # fmt: skip
    assert group(found)[0].hidden == ("tests/t.py::test_a[3]",)


def test_tensors_without_a_pattern_join_the_one_pattern_of_the_others_but_two_patterns_are_two_causes():
    a, b, c = ids("test_a", 1, 2, 3)
    one = [mismatch(a, pattern="scaled by 1.5 (100 %)"), mismatch(b, pattern="scaled by 1.4 (85 %)"), mismatch(c)]
    assert len(group(evidence(one))) == 1
    two = [mismatch(a, pattern="scaled by 1.5"), mismatch(b, pattern="every 64th column is zero"), mismatch(c)]
    assert len(group(evidence(two))) == 3


def test_clusters_have_names_of_their_own_that_open_takes():
    failures = [
        mismatch("tests/t.py::test_a[1]", pattern="x"),
        mismatch("tests/t.py::test_a[2]", pattern="y"),
        error(HOSTILE, "z"),
        error(None, "q"),
    ]
    slugs = [c.slug for c in group(evidence(failures))]
    assert len(set(slugs)) == 4
    for slug in slugs:
        assert check_slug(slug) == slug


def test_a_number_behind_a_name_does_not_make_it_another_clusters_name():
    named = grouping._with_own_slugs([SimpleCluster("a"), SimpleCluster("a"), SimpleCluster("a-2"), SimpleCluster("a")])
    assert [c.slug for c in named] == ["a", "a-2", "a-2-2", "a-3"]


def test_errors_that_belong_to_no_test_do_not_hide_each_other():
    first = error(None, "INTERNALERROR in the plugin", source="one.log", message="one")
    found = group(evidence([first, error(None, "no driver on this node", source="two.log", message="two")]))
    assert len(found) == 2


def test_any_order_gives_the_same_clusters():
    failures = [mismatch(n) for n in ids("test_a", 1, 2)] + [
        error(n, c) for n, c in zip(ids("test_b", 1, 2, 3), "xxy", strict=True)
    ]
    whole = group(evidence(failures))
    for order in itertools.islice(itertools.permutations(failures), 0, 120, 7):
        assert group(evidence(list(order))) == whole


# separators


def told(failing, passing):
    tests = [Record(n, Outcome.PASSED) for n in passing] + [Record(n, Outcome.FAILED) for n in failing]
    return [s.text for s in separators(failing, tests)]


@pytest.mark.parametrize(
    ("failing", "passing", "want"),
    [
        (("256-relu", "512-silu", "1024-relu"), ("64-relu", "128-silu"), "parameter 1 >= 256"),
        (("1-a", "1-b"), ("2-a", "4-b", "8-a"), "parameter 1 = 1"),
        (("65", "100", "130"), ("64", "128", "256"), "not a multiple of 64"),
        (("decode(q=1,kv=448)", "decode(q=1,kv=449)"), ("decode(q=2,kv=448)", "decode(q=2,kv=449)"), "q = 1"),
        (
            ("8-compilation_STOCK", "16-compilation_STOCK"),
            ("8-compilation_NONE", "16-compilation_NONE"),
            "compilation_STOCK",
        ),
        (("2x64", "3x128", "7x256"), ("2x65", "3x64x2", "1x1"), None),
    ],
)
def test_separators_say_which_value_tells_failing_from_passing(failing, passing, want):
    found = told(ids("test_a", *failing), ids("test_a", *passing))
    assert any(want in text for text in found) if want else not any(">=" in text for text in found), found


def test_a_separator_holds_for_every_failing_and_no_passing_test():
    chance = random.Random(7)
    for _ in range(200):
        values = [f"{chance.choice((1, 2, 32, 64, 65))}-{chance.choice('ab')}" for _ in range(12)]
        names = list(dict.fromkeys(ids("test_a", *values)))
        failing = [n for n in names if chance.random() < 0.5]
        passing = [n for n in names if n not in failing]
        for s in separators(failing, [Record(n, Outcome.PASSED) for n in passing]):
            assert not set(s.failing) & set(s.passing), s
            assert {features(n)[s.parameter] for n in failing}.isdisjoint({features(n)[s.parameter] for n in passing})


def test_two_cases_support_nothing():
    assert told(ids("test_a", 1), ids("test_a", 2)) == []
    assert told(ids("test_a", 1, 2, 3), []) == []
    assert told(ids("test_a", "x", "y", "z"), ids("test_a", "u", "v")) == []


def test_parameters_are_cut_at_the_hyphens_between_them():
    assert components("decode(q=1,kv=-4)-x[a-b]--1-1e-05") == ["decode(q=1,kv=-4)", "x[a-b]", "-1", "1e-05"]
    assert features("t.py::t[i24x8]")["parameter 1 rank"] == 2.0
    assert features("t.py::t[rank3]")["rank"] == 3.0


def test_the_probe_is_the_narrowest():
    assert choose_probe(ids("test_a", "512", "64", "128"), ()) == "tests/t.py::test_a[64]"
    tests = [
        Record(n, Outcome.FAILED, seconds=s) for n, s in zip(ids("test_a", "64-x", "64-y"), (9.0, 1.0), strict=True)
    ]
    assert choose_probe(ids("test_a", "64-x", "64-y"), tests) == "tests/t.py::test_a[64-y]"
    assert choose_probe([], ()) is None


def test_normalising_twice_changes_nothing():
    for text in ("buf12 at /tmp/a/b_ab12cd34 [1, 2] 0xff 1e-05 d0 + 32", "Mod(d1, 71)", HOSTILE):
        assert normalise(normalise(text)) == normalise(text)


def test_signatures_are_versioned():
    assert signature(mismatch("a.py::t")).startswith("v2|mismatch|")


# trend and words


def test_the_trend_tells_new_gone_and_changed():
    before = group(
        evidence([mismatch("tests/t.py::test_a"), error("tests/t.py::test_b", "x"), error("tests/t.py::test_c", "y")])
    )
    now = group(
        evidence(
            [
                mismatch("tests/t.py::test_a"),
                error("tests/t.py::test_b", "another reason"),
                error("tests/t.py::test_d", "z"),
            ]
        )
    )
    found = trend(now, before)
    assert [e["nodeids"] for e in found["new"]] == [["tests/t.py::test_d"]]
    assert [e["nodeids"] for e in found["gone"]] == [["tests/t.py::test_c"]]
    assert [(e["nodeids"], len(e["was"])) for e in found["changed"]] == [(["tests/t.py::test_b"], 1)]
    assert trend(now, now) == {"new": [], "gone": [], "changed": []}


def triage_with(failures, **more):
    from debug_spyre.vocabulary.evidence import Triage

    found = evidence(failures, **more)
    return Triage(found, group(found))


def test_the_words_are_short_and_end_with_what_to_type():
    lines = say(
        triage_with([mismatch(n) for n in ids("test_a", *range(50))]), next_command="debug-spyre open x --cluster c1"
    )
    assert len(lines) <= 8
    assert lines[-1] == "next: debug-spyre open x --cluster c1"


def test_new_fallbacks_stand_out_and_accepted_ones_are_counted():
    fallbacks = (Fallback("aten.sin", "l.py", 3), Fallback("aten.tril", "l.py", 4, accepted="tests/t.py:9"))
    text = "\n".join(say(triage_with([], fallbacks=fallbacks), next_command=""))
    assert "aten.sin at l.py:3" in text
    assert "1 more fallback that the checkout itself accepts" in text
    assert "aten.tril" not in text


def test_markdown_shows_hostile_text_as_text():
    page = markdown(triage_with([error(HOSTILE, "</details><script>alert(1)</script> | `x`")]))
    assert "<script>" not in page
    assert "</details><script" not in page
    rows = [line for line in page.split("\n") if line.startswith("| c1")]
    assert rows[0].replace("\\|", "").count("|") == 7


@pytest.mark.parametrize("text", ["a`b", "``", "`", "plain", "x | y"])
def test_code_in_markdown_cannot_be_left(text):
    shown = code(text)
    fence = shown[: len(shown) - len(shown.lstrip("`"))]
    assert fence and fence not in shown[len(fence) : -len(fence)]
    assert "|" not in shown


def test_escaped_text_has_no_bare_marks():
    assert escape("a|b<c>*d*\nx") == "a\\|b&lt;c&gt;\\*d\\* x"


def test_the_digest_is_the_load_bearing_lines_and_says_what_it_leaves_out():
    failures = [mismatch(n, pattern="every 64th column") for n in ids("test_a", *range(30))]
    lines = digest(evidence(failures, fallbacks=(Fallback("aten.sin", "l.py", 3),)))
    assert len(lines) == 10
    assert "Mismatched elements: 90 / 100 (90.0%)" in lines[0]
    assert "pattern: every 64th column" in lines[0]
    assert "22 more lines" in lines[-1]
    assert all(len(line) <= 200 for line in lines)
    assert digest(evidence([])) == ()


def test_a_cluster_survives_its_json():
    for cluster in group(
        evidence([mismatch(HOSTILE), error(None, "x"), error("tests/t.py::b", "y")], ids("test_x", 1, 2))
    ):
        assert cluster_from_json(cluster_to_json(cluster)) == cluster


def test_the_answers_keys_are_those_of_the_contract():
    data = triage_to_json(triage_with([mismatch("tests/t.py::a")]))
    assert {
        "sources",
        "counts",
        "complete",
        "failures",
        "fallbacks",
        "trend",
        "clusters",
        "unrecognised",
        "warnings",
    } <= set(data)
    assert {"id", "slug", "nodeids", "kind", "stage", "signature", "why", "probe", "separators", "folded"} <= set(
        data["clusters"][0]
    )
    assert {"nodeid", "phase", "kind", "stage", "tags", "severity", "reason", "error_class", "inner_class", "message", "mismatched", "total", "max_abs",
            "max_rel", "innermost_frame", "backend_frame", "source", "line"} <= set(data["failures"][0])  # fmt: skip


# what the passing tests add to the stage


def test_sizes_that_alone_decide_are_no_rounding_but_only_where_passing_tests_are_known():
    failing = [mismatch(n, stage=Stage.NUMERICS) for n in ids("test_a", 256, 512)]
    (cluster,) = group(evidence(failing, ids("test_a", 64, 128)))
    assert cluster.stage is Stage.CODEGEN
    assert "the size decides" in cluster.reason
    assert group(evidence(failing))[0].stage is Stage.NUMERICS
    small = [mismatch(n, stage=Stage.NUMERICS, severity=Severity.ACCUMULATION) for n in ids("test_a", 256, 512)]
    assert group(evidence(small, ids("test_a", 64, 128)))[0].stage is Stage.NUMERICS


def test_a_fallback_that_only_the_failing_tests_have_is_the_stage():
    failing = [mismatch(n) for n in ids("test_a", 1, 2)]
    only = Fallback("aten.slice.Tensor", "l.py", 3, tuple(ids("test_a", 1, 2)))
    (cluster,) = group(evidence(failing, ids("test_b", 1), fallbacks=(only,)))
    assert cluster.stage is Stage.FALLBACK
    assert "aten.slice.Tensor" in cluster.reason
    shared = Fallback("aten.slice.Tensor", "l.py", 3, (*only.nodeids, *ids("test_b", 1)))
    assert group(evidence(failing, ids("test_b", 1), fallbacks=(shared,)))[0].stage is Stage.CODEGEN


def test_the_state_that_a_fault_left_is_folded_under_it_wherever_the_text_shows_it():
    def device(nodeid, cause, line):
        return error(nodeid, cause, tags=("device-error",), rule="ras", key=cause, source="l", line=line)

    left = [device(n, "RAS::STREAM::StreamInErrorState", 3) for n in ids("test_b", 1, 2)]
    fault = device("tests/t.py::test_a", "RAS::COMPUTE::ComputeHardwareError", 90)
    (cluster,) = group(evidence([*left, fault]))
    assert cluster.probe == "tests/t.py::test_a"
    assert len(cluster.folded) == 2


def test_a_wrong_column_is_another_cause_than_a_wrong_result():
    a, b, c = ids("test_a", 1, 2, 3)
    failures = [mismatch(a), mismatch(b, mismatched=30), mismatch(c, mismatched=2, total=1000)]
    assert [len(x.nodeids) for x in group(evidence(failures))] == [2, 1]


def test_surroundings_come_first_only_where_they_spoil_the_run():
    broken = [error(n, "x", stage=Stage.ENVIRONMENT) for n in ids("test_e", 1, 2, 3)]
    wrong = [mismatch("tests/t.py::test_a")]
    assert group(evidence([*broken, *wrong]))[0].stage is Stage.ENVIRONMENT
    many = [mismatch(n) for n in ids("test_a", *range(9))]
    assert group(evidence([*broken, *many]))[-1].stage is Stage.ENVIRONMENT


def test_a_device_error_is_said_by_its_fields():
    cause = (
        '{"code":"0x1","errno":"Device or resource busy","message":"Failed to open","name":"RAS::VFIO::DeviceOpenFail"}'
    )
    (cluster,) = group(evidence([error("tests/t.py::test_a", cause, rule="card-busy")]))
    assert "RAS::VFIO::DeviceOpenFail, Device or resource busy, Failed to open" in cluster.why
    assert "{" not in cluster.why


def test_what_was_folded_carries_the_tag_in_the_answer():
    crash = Failure(
        nodeid="tests/t.py::test_a", phase="call", kind=Kind.CRASH, error_class="Aborted", source="l", line=10
    )
    busy = error("tests/t.py::test_b", "busy", tags=("card-busy",), rule="card-busy", source="l", line=20)
    tags = {f["nodeid"]: f["tags"] for f in triage_to_json(triage_with([crash, busy]))["failures"]}
    assert tags == {"tests/t.py::test_a": [], "tests/t.py::test_b": ["card-busy", "cascade"]}


def test_the_reason_is_that_of_a_member_with_a_pattern_and_names_it():
    told = "in a pattern that chance does not make"
    failures = [
        mismatch("tests/t.py::test_a[256]", pattern="the reference scaled by 1.5", reason=told),
        mismatch("tests/t.py::test_a[1024]", max_abs=9.0, reason="no pattern found"),
    ]
    (cluster,) = group(evidence(failures))
    assert cluster.reason == f"{told}: the reference scaled by 1.5"
