"""Our own command: allowed, but for a person's decisions and what exec and lock would run; and what no call of pytest may hold."""

from __future__ import annotations

from debug_spyre.agent.guard import finding, tables
from debug_spyre.agent.guard.finding import ALLOW, HARMLESS, NOTHING, OURS, Finding, ask, deny
from debug_spyre.agent.guard.line import Judge
from debug_spyre.agent.guard.shell import Command
from debug_spyre.agent.guard.shell_words import join, options
from debug_spyre.agent.guard.tables import NAME

REFUSED = {
    "H1": "xdist starts several processes on one card; run serially: {line}",
    "R3": f"-k can't take ( = , or brackets ({{value!r}}): pass full node ids in 'single quotes', as {NAME} run --collect-only -q FILE lists them",
    "R4": "-W {value} catches unrelated warnings too; the exact filter of the installed torch-spyre is: {line}",
}


def selection(arguments: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The arguments of pytest without what our command adds itself or refuses; (rule, value) of what it refuses."""
    kept: list[str] = []
    broken = []
    while arguments:
        name, value, left = options(arguments, tables.PYTEST_VALUED)[0]
        option, left = tables.PYTEST_VALUED.get(name, ""), left if name else arguments[1:]
        rule = _broken_rule(option, value)
        broken += [(rule, value)] if rule else []
        if rule == "R4" and "--fallback-as-error" not in kept:
            kept.append("--fallback-as-error")
        elif not rule and option not in ("-n", "--dist"):
            kept += arguments[: len(arguments) - len(left)]
        arguments = left
    at = next((n for n, word in enumerate(kept) if kept[n : n + 2] == ["-m", "not upstream"]), len(kept))
    return kept[:at] + kept[at + 2 :], broken


def _broken_rule(option: str, value: str) -> str:
    if option == "-k" and any(c in value for c in "(=,[)]"):
        return "R3"
    action, _, category, *_ = [*value.replace(" ", "").split(":"), "", ""]
    if option == "-W" and action == "error" and category in ("UserWarning", "Warning", "builtins.UserWarning"):
        return "R4"
    is_count = option == "-n" and value != "0" and (value.isdigit() or value in ("auto", "logical"))
    return "H1" if is_count or option == "--tx" or (option == "--dist" and value != "no") else ""


def judge_selection(arguments: list[str]) -> Finding:
    """What our own command refuses too."""
    kept, broken = selection(arguments)
    line = f"{NAME} run {join(kept)}"
    return next((deny(rule, REFUSED[rule].format(line=line, value=value)) for rule, value in broken), NOTHING)


def judge_own(words: list[str], command: Command, judge: Judge) -> Finding:
    """One call of debug-spyre."""
    verb, rest = "".join(words[1:2]), words[2:]
    inner = options(rest, tables.INNER_VALUED)[-1][2] if verb in ("exec", "lock") else []
    own = rest[: len(rest) - len(inner)]
    judged = _persons_decision(verb, own, command)
    if inner and judged is OURS:
        judged = _judge_inner(inner, command, judge)
    if judged.verdict != ALLOW:
        return judged
    addopts = next((value for name, value in command.assigns if name == "PYTEST_ADDOPTS"), "")
    for arguments in (rest, addopts.split()) if verb in tables.PYTEST_VERBS else ():
        bad = judge_selection(arguments)
        if bad.stops:
            return bad
    is_idle = {"--help", "-h", *tables.NO_CARD_OPTIONS.get(verb, ())} & {*rest} or (verb == "lock" and not inner)
    if (verb in tables.CARD_VERBS and not is_idle) or tables.CARD_OPTIONS.get(verb) in rest:
        judge.place.calls.append(join(words))
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
        is_value = at > 0 and own[at - 1].startswith("-")
        if word.startswith("$") and verb in tables.ENDING_VERBS and command.dynamic and not is_value:
            return deny("gate", f"{word} may hold a person's decision: write out what {verb} gets")
        variable = "".join(own[at + 1 : at + 2]) if word == "--env" else word.removeprefix("--env=")
        if word.startswith("--env") and finding.judge_name(variable.partition("=")[0]).stops:
            return finding.judge_name(variable.partition("=")[0])
    found = finding.persons_decision(NAME, [verb, *own])
    return found if found.stops else OURS


def _in_the_background(verb: str, rest: list[str]) -> Finding:
    follows = verb in tables.FOLLOWING_VERBS
    limit = ["--foreground", "570"] if follows and "--foreground" not in rest else []
    told = "the job outlives the shell by itself. In the foreground with a shell timeout of 600000 ms"
    later = f"; at status 79: {NAME} wait" if follows else ""
    return deny("H1", f"no background start: {told}: {join([NAME, verb, *limit, *rest])}{later}")


def _judge_inner(inner: list[str], command: Command, judge: Judge) -> Finding:
    """The command inside exec and lock: judged under the lock, where saved scripts and tests are allowed."""
    bare = Command(list(inner))
    bare.stdin, bare.source, bare.redirects = command.stdin, command.source, command.redirects
    under = judge.deeper()
    under.locked = True
    found = under.program(inner, bare)
    if found.verdict in (ALLOW, HARMLESS):
        return OURS
    if found.stops and not found.card:
        return found
    if found.card and inner[0].rpartition("/")[2] in tables.CARD_PROGRAMS:
        return NOTHING
    told = f"{join(inner)[:120]} is neither a saved script nor a test; a person confirms it"
    return ask("P2", f"{told}. A script: {NAME} save NAME.py < FILE, then {NAME} exec -- python PATH")
