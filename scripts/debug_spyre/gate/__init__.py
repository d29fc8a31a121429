"""The conditions for resolved and blocked, and the runs that they compare."""
