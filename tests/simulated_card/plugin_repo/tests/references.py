"""CPU references: plain code, in float32, from the same float16 inputs."""

import torch


def rms_norm(x, weight, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight.float()).half()


def silu_and_mul(x):
    a, b = x.float().chunk(2, dim=-1)
    return (a * torch.sigmoid(a) * b).half()


def linear(x, weight, bias=None):
    out = x.float() @ weight.float().t()
    return (out if bias is None else out + bias.float()).half()


def attention(query, keys, values, kv_len, scale):
    """[tokens, heads, head_size]; keys and values are [kv_len, kv_heads, head_size] in order of position."""
    group = query.shape[1] // keys.shape[1]
    k = keys.float().repeat_interleave(group, dim=1)
    v = values.float().repeat_interleave(group, dim=1)
    raw = torch.einsum("qhd,khd->hqk", query.float(), k) * scale
    first = kv_len - query.shape[0]
    seen = torch.arange(kv_len)[None, :] <= torch.arange(first, kv_len)[:, None]
    weights = torch.softmax(raw.masked_fill(~seen, float("-inf")), dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, v).half()
