"""The page shows what was learnt: answers beside their runs, colours by meaning, what waits is no alarm, nothing empty."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from debug_spyre.page.heading import _left
from debug_spyre.page.io import page
from debug_spyre.page.pictures import error_map
from debug_spyre.page.queue_rows import run_word
from debug_spyre.runs.io import child
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import load_session
from debug_spyre.vocabulary.words import RunStatus


@pytest.fixture
def told(story, tmp_path):
    return story.realistic(tmp_path / "logs", ending="investigating")


def html_of(folder):
    page.render(folder)
    return folder.html.read_text(encoding="utf-8")


def test_the_answer_of_a_verb_stands_in_the_entry_of_its_run_and_not_again_below(told):
    run = next(r for r in load_session(told.folder).runs.values() if r.is_finished)
    words = "first op that differs: aten.xyzzy.dim, layers.py:18"
    told.folder.journal.append(ev.ReportMade(verb="shadow", lines=(words, "second line"), run=run.id))
    html = html_of(told.folder)
    entry = html.split(f'<article class="exp" id="{run.id}"')[1].split("</article>")[0]
    assert words in entry and "second line" in entry
    assert html.count(words) == 1
    assert words in told.folder.markdown.read_text(encoding="utf-8")


def test_a_report_without_a_run_stays_among_the_reports(told):
    told.folder.journal.append(ev.ReportMade(verb="compare", lines=("plugh is transposed",)))
    assert "plugh is transposed" in html_of(told.folder).split('id="reports"')[1]


RUN = {
    "verb": "run",
    "name": None,
    "argv": ("python", "x.py"),
    "exit": 0,
    "pytest_args": None,
    "status": RunStatus.PASSED,
}


@pytest.mark.parametrize(
    ("changes", "reported", "css", "text"),
    [
        ({"verb": "repro"}, False, "passed", "shows the fault"),
        ({"verb": "repro", "exit": 3, "status": RunStatus.FAILED}, False, "passed", "does not show it"),
        ({"verb": "repro", "exit": 3, "status": RunStatus.FAILED, "argv": ("python", "repro_control.py")}, False, "passed", "right on the CPU"),
        ({"verb": "repro", "exit": 1, "status": RunStatus.FAILED}, False, "failed", "exit 1"),
        ({"verb": "shadow", "exit": 1, "status": RunStatus.FAILED, "pytest_args": ("tests",)}, True, "passed", "found it"),
        ({"verb": "shadow", "exit": 1, "status": RunStatus.FAILED, "pytest_args": ("tests",)}, False, "failed", "failed"),
        ({"verb": "run", "exit": 1, "status": RunStatus.FAILED, "pytest_args": ("tests",)}, True, "failed", "failed"),
        ({"exit": 3, "status": RunStatus.FAILED}, False, "failed", "exit 3"),
    ],
)  # fmt: skip
def test_a_run_has_the_colour_of_what_it_means(changes, reported, css, text):
    run = SimpleNamespace(id="r1", **(RUN | changes))
    word = run_word(run, {"r1"} if reported else ())
    assert (word.css, word.text) == (css, text)


def test_an_invalid_baseline_is_not_the_state_before_a_fix(told):
    before = html_of(told.folder).count("The state before a fix.")
    told.folder.journal.append_with(
        lambda _: [
            ev.RunStarted(run="r77", verb="run", name="baseline", argv=("pytest",), output="b.txt", pytest_args=("t",)),
            ev.RunFinished(run="r77", status="invalid", valid=False, seconds=1.0, exit=5),
        ]
    )
    assert html_of(told.folder).count("The state before a fix.") == before


def test_what_was_handed_over_is_labelled_and_not_red(story, tmp_path):
    told = story.realistic(tmp_path / "logs", ending="investigating")
    told.folder.journal.append(ev.SessionClosed(status="blocked", next_action="wait", escalated="escalation"))
    head = html_of(told.folder).split("</style>")[1].split('<dl class="facts">')[0]
    assert 'class="st escalated pill"' in head and "n-red" not in head and "escalated" in head
    told = story.realistic(tmp_path / "more", ending="investigating")
    told.folder.journal.append(ev.SessionClosed(status="blocked", next_action="decide"))
    assert 'class="st blocked pill"' in html_of(told.folder)


def test_facts_that_have_nothing_to_say_are_left_out(told):
    facts = html_of(told.folder).split('<dl class="facts">')[1].split("</dl>")[0]
    assert "not run yet" not in facts and "not judged yet" not in facts and "<dt>Status</dt>" in facts


def test_one_element_gets_no_map():
    frame = SimpleNamespace(line=lambda text, most=0: str(text), prose=lambda text, most=0: ())
    one = {"picture": {"rows": 1, "cols": 1, "values": [3]}}
    assert error_map(frame, "", one, 0) is None
    assert error_map(frame, "", {"picture": {"rows": 1, "cols": 2, "values": [3, 0]}}, 0) is not None


@pytest.mark.parametrize(
    ("done", "collected", "seconds", "words"),
    [(10, 40, 20.0, "about 1 min"), (2, 40, 20.0, ""), (40, 40, 20.0, ""), (10, None, 20.0, ""), (None, 40, 20.0, ""), (10, 20, 30.0, "about 30")],
)  # fmt: skip
def test_the_estimate_comes_from_the_tests_that_are_done(done, collected, seconds, words):
    said = _left(SimpleNamespace(done=done, collected=collected), seconds)
    assert said.startswith(words) and bool(said) == bool(words)


def watcher(**changes):
    told = SimpleNamespace(progressed_at=0.0, began=0.0, drawing_took=0.0, told=1, reader=SimpleNamespace(progress=2))
    return SimpleNamespace(**(vars(told) | changes))


@pytest.mark.parametrize(
    ("changes", "now", "due"),
    [
        ({}, 1.9, False),
        ({}, 2.1, True),
        ({"told": 2}, 2.1, False),  # nothing happened
        ({"told": 2}, 30.1, True),
        ({"drawing_took": 0.5}, 9.0, False),  # a page that is slow to draw is drawn less often
        ({"drawing_took": 0.5}, 10.1, True),
        ({"began": -1000.0}, 9.0, False),  # a long run tells less often
    ],
)
def test_the_page_follows_a_run_every_two_seconds_unless_that_costs_too_much(changes, now, due):
    assert child.Child._is_time(watcher(**changes), now) is due


def test_confirmed_rows_stand_first_and_dropped_ones_last(told):
    session = load_session(told.folder)
    from debug_spyre.page.page_context import Frame, Material
    from debug_spyre.page.queue_rows import queue
    from debug_spyre.vocabulary.words import HypothesisStatus as S

    rows = [
        replace(session.hypotheses[0], number=n, status=s)
        for n, s in enumerate((S.DROPPED, S.RULED_OUT, S.CONFIRMED, S.QUEUED), 1)
    ]
    shown = queue(Frame(Material(replace(session, hypotheses=tuple(rows))))).rows
    assert [row.number for row in shown] == [3, 2, 4, 1]
