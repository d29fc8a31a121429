"""Words for what a registered function's body gives away, as sites carry them."""

from __future__ import annotations

WARNS = "warns"  # emits FallbackWarning itself
CPU = "cpu"  # computes on the CPU
CPU_SOMETIMES = "cpu-in-a-branch"
INT64 = "int64"  # another way for int64
CALLS_BACK = "eager-in-a-branch"  # Inductor calls the eager kernel for some inputs
