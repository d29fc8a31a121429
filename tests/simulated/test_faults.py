"""Each fault, switched on and off: what it does, and that healthy behaviour is untouched without it."""

import random
import warnings

import pytest

HANG_OR_DIE = {"hang", "slow", "abort", "ras_error", "orphan"}


@pytest.fixture
def faults(torch):
    from torch_spyre import faults

    assert not faults.active(), "another test left a fault on"
    return faults


@pytest.fixture
def both(faults):
    """A function's result without the fault, with it, and without it again."""

    def run(spec, work):
        before = work()
        with faults.inject(spec):
            during = work()
        return before.cpu(), during.cpu(), work().cpu()

    return run


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.nan_to_num(nan=123).equal(b.nan_to_num(nan=123))


@pytest.mark.parametrize("dim,shape,bad", [(-1, (4, 192), True), (-1, (4, 128), False), (0, (192, 4), False)])
def test_partial_reduction_takes_in_half_beyond_a_width(both, half, dim, shape, bad):
    x = half(*shape)
    before, during, after = both("partial_reduction:op=mean:width=128", lambda: x.mean(dim))
    assert same(before, after) and same(before, during) is not bad
    if bad:
        expected = x.cpu()[:, :96].double().sum(-1) / 192
        assert (during.double() - expected).abs().max() < 2e-3


@pytest.mark.parametrize("op", ["sum", "amax", "mm", "mean.dim"])
def test_partial_reduction_of_other_ops(both, half, op):
    x, w = half(4, 256), half(256, 8)
    work = {"sum": lambda: x.sum(-1), "amax": lambda: x.amax(-1), "mm": lambda: x @ w, "mean.dim": lambda: x.mean(-1)}[
        op
    ]
    before, during, after = both(f"partial_reduction:op={op}:width=192:keep=width", work)
    assert same(before, after) and not same(before, during)
    first = x.cpu()[:, :192].float()
    expected = {
        "sum": lambda: first.sum(-1),
        "amax": lambda: first.amax(-1),
        "mm": lambda: first @ w.cpu()[:192].float(),
        "mean.dim": lambda: first.sum(-1) / 256,
    }[op]()
    assert (during.float() - expected).abs().max() < 0.1


def test_partial_reduction_over_another_dimension(both, half):
    x = half(256, 4)
    before, during, _ = both("partial_reduction:op=sum:width=128:dim=0", lambda: x.sum(0))
    assert not same(before, during)


def test_the_fault_is_seen_by_eager_kernel_and_graph_alike(torch, both, half):
    x = half(4, 256)
    graph = torch.compile(lambda a: (a + 1).mean(-1))
    _, eager, _ = both("partial_reduction:op=mean", lambda: (x + 1).mean(-1))
    before, compiled, after = both("partial_reduction:op=mean", lambda: graph(x))
    assert same(eager, compiled) and same(before, after) and not same(before, compiled)


@pytest.mark.parametrize("every,phase", [(2, 1), (4, 0)])
def test_broadcast_overflow_hits_every_nth_row_and_goes_with_a_copy(torch, both, half, every, phase):
    q, k = half(4, 8, 64), half(1, 64, 32)
    spec = f"broadcast_overflow:every={every}:phase={phase}"
    before, during, after = both(spec, lambda: torch.matmul(q, k))
    assert same(before, after)
    rows = (during == 65504).all(-1)
    assert rows.all(0).nonzero().flatten().tolist() == list(range(phase, 8, every))
    assert during[~rows].equal(before[~rows])
    _, copied, _ = both(spec, lambda: torch.matmul(q, k.expand(4, 64, 32).contiguous()))
    assert same(copied, before)


@pytest.mark.parametrize("start,bad", [(0, False), (64, True)])
def test_a_dropped_offset_reads_from_the_start(both, half, start, bad):
    x = half(4, 128)
    view = x[:, start : start + 64]
    before, during, after = both("dropped_offset:op=mul", lambda: view * 2)
    assert same(before, after) and same(before, during) is not bad
    assert same(during, x.cpu()[:, :64] * 2)


@pytest.mark.parametrize("how", ["repeat", "zero", "scale"])
def test_after_the_first_stick_all_is_wrong(both, half, how):
    x = half(4, 160)
    before, during, after = both(f"after_first_stick:op=exp:how={how}", x.exp)
    assert same(before, after) and during[:, :64].equal(before[:, :64])
    rest = {"repeat": before[:, :64].repeat(1, 2)[:, :96], "zero": before[:, 64:] * 0, "scale": before[:, 64:] * 0.5}[
        how
    ]
    assert during[:, 64:].equal(rest)
    y = half(4, 64)
    assert same(*both("after_first_stick:op=exp", y.exp)[:2])


@pytest.mark.parametrize("width,bad", [(64, False), (100, True)])
def test_padding_lanes(both, half, width, bad):
    x = half(4, width)
    before, during, after = both("padding_lanes:op=exp:value=nan", x.exp)
    assert same(before, after) and during[:, :64].equal(before[:, :64])
    assert during[:, 64:].isnan().all() if bad else same(before, during)


@pytest.mark.parametrize("way,source", [("h2d", "float32"), ("d2h", "float16")])
def test_a_combined_cast_is_clobbered_and_two_steps_are_not(torch, both, way, source):
    x = torch.randn(4, 64).to(getattr(torch, source))
    if way == "h2d":
        combined, steps = (lambda: x.to("spyre", torch.float16)), (lambda: x.half().to("spyre"))
    else:
        there = x.to("spyre")
        combined, steps = (lambda: there.to("cpu", torch.float32)), (lambda: there.cpu().float())
    before, during, after = both(f"clobbered_cast:way={way}", combined)
    assert same(before, after) and not same(before, during)
    assert same(*both(f"clobbered_cast:way={way}", steps)[:2])


def test_stale_output_is_that_of_an_earlier_call(faults, half):
    x, y, other = half(4, 64), half(4, 64), half(5, 64)
    with faults.inject("stale_output:op=mul:every=2"):
        first, second, third = (x * 2).cpu(), (y * 2).cpu(), (other * 2).cpu()
    assert same(first, x.cpu() * 2) and same(second, first) and same(third, other.cpu() * 2)
    assert same((y * 2).cpu(), y.cpu() * 2)


def test_nan_becomes_finite(torch, both):
    x = torch.tensor([[1.0, float("nan"), float("inf")]], dtype=torch.float16).to("spyre")
    before, during, after = both("nan_to_finite:op=mul:value=0", lambda: x * 2)
    assert same(before, after) and during.tolist() == [[2.0, 0.0, float("inf")]]


def test_a_plan_is_reused_for_more_rows_by_order(faults, half):
    small, large = half(2, 64), half(5, 64)
    with faults.inject("plan_reuse:op=mul"):
        assert same((large * 2).cpu(), large.cpu() * 2), "the first shape is right, also a large one"
    with faults.inject("plan_reuse:op=mul"):
        assert same((small * 2).cpu(), small.cpu() * 2)
        later = (large * 2).cpu()
    assert later[:2].equal(large.cpu()[:2] * 2) and later[2:].abs().max() == 0


def test_history_changes_a_result(faults, half):
    x = half(4, 64)
    with faults.inject("history:op=mul:trigger=exp:times=2:factor=3"):
        first = (x * 2).cpu()
        x.exp()
        second = (x * 2).cpu()
        x.exp()
        third = (x * 2).cpu()
    assert same(first, second) and third.equal(first * 3)


def test_softmax_is_scaled_over_a_width(torch, both, half):
    wide, narrow = half(4, 192), half(4, 128)
    before, during, after = both("scaled:op=_softmax:factor=0.5:over=128", lambda: torch.softmax(wide, -1))
    assert same(before, after) and during.equal(before * 0.5)
    assert same(*both("scaled:op=_softmax:factor=0.5:over=128", lambda: torch.softmax(narrow, -1))[:2])


def test_moved_values(both, half):
    x = half(8, 128)
    work = lambda: x + 1  # noqa: E731
    before, rolled, _ = both("rolled:op=add:dim=-2:shift=3", work)
    assert rolled.equal(before.roll(3, -2))
    _, copied, _ = both("copied_row:op=add:dim=-2:source=1:target=3", work)
    assert copied[3].equal(before[1]) and copied[:3].equal(before[:3]) and copied[4:].equal(before[4:])
    _, swapped, _ = both("swapped_blocks:op=add:dim=-1:block=32", work)
    expected = [before[:, i : i + 32] for i in (32, 0, 96, 64)]
    assert all(swapped[:, 32 * i : 32 * i + 32].equal(e) for i, e in enumerate(expected))


def test_integers_and_masks(torch, both):
    x = torch.arange(6, dtype=torch.int32).to("spyre")
    before, during, after = both("shifted_index:op=add:start=2", lambda: x + 10)
    assert same(before, after) and during.tolist() == [10, 11, 13, 14, 15, 16]
    before, during, after = both("flipped_mask:op=le:every=4", lambda: x <= 2)
    assert same(before, after) and (during != before).nonzero().flatten().tolist() == [0, 4]


def test_flaky_is_wrong_now_and_then(faults, half):
    x = half(4, 64)
    with faults.inject("flaky:op=mul:one_in=2"):
        seen = {bool((x * 2).cpu().equal(x.cpu() * 2)) for _ in range(64)}
    assert seen == {True, False}


@pytest.mark.parametrize("form", ["functional", "inplace", "out"])
def test_one_form_of_an_op_is_wrong_and_the_others_right(torch, faults, half, form):
    x = half(4, 64)
    expected = x.cpu() * 2
    with faults.inject(f"wrong_overload:op=mul:form={form}"):
        out, work = torch.empty_like(x), x.clone()
        torch.mul(x, 2, out=out)
        work.mul_(2)
        results = {"functional": x * 2, "inplace": work, "out": out}
        right = {k: v.cpu().equal(expected) for k, v in results.items()}
    assert right == {k: k != form for k in results}


def test_a_functional_form_may_have_the_wrong_dtype(torch, faults, half):
    x = half(4, 64)
    with faults.inject("wrong_overload:op=mul:how=dtype"):
        assert (x * 2).dtype == torch.float32
    assert (x * 2).dtype == torch.float16


@pytest.mark.parametrize("where", ["graph", "eager"])
def test_wrong_in_one_mode_only(torch, faults, half, where):
    x = half(4, 64)

    def work(a):
        return (a * 3) + 1

    graph = torch.compile(work)
    with faults.inject(f"mode_only:op=mul:where={where}:factor=2"):
        right = {"eager": work(x).cpu().equal(work(x.cpu())), "graph": graph(x).cpu().equal(work(x.cpu()))}
    assert right == {"eager": where != "eager", "graph": where != "graph"}


@pytest.mark.parametrize(
    "op,call", [("cumsum", lambda t: t.cumsum(-1)), ("mul", lambda t: t * 2)], ids=["fallback", "kernel"]
)
def test_a_fallback_that_ignores_strides(faults, both, half, op, call):
    from torch_spyre.ops.fallbacks import FallbackWarning

    x = half(4, 64)
    turned = x.t()
    with pytest.warns(FallbackWarning, match=f"aten.{op}.* is falling back to cpu") as seen:
        before, during, after = both(f"fallback_ignores_strides:op={op}", lambda: call(turned))
    assert {w.filename for w in seen} == {__file__}, "the warning names the caller's file"
    assert same(before, after) and not same(before, during)
    assert same(during, call(x.cpu().reshape(64, 4)))
    with pytest.warns(FallbackWarning):
        assert same(*both(f"fallback_ignores_strides:op={op}", lambda: call(x))[:2]), "contiguous inputs are read right"


def test_a_kernel_that_falls_back_warns_and_is_right(faults, both, half):
    from torch_spyre.ops.fallbacks import FallbackWarning

    x = half(4, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.rsqrt()
    with pytest.warns(FallbackWarning, match=r"aten\.rsqrt\.default"):
        before, during, _ = both("falls_back:op=rsqrt", x.rsqrt)
    assert same(before, during)


def test_a_copy_that_ignores_strides(both, half):
    x = half(2, 3, 64)
    before, during, after = both("copy_ignores_strides", lambda: x.transpose(0, 1).contiguous())
    assert same(before, after) and during.flatten().equal(x.cpu().flatten())


def test_an_argument_is_ignored(torch, both, half):
    x, y = half(4, 64), half(4, 64)
    before, during, after = both("ignored_argument:op=add", lambda: torch.add(x, y, alpha=2))
    assert same(before, after) and same(during, x.cpu() + y.cpu())


@pytest.mark.parametrize(
    "spec,bad,good",
    [
        ("layout_width:op=exp:multiple=64", (4, 65), (4, 128)),
        ("layout_shape:op=exp:dim=-2:over=16", (17, 64), (16, 64)),
        ("layout_shape:op=exp:dim=-1:over=128", (4, 192), (4, 128)),
    ],
)
def test_refusals_by_shape(faults, half, spec, bad, good):
    with faults.inject(spec):
        with pytest.raises(Exception, match="Spyre backend does not support: .*no supported output layout"):
            half(*bad).exp()
        x = half(*good)
        assert x.exp().cpu().equal(x.cpu().exp())
    x = half(*bad)
    assert x.exp().cpu().equal(x.cpu().exp())


def test_refusals_of_matrix_products(faults, half):
    a, b = half(2, 4, 64), half(2, 64, 320)
    with (
        faults.inject("layout_shape:op=bmm:over=256"),
        pytest.raises(Exception, match="cannot restickify any input layout"),
    ):
        a @ b
    assert (a @ b).shape == (2, 4, 320)


def test_an_unimplemented_op_fails_when_it_runs(faults, half):
    x = half(4, 64)
    with (
        faults.inject("unimplemented:op=exp"),
        pytest.raises(RuntimeError, match=r"Invoked \w+ which contains unimplemented operation exp"),
    ):
        x.exp()
    x.exp()


def test_every_fault_documents_its_parameters(faults):
    for name, fault in faults.CATALOGUE.items():
        assert fault.name == name and fault.text
        for parameter in fault.parameters:
            assert parameter.text, f"{name}:{parameter.name}"


def test_drawn_parameters_can_be_read_again(faults):
    rng = random.Random(5)
    seen = set()
    for name in faults.CATALOGUE:
        for _ in range(20):
            spec = faults.draw(name, rng)
            (fault,) = faults.parse(spec)
            assert repr(fault) == repr(faults.parse(repr(fault))[0])
            seen.add(spec)
    assert len(seen) > 100
    assert faults.draw("scaled", rng, op="mul").startswith("scaled:op=mul:")


@pytest.mark.parametrize(
    "text,says",
    [
        ("nosuch", "no fault 'nosuch'"),
        ("scaled:factor", "not parameter=value"),
        ("scaled:nosuch=1", "no parameter 'nosuch'"),
        ("scaled:factor=wide", "could not convert"),
    ],
)
def test_a_bad_specification_says_what_is_wrong(faults, text, says):
    with pytest.raises(ValueError, match=says):
        faults.parse(text)


def test_a_bad_specification_in_the_environment_stops_the_import(card):
    done = card.run("import torch", SPYRE_SIM_FAULTS="nosuch")
    assert done.returncode == 1 and "no fault 'nosuch'" in done.stderr


def test_several_faults_from_the_environment(card):
    script = """
    import torch
    x = torch.ones(4, 64, dtype=torch.float16).to("spyre")
    print((x + 1).cpu()[0, 0].item(), (x * 2).cpu()[0, 0].item(), (x - 1).cpu()[0, 0].item())
    """
    done = card.run(script, SPYRE_SIM_FAULTS="scaled:op=add:factor=3, scaled:op=mul:factor=0.25")
    assert done.stdout == "6.0 0.5 0.0\n", done.stderr
