"""What the guard thinks of a command, and the base of the judge that thinks it."""

from __future__ import annotations

from debug_spyre.agent.guard import tables
from debug_spyre.agent.guard.place import Place
from debug_spyre.agent.guard.shell import Command

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
    """What the rooms of the guard ask each other; `judge.py` fills it in."""

    def __init__(
        self,
        place: Place,
        *,
        background: bool = False,
        depth: int = 0,
        calls: list[str] | None = None,
        locked: bool = False,
    ) -> None:
        self.place = place
        self.background = background
        self.depth = depth
        self.locked = locked  # under exec and lock: saved scripts and tests are allowed
        self.calls: list[str] = [] if calls is None else calls  # our calls so far that use the card

    def under_the_lock(self) -> Judge:
        """The same judge for what exec and lock run."""
        return self.__class__(self.place, depth=self.depth, locked=True)

    def vouched(self, finding: Finding) -> Finding:
        """The finding of what something like `uv run` runs: allowed only under the lock."""
        return finding if self.locked else never_allowed(finding)

    def shell(self, text: str, *, background: bool | None = None) -> Finding:
        """A text of shell, one level deeper."""
        raise NotImplementedError

    def words(self, words: list[str], command: Command) -> Finding:
        """What these words run, one level deeper."""
        raise NotImplementedError

    def fed_to(self, command: Command) -> str | None:
        """The text on the command's stdin: a here-document, an echo before the pipe, a file."""
        if command.stdin is not None:
            return command.stdin
        for operator, target in command.redirects:
            if operator == "<":
                return self.place.read(target)
        source = command.source
        if source is None or not source.words:
            return None
        name = source.words[0].rpartition("/")[2]
        if name in ("echo", "printf"):
            return said_by(source)
        if name in ("cat", "tee", "tac"):
            return source.stdin if source.stdin is not None else self.place.read(source.words[-1])
        return self.fed_to(source) if name in ("sed", "tr", "head", "tail", "base64") else None


def said_by(command: Command) -> str:
    """What echo or printf prints."""
    return " ".join(w for w in command.words[1:] if w not in ("-n", "-e", "-ne", "--")).replace("\\n", "\n")
