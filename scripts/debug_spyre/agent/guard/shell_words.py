"""Reads shell text token by token: words after quote removal and expansion, and operators."""

from __future__ import annotations

MAX_DEPTH = 6
OPERATORS = ("&>>", "<<<", "<<-", ";;&", "&&", "||", ";;", ";&", "|&", "&>", "<<", ">>", "<&", ">&", "<>", ">|")
ENDS = frozenset((";", "\n", "&", "&&", "||", "|", "|&", "(", ")", ";;", ";&", ";;&"))
NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class ShellError(ValueError):
    """The text is no shell command that this reader understands."""


class Word:
    """One word after quote removal. `dynamic`: a part of it is only known when the shell runs it; `piped`: it is `<(...)`."""

    __slots__ = ("dynamic", "piped", "quoted", "text")

    def __init__(self, text: str, quoted: bool, dynamic: bool, piped: bool) -> None:
        self.text = text
        self.quoted = quoted
        self.dynamic = dynamic
        self.piped = piped


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


class WordReader:
    """A place in shell text. `substitute` reads a command substitution and returns its output where that is plain."""

    def __init__(self, text: str, depth: int = 0, variables: dict[str, str] | None = None) -> None:
        if depth > MAX_DEPTH:
            raise ShellError("nested too deep")
        self.text = text.replace("\\\r\n", "").replace("\r\n", "\n")
        self.at = 0
        self.depth = depth
        self.variables: dict[str, str] = {} if variables is None else dict(variables)
        self.buffer: list[str] = []  # the piece of the word that is being read
        self.pieces: list[str] = []  # the pieces before it, where a variable held several words
        self.quoted = self.dynamic = self.piped = False

    def substitute(self, inner: str) -> str | None:
        """What a substitution would print; None where only the shell knows."""
        raise NotImplementedError

    def read_substitutions(self, text: str) -> None:
        """Only the substitutions in this text count."""
        raise NotImplementedError

    def newline(self) -> None:
        """A line ended: bodies of here-documents follow."""

    def token(self) -> str | list[Word] | None:
        """The next operator, the next word (several where a variable or braces hold several), or None at the end."""
        text = self.text
        while self.at < len(text):
            if text[self.at] in " \t\r":
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif text[self.at] == "#" and (self.at == 0 or text[self.at - 1] in " \t\n;&|("):
                self.at = self.find("\n", self.at, len(text))
            else:
                break
        if self.at >= len(text):
            return None
        end = self.at
        while end < len(text) and text[end] in "0123456789":  # a descriptor before a redirect
            end += 1
        if text[self.at] in ";&|()<>\n" or (end > self.at and text[end : end + 1] in ("<", ">")):
            self.at = end
            return self._operator()
        return self.word()

    def find(self, what: str, start: int, otherwise: int | str) -> int:
        """Where `what` begins, or `otherwise`.

        Raises:
            ShellError: `otherwise` is the name of what then does not end.
        """
        at = self.text.find(what, start)
        if at < 0 and isinstance(otherwise, str):
            raise ShellError(f"{otherwise} does not end")
        return otherwise if at < 0 else at  # type: ignore[return-value]

    def _operator(self) -> str | list[Word]:
        text = self.text
        if text.startswith("((", self.at) and text.find("))", self.at) > 0:
            self.at = text.find("))", self.at) + 2
            return []
        if text[self.at] in "<>" and text.startswith("(", self.at + 1):
            return self.word()
        found = next((op for op in OPERATORS if text.startswith(op, self.at)), text[self.at])
        self.at += len(found)
        if found == "\n":
            self.newline()
        if found in (";;", ";&", ";;&"):  # after it stands either `esac` or a pattern that ends in `)`
            mark = self.at
            while text[self.at : self.at + 1] in (" ", "\t", "\n"):
                self.at += 1
            if not text.startswith("esac", self.at):
                self.at = self.find(")", self.at, mark - 1) + 1
        return found

    def word(self) -> list[Word]:
        """One token of words."""
        self.buffer, self.pieces = [], []
        self.quoted = self.dynamic = self.piped = False
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == "(" and "".join(self.buffer).endswith("=") and not self.quoted:  # an array
                end = self.find(")", self.at, "a bracket")
                self.buffer.append(text[self.at + 1 : end].replace("'", "").replace('"', ""))
                self.at = end + 1
            elif char in " \t\r\n;&|)(" or (char in "<>" and not text.startswith("(", self.at + 1)):
                break
            elif char == "\\":
                if not text.startswith("\\\n", self.at):
                    self.buffer.append(text[self.at + 1 : self.at + 2])
                    self.quoted = True
                self.at += 2
            elif char == "'":
                end = self.find("'", self.at + 1, "a single quote")
                self.buffer.append(text[self.at + 1 : end])
                self.quoted = True
                self.at = end + 1
            elif char == '"':
                self._double()
            else:
                self.expand()
        last = "".join(self.buffer)
        texts = [*self.pieces, last] if last or self.quoted or not self.pieces else self.pieces
        if not self.quoted:
            texts = [whole for text in texts for whole in in_braces(text)]
        return [Word(text, self.quoted, self.dynamic, self.piped) for text in texts]

    def _double(self) -> None:
        self.at += 1
        self.quoted = True
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\":
                following = text[self.at + 1 : self.at + 2]
                self.buffer.append(following if following in '$`"\\' else "" if following == "\n" else "\\" + following)
                self.at += 2
            elif char in "$`":
                self.expand(inside=True)
            else:
                self.buffer.append(char)
                self.at += 1
        raise ShellError("a double quote does not end")

    def expand(self, *, inside: bool = False) -> None:
        """One character, variable or substitution outside of single quotes (`inside`: in double ones)."""
        text, char = self.text, self.text[self.at]
        if char == "`":
            end = self._end_of("`", self.at + 1)
            self._substitution(text[self.at + 1 : end].replace("\\`", "`"), inside=inside)
            self.at = end + 1
        elif char == "$":
            self._dollar(inside=inside)
        elif char in "<>" and text.startswith("(", self.at + 1) and not inside:
            self.at += 1
            self._bracketed(inside=True, piped=True)
        else:
            self.buffer.append(char)
            self.at += 1

    def _end_of(self, mark: str, end: int) -> int:
        while end < len(self.text) and self.text[end] != mark:
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise ShellError(f"a {mark} does not end")
        return end

    def _dollar(self, *, inside: bool) -> None:
        text, following = self.text, self.text[self.at + 1 : self.at + 2]
        if text.startswith("$((", self.at):
            self.at = self.find("))", self.at, "an arithmetic expression") + 2
            self.dynamic = True
            self.buffer.append("0")
        elif following == "(":
            self.at += 1
            self._bracketed(inside=inside)
        elif following == "{":
            end = self.find("}", self.at, "a variable's bracket")
            self._braced(text[self.at + 2 : end], text[self.at : end + 1], inside=inside)
            self.at = end + 1
        elif following == "'" and not inside:
            end = self._end_of("'", self.at + 2)
            self.buffer.append(unescaped(text[self.at + 2 : end]))
            self.quoted = True
            self.at = end + 1
        elif following == '"' and not inside:
            self.at += 1
        else:
            end = self.at + 1
            while text[end : end + 1] in NAMES and end < len(text):
                end += 1
            if end == self.at + 1 and following and following in "@*#?$!-":
                end += 1
            name = text[self.at + 1 : end]
            self._value(self.variables.get(name) if name else "$", text[self.at : end], inside=inside or not name)
            self.at = end

    def _braced(self, name: str, literal: str, *, inside: bool) -> None:
        """`${...}`: a plain name, an array, or a name with a default."""
        if "$(" in name or "`" in name:
            self.read_substitutions(name)
        bare, colon, default = name.partition(":-") if ":-" in name else name.partition("-")
        bare = bare.partition("[")[0]
        value = self.variables.get(bare)
        if value is None and colon and "$" not in default:
            value = default
        self._value(value if all(c in NAMES or c == "@" for c in bare) else None, literal, inside=inside)

    def _value(self, value: str | None, literal: str, *, inside: bool) -> None:
        if value is None:
            self.dynamic = True
        if value is None or inside:
            self.buffer.append(literal if value is None else value)
            return
        for mark in self.variables.get("IFS", ""):
            value = value.replace(mark, " ")
        for number, piece in enumerate(value.split()):
            if number:
                self.pieces.append("".join(self.buffer))
                self.buffer = []
            self.buffer.append(piece)

    def _bracketed(self, *, inside: bool, piped: bool = False) -> None:
        """A substitution's text up to its closing bracket; the reader stands on the opening one."""
        start, depth, at, text = self.at + 1, 0, self.at, self.text
        while at < len(text):
            char = text[at]
            if char == "\\":
                at += 1
            elif char == "'":
                at = self.find("'", at + 1, len(text))
            elif char == '"':
                at += 1
                while at < len(text) and text[at] != '"':
                    at += 2 if text[at] == "\\" else 1
            elif char in "()":
                depth += 1 if char == "(" else -1
                if depth == 0:
                    self._substitution(text[start:at], inside=inside, piped=piped)
                    self.at = at + 1
                    return
            at += 1
        raise ShellError("a substitution does not end")

    def _substitution(self, inner: str, *, inside: bool, piped: bool = False) -> None:
        kept = self.buffer, self.pieces, self.quoted, self.dynamic
        said = self.substitute(inner)
        self.buffer, self.pieces, self.quoted, self.dynamic = kept
        self.piped = piped
        self._value(None if piped else said, "$(...)", inside=inside)
