"""The answer in its three forms: nothing in it acts on a terminal, Markdown says as much as the text, numbers fit their words."""

import contextlib
import html
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_spyre.cli import main
from debug_spyre.triage.io.logs_reader import triage_logs
from debug_spyre.triage.triage_words import markdown, say
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.safe_text import spelt_out

SAMPLES = Path(__file__).parents[1] / "samples"
LOGS = sorted(p for p in SAMPLES.iterdir() if p.suffix in {".txt", ".xml", ".jsonl"})
ACTS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)
HOSTILE = "\x1b]0;title\x07\x1b[2J\u202egnp\u2066\x9b31m\x85\u2028\u200b\x00\b\x7f\rx"
FAILS = (
    "tests/test_a.py:3: in test_b\nE   RuntimeError: no {0} stick\n----------- Captured log call -----------\n"
    "CRITICAL spyre {0}\nFallbackWarning: {0}\n"
)
FORMS = {
    "failures": "== test session starts ==\nrootdir: /x{0}\ncollected 2 items\n\n== FAILURES ==\n__ test_b[{0}] __\n" + FAILS
    + "== short test summary info ==\nFAILED tests/test_a.py::test_b[{0}] - RuntimeError: no {0}\n== 1 failed, 1 passed in 1.00s ==\n",
    "summary only": "FAILED tests/test_a.py::test_b[{0}] - Err{0}: {0}\nERROR tests/test_{0}.py - {0}\n",
    "running": "== test session starts ==\ncollected 2 items\n\ntests/test_a.py::test_{0}[{0}] {0}\nSegmentation fault {0}\nexit code 139 {0}\n",
    "conftest": "ImportError while loading conftest '/x/{0}/conftest.py'.\nE   ImportError: {0}\n",
    "usage": "ERROR: file or directory not found: {0}\n\n== no tests ran in 0.1s ==\n",
    "interrupted": "== test session starts ==\ncollected 2 items\n!!!!! {0} !!!!!\n== 1 passed in 1s ==\n",
    "fallback": "== test session starts ==\ncollected 1 item\n\ntests/test_a.py .\n\n== warnings summary ==\ntests/test_a.py::test_{0}\n"
    "  /x/{0}.py:3: FallbackWarning: aten::{0} is falling back to cpu\n\n== 1 passed in 1s ==\n",
    "nothing": "gcc: fatal error: {0}\n",
}  # fmt: skip


def told(path, *words):
    """(status, everything that the verb wrote)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["triage", "--from", str(path), *words])
    return status, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("words", [(), ("--json",), ("--markdown",)], ids=["text", "json", "markdown"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mark", [HOSTILE, " ".join(HOSTILE)], ids=["together", "one by one"])
def test_nothing_in_an_answer_acts_on_a_terminal(tmp_path, words, form, mark):
    path = tmp_path / (f"log-{mark}.txt" if mark not in "\x00" else "log.txt").replace("\x00", "")
    path.write_text(FORMS[form].replace("{0}", mark), encoding="utf-8", newline="")
    status, out, err = told(path, *words)
    assert ACTS.search(out + err) is None
    assert status == 0 or "next:" in err


@given(text=st.text(st.one_of(st.characters(), st.sampled_from(HOSTILE)), max_size=40))
def test_json_that_is_spelt_out_has_the_same_value_property(text):
    shown = spelt_out(json.dumps({"a": text}, ensure_ascii=False))
    assert json.loads(shown) == {"a": text}
    assert ACTS.search(shown) is None


def triages():
    for log in LOGS:
        with contextlib.suppress(BadInputError):
            yield log.name, triage_logs([log], checkout=None)


def test_markdown_says_all_that_the_text_says():
    seen = 0
    for name, triage in triages():
        shown = html.unescape(re.sub(r"[\\`]", "", markdown(triage, next_command="debug-spyre open x")))
        for line in say(triage, next_command="debug-spyre open x"):
            fact = " ".join(re.sub(r"[\\`]", "", line).replace("note: ", "").split()).replace("|", "¦")
            if re.match(r"c\d+ ", fact):
                slug, inside = fact.split(" ", 2)[1], fact[fact.rindex("[") + 1 : -1].split(", ")
                assert slug in shown, name
                assert all(part in shown for part in inside[1:] if part != "stage unknown"), (name, inside)
            elif "more " not in fact and not fact.startswith("no rule knows"):
                assert fact in " ".join(shown.replace("|", "¦").split()), (name, fact)
            seen += 1
    assert seen > 200


NOUN = r"(?:more |later )?(?:test(?! session| function)|cluster|failure|fallback|session|error|element|line|worker|process)"
UNFIT = re.compile(rf"\b1 {NOUN}e?s\b|\b(?:0|[2-9]|[1-9]\d+) {NOUN}\b(?![-\w])|\b1 passing do\b|\ball 1 ")


def test_numbers_fit_their_words():
    for name, triage in triages():
        for line in [*say(triage, next_command=""), *markdown(triage).split("\n")]:
            assert UNFIT.search(line) is None, (name, line)


@pytest.mark.parametrize("good", [1, 2])
@pytest.mark.parametrize("bad", [1, 2])
def test_numbers_of_one_and_two_fit_their_words(tmp_path, good, bad):
    names = [f"test_a[{n}]" for n in range(good + bad)]
    text = "".join(f"t/test_o.py::{n} {'PASSED' if k < good else 'FAILED'}\n" for k, n in enumerate(names))
    text += "".join(f"FAILED t/test_o.py::{n} - RuntimeError: x\n" for n in names[good:])
    (tmp_path / "log.txt").write_text(f"{text}== {bad} failed, {good} passed in 1s ==\n", encoding="utf-8")
    _, out, _ = told(tmp_path / "log.txt")
    assert UNFIT.search(out) is None, out
