"""What the installed torch-spyre provides: ops, limits, doctor."""
