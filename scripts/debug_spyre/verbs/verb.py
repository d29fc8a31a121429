"""What a verb is: how it reads its words, what it does, and an example for its help."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb. `run` prints the answer on stdout and returns the exit status.

    `rest` names the attribute that takes every word not known to the parser (pytest's arguments), if any;
    `words` shows them in the usage line.
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    example: str
    rest: str | None = None
    words: str = ""
