"""H1, R3, R4: what may not stand in the arguments of pytest, and the arguments without it."""

from __future__ import annotations

from debug_spyre.agent.guard.finding import NOTHING, Finding, deny
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
