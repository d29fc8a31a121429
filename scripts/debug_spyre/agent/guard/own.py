"""Our own command: allowed, but for a person's decisions and for what exec and lock would run."""

from __future__ import annotations

from debug_spyre.agent.guard import paths, tables
from debug_spyre.agent.guard.card import python_target
from debug_spyre.agent.guard.finding import ALLOW, HARMLESS, NOTHING, Finding, Judge, ask, deny
from debug_spyre.agent.guard.selection import judge_selection
from debug_spyre.agent.guard.shell import Command, Reader
from debug_spyre.agent.guard.shell_words import ShellError, join, quote
from debug_spyre.agent.guard.tables import NAME

OURS = Finding(ALLOW, "P2", "debug-spyre itself")


def judge_own(words: list[str], command: Command, judge: Judge) -> Finding:
    """One call of debug-spyre."""
    verb, rest = (words[1], words[2:]) if len(words) > 1 else ("", [])
    own, inner = split_inner(rest) if verb in ("exec", "lock") else (rest, [])
    persons = _persons_decision(verb, own)
    if persons.stops:
        return persons
    for at, word in enumerate(own):
        name = (own[at + 1] if at + 1 < len(own) else "") if word == "--env" else word.partition("=")[2]
        if word.startswith("--env") and judge_name(name.partition("=")[0]).stops:
            return judge_name(name.partition("=")[0])
    judged = _judge_inner(inner, command, judge) if inner else OURS
    if judged.verdict != ALLOW:
        return judged
    if verb in tables.PYTEST_VERBS:
        addopts = next((value for name, value in command.assigns if name == "PYTEST_ADDOPTS"), "")
        for arguments in (rest, addopts.split()):
            bad = judge_selection(arguments)
            if bad.stops:
                return bad
    if uses_card(verb, rest, inner):
        judge.calls.append(join(words))
        if judge.background or command.background:
            return _in_the_background(verb, rest)
    hidden = command.dynamic and verb in tables.PERSONS_VERBS and any("$" in word[:2] for word in own)
    return NOTHING if hidden else OURS


def _persons_decision(verb: str, own: list[str]) -> Finding:
    for word in own:
        option = word.partition("=")[0].partition(" ")[0]
        for known, rule in tables.PERSONS_OPTIONS.items():
            if option == known or (len(option) > 4 and known.startswith(option)):
                return ask(rule, f"{known} is a person's decision")
    if verb in ("install", "prune") and not set(own) & tables.LOOKING_OPTIONS:
        what = "writes into the client's folder" if verb == "install" else "removes old sessions with their evidence"
        return ask("P1", f"{verb} {what}; a person confirms it")
    return NOTHING


def judge_name(name: str) -> Finding:
    """A variable that would leave the shared lock, or hide who acts."""
    if name.startswith(tables.LOCK_ENV):
        return deny("H1", f"{name} for one command would leave the shared lock; drop it")
    if name in tables.AUTHOR_ENV:
        return deny("gate", f"{name} tells the log who acts; leave it as it is")
    return NOTHING


def _in_the_background(verb: str, rest: list[str]) -> Finding:
    follows = verb in tables.FOLLOWING_VERBS
    line = join([NAME, verb, *(["--foreground", "570"] if follows and "--foreground" not in rest else []), *rest])
    later = f"; at status 79: {NAME} wait" if follows else ""
    return deny(
        "H1",
        f"no background start: the job outlives the shell by itself. In the foreground with a shell timeout of 600000 ms: {line}{later}",
    )


def uses_card(verb: str, rest: list[str], inner: list[str]) -> bool:
    """The call uses the card."""
    if verb == "lock":
        return bool(inner)
    if set(rest) & set(tables.NO_CARD_OPTIONS.get(verb, ())) or "--help" in rest or "-h" in rest:
        return False
    return verb in tables.CARD_VERBS or tables.CARD_OPTIONS.get(verb, "-") in rest


def split_inner(rest: list[str]) -> tuple[list[str], list[str]]:
    """Our flags, and the command after `--` (or, where that is missing, from the first word that is none of ours)."""
    at = 0
    while at < len(rest) and rest[at].startswith("-") and rest[at] != "--":
        at += 2 if rest[at] in tables.INNER_VALUED else 1
    return rest[:at], rest[at + 1 :] if rest[at : at + 1] == ["--"] else rest[at:]


def _judge_inner(inner: list[str], command: Command, judge: Judge) -> Finding:
    """The command inside exec and lock: like any other, but the lock is held. Allowed are saved scripts and tests."""
    bare = Command(list(inner))
    bare.stdin, bare.source, bare.redirects = command.stdin, command.source, command.redirects
    inside = judge.__class__(judge.place, depth=judge.depth, calls=[])
    found = inside.words(inner, bare)
    if found.stops and not found.card:
        return found
    arguments = inner[inner.index("pytest") + 1 :] if "pytest" in inner else []
    bad = judge_selection(arguments)
    if bad.stops:
        return bad
    if found.verdict in (ALLOW, HARMLESS):
        return OURS
    script = _script(inner, judge)
    if script is None:
        if inner[0].rpartition("/")[2] in ("vllm", *tables.LAUNCHERS) and found.card:
            return NOTHING
        return ask(
            "P2",
            f"{join(inner)[:120]} is neither a saved script nor a test; a person confirms it. A script: {NAME} save NAME.py < FILE, then {NAME} exec -- python PATH",
        )
    return _judge_script(script, judge) if script else OURS


def _judge_script(path: str, judge: Judge) -> Finding:
    """A script by path: it lies in the session's folder or in the checkout, and destroys nothing."""
    place = judge.place
    is_kept = place.inside(path, place.logs()) or place.inside(path, place.top())
    if not is_kept and place.has_open_session():
        told = f"{NAME} save {quote(paths.name(path))} < {quote(path)}"
        return deny(
            "G2",
            f"artifacts live in the session's folder, not in {paths.parent(path)}: {told}, then exec the path that it prints",
        )
    text = place.read(path)
    if text is None and not path.startswith("$"):
        return OURS if is_kept else NOTHING
    mark = next((mark for mark in tables.DESTRUCTIVE_CODE if mark in (text or "")), "")
    if mark or path in place.written:
        return ask(
            "P2",
            f"{path} holds {mark}; a person confirms it"
            if mark
            else f"{path} is written in the same call; a person confirms it, or save it first: {NAME} save NAME < FILE",
        )
    return OURS if is_kept else NOTHING


def _script(inner: list[str], judge: Judge) -> str | None:
    """The script that these words run, "" for a test or for nothing but such commands, None for anything else."""
    words = list(inner)
    while words and words[0].rpartition("/")[2] in (*tables.HARMLESS_WRAPPERS, "uv") and len(words) > 1:
        name = words.pop(0)
        while words and (
            words[0].startswith("-")
            or "=" in words[0]
            or words[0][:1].isdigit()
            or (name == "uv" and words[0] == "run")
        ):
            option = words.pop(0)
            if option in tables.UV_VALUED or option in ("-k", "-s", "-n") or (name == "uv" and option == "-m"):
                words[:1] = ["python", "-m", *words[:1]] if option == "-m" else []
                if option == "-m":
                    break
    if not words:
        return None
    name = words[0].rpartition("/")[2]
    if name in tables.TESTERS:
        return ""
    if name.startswith("python"):
        kind, value, _ = python_target(words)
        return value if kind == "script" else "" if kind == "-m" and value == "pytest" else None
    if name in tables.SHELLS:
        return _in_shell(words[1:], judge)
    is_path = "/" in words[0] or name.endswith(".py")
    return (
        words[0]
        if is_path and (judge.place.read(words[0]) or "#!").startswith(("#!", "import", "from", '"""'))
        else None
    )


def _in_shell(rest: list[str], judge: Judge) -> str | None:
    """`bash script.sh`, or `bash -c` with nothing but scripts, tests and commands that look."""
    if rest and not rest[0].startswith("-"):
        return rest[0]
    if len(rest) < 2 or not rest[0].lstrip("-").endswith("c") or rest[0].startswith("--"):
        return None
    try:
        commands = Reader(rest[1]).read()
    except ShellError:
        return None
    here = judge.place.cwd
    try:
        return "" if all(_is_experiment(command, judge) for command in commands) else None
    finally:
        judge.place.cwd = here


def _is_experiment(command: Command, judge: Judge) -> bool:
    """A saved script, a test, or a command that only looks; a change of the folder counts for the next."""
    if command.dynamic or command.assigns or any(op.startswith(">") for op, _ in command.redirects):
        return False
    if judge.words(list(command.words), command).verdict == HARMLESS:
        if command.words[0] == "cd" and len(command.words) > 1:
            judge.place.cwd = paths.join(judge.place.cwd, command.words[1])
        return True
    script = _script(command.words, judge)
    return script == "" or (script is not None and _judge_script(script, judge).verdict == ALLOW)
