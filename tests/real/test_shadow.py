"""shadow on the real package: transfers, random ops, refusals."""

import json

WEIGHT = 128 * 64 * 2


def test_transfers_are_counted_where_the_backend_moves_them(bench):
    bench.write(
        "test_it.py",
        """
        import torch
        def test_module():
            torch.nn.Linear(64, 128, bias=False).half().to("spyre")
        """,
    )
    told = bench.json("shadow", "test_it.py")
    assert told["transfers"]["h2d"] == {"count": 1, "bytes": WEIGHT}
    bench.write(
        "test_it.py",
        """
        import torch
        def test_ops():
            x = torch.ones(4, 64).half().to("spyre")     # 1 in
            x.sum(-1)                                    # re-tiled: 1 out, 1 in
            torch.cumsum(x, -1)                          # a fallback: 1 out, 1 in
            (x + x).cpu()                                # 1 out
        """,
    )
    told = bench.json("shadow", "test_it.py")
    assert [told["transfers"][way]["count"] for way in ("h2d", "d2h")] == [3, 3], told["transfers"]
    assert [f["op"] for f in told["fallbacks"]] == ["aten.cumsum.default"]


def test_attention_without_dropout_is_compared(bench):
    bench.write(
        "test_it.py",
        """
        import torch
        def half(*shape): return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).half()
        def test_attention():
            q, k, v = half(1, 4, 64, 64), half(1, 4, 64, 64), half(1, 4, 64, 64)
            f = torch.nn.functional.scaled_dot_product_attention
            got = f(*(t.to("spyre") for t in (q, k, v))).cpu()
            assert torch.allclose(got, f(q, k, v), atol=5e-2, rtol=5e-2)
        """,
    )
    told = bench.json("shadow", "test_it.py")
    assert told["exit"] == 0, json.dumps(told)[:2000]
    unchecked = {reason for op in told["ops"] for reason in op["unchecked"]}
    assert "random" not in unchecked
    wrong = bench.json("shadow", "test_it.py", env={"SPYRE_STANDIN_FAULTS": "scaled:op=batchmatmul:factor=1.5"})
    assert wrong["suspect"] is not None and wrong["exit"] == 1
    assert any(word in wrong["suspect"]["op"] for word in ("attention", "bmm", "matmul"))


def test_a_refused_op_is_the_suspect_with_its_own_error(bench):
    bench.write(
        "test_it.py",
        """
        import torch
        def test_int32():
            x = torch.arange(64, dtype=torch.int32)
            assert torch.equal((x.to("spyre") + 1).cpu(), x + 1)
        """,
    )
    told = bench.json("shadow", "test_it.py")
    assert told["suspect"]["op"] == "aten.add.Tensor"
    assert "add on DataFormats.IEEE_INT32" in told["suspect"]["error"]
