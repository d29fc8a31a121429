"""The checkout and the device file that the tests of runs use."""

from tests.runs.conftest import place

__all__ = ["place"]
