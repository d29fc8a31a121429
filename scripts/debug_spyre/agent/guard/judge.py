"""Judges one tool call. Here: what wraps, reads or names other programs; the rest by `own`, `person` and `programs`."""

from __future__ import annotations

from debug_spyre.agent.guard import files, finding, light, tables
from debug_spyre.agent.guard.finding import LOOKS, NOTHING, Finding, ask, deny, strongest
from debug_spyre.agent.guard.light import name as name_of
from debug_spyre.agent.guard.line import MARKS, Judge
from debug_spyre.agent.guard.place import Place
from debug_spyre.agent.guard.shell import SETTING, Command, printed
from debug_spyre.agent.guard.shell_words import MAX_DEPTH, options


def decide(tool: str, given: dict[str, object], place: Place) -> Finding:
    """What the rules say to this tool call; None of them says nothing."""
    if tool in ("Bash", "Monitor"):
        background = bool(given.get("run_in_background")) or tool == "Monitor"
        return judge_shell(str(given.get("command") or ""), place, background=background)
    if tool in ("Edit", "Write", "MultiEdit", "NotebookEdit"):
        return files.judge_edit(str(given.get("file_path") or given.get("notebook_path") or ""), place)
    return NOTHING


def judge_shell(text: str, place: Place, *, background: bool = False) -> Finding:
    """A whole line: allowed where each part is harmless and at least one is ours."""
    found = CommandJudge(place, background=background).text(text)
    if len(place.calls) < 2:
        return found
    only = "one command that uses the card in a call, so that each shows its own outcome"
    return strongest([found, deny("H1", f"{only}. The first: {place.calls[0]}")])


class CommandJudge(Judge):
    """Judges the programs in shell text."""

    def program(self, words: list[str], command: Command) -> Finding:
        """A program and its arguments."""
        if not words:
            return LOOKS
        if self.depth > MAX_DEPTH:
            return ask("guard", "commands are nested too deep to be checked; write it simpler")
        if self.place.is_ours(words[0]):
            from debug_spyre.agent.guard.own import judge_own

            return judge_own(words, command, self)
        if " " in words[0] and not light.kind(self.place.real(words[0])):  # "$@" and "${an_array[@]}" as a command
            return self.shell(" ".join(words)).doubted()
        name = _family(name_of(words[0]))
        is_glob = name not in ("[", "[[") and any(c in words[0] for c in "*?[")
        if is_glob or (0 in command.dynamic and words == command.words):  # a name that only the shell knows
            if "".join(words[1:2]).startswith("-m"):
                return _by_name("python", words, command, self).doubted()
            is_marked = any(mark in words[0] for mark in MARKS) or any(map(files.is_test, words[1:]))
            if is_marked or {*words[1:2]} & (tables.MOVING | {"commit", "push", "stash", "reset", "restore", "clean"}):
                return ask("guard", f"the guard can't tell what {words[0][:60]} runs; write the command's name out")
            return _unknown(name, words, command, self).doubted()
        found = finding.persons_decision(name, options(words[1:], tables.VALUED.get(name, frozenset()))[-1][2])
        return found if found.stops else _by_name(name, words, command, self)


def _by_name(name: str, words: list[str], command: Command, judge: Judge) -> Finding:
    """By the function for this program; the modules of the bigger ones are imported only where a line needs them."""
    if name in tables.WRAPPERS:
        return _wrapped(name, words[1:], command, judge)
    if name in tables.READERS:
        return _reader(name, words[1:], command, judge)
    if name in tables.SHELLS or name in ("eval", "source", ".", "alias", "trap"):
        return _script(name, words[1:], command, judge)
    from debug_spyre.agent.guard import person, programs

    known = {
        **dict.fromkeys(tables.TESTERS, programs.judge_pytest),
        **dict.fromkeys(tables.CARD_PROGRAMS, programs.judge_card_program),
        **dict.fromkeys(tables.PASSING, programs.judge_task),
        **dict.fromkeys(("gh", "hub", "glab", "curl", "wget", "http", "xh"), person.judge_forge),
        "python": programs.judge_python,
        "uv": person.judge_uv,
        "git": person.judge_git,
    }
    found = known[name](words, command, judge) if name in known else NOTHING
    if name == "pip" and {*words[1:2]} & tables.PIP_LOOKS:
        return LOOKS
    if name == "coverage" and words[1:2] == ["run"]:
        return programs.judge_python(["python", "-m", *words], command, judge)
    is_known = name in known and name not in tables.PASSING and name not in tables.SENDERS
    return found if is_known or found.stops else _unknown(name, words, command, judge)


def _family(name: str) -> str:
    """Python for python3.12, ipython and pypy3; pip for pip3; other names as they are."""
    bare = name.rstrip("0123456789.t")
    return "python" if bare in ("python", "ipython", "pypy") else bare if bare == "pip" else name


def _wrapped(name: str, rest: list[str], command: Command, judge: Judge) -> Finding:
    """timeout, env, xargs and their like: what they run, without their own words."""
    findings = list[Finding]()
    valued, own_words = tables.WRAPPERS[name]
    given = ["-i" if word == "-" and name == "env" else word for word in rest]
    *read, (_, _, inner) = options(given, valued)
    for option, value, after in read:
        if name == "command" and option in ("-v", "-V"):
            return LOOKS
        if name == "env" and option in ("-S", "--split-string"):
            return judge.shell(" ".join([value, *after])).doubted()
        hides = name == "env" and option in ("-u", "--unset", "-i", "--ignore-environment")
        if hides and any(map(judge.place.is_ours, inner)):
            findings.append(finding.judge_name(value or "CLAUDECODE"))
    inner = inner[own_words:]
    while name == "env" and inner and "=" in inner[0]:
        variable, _, value = inner.pop(0).partition("=")
        command.assigns.append((variable, value))
        findings.append(judge.assigned(variable, value))
    if name == "xargs" and inner:
        source = command.source or Command()
        findings.append(_over(inner, source.words, judge))
        is_known = source.words[:1] in (["echo"], ["printf"])
        inner += printed(source.words).split() if is_known else ["$(...)"]
        command = Command(inner)
        command.dynamic = set() if is_known else {len(inner) - 1}
    found = judge.shell(inner[0]) if len(inner) == 1 and " " in inner[0] else judge.deeper().program(inner, command)
    if any(option in ("-P", "--max-procs") for option, *_ in read):  # several at once
        judge.place.calls += judge.place.calls
    return strongest([*findings, found])


def _over(inner: list[str], words: list[str], judge: Judge) -> Finding:
    """A program that gets its files from another command: do the words of that one name a kept file?"""
    name = name_of(inner[0])
    is_reader = name in tables.READERS and not files.edits_in_place(name, inner[1:])
    return LOOKS if is_reader or name == tables.NAME else files.judge_writer("xargs", words[1:], judge.place)


def _script(name: str, rest: list[str], command: Command, judge: Judge) -> Finding:
    """What gets shell text: by -c, from a file, from stdin, to run it later."""
    if name in ("eval", "trap", "alias"):
        texts = {"eval": [" ".join(rest)], "trap": rest[:1]}.get(name, [word.partition("=")[2] for word in rest])
        found = strongest([judge.shell(text) for text in texts])
        return found if name == "eval" else found.doubted()
    *read, (_, _, rest) = options(rest, frozenset(("-o", "-O", "--rcfile", "--init-file")))
    if rest and any("c" in option and not option.startswith("--") for option, *_ in read):
        return judge.shell(rest[0], rest[1:])
    if not rest or rest[0] in ("-", "/dev/stdin", "$(...)"):
        text = judge.fed_to(command)
        if text is None and command.source is not None:
            told = f"the guard can't tell what this {name} would run; keep the text in a file and run that"
            return ask("guard", told)
        return judge.shell(text, rest or None).doubted() if text else NOTHING
    if judge.place.is_ours(rest[0]):
        return judge.deeper().program(rest, command).doubted()
    return NOTHING if rest[0].endswith("/activate") else _by_path(rest, command, judge)


def _reader(name: str, rest: list[str], command: Command, judge: Judge) -> Finding:
    """A program that only looks, unless an option or its little program says otherwise."""
    if name in ("cd", "pushd"):
        target, top = judge.place.real(rest[0] if rest else "~"), judge.place.top()
        return LOOKS if target == top or target.startswith(top + "/") or rest[:1] == ["-"] else NOTHING
    if name in ("unset", "read", *SETTING):
        return strongest([finding.judge_name(word.partition("=")[0]) for word in rest])
    writes = tables.READERS[name] or ()
    code = [word for at, word in enumerate(rest) if rest[at - 1 : at] in (["-e"], ["--expression"])]
    code = code or [word for word in rest if not word.startswith("-")][:1]
    runs = [w for w in code if w.lstrip("0123456789,$ ").startswith("e ") or any(m in w for m in tables.CODE_WRITES)]
    is_code = name in tables.CODE_READERS and runs
    if not is_code and not files.edits_in_place(name, rest) and not any(word.startswith(writes) for word in rest):
        return LOOKS
    findings = [NOTHING, files.judge_writer(name, [*rest, *" ".join(rest).split()], judge.place)]
    findings += _found(rest, command, judge) if name == "find" else [_code(rest, command, judge)]
    findings += [judge.shell(w.partition("e ")[2]).doubted() for w in code if name == "sed" and "e " in w]
    return strongest(findings)


def _found(rest: list[str], command: Command, judge: Judge) -> list[Finding]:
    """What find runs and removes, and where."""
    findings = []
    file = next((rest[n + 1] for n, word in enumerate(rest[:-1]) if word == "-name"), "{}")
    path = light.join(rest[0], file)
    for at, word in enumerate(rest):
        end = next((n for n in range(at, len(rest)) if rest[n] in (";", "+")), len(rest))
        inner = [w.replace("{}", file if "*" in file else path) for w in rest[at + 1 : end]]
        if word == "-delete" or (inner and word in ("-exec", "-execdir", "-ok", "-okdir")):
            findings.append(_over(["rm"] if word == "-delete" else inner, ["find", *rest[:at], path], judge))
            findings += [judge.deeper().program(inner, command).doubted()] if word != "-delete" else []
    return findings


def _unknown(name: str, words: list[str], command: Command, judge: Judge) -> Finding:
    """Any other program: writers into kept files, code in an argument, scripts by path, other programs in its words."""
    rest = words[1:]
    if judge.locked and "/" in words[0]:
        return _by_path(words, command, judge)
    if name == "mkdir" or {*rest[:1]} & tables.SHOWING:
        return NOTHING
    if name == "tee":
        return files.judge_writer(name, rest, judge.place, from_git=command.from_git)
    is_look = name == "tar" and "x" not in (rest or [""])[0] and "--extract" not in rest
    how = ""
    if name == "tar" and not is_look and (command.from_git or judge.place.archived):
        how = "git archive | tar"
    elif name == "patch" and any(w == "--reverse" or (w[:1] == "-" and w[1:2] != "-" and "R" in w) for w in rest):
        how = "patch -R"
    elif name in tables.COPIES and command.from_git:
        kinds = [light.kind(judge.place.real(word.removeprefix("of="))) for word in rest]
        how = "git show" if light.FILE in kinds else ""
    if how and judge.place.has_open_session():
        return files.lost_edits(how)
    named = [*rest, "patched"] if name == "patch" else rest
    findings = [NOTHING if is_look else files.judge_writer(name, named, judge.place)]
    if name in tables.INTERPRETERS:
        findings.append(_code(rest, command, judge))
    elif name not in tables.TALKERS:
        findings += _named_in(name, rest, command, judge)
    findings += [_by_path(words, command, judge)] if "/" in words[0] else []
    return strongest([NOTHING, *findings])


def _named_in(name: str, rest: list[str], command: Command, judge: Judge) -> list[Finding]:
    """Programs that stand in the words of another one (sudo, tmux, docker, watch, vim, ...), and texts of shell."""
    found, inner, is_later = list[Finding](), judge.deeper(), name in tables.LATER
    inner.background = inner.background or is_later
    rest = rest[: rest.index(":::")] if ":::" in rest else rest[:60]  # of parallel
    for at, word in enumerate(rest):
        bare = (word.partition("=")[2] if word.startswith("-") and "=" in word else word).lstrip("!:@")
        tail = [*(["sh"] if bare.endswith(".sh") else []), bare, *rest[at + 1 :]]
        is_name = _family(name_of(tail[0])) in tables.COMMANDS | tables.INSTALLERS | {"python"}
        if " " in bare or "\n" in bare:
            found.append(inner.text(bare))
        elif is_name and rest[at - 1 : at] not in (["-t"], ["-s"], ["--name"], ["--tag"]):
            found.append(inner.program(tail, command))
        elif is_later and not word.startswith("-"):
            found.append(inner.text(judge.place.read(word) or ""))
    found += [inner.text(judge.fed_to(command) or "")] if is_later else []
    if name in tables.PARALLEL:
        judge.place.calls += judge.place.calls
    return [one.doubted() for one in found]


def _code(rest: list[str], command: Command, judge: Judge) -> Finding:
    """Code of another language in an argument: what it gives to a shell, what it writes."""
    from debug_spyre.agent.guard.programs import judge_program

    return strongest([judge_program(word, "", ["code"], command, judge) for word in rest if len(word) > 3])


def _by_path(words: list[str], command: Command, judge: Judge) -> Finding:
    """A script that is started by its path."""
    from debug_spyre.agent.guard.programs import judge_program

    text = judge.place.read(words[0])
    if not text or "\0" in text:
        return NOTHING
    first = text.splitlines()[0]
    is_shell = not first.startswith("#!") or any(shell in first for shell in tables.SHELLS)
    found = judge.shell(text, words).doubted() if is_shell else NOTHING
    if "python" in first:
        found = judge_program(text, words[0], words, command, judge)
    return files.saved_script(words[0], judge.place, found) if judge.locked else found
