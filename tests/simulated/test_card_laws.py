"""Laws of a healthy card, over random shapes and views: what is exact on the CPU is the same on the card."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = int(60 * float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")))
OPS = {
    "add": lambda torch, a, b: a + b,
    "mul": lambda torch, a, b: a * b,
    "sub": lambda torch, a, b: torch.sub(a, b, alpha=2),
    "exp": lambda torch, a, b: a.exp(),
    "relu": lambda torch, a, b: a.relu(),
    "le": lambda torch, a, b: a <= b,
    "where": lambda torch, a, b: torch.where(a > b, a, b),
    "maximum": lambda torch, a, b: torch.maximum(a, b),
    "cat": lambda torch, a, b: torch.cat([a, b]),
    "in place": lambda torch, a, b: a.clone().mul_(b),
    "pad": lambda torch, a, b: torch.constant_pad_nd(a, [0, 3], 1.0),
    "amax": lambda torch, a, b: a.amax(-1),
    "copy": lambda torch, a, b: a.contiguous(),
}
VIEWS = {
    "whole": lambda t: t,
    "rows": lambda t: t[1:] if t.shape[0] > 1 else t,
    "columns": lambda t: t[:, t.shape[1] // 2 :],
    "steps": lambda t: t[:, ::2],
    "turned": lambda t: t.transpose(0, 1),
    "expanded": lambda t: t[:1].expand(3, t.shape[1]),
}


@pytest.fixture
def lifted(torch, monkeypatch):
    """A card without limitations, and without compiling: the law is about results."""
    from torch_spyre import limits

    monkeypatch.setenv("SPYRE_SIM_COMPILE", "0")
    with limits.having("none"):
        yield torch


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 70),
    columns=st.integers(1, 140),
    op=st.sampled_from(sorted(OPS)),
    view=st.sampled_from(sorted(VIEWS)),
    dtype=st.sampled_from(["float16", "float32"]),
    seed=st.integers(0, 2**16),
)
def test_exact_ops_are_the_same_on_the_card(lifted, rows, columns, op, view, dtype, seed):
    torch = lifted
    torch.manual_seed(seed)
    a, b = (torch.randn(rows, columns).to(getattr(torch, dtype)) for _ in range(2))
    expected = OPS[op](torch, VIEWS[view](a), VIEWS[view](b))
    there = [VIEWS[view](t.to("spyre")) for t in (a, b)]
    result = OPS[op](torch, *there)
    assert result.device.type == "spyre" and result.dtype == expected.dtype
    assert result.cpu().equal(expected)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 20), inner=st.integers(1, 300), columns=st.integers(1, 20), seed=st.integers(0, 2**16))
def test_products_and_sums_stay_within_float16(lifted, rows, inner, columns, seed):
    torch = lifted
    torch.manual_seed(seed)
    a, b = torch.randn(rows, inner).half(), torch.randn(inner, columns).half()
    allowed = 2e-3 * inner**0.5 * 4
    assert ((a.to("spyre") @ b.to("spyre")).cpu().float() - a.float() @ b.float()).abs().max() <= allowed
    assert (a.to("spyre").sum(-1).cpu().float() - a.float().sum(-1)).abs().max() <= allowed
    assert (a.to("spyre").mean(-1).cpu().float() - a.float().mean(-1)).abs().max() <= allowed
