"""Eager kernels of the card: memory, compiled ones, and those that go to the CPU."""

from . import fallbacks, memory  # noqa: F401, I001
from . import eager  # noqa: F401
from . import optional  # noqa: F401
