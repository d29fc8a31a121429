"""The riskiest assumption: an op-by-op comparison with the CPU, under a dispatch mode over real-shape eager kernels, finds
the op that is wrong, and only that one, although each kernel is itself a compiled function."""

import random

import pytest


@pytest.fixture
def shadow(torch):
    """A prototype: each op on device tensors runs again on the CPU from the same inputs."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map_only

    def host(value):
        return value.detach().cpu().clone() if value.device.type == "spyre" else value

    class Shadow(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen, self.wrong = [], []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            before = tree_map_only(torch.Tensor, host, (args, kwargs))
            result = func(*args, **kwargs)
            on_card = [t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
            if not any(t.device.type == "spyre" for t in on_card) or not isinstance(result, torch.Tensor):
                return result
            again = func(*before[0], **{k: v for k, v in before[1].items() if k != "device"})
            self.seen.append(str(func))
            if result.is_floating_point() and result.shape == again.shape:
                error = (result.detach().cpu().double() - again.double()).abs().max().item() if result.numel() else 0.0
                if not error <= 2e-2 * max(1.0, again.double().abs().max().item()):
                    self.wrong.append((str(func), error))
            return result

    return Shadow


def block(torch, device, width):
    """A small layer: norm, gate, product."""
    torch.manual_seed(3)
    x, w = torch.randn(4, width, dtype=torch.float16), torch.randn(width, 64, dtype=torch.float16) / width**0.5
    x, w = x.to(device), w.to(device)
    normal = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    return torch.nn.functional.silu(normal[:, : width // 2]) * normal[:, width // 2 :], normal @ w


def test_the_partial_reduction_is_found_and_nothing_else(torch, shadow):
    from torch_spyre import _C, faults

    compiled = _C.stats["compile"]
    with faults.inject("partial_reduction:op=mean:width=128"), shadow() as mode:
        block(torch, "spyre", 256)
    assert {name for name, _ in mode.wrong} == {"aten.mean.dim"}
    assert _C.stats["compile"] > compiled, "the kernels were compiled under the mode"
    with faults.inject("partial_reduction:op=mean:width=128"), shadow() as narrow:
        block(torch, "spyre", 128)
    assert not narrow.wrong


def test_no_op_is_named_on_a_healthy_card(torch, shadow):
    with shadow() as mode:
        block(torch, "spyre", 256)
    assert not mode.wrong and len(mode.seen) > 6


@pytest.mark.parametrize("seed", range(6))
def test_drawn_faults_are_found(torch, shadow, seed):
    """Op and factor at random; the op named is the one that the fault touches."""
    from torch_spyre import faults

    rng = random.Random(seed)
    op = rng.choice(["mul", "rsqrt", "mm", "silu", "mean"])
    spec = faults.draw("scaled", rng, op=op, over=0 if op in {"rsqrt", "mean"} else 32)
    with faults.inject(spec), shadow() as mode:
        block(torch, "spyre", 256)
    assert mode.wrong, spec
    assert {name.split(".")[1] for name, _ in mode.wrong} == {op}, spec


def test_a_fault_of_graphs_alone_does_not_show_under_the_mode(torch, shadow, half):
    from torch_spyre import faults

    graph = torch.compile(lambda a: (a * 3) + 1)
    x = half(4, 64)
    with faults.inject("mode_only:op=mul:where=graph"):
        assert not graph(x).cpu().equal((x.cpu() * 3) + 1)
        with shadow() as mode:
            graph(x)
    assert not mode.wrong and "aten.mul.Tensor" in mode.seen
