"""The command: finds the verb, reads its words, and turns every exception into a message and an exit status."""

from __future__ import annotations

import difflib
import json
import re
import shlex
import sys
import tempfile
import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Any, NoReturn

from debug_spyre import __version__
from debug_spyre.host.clock import actor
from debug_spyre.host.streams import kept_streams, status_of
from debug_spyre.verbs import table
from debug_spyre.vocabulary.errors import DebugSpyreError, Exit, RefusedError, UsageError

INTERRUPTED = 130
PERSONS = (
    "--override",
    "--patch-approved",
    "--reap",
    "--build-approved",
    "--ship-approved",
)  # the guard's table has them too
NOTHING_RAN = frozenset({4, 5})  # as pytest says it
_WITH_ACTIONS = frozenset({"hypothesis", "cluster"})
_TESTS_FAIL = frozenset({"investigate", "triage", "shadow"})
_OWN_STATUS = frozenset({"run", "exec", "wait"})
_STATUS_WORDS: dict[int, str] = {
    Exit.NO: "no", Exit.BAD_INPUT: "bad input", Exit.USAGE: "wrong usage", Exit.ENVIRONMENT: "the environment is not ready",
    Exit.BUG: "a fault of debug-spyre", Exit.BUSY: "somebody else has the card", Exit.STALLED: "it stalled and was ended",
    Exit.STILL_HELD: "it ended, but a process still holds the card", Exit.INVALID: "the evidence does not count",
    Exit.RUNNING: "still running", Exit.TIMEOUT: "timed out",
}  # fmt: skip


# Words that people bring from other tools -> ours.
SAID_ELSEWHERE = {
    "start": "open", "new": "add", "create": "add", "log": "status", "logs": "status", "page": "status", "show": "status",
    "list": "status", "ls": "status", "report": "status", "test": "run", "pytest": "run", "check": "doctor", "setup": "install",
    "discard": "close blocked --next 'opened by mistake: there is nothing to debug'", "abandon": "close blocked --next TEXT", "undo": "revert", "restore": "revert", "rollback": "revert", "verify": "validate", "fix": "finish", "submit": "escalate",
    "issue": "escalate", "diff": "compare", "minimize": "repro", "reduce": "repro", "debug": "investigate", "clean": "prune",
    "delete": "drop", "remove": "drop", "rm": "drop", "confirm": "conclude", "verdict": "conclude", "done": "resolved",
    "fixed": "resolved", "solved": "resolved", "stuck": "blocked", "wontfix": "blocked", "ruled_out": "ruled-out", "rejected": "ruled-out",
}  # fmt: skip
_CHOICE = re.compile(r"invalid choice: '(?P<typed>[^']*)' \(choose from (?P<choices>.*)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<typed>--[\w-]+)")


def _guess(message: str, options: Sequence[str]) -> str:
    """What a word that argparse does not know was meant to be; empty where nothing is near."""
    if found := _CHOICE.search(message):
        choices = [word.strip(" '") for word in found["choices"].split(",")]
        said = SAID_ELSEWHERE.get(found["typed"].lower(), "")
        if said in choices:
            return said
        return next(iter(difflib.get_close_matches(found["typed"], choices, n=1)), "")
    if found := _UNKNOWN.search(message):
        return next(iter(difflib.get_close_matches(found["typed"], options, n=1, cutoff=0.7)), "")
    return ""


class _Parser(ArgumentParser):
    """Options are typed whole, also those of an action: an abbreviation would pass whoever looks for the option."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **{**more, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        options = [name for name in self._option_string_actions if name.startswith("--")]
        guess = _guess(message, options)
        where = self.prog.removeprefix("debug-spyre ")
        raise UsageError(
            f"{where}: {message}" + (f"; did you mean {guess}?" if guess else ""),
            next=f"{self.prog} {guess} --help" if guess and not guess.startswith("-") else f"{self.prog} --help",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit status: one table for all verbs, docs/exit-statuses.md."""
    words = list(sys.argv[1:] if argv is None else argv)
    with kept_streams() as (out, _):
        status = _status(words)
        _say_status(status, words)
        out.flush()
        return status_of(out, status)


def _status(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except SystemExit as end:  # help, and words that are off
        return end.code if isinstance(end.code, int) else int(Exit.YES if end.code is None else Exit.USAGE)
    except DebugSpyreError as error:
        _say(error, words)
        return int(error.status)
    except KeyboardInterrupt:
        print("debug-spyre: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return int(Exit.YES)  # of bytes that a verb hands on as they are
    except Exception as error:  # noqa: BLE001  the one funnel
        return _report_bug(error, words)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in {"-h", "--help", "help"}:
        print(help_text())
        return int(Exit.YES) if words else int(Exit.USAGE)
    if words[0] == "--version":
        print(f"debug-spyre {__version__}")
        return int(Exit.YES)
    name, rest = words[0], words[1:]
    if name not in table.BY_NAME:
        guess = SAID_ELSEWHERE.get(name) or next(iter(difflib.get_close_matches(name, table.BY_NAME, n=1)), "--help")
        raise UsageError(f"there is no verb {name!r}", next=f"debug-spyre {guess}")
    verb = table.load(name)
    parser = _Parser(
        prog=f"debug-spyre {name}",
        description=table.BY_NAME[name].summary + ".",
        epilog=f"example:\n  {verb.example}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    verb.add_arguments(parser)
    if verb.words and parser.usage is None:
        parser.usage = f"{parser.format_usage().removeprefix('usage: ').rstrip()} {verb.words}".replace("%", "%%")
    if verb.rest:
        arguments, unknown = parser.parse_known_args(rest)
        setattr(arguments, verb.rest, [*(getattr(arguments, verb.rest, None) or []), *unknown])
    else:
        arguments = parser.parse_args(rest)
    _refuse_an_agent(arguments, words)
    return verb.run(arguments)


def _refuse_an_agent(arguments: Namespace, words: list[str]) -> None:
    """Overrides, approvals and reaping are a person's, however the agent came to type them."""
    given = next((x for x in PERSONS if getattr(arguments, x.strip("-").replace("-", "_"), None)), None)
    if given and actor() == "agent":
        raise RefusedError(
            f"{given} is a person's decision, and the client says that an agent types this",
            next=f"a person types it in a terminal of their own: debug-spyre {shlex.join(words)}",
        )


def help_text() -> str:
    """The first screen."""
    lines = ["usage: debug-spyre VERB ...   (debug-spyre VERB --help: words, example, --json)", ""]
    lines += [f"  {row.name:11s} {row.summary}" for row in table.ROWS if row.first_screen]
    lines += ["", "more:"]
    lines += [f"  {row.name:11s} {row.summary}" for row in table.ROWS if not row.first_screen]
    lines += ["", "exit: 0 yes/done, 1 no, 2 bad input, 64 usage, 69 environment, 75 card busy, 79 still running,"]
    lines += [
        "      74 done, but the answer could not be written, 76 stalled, 77 card still held, 78 evidence invalid, 124 timed out; run/exec/lock: the command's own"
    ]
    return "\n".join(lines)


def _say_status(status: int, words: Sequence[str]) -> None:
    """The last line, on stderr: a pipe behind the command hides its exit status, and takes stdout only.

    `lock` hands on its command's output, and stays silent.
    """
    if status == 0 or not words or words[0] == "lock" or "--json" in words or sys.stderr.isatty():
        return
    if status == Exit.NO and words[0] in _TESTS_FAIL:
        print("status 1: tests fail", file=sys.stderr)
        return
    if status in NOTHING_RAN and words[0] in _TESTS_FAIL:
        print(f"status {status}: no test ran", file=sys.stderr)
        return
    own = words[0] in _OWN_STATUS and status not in _STATUS_WORDS.keys() - {1, 2}
    said = "the command failed" if own else _STATUS_WORDS.get(status, "see --help")
    print(f"status {status}: {said}", file=sys.stderr)


def _wants_json(words: Sequence[str]) -> bool:
    """--json before any `--`: behind it stand another command's words."""
    own = list(words)[: list(words).index("--")] if "--" in words else words
    return "--json" in own


def _say(error: DebugSpyreError, words: Sequence[str]) -> None:
    from debug_spyre.vocabulary.safe_text import clean, spelt_out

    if _wants_json(words):
        told = {"what": error.what, "details": list(error.details), "next": error.next, "status": int(error.status)}
        print(spelt_out(json.dumps({"schema": 1, "error": told}, ensure_ascii=False)))
    print(clean(f"debug-spyre: {error.what}"), file=sys.stderr)
    for line in error.details:
        print(clean(line), file=sys.stderr)
    if error.next:
        print(clean(f"  next: {_repeated(error.next, words)}"), file=sys.stderr)


def _repeated(following: str, words: Sequence[str]) -> str:
    """`debug-spyre VERB MORE` stands for this very call with MORE behind its verb (and its action)."""
    head, _, more = following.partition("debug-spyre VERB ")
    if head or not more or not words:
        return following
    at = 2 if words[0] in _WITH_ACTIONS and len(words) > 1 else 1
    rest = [word for n, word in enumerate(words) if word != "--session" and words[n - 1] != "--session"]
    return f"debug-spyre {shlex.join(rest[:at])} {more}" + (f" {shlex.join(rest[at:])}" if rest[at:] else "")


def _report_bug(error: Exception, words: list[str]) -> int:
    where = "(the traceback could not be saved)"
    text = f"debug-spyre {__version__} {words}\n" + "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(prefix="debug-spyre-bug-", suffix=".txt", delete=False) as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))  # a fault may quote any bytes
            where = stream.name
    except OSError:
        sys.stderr.write(text)
    print(f"debug-spyre: a fault of ours: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"  next: send {where} to the maintainers", file=sys.stderr)
    return int(Exit.BUG)
