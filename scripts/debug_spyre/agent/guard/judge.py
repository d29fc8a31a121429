"""Judges one tool call: every simple command in it, whatever wraps it."""

from __future__ import annotations

from debug_spyre.agent.guard import paths, tables
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
    Finding,
    Judge,
    ask,
    deny,
    judge_name,
    never_allowed,
    said_by,
    strongest,
)
from debug_spyre.agent.guard.place import Place
from debug_spyre.agent.guard.shell import Command, Reader
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
    judge = CommandJudge(place, background=background)
    found = judge.text(text)
    if found.verdict == ALLOW and len(judge.calls) > 1:
        return deny(
            "H1",
            f"one command that uses the card in a call, so that each shows its own outcome. The first: {judge.calls[0]}",
        )
    return found


class CommandJudge(Judge):
    """Judges shell text at one depth."""

    def shell(self, text: str, *, background: bool | None = None, arguments: list[str] | None = None) -> Finding:
        """A text of shell, one level deeper; `arguments` are its $1, $2, ..."""
        deeper = CommandJudge(
            self.place,
            background=self.background if background is None else background,
            depth=self.depth + 1,
            calls=self.calls,
            locked=self.locked,
        )
        given = {str(number): word for number, word in enumerate(arguments or (), start=1)}
        return deeper.text(text, {"@": " ".join(arguments), **given} if arguments else None)

    def text(self, text: str, variables: dict[str, str] | None = None) -> Finding:
        """Every command in the text."""
        if not text.strip():
            return NOTHING
        try:
            commands = Reader(text, self.depth, variables).read()
        except ShellError as error:
            if any(mark in text for mark in MARKS):
                return ask(
                    "guard", f"the guard can't read this command ({error}), so no rule was checked; write it simpler"
                )
            return NOTHING
        findings, here = [], self.place.cwd
        for command in commands:
            self._note_written(command)
            findings.append(self._command(command))
            if command.words[:1] in (["cd"], ["pushd"]):
                target = command.words[1] if len(command.words) > 1 else "~"
                self.place.cwd = paths.real(paths.join(self.place.cwd, paths.expand(target)))
        self.place.cwd = here
        return self._hint(commands, strongest(findings))

    def _hint(self, commands: list[Command], found: Finding) -> Finding:
        """A note whose text the shell would run: said how to type it, since it would only prompt."""
        if found.verdict == "unknown" and self.depth == 0:
            for command in commands:
                if (
                    len(command.words) > 1
                    and self.place.is_ours(command.words[0])
                    and any("$(...)" in w for w in command.words)
                ):
                    return deny(
                        "guard",
                        "the shell would run what stands in $(...) or backticks: put text in 'single quotes' or give it on stdin with <<'EOF'",
                    )
        return found

    def _note_written(self, command: Command) -> None:
        """Remember what `cat > file <<EOF` and `echo x > file` write: the next command may run it."""
        if not command.words or command.words[0] not in ("cat", "tee", "echo", "printf"):
            return
        text = said_by(command) if command.words[0] in ("echo", "printf") else self.fed_to(command)
        targets = [target for operator, target in command.redirects if operator.startswith(">")]
        targets += [w for w in command.words[1:] if command.words[0] == "tee" and not w.startswith("-")]
        for target in targets if text is not None else ():
            self.place.written[target] = self.place.written.get(target, "") + (text or "") + "\n"

    def _command(self, command: Command) -> Finding:
        """One simple command with its environment and its redirects."""
        is_export = bool(command.words)
        findings = [self._assigned(name, is_export=is_export) for name, _ in command.assigns]
        for operator, target in command.redirects:
            if operator.startswith("<") and target.startswith(("/dev/tcp", "/dev/udp")):
                findings.append(NOTHING)
            if operator.startswith("<") or (operator == ">&" and (target.isdigit() or target == "-")):
                continue
            append = operator in (">>", "&>>")
            findings.append(written_file(target, self.place, from_git=_comes_from_git(command), append=append))
        if command.words:
            findings.append(self._words(command.words, command))
        found = strongest(findings)
        if self.locked and command.background and found.verdict == ALLOW:
            return deny("H1", "under the lock too the card takes one process at a time: no `&`, one after the other")
        return found

    @staticmethod
    def _assigned(name: str, *, is_export: bool = True) -> Finding:
        named = judge_name(name)
        is_ours = name.islower() or name.startswith(tables.HARMLESS_ENV)
        is_ours = is_ours or not (is_export or name.startswith(tables.POWERFUL_ENV))
        return named if named.stops else LOOKS if is_ours else NOTHING

    def words(self, words: list[str], command: Command) -> Finding:
        """What these words run, one level deeper."""
        deeper = CommandJudge(
            self.place, background=self.background, depth=self.depth + 1, calls=self.calls, locked=self.locked
        )
        return deeper._words(words, command)

    def _words(self, words: list[str], command: Command) -> Finding:
        if not words:
            return LOOKS
        if self.depth > MAX_DEPTH:
            return ask("guard", "commands are nested too deep to be checked; write it simpler")
        name, rest = words[0].rpartition("/")[2], words[1:]
        if self.place.is_ours(words[0]):
            from debug_spyre.agent.guard.own import judge_own

            return judge_own(words, command, self)
        if (0 in command.dynamic and words == command.words) or any(
            c in words[0] for c in "*?[" if words[0] not in ("[", "[[")
        ):
            return self._unclear(words, command)
        by_name = (
            None
            if name in tables.READERS and name not in tables.WRAPPERS
            else self._by_name(name, words, rest, command)
        )
        return by_name if by_name is not None else self._plain(name, words, rest, command)

    def _by_name(self, name: str, words: list[str], rest: list[str], command: Command) -> Finding | None:
        """The programs that the guard knows; what judges them is imported only where a line needs it."""
        from debug_spyre.agent.guard import card, person

        if name in tables.LATER:
            return self._later(rest, command)
        if name in tables.WRAPPERS:
            return self._wrapped(name, rest, command)
        if name in tables.SHELLS or name in ("eval", "source", "."):
            return self._script(name, rest, command)
        if name in tables.TESTERS:
            return card.judge_pytest(rest, command, self)
        if name.startswith("python") and all(c.isdigit() or c in ".t" for c in name[6:]):
            return card.judge_python(words, command, self)
        if name == "coverage" and rest[:1] == ["run"]:
            return card.judge_python(["python", "-m", "coverage", *rest], command, self)
        if name == "uv":
            return person.judge_uv(words, command, self)
        if name in ("git", "gh", "hub", "glab"):
            return person.judge_git(name, rest, command, self)
        if name.startswith("pip") and all(c.isdigit() or c == "." for c in name[3:]):
            return person.judge_pip(rest)
        if name == "vllm":
            return card.judge_vllm(words, command)
        if name in tables.LAUNCHERS:
            return card.outside_the_lock(words, command, f"{name} starts processes that use the card")
        return self._by_task(name, rest, command)

    def _by_task(self, name: str, rest: list[str], command: Command) -> Finding | None:
        from debug_spyre.agent.guard import card, person

        if name in tables.INSTALLERS:
            found = person.judge_installer(name, rest)
            if found.stops:
                return found
        if name in tables.RUNNERS and "run" in rest:
            inner = rest[rest.index("run") + 1 :]
            while inner and inner[0].startswith("-"):
                inner = inner[2:] if inner[0] in ("-n", "-p", "--name", "--prefix") else inner[1:]
            found = never_allowed(self.words(inner, command))
            if found.stops:
                return found
        if name in tables.PASSING:
            return card.judge_task(name, rest, command, self)
        return None

    def _unclear(self, words: list[str], command: Command) -> Finding:
        """A command whose name only the shell knows: what follows tells what it may be."""
        from debug_spyre.agent.guard import card

        rest = words[1:]
        if rest[:1] and rest[0].startswith("-m"):
            return never_allowed(card.judge_python(["python", *rest], command, self))
        is_test = any(
            "::" in w or (w.rpartition("/")[2].startswith("test_") and w.endswith(".py")) or w == "tests" for w in rest
        )
        is_git = rest[:1] and rest[0] in tables.MOVING | {"commit", "push", "stash", "reset", "restore", "clean"}
        if is_test or is_git or any(mark in words[0] for mark in MARKS) or "pytest" in rest:
            return ask("guard", f"the guard can't tell what {words[0][:60]} runs; write the command's name out")
        return NOTHING

    def _wrapped(self, name: str, rest: list[str], command: Command) -> Finding:
        """timeout, env, xargs and their like: skip their own words, judge what they run."""
        valued, left = tables.WRAPPERS[name]
        if name == "command" and rest[:1] in (["-v"], ["-V"]):
            return LOOKS
        if name in ("alias", "trap"):
            texts = [word.partition("=")[2] for word in rest] if name == "alias" else rest[:1]
            return strongest([NOTHING, *(never_allowed(self.shell(text)) for text in texts)])
        inner, shell_option = (
            list(rest),
            {"env": ("-S", "--split-string"), "flock": ("-c", "--command"), "docker": ("sh -c",)},
        )
        findings: list[Finding] = []
        while inner:
            word = inner[0]
            if word in shell_option.get(name, ()) and len(inner) > 1:
                return never_allowed(self.shell(" ".join(inner[1:])))
            if name == "env" and word in ("-u", "--unset", "-i", "-", "--ignore-environment"):
                hidden = inner[1] if word in ("-u", "--unset") and len(inner) > 1 else "CLAUDECODE"
                findings.append(judge_name(hidden) if any(self.place.is_ours(w) for w in rest) else LOOKS)
            if word in valued and len(inner) > 1:
                del inner[:2]
            elif word.startswith("-"):
                inner.pop(0)
            elif name in ("env", "sudo", "doas") and word.partition("=")[0].isidentifier() and "=" in word:
                command.assigns.append((word.partition("=")[0], word.partition("=")[2]))
                findings.append(self._assigned(inner.pop(0).partition("=")[0]))
            elif left:
                left -= 1
                inner.pop(0)
            else:
                break
        if name == "parallel" and ":::" in inner:
            inner = inner[: inner.index(":::")]
        if name == "xargs" and inner:
            source = command.source or Command()
            findings.append(self._over(inner[0].rpartition("/")[2], source.words, inner))
            is_known = source.words[:1] in (["echo"], ["printf"])
            inner += said_by(source).split() if is_known else ["$(...)"]
            command = Command(inner)
            command.dynamic = set() if is_known else {len(inner) - 1}
        before = len(self.calls)
        found = self.shell(inner[0]) if len(inner) == 1 and " " in inner[0] else self.words(inner, command)
        at_once = name in tables.PARALLEL or any(w.startswith(("-P", "--max-procs")) for w in rest)
        if at_once and len(self.calls) > before:
            return deny(
                "H1", f"{name} starts several commands that use the card; one after the other: {self.calls[-1]}"
            )
        return strongest([*findings, found if name in tables.HARMLESS_WRAPPERS else never_allowed(found)])

    def _over(self, name: str, words: list[str], inner: list[str]) -> Finding:
        """A writer that gets its files from another command."""
        if (name in tables.READERS and not edits_in_place(name, inner[1:])) or name == tables.NAME:
            return LOOKS
        return judge_writer("xargs", words[1:], self.place)

    def _later(self, rest: list[str], command: Command) -> Finding:
        """tmux, at, su and their like: every argument, and stdin, may be a text of shell."""
        fed = self.fed_to(command)
        if "-f" in rest[:-1]:
            fed = self.place.read(rest[rest.index("-f") + 1])
        at = next((n for n, word in enumerate(rest) if not word.startswith("-") and n), 0)
        texts = [*(w for w in rest if " " in w), " ".join(rest), " ".join(rest[at:]), *([fed] if fed else [])]
        texts += [
            " ".join(rest[n + 1 :])
            for n, word in enumerate(rest)
            if word in ("--", "new-session", "-d", "-dm", "-dmS", "new", "send-keys", "-c") or n == 0
        ]
        texts += [" ".join(rest[n + 2 :]) for n, word in enumerate(rest) if word in ("-dmS", "-s", "-t", "-S")]
        return strongest([NOTHING, *(never_allowed(self.shell(text, background=True)) for text in texts if text)])

    def _script(self, name: str, rest: list[str], command: Command) -> Finding:
        """A shell that gets its text by -c, from a file or from stdin."""
        if name == "eval":
            return self.shell(" ".join(rest))
        at = 0
        while at < len(rest) and rest[at].startswith("-") and len(rest[at]) > 1:
            if not rest[at].startswith("--") and "c" in rest[at] and at + 1 < len(rest):
                return self.shell(rest[at + 1], arguments=rest[at + 3 :])
            at += 2 if rest[at] in ("-o", "-O", "--rcfile", "--init-file") else 1
        if at < len(rest) and self.place.is_ours(rest[at]):
            return never_allowed(self.words(rest[at:], command))
        if at < len(rest) and rest[at].endswith("/activate"):
            return NOTHING
        text = self.fed_to(command) if at >= len(rest) or rest[at] in ("-", "/dev/stdin") else self.place.read(rest[at])
        found = never_allowed(self.shell(text)) if text else NOTHING
        is_file = at < len(rest) and rest[at] not in ("-", "/dev/stdin")
        return saved_script(rest[at], self.place, found) if self.locked and is_file else found

    def _plain(self, name: str, words: list[str], rest: list[str], command: Command) -> Finding:
        """Everything else: programs that only look, writers into kept files, code in an argument, scripts by path."""
        if self.locked and "/" in words[0]:
            return self._by_path(words, command)
        findings = [NOTHING]
        in_place = name in tables.EDITS_IN_PLACE and edits_in_place(name, rest)
        if name in ("cd", "pushd"):
            target = self.place.real(rest[0] if rest else "~")
            return (
                LOOKS
                if target == self.place.top() or self.place.inside(target, self.place.top()) or rest[:1] == ["-"]
                else NOTHING
            )
        if name == "find":
            findings += self._found(rest, command)
        if name in tables.READERS and not in_place:
            writes = tables.READERS[name] or ()
            is_bad = any(word.startswith(writes) for word in rest) if writes else False
            code = [word for at, word in enumerate(rest) if rest[at - 1 : at] in (["-e"], ["--expression"])]
            code = code or [word for word in rest if not word.startswith("-")][:1]
            is_code = name in tables.CODE_READERS and any(
                mark in w or w.lstrip("0123456789,$ ").startswith("e ") for w in code for mark in tables.CODE_WRITES
            )
            if is_bad or is_code:
                findings += [self._code(rest, command), judge_writer(name, " ".join(rest).split(), self.place)]
            return strongest(findings) if is_bad or is_code else LOOKS
        if name == "mkdir":
            return NOTHING
        if name == "tee":
            return judge_writer(name, rest, self.place, from_git=_comes_from_git(command))
        if (
            name == "tar"
            and command.source is not None
            and command.source.words[:1] == ["git"]
            and self.place.has_open_session()
        ):
            return lost_edits("git archive | tar")
        if (
            name == "patch"
            and any(word.startswith("-R") or word == "--reverse" for word in rest)
            and self.place.has_open_session()
        ):
            return lost_edits("patch -R")
        if not (name in tables.LOOKS_INSIDE and name == "tar" and not any("x" in w for w in rest[:1])):
            findings.append(judge_writer(name, rest, self.place))
        if name in tables.INTERPRETERS:
            findings.append(self._code(rest, command))
        if name in ("dd", "sponge") and _comes_from_git(command) and self.place.has_open_session():
            findings.append(lost_edits("git show"))
        findings.append(self._by_path(words, command))
        return strongest(findings)

    def _found(self, rest: list[str], command: Command) -> list[Finding]:
        """What find runs and removes, and where."""
        findings, at = [], 0
        while at < len(rest):
            if rest[at] in ("-exec", "-execdir", "-ok", "-okdir"):
                end = next((n for n in range(at, len(rest)) if rest[n] in (";", "+")), len(rest))
                inner = rest[at + 1 : end]
                findings.append(never_allowed(self.words(inner, command)))
                findings.append(self._over(inner[0].rpartition("/")[2] if inner else "", ["find", *rest[:at]], inner))
                at = end
            if rest[at : at + 1] == ["-delete"]:
                findings += [kept_file(word, self.place) for word in rest[:at] if not word.startswith("-")]
            at += 1
        return findings

    def _code(self, rest: list[str], command: Command) -> Finding:
        """Code of another language in an argument: what it gives to a shell, what it writes."""
        from debug_spyre.agent.guard import card

        return strongest(
            [card.judge_program(word, "this program", ["code"], command, self) for word in rest if len(word) > 3]
        )

    def _by_path(self, words: list[str], command: Command) -> Finding:
        """A script that is started by its path."""
        from debug_spyre.agent.guard import card

        text = self.place.read(words[0]) if "/" in words[0] else None
        if not text or "\0" in text:
            return NOTHING
        first = text.splitlines()[0]
        is_shell = not first.startswith("#!") or any(shell in first for shell in tables.SHELLS)
        found = never_allowed(self.shell(text)) if is_shell else NOTHING
        if "python" in first:
            found = card.judge_program(text, words[0], words, command, self)
        return saved_script(words[0], self.place, found) if self.locked else found


def _comes_from_git(command: Command) -> bool:
    """The command, or what it reads, shows a file of another commit."""
    at: Command | None = command
    while at is not None:
        if at.words[:1] == ["git"] and {"show", "cat-file", "archive"} & set(at.words):
            return True
        at = at.source
    return False
