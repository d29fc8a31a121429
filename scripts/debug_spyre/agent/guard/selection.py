"""H1, R3, R4: what may stand in the arguments of pytest."""

from __future__ import annotations

from debug_spyre.agent.guard.finding import NOTHING, Finding, deny
from debug_spyre.agent.guard.shell_words import join
from debug_spyre.agent.guard.tables import NAME

RUNS_NOTHING = ("--collect-only", "--co", "--version", "-V", "--help", "-h", "--fixtures", "--markers")


def value_of(arguments: list[str], at: int, options: tuple[str, ...], glued: str) -> str:
    """The value of one of these options at this place: beside it, after `=`, or glued to its short form."""
    word = arguments[at]
    if word in options:
        return arguments[at + 1] if at + 1 < len(arguments) else ""
    option, equals, value = word.partition("=")
    if equals and option in options:
        return value
    return word[len(glued) :] if word.startswith(glued) and not word.startswith("--") else ""


def is_plain(expression: str) -> bool:
    """A -k expression without the characters that pytest can't take."""
    return not any(c in expression for c in "(=,[)]")


def is_broad_filter(text: str) -> bool:
    """A filter that makes an error of every user warning, or of every warning of a wide class."""
    action, _, rest = text.replace(" ", "").partition(":")
    category = [*rest.split(":"), "", ""][1]
    return action == "error" and category in ("UserWarning", "Warning", "builtins.UserWarning")


def judge_selection(arguments: list[str]) -> Finding:
    """R3, R4 and xdist: arguments that our own command refuses too."""
    for at in range(len(arguments)):
        expression = value_of(arguments, at, ("-k", "--keyword"), "-k")
        if expression and not is_plain(expression):
            return deny(
                "R3",
                f"-k can't take ( = , or brackets ({expression!r}): list full node ids with {NAME} run --collect-only -q FILE and pass the ones you mean, in 'single quotes'",
            )
        given = value_of(arguments, at, ("-W", "--pythonwarnings"), "-W")
        if given and is_broad_filter(given):
            kept = join([w for w in clean(arguments) if w != "--fallback-as-error"])
            return deny(
                "R4",
                f"-W {given} catches unrelated warnings too; the exact filter of the installed torch-spyre is: {NAME} run --fallback-as-error {kept}",
            )
    return judge_parallel(arguments)


def judge_parallel(arguments: list[str]) -> Finding:
    """H1: no xdist."""
    for at, word in enumerate(arguments):
        count = "" if word.startswith("-no") else value_of(arguments, at, ("-n", "--numprocesses"), "-n")
        spread = value_of(arguments, at, ("--dist",), "--dist=") or ("x" if word.startswith("--tx") else "")
        if (count and count != "0" and (count.isdigit() or count in ("auto", "logical"))) or spread not in ("", "no"):
            return deny(
                "H1", f"xdist starts several processes on one card; run serially: {NAME} run {join(clean(arguments))}"
            )
    return NOTHING


def clean(arguments: list[str]) -> list[str]:
    """The arguments of pytest without what our command adds itself or refuses."""
    kept, at = [], 0
    while at < len(arguments):
        word, following = arguments[at], arguments[at + 1 : at + 2]
        if (word == "-m" and following == ["not upstream"]) or word in ("-n", "--numprocesses", "--dist", "--tx"):
            at += 2
        elif (word.startswith("-n") and not word.startswith("-no")) or word.startswith(("--numprocesses=", "--dist=")):
            at += 1
        elif word in ("-W", "--pythonwarnings") and following and is_broad_filter(following[0]):
            kept.append("--fallback-as-error")
            at += 2
        elif word in ("-k", "--keyword") and following and not is_plain(following[0]):
            at += 2
        else:
            kept.append(word)
            at += 1
    return kept
