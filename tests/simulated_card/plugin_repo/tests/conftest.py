"""Fixtures that every test shares: the compilation mode and the device by parametrize id, and inference mode."""

import pytest
import torch
from spyre_inference.config import CompilationMode, compilation

MODES = {"NONE": CompilationMode.NONE, "STOCK": CompilationMode.STOCK_TORCH_COMPILE}


def pytest_collection_modifyitems(config, items):
    """Tests of vLLM's own suite run only where vLLM is there and they are asked for."""
    asked = "upstream" in (config.option.markexpr or "").replace("not upstream", "")
    for item in items:
        if "upstream" in item.keywords and not asked:
            item.add_marker(pytest.mark.skip(reason="not in allow_list"))


@pytest.fixture
def configure_compilation(request):
    """Layers made in the test are compiled or not; compiled code of earlier tests is kept, as in a server."""
    with compilation(MODES[request.param]):
        yield MODES[request.param]


@pytest.fixture
def configure_device(request):
    return torch.device(request.param)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


@pytest.fixture(autouse=True)
def inference_mode():
    with torch.inference_mode():
        yield
