"""The page tells each thing once, draws what was learnt, and leads from every picture to its entry."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from debug_spyre.examine import dossier as examined
from debug_spyre.examine.condition import Seen, Term
from debug_spyre.examine.dossier import dossier_from
from debug_spyre.page.causes import strips
from debug_spyre.page.io import page
from debug_spyre.page.page_context import Frame, Material
from debug_spyre.page.pictures import separator_picture, severity_picture
from debug_spyre.page.provenance_section import provenance
from debug_spyre.page.repetition import grouped
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import load_session
from debug_spyre.vocabulary.evidence import Failure, Kind
from debug_spyre.vocabulary.safe_text import Piece
from debug_spyre.vocabulary.words import APPROVED_CHANGE

PATCH = "diff --git a/x.py b/x.py\nindex 1..2\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-mean = wrong </script>\n+mean = right\n"


@pytest.fixture
def told(story, tmp_path):
    return story.realistic(tmp_path / "logs", ending="investigating")


def html_of(folder):
    page.render(folder)
    return folder.html.read_text(encoding="utf-8")


def proofs(story, *, exits=(0, 0, 0, 3)):
    """A repro's runs: a trial, two proofs and a control."""
    names = ("debug_spyre_trial.py", "repro.py", "repro.py", "repro_control.py")
    for name, code in zip(names, exits, strict=True):
        run = story.start(None, ["python", f"/s/{name}"], verb="repro", hypothesis=1, pytest_args=None)
        story.finish(run, status="passed" if code == 0 else "failed", exit=code)
    return [f"r{story.runs - n}" for n in range(4)]


def entry_of(html, anchor):
    return html.split(f'<article class="exp" id="{anchor}"')[1].split("</article>")[0]


def test_trials_proofs_and_the_control_of_a_repro_are_one_entry(told):
    newest, *_, oldest = proofs(told)
    entry = entry_of(html_of(told.folder), f"fold-{newest}")
    assert f"{oldest} to {newest} repro" in entry and "1 trial, 2 proofs, 1 control" in entry
    assert "3 show the fault, 1 right on the CPU" in entry
    assert all(f'<tr id="{run}"' in entry for run in (newest, oldest))  # links to each run still lead somewhere


def test_a_proof_that_broke_colours_the_whole_entry(told):
    newest, *_ = proofs(told, exits=(0, 1, 0, 3))
    assert (
        'class="st failed">exit 1' in entry_of(html_of(told.folder), f"fold-{newest}").split('<div class="concl">')[1]
    )


def test_two_repros_for_two_rows_are_two_entries(told):
    first, *_ = proofs(told)
    run = told.start(None, ["python", "/s/repro.py"], verb="repro", hypothesis=2, pytest_args=None)
    told.finish(run, status="passed", exit=0)
    html = html_of(told.folder)
    assert f'id="fold-{first}"' in html and f'<article class="exp" id="{run}"' in html


def test_failures_in_the_same_words_are_told_once():
    lines = ["t.py::a[1]: Mismatch 3", "t.py::a[2]: Mismatch 3", "t.py::b: other", "no test: at all"]
    assert grouped(lines) == ["2 tests, t.py::a[1] first: Mismatch 3", "t.py::b: other", "no test: at all"]


def test_failures_of_an_earlier_run_are_folded_with_a_link_to_it(told):
    lines = ("t.py::a[1]: Mismatch of xyzzy", "t.py::a[2]: NaN of xyzzy")
    for number in (1, 2):
        run = told.start(f"again-{number}", ["pytest", "t.py"], pytest_args=("t.py",))
        told.finish(run, status="failed", exit=1, digest=lines)
    other = told.start("other", ["pytest", "t.py"], pytest_args=("t.py",))
    told.finish(other, status="failed", exit=1, digest=(*lines, "t.py::a[3]: a new one"))
    html = html_of(told.folder)
    first, second = f"r{told.runs - 2}", f"r{told.runs - 1}"
    assert f'The same failures as in <a href="#{first}">' in entry_of(html, second)
    assert "The same failures" not in entry_of(html, first) and "The same failures" not in entry_of(html, other)


def test_the_trace_of_torch_is_no_output_that_a_reader_wants(told):
    trace = "".join(f"DEBUG    torch.__trace:utils.py:{n}\n" for n in range(60))
    run = told.run("noisy", ["pytest", "t.py"], output=f"what matters\n{trace}1 failed in 2s\n", pytest_args=("t.py",))
    entry = entry_of(html_of(told.folder), run)
    assert "torch.__trace:" not in entry and "what matters" in entry and "60 lines of torch&#39;s trace" in entry


# pictures


def cause_with(points, *terms):
    shown = [{"verdict": verdict, "values": values} for verdict, values in points]
    told = [{"feature": f, "relation": r, "value": v, "words": f"words of {f}"} for f, r, v in terms]
    cause = {
        "id": "k1", "session": None, "sentence": "s", "op": "o", "claim": "cause", "manner": "refused", "tests": ["t"],
        "condition": {"text": "c", "terms": told, "points": shown},
    }  # fmt: skip
    return dossier_from({"matrix": {}, "seconds": 1.0, "budget": {}, "causes": [cause]}).causes[0]


PLAIN = SimpleNamespace(line=lambda text, most=200: str(text)[:most])


def test_a_strip_of_multiples_shows_the_sizes_and_a_line_at_every_change():
    points = [("right" if n in {1, 64, 128} else "wrong", {"ragged64(any)": n}) for n in (1, 2, 63, 64, 65, 128)]
    drawn = strips(PLAIN, cause_with(points, ("ragged64(any)", "==", True)), 1)
    assert "wrong at 2, 63, 65, right at 1, 64, 128" in drawn.description
    assert len([s for s in drawn.shapes if s.css == "ax"]) == 4


def test_a_dossier_keeps_the_ragged_dimension_and_the_calls_at_the_border():
    seen = [
        (
            {"op": "o", "args": [], "n": n},
            Seen({"ragged64(any)": n % 64 != 0, "size(0,-1)": 64, "size(1,-1)": n}, n % 64 != 0),
        )
        for n in range(64, 400)
    ]
    found = SimpleNamespace(
        condition=SimpleNamespace(terms=(Term("ragged64(any)", "==", True),), words=lambda: "when x"),
        seen=seen, borders=[tuple({"op": "o", "args": [], "n": n} for n in (384, 385))], is_exact=True,
    )  # fmt: skip
    condition = examined.condition_of(SimpleNamespace(found=found))
    sizes = [point["values"]["ragged64(any)"] for point in condition.points]
    assert sizes[:2] == [384, 385]
    assert len(sizes) <= examined.MOST_POINTS and len(set(sizes)) == len(sizes) and all(type(n) is int for n in sizes)
    assert all((n % 64 != 0) == (point["verdict"] == "wrong") for n, point in zip(sizes, condition.points, strict=True))


def test_a_strip_has_only_the_points_at_which_the_other_terms_hold():
    points = [("wrong", {"size(0,-1)": 129, "reduces(-1)": True}), ("right", {"size(0,-1)": 128, "reduces(-1)": True})]
    points.append(("right", {"size(0,-1)": 900, "reduces(-1)": False}))
    drawn = strips(PLAIN, cause_with(points, ("size(0,-1)", ">", 128), ("reduces(-1)", "==", True)), 1)
    assert "words of size(0,-1): wrong at 129, right at 128;" in drawn.description
    assert "words of reduces(-1): wrong at yes, right at no" in drawn.description


def test_many_sizes_are_thinned_and_the_boundary_stays():
    points = [("wrong" if n > 128 else "right", {"size(0,-1)": n}) for n in range(1, 300)]
    drawn = strips(PLAIN, cause_with(points, ("size(0,-1)", ">", 128)), 1)
    shown = {s.text for s in drawn.shapes if s.kind == "text"}
    assert {"128", "129"} <= shown and drawn.width <= 338  # a phone shows all of it


def failures(*pairs):
    return [
        Failure(nodeid=f"t::{i}", phase="call", kind=Kind.MISMATCH, mismatched=m, total=1000, max_abs=d)
        for i, (m, d) in enumerate(pairs)
    ]


def test_marks_in_one_spot_draw_no_severity_and_marks_apart_do():
    before = Piece("r1")
    assert severity_picture(failures((960, 1.4), (970, 1.8)), (), before=before, after=None) is None
    assert severity_picture(failures((960, 1.4), (12, 0.01)), (), before=before, after=None) is not None
    assert severity_picture(failures((960, 1.4)), (), before=before, after=None) is not None


def test_what_tells_failing_from_passing_is_drawn_instead_of_severity(story, told):
    drawn = separator_picture("width", ["256", "1024"], ["64", "128"])
    assert [s.text for s in drawn.shapes if s.css == "t3 c"] == ["64", "128", "256", "1024"]
    assert "Failing at 256, 1024" in drawn.description
    assert separator_picture("width", ["256"], []) is None


# what stands at the top and at the foot


def test_an_approved_change_stands_at_the_top_as_a_diff(told):
    (told.folder.path / "fix.patch").write_text(PATCH)
    told.add(ev.ArtifactSaved(path="fix.patch", sha256="0", size=len(PATCH), note=APPROVED_CHANGE))
    told.add(ev.PatchApproved(reason="it may stay"))
    head = html_of(told.folder).split('id="cluster"')[0]
    assert "-mean = wrong &lt;/script&gt;" in head and "+mean = right" in head
    assert "approved" in head and "index 1..2" not in head


def test_without_an_approval_no_change_is_shown(told):
    (told.folder.path / "fix.patch").write_text(PATCH)
    told.add(ev.ArtifactSaved(path="fix.patch", sha256="0", size=len(PATCH), note=APPROVED_CHANGE))
    assert "+mean = right" not in html_of(told.folder).split('id="cluster"')[0]


def test_a_package_that_is_absent_is_not_installed_and_long_values_are_folded(told):
    session = load_session(told.folder)
    run = replace(next(iter(session.runs.values())), provenance={
        "torch": "2.13.0", "vllm": None, "card": None, "environment": {"A": "1"}, "numbers": [str(n) for n in range(99)] * 9,
        "torch_spyre": {"revision": None, "state": "unknown"},
    })  # fmt: skip
    view = provenance(Frame(Material(replace(session, runs={run.id: run}))))
    assert dict(view.facts) == {
        "torch-spyre": "revision unknown",
        "torch": "2.13.0",
        "vllm": "not installed",
        "card": "unknown",
        "numbers": dict(view.facts)["numbers"],
    }
    assert [key for key, _ in view.folded] == ["environment"]


def test_an_environment_that_was_not_found_says_unknown_and_not_absent(told):
    session = load_session(told.folder)
    run = replace(next(iter(session.runs.values())), provenance={"torch": None, "vllm": None})
    assert dict(provenance(Frame(Material(replace(session, runs={run.id: run})))).facts) == {
        "torch": "unknown",
        "vllm": "unknown",
    }


def test_glyphs_of_the_list_say_their_row_and_figures_stay_on_a_line(told):
    page.render(told.folder)
    html = page.render_index(told.folder.path.parent).read_text(encoding="utf-8")
    first = load_session(told.folder).hypotheses[0]
    assert f'title="H{first.number} ' in html
    assert '<code class="nw">' in html and '<td class="nw">' in html


# in a browser


@pytest.fixture
def tab(browser, told):
    proofs(told)
    page.render(told.folder)
    opened = browser.open(told.folder.html.absolute().as_uri() + "?refresh=off", width=1200)
    yield opened
    opened.close()


SHOWN = (
    "[...document.querySelectorAll('#experiments > .exp')].filter((e) => e.getClientRects().length).map((e) => e.id)"
)


def choose(tab, label, value):
    tab.ask(
        f"""(() => {{ const s = document.querySelector("select[aria-label*='{label}']"); s.value = {json.dumps(value)}; s.dispatchEvent(new Event("change")); }})()"""
    )


@pytest.mark.browser
def test_entries_are_filtered_by_row_and_by_kind_and_the_address_keeps_it(tab):
    everything = tab.ask(SHOWN)
    choose(tab, "one kind", "repro")
    only = tab.ask(SHOWN)
    assert only and set(only) < set(everything) and any(i.startswith("fold-") for i in only)
    choose(tab, "one row", "H1")
    assert (
        set(tab.ask(SHOWN)) <= set(only)
        and "kind=repro" in tab.ask("location.search")
        and "row=H1" in tab.ask("location.search")
    )
    tab.go(tab.ask("location.href"))
    assert set(tab.ask(SHOWN)) <= set(only) and tab.ask("document.querySelector('.find-box [role=status]').textContent")


@pytest.mark.browser
def test_a_link_to_a_folded_run_opens_its_entry_even_if_it_is_filtered(tab, told):
    choose(tab, "one kind", "note")
    tab.ask(f"location.hash = '#r{told.runs}'")
    tab.wait(lambda: tab.ask(f"document.getElementById('r{told.runs}').getClientRects().length > 0"))


@pytest.mark.browser
def test_every_bar_of_the_timeline_leads_to_its_entry_by_the_keyboard(tab):
    bars = tab.ask("[...document.querySelectorAll('#experiments figure a')].map((a) => a.getAttribute('href'))")
    assert len(bars) > 5 and all(tab.ask(f"!!document.getElementById({json.dumps(b[1:])})") for b in bars)
    place = len(bars) - 1
    tab.ask(f"document.querySelectorAll('#experiments figure a')[{place}].focus()")
    for kind in ("keyDown", "keyUp"):
        tab.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Enter",
            code="Enter",
            windowsVirtualKeyCode=13,
            text="\r" if kind == "keyDown" else "",
        )
    tab.wait(lambda: tab.ask("location.hash") == bars[place])


@pytest.mark.browser
def test_the_keyboard_alone_reaches_every_control_and_shows_where_it_is(tab):
    wanted = tab.ask(
        "[...document.querySelectorAll('a[href], button, input:not([type=radio]), select, summary, [tabindex=\"0\"]')].filter((e) => e.checkVisibility()).length"
    )
    tab.ask(
        "window.reached = new Set(); window.blind = []; document.addEventListener('focusin', (e) => { reached.add(e.target); const s = getComputedStyle(e.target); if (s.outlineStyle === 'none' && !e.target.matches('.vh')) blind.push(e.target.outerHTML.slice(0, 80)); })"
    )
    for _ in range(wanted + 20):
        for kind in ("rawKeyDown", "keyUp"):
            tab.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    missed = tab.ask(
        "[...document.querySelectorAll('a[href], button, input:not([type=radio]), select, summary, [tabindex=\"0\"]')].filter((e) => e.checkVisibility() && !reached.has(e)).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert missed == [] and tab.ask("blind") == []


@pytest.mark.browser
def test_print_leaves_out_what_it_says_elsewhere(tab):
    tab.look(media="print")
    assert tab.ask("[...document.querySelectorAll('.again')].length") > 0
    assert tab.ask("[...document.querySelectorAll('.again, .find-box')].every((e) => !e.getClientRects().length)")


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 400])
def test_a_long_line_wraps_on_a_phone(tab, width):
    tab.size(width, 800)
    assert tab.ask("document.documentElement.scrollWidth") <= width
    assert tab.ask("[...document.querySelectorAll('pre')].filter((e) => e.scrollWidth > e.clientWidth + 1).length") == 0
