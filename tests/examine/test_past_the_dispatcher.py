"""What shadow does about compiled kernels, random ops and transfers that the dispatcher does not show; one process for all."""

import subprocess
import sys
import textwrap

import drawn_faults
import pytest

SCRIPT = """
import sys, types
import debug_spyre_kernels
debug_spyre_kernels.keep_apart()                       # before dynamo is there
import torch
import torch._dynamo.external_utils as utils
debug_spyre_kernels.keep_apart()                       # and again
f, g = utils.wrap_inline(len), utils.wrap_inline(abs)
print("own code", f.__code__ is not g.__code__ and f("abc") == 3 and g(-2) == 2)

from debug_spyre_running import HOST_FORMS, host_form, is_random
aten = torch.ops.aten
x = torch.ones(4, 64)
print("dropout on", is_random(aten.native_dropout.default, (x, 0.5, True), {}))
print("dropout of 0", is_random(aten.native_dropout.default, (x, 0.0, True), {}))
print("no training", is_random(aten.native_dropout.default, (x, 0.5, False), {}))
print("by name", is_random(aten.native_dropout.default, (x,), {"p": 0.0, "train": True}))
fused = aten._scaled_dot_product_fused_attention_overrideable.default
q = torch.randn(1, 2, 8, 16)
print("attention", is_random(fused, (q, q, q), {}), is_random(fused, (q, q, q, None, 0.1), {}))
print("normal", is_random(aten.normal_.default, (x,), {}), "add", is_random(aten.add.Tensor, (x, x), {}))
want = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True, scale=0.5)
print("on the CPU", torch.equal(host_form(fused)(q, q, q, None, 0.0, True, scale=0.5), want))
print("itself", host_form(aten.add.Tensor) is aten.add.Tensor)

from debug_spyre_transfers import Transfers
moved = []
backend = types.ModuleType("torch_spyre.model_utils")
backend.copy_tensor = lambda source, target, non_blocking=False: "done"
sys.modules["torch_spyre.model_utils"] = backend
transfers = Transfers(lambda way, tensor: moved.append((way, tuple(tensor.shape))))
transfers.watch(); transfers.watch()
y = x.half().to("spyre")
print("passed on", backend.copy_tensor(x, y, non_blocking=False))
backend.copy_tensor(y, x); backend.copy_tensor(x, x); backend.copy_tensor(y, y)
transfers.is_ours = True
backend.copy_tensor(x, y)
transfers.is_ours = False
with torch._guards.tracing(torch._guards.TracingContext(None)):
    backend.copy_tensor(x, y)
print("moved", moved, transfers.counted)
"""
WANTED = {
    "own code": "True",
    "dropout on": "True",
    "dropout of 0": "False",
    "no training": "False",
    "by name": "False",
    "attention": "False True",
    "normal": "True add False",
    "on the CPU": "True",
    "itself": "True",
    "passed on": "done",
    "moved": "[('h2d', (4, 64)), ('d2h', (4, 64))] 2",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    folder = tmp_path_factory.mktemp("past")
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env=drawn_faults.environment(folder, ""),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("about", WANTED)
def test_past_the_dispatcher(said, about):
    assert f"{about} {WANTED[about]}" in said
