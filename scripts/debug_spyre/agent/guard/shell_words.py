"""Words of shell: quoted, joined, with their escapes and braces; options as getopt reads them."""

from __future__ import annotations

MAX_DEPTH = 6
NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class ShellError(ValueError):
    """The text is no shell command that this reader understands."""


def quote(word: str) -> str:
    """The word as it can be typed in a shell."""
    if word and all(c in NAMES or c in "@%+=:,./-" for c in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def join(words: list[str]) -> str:
    """The words as one line of shell."""
    return " ".join(map(quote, words))


def unescaped(text: str) -> str:
    r"""What `\n`, `\x70`, `\160` and `\u0070` stand for."""
    text = text.replace("\\e", "\033").replace("\\E", "\033")
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape", "ignore") if "\\" in text else text


def in_braces(text: str) -> list[str]:
    """`a{b,c}` -> `ab`, `ac`, as bash expands an unquoted word; other words stay whole."""
    start = text.find("{")
    depth, cuts = 0, [start]
    for at in range(start, len(text)) if start >= 0 and text[start - 1 : start] != "$" else ():
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0 or (text[at] == "," and depth == 1):
            cuts.append(at)
        if depth == 0:
            break
    if depth or len(cuts) < 3:
        return [text]
    parts = [text[cut + 1 : cuts[n + 1]] for n, cut in enumerate(cuts[:-1])]
    return [whole for part in parts for whole in in_braces(text[:start] + part + text[cuts[-1] + 1 :])]


def options(words: list[str], valued: frozenset[str] | dict[str, str]) -> list[tuple[str, str, list[str]]]:
    """Each option in front as (name, value, the words after it), at the end ("", "", the words that are no options).

    As getopt reads them: a value is the next word, stands behind `=` or is glued to a letter; `--` ends the options.
    """
    found = []
    while words and words[0].startswith("-") and words[0] not in ("-", "--"):
        word, words = words[0], words[1:]
        name, equals, value = word.partition("=")
        at = 0 if word[1] == "-" else next((at for at in range(1, len(word)) if f"-{word[at]}" in valued), 0)
        if at > 1:
            found.append((word[:at], "", words))
        if at:
            name, value = f"-{word[at]}", word[at + 1 :].removeprefix("=")
        if name in valued and not value and not equals and words:
            value, words = words[0], words[1:]
        found.append((name, value, words))
    return [*found, ("", "", words[1:] if words[:1] == ["--"] else words)]
