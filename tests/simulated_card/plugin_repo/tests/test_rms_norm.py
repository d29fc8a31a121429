"""RMS norm against its reference, over widths, rows and modes."""

import pytest
import references
import torch
from spyre_inference.custom_ops.rms_norm import SpyreRMSNorm

pytestmark = pytest.mark.rmsnorm
EPS = 1e-6


def layer_and_input(rows, width):
    layer = SpyreRMSNorm(width, EPS)
    layer.weight.data.copy_(torch.rand(width) + 0.5)
    return layer, torch.randn(rows, width, dtype=torch.float16)


@pytest.mark.parametrize("configure_device", ["spyre"], ids=["device_spyre"], indirect=True)
@pytest.mark.parametrize(
    "configure_compilation", ["NONE", "STOCK"], ids=["compilation_NONE", "compilation_STOCK"], indirect=True
)
@pytest.mark.parametrize("width", [64, 128, 256, 320])
@pytest.mark.parametrize("rows", [1, 4])
def test_rms_norm(rows, width, configure_compilation, configure_device):
    layer, x = layer_and_input(rows, width)
    actual = layer(x)
    assert actual.device.type == configure_device.type
    expected = references.rms_norm(x, layer.weight, EPS)
    torch.testing.assert_close(actual.cpu(), expected, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("configure_compilation", ["NONE"], ids=["compilation_NONE"], indirect=True)
@pytest.mark.parametrize("width", [128, 256])
def test_rms_norm_with_residual(width, configure_compilation):
    layer, x = layer_and_input(4, width)
    residual = torch.randn(4, width, dtype=torch.float16)
    actual, total = layer(x, residual)
    torch.testing.assert_close(total.cpu(), x + residual, atol=0, rtol=0)
    torch.testing.assert_close(actual.cpu(), references.rms_norm(x + residual, layer.weight, EPS), atol=1e-2, rtol=1e-2)


def test_large_values_do_not_overflow():
    layer, x = layer_and_input(4, 256)
    x = x * 100
    torch.testing.assert_close(layer(x).cpu(), references.rms_norm(x, layer.weight, EPS), atol=1e-2, rtol=1e-2)


def test_the_same_steps_on_the_cpu():
    layer, x = layer_and_input(4, 256)
    layer._target_device = torch.device("cpu")
    torch.testing.assert_close(layer(x), references.rms_norm(x, layer.weight, EPS), atol=1e-2, rtol=1e-2)
