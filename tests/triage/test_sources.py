"""What a checkout's source says: which fallbacks it accepts, what its parameters are called."""

import pytest

from debug_spyre.triage.accepting import find_acceptances, from_settings, mark, names_in
from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.accepted_fallbacks import acceptances_of, parameter_names
from debug_spyre.vocabulary.evidence import Fallback

CLASS = "torch_spyre.ops.fallbacks.FallbackWarning"
SOURCE = f"""
import warnings, pytest
from torch_spyre.ops.fallbacks import FallbackWarning

@pytest.mark.filterwarnings("ignore::{CLASS}")
def test_marked(): ...

class TestX:
    @pytest.mark.filterwarnings("ignore:.*tril.*:{CLASS}")
    def test_inside(self): ...

def test_warns():
    with pytest.warns(FallbackWarning, match="aten.sin"):
        f()

def test_block():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="aten\\\\.cos", category=FallbackWarning)

def test_forbids():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)

@pytest.mark.filterwarnings("error::{CLASS}")
def test_error(): ...

def test_asserts_none(recwarn):
    assert not any("embedding" in str(w.message) for w in recwarn)
"""


def fallback(op, *tests):
    return Fallback(op, "l.py", 3, tuple(f"tests/test_a.py::{t}" for t in tests))


def accepted(one, source=SOURCE, file="tests/test_a.py"):
    return mark([one], find_acceptances(source, file))[0].accepted


def line_of(text):
    return next(n for n, line in enumerate(SOURCE.split("\n"), start=1) if text in line)


@pytest.mark.parametrize(
    ("one", "where"),
    [
        (fallback("aten.any", "test_marked[1]", "test_marked[2]"), f'("ignore::{CLASS}")'),
        (fallback("aten.tril.default", "TestX::test_inside"), "ignore:.*tril"),
        (fallback("aten.sin.default", "test_warns"), "pytest.warns"),
        (fallback("aten.cos.default", "test_block"), 'message="aten'),
        (fallback("aten.any", "test_marked", "test_warns"), None),
        (fallback("aten.sin", "TestX::test_inside"), None),
        (fallback("aten.cos", "test_warns"), None),
        (fallback("aten.sin", "test_forbids"), None),
        (fallback("aten.sin", "test_error"), None),
        (fallback("aten.embedding", "test_asserts_none"), None),
        (fallback("aten.any"), None),
        (Fallback("aten.any", "l.py", 3, ("tests/test_b.py::test_marked",)), None),
    ],
)
def test_a_fallback_is_accepted_only_where_the_source_says_so(one, where):
    assert accepted(one) == (f"tests/test_a.py:{line_of(where)}" if where else None)


def test_a_module_mark_holds_for_the_file_and_its_counted_warnings():
    source = f'import pytest\npytestmark = [pytest.mark.filterwarnings("ignore::{CLASS}")]\n'
    assert accepted(fallback("aten.x", "test_y"), source) == "tests/test_a.py:2"
    assert accepted(Fallback("aten.x", "l.py", 3, ("tests/test_a.py: 14 warnings",)), source) == "tests/test_a.py:2"


def test_a_setting_holds_for_every_test_and_an_error_filter_for_none():
    text = f'[tool.pytest.ini_options]\nfilterwarnings = [\n  "ignore:.*arange.*:{CLASS}",\n  "error::{CLASS}",\n]\n'
    found = from_settings(text, "pyproject.toml")
    assert [a.place for a in found] == ["pyproject.toml:3"]
    assert mark([fallback("aten.arange", "t")], found)[0].accepted == "pyproject.toml:3"
    assert mark([fallback("aten.sin", "t")], found)[0].accepted is None


def test_source_that_is_no_python_accepts_nothing():
    assert find_acceptances("def (", "a.py") == ()
    assert find_acceptances("\x00", "a.py") == ()


def test_a_checkout_is_searched_without_its_environment(tmp_path):
    for folder in ("tests", ".venv/lib", "node_modules"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "test_a.py").write_text(SOURCE)
    (tmp_path / "tests/test_b.py").write_bytes(b"# FallbackWarning \xff\n")
    (tmp_path / "link.py").symlink_to("/etc/hostname")
    assert {a.file for a in acceptances_of(tmp_path)} == {"tests/test_a.py"}


def test_the_reader_marks_what_the_checkout_accepts(tmp_path, read_text):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text(SOURCE)
    text = (
        "============================= test session starts ==============================\n"
        "=============================== warnings summary ===============================\n"
        "tests/test_a.py::test_marked[1]\n  /w/l.py:8: FallbackWarning: aten.sin is falling back to cpu\n    x\n\n"
        "tests/test_a.py::test_new\n  /w/l.py:9: FallbackWarning: aten.cos is falling back to cpu\n    x\n\n"
        "====== 2 passed, 2 warnings in 1.0s ======\n"
    )
    first, second = read_text(text, checkout=tmp_path).fallbacks
    assert first.accepted == f"tests/test_a.py:{line_of('ignore::')}"
    assert second.accepted is None


NAMES = """
import pytest
rows = "rows"

@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("rows, hidden", [(1, 64), (2, 256)])
def test_a(rows, hidden, mode): ...

@pytest.mark.parametrize("a,b", [(1, 2)], ids=["x"])
def test_told(a, b): ...

@pytest.mark.parametrize(rows, [1])
def test_unclear(rows): ...

@pytest.mark.parametrize(["k"], [(1,)])
class TestX:
    @pytest.mark.parametrize("n", [pytest.param(1, id="one")])
    def test_b(self, n, k): ...
"""


def test_parameters_get_their_names_where_the_marks_say_them_without_doubt():
    assert names_in(NAMES, "t.py") == {"t.py::test_a": ("rows", "hidden", "mode"), "t.py::TestX::test_b": ("n", "k")}
    assert names_in("def (", "t.py") == {}


def test_the_names_are_in_pytests_order_and_in_the_separators(tmp_path, read_text):
    (tmp_path / "t.py").write_text(NAMES)
    ids = [f"t.py::test_a[{r}-{h}-{m}]" for r in (1, 2) for h in (64, 128, 256, 512) for m in ("eager", "compiled")]
    lines = [f"{n} {'FAILED' if '256' in n or '512' in n else 'PASSED'} [ 50%]" for n in ids]
    evidence = read_text(
        "============================= test session starts ==============================\n" + "\n".join(lines) + "\n"
    )
    found = group(evidence, names=parameter_names([f.nodeid for f in evidence.failures], tmp_path))
    assert found[0].separators[0].text == "all 8 failing have hidden >= 256; 0 of 8 passing do"


def test_a_node_id_does_not_lead_out_of_the_checkout(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "t.py").write_text(NAMES)
    assert parameter_names(["../t.py::test_a[1]", "/etc/hostname::x", None, "\x00.py::y"], tmp_path / "in") == {}
    assert parameter_names(["t.py::test_a"], None) == {}
