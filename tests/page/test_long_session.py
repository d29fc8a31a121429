"""A session of thousands of experiments: the page stays small, the rest lies beside it, and recording costs what it did."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bench.verbs import session_of
from tests.page.strict import Page, check

from debug_spyre.page.io import page
from debug_spyre.page.page_context import OLDER
from debug_spyre.session import events as ev
from debug_spyre.session.io import checkpoint
from debug_spyre.session.io.workspace import Folder, session_folders

MANY = 5000
SCRIPTS = Path(page.__file__).parents[3]


@pytest.fixture(scope="module")
def long_session(tmp_path_factory):
    """A checkout whose session has 5,000 rows with a run each, one of them confirmed early, and noted experiments."""
    checkout = tmp_path_factory.mktemp("long")
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    session_of(MANY, checkout)
    folder = session_folders(checkout / ".claude/skills/debug-spyre/logs")[0]
    hand = [ev.ExperimentNoted(text=f"by hand {n} <b>", hypothesis=n, command="c") for n in range(1, 4)]
    folder.journal.record(
        lambda _: [
            *hand,
            ev.HypothesisAdded(number=MANY + 1, text="open </script>", test="t"),
            ev.HypothesisConcluded(number=7, verdict="confirmed", sentence="password=hunter2x3", runs=("r7",)),
        ]
    )
    return checkout, folder


def test_the_page_is_small_and_every_row_and_run_is_on_it_or_in_the_file_beside_it(long_session):
    _, folder = long_session
    html = page.render(folder).read_text()
    rest = (folder.path / OLDER).read_text()
    assert len(html.encode()) <= 1_000_000
    here, there = (set(re.findall(r'id="([hrn]\d+)"', text)) for text in (html, rest))
    wanted = {f"{letter}{n}" for letter in "hr" for n in range(1, MANY + 1)} | {f"h{MANY + 1}", "n1", "n2", "n3"}
    assert here | there == wanted
    assert not here & there
    assert {"h7", f"h{MANY + 1}", f"h{MANY}", f"r{MANY}", "n3"} <= here, "confirmed and open rows, and the newest, stay"
    assert "r1" in there


def test_links_to_what_is_left_out_lead_into_the_file_and_back(long_session):
    _, folder = long_session
    html = page.render(folder).read_text()
    rest = (folder.path / OLDER).read_text()
    there = set(re.findall(r'id="([^"]+)"', rest))
    leading = set(re.findall(rf'href="{folder.stem}/{OLDER}#([^"]+)"', html))
    assert "r7" in leading, "the confirmed row's run is old"
    assert leading <= there
    assert f'href="../{folder.stem}.html"' in rest
    here = set(re.findall(r'id="([^"]+)"', html))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= here


def test_the_file_is_escaped_masked_and_well_formed(long_session):
    _, folder = long_session
    page.render(folder)
    rest = (folder.path / OLDER).read_text()
    assert "hunter2x3" not in rest + folder.html.read_text() + folder.markdown.read_text()
    assert "by hand 1 <b>" not in rest
    assert Page(rest).faults == []
    check(folder.html.read_text())


def test_a_short_session_has_no_such_file(tmp_path):
    session_of(100, tmp_path)
    folder = session_folders(tmp_path / ".claude/skills/debug-spyre/logs")[0]
    html = page.render(folder).read_text()
    assert not (folder.path / OLDER).exists()
    assert OLDER not in html + folder.markdown.read_text()


def seconds_of(checkout, *words):
    """Processor seconds of a whole call; the machine's load counts less than in a clock's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "debug_spyre", *words], cwd=checkout, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS), "DEBUG_SPYRE_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_verb_that_records_costs_at_5000_experiments_about_what_it_costs_at_100(long_session, tmp_path):
    """The difference is reading the kept state: 0.1 s of processor here, 4.4 s when the journal was replayed."""
    checkout, folder = long_session
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    session_of(100, tmp_path)
    page.render(folder)
    folder.journal.keep_state()
    assert (folder.path / checkpoint.NAME).exists()
    number = len(folder.journal.now().hypotheses)
    calls = (
        ("hypothesis", "add", "one more", "--test", "t"),
        ("hypothesis", "drop", "{}", "not needed"),
        ("note", "finding", "x"),
        ("note", "experiment", "x", "--hypothesis", "1"),
        ("cluster", "probe", "tests/test_a.py::test_b[3]"),
    )
    for call in calls:
        long = min(seconds_of(checkout, *(w.format(number + 1 + i) for w in _fresh(call, i))) for i in range(2))
        short = min(seconds_of(tmp_path, *(w.format(101 + i) for w in _fresh(call, i))) for i in range(2))
        assert long - short <= 0.3, (call, long, short)


def _fresh(call, i):
    return tuple(f"{word} {i}" if word == "one more" else word for word in call)


def test_without_a_kept_state_a_verb_gives_the_same_answer(long_session):
    _, folder = long_session
    folder.journal.keep_state()
    kept = folder.journal.now()
    (folder.path / checkpoint.NAME).unlink(missing_ok=True)
    assert folder.journal.now() == kept == Folder(folder.path).journal.now()
