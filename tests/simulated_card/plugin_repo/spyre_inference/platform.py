"""What the card allows, checked where a model is set up."""

import torch

DEVICE = torch.device("spyre")
STICK = 64


class TorchSpyrePlatform:
    """Constraints of the platform layer: one dtype, head and block sizes in whole sticks, one process."""

    device_name = "spyre"
    supported_dtypes = (torch.float16,)
    tensor_parallel_size = 1

    @classmethod
    def check_dtype(cls, dtype: torch.dtype) -> torch.dtype:
        if dtype not in cls.supported_dtypes:
            raise ValueError(f"The model dtype needs to be torch.float16 for spyre, not {dtype}")
        return dtype

    @classmethod
    def check_attention(cls, head_size: int, block_size: int) -> None:
        if head_size % STICK:
            raise NotImplementedError(f"attention head size {head_size} is not a multiple of {STICK}")
        if block_size % STICK:
            raise NotImplementedError(f"KV block size {block_size} is not a multiple of {STICK}")

    @classmethod
    def round_block_size(cls, block_size: int) -> int:
        return -(-block_size // STICK) * STICK
