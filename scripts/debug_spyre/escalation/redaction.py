"""One redaction map over all files of a bundle: the same person, host or address gets the same placeholder everywhere.

Secrets are masked without a placeholder of their own: nobody should be able to tell two of them apart.
"""

from __future__ import annotations

import io
import ipaddress
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from debug_spyre.vocabulary.masking import mask

SHORTEST_NAME = 3  # a user "a" can't be hidden without hiding the letter; it is reported instead
_COMMON = frozenset(
    {
        "root",
        "user",
        "runner",
        "localhost",
        "home",
        "admin",
        "test",
        "tests",
        "nobody",
        "debug",
        "spyre",
        "torch",
        "host",
    }
)
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")
_IPV6 = re.compile(
    r"(?<![\w:])(?:[0-9A-Fa-f]{1,4}:){2,7}[0-9A-Fa-f:]{0,39}(?![\w:])|(?<![\w:])(?:fe80|f[cd][0-9a-f]{2})::[0-9A-Fa-f:]*",
    re.IGNORECASE,
)
_MAC = re.compile(r"(?<![\w:-])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:-])")
_MAIL = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_INSIDE = re.compile(  # names that only an internal network knows
    r"(?<![\w.@/-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.)+(?:local|internal|corp|lan|intranet|localdomain|private|home\.arpa|svc)(?![\w-]|\.\w|\()"
)
_REMOTE = re.compile(r"(?:(?<=://)|(?<=@))([A-Za-z][A-Za-z0-9-]{2,62}(?:\.[A-Za-z0-9-]+)*)(?=:?\d*/|:~|:\d)")
_PUBLIC = re.compile(
    r"(?:.*\.)?(?:github\.com|githubusercontent\.com|pypi\.org|pythonhosted\.org|python\.org|pytorch\.org|huggingface\.co|readthedocs\.io"
    r"|vllm\.ai|ibm\.com|w3\.org|apache\.org|anaconda\.org|docker\.io|quay\.io|ghcr\.io|example|example\.(?:com|org|net|test)|localhost|test)",
    re.IGNORECASE,
)
_HOME = re.compile(r"(?<![\w.])/(?:home|Users)/([^/\s\"'<>:;,)\]}]+)")


@dataclass(frozen=True, slots=True)
class Private:
    """What is known to be private on this host."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()  # values of secret variables
    identifiers: frozenset[str] = (
        frozenset()
    )  # names in the scripts' code: hiding the user `max` must not break `.max()`


@dataclass(slots=True)
class Redactor:
    """Replaces private text by placeholders; `map` tells which is which and stays outside the bundle."""

    private: Private
    map: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words = [(home.rstrip("/"), "home") for home in self.private.homes if len(home.rstrip("/")) > 1]
        words += [(host, "host") for host in self._worth_hiding(self.private.hosts)]
        words += [(user, "user") for user in self._worth_hiding(self.private.users)]
        self._literals = tuple(sorted(dict.fromkeys(words), key=lambda w: (-len(w[0]), w)))

    _literals: tuple[tuple[str, str], ...] = ()

    def redact(self, text: str) -> str:
        """The text without anything private; doing it twice changes nothing."""
        before = text
        text = mask(text, sorted(self.private.secrets, key=len, reverse=True))
        if text != before:
            self.counts["secret"] = self.counts.get("secret", 0) + text.count("[masked]")
        for value, kind in self._literals:
            if value in text:
                text = _bounded(value, kind).sub(partial(self._literal, value, kind), text)
        text = _MAIL.sub(lambda m: self._placeholder(m.group(), "mail"), text)
        text = _INSIDE.sub(lambda m: self._placeholder(m.group().lower(), "host"), text)
        text = _REMOTE.sub(self._host, text)
        text = _HOME.sub(self._home, text)
        text = _MAC.sub(lambda m: self._placeholder(m.group().lower(), "mac"), text)
        text = _IPV4.sub(self._address, text)
        return _IPV6.sub(self._address, text)

    def _literal(self, value: str, kind: str, _found: re.Match[str]) -> str:
        return self._placeholder(value, kind)

    def _home(self, found: re.Match[str]) -> str:
        if found.group(1).startswith("<"):
            return found.group()
        return self._placeholder(found.group(), "home")

    def _host(self, found: re.Match[str]) -> str:
        name = found.group(1)
        return found.group() if _PUBLIC.fullmatch(name) else self._placeholder(name.lower(), "host")

    def _address(self, found: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(found.group())
        except ValueError:
            return found.group()
        if not address.is_private or address.is_loopback or address.is_unspecified:
            return found.group()
        return self._placeholder(found.group().lower(), "address")

    def _placeholder(self, value: str, kind: str) -> str:
        if value not in self.map:
            number = 1 + sum(p.startswith(f"<{kind}-") for p in self.map.values())
            self.map[value] = f"<{kind}-{number}>"
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.map[value]

    def unhidden(self) -> tuple[str, ...]:
        """Names too short or too common to hide; the preview says so."""
        names = (*self.private.users, *self.private.hosts)
        return tuple(sorted({n for n in names if n and n not in self._worth_hiding(names)}))

    def _worth_hiding(self, names: Iterable[str]) -> tuple[str, ...]:
        common = _COMMON | self.private.identifiers
        return tuple(n for n in names if len(n) >= SHORTEST_NAME and n.lower() not in common and n not in common)


def identifiers(source: str) -> frozenset[str]:
    """The names in Python source, strings and comments left aside; nothing where it is no Python."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return frozenset()
    return frozenset(t.string for t in tokens if t.type == tokenize.NAME)


def _bounded(value: str, kind: str) -> re.Pattern[str]:
    """Whole words only: the user `ana` must not eat `analysis`; a home path ends at a separator."""
    if kind == "home":
        return re.compile(re.escape(value) + r"(?![\w.-])")
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])")
