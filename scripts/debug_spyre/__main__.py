"""`python -m debug_spyre`: the same command as the launcher's."""

from __future__ import annotations

import sys

from debug_spyre.cli import main

if __name__ == "__main__":
    sys.exit(main())
