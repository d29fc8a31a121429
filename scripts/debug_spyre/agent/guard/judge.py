"""Judges one tool call: every simple command in it, whatever wraps it."""

from __future__ import annotations

from debug_spyre.agent.guard import light, tables
from debug_spyre.agent.guard.files import (
    edits_in_place,
    judge_edit,
    judge_writer,
    kept_file,
    lost_edits,
    saved_script,
    written_file,
)
from debug_spyre.agent.guard.finding import (
    ALLOW,
    LOOKS,
    NOTHING,
    UNKNOWN,
    Finding,
    Judge,
    ask,
    deny,
    judge_name,
    never_allowed,
    strongest,
)
from debug_spyre.agent.guard.place import Place
from debug_spyre.agent.guard.shell import SETTING, Command, Reader, printed
from debug_spyre.agent.guard.shell_words import MAX_DEPTH, ShellError

MARKS = ("pytest", "spyre", "vllm", "git ", "pip", "uv ", "gh ")


def decide(tool: str, given: dict[str, object], place: Place) -> Finding:
    """What the rules say to this tool call; None of them says nothing."""
    if tool in ("Bash", "Monitor"):
        background = bool(given.get("run_in_background")) or tool == "Monitor"
        return judge_shell(str(given.get("command") or ""), place, background=background)
    if tool in ("Edit", "Write", "MultiEdit", "NotebookEdit"):
        return judge_edit(str(given.get("file_path") or given.get("notebook_path") or ""), place)
    return NOTHING


def judge_shell(text: str, place: Place, *, background: bool = False) -> Finding:
    """A whole line: allowed where each part is harmless and at least one is ours."""
    judge = CommandJudge(place, background=background, calls=[])
    found = judge.text(text)
    if found.verdict == ALLOW and len(judge.calls) > 1:
        only = "one command that uses the card in a call, so that each shows its own outcome"
        return deny("H1", f"{only}. The first: {judge.calls[0]}")
    return found


def name_of(word: str) -> str:
    """The program that a command's first word names."""
    return word.rpartition("/")[2]


def is_python(name: str) -> bool:
    """python, python3.12, ipython, pypy3, ..."""
    return name.startswith(("python", "ipython", "pypy")) and not name.rstrip("0123456789.t").endswith("-")


class CommandJudge(Judge):
    """Judges shell text at one depth."""

    def _deeper(self, background: bool | None = None, locked: bool | None = None) -> CommandJudge:
        return CommandJudge(
            self.place,
            background=self.background if background is None else background,
            depth=self.depth + 1,
            locked=self.locked if locked is None else locked,
            calls=self.calls,
        )

    def shell(self, text: str, *, background: bool | None = None, arguments: list[str] | None = None) -> Finding:
        """A text of shell, one level deeper; `arguments` are its $0, $1, ..."""
        given = {str(number): word for number, word in enumerate(arguments or ())}
        given = {"@": " ".join((arguments or [])[1:]), **given} if arguments else {}
        return self._deeper(background).text(text, given)

    def words(self, words: list[str], command: Command, *, locked: bool | None = None) -> Finding:
        """What these words run, one level deeper."""
        return self._deeper(locked=locked)._words(words, command)

    def text(self, text: str, variables: dict[str, str] | None = None) -> Finding:
        """Every command in the text."""
        if not text.strip():
            return NOTHING
        try:
            commands = Reader(text, self.depth, variables, self.place.read).read()
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
            text = printed(words) if name in ("echo", "printf") else self.fed_to(command)
            targets = [target for operator, target in command.redirects if operator.startswith(">")]
            for target in targets + [w for w in words[1:] if name == "tee" and not w.startswith("-")]:
                self.place.note_written(target, text, append=True)
        self.place.archived = self.place.archived or (name == "git" and "archive" in words)

    def _command(self, command: Command) -> Finding:
        """One simple command with its environment and its redirects."""
        findings = [self._assigned(*pair, is_export=bool(command.words)) for pair in command.assigns]
        for operator, target in command.redirects:
            if operator.startswith("<") and target.startswith(("/dev/tcp", "/dev/udp")):
                findings.append(NOTHING)
            if operator.startswith("<") or (operator == ">&" and (target.isdigit() or target == "-")):
                continue
            is_git, append = _comes_from_git(command), operator in (">>", "&>>")
            findings.append(written_file(target, self.place, from_git=is_git, append=append))
        if command.words:
            findings.append(self._words(command.words, command))
        found = strongest(findings)
        if self.locked and command.background and found.verdict == ALLOW:
            return deny("H1", "under the lock too the card takes one process at a time: no `&`, one after the other")
        return found

    def _assigned(self, name: str, value: str, *, is_export: bool = True) -> Finding:
        named = judge_name(name)
        is_powerful = name.startswith(tables.POWERFUL_ENV)
        if not named.stops and is_powerful and " " in value:
            named = never_allowed(self.shell(value))
        is_ours = name.islower() or name.startswith(tables.HARMLESS_ENV) or not (is_export or is_powerful)
        return named if named.stops else LOOKS if is_ours else NOTHING

    def _words(self, words: list[str], command: Command) -> Finding:
        if not words:
            return LOOKS
        if self.depth > MAX_DEPTH:
            return ask("guard", "commands are nested too deep to be checked; write it simpler")
        name, rest = name_of(words[0]), words[1:]
        if self.place.is_ours(words[0]):
            from debug_spyre.agent.guard.own import judge_own

            return judge_own(words, command, self)
        if " " in words[0] and not light.kind(self.place.real(words[0])):  # "$@" and "${an_array[@]}" as a command
            return never_allowed(self.shell(" ".join(words)))
        is_glob = words[0] not in ("[", "[[") and any(c in words[0] for c in "*?[")
        if is_glob or (0 in command.dynamic and words == command.words):
            return self._unclear(words, command)
        if name in tables.READERS and name not in tables.WRAPPERS:
            return self._reader(name, rest, command)
        if name in tables.WRAPPERS:
            return self._wrapped(name, rest, command)
        if name in tables.SHELLS or name in ("eval", "source", "."):
            return self._script(name, rest, command)
        if name in ("alias", "trap"):
            texts = [word.partition("=")[2] for word in rest] if name == "alias" else rest[:1]
            return strongest([NOTHING, *(never_allowed(self.shell(text)) for text in texts)])
        known = self._by_name(name, words, rest, command)
        return known if known is not None else self._unknown(name, words, rest, command)

    def _by_name(self, name: str, words: list[str], rest: list[str], command: Command) -> Finding | None:
        """The programs that the guard knows; what judges them is imported only where a line needs it."""
        from debug_spyre.agent.guard import person, programs

        if name in tables.TESTERS:
            return programs.judge_pytest(rest, command, self)
        if is_python(name):
            return programs.judge_python(words, command, self)
        if name == "coverage" and rest[:1] == ["run"]:
            return programs.judge_python(["python", "-m", "coverage", *rest], command, self)
        if name == "uv":
            return person.judge_uv(words, command, self)
        if name == "git":
            return person.judge_git(rest, command, self)
        if name in ("gh", "hub", "glab"):
            return person.judge_forge(name, rest, self)
        if name in ("pip", "easy_install") or (name.startswith("pip") and name[3:4].isdigit()):
            return person.judge_pip(rest if name != "easy_install" else ["install"])
        if name == "vllm":
            return programs.judge_vllm(words, command)
        if name in tables.LAUNCHERS:
            return programs.outside_the_lock(words, command, f"{name} starts processes that use the card")
        if (
            name == "claude"
            and rest[:1] in (["config"], ["plugin"], ["mcp"])
            and {"set", "disable", "uninstall"} & {*rest}
        ):
            return deny("P1", "the client's own settings are a person's to change, by hand")
        found = person.judge_installer(name, rest) if name in tables.INSTALLERS else NOTHING
        if name in ("curl", "wget", "http", "xh"):
            found = person.judge_forge(name, rest, self)
        if not found.stops and name in tables.PASSING:
            found = programs.judge_task(name, rest, command, self)
        return found if found.stops else None

    def _unclear(self, words: list[str], command: Command) -> Finding:
        """A command whose name only the shell knows: what follows tells what it may be."""
        from debug_spyre.agent.guard import programs

        rest = words[1:]
        if rest[:1] and rest[0].startswith("-m"):
            return never_allowed(programs.judge_python(["python", *rest], command, self))
        is_git = rest[:1] and rest[0] in tables.MOVING | {"commit", "push", "stash", "reset", "restore", "clean"}
        if is_git or any(map(programs.is_test, rest)) or any(mark in words[0] for mark in MARKS) or "pytest" in rest:
            return ask("guard", f"the guard can't tell what {words[0][:60]} runs; write the command's name out")
        return NOTHING

    def _wrapped(self, name: str, rest: list[str], command: Command) -> Finding:
        """timeout, env, xargs and their like: skip their own words, judge what they run."""
        valued, left = tables.WRAPPERS[name]
        if name == "command" and rest[:1] in (["-v"], ["-V"]):
            return LOOKS
        inner, findings = list(rest), list[Finding]()
        while inner:
            word = inner[0]
            if name == "env" and word.startswith(("-S", "--split-string")):
                text = word.removeprefix("--split-string").removeprefix("-S").removeprefix("=")
                return never_allowed(self.shell(" ".join([text, *inner[1:]])))
            if name == "env" and word in ("-u", "--unset", "-i", "-", "--ignore-environment"):
                hidden = inner[1] if word in ("-u", "--unset") and len(inner) > 1 else "CLAUDECODE"
                findings.append(judge_name(hidden) if any(self.place.is_ours(w) for w in rest) else LOOKS)
            if word in valued and len(inner) > 1:
                del inner[:2]
            elif word.startswith("-"):
                inner.pop(0)
            elif name == "env" and word.partition("=")[0].isidentifier() and "=" in word:
                command.assigns.append((word.partition("=")[0], word.partition("=")[2]))
                findings.append(self._assigned(*command.assigns[-1]))
                inner.pop(0)
            elif left:
                left -= 1
                inner.pop(0)
            else:
                break
        if name == "xargs" and inner:
            source = command.source or Command()
            findings.append(self._over(name_of(inner[0]), source.words, inner))
            is_known = source.words[:1] in (["echo"], ["printf"])
            inner += printed(source.words).split() if is_known else ["$(...)"]
            command = Command(inner)
            command.dynamic = set() if is_known else {len(inner) - 1}
        before = len(self.calls)
        found = self.shell(inner[0]) if len(inner) == 1 and " " in inner[0] else self.words(inner, command)
        if len(self.calls) > before and any(w.startswith(("-P", "--max-procs")) for w in rest):
            return self._several(name)
        return strongest([*findings, found])

    def _several(self, name: str) -> Finding:
        told = f"{name} starts several commands that use the card; one after the other: {self.calls[-1]}"
        return deny("H1", told)

    def _over(self, name: str, words: list[str], inner: list[str]) -> Finding:
        """A writer that gets its files from another command."""
        if (name in tables.READERS and not edits_in_place(name, inner[1:])) or name == tables.NAME:
            return LOOKS
        return judge_writer("xargs", words[1:], self.place)

    def _script(self, name: str, rest: list[str], command: Command) -> Finding:
        """A shell that gets its text by -c, from a file or from stdin."""
        if name == "eval":
            return self.shell(" ".join(rest))
        at = 0
        while at < len(rest) and rest[at].startswith("-") and len(rest[at]) > 1:
            if not rest[at].startswith("--") and "c" in rest[at] and at + 1 < len(rest):
                return self.shell(rest[at + 1], arguments=rest[at + 2 :])
            at += 2 if rest[at] in ("-o", "-O", "--rcfile", "--init-file") else 1
        is_file = at < len(rest) and rest[at] not in ("-", "/dev/stdin", "$(...)")
        if is_file and self.place.is_ours(rest[at]):
            return never_allowed(self.words(rest[at:], command))
        if is_file and rest[at].endswith("/activate"):
            return NOTHING
        text = self.place.read(rest[at]) if is_file else self.fed_to(command)
        if text is None and not is_file and command.source is not None:
            return ask(
                "guard", f"the guard can't tell what this {name} would run; keep the text in a file and run that"
            )
        found = never_allowed(self.shell(text, arguments=rest[at:] or None)) if text else NOTHING
        return saved_script(rest[at], self.place, found) if self.locked and is_file else found

    def _reader(self, name: str, rest: list[str], command: Command) -> Finding:
        """A program that only looks, unless an option or its little program says otherwise."""
        if name in ("cd", "pushd"):
            target, top = self.place.real(rest[0] if rest else "~"), self.place.top()
            return LOOKS if target == top or target.startswith(top + "/") or rest[:1] == ["-"] else NOTHING
        if name in ("unset", "read", *SETTING):
            return next(
                (found for found in (judge_name(word.partition("=")[0]) for word in rest) if found.stops), LOOKS
            )
        writes = tables.READERS[name]
        code = [word for at, word in enumerate(rest) if rest[at - 1 : at] in (["-e"], ["--expression"])]
        code = code or [word for word in rest if not word.startswith("-")][:1]
        is_code = name in tables.CODE_READERS and any(
            mark in w or w.lstrip("0123456789,$ ").startswith("e ") for w in code for mark in tables.CODE_WRITES
        )
        if not is_code and not edits_in_place(name, rest) and not (writes and any(w.startswith(writes) for w in rest)):
            return LOOKS
        findings = [NOTHING, judge_writer(name, [*rest, *" ".join(rest).split()], self.place)]
        findings += self._found(rest, command) if name == "find" else [self._code(rest, command)]
        findings += [never_allowed(self.shell(w.partition("e ")[2])) for w in code if name == "sed" and "e " in w]
        return strongest(findings)

    def _unknown(self, name: str, words: list[str], rest: list[str], command: Command) -> Finding:
        """Any other program: writers into kept files, code in an argument, scripts by path, other programs in its words."""
        if self.locked and "/" in words[0]:
            return self._by_path(words, command)
        if name == "mkdir" or (rest[:1] and rest[0] in tables.SHOWING):
            return NOTHING
        is_git = _comes_from_git(command)
        if name == "tee":
            return judge_writer(name, rest, self.place, from_git=is_git)
        is_look = name == "tar" and "x" not in (rest or [""])[0] and "--extract" not in rest
        if self.place.has_open_session():
            if name == "tar" and not is_look and (is_git or self.place.archived):
                return lost_edits("git archive | tar")
            if name == "patch" and any(w == "--reverse" or (w[:1] == "-" and w[1:2] != "-" and "R" in w) for w in rest):
                return lost_edits("patch -R")
            if (
                name in tables.COPIES
                and is_git
                and any(light.kind(self.place.real(w.removeprefix("of="))) == light.FILE for w in rest)
            ):
                return lost_edits("git show")
        named = [*rest, "patched"] if name == "patch" else rest
        findings = [NOTHING if is_look else judge_writer(name, named, self.place)]
        if name in tables.INTERPRETERS:
            findings.append(self._code(rest, command))
        elif name not in tables.TALKERS:
            findings += self._named_in(name, rest, command)
        return strongest([NOTHING, *findings, self._by_path(words, command)])

    def _named_in(self, name: str, rest: list[str], command: Command) -> list[Finding]:
        """Programs that stand in the words of another one (sudo, tmux, docker, watch, vim, ...), and texts of shell."""
        is_later = True if name in tables.LATER else None
        rest = rest[: rest.index(":::")] if name == "parallel" and ":::" in rest else rest[:60]
        before, found = len(self.calls), list[Finding]()
        for at, word in enumerate(rest):
            bare = (word.partition("=")[2] if word.startswith("-") and "=" in word else word).lstrip("!:@")
            tail = [*(["sh"] if bare.endswith(".sh") else []), bare, *rest[at + 1 :]]
            is_name = name_of(tail[0]) in tables.COMMANDS | tables.INSTALLERS or is_python(name_of(tail[0]))
            if " " in bare or "\n" in bare:
                found.append(self.shell(bare, background=is_later))
            elif is_name and rest[at - 1 : at] not in (["-t"], ["-s"], ["--name"], ["--tag"]):
                found.append(self._deeper(is_later)._words(tail, command))
            elif is_later and not word.startswith("-"):
                found.append(self.shell(self.place.read(word) or "", background=True))
        if is_later:
            found.append(self.shell(self.fed_to(command) or "", background=True))
        if name in tables.PARALLEL and len(self.calls) > before:
            found.append(self._several(name))
        return [never_allowed(finding) for finding in found]

    def _found(self, rest: list[str], command: Command) -> list[Finding]:
        """What find runs and removes, and where."""
        findings, at = [], 0
        file = next((rest[n + 1] for n, word in enumerate(rest[:-1]) if word == "-name"), "{}")
        for at, word in enumerate(rest):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                end = next((n for n in range(at, len(rest)) if rest[n] in (";", "+")), len(rest))
                inner = [
                    w.replace("{}", file if "*" in file else light.join(rest[0], file)) for w in rest[at + 1 : end]
                ]
                findings.append(never_allowed(self.words(inner, command)))
                findings.append(self._over(name_of(inner[0]) if inner else "", ["find", *rest[:at]], inner))
            elif word == "-delete":
                findings += [kept_file(w, self.place) for w in rest[:at] if not w.startswith("-")]
                findings += [kept_file(light.join(rest[0], file), self.place)]
        return findings

    def _code(self, rest: list[str], command: Command) -> Finding:
        """Code of another language in an argument: what it gives to a shell, what it writes."""
        from debug_spyre.agent.guard.programs import judge_program

        return strongest([judge_program(word, "", ["code"], command, self) for word in rest if len(word) > 3])

    def _by_path(self, words: list[str], command: Command) -> Finding:
        """A script that is started by its path."""
        from debug_spyre.agent.guard.programs import judge_program

        text = self.place.read(words[0]) if "/" in words[0] else None
        if not text or "\0" in text:
            return NOTHING
        first = text.splitlines()[0]
        is_shell = not first.startswith("#!") or any(shell in first for shell in tables.SHELLS)
        found = never_allowed(self.shell(text, arguments=words)) if is_shell else NOTHING
        if "python" in first:
            found = judge_program(text, words[0], words, command, self)
        return saved_script(words[0], self.place, found) if self.locked else found


def _comes_from_git(command: Command) -> bool:
    """The command, or what it reads, shows a file of another commit."""
    at: Command | None = command
    while at is not None:
        if at.words[:1] == ["git"] and {"show", "cat-file", "archive"} & set(at.words):
            return True
        at = at.source
    return False
