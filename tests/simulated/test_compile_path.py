"""Eager kernels are compiled functions; user graphs take the same way; errors arrive as the real ones do."""

import traceback

import pytest

pytestmark = pytest.mark.slow  # of the stand-in itself


@pytest.fixture
def compiles():
    from torch_spyre import _C

    class Count:
        def __enter__(self):
            self.before = _C.stats["compile"]
            return self

        def __exit__(self, *_):
            self.number = _C.stats["compile"] - self.before

    return Count


def test_an_eager_op_compiles_once_per_shape(half, compiles):
    x, y = half(3, 96), half(5, 96)
    with compiles() as first:
        x.sigmoid()
    with compiles() as again:
        x.sigmoid()
    with compiles() as other:
        y.sigmoid()
    assert (first.number, again.number, other.number) == (1, 0, 1)


def test_the_short_way_compiles_nothing(half, compiles, monkeypatch):
    monkeypatch.setenv("SPYRE_SIM_COMPILE", "0")
    x = half(3, 97)
    with compiles() as count:
        result = x.tanh()
    assert count.number == 0
    assert result.cpu().equal(x.cpu().tanh())


def test_forced_eager_recurses_as_on_the_card(torch, half):
    x = half(2, 64)
    with pytest.raises(RecursionError), torch.compiler.set_stance("force_eager"):
        x.neg()


def test_dynamo_switched_off_recurses_too(card):
    done = card.run(
        'import torch; torch.ones(4, device="spyre", dtype=torch.float16) + 1',
        TORCHDYNAMO_DISABLE="1",
        SPYRE_SIM_COMPILE="1",
    )
    assert done.returncode == 1 and "RecursionError" in done.stderr


def test_a_dispatch_mode_sees_the_ops_that_the_program_calls(torch, half):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    def work(a):
        return torch.softmax(a * 2 + 1, -1).mean(-1)

    x = half(4, 64)
    expected = ["aten.mul.Tensor", "aten.add.Tensor", "aten._softmax.default", "aten.mean.dim"]
    with Names() as plain:
        work(x)
    assert plain.names == expected
    with Names() as compiled:
        torch.compile(work)(x)
    assert compiled.names == expected, "under a dispatch mode a compiled function runs op by op"


def test_a_user_graph_is_one_compile_and_right(torch, half, compiles):
    def work(a, b):
        return torch.relu(a @ b + 1).sum(-1) * 2

    a, b = half(4, 64), half(64, 32)
    with compiles() as count:
        result = torch.compile(work)(a, b)
    assert count.number == 1
    torch.testing.assert_close(result.cpu(), work(a.cpu().float(), b.cpu().float()).half(), atol=0.3, rtol=1e-2)


def test_graphs_that_write_to_their_inputs(torch, half):
    def work(a, b):
        a.mul_(2)
        a[:, :8].add_(b)
        return a + 1

    a, b = half(4, 64), half(4, 8)
    expected = a.cpu().clone()
    expected_result = work(expected, b.cpu())
    result = torch.compile(work)(a, b)
    assert a.cpu().equal(expected) and result.cpu().equal(expected_result)


def test_graphs_that_return_inputs_and_views(torch, half):
    def work(a):
        return a, a.t(), a.view(-1)[:5]

    a = half(4, 64)
    same, turned, part = torch.compile(work)(a)
    assert same is a or same.data_ptr() == a.data_ptr()
    assert turned.stride() == a.t().stride() and turned.cpu().equal(a.cpu().t())
    assert part.cpu().equal(a.cpu().view(-1)[:5])


def test_an_op_of_a_graph_that_falls_back_warns_and_is_right(torch, half):
    from torch_spyre.ops.fallbacks import FallbackWarning

    def work(a):
        return torch.sin(a * 2) + 1

    a = half(4, 64)
    with pytest.warns(FallbackWarning, match=r"aten\.sin\.default is falling back to cpu") as seen:
        result = torch.compile(work)(a)
    assert seen[0].filename == __file__
    torch.testing.assert_close(result.cpu(), work(a.cpu()), atol=2e-3, rtol=2e-3)


def test_training_through_a_graph(torch, half):
    a = half(4, 64).requires_grad_()
    torch.compile(lambda x: (x * x).sum())(a).backward()
    assert a.grad.cpu().equal(2 * a.detach().cpu())


def test_functions_on_the_cpu_are_not_touched(torch, compiles):
    with compiles() as count:
        result = torch.compile(lambda a: a * 2 + 1, backend="aot_eager")(torch.ones(3))
    assert count.number == 0 and result.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "fault,file,text",
    [
        (
            "layout_width:op=mul",
            "propagate_layouts.py",
            "InductorError: Unsupported: Spyre backend does not support: Multi-arg",
        ),
        (
            "lowering_error:op=mul",
            "lowering.py",
            "InductorError: LoweringException: Unsupported: Spyre backend does not",
        ),
        ("codegen_error:op=mul", "spyre_kernel.py", "InductorError: AttributeError: type object 'SpyreOpFuncs' has no"),
    ],
)
@pytest.mark.parametrize("way", ["eager", "graph"])
def test_a_refusal_arrives_as_inductor_error_from_its_own_file(torch, half, fault, file, text, way):
    from torch._inductor.exc import InductorError
    from torch_spyre import faults

    x = half(4, 65)
    call = (lambda: x * 2) if way == "eager" else (lambda: torch.compile(lambda a: torch.neg(a * 2))(x))
    with faults.inject(fault), pytest.raises(InductorError) as caught:
        call()
    assert text in "".join(traceback.format_exception(caught.value))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].filename.endswith(f"torch_spyre/_inductor/{file}")
    assert (x * 2).cpu().equal(x.cpu() * 2), "off again"


def test_an_op_without_any_form_gives_torchs_own_error(half):
    with pytest.raises(
        NotImplementedError, match=r"Could not run 'aten::erfinv.* with arguments from the 'spyre' backend"
    ):
        half(4).erfinv()


def test_more_shapes_than_dynamo_keeps_by_default(half, torch):
    for n in range(1, 12):
        x = half(n, 7)
        assert (x * 3).cpu().equal(x.cpu() * 3)


def test_past_dynamos_limit_a_kernel_calls_itself(torch, half):
    """What the real card does too when too many shapes were compiled; the limit is raised to make it rare."""
    assert torch._dynamo.config.recompile_limit >= 1024
    with torch._dynamo.config.patch(recompile_limit=2), pytest.raises(RecursionError):
        for n in range(1, 5):
            half(n, 33).abs()
    torch._dynamo.reset()
    x = half(3, 33)
    assert x.abs().cpu().equal(x.cpu().abs())


def test_the_limit_holds_in_a_new_thread(torch, half):
    from concurrent.futures import ThreadPoolExecutor

    def many():
        return all((x := half(n, 35)).relu().cpu().equal(x.cpu().relu()) for n in range(1, 13))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(many).result()


def test_a_graph_break_around_eager_kernels(torch, half):
    def work(a):
        b = a * 2
        torch._dynamo.graph_break()
        return b.item() if b.numel() == 1 else (b + 1).relu()

    x = half(4, 64)
    assert torch.compile(work)(x).cpu().equal((x.cpu() * 2 + 1).relu())


def test_without_autoload_an_import_is_enough(card):
    done = card.run(
        'import torch, torch_spyre; print((torch.ones(2, device="spyre", dtype=torch.float16) + 1).cpu().tolist())',
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert done.stdout == "[2.0, 2.0]\n", done.stderr
