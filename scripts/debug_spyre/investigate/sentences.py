"""What an investigation says besides its causes: known limitations that name the op, and the one thing to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from debug_spyre.examine.dossier import Cause
from debug_spyre.examine.features import packet_of
from debug_spyre.surface.limits import Limit, Reading

PRODUCTS = ("matrix product", "matrix products")
OTHER_NAMES = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "matmul"), PRODUCTS), "linear": ("linear layer", *PRODUCTS),
    "constant_pad_nd": ("pad",), "_to_copy": (".to(dtype)", "dtype change"),
}  # fmt: skip


def known_limits(op: str, limits: Iterable[Limit]) -> list[str]:
    """Known limitations that hold and name the op: their statements, at most three."""
    packet = packet_of(op).partition(".")[2]
    names = {packet, *OTHER_NAMES.get(packet, ())}
    named = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, sorted(names)))})(?![\w])", re.IGNORECASE)
    return [x.statement for x in limits if x.state is not Reading.LIFTED and named.search(x.statement)][:3]


def next_of(causes: Sequence[Cause], left_out: Sequence[str]) -> str:
    """The one thing to do next."""
    if left_out:
        return "debug-spyre investigate --resume"
    proved = next((c for c in causes if c.claim == "cause"), None)
    if proved is not None:
        return f"change the code or the test, then: debug-spyre finish --session {proved.session}"
    open_one = next((c for c in causes if c.session), None)
    return f"debug-spyre hypothesis list --session {open_one.session}" if open_one else "debug-spyre status"
