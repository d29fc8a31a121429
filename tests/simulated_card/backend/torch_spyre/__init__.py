"""A simulated Spyre device. Importing torch is enough: the entry point loads this package; no device is opened by an import."""

import contextlib
import types

import torch  # at the top, as the real package has it: whoever imports torch_spyre before torch meets it half made

from .constants import DEVICE_NAME

__version__ = "0.0.1"
_state = {"loaded": False}


def _device_module():
    from . import _C, _device

    module = types.ModuleType(f"torch.{DEVICE_NAME}")
    module.is_available = _C.is_available
    module.is_initialized = _device.holds
    module.device_count = _C.device_count
    module.current_device = lambda: 0
    module.set_device = lambda _index: None
    module.manual_seed = module.manual_seed_all = lambda _seed: None  # random numbers are the host's
    module.get_rng_state = lambda _device=None: torch.get_rng_state()
    module.set_rng_state = lambda state, _device=None: torch.set_rng_state(state)
    module._is_in_bad_fork = _device.in_bad_fork
    module._is_compiled = lambda: True
    module.synchronize = lambda _device=None: None
    module.empty_cache = lambda: None
    module.get_amp_supported_dtype = lambda: [torch.float16]
    module.device = contextlib.nullcontext  # torch.load wants it as a context manager
    module.get_diagnostic_report = _last_diagnostic_report
    module.stats = _C.stats
    return module


def _last_diagnostic_report():
    from .profiler import _ffdc

    return _ffdc.last_report()


def _autoload():
    """Make the device known to torch; called by torch's entry point and by an import of this package, once."""
    if _state["loaded"]:
        return
    _state["loaded"] = True
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(DEVICE_NAME, backend_module=_device_module())

    from . import vendor_log
    from ._monkey_patch import _patch_tensor_for_spyre, kernels_without_dynamo

    _patch_tensor_for_spyre()
    with kernels_without_dynamo():
        import torch_spyre._inductor.customops
        import torch_spyre.ops

        torch_spyre._inductor._autoload()
    vendor_log.read_levels()


def forget_compiled():
    """Drop compiled kernels, so that the next call compiles under the switches of that moment."""
    import sys

    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()


_autoload()
