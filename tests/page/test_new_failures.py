"""What is a new failure is one question with one answer: the gate's, in the strip, the list, the figures and the picture."""

from dataclasses import replace

import pytest

from debug_spyre.page.io import page
from debug_spyre.runs.transitions import FAILING, new_failures
from debug_spyre.vocabulary.evidence import Evidence, Outcome, TestRecord

FILE = "tests/test_rms_norm.py::test_new"
ABSENT, LOST, PASSES, SKIPPED, OLD = (
    f"{FILE}[{word}]" for word in ("absent", "lost", "passes", "was-skipped", "is-old")
)


def run_of(outcomes, selected=()):
    tests = tuple(TestRecord(n, o) for n, o in outcomes.items())
    return Evidence(sources=(), counts=None, complete=True, tests=tests, selected=tuple(selected))


@pytest.mark.parametrize("now", list(Outcome))
@pytest.mark.parametrize("was", [None, *Outcome])
@pytest.mark.parametrize("selected", [True, False])
def test_a_new_failure_fails_now_and_did_not_before(was, now, selected):
    before = run_of({} if was is None else {ABSENT: was}, [ABSENT] if selected else [])
    unclear = was is Outcome.MISSING or (was is None and selected)
    expected = now in FAILING and was not in FAILING and not unclear
    assert (ABSENT in new_failures(before, run_of({ABSENT: now}))) is expected


def test_without_a_run_before_nothing_is_new():
    after = run_of({ABSENT: Outcome.FAILED})
    assert new_failures(None, after) == new_failures(after, None) == frozenset()


def test_the_page_counts_what_the_gate_counts(story, strict, tmp_path):
    """A test that was not there before counts; one that was selected and has no outcome does not; an old one does not."""
    told = story.Story(tmp_path)
    story.opened(told)
    bad = [(n, Outcome.FAILED) for n in story.members()]
    seen = [(PASSES, Outcome.PASSED), (SKIPPED, Outcome.SKIPPED), (OLD, Outcome.FAILED)]
    before = story.evidence([*bad, *seen], [story.failing(n) for n in story.members()])
    before = replace(before, selected=(*before.selected, LOST))
    fixed = [(n, Outcome.PASSED) for n in story.members()]
    fails = [ABSENT, LOST, PASSES, SKIPPED, OLD]
    after = [story.mismatch(n, 5, 100, 2.0, 1.0) for n in fails]
    told.run("full-matrix", ["pytest"], evidence=before)
    told.run(
        "post-fix-matrix", ["pytest"], evidence=story.evidence([*fixed, *((n, Outcome.FAILED) for n in fails)], after)
    )
    page.render(told.folder)
    html = told.folder.html.read_text(encoding="utf-8")
    facts = strict.check(html).text
    assert facts.count("3 new failures") >= 3 and "4 new failures" not in facts and "5 new failures" not in facts
    listed = html.split('id="v-new"')[1].split("<h3")[0]
    for nodeid, is_new in ((ABSENT, True), (PASSES, True), (SKIPPED, True), (LOST, False), (OLD, False)):
        word = nodeid.partition("[")[2].rstrip("]").rpartition("-")[2]
        assert (word in listed) is is_new, nodeid


def test_a_first_matrix_after_the_fix_has_no_new_failures(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    told.run("post-fix-matrix", ["pytest"], evidence=story.evidence([(ABSENT, Outcome.FAILED)]))
    page.render(told.folder)
    assert 'id="v-new"' not in told.folder.html.read_text(encoding="utf-8")


def test_two_members_that_look_alike_when_masked_keep_their_own_figures(story, strict, tmp_path):
    one, two = (f"tests/test_a.py::test_a[hf_{letter * 20}]" for letter in "ab")
    told = story.Story(tmp_path)
    members = tuple({"nodeid": n, "predicate": {"kind": "fails"}} for n in (one, two))
    story.opened(told, members=members, probe=two, cluster={"id": "c1"})
    failures = [story.mismatch(one, 11, 100, 2.0, 1.0), story.mismatch(two, 77, 100, 3.0, 1.0)]
    ids = [(one, Outcome.FAILED), (two, Outcome.FAILED)]
    told.run("full-matrix", ["pytest"], evidence=story.evidence(ids, failures))
    told.run("post-fix-matrix", ["pytest"], evidence=story.evidence([(one, Outcome.PASSED), (two, Outcome.FAILED)]))
    page.render(told.folder)
    html = told.folder.html.read_text(encoding="utf-8")
    assert "aaaaaaaa" not in html and "bbbbbbbb" not in html
    text = strict.check(html).text
    assert "11 / 100" in text and "77 / 100" in text
    lines = told.folder.markdown.read_text(encoding="utf-8").split("\n## 5.")[1].splitlines()
    rows = [line for line in lines if line.startswith("|") and "test_a[" in line]
    assert len(rows) == 2 and sum("| passed" in row for row in rows) == 1


def test_members_stand_in_the_order_of_their_numbers(story, tmp_path):
    widths = ("1024", "64", "128", "0.5", "0.25", "9" * 5000)
    ids = [f"tests/test_a.py::test_a[w({w})-x]" for w in sorted(widths)]
    told = story.Story(tmp_path)
    members = tuple({"nodeid": n, "predicate": {"kind": "fails"}} for n in ids)
    story.opened(told, members=members, probe=ids[0], cluster={"id": "c1"})
    page.render(told.folder)
    twin = told.folder.markdown.read_text(encoding="utf-8")
    for section in (twin.split("\n## 1.")[1].split("\n## 2.")[0], twin.split("\n## 5.")[1]):
        rows = [line for line in section.splitlines() if line.startswith("|") and "w(" in line]
        found = [row.split("w(")[1].split(")")[0] for row in rows]
        assert found[:5] == ["0.25", "0.5", "64", "128", "1024"]
        assert len(found) == 6
