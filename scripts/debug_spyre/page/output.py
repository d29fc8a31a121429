"""Lines of output as the log shows them: the last ones, what they left out, and which bear the load."""

from __future__ import annotations

from dataclasses import dataclass

from debug_spyre.page.page_context import Frame, Tail
from debug_spyre.vocabulary.safe_text import clip, count, size

TAIL_LINES, LINE_WIDTH = 14, 240


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of output; `css` marks what bears the load."""

    text: str
    css: str


def tail_lines(frame: Frame, tail: Tail | None) -> tuple[tuple[OutputLine, ...], str, str]:
    """The last lines, their label, and what the cut left out."""
    if tail is None:
        return (), "", ""
    lines = frame.say("\n".join(tail.lines)).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    shown = lines[-TAIL_LINES:]
    if not shown:
        return (), "", "the output is empty" if tail.size == 0 else ""
    made = tuple(output_line(frame, line, said=True) for line in shown)
    total = tail.total if tail.total is not None and tail.total >= len(shown) else None
    if total == len(shown):
        return made, f"Output, {count(total, 'line')}", ""
    whole = f"{total:,} lines" if total is not None else size(tail.size)
    earlier = (
        f"{total - len(shown):,} earlier lines left out"
        if total is not None
        else f"earlier lines of {size(tail.size)} left out"
    )
    return made, f"Output, last {len(shown)} of {whole}", earlier


def output_line(frame: Frame, line: str, *, said: bool = False) -> OutputLine:
    """One line, cut, with its accent. `said`: it is cleaned and masked already."""
    words = clip(line, 2 * LINE_WIDTH) if said else clip(frame.say(line), LINE_WIDTH)  # the digest is cut already
    return OutputLine(words, line_css(words))


def line_css(line: str) -> str:
    """Which lines of output bear the load: failures red, fallbacks amber, passes green."""
    if "FallbackWarning" in line or "falling back to" in line or line.startswith("fallback"):
        return "amber"
    if "Mismatched elements" in line or "Greatest absolute" in line or "Greatest relative" in line:
        return "red"
    start = line.lstrip()[:11]
    if line.startswith("E  ") or start.startswith(("FAILED", "ERROR", "Mismatched", "Greatest", "mismatch")):
        return "red"
    if (
        (" failed" in line or " error" in line)
        and " in " in line
        and line.strip(" =").endswith(("s", ")"))
        and line[:1] in "=0123456789"
    ):
        return "red"
    if " passed" in line and " in " in line and line[:1] in "=0123456789":
        return "green"
    return ""
