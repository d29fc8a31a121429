"""Protections that the kill matrix takes away to see itself go red. With a real card they can't be taken away."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

NO_DESCRIPTOR = "DEBUG_SPYRE_UNSAFE_NO_DESCRIPTOR"  # the command gets no descriptor of the lock
NO_HOLDER_CHECK = "DEBUG_SPYRE_UNSAFE_NO_HOLDER_CHECK"  # nobody looks who has the device


def drop_unless_stand_in(cards: Sequence[str]) -> list[str]:
    """Forget these variables unless every card is a plain file, as only tests have it; in words which are in force."""
    told = [name for name in (NO_DESCRIPTOR, NO_HOLDER_CHECK) if os.environ.get(name)]
    if told and not (cards and all(map(_is_plain_file, cards))):
        for name in told:
            del os.environ[name]
        return [f"{name} was set and had no effect: the card is a real one" for name in told]
    return [f"{name} is set: this run was not protected" for name in told]


def _is_plain_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
