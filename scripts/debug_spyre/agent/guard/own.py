"""Our own command: allowed, but for a person's decisions and what exec and lock would run; and what no call of pytest may hold."""

from __future__ import annotations

from debug_spyre.agent.guard import tables
from debug_spyre.agent.guard.finding import ALLOW, HARMLESS, NOTHING, Finding, Judge, ask, deny, judge_name
from debug_spyre.agent.guard.shell import Command
from debug_spyre.agent.guard.shell_words import join
from debug_spyre.agent.guard.tables import NAME

RUNS_NOTHING = ("--collect-only", "--co", "--version", "-V", "--help", "-h", "--fixtures", "--markers")
VALUED = {"-k": "-k", "--keyword": "-k", "-W": "-W", "--pythonwarnings": "-W", "-n": "-n", "--numprocesses": "-n", "--dist": "--dist", "--tx": "--tx"}  # fmt: skip


def options(arguments: list[str]) -> list[tuple[str, str, list[str]]]:
    """(option, value, the words as they stand) of those that matter here; other words with an empty option."""
    found, at = [], 0
    while at < len(arguments):
        word = arguments[at]
        option, equals, value = word.partition("=")
        width = 1
        if word in VALUED and at + 1 < len(arguments):
            value, width = arguments[at + 1], 2
        elif not equals and word[:2] in ("-k", "-W", "-n") and not word.startswith("-no"):
            option, value = word[:2], word[2:]
        found.append((VALUED.get(option, ""), value, arguments[at : at + width]))
        at += width
    return found


def _is_bad(option: str, value: str) -> str:
    """The rule that this option breaks."""
    if option == "-k" and any(c in value for c in "(=,[)]"):
        return "R3"
    action, _, rest = value.replace(" ", "").partition(":")
    if (
        option == "-W"
        and action == "error"
        and [*rest.split(":"), ""][1:2][0] in ("UserWarning", "Warning", "builtins.UserWarning")
    ):
        return "R4"
    is_count = option == "-n" and value != "0" and (value.isdigit() or value in ("auto", "logical"))
    return "H1" if is_count or option == "--tx" or (option == "--dist" and value != "no") else ""


def judge_selection(arguments: list[str], *, only_parallel: bool = False) -> Finding:
    """What our own command refuses too."""
    line = join(clean(arguments))
    for option, value, _ in options(arguments):
        rule = _is_bad(option, value)
        if rule == "H1":
            return deny(rule, f"xdist starts several processes on one card; run serially: {NAME} run {line}")
        if rule == "R3" and not only_parallel:
            told = f"list full node ids with {NAME} run --collect-only -q FILE and pass the ones you mean, in 'single quotes'"
            return deny(rule, f"-k can't take ( = , or brackets ({value!r}): {told}")
        if rule == "R4" and not only_parallel:
            told = f"the exact filter of the installed torch-spyre is: {NAME} run {line}"
            return deny(rule, f"-W {value} catches unrelated warnings too; {told}")
    return NOTHING


def clean(arguments: list[str]) -> list[str]:
    """The arguments of pytest without what our command adds itself or refuses."""
    kept: list[str] = []
    for option, value, words in options([w for w in arguments if w != "--fallback-as-error"]):
        rule = _is_bad(option, value)
        if rule == "R4":
            kept.append("--fallback-as-error")
        elif not rule and option not in ("-n", "--dist"):
            kept += words
    at = next((n for n, word in enumerate(kept) if kept[n : n + 2] == ["-m", "not upstream"]), len(kept))
    return kept[:at] + kept[at + 2 :]


OURS = Finding(ALLOW, "P2", "debug-spyre itself")


def judge_own(words: list[str], command: Command, judge: Judge) -> Finding:
    """One call of debug-spyre."""
    verb, rest = (words[1], words[2:]) if len(words) > 1 else ("", [])
    own, inner = split_inner(rest) if verb in ("exec", "lock") else (rest, [])
    persons = _persons_decision(verb, own, command)
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


def _persons_decision(verb: str, own: list[str], command: Command) -> Finding:
    """Overrides, approvals and reaping are refused in every spelling, by any beginning of the option too."""
    for at, word in enumerate(own):
        option = word.partition("=")[0].partition(" ")[0]
        for known, rule in tables.PERSONS_OPTIONS.items():
            if option == known or (len(option) > 4 and known.startswith(option)):
                return deny(rule, f"{known} is a person's decision: a person types it in a terminal of their own")
        is_free = (
            verb in tables.ENDING_VERBS and command.dynamic and not own[at - 1 : at or None][-1:][0].startswith("-")
        )
        if is_free and word.startswith("$"):
            return deny("gate", f"{word} may hold a person's decision: write out what {verb} gets")
    if verb in ("install", "prune") and not set(own) & tables.LOOKING_OPTIONS:
        what = "writes into the client's folder" if verb == "install" else "removes old sessions with their evidence"
        return ask("P1", f"{verb} {what}; a person confirms it")
    return NOTHING


def _in_the_background(verb: str, rest: list[str]) -> Finding:
    follows = verb in tables.FOLLOWING_VERBS
    line = join([NAME, verb, *(["--foreground", "570"] if follows and "--foreground" not in rest else []), *rest])
    later = f"; at status 79: {NAME} wait" if follows else ""
    told = (
        "no background start: the job outlives the shell by itself. In the foreground with a shell timeout of 600000 ms"
    )
    return deny("H1", f"{told}: {line}{later}")


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
    """The command inside exec and lock: judged under the lock, where saved scripts and tests are allowed."""
    bare = Command(list(inner))
    bare.stdin, bare.source, bare.redirects = command.stdin, command.source, command.redirects
    found = judge.words(inner, bare, locked=True)
    if found.verdict in (ALLOW, HARMLESS):
        return OURS
    if found.stops and not found.card:
        return found
    if found.card and inner[0].rpartition("/")[2] in ("vllm", *tables.LAUNCHERS):
        return NOTHING
    told = f"{join(inner)[:120]} is neither a saved script nor a test; a person confirms it"
    return ask("P2", f"{told}. A script: {NAME} save NAME.py < FILE, then {NAME} exec -- python PATH")
