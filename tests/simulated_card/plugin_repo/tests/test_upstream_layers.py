"""Stand-ins for tests that are taken over from vLLM's own suite; they run only with vLLM, and only when asked for."""

import pytest
import torch

pytestmark = pytest.mark.upstream


@pytest.mark.parametrize("hidden_size", [64, 128])
@pytest.mark.parametrize("num_tokens", [7, 83])
def test_rms_norm(num_tokens, hidden_size):
    layernorm = pytest.importorskip("vllm.model_executor.layers.layernorm")
    layer = layernorm.RMSNorm(hidden_size, dtype=torch.float16)
    x = torch.randn(num_tokens, hidden_size, dtype=torch.float16)
    torch.testing.assert_close(layer.forward_native(x.to("spyre")).cpu(), layer.forward_native(x), atol=1e-2, rtol=1e-2)
