"""What an investigation says besides its causes: known limitations that name the op, and the one thing to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from debug_spyre.examine.dossier import Cause


def known_limits(op: str, limits: Sequence[Any] = ()) -> list[str]:
    """Known limitations that name the op: their statements."""
    packet = op.split(".")[1].rstrip("_")
    return [x.statement for x in limits if packet in x.statement.lower().split() or f"`{packet}`" in x.statement][:3]


def next_of(causes: Sequence[Cause], left_out: Sequence[str]) -> str:
    """The one thing to do next."""
    if left_out:
        return "debug-spyre investigate --resume"
    proved = next((c for c in causes if c.claim == "cause"), None)
    if proved is not None:
        return f"change the code or the test, then: debug-spyre finish --session {proved.session}"
    open_one = next((c for c in causes if c.session), None)
    return f"debug-spyre hypothesis list --session {open_one.session}" if open_one else "debug-spyre status"
