"""The hypotheses that only make sense where attention code takes part, and how one sees that it does.

A data table: a sentence, the verb that tests it, and the words in a failure that make it more likely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from debug_spyre.vocabulary.evidence import Failure

_ATTENTION = re.compile(r"attn|attention|paged|kv[_-]?cache|sdpa|flash|softmax.*mask|\bkv=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One hypothesis of the attention set."""

    text: str
    verb: str
    sign: re.Pattern[str]


def _entry(text: str, verb: str, sign: str) -> Entry:
    return Entry(text, verb, re.compile(sign, re.IGNORECASE))


ATTENTION_SET = (
    _entry(
        "the KV cache on the card is not what the test wrote: seeded on the CPU only, or another slot",
        "shadow",
        r"cache|slot|page|block_table|zeros|copy",
    ),
    _entry(
        "the mask has the wrong shape, causal boundary or fill value (-65504 becomes -inf or wraps)",
        "shadow",
        r"mask|causal|6550[04]|-inf|nan",
    ),
    _entry(
        "page or slot indices arrive in another order or dtype than the gather and scatter expect",
        "shadow",
        r"index|gather|scatter|permut|int32|roll",
    ),
    _entry(
        "the length is outside the bucket that the module pads to: KV length or query chunk",
        "ladder",
        r"align|bucket|pad|length|recompil|period",
    ),
    _entry(
        "query heads share KV heads and the broadcast in the 4-D matmul is wrong (MQA, GQA)",
        "shadow",
        r"broadcast|expand|head|gqa|mqa|period",
    ),
    _entry(
        "the head size is no multiple of the 64-element stick, so rows are padded or cut",
        "ladder",
        r"head_size|head_dim|stick|multiple of 64|padded",
    ),
)


def attention_traces(nodeids: Iterable[str], failures: Iterable[Failure]) -> tuple[str, ...]:
    """Where attention code shows: node ids first, then frames."""
    found = [nodeid for nodeid in nodeids if _ATTENTION.search(nodeid)]
    for failure in failures:
        found += [
            frame for frame in (failure.innermost_frame, failure.backend_frame) if frame and _ATTENTION.search(frame)
        ]
    return tuple(dict.fromkeys(found))
