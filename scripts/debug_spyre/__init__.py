"""debug-spyre: finds the root cause of numerical, compile and fallback failures on IBM Spyre cards."""

from __future__ import annotations

__version__ = "0.2.0"
