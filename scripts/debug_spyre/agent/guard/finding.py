"""The guard's verdict on a command, and the questions that its parts ask each other."""

from __future__ import annotations

from debug_spyre.agent.guard import tables
from debug_spyre.agent.guard.place import Place
from debug_spyre.agent.guard.shell import Command, printed

HARMLESS, ALLOW, UNKNOWN, ASK, DENY = "harmless", "allow", "unknown", "ask", "deny"
STRENGTH = {HARMLESS: 0, ALLOW: 1, UNKNOWN: 2, ASK: 3, DENY: 4}


class Finding:
    """One judgement: verdict, the rule's id, what to do instead. `card`: refused only because it needs the card's lock."""

    __slots__ = ("card", "reason", "rule", "verdict")

    def __init__(self, verdict: str, rule: str = "", reason: str = "", *, card: bool = False) -> None:
        self.verdict = verdict
        self.rule = rule
        self.reason = reason
        self.card = card

    @property
    def stops(self) -> bool:
        """It refuses or asks."""
        return STRENGTH[self.verdict] > STRENGTH[UNKNOWN]


NOTHING = Finding(UNKNOWN)
LOOKS = Finding(HARMLESS)
EXPERIMENT = Finding(ALLOW, "P2", "a saved script or a test under the lock")


def deny(rule: str, reason: str, *, card: bool = False) -> Finding:
    """Refused, with the way out in the reason."""
    return Finding(DENY, rule, reason, card=card)


def ask(rule: str, reason: str) -> Finding:
    """A person confirms it."""
    return Finding(ASK, rule, reason)


def strongest(findings: list[Finding]) -> Finding:
    """Deny before ask before unknown before allow; the first of the strongest."""
    best = LOOKS
    for finding in findings:
        if STRENGTH[finding.verdict] > STRENGTH[best.verdict]:
            best = finding
    return best


def never_allowed(finding: Finding) -> Finding:
    """The same judgement where we can't vouch for what surrounds the command."""
    return finding if finding.stops else NOTHING


def judge_name(name: str) -> Finding:
    """A variable that would leave the shared lock, or hide who acts."""
    if name.startswith(tables.LOCK_ENV):
        return deny("H1", f"{name} for one command would leave the shared lock; drop it")
    if name in tables.AUTHOR_ENV:
        return deny("gate", f"{name} tells the log who acts; leave it as it is")
    return NOTHING


class Judge:
    """Judges commands at one depth; `judge.py` fills in how."""

    def __init__(
        self, place: Place, *, background: bool = False, depth: int = 0, locked: bool = False, calls: list[str]
    ) -> None:
        self.place = place
        self.background = background
        self.depth = depth
        self.locked = locked  # under exec and lock: saved scripts and tests are allowed
        self.calls = calls  # our calls so far that use the card

    def vouched(self, finding: Finding) -> Finding:
        """The finding of what something like `uv run` runs: allowed only under the lock."""
        return finding if self.locked else never_allowed(finding)

    def shell(self, text: str, *, background: bool | None = None, arguments: list[str] | None = None) -> Finding:
        """A text of shell, one level deeper; `arguments` are its $0, $1, ..."""
        raise NotImplementedError

    def words(self, words: list[str], command: Command, *, locked: bool | None = None) -> Finding:
        """What these words run, one level deeper."""
        raise NotImplementedError

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
        name, rest = command.words[0].rpartition("/")[2], command.words[1:]
        if name in ("echo", "printf"):
            return printed(command.words)
        if name not in tables.FILTERS:
            return None
        text = self.fed_to(command)
        text = self.place.read(rest[-1]) if text is None and rest else text
        if name == "base64" and text and any(word.startswith(("-d", "--d", "-D")) for word in rest):
            from binascii import a2b_base64

            try:
                return a2b_base64(text).decode("utf-8", "replace")
            except ValueError:
                return None
        return text[::-1] if name == "rev" and text else None if name == "tr" else text
