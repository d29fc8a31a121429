"""Markdown's small parts: text, code, blocks and tables that nothing inside them can end or turn into markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from debug_spyre.vocabulary.safe_text import Piece

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~])|^([#+-]|\d+\.)(?=\s)|(@)(?=\w)|(&)(?=[#\w])|(!)(?=\[)")


def plain(text: str) -> str:
    """Text that means nothing to Markdown, on one line."""
    return _SPECIAL.sub(
        lambda m: "\\" + m.group() if m.group() not in "@&" else {"@": "@\u2060", "&": "&amp;"}[m.group()],
        " ".join(text.split()),
    )


def code(text: str) -> str:
    """Inline code that its own backticks can't end."""
    flat = " ".join(text.split())
    if not flat:
        return ""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def block(lines: Iterable[str], kind: str = "") -> str:
    """A code block that its content can't end."""
    body = "\n".join(lines)
    fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", body)), default=0) + 1)
    return f"{fence}{kind}\n{body}\n{fence}"


def prose(parts: tuple[Piece, ...]) -> str:
    """Prose; references stay words, since the twin has no anchors."""
    return "".join(
        code(p.text) if p.kind == "code" else f"**{plain(p.text)}**" if p.kind == "strong" else _spaced(p.text)
        for p in parts
    )


def _spaced(text: str) -> str:
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() and text.strip() else ""
    return f"{before}{plain(text)}{after}"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of cells that are Markdown already."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(cell.replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Code inside a table: a bar would end the cell."""
    return code(text).replace("|", "\\|")


def bars(text: str) -> str:
    """Bars that are not escaped yet (inside code) would end the cell."""
    return re.sub(r"(?<!\\)\|", r"\\|", text)
