"""Host arithmetic that rounds as the card does: products of one stick are added in float32, sticks are added in float16."""

import torch
import torch.nn.functional as F

from torch_spyre.constants import STICK

HALF = torch.float16


def matmul(a, b):
    if a.dtype != HALF:
        return torch.matmul(a, b)
    if a.size(-1) <= STICK:
        return torch.matmul(a.float(), b.float()).to(HALF)
    total = None
    for start in range(0, a.size(-1), STICK):
        part = torch.matmul(a[..., start : start + STICK].float(), b[..., start : start + STICK, :].float()).to(HALF)
        total = part if total is None else total.add_(part)
    return total


def addmm(bias, a, b, *, beta=1, alpha=1):
    product = matmul(a, b)
    return (product if alpha == 1 else product * alpha) + (bias if beta == 1 else bias * beta)


def _dims(x, dim):
    if dim is None or dim == []:
        return list(range(x.dim()))
    return sorted({d % x.dim() for d in ([dim] if isinstance(dim, int) else dim)})


def sum_over(x, dim=None, keepdim=False, *, dtype=None):
    if x.dtype != HALF or dtype not in (None, HALF) or x.dim() == 0:
        return torch.sum(x, dim=dim, keepdim=keepdim, dtype=dtype)
    dims = _dims(x, dim)
    for d in dims:
        sticks = [part.float().sum(d, keepdim=True).to(HALF) for part in x.split(STICK, d)]
        total = sticks[0].clone()
        for stick in sticks[1:]:
            total += stick
        x = total
    return x if keepdim else x.squeeze(dims)


def mean_over(x, dim=None, keepdim=False, *, dtype=None):
    if x.dtype != HALF or dtype not in (None, HALF) or x.dim() == 0:
        return torch.mean(x, dim=_dims(x, dim), keepdim=keepdim, dtype=dtype)
    total = sum_over(x, dim, keepdim)
    return total / (x.numel() / max(total.numel(), 1))


def rms_norm(x, weight=None, eps=1e-5):
    scale = torch.rsqrt(mean_over(x * x, [-1], keepdim=True) + eps)
    return x * scale if weight is None else x * scale * weight


def index_copy(x, dim, index, source):
    return torch.index_copy(x, dim, index.long(), source)


def copy_into(source, target):
    target.copy_(source)


IMPLEMENTATIONS = {
    "aten::mm": matmul,
    "aten::bmm": matmul,
    "aten::matmul": matmul,
    "aten::addmm": addmm,
    "aten::sum.dim_IntList": sum_over,
    "aten::sum": lambda x, *, dtype=None: sum_over(x, dtype=dtype),
    "aten::mean.dim": mean_over,
    "aten::mean": lambda x, *, dtype=None: mean_over(x, dtype=dtype),
    "aten::index_copy": index_copy,
    "spyre::batched_matmul": matmul,
    "spyre::silu": F.silu,
    "spyre::gelu": lambda x, approximate="none": F.gelu(x, approximate=approximate),
    "spyre::softplus": lambda x, beta=1.0, threshold=20.0: F.softplus(x, beta, threshold),
    "spyre::clamp": torch.clamp,
    "spyre::rms_norm": rms_norm,
    "spyre::layer_norm": lambda x, shape, w=None, b=None, eps=1e-5: F.layer_norm(x, shape, w, b, eps),
    "spyre::copy_from_d2d": copy_into,
    "spyre::overwrite": copy_into,
}


def implementation(op):
    """What runs on the host for an overload of aten or spyre."""
    return IMPLEMENTATIONS.get(op.name(), op)
