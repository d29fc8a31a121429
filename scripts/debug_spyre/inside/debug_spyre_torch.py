"""pytest plugin (`-p debug_spyre_torch`): torch comes first.

`-W error::torch_spyre...` makes pytest import torch_spyre before any test file. torch_spyre imports torch, whose autoload then meets a
half-made torch_spyre, and the run ends before it begins. With torch imported first the backend loads as it does in a test.
"""

import torch  # noqa: F401
