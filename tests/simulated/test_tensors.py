"""A device tensor is a plain tensor: views, aliasing, in-place, out=, storage, autograd, files."""

import copy
import io
import warnings

import pytest


def test_views_share_memory_and_have_strides_and_offsets(torch, half):
    x = half(4, 96)
    host = x.cpu()
    for view in (
        lambda t: t[1:, 8:40],
        lambda t: t.t(),
        lambda t: t.view(8, 48)[::2],
        lambda t: t[2],
        lambda t: t[:, None, :].expand(4, 3, 96),
    ):
        assert view(x).stride() == view(host).stride() and view(x).storage_offset() == view(host).storage_offset()
        assert view(x).cpu().equal(view(host))
    x[1:3, 8:40].mul_(2)
    host[1:3, 8:40].mul_(2)
    assert x.cpu().equal(host)


@pytest.mark.parametrize("name", ["add", "mul", "sub", "div"])
def test_all_forms_of_an_op_agree(torch, half, name):
    a, b = half(4, 64), half(4, 64)
    expected = getattr(torch, name)(a.cpu(), b.cpu())
    out = torch.empty(0, dtype=torch.float16, device="spyre")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # out is resized
        given = getattr(torch, name)(a, b, out=out)
    assert given is out
    work = a.clone()
    changed = getattr(work, name + "_")(b)
    assert changed is work
    for result in (getattr(torch, name)(a, b), out, work):
        assert result.cpu().equal(expected)


def test_an_op_may_take_the_same_tensor_twice(torch, half):
    x = half(64, 64)
    torch.testing.assert_close((x @ x).cpu(), x.cpu() @ x.cpu(), atol=0.1, rtol=1e-2)
    torch.testing.assert_close(torch.compile(torch.mm)(x, x).cpu(), x.cpu() @ x.cpu(), atol=0.1, rtol=1e-2)
    assert (x + x).cpu().equal(x.cpu() + x.cpu()) and torch.cat([x, x]).cpu().equal(torch.cat([x.cpu(), x.cpu()]))


def test_out_may_overlap_an_input(torch, half):
    a = half(4, 64)
    expected = a.cpu() * 2
    torch.mul(a, 2, out=a)
    assert a.cpu().equal(expected)


def test_a_result_that_does_not_fit_its_target_is_refused(torch):
    whole = torch.ones(4, dtype=torch.int32).to("spyre")
    with pytest.raises(RuntimeError, match="can't be cast"):
        whole.mul_(1.5)


def test_non_contiguous_in_place_and_out(torch, half):
    a, b = half(64, 4), half(4, 64)
    expected = a.cpu().t() + b.cpu()
    a.t().add_(b)
    assert a.cpu().t().equal(expected)


def test_zero_size_and_zero_dim(torch):
    empty = torch.empty(0, 64, dtype=torch.float16, device="spyre")
    assert (empty + 1).shape == (0, 64) and empty.cpu().shape == (0, 64)
    scalar = torch.tensor(3.0, dtype=torch.float16).to("spyre")
    assert (scalar * 2).item() == 6.0 and scalar.shape == ()


def test_numbers_and_scalars_of_the_cpu_take_part(torch, half):
    x = half(4, 64)
    assert (x * torch.tensor(2.0)).cpu().equal(x.cpu() * 2) and (2 - x).cpu().equal(2 - x.cpu())


def test_a_tensor_of_the_cpu_does_not(torch, half):
    with pytest.raises(RuntimeError, match="device"):
        half(4, 64) + torch.ones(4, 64)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "int32", "int64", "bool", "uint8", "float8_e4m3fn"]
)
def test_transfers_are_exact(torch, dtype):
    dtype = getattr(torch, dtype)
    x = torch.randint(0, 2, (3, 65)).to(dtype)
    there = x.to("spyre")
    assert there.dtype == dtype and there.cpu().view(torch.uint8).equal(x.view(torch.uint8))


def test_dtype_changes_on_the_way_and_on_the_card(torch):
    x = torch.randn(4, 65)
    assert x.to("spyre", torch.float16).cpu().equal(x.half())
    assert x.to("spyre").to(torch.float16).cpu().equal(x.half())
    assert x.half().to("spyre").to("cpu", torch.float32).equal(x.half().float())


def test_save_and_load_pickle_and_deepcopy(torch, half):
    x = half(4, 64)
    buffer = io.BytesIO()
    torch.save({"x": x, "view": x[1:]}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=True)
    assert loaded["x"].device.type == "spyre" and loaded["x"].cpu().equal(x.cpu())
    assert loaded["view"].untyped_storage().data_ptr() == loaded["x"].untyped_storage().data_ptr()
    assert copy.deepcopy(x).cpu().equal(x.cpu())


def test_parameters_modules_and_state(torch):
    layer = torch.nn.Linear(64, 32).half()
    on_card = copy.deepcopy(layer).to("spyre")
    assert all(p.device.type == "spyre" for p in on_card.parameters())
    x = torch.randn(3, 64, dtype=torch.float16)
    torch.testing.assert_close(on_card(x.to("spyre")).cpu(), layer(x), atol=1e-2, rtol=1e-2)
    on_card.load_state_dict({k: torch.zeros_like(v) for k, v in layer.state_dict().items()})
    assert on_card.weight.cpu().abs().max() == 0


def test_autograd(torch, half):
    x = half(4, 64).requires_grad_()
    w = half(64, 8).requires_grad_()
    (torch.nn.functional.linear(x, w.t()) ** 2).sum().backward()
    cx, cw = (t.detach().cpu().float().requires_grad_() for t in (x, w))
    ((cx @ cw) ** 2).sum().backward()
    torch.testing.assert_close(x.grad.cpu().float(), cx.grad, atol=1, rtol=2e-2)
    torch.testing.assert_close(w.grad.cpu().float(), cw.grad, atol=1, rtol=2e-2)


def test_printing(torch, half):
    text = repr(half(2, 3))
    assert text.startswith("tensor([[") and text.endswith("device='spyre:0')")
    assert "Parameter containing" in repr(torch.nn.Parameter(half(2)))


def test_random_numbers_are_the_hosts(torch):
    torch.manual_seed(5)
    there = torch.randn(4, 64, dtype=torch.float16, device="spyre")
    torch.manual_seed(5)
    assert there.cpu().equal(torch.randn(4, 64, dtype=torch.float16))


def test_conjugate_and_negative_views_end(torch):
    x = torch.randn(3, dtype=torch.complex64)
    there = x.to("spyre")
    assert torch.conj(there).cpu().resolve_conj().equal(x.conj().resolve_conj())
    assert torch._neg_view(there).cpu().equal(-x)


def test_rounding_is_by_stick(torch):
    x = torch.zeros(1, 4096, dtype=torch.float16)
    x[0, 0], x[0, 64::64] = 4096, 1
    assert x.sum(-1).item() == 4160 and x.to("spyre").sum(-1).item() == 4096
    a, b = torch.randn(8, 512, dtype=torch.float16), torch.randn(512, 8, dtype=torch.float16)
    torch.testing.assert_close((a.to("spyre") @ b.to("spyre")).cpu(), a @ b, atol=0.2, rtol=1e-2)


def test_an_allocation_in_inference_mode_and_threads(torch, half):
    import threading

    with torch.inference_mode():
        x = half(4, 64)
        assert (x[1:] + 1).cpu().equal(x.cpu()[1:] + 1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append((half(4, 64) * 2).cpu().shape))
    thread.start()
    thread.join()
    assert seen == [(4, 64)]


def test_layouts_in_sticks(torch):
    from torch_spyre import _C

    assert [
        _C.get_elem_in_stick(d) for d in (torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.int8)
    ] == [64, 64, 32, 32, 128]
    assert _C.get_device_dtype(torch.bool) == "SEN169_FP16"
    assert _C.SpyreTensorLayout((4, 130), torch.float16).device_size == [3, 4, 64]
    with pytest.raises(RuntimeError, match="Incompatible host_size and dim_order"):
        _C.SpyreTensorLayout((4, 130), torch.float16, dim_order=[0, 0])
    x = torch.randn(4, 130, dtype=torch.float16)
    layout = _C.SpyreTensorLayout(x.shape, x.dtype, dim_order=[1, 0])
    assert x.to("spyre", device_layout=layout).device_tensor_layout() == layout
    assert x.device_tensor_layout() is None
    with pytest.raises(RuntimeError, match="Spyre backend does not support dtype"):
        _C.get_device_dtype(torch.complex64)
