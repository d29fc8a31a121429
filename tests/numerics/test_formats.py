"""Bytes are decoded as torch decodes them, and units in the last place are counted as bits count them."""

import numpy as np
import pytest
import torch

from debug_spyre.numerics.formats import DEVICE, FORMATS, decode, round_to, units


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_16_bit_floats(dtype):
    codes = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    wanted = codes.view(getattr(torch, dtype)).float().numpy()
    found = decode(codes.numpy().tobytes(), dtype, (65536,)).array
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_all_8_bit_floats(dtype):
    codes = torch.arange(256, dtype=torch.int16).to(torch.uint8)
    np.testing.assert_array_equal(
        decode(codes.numpy().tobytes(), dtype, (256,)).array, codes.view(getattr(torch, dtype)).float().numpy()
    )


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_wrong_number_of_bytes_is_refused(name):
    with pytest.raises(ValueError, match="bytes"):
        decode(b"\0" * (3 * FORMATS[name].size), name, (4,))


@pytest.mark.parametrize(
    ("dtype", "bits"), [("float16", torch.int16), ("bfloat16", torch.int16), ("float32", torch.int32)]
)
def test_one_step_in_the_bits_is_one_unit(dtype, bits):
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0)).to(getattr(torch, dtype))
    y = (x.view(bits) + 1).view(x.dtype)
    at = np.maximum(x.abs().float().numpy(), y.abs().float().numpy())
    found = units(np.abs(x.float().numpy() - y.float().numpy()), at, FORMATS[dtype])
    assert found.max() <= 1 and np.median(found) == 1


def test_the_cards_format_has_one_bit_less_than_half_precision():
    assert float(round_to(np.array([65504.0]), DEVICE)[0]) in {65472.0, 65536.0}
    assert float(round_to(np.array([65472.0]), DEVICE)[0]) == 65472.0
    assert round_to(np.array([1 + 2.0**-10]), DEVICE)[0] == 1.0
    assert round_to(np.array([0.0, -3.0, np.inf]), DEVICE).tolist() == [0.0, -3.0, np.inf]
