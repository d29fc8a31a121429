"""What the tests of numerics share: torch without its device backends in this process, and `planted` on the path."""

import os
import sys
from pathlib import Path

_before = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
try:
    import torch
finally:
    if _before is None:
        del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    else:
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = _before

torch.set_num_threads(1)
sys.path.insert(0, str(Path(__file__).parent))
