"""Paged attention on the card, in stages that can be looked at one by one.

    page_index -> gather_pages -> scores -> causal_mask -> weights -> combine

What the stages route around: the card gathers with index_select only; it copies a transposed tensor only where the last
dimension keeps its place; an int32 tensor must start at the start of its storage. Lengths are rounded up (KV_ALIGNMENT,
QUERY_CHUNK), so that few shapes are compiled; what the rounding adds is masked.
"""

from dataclasses import dataclass

import torch

from spyre_inference.config import CompilationMode, current_mode, maybe_compile
from spyre_inference.custom_ops.utils import convert, pad_to, round_up
from spyre_inference.platform import DEVICE, TorchSpyrePlatform

KV_ALIGNMENT = 256
QUERY_CHUNK = 32
MASKED = -65504.0


@dataclass
class PagedKVCache:
    """Keys and values in pages of `block_size` slots: [blocks, block_size, kv_heads, head_size]."""

    k_pages: torch.Tensor
    v_pages: torch.Tensor

    @classmethod
    def empty(cls, blocks: int, block_size: int, kv_heads: int, head_size: int, device=DEVICE) -> "PagedKVCache":
        TorchSpyrePlatform.check_attention(head_size, block_size)
        shape = (blocks, block_size, kv_heads, head_size)
        return cls(*(torch.zeros(shape, dtype=torch.float16, device=device) for _ in range(2)))

    @property
    def block_size(self) -> int:
        return self.k_pages.shape[1]


@dataclass
class SequenceMetadata:
    """One sequence of a batch: how many of its tokens are new, how many it has, and its pages in order."""

    query_len: int
    kv_len: int
    blocks: list[int]

    def slots(self, block_size: int) -> torch.Tensor:
        """Where the new tokens go, as indices of slots."""
        new = range(self.kv_len - self.query_len, self.kv_len)
        return torch.tensor([self.blocks[p // block_size] * block_size + p % block_size for p in new])


def store(pages: torch.Tensor, slots: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Write rows of [tokens, kv_heads, head_size] into their slots, in place."""
    flat = pages.view(-1, pages.shape[2] * pages.shape[3])
    flat.index_copy_(0, slots, rows.reshape(rows.shape[0], -1))
    return pages


def page_index(blocks: list[int], pages: int) -> torch.Tensor:
    """The table of pages, filled up with page 0 to a whole number of aligned lengths."""
    return torch.tensor(blocks + [0] * (pages - len(blocks)), dtype=torch.int32)


def gather_pages(pages: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """[kv_heads, length, head_size] of the pages in `index`."""
    rows = torch.index_select(pages, 0, index)
    return rows.view(-1, pages.shape[2], pages.shape[3]).transpose(0, 1).contiguous()


def causal_mask(query_positions: torch.Tensor, kv_positions: torch.Tensor) -> torch.Tensor:
    """True where a query sees a key; [queries, length]."""
    return torch.le(kv_positions.view(1, -1), query_positions.view(-1, 1))


def scores(query: torch.Tensor, keys: torch.Tensor, scale: float) -> torch.Tensor:
    """[group, queries, length] of one kv head: the group's query heads share the keys, which are broadcast."""
    return torch.matmul(query, keys.transpose(-1, -2).unsqueeze(0)) * scale


def weights(raw: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """Softmax over the visible keys."""
    penalty = torch.where(visible, torch.zeros_like(raw[0]), torch.full_like(raw[0], MASKED))
    return torch.softmax(torch.maximum(raw + penalty, torch.full_like(raw, MASKED)), dim=-1)


def combine(attention: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """[group, queries, head_size]."""
    return torch.matmul(attention, values.unsqueeze(0))


def attend_head(query, keys, values, visible, scale: float):
    """The four device stages of one kv head."""
    return combine(weights(scores(query, keys, scale), visible), values)


class SpyreAttentionImpl:
    """Attention for any number of query heads per kv head; `_target_device` may be set to the CPU."""

    def __init__(self, heads: int, head_size: int, kv_heads: int, scale: float | None = None):
        TorchSpyrePlatform.check_attention(head_size, 64)
        if heads % kv_heads:
            raise ValueError(f"{heads} query heads cannot share {kv_heads} kv heads")
        self.heads, self.head_size, self.kv_heads = heads, head_size, kv_heads
        self.scale = head_size**-0.5 if scale is None else scale
        self._target_device = DEVICE
        self._attend = maybe_compile(attend_head)
        # storing is compiled in every mode: the eager form of index_copy_ leaves the card
        self._store = maybe_compile(store, CompilationMode.STOCK_TORCH_COMPILE)
        self.mode = current_mode()

    def forward(self, query, key, value, cache: PagedKVCache, batch: list[SequenceMetadata]) -> torch.Tensor:
        """[tokens, heads, head_size] for the new tokens of all sequences, in order."""
        outputs, start = [], 0
        for sequence in batch:
            part = slice(start, start + sequence.query_len)
            outputs.append(self._one(query[part], key[part], value[part], cache, sequence))
            start += sequence.query_len
        return torch.cat([o.cpu() for o in outputs], dim=0)

    def _one(self, query, key, value, cache, sequence):
        device, size = self._target_device, cache.block_size
        slots = convert(sequence.slots(size), device)
        write = self._store if device.type == "spyre" else store
        write(cache.k_pages, slots, convert(key, device, torch.float16))
        write(cache.v_pages, slots, convert(value, device, torch.float16))
        length = round_up(sequence.kv_len, max(KV_ALIGNMENT, size))
        index = convert(page_index(sequence.blocks, length // size), device)
        keys, values = gather_pages(cache.k_pages, index), gather_pages(cache.v_pages, index)
        first = sequence.kv_len - sequence.query_len
        kv_positions = convert(torch.arange(length, dtype=torch.int32), device)
        chunks = []
        for begin in range(0, sequence.query_len, QUERY_CHUNK):
            end = min(begin + QUERY_CHUNK, sequence.query_len)
            rows = 1 if sequence.query_len == 1 else QUERY_CHUNK
            q_positions = convert(torch.arange(first + begin, first + begin + rows, dtype=torch.int32), device)
            visible = causal_mask(q_positions, kv_positions)
            chunks.append(self._chunk(query[begin:end], keys, values, visible, rows))
        return torch.cat(chunks, dim=0)

    def _chunk(self, query, keys, values, visible, rows: int):
        """One chunk of queries: [queries, heads, head_size], padded to `rows` and cut again."""
        count, group = query.shape[0], self.heads // self.kv_heads
        padded = pad_to(query.to(torch.float16), 0, rows).permute(1, 0, 2).contiguous()
        heads = convert(padded, self._target_device).view(self.kv_heads, group, rows, self.head_size)
        out = [self._attend(heads[h], keys[h], values[h], visible, self.scale) for h in range(self.kv_heads)]
        joined = torch.cat(out, dim=0)  # [heads, rows, head_size]
        return joined.transpose(0, 1)[:count].contiguous()
