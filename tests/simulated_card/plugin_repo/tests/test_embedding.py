"""Rows by index are exact, and the one accepted fallback is the only one."""

import warnings

import pytest
import torch
from spyre_inference.custom_ops.embedding import SpyreEmbedding, positions


@pytest.mark.parametrize("count", [1, 7, 64])
def test_embedding(count):
    table = torch.randn(96, 64, dtype=torch.float16)
    ids = torch.randint(0, 96, (count,))
    torch.testing.assert_close(SpyreEmbedding(table)(ids).cpu(), table[ids], atol=0, rtol=0)


def test_embedding_does_not_fall_back():
    table = torch.randn(96, 64, dtype=torch.float16)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        SpyreEmbedding(table)(torch.tensor([[3, 5], [95, 0]]))
    assert not [w for w in seen if "falling back" in str(w.message)]


@pytest.mark.filterwarnings("ignore:aten.arange.*is falling back:torch_spyre.ops.fallbacks.FallbackWarning")
def test_positions_fall_back_by_arange_alone():
    from torch_spyre.ops.fallbacks import FallbackWarning

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", FallbackWarning)
        direct = torch.arange(33, dtype=torch.int32, device="spyre")
        quiet = positions(33)
    assert [str(w.message) for w in seen] == ["aten.arange.default is falling back to cpu"]
    assert direct.cpu().tolist() == quiet.cpu().tolist() == list(range(33))


def test_integer_sums_are_exact():
    at = positions(40)
    torch.testing.assert_close((at + at).cpu(), 2 * torch.arange(40, dtype=torch.int32), atol=0, rtol=0)
