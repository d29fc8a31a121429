"""The guard's verdict on a command, and what the words alone tell."""

from __future__ import annotations

from debug_spyre.agent.guard import tables

HARMLESS, ALLOW, UNKNOWN, ASK, DENY = STRENGTHS = ("harmless", "allow", "unknown", "ask", "deny")


class Finding:
    """One judgement: verdict, the rule's id, what to do instead. `card`: refused only because it needs the card's lock."""

    def __init__(self, verdict: str, rule: str = "", reason: str = "", *, card: bool = False) -> None:
        self.verdict, self.rule, self.reason, self.card = verdict, rule, reason, card

    @property
    def stops(self) -> bool:
        """It refuses or asks."""
        return self.verdict in (ASK, DENY)

    def doubted(self) -> Finding:
        """The same judgement where we can't vouch for what surrounds the command: never allowed."""
        return self if self.stops else NOTHING


NOTHING = Finding(UNKNOWN)
LOOKS = Finding(HARMLESS)
OURS = Finding(ALLOW, "P2", "debug-spyre itself")
EXPERIMENT = Finding(ALLOW, "P2", "a saved script or a test under the lock")


def deny(rule: str, reason: str, *, card: bool = False) -> Finding:
    """Refused, with the way out in the reason."""
    return Finding(DENY, rule, reason, card=card)


def ask(rule: str, reason: str) -> Finding:
    """A person confirms it."""
    return Finding(ASK, rule, reason)


def strongest(findings: list[Finding]) -> Finding:
    """Deny before ask before unknown before allow; the first of the strongest."""
    return max(findings, key=lambda found: STRENGTHS.index(found.verdict), default=LOOKS)


def judge_name(name: str) -> Finding:
    """A variable that would leave the shared lock, or hide who acts."""
    if name.startswith(tables.LOCK_ENV):
        return deny("H1", f"{name} for one command would leave the shared lock; drop it")
    if name in tables.AUTHOR_ENV:
        return deny("gate", f"{name} tells the log who acts; leave it as it is")
    return LOOKS


def persons_decision(name: str, words: list[str]) -> Finding:
    """What a person confirms: the first row of the table that fits these words of a program."""
    verb, more = words[0] if words else "", {*words[1:]}
    for programs, verbs, further, spared, rule, told in tables.CONFIRMED:
        fits = name in programs and (verb in verbs or not verbs) and (more & further or not further)
        if fits and not more & spared:
            verdict = DENY if name == "claude" else ASK  # in its bypass mode the client passes over an `ask` there
            return Finding(verdict, rule, f"a person confirms {told.format(name, *words, '')}")
    if verb == "version" and name in tables.INSTALLERS | {"uv"} and more and not words[-1].startswith("-"):
        return ask("P4", f"a person confirms changes of pyproject.toml ({name} version)")
    return NOTHING
