"""The test below on the CPU: every "spyre" device becomes "cpu", nothing is compiled; the test itself is untouched.
Exit status 0: it passes (the fault lies in torch-spyre's realisation); 1: it fails here too (our own logic); 2: could not run.
"""
import os

os.environ["TORCHDYNAMO_DISABLE"] = "1"
import pytest
import torch
from torch.overrides import TorchFunctionMode

NODES = ['tests/test_silu_and_mul.py::test_a_half_that_is_no_whole_stick[100]']


def on_cpu(value):
    spyre = isinstance(value, str) and value.split(":")[0] == "spyre" or getattr(value, "type", "") == "spyre"
    return torch.device("cpu") if spyre else value


class OnCpu(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*map(on_cpu, args), **{name: on_cpu(value) for name, value in (kwargs or {}).items()})


class Control:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self):
        with OnCpu():
            yield


if __name__ == "__main__":
    status = pytest.main([*NODES, "-m", "not upstream", "-q", "--tb=short", "-p", "no:cacheprovider"], plugins=[Control()])
    raise SystemExit(int(status) if int(status) in (0, 1) else 2)
