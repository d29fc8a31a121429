"""The machine: clock, files, processes, interpreter, installed packages, git."""
