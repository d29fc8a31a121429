"""`make demo`: the main job, made once for all of these tests; what stands on its pages is what the runs gave."""

import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTIONS = [
    "Session summary",
    "Hypothesis queue",
    "Experiment log",
    "Cluster validation",
    "Key findings",
    "Next actions",
]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Text(HTMLParser):
    """Visible text and headings of a page."""

    def __init__(self):
        super().__init__()
        self.hidden = 0
        self.text = []
        self.ids = set()
        self.links = []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.add(values.get("id"))
        if tag == "a":
            self.links.append(values.get("href", ""))
        self.hidden += tag in {"script", "style", "template"}

    def handle_endtag(self, tag):
        self.hidden -= tag in {"script", "style", "template"}

    def handle_data(self, data):
        if not self.hidden:
            self.text.append(data)


def read(path):
    page = Text()
    page.feed(Path(path).read_text(encoding="utf-8"))
    page.words = " ".join(" ".join(page.text).split())
    return page


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    into = tmp_path_factory.mktemp("demo") / "place"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DEBUG_SPYRE_", "SPYRE_SIM", "CLAUDE"))}
    done = subprocess.run(
        [sys.executable, "-m", "debug_spyre", "demo", "--keep", str(into), "--json"],
        capture_output=True,
        text=True,
        env={**env, "PYTHONPATH": str(ROOT / "scripts")},
        cwd=tmp_path_factory.mktemp("elsewhere"),
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout)


def journal_of(page):
    folder = Path(page).with_suffix("")
    return folder, [json.loads(line) for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_demo_prints_the_absolute_paths_of_two_logs_and_the_index(demo):
    for key in ("resolved", "blocked", "index"):
        assert Path(demo[key]).is_absolute()
        assert Path(demo[key]).is_file()


def test_one_cluster_is_resolved_and_the_other_blocked_with_a_next_action(demo):
    _, first = journal_of(demo["resolved"])
    _, second = journal_of(demo["blocked"])
    assert first[-1]["kind"] == second[-1]["kind"] == "session_closed"
    assert (first[-1]["status"], second[-1]["status"]) == ("resolved", "blocked")
    assert all(first[-1][part] for part in ("cause", "wasted", "signal"))
    assert "decide" in second[-1]["next_action"]
    assert {"mismatch", "compile"} == {e[0]["cluster"]["kind"] for e in (first, second)}


def test_some_hypotheses_were_ruled_out(demo):
    _, events = journal_of(demo["resolved"])
    assert {"confirmed", "ruled-out"} <= {e["verdict"] for e in events if e["kind"] == "hypothesis_concluded"}


def test_the_user_s_uncommitted_edit_is_byte_identical_and_nothing_else_is_changed(demo):
    assert demo["untouched"]
    changed = subprocess.run(
        ["git", "-C", demo["checkout"], "status", "--porcelain"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [line for line in changed if ".claude" not in line] == [" M spyre_inference/platform.py"]


@pytest.mark.parametrize("which", ["resolved", "blocked"])
def test_the_pages_show_all_sections_and_their_links_land(demo, which):
    page = read(demo[which])
    places = [page.words.find(section) for section in SECTIONS]
    assert -1 not in places
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids, link
        else:
            assert "://" not in link
            assert (Path(demo[which]).parent / link.split("#")[0]).exists(), link


@pytest.mark.parametrize("which", ["resolved", "blocked"])
def test_the_numbers_on_the_page_equal_those_in_the_results_files(demo, which):
    folder, events = journal_of(demo[which])
    page = read(demo[which])
    baseline = next(e for e in events if e["kind"] == "run_started" and e["name"] == "baseline")
    reports = [json.loads(line) for line in (folder / baseline["results"]).read_text(encoding="utf-8").splitlines()]
    failed = next(r for r in reports if r["e"] == "report" and r["outcome"] == "failed")
    mismatch = failed.get("mismatch")
    if which == "resolved":
        assert re.search(rf"{mismatch['mismatched']} / {mismatch['total']}", page.words)
        assert f"{float(mismatch['max_abs']):.3g}"[:4] in page.words
    else:
        assert "Spyre backend does not support" in failed["text"]
        assert "no supported output layout found" in page.words
    matrix = next(e for e in events if e["kind"] == "run_finished" and e["run"] == "r1")
    ids = {
        json.loads(line)["nodeid"]
        for line in (folder / "runs/r1/results.jsonl").read_text().splitlines()
        if '"call"' in line
    }
    assert matrix["scope"]["collected"] >= len(ids) > 100
    assert f"{matrix['scope']['collected']} tests" in page.words


def test_a_second_render_of_the_same_journal_gives_the_same_bytes(demo):
    before = hashlib.sha256(Path(demo["resolved"]).read_bytes()).hexdigest()
    env = {**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable}
    subprocess.run(
        [ROOT / "scripts/debug-spyre", "render", "--session", Path(demo["resolved"]).stem],
        cwd=demo["checkout"],
        env=env,
        check=True,
        capture_output=True,
    )
    assert hashlib.sha256(Path(demo["resolved"]).read_bytes()).hexdigest() == before
