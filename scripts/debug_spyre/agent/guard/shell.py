"""Reads shell text into simple commands: lists, pipes, compounds, redirects, here-documents, substitutions."""

from __future__ import annotations

from debug_spyre.agent.guard.shell_words import ENDS, ShellError, Word, WordReader, unescaped

TYPE_CHECKING = False  # importing typing would cost a sixth of the guard's time
if TYPE_CHECKING:
    from collections.abc import Callable

    Files = Callable[[str], str | None]

BACKGROUND = "&"
LEADING = frozenset(
    ("if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "fi", "done", "esac", "coproc", "time", "-p")
)
SETTING = ("export", "declare", "local", "typeset", "readonly")


class Command:
    """One simple command: `words` without assignments, redirects as (operator, target), text on stdin if known."""

    __slots__ = ("assigns", "background", "dynamic", "redirects", "source", "stdin", "words")

    def __init__(self, words: list[str] | None = None) -> None:
        self.words: list[str] = words or []
        self.assigns: list[tuple[str, str]] = []
        self.redirects: list[tuple[str, str]] = []
        self.stdin: str | None = None
        self.source: Command | None = None  # the command whose output this one reads
        self.background = False
        self.dynamic: set[int] = set()  # numbers of words that only the shell knows


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


class Reader(WordReader):
    """Reads shell text into simple commands, in order, the inner ones of substitutions included."""

    def __init__(
        self, text: str, depth: int = 0, variables: dict[str, str] | None = None, files: Files | None = None
    ) -> None:
        super().__init__(text, depth, variables)
        self.files = files  # path -> the text of that file
        self.found: list[Command] = []
        self.waiting: list[tuple[Command, Word, bool]] = []  # here-documents whose body is still to come

    def read(self) -> list[Command]:
        """All simple commands.

        Raises:
            ShellError: a quote, bracket or here-document does not end.
        """
        current, left = Command(), list[Command]()  # `left`: the and-or list so far, for `&`
        while True:
            token = self.token()
            if isinstance(token, list):
                self._word(current, token)
            elif token is not None and token not in ENDS:
                self._redirect(current, token)
            else:
                self._finish(current, left)
                if token is None:
                    break
                current = Command()
                if token == BACKGROUND:
                    for command in left:
                        command.background = True
                if token in ("|", "|&") and left:
                    current.source = left[-1]
                elif token not in ("&&", "||", ")"):
                    left = []
        self.newline()
        return self.found

    def _finish(self, current: Command, left: list[Command]) -> None:
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

    def _word(self, current: Command, words: list[Word]) -> None:
        for word in words:
            if not current.words and not word.quoted:
                skip = word.text in ("for", "select", "case", "[[")
                if word.text in ("for", "select"):
                    self._for()
                elif skip:  # `case WORD in` and its first pattern: later ones follow `;;`
                    self._until(")" if word.text == "case" else "]]")
                current.background = current.background or word.text == "coproc"
                if word.text == "function":
                    self.token()
                if skip or word.text in LEADING or word.text == "function":
                    continue
            name, equals, value = word.text.partition("=")
            name = name.removesuffix("+")
            if not current.words and equals and name.isidentifier():
                current.assigns.append((name, value))
                continue
            if word.dynamic:
                current.dynamic.add(len(current.words))
            if word.piped and self.found:
                current.source = self.found[-1]
            current.words.append(word.text)

    def _redirect(self, current: Command, operator: str) -> None:
        target = self.token()
        if not isinstance(target, list) or not target:
            raise ShellError(f"nothing follows {operator}")
        if operator in ("<<", "<<-"):
            self.waiting.append((current, target[0], operator == "<<-"))
        elif operator == "<<<":
            current.stdin = target[0].text
        elif target[0].piped and self.found:
            current.source = self.found[-1]
        else:
            current.redirects.append((operator, "$" if target[0].dynamic else target[0].text))
        current.words.extend(word.text for word in target[1:])

    def newline(self) -> None:
        """The bodies of here-documents."""
        waiting, self.waiting = self.waiting, []
        for command, delimiter, strip in waiting:
            lines = []
            while self.at < len(self.text):
                end = self.find("\n", self.at, len(self.text))
                line = self.text[self.at : end]
                self.at = end + 1
                if (line.lstrip("\t") if strip else line) == delimiter.text:
                    break
                lines.append(line)
            command.stdin = "\n".join(lines) + "\n"
            if not delimiter.quoted:
                self.read_substitutions(command.stdin)

    def read_substitutions(self, text: str) -> None:
        """Only the substitutions in this text count."""
        if "$(" in text or "`" in text:
            inner = Reader(text, self.depth + 1, self.variables, self.files)
            while inner.at < len(inner.text):
                inner.expand(inside=True)
            self.found += inner.found

    def substitute(self, inner: str) -> str | None:
        """The output of echo, printf, which and cat; the commands of all others are read too."""
        commands = Reader(inner, self.depth + 1, self.variables, self.files).read()
        self.found += commands
        words = commands[0].words if len(commands) == 1 and not commands[0].dynamic else []
        if words[:1] in (["echo"], ["printf"]):
            return printed(words).replace("\n", " ")
        if words[:1] == ["which"] or words[:2] == ["command", "-v"]:
            return words[-1]
        if words[:1] == ["cat"] and len(words) == 2:
            return self.files(words[1]) if self.files else None
        return None

    def _for(self) -> None:
        """`for NAME in WORDS`: the variable counts as all of them."""
        name = self.token()
        values: list[str] = []
        while True:
            token = self.token()
            if not isinstance(token, list) or (token and token[0].text == "do" and not token[0].quoted):
                break
            values += [word.text for word in token if word.text != "in"]
        if isinstance(name, list) and name and values and not any("$" in value for value in values):
            self.variables[name[0].text] = " ".join(values)

    def _until(self, end: str) -> None:
        while True:
            token = self.token()
            if token is None or token == end or (isinstance(token, list) and token and token[0].text == end):
                return
