"""torch without its device backends in this process, as for the tests of numerics, and `drawn_faults` on the path."""

import sys
from pathlib import Path

from tests.numerics import conftest

__all__ = ["conftest"]
sys.path.insert(0, str(Path(__file__).parent))
