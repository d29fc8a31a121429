"""The gated activation: halves of a row, whole sticks and not."""

import pytest
import references
import torch
from spyre_inference.custom_ops.silu_and_mul import SpyreSiluAndMul

pytestmark = pytest.mark.siluandmul


@pytest.mark.parametrize("configure_device", ["spyre"], ids=["device_spyre"], indirect=True)
@pytest.mark.parametrize(
    "configure_compilation", ["NONE", "STOCK"], ids=["compilation_NONE", "compilation_STOCK"], indirect=True
)
@pytest.mark.parametrize("width", [128, 256, 384])
@pytest.mark.parametrize("rows", [1, 5])
def test_silu_and_mul(rows, width, configure_compilation, configure_device):
    x = torch.randn(rows, width, dtype=torch.float16)
    actual = SpyreSiluAndMul()(x)
    assert actual.device.type == configure_device.type
    torch.testing.assert_close(actual.cpu(), references.silu_and_mul(x), atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("width", [100, 200])
def test_a_half_that_is_no_whole_stick(width):
    x = torch.randn(3, width, dtype=torch.float16)
    torch.testing.assert_close(SpyreSiluAndMul()(x).cpu(), references.silu_and_mul(x), atol=1e-2, rtol=1e-2)


def test_three_dimensions():
    x = torch.randn(2, 3, 128, dtype=torch.float16)
    torch.testing.assert_close(SpyreSiluAndMul()(x).cpu(), references.silu_and_mul(x), atol=1e-2, rtol=1e-2)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="must be even"):
        SpyreSiluAndMul()(torch.randn(2, 65))


def test_nan_stays_nan():
    x = torch.randn(2, 128, dtype=torch.float16)
    x[1, 3] = float("nan")
    actual = SpyreSiluAndMul()(x).cpu()
    assert actual.isnan().nonzero().tolist() == [[1, 3]]
