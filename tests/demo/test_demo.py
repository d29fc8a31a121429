"""`make demo`: from a red matrix to two finished sessions; every sentence about a cause comes from a run."""

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
    "Session summary", "Hypothesis queue", "Experiment log", "Cluster validation", "Key findings", "Next actions",
]  # fmt: skip
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


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


def run_demo(place, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DEBUG_SPYRE_", "SPYRE_SIM", "CLAUDE"))}
    done = subprocess.run(
        [sys.executable, "-m", "debug_spyre", "demo", "--keep", str(place / "place"), *words],
        capture_output=True, text=True, env={**env, "PYTHONPATH": str(ROOT / "scripts")}, cwd=place,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return json.loads(run_demo(tmp_path_factory.mktemp("demo"), "--json").stdout)


def journal_of(page):
    folder = Path(page).with_suffix("")
    return folder, [json.loads(line) for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()]


def test_two_causes_are_found_one_is_resolved_and_one_handed_over(demo):
    by_op = {one["sentence"].split(" ")[0].split(".")[1]: one for one in demo["sessions"]}
    assert set(by_op) == {"mean", "mul"}
    assert by_op["mean"]["status"] == "resolved" and by_op["mul"]["status"] == "blocked"
    assert all(one["claim"] == "cause" for one in demo["sessions"])
    assert Path(by_op["mul"]["issue"]).read_text().splitlines()[0].startswith(f"# {by_op['mul']['sentence'][:80]}")
    for one in demo["sessions"]:
        assert Path(one["log"]).is_absolute() and Path(one["log"]).is_file()
        assert journal_of(one["log"])[1][-1]["kind"] == "session_closed"
    assert Path(demo["index"]).is_file()


def test_another_fault_gives_another_sentence(tmp_path):
    said = run_demo(tmp_path, "--faults", "layout_width:op=mul:multiple=32").stdout
    assert re.search(r"blocked: aten\.mul\S* .*no multiple of 32", said), said[-2500:]
    assert "64" not in re.search(r"blocked: (.*)", said)[1] and "aten.mean" not in said.split("investigate tests")[1]
    assert "The issue for the torch-spyre team" in said and "issue.md" in said
    assert said.count("$ debug-spyre") >= 3  # every step prints what is typed


def test_the_user_s_uncommitted_edit_is_byte_identical_and_only_the_approved_patch_is_added(demo):
    assert demo["untouched"]
    changed = subprocess.run(
        ["git", "-C", demo["checkout"], "status", "--porcelain"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [line for line in changed if ".claude" not in line] == [
        " M spyre_inference/custom_ops/rms_norm.py", " M spyre_inference/platform.py",
    ]  # fmt: skip


def test_the_pages_begin_with_the_cause_show_all_sections_and_their_links_land(demo):
    for one in demo["sessions"]:
        page = read(one["log"])
        assert page.words.find(one["sentence"][:60]) < page.words.find("Session summary")
        assert -1 not in [page.words.find(section) for section in SECTIONS]
        assert Path(one["log"]).stat().st_size <= 200_000
        for link in page.links:
            if link.startswith("#"):
                assert link[1:] in page.ids, link
            else:
                assert "://" not in link
                assert (Path(one["log"]).parent / link.split("#")[0]).exists(), link


def test_the_numbers_on_the_page_equal_those_in_the_results_files(demo):
    for one in demo["sessions"]:
        folder, events = journal_of(one["log"])
        page = read(one["log"])
        baseline = next(e for e in events if e["kind"] == "run_started" and e["name"] == "baseline")
        reports = [json.loads(line) for line in (folder / baseline["results"]).read_text(encoding="utf-8").splitlines()]
        failed = next(r for r in reports if r["e"] == "report" and r["outcome"] == "failed")
        mismatch = failed.get("mismatch")
        if mismatch:
            assert f"{mismatch['mismatched']:,} / {mismatch['total']:,}" in page.words
        else:
            assert "Spyre backend does not support" in failed["text"] and "no supported output layout" in page.words
        matrix = next(e for e in events if e["kind"] == "run_started" and e["name"] == "full-matrix")
        end = next(e for e in events if e["kind"] == "run_finished" and e["run"] == matrix["run"])
        assert f"{end['scope']['collected']} tests" in page.words


def test_a_second_render_of_the_same_journal_gives_the_same_bytes(demo):
    log = demo["sessions"][0]["log"]
    before = hashlib.sha256(Path(log).read_bytes()).hexdigest()
    env = {**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable}
    subprocess.run(
        [ROOT / "scripts/debug-spyre", "render", "--session", Path(log).stem],
        cwd=demo["checkout"], env=env, check=True, capture_output=True,
    )  # fmt: skip
    assert hashlib.sha256(Path(log).read_bytes()).hexdigest() == before


def test_the_demo_holds_no_sentence_about_a_cause():
    text = (ROOT / "scripts/debug_spyre/verbs/demo.py").read_text(encoding="utf-8").lower()
    for words in ("adds", "multiple", "is wrong", "is refused", "128", " 64", "aten."):
        assert words not in text, words
