"""aten.mul.Tensor on Spyre raises; exit status 0: the fault shows; 3: it does not; other: something else failed."""
import torch
import torch_spyre  # noqa: F401

torch.manual_seed(0)
a = torch.randn(50, dtype=torch.float16)
torch.ops.aten.mul.Tensor(a, 1.5)  # the CPU carries it out
try:
    torch.ops.aten.mul.Tensor(a.to("spyre"), 1.5)
except Exception as error:
    print(f"{type(error).__name__}: {error}"[:2000])
    raise SystemExit(0 if "Unsupported: Spyre backend does not support: Multi-arg pointwise" in str(error) else 2)
print("no error")
raise SystemExit(3)
