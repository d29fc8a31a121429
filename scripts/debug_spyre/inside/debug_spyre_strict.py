"""pytest plugin (`-p debug_spyre_strict`): the warning class named in DEBUG_SPYRE_STRICT is an error.

pytest's own `-W error::torch_spyre...` imports torch_spyre before anything else. torch_spyre imports torch, whose autoload then meets a
half-made torch_spyre, and the run ends before it begins. Here torch comes first, and the backend loads as it does in a test.
"""

from __future__ import annotations

import os
from typing import Any

VARIABLE = "DEBUG_SPYRE_STRICT"


def pytest_configure(config: Any) -> None:
    """Add the filter; a filter of a test's own mark still comes after it."""
    import torch  # noqa: F401

    config.addinivalue_line("filterwarnings", f"error::{os.environ[VARIABLE]}")
