"""Seeded rows that an investigation answers: by what was measured of the cause's own tests, none by argument."""

from dataclasses import replace

import pytest

from debug_spyre.examine.dossier import Cause, FoundCondition, cause_lines
from debug_spyre.investigate.io.sessions import _answer

FALLBACK = "an op that is taken for on-device goes to the CPU without a visible warning"
VIEW = "a stride, view or contiguous() that the backend does not honour: transposed input, offset, padded stick"
ALONE = "one op on the card gives a wrong result by itself, whatever surrounds it"


def cause(**more):
    plain = Cause(id="k1", session="s", sentence="mul is wrong when ...", op="aten.mul.Tensor", claim="cause",
                  manner="wrong-values", tests=("a",), runs=("r2", "r3"))  # fmt: skip
    return replace(plain, **more)


def when(feature):
    terms = ({"feature": feature, "relation": "==", "value": True, "words": "x"},)
    return FoundCondition(text="when x", terms=terms, borders=(), exact=True)


@pytest.mark.parametrize(
    ("text", "of", "verdict"),
    [
        (FALLBACK, cause(fallbacks=("aten.silu.default",)), "ruled-out"),
        (FALLBACK, cause(fallbacks=("aten.silu.default",), claim="located"), "confirmed"),
        (FALLBACK, cause(fallbacks=("aten.silu.default", "spyre.mul.default")), "confirmed"),
        (VIEW, cause(manner="order"), "ruled-out"),
        ("shapes beyond a limit take another path: rows tells", cause(manner="order"), "ruled-out"),
        (FALLBACK, cause(fallbacks=()), "ruled-out"),
        (FALLBACK, cause(fallbacks=None), None),
        (VIEW, cause(condition=when("strided(0)")), "confirmed"),
        (VIEW, cause(condition=when("offset(any)")), "confirmed"),
        (VIEW, cause(condition=when("size(0,-1)")), "ruled-out"),
        (VIEW, cause(), None),
        ("spyre.mul.Tensor runs on the CPU at a b.py:3 and gives another dtype", cause(), "confirmed"),
        ("aten.mul_.Tensor runs on the CPU at a.py:3 and gives another dtype", cause(), "confirmed"),
        ("aten.cumsum.default runs on the CPU at a.py:3 and gives another dtype", cause(), "ruled-out"),
        ("aten.mul.Tensor runs on the CPU at a.py:3 and gives another dtype", cause(claim="located"), None),
        ("aten.mul.Tensor runs on the CPU at a.py:3 and gives another dtype", cause(manner="order"), None),
        (ALONE, cause(), "confirmed"),
        (ALONE, cause(manner="order"), "ruled-out"),
        ("something else", cause(), None),
    ],
)
def test_a_seeded_row_gets_the_verdict_that_was_measured_or_stays_queued(text, of, verdict):
    answer = _answer(text, of, None)
    assert (answer[0] if answer else None) == verdict
    if answer:
        assert set(answer[2]) <= set(of.runs)


@pytest.mark.parametrize(
    ("fallbacks", "said"),
    [
        (("spyre.mul.default", "aten.index_copy.out"), True),
        (("aten.index_copy.out",), False),
        ((), False),
        (None, False),
    ],
)
def test_only_a_fallback_of_the_causes_own_op_is_said_with_it(fallbacks, said):
    text = "\n".join(cause_lines(cause(fallbacks=fallbacks)))
    assert ("falls back to the CPU: spyre.mul.default" in text) is said
    assert "index_copy" not in text
