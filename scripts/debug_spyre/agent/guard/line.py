"""One text of shell: each simple command with what stands around it. What a program does, `judge.py` says."""

from __future__ import annotations

from debug_spyre.agent.guard import tables
from debug_spyre.agent.guard.files import written_file
from debug_spyre.agent.guard.finding import ALLOW, LOOKS, NOTHING, UNKNOWN, Finding, ask, deny, judge_name, strongest
from debug_spyre.agent.guard.light import name as name_of
from debug_spyre.agent.guard.place import Place
from debug_spyre.agent.guard.shell import Command, Reader, printed
from debug_spyre.agent.guard.shell_words import ShellError

MARKS = ("pytest", "spyre", "vllm", "git ", "pip", "uv ", "gh ")


class Judge:
    """Judges shell text at one depth; `judge.py` fills in what a program does."""

    def __init__(self, place: Place, *, background: bool = False) -> None:
        self.place = place
        self.background = background
        self.depth = 0
        self.locked = False  # under exec and lock: saved scripts and tests are allowed

    def deeper(self) -> Judge:
        """The same, one level deeper."""
        inner = type(self)(self.place, background=self.background)
        inner.depth, inner.locked = self.depth + 1, self.locked
        return inner

    def shell(self, text: str, arguments: list[str] | None = None) -> Finding:
        """A text of shell, one level deeper; `arguments` are its $0, $1, ..."""
        given = {str(number): word for number, word in enumerate(arguments or ())}
        return self.deeper().text(text, {**given, "@": " ".join((arguments or [])[1:])} if arguments else {})

    def program(self, words: list[str], command: Command) -> Finding:
        """A program and its arguments."""
        raise NotImplementedError

    def text(self, text: str, variables: dict[str, str] | None = None) -> Finding:
        """Every command in the text."""
        try:
            commands = Reader(text, self.depth, variables, self.place).read()
        except ShellError as error:
            told = f"the guard can't read this command ({error}), so no rule was checked; write it simpler"
            return ask("guard", told) if any(mark in text for mark in MARKS) else NOTHING
        findings, here = [], self.place.cwd
        for command in commands:
            self._note_written(command)
            findings.append(self._command(command))
            if command.words[:1] in (["cd"], ["pushd"]):
                self.place.cwd = self.place.real(command.words[1] if len(command.words) > 1 else "~")
        self.place.cwd = here
        found = strongest(findings)
        if found.verdict == UNKNOWN and self.depth == 0:
            for words in (command.words for command in commands if len(command.words) > 1):
                if self.place.is_ours(words[0]) and any("$(...)" in word for word in words):
                    told = "the shell would run what stands in $(...) or backticks: put text in 'single quotes' or give it on stdin with <<'EOF'"
                    return deny("guard", told)
        return found

    def _note_written(self, command: Command) -> None:
        """Remember what echo, cat, cp, ln and git archive write: the next command may run it."""
        words = command.words
        name = name_of(words[0]) if words else ""
        if name in ("cp", "mv", "ln", "install") and len(words) > 2:
            text = self.place.read(words[-2])
            is_program = text is None and name_of(words[-2]) in tables.COMMANDS
            self.place.note_written(words[-1], f'{words[-2]} "$@"' if is_program else text)
        elif name in ("cat", "tee", "echo", "printf"):
            targets = [target for operator, target in command.redirects if operator.startswith(">")]
            for target in targets + [w for w in words[1:] if name == "tee" and not w.startswith("-")]:
                self.place.note_written(target, self._output_of(command))
        self.place.archived = self.place.archived or (name == "git" and "archive" in words)

    def _command(self, command: Command) -> Finding:
        """One simple command with its environment and its redirects."""
        findings = [self.assigned(*pair, is_export=bool(command.words)) for pair in command.assigns]
        for operator, target in command.redirects:
            if target.startswith(("/dev/tcp", "/dev/udp")):
                findings.append(NOTHING)
            elif not operator.startswith("<") and not (operator == ">&" and (target.isdigit() or target == "-")):
                append = operator in (">>", "&>>")
                findings.append(written_file(target, self.place, from_git=command.from_git, append=append))
        found = strongest([*findings, self.program(command.words, command)])
        if self.locked and command.background and found.verdict == ALLOW:
            return deny("H1", "under the lock too the card takes one process at a time: no `&`, one after the other")
        return found

    def assigned(self, name: str, value: str, *, is_export: bool = True) -> Finding:
        """A variable that is set."""
        named = judge_name(name)
        is_powerful = name.startswith(tables.POWERFUL_ENV)
        if not named.stops and is_powerful and " " in value:
            named = self.shell(value).doubted()
        is_ours = name.islower() or name.startswith(tables.HARMLESS_ENV) or not (is_export or is_powerful)
        return named if named.stops else LOOKS if is_ours else NOTHING

    def fed_to(self, command: Command) -> str | None:
        """The text on the command's stdin: a here-document, a file, what stands before the pipe."""
        if command.stdin is not None:
            return command.stdin
        for operator, target in command.redirects:
            if operator == "<":
                return self.place.read(target)
        return self._output_of(command.source) if command.source and command.source.words else None

    def _output_of(self, command: Command) -> str | None:
        """What a filter prints, as far as it can be told."""
        name, rest = name_of(command.words[0]), command.words[1:]
        if name in ("echo", "printf"):
            return printed(command.words)
        if name not in tables.FILTERS:
            return None
        text = self.fed_to(command)
        text = self.place.read(rest[-1]) if text is None and rest else text
        if not text or name == "tr":
            return None
        if name == "base64" and any(word.startswith(("-d", "--d", "-D")) for word in rest):
            from binascii import Error, a2b_base64

            try:
                return a2b_base64(text).decode("utf-8", "replace")
            except Error:
                return None
        return text[::-1] if name == "rev" else text
