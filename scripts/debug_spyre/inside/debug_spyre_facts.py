"""Facts that the recorder writes of an exception, a comparison and the active configuration. Standard library only."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from typing import Any

MESSAGE_LIMIT = 16 * 1024
MAX_CHAIN = 12
MAX_FRAMES = 80
_HARNESS = ("/_pytest/", "/pluggy/")
_WRAPPED = ("inner_exception", "original_exception", "orig_exception")
_NUMBER = r"([-+]?(?:\d[\d.,]*(?:e[-+]?\d+)?|nan|inf))"
_MISMATCHED = re.compile(r"Mismatched elements: (\d{1,18}) / (\d{1,18})(?!\d)")
_EXCEED = re.compile(r"(?<!\d)(\d{1,18})(?: / (\d{1,18}))? elements exceed")
_MAX_ABS = re.compile(r"(?:Greatest|Max) absolute difference(?: among violations)?: " + _NUMBER, re.IGNORECASE)
_MAX_REL = re.compile(r"(?:Greatest|Max) relative difference(?: among violations)?: " + _NUMBER, re.IGNORECASE)
_SCALAR_ABS = re.compile(r"^Absolute difference: " + _NUMBER, re.IGNORECASE | re.MULTILINE)
_SCALAR_REL = re.compile(r"^Relative difference: " + _NUMBER, re.IGNORECASE | re.MULTILINE)
_INDEX = re.compile(r"absolute difference: \S+ at index (\([\d, ]{0,200}\)|\d{1,18})", re.IGNORECASE)


def exception_facts(error: BaseException) -> dict[str, Any]:
    """The chain of exceptions, outermost first, and the comparison's numbers where its message has them."""
    chain = list(_chain(error))
    mismatch = next((m for m in (mismatch_of(message_of(link)) for link in chain) if m), None)
    return {
        "exceptions": [
            {"cls": _class_name(link), "message": clip(message_of(link), MESSAGE_LIMIT), "frames": _frames(link)}
            for link in chain
        ],
        "mismatch": mismatch,
    }


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) < MAX_CHAIN:
        seen.add(id(link))
        yield link
        link = _cause(link)


def _cause(error: BaseException) -> BaseException | None:
    for name in _WRAPPED:
        inner = getattr(error, name, None)
        if isinstance(inner, BaseException):
            return inner
    members = getattr(error, "exceptions", None)
    if isinstance(members, tuple) and members and isinstance(members[0], BaseException):
        return members[0]
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _frames(error: BaseException) -> list[dict[str, Any]]:
    found = []
    trace: types.TracebackType | None = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append({"file": code.co_filename, "line": trace.tb_lineno, "name": code.co_name})
        trace = trace.tb_next
    own = [n for n, frame in enumerate(found) if not any(part in str(frame["file"]) for part in _HARNESS)]
    kept = found[own[0] :] if own else found
    return kept if len(kept) <= MAX_FRAMES else kept[: MAX_FRAMES // 4] + kept[-(MAX_FRAMES * 3 // 4) :]


def _class_name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def message_of(error: BaseException) -> str:
    """The exception's text, where it can be had."""
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001  an exception whose own text fails
        return f"(the message can't be shown: {type(fault).__name__})"


def mismatch_of(text: str) -> dict[str, Any] | None:
    """The numbers of a failed comparison, as torch.testing, numpy or an outlier count put them."""
    count, exceed = _MISMATCHED.search(text), _EXCEED.search(text)
    largest, relative = _MAX_ABS.search(text), _MAX_REL.search(text)
    if not count and not exceed:
        largest, relative = largest or _SCALAR_ABS.search(text), relative or _SCALAR_REL.search(text)
        if not largest:
            return None
    counted = count or exceed
    index = _INDEX.search(text)
    return {
        "mismatched": int(counted[1]) if counted else 1,
        "total": (int(counted[2]) if counted[2] else None) if counted else 1,
        "max_abs": _number(largest),
        "max_rel": _number(relative),
        "index": [int(n) for n in re.findall(r"\d+", index[1])] if index else None,
    }


def _number(found: re.Match[str] | None) -> float | str | None:
    if found is None:
        return None
    try:
        value = float(found[1].rstrip(".,"))
    except ValueError:
        return None
    if value != value:  # noqa: PLR0124  NaN
        return "nan"
    return value if abs(value) != float("inf") else ("inf" if value > 0 else "-inf")


def compile_mode() -> str | None:
    """The compilation mode of the vLLM config that is active now; None where vLLM is not loaded or none is set.

    The mode NONE and a mode that is None are two things: both are given by name.
    """
    for name in ("vllm.config.vllm", "vllm.config"):
        module = sys.modules.get(name)
        config = getattr(module, "_current_vllm_config", None) if module else None
        compilation = getattr(config, "compilation_config", None)
        if compilation is not None:
            mode = getattr(compilation, "mode", getattr(compilation, "level", None))
            return str(getattr(mode, "name", mode))
    return None


def clip(text: str, limit: int) -> str:
    """The text, its middle cut out where it is too long: the end tells most."""
    if len(text) <= limit:
        return text
    head, tail = limit // 4, limit - limit // 4
    return f"{text[:head]}\n[... {len(text) - limit} characters cut ...]\n{text[-tail:]}"
