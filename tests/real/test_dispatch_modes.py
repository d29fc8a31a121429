"""What a dispatch mode of ours does to the compiled kernels of the real package: nothing, in it and after it."""

import json

import pytest

RECURSION = """
import sys, torch
from torch.utils._python_dispatch import TorchDispatchMode
class Plain(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
if "apart" in sys.argv[1:]:
    import debug_spyre_kernels
    debug_spyre_kernels.keep_apart()
x = torch.ones(64, 128, dtype=torch.float16)
with Plain():
    HERE
    X = x.to("spyre")
    print("in it", float((X + X).cpu().sum()))
print("after it", float((X * 2).cpu().sum()))
"""
COMPILED = {
    "function": "torch.compile(torch.relu)(x)",
    "module": "torch.compile(torch.nn.Linear(128, 64))(x.float())",
    "lambda": "torch.compile(lambda a: a + 1)(x)",
    "module of the card": "torch.compile(torch.nn.Linear(128, 64).half().to('spyre'))(x.to('spyre'))",
}


@pytest.mark.parametrize("what", COMPILED)
def test_eager_kernels_work_in_a_mode_and_after_it_whatever_was_compiled(bench, what):
    text = RECURSION.replace("HERE", COMPILED[what]).replace("sys.argv[1:]", "['apart']")
    done = bench.python(text, inside=True)
    assert done.stdout.split() == ["in", "it", "16384.0", "after", "it", "16384.0"], done.stderr[-2000:]


def test_without_our_remedy_the_package_recurses(bench):
    """If this fails, torch or torch_spyre no longer needs the remedy: then it can go."""
    done = bench.python(RECURSION.replace("HERE", COMPILED["function"]), inside=True)
    assert "RecursionError" in done.stderr


def test_shadow_blames_no_op_for_a_compiled_function_before_it(bench):
    bench.write(
        "test_it.py",
        """
        import torch
        def half(*shape): return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).half()
        def test_compiled_function():
            x = half(4, 128)
            got = torch.compile(torch.relu)(x.to("spyre")).cpu()
            assert torch.allclose(got, torch.relu(x), atol=1e-2, rtol=1e-2)
        def test_module():
            m = torch.nn.Linear(128, 64).half()
            x = half(4, 128)
            want = m(x)
            got = torch.compile(m.to("spyre"))(x.to("spyre")).cpu()
            assert torch.allclose(got, want, atol=5e-2, rtol=5e-2)
        def test_softmax():
            x = half(4, 128)
            assert torch.allclose(torch.softmax(x.to("spyre"), -1).cpu(), torch.softmax(x, -1), atol=1e-2)
        """,
    )
    told = bench.json("shadow", "test_it.py")
    assert told["exit"] == 0, json.dumps(told)[:3000]
    assert told["suspect"] is None
