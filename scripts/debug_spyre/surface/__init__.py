"""Ops and limits that the installed torch-spyre provides: ops, limits, doctor."""
