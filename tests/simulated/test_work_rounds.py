"""A fault fails the plugin repo's tests, and a change of the plugin's source that works round it makes them pass."""

import os

import pytest
from tests.simulated.test_plugin_repo import Repo

pytestmark = pytest.mark.slow  # of the stand-in itself

OPS = "spyre_inference/custom_ops/"
ATTENTION = "spyre_inference/v1/attention/backends/spyre_attn.py"
LONGER = float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")) > 1  # the first pair is enough for every day
PAIRS = {
    "partial_reduction:op=mean:width=128": (
        "tests/test_rms_norm.py",
        10,
        OPS + "rms_norm.py",
        "torch.mean(small * small, dim=-1, keepdim=True)",
        "torch.sum(small * small, dim=-1, keepdim=True) / small.shape[-1]",
    ),
    "dropped_offset:op=mul": (
        "tests/test_silu_and_mul.py",
        15,
        OPS + "silu_and_mul.py",
        "x[..., half:]",
        "x[..., half:].clone()",
    ),
    "broadcast_overflow": (
        "tests/test_spyre_attn.py::test_spyre_attn_head_size",
        2,
        ATTENTION,
        "keys.transpose(-1, -2).unsqueeze(0)",
        "keys.unsqueeze(0).expand(query.shape[0], -1, -1).contiguous().transpose(-1, -2)",
        "values.unsqueeze(0)",
        "values.unsqueeze(0).expand(attention.shape[0], -1, -1).contiguous()",
    ),
}


@pytest.mark.parametrize("fault", list(PAIRS) if LONGER else list(PAIRS)[:1])
def test_a_fault_and_its_work_round(card, tmp_path, fault):
    tests, failures, file, *changes = PAIRS[fault]
    repo = Repo(card, tmp_path / "plugin")
    assert len(repo.failing(tests, SPYRE_SIM_FAULTS=fault)) == failures, repo.output
    source = (repo.folder / file).read_text(encoding="utf-8")
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        head, found, tail = source.rpartition(old)  # the code stands below the docstring
        assert found
        source = head + new + tail
    (repo.folder / file).write_text(source, encoding="utf-8")
    assert not repo.failing(tests, SPYRE_SIM_FAULTS=fault), repo.output
