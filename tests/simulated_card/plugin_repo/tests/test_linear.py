"""Linear layers: inner and outer sizes, bias, leading dimensions, and merged outputs."""

import pytest
import references
import torch
from spyre_inference.custom_ops.linear import MergedLinear, SpyreLinear


def loaded(inner, outer, bias=False):
    layer = SpyreLinear(inner, outer, bias)
    weight = torch.randn(outer, inner, dtype=torch.float16) * inner**-0.5
    layer.load(weight, torch.randn(outer, dtype=torch.float16) if bias else None)
    return layer


@pytest.mark.parametrize("configure_device", ["spyre"], ids=["device_spyre"], indirect=True)
@pytest.mark.parametrize(
    "configure_compilation", ["NONE", "STOCK"], ids=["compilation_NONE", "compilation_STOCK"], indirect=True
)
@pytest.mark.parametrize("inner,outer", [(64, 64), (128, 192), (256, 64)], ids=["64to64", "128to192", "256to64"])
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
def test_linear(bias, inner, outer, configure_compilation, configure_device):
    layer = loaded(inner, outer, bias)
    x = torch.randn(4, inner, dtype=torch.float16)
    actual = layer(x)
    assert actual.device.type == configure_device.type
    torch.testing.assert_close(actual.cpu(), references.linear(x, layer.weight, layer.bias), atol=1e-2, rtol=1e-2)


def test_leading_dimensions_are_rows():
    layer = loaded(64, 64)
    x = torch.randn(2, 2, 64, dtype=torch.float16)
    torch.testing.assert_close(layer(x).cpu(), references.linear(x, layer.weight), atol=1e-2, rtol=1e-2)


def test_merged_outputs_are_split():
    layer = MergedLinear(64, [64, 128])
    layer.load(torch.randn(192, 64, dtype=torch.float16) * 0.125)
    x = torch.randn(4, 64, dtype=torch.float16)
    first, second = layer(x)
    expected = references.linear(x, layer.weight)
    torch.testing.assert_close(first.cpu(), expected[:, :64], atol=1e-2, rtol=1e-2)
    torch.testing.assert_close(second.cpu(), expected[:, 64:], atol=1e-2, rtol=1e-2)


def test_a_slice_of_the_output_can_be_used():
    layer = MergedLinear(64, [64, 128])
    layer.load(torch.randn(192, 64, dtype=torch.float16) * 0.125)
    x = torch.randn(4, 64, dtype=torch.float16)
    _, second = layer(x)
    torch.testing.assert_close(
        (second + second).cpu(), 2 * references.linear(x, layer.weight)[:, 64:], atol=2e-2, rtol=2e-2
    )


def test_a_weight_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="weight of"):
        SpyreLinear(64, 64).load(torch.zeros(64, 32))


def test_a_float32_input_arrives_as_float16():
    layer = loaded(64, 64)
    x = torch.randn(4, 64)
    actual = layer(x)
    assert actual.dtype == torch.float16
    torch.testing.assert_close(actual.cpu(), references.linear(x.half(), layer.weight), atol=1e-2, rtol=1e-2)
