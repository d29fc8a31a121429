"""Moves are exact."""

import pytest
import torch
from spyre_inference.custom_ops.utils import convert, pad_to, round_up
from spyre_inference.platform import DEVICE, TorchSpyrePlatform


def test_none_passes_through():
    assert convert(None, DEVICE) is None


def test_a_tensor_that_has_both_comes_back_itself():
    x = torch.randn(4, dtype=torch.float16)
    assert convert(x, "cpu", torch.float16) is x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("shape", [(5,), (3, 65), (2, 3, 64)], ids=["row", "odd", "cube"])
def test_there_and_back(shape, dtype):
    x = torch.randn(shape).to(dtype)
    there = convert(x, DEVICE, torch.float16)
    assert there.device.type == "spyre"
    back = convert(there, "cpu", torch.float32)
    torch.testing.assert_close(back, x.half().float(), atol=0, rtol=0)


def test_a_direct_cast_on_transfer():
    x = torch.randn(4, 128)
    torch.testing.assert_close(x.to(DEVICE, torch.float16).cpu(), x.half(), atol=0, rtol=0)


def test_a_slice_moves_alone():
    x = torch.randn(4, 128, dtype=torch.float16)
    torch.testing.assert_close(convert(x[1:3, 64:], DEVICE).cpu(), x[1:3, 64:], atol=0, rtol=0)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_padding_adds_zeros(dim):
    x = torch.randn(3, 60, dtype=torch.float16)
    padded = pad_to(convert(x, DEVICE), dim, 64).cpu()
    assert padded.shape[dim] == 64
    torch.testing.assert_close(padded[:3, :60], x, atol=0, rtol=0)
    assert padded.float().abs().sum() == x.float().abs().sum()


def test_padding_does_not_cut():
    with pytest.raises(ValueError, match="cannot pad"):
        pad_to(torch.zeros(4), 0, 3)


@pytest.mark.parametrize("size,expected", [(1, 256), (256, 256), (257, 512)])
def test_lengths_are_rounded_up(size, expected):
    assert round_up(size, 256) == expected


def test_the_platform_takes_float16_only():
    assert TorchSpyrePlatform.check_dtype(torch.float16) is torch.float16
    with pytest.raises(ValueError, match="torch.float16"):
        TorchSpyrePlatform.check_dtype(torch.bfloat16)


def test_block_sizes_are_whole_sticks():
    assert TorchSpyrePlatform.round_block_size(65) == 128
    with pytest.raises(NotImplementedError, match="head size 80"):
        TorchSpyrePlatform.check_attention(80, 64)
