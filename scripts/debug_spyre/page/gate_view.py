"""The gate as section 5 shows it: every condition with its state, the reasons and commands, the recorded comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from debug_spyre.page.nodeid_layout import NodeId, node_id
from debug_spyre.page.page_context import Frame, Word
from debug_spyre.vocabulary.safe_text import Piece, clip

MOST_IDS = 6


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of the gate."""

    code: str
    state: Word
    text: tuple[Piece, ...]
    ids: tuple[NodeId, ...]
    more: int
    next: str
    override: str


_STATES = {"shut": 0, "unknown": 1, "set aside": 2, "open": 3}


def gate_conditions(frame: Frame, gate: Mapping[str, Any]) -> tuple[Condition, ...]:
    """All conditions as recorded, those that are not open first; the reasons give ids and commands."""
    reasons = [r for r in gate.get("reasons") or () if isinstance(r, dict)]
    by_code = {r.get("code"): r for r in reasons}
    listed = [c for c in gate.get("conditions") or () if isinstance(c, dict)]
    known = {c.get("code") for c in listed}
    merged = [
        {**c, **{k: v for k, v in by_code.get(c.get("code"), {}).items() if k in {"nodeids", "next"}}} for c in listed
    ]
    merged += [{"state": "shut", **r} for r in reasons if r.get("code") not in known]
    found = [_condition(frame, data) for data in merged]
    return tuple(sorted(found, key=lambda c: _STATES.get(c.state.text, 1)))


def _condition(frame: Frame, data: Mapping[str, Any]) -> Condition:
    ids = [frame.say(i) for i in data.get("nodeids") or ()]
    asides = [o.reason for o in frame.session.overrides if o.code == data.get("code")]
    aside = data.get("override") or (asides[-1] if asides and data.get("state") != "open" else "")
    state = str(data.get("state"))
    word = Word(state, state) if state in {"open", "shut"} else Word("unknown", "unknown")
    return Condition(
        code=frame.line(data.get("code") or "unnamed", 60),
        state=Word("override", "set aside") if aside else word,
        text=frame.prose(data.get("text") or "", 600),
        ids=tuple(node_id(i) for i in ids[:MOST_IDS]),
        more=max(len(ids) - MOST_IDS, 0),
        next=clip(frame.say(data.get("next") or ""), 600),
        override=frame.line(aside, 300),
    )


def conditions_words(conditions: tuple[Condition, ...]) -> str:
    """How many conditions stand where."""
    counts = Counter(c.state.text for c in conditions)
    return ", ".join(f"{counts[word]} {word}" for word in _STATES if counts[word])


def matrix_words(frame: Frame, data: Mapping[str, Any]) -> tuple[str, ...]:
    """The recorded comparison of the matrix in words; records of other shapes give nothing rather than a guess."""
    found = []
    runs = [frame.line(data[key], 20) for key in ("pre_run", "post_run") if isinstance(data.get(key), str)]
    numbers = data.get("numbers")
    known = numbers if isinstance(numbers, Mapping) else {}  # the lists are cut, their numbers are not
    parts = [
        f"{_number(known.get(key), data[key]):,} {word}" for key, word in _LISTS if isinstance(data.get(key), list)
    ]
    if parts:
        found.append(
            f"Matrix {' against '.join(runs)}: {', '.join(parts)}." if runs else f"Matrix: {', '.join(parts)}."
        )
    if data.get("scope_equal") is False:
        found.append("The two runs did not select the same tests: they are not compared.")
    changes = data.get("changes")
    files = changes.get("files") if isinstance(changes, dict) else None
    if isinstance(files, list):
        named = ", ".join(frame.line(f, 120) for f in files[:8])
        found.append(
            f"The patch touches {len(files)} files: {named}{', …' if len(files) > 8 else ''}."
            if files
            else "The patch touches no file."
        )
    return tuple(found)


def _number(known: Any, listed: list[Any]) -> int:
    return known if isinstance(known, int) else len(listed)


_LISTS = (
    ("new", "new failures"),
    ("unsteady", "that pass and fail now"),
    ("gone", "failures gone"),
    ("worse", "worse than before"),
    ("vanished", "no longer run"),
)
