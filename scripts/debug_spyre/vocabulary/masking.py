"""Masking of secrets in any text that leaves the raw output: pure, idempotent, and never shorter on secrets than on words.

Values of variables with telling names, credentials in headers and addresses, and tokens of known shapes become [masked].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MASK = "[masked]"
SHORTEST_VALUE = 6  # shorter values of secret variables are masked beside their name only: they'd blot out common words

_SECRET_NAME = re.compile(r"(?:.*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL).*|HF_.*)", re.IGNORECASE)
_VALUE = r"""(?:\[masked\]|"[^"\n]*"|'[^'\n]*'|[^\s"',;})\]]+)"""
# variables as shells, dicts and dumps print them; capitals only: `num_tokens=64` is a parameter, not a secret
_VARIABLE = re.compile(
    r"""(?<![A-Za-z0-9_])((?:[A-Z][A-Z0-9_]*?_?)?(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)[A-Z0-9_]*|HF_[A-Z0-9_]+)"""
    r"""(["']?\s?[=:]\s?)""" + _VALUE
)
_WORDED = re.compile(
    r"""(?<![A-Za-z0-9])((?:[a-z]+[_-])*(?:password|passwd|passphrase|api[_-]?key|access[_-]?key|secret[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret))"""
    r"""(["']?\s?[=:]\s?)""" + _VALUE,
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"""((?:proxy-)?authorization|x-api-key|x-auth-token|set-cookie|cookie)(["']?\s*[:=]\s*)(["']?)(?:(?:bearer|basic|token|digest)\s+)?(?:\[masked\]|[^\s"']+)""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_URL = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/@:\"'<>]*:[^\s/@\"'<>]+@")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
# a key whose beginning lies above the text at hand
_PRIVATE_KEY_END = re.compile(r"\A(?:(?!-----BEGIN).)*?-----END [A-Z0-9 ]*PRIVATE KEY-----", re.DOTALL)
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[opusr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}"
    r"|sk-(?:[a-z]{2,6}-)*[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*|xox[abeoprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)"
)
_OPTIONS = frozenset(
    [
        "TOKEN",
        "API_KEY",
        "APIKEY",
        "ACCESS_TOKEN",
        "AUTH_TOKEN",
        "HF_TOKEN",
        "PASSWORD",
        "PASSWD",
        "SECRET",
        "CLIENT_SECRET",
        "SECRET_KEY",
        "ACCESS_KEY",
    ]
)
# Nearly no line holds a secret: a look for these words, in lower case, decides which patterns are tried at all.
_VARIABLE_WORDS = ("TOKEN", "KEY", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "HF_")
_WORDED_WORDS = ("passw", "passphrase", "key", "access", "auth", "secret")
_HEADER_WORDS = ("authorization", "x-api-key", "x-auth-token", "cookie")
_SHAPE_WORDS = (
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "hf_",
    "sk-",
    "xox",
    "akia",
    "asia",
    "eyj",
)


def is_secret_name(name: str) -> bool:
    """A variable of this name holds a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values to mask wherever they appear, longest first."""
    found = {v for n, v in environment.items() if is_secret_name(n) and len(v) >= SHORTEST_VALUE}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def mask_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables with secret values masked, in the same order."""
    return {n: MASK if is_secret_name(n) and v else mask(v) for n, v in environment.items()}


def mask_words(words: Iterable[str]) -> list[str]:
    """The words of a command line: a secret may follow its option as the next word, or hold spaces."""
    found: list[str] = []
    hide = False
    for word in words:
        name, equals, _ = word.partition("=")
        bare = name.lstrip("-").replace("-", "_").upper()
        secret = name.startswith("-") and bare in _OPTIONS
        if hide:
            found.append(MASK)
        elif equals and (secret or (name.isidentifier() and name.isupper() and is_secret_name(name))):
            found.append(f"{name}={MASK}")
        else:
            found.append(word)
        hide = secret and not equals and not hide
    return found


def mask(text: str, values: Iterable[str] = ()) -> str:
    """The text without secrets; `values` are masked literally, and masking twice changes nothing more."""
    for value in values:
        if value in text:
            text = text.replace(value, MASK)
    low = text.lower()
    if " private key-----" in low:
        text = _PRIVATE_KEY_END.sub(MASK, _PRIVATE_KEY.sub(MASK, text))
    if "://" in low:
        text = _URL.sub(rf"\1{MASK}@", text)
    if _any(_HEADER_WORDS, low):
        text = _HEADER.sub(rf"\1\2\3{MASK}", text)
    if "bearer" in low:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if _any(_SHAPE_WORDS, low):
        text = _SHAPES.sub(MASK, text)
    if "=" not in text and ":" not in text:
        return text
    if _any(_VARIABLE_WORDS, text):
        text = _VARIABLE.sub(_keep_name, text)
    if _any(_WORDED_WORDS, low):
        text = _WORDED.sub(_keep_name, text)
    return text


def _any(words: tuple[str, ...], text: str) -> bool:
    for word in words:  # noqa: SIM110  a generator costs more than the look itself
        if word in text:
            return True
    return False


def _keep_name(found: re.Match[str]) -> str:
    value = found.group(0)[len(found.group(1)) + len(found.group(2)) :]
    quote = value[0] if value[:1] in {"'", '"'} else ""
    return f"{found.group(1)}{found.group(2)}{quote}{MASK}{quote}"
