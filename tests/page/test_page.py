"""The page is complete, well formed and deterministic; its numbers are those of the results; its words are derived."""

import json
import re
import shlex

import pytest

from debug_spyre.page.io import page
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import Folder
from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError
from debug_spyre.vocabulary.evidence import Outcome

TEMPLATES = page.templates_folder()


def read(folder):
    return folder.html.read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", ["investigating", "shut", "resolved", "blocked", "hostile"])
def test_a_page_is_well_formed_with_its_sections_in_order(pages, strict, ending):
    found = strict.check(read(pages[ending]))
    assert strict.sections(found) == strict.SECTIONS
    assert "provenance" in found.ids


@pytest.mark.parametrize("ending", ["investigating", "resolved", "hostile"])
def test_two_renders_of_one_journal_are_the_same_bytes(pages, ending):
    folder = pages[ending]
    first, twin = folder.html.read_bytes(), folder.markdown.read_bytes()
    assert page.render(folder) == folder.html.absolute()
    assert folder.html.read_bytes() == first
    assert folder.markdown.read_bytes() == twin


def test_the_page_lies_beside_the_folder_and_its_links_lead_to_files(pages, strict):
    folder = pages["shut"]
    assert folder.html == folder.path.parent / f"{folder.stem}.html"
    links = [link for link in strict.Page(read(folder)).links if link.startswith(f"{folder.stem}/")]
    assert f"{folder.stem}/full-matrix.txt" in links
    missing = [link for link in links if not (folder.path.parent / link).exists()]
    assert missing == [f"{folder.stem}/runs/r5/shadow.json"]  # the story never wrote that report


def test_every_member_stands_on_the_page_and_the_probe_is_marked(pages, strict, story):
    html = read(pages["shut"])
    text = strict.Page(html).text
    for member in story.members():
        assert member.split("::test_rmsnorm_matches_reference")[1] in text
        assert f"'{member}'" in text
    assert html.count('id="probe"') == 1
    row = html.split('id="probe"')[1].split("</tr>")[0]
    assert "hidden(256)-tokens(1)-residual(False)" in row and "probe" in row


def test_the_numbers_on_the_page_are_those_of_the_results(pages, strict):
    folder = pages["shut"]
    text = strict.Page(read(folder)).text
    for run in ("r1", "r3"):
        data = json.loads((folder.path / f"runs/{run}/evidence.json").read_text())
        for failure in data["failures"][:12]:
            assert f"{failure['mismatched']:,} / {failure['total']:,}" in text
            assert f"{failure['max_abs']:.4g}" in text
        for fallback in data["fallbacks"]:
            assert fallback["op"] in text and f"{fallback['file']}:{fallback['line']}" in text
    before = json.loads((folder.path / "runs/r1/evidence.json").read_text())["counts"]
    after = json.loads((folder.path / "runs/r10/evidence.json").read_text())["counts"]
    assert f"Before: {before['passed']} passed, {before['failed']} failed." in text
    assert f"After: {after['passed']} passed, {after['failed']} failed." in text


def test_the_baselines_load_bearing_lines_stand_in_the_summary_by_themselves(pages, strict):
    html = read(pages["shut"])
    section = html.split('<section id="summary"')[1].split("</section>")[0]
    words = strict.Page(section).text
    assert "126 / 256 (49.2 %)" in words
    assert "aten.arange.start_step" in words and "tests/test_rms_norm.py:44" in words
    assert "accepted at tests/conftest.py:31" in words
    assert "tests/test_rms_norm.py:58 innermost" in words
    assert "not compared: figures of different scopes" in words


def test_a_summary_older_than_the_last_verdict_is_flagged(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    told.add(ev.HypothesisAdded(number=1, text="idea", test="t"))
    told.add(ev.SummaryNoted(text="Bug: unknown."))
    page.render(told.folder)
    assert "stale" not in strict.Page(read(told.folder)).text
    told.add(ev.HypothesisConcluded(number=1, verdict="ruled-out", sentence="no"))
    page.render(told.folder)
    text = strict.Page(read(told.folder)).text
    assert "written before the last verdict. Since then: H1 ruled out" in text
    told.add(ev.SummaryNoted(text="Bug: still unknown."))
    page.render(told.folder)
    assert "before the last verdict" not in strict.Page(read(told.folder)).text


def test_a_session_just_opened_says_what_comes_first(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    page.render(told.folder)
    text = strict.check(read(told.folder)).text
    assert f"debug-spyre run --as baseline '{story.PROBE}'" in text
    assert "debug-spyre hypothesis seed" in text
    assert "No run has shown the members' figures yet." in text
    assert "Nothing was run yet." in text


def test_the_command_of_a_probe_with_quotes_in_its_name_can_be_typed(story, strict, tmp_path):
    probe = "tests/test_a.py::test_b[it's $(x)]"
    told = story.Story(tmp_path)
    story.opened(told)
    told.add(ev.MemberAdded(nodeid=probe, predicate={"kind": "fails"}, reason="r"))
    told.add(ev.ProbeChosen(nodeid=probe, reason="r"))
    page.render(told.folder)
    found = [line for line in told.folder.markdown.read_text().splitlines() if "run --as baseline" in line]
    assert found
    for line in found:
        command = re.search(r"`+ ?(debug-spyre run --as baseline [^`]*)", line)[1].strip()
        assert shlex.split(command)[-1] == probe


def test_a_run_without_a_row_is_shown_as_unattributed(pages, strict):
    html = read(pages["shut"])
    entry = html.split('<article class="exp" id="r8"')[1].split("</article>")[0]
    assert "unattributed" in entry and "counts for nothing" in entry
    for run in ("r1", "r2", "r9"):  # names with a meaning and validation need no row
        assert "unattributed" not in html.split(f'<article class="exp" id="{run}"')[1].split("</article>")[0]


def test_experiments_stand_newest_first_with_command_tail_and_conclusion(pages, strict):
    html = read(pages["shut"])
    order = re.findall(r'<article class="exp" id="(r\d+)"', html)
    assert order == [f"r{n}" for n in range(10, 0, -1)]
    entry = strict.Page(html.split('<article class="exp" id="r7"')[1].split("</article>")[0]).text
    assert "python partial_sums.py" in entry and "partial-sums.txt" in entry
    assert "Output, 7 lines" in entry
    assert "H4 ruled out" in entry and "H5 confirmed" in entry and "it differs by token" in entry


def test_a_cut_tail_says_what_it_left_out(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    told.run("baseline", ["pytest"], output="".join(f"line {n}\n" for n in range(100)))
    page.render(told.folder)
    text = strict.Page(read(told.folder)).text
    assert "Output, last 14 of 100 lines" in text and "86 earlier lines left out" in text
    assert "line 99" in text and "line 85 " not in text


def test_the_run_in_flight_is_live_in_bar_title_and_header(pages, strict):
    html = read(pages["investigating"])
    assert "<title>(37/60, 2 failing) rmsnorm-wide-hidden-mismatch" in html
    text = strict.Page(html).text
    assert "37 of 60 done" in text and "2 failing" in text and "debug-spyre wait r10" in text
    assert 'id="now"' in html and "hidden(256)-tokens(64)-residual(True)" in html.split('id="now"')[1][:3000]


@pytest.mark.parametrize(("ending", "words"), [("resolved", "by workaround"), ("blocked", "Next action.")])
def test_an_ended_session_says_how_and_stops_refreshing(pages, strict, ending, words):
    html = read(pages[ending])
    text = strict.Page(html).text
    assert words in text and "refresh ended" in text and "debug-spyre reopen" in text
    assert f'data-status="{ending}"' in html
    assert '<button class="btn refresh"' not in html


def test_what_a_person_decided_stands_in_red_with_the_reason(pages):
    html = read(pages["resolved"])
    notice = html.split('class="notice n-red"')[1].split("</div></div>")[0]
    assert "override" in notice and "does not occur in a model that we serve" in notice and "lena" in notice


def test_the_gate_shows_its_reasons_with_ids_and_commands(pages, strict):
    section = read(pages["shut"]).split('<section id="validation"')[1].split("</section>")[0]
    text = strict.Page(section).text
    assert "no-regression" in text and "tree-at-start" in text and "debug-spyre revert" in text
    assert "2 new failures" in text and "hidden(80)-tokens(64)-residual(True)" in text


def test_all_conditions_of_the_gate_are_listed_those_not_open_first(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    states = [
        ("a-one", "open", None),
        ("b-two", "unknown", None),
        ("c-three", "shut", None),
        ("d-four", "shut", "a person says so"),
    ]
    gate = {
        "gate": "shut",
        "reasons": [{"code": "c-three", "text": "because", "nodeids": ["t.py::x"], "next": "debug-spyre validate"}],
        "conditions": [{"code": c, "state": s, "text": f"text of {c}", "override": o} for c, s, o in states],
    }
    record = {
        "pre_run": "r1",
        "post_run": "r2",
        "new": ["a"],
        "gone": [],
        "worse": [],
        "vanished": [],
        "scope_equal": False,
        "changes": {"files": ["x.py"]},
    }
    told.add(ev.ValidationRecorded(rows=(), matrix=record, gate=gate))
    page.render(told.folder)
    text = strict.check(read(told.folder)).text
    assert "1 shut, 1 unknown, 1 set aside, 1 open" in text
    assert text.index("c-three") < text.index("b-two") < text.index("d-four") < text.index("a-one")
    assert "Set aside: a person says so" in text
    assert "Matrix r1 against r2: 1 new failures" in text and "did not select the same tests" in text


def test_next_actions_follow_from_run_queue_gate_and_notes(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    told.run("baseline", ["pytest", story.PROBE])
    told.add(
        ev.HypothesisAdded(number=1, text="slow idea", test="slow-command", test_class="full-run", confidence="high")
    )
    told.add(ev.HypothesisAdded(number=2, text="cheap idea", test="cheap-command", confidence="high"))
    told.add(ev.HypothesisAdded(number=3, text="under test", test="t3"))
    told.add(ev.HypothesisStarted(number=3, command="command-in-progress"))
    told.add(ev.NextNoted(text="ask the compiler team"))
    told.start(None, ["pytest"])
    page.render(told.folder)
    section = read(told.folder).split('<section id="next"')[1].split("</section>")[0]
    text = strict.Page(section).text
    order = [
        text.index(words)
        for words in (
            "debug-spyre wait r2",
            "command-in-progress",
            "cheap-command",
            "slow-command",
            "ask the compiler team",
        )
    ]
    assert order == sorted(order)


def test_when_nothing_explains_the_next_tier_is_asked_for(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    told.run("baseline", ["pytest", story.PROBE])
    for number in (1, 2, 3):
        told.add(ev.HypothesisAdded(number=number, text="idea", test="t"))
        told.add(ev.HypothesisConcluded(number=number, verdict="ruled-out", sentence="no"))
    page.render(told.folder)
    section = read(told.folder).split('<section id="next"')[1].split("</section>")[0]
    assert "none explains the failure" in strict.Page(section).text and "debug-spyre shadow" in section


def test_torn_line_and_unknown_events_are_said(pages, strict):
    text = strict.Page(read(pages["hostile"])).text
    assert "torn line" in text and "a torn last line was dropped" in text
    assert "1 event of kinds this version does not know" in text


def test_hostile_text_stays_text(pages, strict, story):
    html = read(pages["hostile"])
    assert "<img" not in html and "<script>alert" not in html and "onerror=alert(2)&gt;" in html
    text = strict.Page(html).text
    assert "</script><script>alert(1)</script><img src=x" in text
    assert "{{7*7}}" in text and "49" not in text.split("{{7*7}}")[0][-2:]
    assert "bare-secret-value" not in html and "secretsecret" not in html and "[masked]" in html
    assert len(html) < 400_000  # a line of a million characters is cut
    twin = pages["hostile"].markdown.read_text()
    assert "bare-secret-value" not in twin and "\x1b" not in twin
    outside = re.sub(r"(?m)^(`{3,})\w*\n.*?\n\1$", "", twin, flags=re.S)  # code blocks, then code spans
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside.replace("\\`", ""))
    assert re.search(r"(?<!\\)<[a-z/!]", outside) is None


def test_nothing_leads_out_of_the_folder(pages, strict):
    for link in strict.Page(read(pages["hostile"])).links:
        assert not link.lower().startswith(("javascript", "data", "file", "http", "/", ".."))


def test_a_mismatchs_map_is_drawn_from_data(pages):
    html = read(pages["shut"])
    assert 'id="map-1-t"' in html and html.count('class="m5"') >= 1


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"rows": 2, "cols": 2, "values": [1, 2, 3]},
        {"rows": -1, "cols": 1, "values": []},
        {"rows": 9999, "cols": 9999, "values": [0]},
        {"rows": 1, "cols": 2, "values": ["<b>", 1]},
        {"rows": 1, "cols": 1, "values": [[float("inf")]]},
    ],
)
def test_pictures_of_another_form_do_no_harm(story, strict, tmp_path, data):
    told = story.Story(tmp_path)
    story.opened(told)
    run = told.run(None, ["pytest"])
    (told.folder.path / "runs" / run).mkdir(parents=True)
    (told.folder.path / "runs" / run / "comparisons.json").write_text(
        json.dumps({"comparisons": [{"picture": data}, 7, "x"]})
    )
    page.render(told.folder)
    strict.check(read(told.folder))


def test_members_left_and_links_between_sessions_are_shown(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told, linked_from="debug-20260729-101010-wider")
    gone = story.members()[0]
    told.add(ev.MemberRemoved(nodeid=gone, reason="another cause", moved_to="debug-20260730-150000-narrow"))
    told.add(ev.SessionLinked(stem="debug-20260730-150000-narrow", relation="carved-out"))
    page.render(told.folder)
    found = strict.check(read(told.folder))
    assert "debug-20260729-101010-wider.html" in found.links and "debug-20260730-150000-narrow.html" in found.links
    assert "carved out of debug-20260729-101010-wider" in found.text and "another cause" in found.text


def test_a_missing_or_damaged_evidence_file_is_unknown_not_a_fault(story, strict, tmp_path):
    told = story.realistic(tmp_path, ending="shut")
    for path in told.folder.path.glob("runs/*/evidence.json"):
        path.write_text("{")
    page.render(told.folder)
    text = strict.check(read(told.folder)).text
    assert "The evidence file is gone" in text and "mismatch 126 / 256" in text


def test_a_folder_without_session_is_left_alone(story, tmp_path):
    told = story.Story(tmp_path, stem="20260730-141205-abcd")
    told.start("full-matrix", ["pytest"])
    page.render(told.folder)
    assert not told.folder.html.exists() and not told.folder.markdown.exists()


def test_a_damaged_journal_and_an_unwritable_folder_say_what_to_do(story, tmp_path):
    with pytest.raises(BadInputError) as missing:
        page.render(Folder(tmp_path / "debug-nothing"))
    assert missing.value.next
    told = story.Story(tmp_path)
    story.opened(told)
    told.folder.html.mkdir()
    with pytest.raises(EnvironmentTroubleError) as unwritable:
        page.render(told.folder)
    assert unwritable.value.next
    assert not list(tmp_path.glob(".*"))


def test_the_twin_has_the_same_sections_and_numbers(pages):
    twin = pages["shut"].markdown.read_text(encoding="utf-8")
    heads = re.findall(r"^## (\d)\. (.*)$", twin, flags=re.M)
    assert [number for number, _ in heads] == list("1234567")
    assert "126 / 256 (49.2 %)" in twin and "aten.arange.start_step" in twin
    assert "no-regression" in twin and "debug-spyre revert" in twin
    assert "60 tests: 12 failed before, 2 after" in twin


def test_a_matrix_of_thousands_is_counts_per_function(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    ids = [f"tests/t{n % 3}.py::test_f{n % 5}[p({n})]" for n in range(3000)]
    tests = [(i, Outcome.FAILED if n < 10 else Outcome.PASSED) for n, i in enumerate(ids)]
    told.run("full-matrix", ["pytest"], evidence=story.evidence(tests))
    page.render(told.folder)
    html = read(told.folder)
    text = strict.check(html).text
    assert "Matrix of 3,000 tests as counts per test function" in text
    assert 'id="strip-t"' not in html and len(html) < 150_000


def test_styles_and_scripts_are_ours_alone_and_escaping_is_never_switched_off():
    for path in TEMPLATES.rglob("*.html.j2"):
        text = path.read_text()
        assert "|safe" not in text.replace(" ", "") and "autoescape" not in text and "Markup" not in text, path
        assert not re.search(r"\bstyle=|\bsrc=|\bon[a-z]+=|https?:", text), path
    for name in ("page.css", "page.js"):
        text = (TEMPLATES / name).read_text()
        assert not re.search(
            r"https?:|url\(|@import|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text
        ), name
        assert "</" not in text, name


def test_failures_that_were_there_before_are_no_news_after_the_fix(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    ids = story.matrix_ids()
    bad = set(story.members())
    old = [ids[0], ids[1]]
    before = [(i, Outcome.FAILED if i in bad or i in old else Outcome.PASSED) for i in ids]
    after = [(i, Outcome.FAILED if i in old else Outcome.PASSED) for i in ids]
    told.run("full-matrix", ["pytest"], evidence=story.evidence(before))
    told.run("post-fix-matrix", ["pytest"], evidence=story.evidence(after), status="failed")
    page.render(told.folder)
    facts = strict.Page(read(told.folder).split('<dl class="facts">')[1].split("</dl>")[0]).text
    assert "no new failure" in facts and "2 of 60 failed as before" in facts


def test_a_command_is_said_by_its_exit_status_and_a_failure_by_its_inner_class(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    wrapped = story.Failure(
        nodeid=story.PROBE,
        phase="call",
        kind=story.Kind.COMPILE,
        error_class="torch._inductor.exc.InductorError",
        inner_class="Unsupported",
        message="torch._inductor.exc.InductorError: Unsupported: no layout found Set TORCHDYNAMO_VERBOSE=1 for more",
    )
    told.run("baseline", ["pytest"], evidence=story.evidence([(story.PROBE, Outcome.FAILED)], [wrapped]))
    told.run(None, ["python", "x.py"], verb="exec", pytest_args=None, exit=3, status="failed", hypothesis=1)
    page.render(told.folder)
    html = read(told.folder)
    strict.check(html)
    text = strict.Page(html.split('<section id="summary"')[1].split("</section>")[0]).text
    assert "Unsupported: no layout found" in text and "TORCHDYNAMO_VERBOSE" not in text and "InductorError" not in text
    entry = strict.Page(html.split('<article class="exp" id="r2"')[1].split("</article>")[0]).text
    assert "exit 3" in entry and "command" in entry


def test_the_timeline_has_lanes_bars_borrowed_evidence_and_changes_of_the_tree(pages, strict):
    svg = read(pages["shut"]).split('id="timeline-t"')[1].split("</svg>")[0]
    lanes = re.findall(r'href="#h(\d+)"', svg)
    assert lanes == ["1", "2", "3", "4", "5", "6"]
    assert set(re.findall(r'href="#(r\d+)"', svg)) == {f"r{n}" for n in range(1, 11)}
    assert svg.count('class="hollow"') == 1 and "the tree changed before r8" in svg  # r7 decided H5 too


def test_a_long_pause_is_folded_in_the_timeline(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    told.run("baseline", ["pytest"])
    told.run(None, ["pytest"], after=9 * 3600.0)
    page.render(told.folder)
    svg = read(told.folder).split('id="timeline-t"')[1].split("</svg>")[0]
    assert "9 h pause" in svg and 'class="hatch"' in svg


def test_maps_of_tests_outside_the_cluster_stay_away(story, strict, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    run = told.run("full-matrix", ["pytest"], output="see https://docs.test/page\n")
    (told.folder.path / "runs" / run).mkdir(parents=True)
    entries = [
        {"nodeid": "tests/other.py::x", "name": "other", "picture": story.picture()},
        {"nodeid": story.PROBE, "name": "mine", "picture": story.picture()},
    ]
    (told.folder.path / "runs" / run / "comparisons.json").write_text(json.dumps({"comparisons": entries}))
    page.render(told.folder)
    html = read(told.folder)
    text = strict.check(html).text
    assert "mine" in text and "tests/other.py::x" not in text and html.count("Error map.") == 1


def test_a_workaround_that_works_is_no_cause_and_a_blocked_session_asked_no_gate(story, tmp_path):
    told = story.Story(tmp_path)
    story.opened(told)
    told.run("baseline", ["pytest", story.PROBE])
    for number, text in ((1, "the plan ignores the rows"), (2, "work-around: one dimension"), (3, "Fix of the offset")):
        told.add(ev.HypothesisAdded(number=number, text=text, test="t"))
        told.add(ev.HypothesisConcluded(number=number, verdict="confirmed", sentence="yes"))
    told.add(ev.ValidationRecorded(rows=(), gate={"gate": "shut", "reasons": [{"code": "x"}]}))
    told.add(ev.SessionClosed(status="blocked", next_action="a person decides"))
    page.render(told.folder)
    twin = (told.folder.path / "log.md").read_text(encoding="utf-8")
    assert "Cause: **confirmed** H1 the plan ignores the rows" in twin
    assert "Gate: **shut**" not in twin
