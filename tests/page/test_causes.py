"""The causes at the top of the page: sentence, claim, condition as strips, what it explains."""

import json

import pytest

from debug_spyre.examine.dossier import dossier_from
from debug_spyre.page.causes import causes, strips
from debug_spyre.page.io import page

CALL = "aten.mean.dim 'f16[4,{}]' '[-1]' True"


def dossier(**changes):
    points = [
        {"verdict": "wrong" if size > 128 else "right", "values": {"size(0,-1)": size}}
        for size in (1, 64, 127, 128, 129, 300)
    ]
    cause = {
        "id": "k1", "session": None, "sentence": "aten.mean.dim is wrong when the last dimension is longer than 128 </script>",
        "op": "aten.mean.dim", "claim": "cause", "manner": "wrong-values", "tests": ["tests/test_a.py::test_b[1]"],
        "condition": {
            "text": "size -1 of argument 0 > 128",
            "terms": [{"feature": "size(0,-1)", "relation": ">", "value": 128, "words": "size -1 of argument 0 > 128"}],
            "borders": [{"right": CALL.format(128), "wrong": CALL.format(129)}], "exact": True, "points": points,
        },
        "explains": {"tests": 11, "of": 11, "calls": 212, "predicted_wrong": 103, "were_wrong": 103, "contradictions": 0},
        "control": "passes", "repro": {"path": "/x/repro.py", "tier": 1, "lines": 11, "proved": "3/3"},
        "ways_round": [{"text": "chunks of 128", "measured": "right", "call": "c"}], "runs": ["r1"],
    }  # fmt: skip
    data = {"matrix": {}, "seconds": 9.0, "budget": {"minutes": 15, "left_out": []}, "causes": [cause | changes]}
    return data


@pytest.fixture
def rendered(story, tmp_path):
    def render(**changes):
        folder = story.realistic(tmp_path / "logs", ending="investigating").folder
        (folder.path / "dossier.json").write_text(json.dumps({"schema": 1, **dossier(**changes)}))
        page.render(folder)
        return folder.html.read_text(encoding="utf-8")

    return render


def test_the_page_begins_with_the_sentence_of_the_cause_its_border_and_what_it_explains(rendered):
    html = rendered()
    assert html.index("cause-1") < html.index('class="facts"')
    assert "longer than 128 &lt;/script&gt;" in html
    for words in ("cause, proved", "11 of 11 failing tests", "103 were predicted wrong and 103 were", "chunks of 128"):
        assert words in html
    assert "f16[4,128]" in html and "f16[4,129]" in html


def test_a_located_cause_is_never_called_proved(rendered):
    html = rendered(claim="located", control=None, repro=None)
    assert "located, not proved" in html and "cause, proved" not in html
    assert "no script; no control" in html


def test_a_strip_marks_the_boundary_between_the_largest_right_and_the_smallest_wrong_value(story, tmp_path):
    cause = dossier_from(dossier()).causes[0]

    class Frame:
        @staticmethod
        def line(text, most=200):
            return text[:most]

    picture = strips(Frame, cause, 1)
    assert "wrong at 129, 300" in picture.description and "right at 1, 64, 127, 128" in picture.description
    assert [s for s in picture.shapes if s.css == "ax"], "one line where right turns to wrong"
    assert {"128", "129"} <= {s.text for s in picture.shapes}


def test_a_damaged_dossier_leaves_the_page_as_it_is_without_one(story, tmp_path):
    folder = story.realistic(tmp_path / "logs", ending="investigating").folder
    page.render(folder)
    before = folder.html.read_bytes()
    for text in ("{", "[]", '{"causes": [{"id": 1}]}', '{"matrix": 1}'):
        (folder.path / "dossier.json").write_text(text)
        page.render(folder)
        assert folder.html.read_bytes() == before, text


def test_without_an_investigation_there_is_no_cause_block():
    class Frame:
        class material:
            dossier = None

    assert causes(Frame) == ()
