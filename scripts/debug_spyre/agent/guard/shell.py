"""Reads shell text into simple commands: lists, pipes, compounds, redirects, here-documents, substitutions."""

from __future__ import annotations

from debug_spyre.agent.guard import tables
from debug_spyre.agent.guard.place import Place
from debug_spyre.agent.guard.shell_words import MAX_DEPTH, NAMES, ShellError, in_braces, unescaped

OPERATORS = ("&>>", "<<<", "<<-", ";;&", "&&", "||", ";;", ";&", "|&", "&>", "<<", ">>", "<&", ">&", "<>", ">|")
ENDS = frozenset((";", "\n", "&", "&&", "||", "|", "|&", "(", ")", ";;", ";&", ";;&"))
LEADING = tables.words("if then elif else do while until ! { } fi done esac coproc time -p for select case [[ function")
SETTING = ("export", "declare", "local", "typeset", "readonly")


class Command:
    """One simple command: `words` without assignments, redirects as (operator, target), text on stdin if known."""

    def __init__(self, words: list[str] | None = None) -> None:
        self.words: list[str] = words or []
        self.assigns: list[tuple[str, str]] = []
        self.redirects: list[tuple[str, str]] = []
        self.stdin: str | None = None
        self.source: Command | None = None  # the command whose output this one reads
        self.background = False
        self.dynamic: set[int] = set()  # numbers of words that only the shell knows

    @property
    def from_git(self) -> bool:
        """It shows a file of another commit, or reads what does."""
        shows = self.words[:1] == ["git"] and {"show", "cat-file", "archive"} & {*self.words}
        return bool(shows) or (self.source is not None and self.source.from_git)


def printed(words: list[str]) -> str:
    """What `echo ...` and `printf FORMAT ...` print."""
    words = [word for word in words[words[:1] != ["printf"] :] if word not in ("-n", "-e", "-ne", "--")]
    if words[:1] == ["printf"]:
        shape, values = (words[1:2] or [""])[0], words[2:]
        for mark in ("%s", "%b", "%q"):
            while mark in shape and values:
                shape = shape.replace(mark, values.pop(0), 1)
        words = [shape, *values]
    return unescaped(" ".join(words))


class Reader:
    """A place in shell text: commands are read of tokens, and tokens of characters.

    A token is an operator, or a list of words: several where a variable or braces hold several. What was seen in the
    last one: `quoted`; `dynamic`, a part is only known when the shell runs it; `piped`, it is `<(...)`.
    """

    def __init__(
        self, text: str, depth: int = 0, variables: dict[str, str] | None = None, place: Place | None = None
    ) -> None:
        if depth > MAX_DEPTH:
            raise ShellError("nested too deep")
        self.text = text.replace("\\\r\n", "").replace("\r\n", "\n") + "\n"
        self.at = 0
        self.depth = depth
        self.variables: dict[str, str] = {} if variables is None else dict(variables)
        self.place = place  # where `cat FILE` reads
        self.found: list[Command] = []
        self.waiting: list[tuple[Command, str, bool, str]] = []  # here-documents whose body is still to come
        self.buffer: list[str] = []  # the word that is being read; where a variable holds several, NUL is between them
        self.quoted = self.dynamic = self.piped = False

    def read(self) -> list[Command]:
        """All simple commands. Raises ShellError: a quote or bracket does not end."""
        current, left = Command(), list[Command]()  # `left`: the and-or list so far, for `&`
        while True:
            sign = self.token()
            if isinstance(sign, list):
                self._words(current, sign)
            elif sign is not None and sign not in ENDS:
                self._redirect(current, sign)
            else:
                words = current.words
                if not words or words[0] in SETTING:
                    pairs = [word.partition("=") for word in words[1:]]
                    current.assigns += [(name, value) for name, equals, value in pairs if equals]
                    self.variables.update(current.assigns)
                if words[:2] == ["set", "--"]:
                    self.variables["@"] = self.variables["*"] = " ".join(words[2:])
                if words or current.redirects or current.assigns:
                    self.found.append(current)
                    left.append(current)
                if sign is None:
                    break
                current = Command()
                for command in left if sign == "&" else ():
                    command.background = True
                if sign in ("|", "|&") and left:
                    current.source = left[-1]
                elif sign not in ("&&", "||", ")"):
                    left = []
        self.newline()
        return self.found

    def _words(self, current: Command, words: list[str]) -> None:
        for word in words:
            if not current.words and not self.quoted:
                if word in ("for", "select"):  # `for NAME in WORDS`: the variable counts as all of them
                    name, _, *values = [*self._until(";", "\n", "do"), "", ""]
                    if values[:-2] and not any("$" in value for value in values):
                        self.variables[name] = " ".join(values[:-2])
                elif word in ("case", "[["):  # `case WORD in` and its first pattern: later ones follow `;;`
                    self._until(")" if word == "case" else "]]")
                elif word == "function":
                    self.token()
                current.background = current.background or word == "coproc"
                if word in LEADING:
                    continue
            name, equals, value = word.partition("=")
            name = name.removesuffix("+")
            if not current.words and equals and name.isidentifier():
                current.assigns.append((name, value))
                continue
            if self.dynamic:
                current.dynamic.add(len(current.words))
            if self.piped and self.found:
                current.source = self.found[-1]
            current.words.append(word)

    def _redirect(self, current: Command, operator: str) -> None:
        target = self.token()
        if not isinstance(target, list) or not target:
            raise ShellError(f"nothing follows {operator}")
        if operator in ("<<", "<<-"):
            self.waiting.append((current, target[0], self.quoted, "\t" if operator == "<<-" else ""))
        elif operator == "<<<":
            current.stdin = target[0]
        elif self.piped and self.found:
            current.source = self.found[-1]
        else:
            current.redirects.append((operator, "$" if self.dynamic else target[0]))
        current.words += target[1:]

    def newline(self) -> None:
        """The bodies of here-documents."""
        waiting, self.waiting = self.waiting, []
        for command, delimiter, quoted, strip in waiting:
            lines = self.text[self.at :].split("\n")
            end = next((at for at, line in enumerate(lines) if line.lstrip(strip) == delimiter), len(lines))
            command.stdin = "\n".join(lines[:end]) + "\n"
            self.at += len("\n".join(lines[: end + 1])) + 1
            if not quoted:
                self.read_substitutions(command.stdin)

    def read_substitutions(self, text: str) -> None:
        """Only the substitutions in this text count."""
        inner = Reader(text, self.depth + 1, self.variables, self.place)
        while inner.at < len(inner.text):
            inner.expand(inside=True)
        self.found += inner.found

    def output_of(self, inner: str) -> str | None:
        """The output of echo, printf, which and cat; the commands of all others are read too."""
        commands = Reader(inner, self.depth + 1, self.variables, self.place).read()
        self.found += commands
        is_plain = len(commands) == 1 and not commands[0].dynamic and self.text[self.at] not in "<>"
        words = commands[0].words if is_plain else []
        if words[:1] in (["echo"], ["printf"]):
            return printed(words).replace("\n", " ")
        if words[:1] == ["which"] or words[:2] == ["command", "-v"]:
            return words[-1]
        if words[:1] == ["cat"] and len(words) == 2:
            return self.place.read(words[1]) if self.place else None
        return None

    def _until(self, *ends: str) -> list[str]:
        """The words up to one of these."""
        words: list[str] = []
        while True:
            token = self.token()
            if token is None or (token and (token in ends or token[0] in ends)):
                return words
            words += token if isinstance(token, list) else []

    def token(self) -> str | list[str] | None:
        """The next operator, the next word (several where a variable or braces hold several), or None at the end."""
        text = self.text
        while self.at < len(text):
            if text[self.at] in " \t\r":
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif text[self.at] == "#":
                self.at = self._end("\n", self.at)
            else:
                break
        if self.at >= len(text):
            return None
        end = self.at
        while text[end : end + 1].isdigit():  # a descriptor before a redirect
            end += 1
        if text[self.at] not in ";&|()<>\n" and (end == self.at or text[end : end + 1] not in ("<", ">")):
            return self.word()
        self.at = end
        if text.startswith("((", end) and text.find("))", end) > 0:
            self.at = text.find("))", end) + 2
            return []
        if text[end] in "<>" and text.startswith("(", end + 1):
            return self.word()
        found = next((op for op in OPERATORS if text.startswith(op, end)), text[end])
        self.at += len(found)
        if found == "\n":
            self.newline()
        if found in (";;", ";&", ";;&"):  # after it stands either `esac` or a pattern that ends in `)`
            end = text.find(")", self.at)
            if end >= 0 and not text[self.at :].lstrip(" \t\n").startswith("esac"):
                self.at = end + 1
        return found

    def _end(self, mark: str, start: int, *, escapes: bool = False) -> int:
        """Where what begins at `start` has its closing mark. Raises ShellError: it has none."""
        end = start
        while not self.text.startswith(mark, end):
            end += 2 if escapes and self.text[end] == "\\" else 1
            if end >= len(self.text):
                raise ShellError(f"no {mark} ends {self.text[start : start + 20].strip()}")
        return end

    def word(self) -> list[str]:
        """One token of words."""
        self.buffer = []
        self.quoted = self.dynamic = self.piped = False
        text, inside = self.text, False  # inside double quotes
        while self.at < len(text):
            char = text[self.at]
            if char == '"':
                inside, self.quoted = not inside, True
                self.at += 1
            elif char == "\\":
                following = text[self.at + 1 : self.at + 2]
                self.quoted = self.quoted or following != "\n"
                self.buffer.append("\\" if inside and following not in '$`"\\\n' else "")
                self.buffer.append(following if following != "\n" else "")
                self.at += 2
            elif char == "'" and not inside:
                end = self._end("'", self.at + 1)
                self.buffer.append(text[self.at + 1 : end])
                self.quoted = True
                self.at = end + 1
            elif char == "(" and "".join(self.buffer).endswith("=") and not self.quoted:  # an array
                end = self._end(")", self.at)
                self.buffer.append(text[self.at + 1 : end].replace("'", "").replace('"', ""))
                self.at = end + 1
            elif char in " \t\r\n;&|)(<>" and not inside and text[self.at : self.at + 2] not in ("<(", ">("):
                break
            else:
                self.expand(inside=inside)
        if inside:
            raise ShellError("a double quote does not end")
        texts = "".join(self.buffer).split("\0")
        return texts if self.quoted else [whole for text in texts for whole in in_braces(text)]

    def expand(self, *, inside: bool = False) -> None:
        """One character, variable or substitution outside of single quotes (`inside`: in double ones)."""
        char, following = self.text[self.at], self.text[self.at + 1 : self.at + 2]
        if char == "`":
            end = self._end("`", self.at + 1, escapes=True)
            self._value(self.output_of(self.text[self.at + 1 : end].replace("\\`", "`")), "$(...)", inside=inside)
            self.at = end + 1
        elif char == "$":
            self._dollar(following, inside=inside)
        elif char in "<>" and following == "(" and not inside:
            self._bracketed(inside=True)
            self.piped = True
        else:
            self.buffer.append(char)
            self.at += 1

    def _dollar(self, following: str, *, inside: bool) -> None:
        text = self.text
        if text.startswith("$((", self.at):
            self.at = self._end("))", self.at) + 2
            self.dynamic = True
            self.buffer.append("0")
        elif following == "(":
            self._bracketed(inside=inside)
        elif following == "{":
            end = self._end("}", self.at)
            name, literal = text[self.at + 2 : end], text[self.at : end + 1]
            self.read_substitutions(name)
            bare, mark, default = name.partition(":-") if ":-" in name else name.partition("-")
            bare = bare.partition("[")[0]  # an array is all of its words
            value = self.variables.get(bare, default if mark and "$" not in default else None)
            self._value(value if all(c in NAMES or c == "@" for c in bare) else None, literal, inside=inside)
            self.at = end + 1
        elif following == "'" and not inside:
            end = self._end("'", self.at + 2, escapes=True)
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

    def _value(self, value: str | None, literal: str, *, inside: bool) -> None:
        self.dynamic = self.dynamic or value is None
        if value is not None and not inside:
            for mark in self.variables.get("IFS", ""):
                value = value.replace(mark, " ")
            value = "\0".join(value.split())
        self.buffer.append(literal if value is None else value)

    def _bracketed(self, *, inside: bool) -> None:
        """A substitution; the reader stands on the sign before its bracket."""
        at, depth, quote = self.at, 0, ""
        while at + 1 < len(self.text):
            at += 1
            char = self.text[at]
            if char == "\\" and quote != "'":
                at += 1
            elif quote or char in "'\"":
                quote = char if not quote else "" if char == quote else quote
            elif char in "()":
                depth += 1 if char == "(" else -1
                if depth == 0:
                    self._value(self.output_of(self.text[self.at + 2 : at]), "$(...)", inside=inside)
                    self.at = at + 1
                    return
        raise ShellError("a substitution does not end")
