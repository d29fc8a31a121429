"""What the tests of numerics share: the folder on the path, so that `planted` can be imported."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
