"""Outside text is made fit to show: escape sequences, control characters, hidden direction marks, cuts."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_spyre.page.markdown_twin import block, cell, code, plain
from debug_spyre.page.matrix_picture import WIDTH, cells, strip_picture
from debug_spyre.page.nodeid_layout import groups, path_parts, split
from debug_spyre.vocabulary import safe_text as t
from debug_spyre.vocabulary.evidence import Outcome
from debug_spyre.vocabulary.local_time import duration, zone_of


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m plain", "red plain"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://x.test\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPsixel\x1b\\after", "after"),
        ("10 %\r50 %\r100 %\nnext", "100 %\nnext"),
        ("10 %\r50 %\r\nnext\r", "50 %\nnext"),
        ("a\r\nb", "a\nb"),
        ("a\x00b\x07c\x9bd", "abc"),
        ("safe\u202egnp.exe", "safe<U+202E>gnp.exe"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("\ud800lone", "lone"),
        ("שלום stays", "שלום stays"),
    ],
)
def test_text_is_cleaned(raw, shown):
    assert t.clean(raw) == shown


@given(st.text())
def test_property_cleaning_leaves_nothing_hidden_and_is_idempotent(raw):
    shown = t.clean(raw)
    assert t.clean(shown) == shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_a_cut_is_stated_with_its_length():
    assert t.clip("x" * 50, 10) == "x" * 10 + "… [40 more characters]"
    assert t.clip("short", 10) == "short"


@pytest.mark.parametrize(
    ("octets", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (14_200, "14 kB"),
        (999_600, "1.0 MB"),
        (3_240_000, "3.2 MB"),
        (18_700_000, "19 MB"),
        (5_000_000_000, "5.0 GB"),
    ],
)
def test_sizes_in_words(octets, words):
    assert t.size(octets) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "unknown"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (0.0, "0"),
        (1.4150390625, "1.415"),
        (65504.0, "65504"),
        (1e-7, "1e-07"),
    ],
)
def test_figures_in_words(value, words):
    assert t.number(value) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.21, "0.2 s"),
        (59.7, "1 min"),
        (137, "2 min 17 s"),
        (3 * 3600 + 300, "3 h 5 min"),
        (200_000, "2 days"),
        (None, "unknown"),
        (-5, "0.0 s"),
    ],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


def test_references_become_links_only_to_what_the_page_has():
    known = {"h3", "r12", "f1"}
    parts = t.pieces("H3 and #3, r12, F1, H9, torch-spyre#3, r1.5, x_r12, `H3` here", known.__contains__)
    assert [(p.text, p.href) for p in parts if p.href] == [("H3", "#h3"), ("#3", "#h3"), ("r12", "#r12"), ("F1", "#f1")]
    assert [p.text for p in parts if p.kind == "code"] == ["H3"]
    assert "".join(p.text for p in parts) == "H3 and #3, r12, F1, H9, torch-spyre#3, r1.5, x_r12, H3 here"


def test_what_a_paragraph_is_about_is_strong():
    first, second = t.paragraphs("Bug: it fails.\n\nRuled out. H1.", lambda _: False)
    assert (first[0].kind, first[0].text) == ("strong", "Bug:")
    assert (second[0].kind, second[0].text) == ("strong", "Ruled out.")


def test_times_are_local_to_where_the_session_was_opened():
    zone = zone_of("2026-07-30 14:12:05 +0200", "2026-07-30T12:12:05.000Z")
    assert zone.moment("2026-07-30T12:20:00.000Z").text == "14:20:00"
    assert zone.moment("2026-07-30T23:20:00.000Z").text == "31 Jul 01:20:00"
    assert zone.moment("2026-07-30T12:20:00.000Z").utc == "12:20:00 UTC"
    assert zone.moment("yesterday").text == "yesterday"
    assert zone_of("", "2026-07-30T12:12:05Z").moment("2026-07-30T12:12:05Z").text == "12:12:05"


def test_node_ids_are_grouped_and_equal_parameters_told_apart():
    ids = ["a/t.py::C::f[x(1)-dev]", "a/t.py::C::f[x(2)-dev]", "b.py::g", "odd"]
    one, two, three = groups(ids)
    assert (one.prefix, one.function) == ("a/t.py::C::f", "f")
    assert [i.params for i in one.ids] == [(("[x(1)-", False), ("dev]", True)), (("[x(2)-", False), ("dev]", True))]
    assert [i.whole for g in (one, two, three) for i in g.ids] == ids
    assert two.ids[0].params == ()


@given(st.text(max_size=60))
def test_property_a_node_id_in_pieces_is_the_node_id(nodeid):
    path, function, params = split(nodeid)
    assert path + function + params == nodeid
    assert "".join(path_parts(path)) == path
    (group,) = groups([nodeid])
    assert group.prefix + "".join(text for text, _ in group.ids[0].params) == nodeid


@given(st.text(max_size=60))
def test_property_addresses_hold_only_what_is_allowed(path):
    address = t.quoted(path)
    assert re.fullmatch(r"[A-Za-z0-9._~%/-]*", address)


@given(st.text(max_size=80))
def test_property_text_cannot_leave_its_markdown_code(text):
    flat = " ".join(text.split())
    inline = code(text)
    if flat:
        fence = re.match(r"`+", inline).group()
        inner = inline[len(fence) : -len(fence)]
        assert inner.strip() == flat.strip() or inner == flat
        assert fence not in re.findall(r"`+", flat)
    whole = block(text.split("\n"))
    fence = re.match(r"`+", whole).group()
    assert all(len(run) < len(fence) for run in re.findall(r"`+", text))
    assert "\n" not in cell(text)


def test_markup_in_prose_is_escaped_for_markdown():
    assert plain("<img src=x> [a](b) *c* `d` | e") == "\\<img src=x\\> \\[a\\](b) \\*c\\* \\`d\\` \\| e"
    assert plain("@team and # head") == "@\u2060team and # head"
    assert plain("# head") == "\\# head"


def test_a_long_line_that_overwrites_itself_takes_no_longer_than_another():
    text = "10 %\r" + "x" * 4_000_000
    start = time.perf_counter()
    assert t.clean(text) == text[5:]
    assert time.perf_counter() - start < 10


def test_a_matrix_of_many_files_keeps_its_columns_apart_and_within_the_picture():
    before = {f"tests/test_{n}.py::test_a": Outcome.FAILED for n in range(120)}
    drawn = strip_picture(cells(before, {}, frozenset()), str, before=None, after=None)
    columns = [float(shape.d[1:].split()[0]) for shape in drawn.shapes if shape.css == "fr"]
    assert len(columns) == 120 and columns == sorted(set(columns)) and columns[-1] < WIDTH
