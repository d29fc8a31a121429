"""Paged attention against a plain reference, over query and KV lengths, batches, head layouts and modes."""

import pytest
import references
import torch
from comparison import assert_close_outliers
from spyre_inference.v1.attention.backends import spyre_attn
from spyre_inference.v1.attention.backends.spyre_attn import PagedKVCache, SequenceMetadata, SpyreAttentionImpl

pytestmark = pytest.mark.attention
BLOCK = 64


class Case:
    """A batch with its cache: older tokens are in their pages, the new ones are handed to forward."""

    def __init__(self, lengths, heads=4, kv_heads=2, head_size=64, device="spyre"):
        self.impl = SpyreAttentionImpl(heads, head_size, kv_heads)
        self.impl._target_device = torch.device(device)
        self.batch, self.keys, self.values, queries = [], [], [], []
        blocks = [-(-kv // BLOCK) for _, kv in lengths]
        order = torch.randperm(sum(blocks) + 1, generator=torch.Generator().manual_seed(3))
        cache = PagedKVCache.empty(len(order), BLOCK, kv_heads, head_size, device="cpu")
        free = [int(b) for b in order if b != 0]
        for (q_len, kv_len), count in zip(lengths, blocks, strict=True):
            own, free = free[:count], free[count:]
            sequence = SequenceMetadata(q_len, kv_len, own)
            k, v = (torch.randn(kv_len, kv_heads, head_size, dtype=torch.float16) for _ in range(2))
            for position in range(kv_len - q_len):
                cache.k_pages[own[position // BLOCK], position % BLOCK] = k[position]
                cache.v_pages[own[position // BLOCK], position % BLOCK] = v[position]
            self.batch.append(sequence)
            self.keys.append(k)
            self.values.append(v)
            queries.append(torch.randn(q_len, heads, head_size, dtype=torch.float16))
        self.query = torch.cat(queries)
        self.cache = PagedKVCache(cache.k_pages.to(device), cache.v_pages.to(device))

    def new(self, tensors):
        return torch.cat([t[s.kv_len - s.query_len :] for t, s in zip(tensors, self.batch, strict=True)])

    def run(self):
        return self.impl.forward(self.query, self.new(self.keys), self.new(self.values), self.cache, self.batch)

    def expected(self):
        parts, start = [], 0
        for sequence, k, v in zip(self.batch, self.keys, self.values, strict=True):
            q = self.query[start : start + sequence.query_len]
            parts.append(references.attention(q, k, v, sequence.kv_len, self.impl.scale))
            start += sequence.query_len
        return torch.cat(parts)


def compare(case):
    expected = case.expected()
    actual = case.run()
    assert_close_outliers(actual, expected)


both_modes = pytest.mark.parametrize(
    "configure_compilation", ["NONE", "STOCK"], ids=["compilation_NONE", "compilation_STOCK"], indirect=True
)
on_card = pytest.mark.parametrize("configure_device", ["spyre"], ids=["device_spyre"], indirect=True)


@on_card
@both_modes
@pytest.mark.parametrize(
    "lengths",
    [[(1, 64)], [(1, 256)], [(1, 257)], [(1, 512)], [(32, 32)], [(32, 256)], [(40, 100)], [(64, 320)]],
    ids=[
        "decode(q=1,kv=64)",
        "decode(q=1,kv=256)",
        "decode(q=1,kv=257)",
        "decode(q=1,kv=512)",
        "prefill(q=32,kv=32)",
        "prefill(q=32,kv=256)",
        "prefill(q=40,kv=100)",
        "prefill(q=64,kv=320)",
    ],
)
def test_spyre_attn_core(lengths, configure_compilation, configure_device):
    compare(Case(lengths, device=configure_device.type))


@on_card
@both_modes
@pytest.mark.parametrize(
    "lengths",
    [[(1, 64), (1, 256)], [(1, 100), (32, 64)]],
    ids=["batch_decode(2seqs)", "mixed(decode+prefill)"],
)
def test_spyre_attn_batch(lengths, configure_compilation, configure_device):
    compare(Case(lengths, device=configure_device.type))


@on_card
@pytest.mark.parametrize("configure_compilation", ["NONE"], ids=["compilation_NONE"], indirect=True)
@pytest.mark.parametrize("heads,kv_heads", [(4, 4), (4, 1), (2, 2)], ids=["mha(4)", "mqa(4,1)", "mha(2)"])
def test_spyre_attn_heads(heads, kv_heads, configure_compilation, configure_device):
    compare(Case([(1, 64)], heads=heads, kv_heads=kv_heads))


@on_card
@pytest.mark.parametrize("configure_compilation", ["NONE"], ids=["compilation_NONE"], indirect=True)
@pytest.mark.parametrize("head_size", [64, 128], ids=["head_size(64)", "head_size(128)"])
def test_spyre_attn_head_size(head_size, configure_compilation, configure_device):
    compare(Case([(32, 64)], heads=2, kv_heads=1, head_size=head_size))


def test_the_same_stages_on_the_cpu():
    compare(Case([(32, 100)], device="cpu"))


def test_attention_does_not_fall_back():
    import warnings

    case = Case([(1, 64)])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        case.run()
    assert not [w for w in seen if "index_copy" in str(w.message) or "embedding" in str(w.message)]


def test_new_tokens_are_stored_in_their_slots():
    case = Case([(40, 100)])
    case.run()
    pages = case.cache.k_pages.cpu()
    stored = [pages[case.batch[0].blocks[p // BLOCK], p % BLOCK] for p in range(100)]
    torch.testing.assert_close(torch.stack(stored), case.keys[0], atol=0, rtol=0)


@pytest.mark.parametrize("blocks,pages", [([3, 1], 4), ([2], 4), ([5, 4, 2, 1, 6], 8)], ids=["two", "one", "five"])
def test_page_index(blocks, pages):
    index = spyre_attn.page_index(blocks, pages).to("spyre")
    torch.testing.assert_close(
        index.cpu(), torch.tensor(blocks + [0] * (pages - len(blocks)), dtype=torch.int32), atol=0, rtol=0
    )
    table = torch.arange(10 * 64, dtype=torch.int32).view(10, 64).to("spyre")
    gathered = torch.index_select(table, 0, index).cpu()
    expected = table.cpu()[(blocks + [0] * (pages - len(blocks)))]
    torch.testing.assert_close(gathered, expected, atol=0, rtol=0)


@pytest.mark.parametrize("queries,length", [(1, 256), (32, 256)], ids=["mask(q=1,kv=256)", "mask(q=32,kv=256)"])
def test_causal_mask(queries, length):
    rows, columns = torch.arange(5, 5 + queries, dtype=torch.int32), torch.arange(length, dtype=torch.int32)
    actual = spyre_attn.causal_mask(rows.to("spyre"), columns.to("spyre"))
    torch.testing.assert_close(actual.cpu(), columns[None, :] <= rows[:, None], atol=0, rtol=0)


def test_a_stage_alone_scores():
    q, k = torch.randn(2, 32, 64, dtype=torch.float16), torch.randn(256, 64, dtype=torch.float16)
    actual = spyre_attn.scores(q.to("spyre"), k.to("spyre"), 0.125)
    assert_close_outliers(actual, (q.float() @ k.float().t() * 0.125).half())


def test_a_stage_alone_weights():
    raw, seen = torch.randn(2, 32, 256, dtype=torch.float16), torch.rand(32, 256) < 0.5
    actual = spyre_attn.weights(raw.to("spyre"), seen.to("spyre"))
    expected = torch.softmax(raw.float().masked_fill(~seen, float("-inf")), -1).half()
    torch.testing.assert_close(actual.cpu(), expected, atol=1e-2, rtol=1e-2)


def test_a_head_size_that_is_no_whole_stick_is_refused():
    with pytest.raises(NotImplementedError, match="head size 80"):
        SpyreAttentionImpl(4, 80, 2)
