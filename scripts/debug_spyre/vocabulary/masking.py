"""Masking of secrets in any text that leaves the raw output: pure, idempotent, and never shorter on secrets than on words.

Values of variables with telling names, credentials in headers and addresses, and tokens of known shapes become [masked].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from debug_spyre.vocabulary.safe_text import without_escapes

MASK = "[masked]"
MOST_SEARCHED = 4 << 20  # bytes of a file
SHORTEST_VALUE = 6  # shorter values of secret variables are masked beside their name only: they'd blot out common words

_SECRET_FILE = re.compile(
    r"\.env(?:\..*)?|\.netrc|_netrc|\.pypirc|\.npmrc|\.git-credentials|\.htpasswd|id_(?:rsa|dsa|ecdsa|ed25519)|credentials(?:\.(?:json|ya?ml|toml|ini|csv|txt|db))?"
    r"|secrets?\.(?:json|ya?ml|toml|ini|env|txt)|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx)|kubeconfig",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"(?:.*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL).*|HF_.*)", re.IGNORECASE)
# where a token may begin: not inside a word, but after an escape or a line end that was printed as text
_START = r"(?:(?<![A-Za-z0-9])|(?<=\[\dm)|(?<=\[\d\dm)|(?<=\[\d;\d\dm)|(?<=\\[nrt]))"
# the rest of a token that a terminal broke: a line of token characters, digits and letters, and nothing else
_BROKEN = r"(?:\\?\r?\n[ \t>|]{0,12}(?:E[ \t]+)?(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9_+/=.~-]{4,}(?=[\"']?[,;)]?[ \t]*(?:\r?\n|\Z)))?"
# in quotes (also where a line end broke it), or up to what ends a word
_VALUE = (
    r"""(?:\[masked\]|"[^"\n]*"|'[^'\n]*'|["'][^"'\s]{4,}(?:\s{1,12}[^"'\s]+(?=["']))?|[^\s"',;})\]]+""" + _BROKEN + ")"
)
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
_WRAP = r"(?:\\?\r?\n[ \t>|]{0,12}(?:E[ \t]+)?|\\r?\\n|\\n)"  # a line end with what an output puts before the next line, or printed as text
_URL = re.compile(rf"\b([A-Za-z][A-Za-z0-9+.-]{{0,20}}://)[^\s/@:\"'<>]*:[^\s/@\"'<>]+(?:{_WRAP}[^\s/@\"'<>]+)?@")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
# a key whose beginning lies above the text at hand
_PRIVATE_KEY_END = re.compile(r"\A(?:(?!-----BEGIN).)*?-----END [A-Z0-9 ]*PRIVATE KEY-----", re.DOTALL)
_HEADS = (
    r"gh[opusr]_|github_pat_|glpat-|gl[a-z]{2,5}-|hf_|sk-(?:[a-z0-9]{2,8}-)*|xox[abeoprs]-|xapp-|AKIA|ASIA|AIza|pypi-|SG\.|[srp]k_(?:live|test)_"
    r"|whsec_|hv[sbr]\.|npm_|dckr_pat_|nvapi-|gsk_|ya29\.|dop_v1_|shp(?:at|ss|ca)_|lin_api_|PMAK-|ATATT3x|AGE-SECRET-KEY-1|eyJ"
)
_SHAPES = re.compile(
    _START + r"(?:"
    r"gh[opusr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|gl[a-z]{2,5}-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}"
    r"|sk-(?:[a-z0-9]{2,8}-)*[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*|(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|AIza[A-Za-z0-9_-]{30,}|pypi-[A-Za-z0-9_-]{16,}|SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|[srp]k_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|whsec_[A-Za-z0-9+/=]{16,}|hv[sbr]\.[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{20,}|dckr_pat_[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{16,}"
    r"|gsk_[A-Za-z0-9]{20,}|ya29\.[A-Za-z0-9_-]{16,}|dop_v1_[a-f0-9]{20,}|shp(?:at|ss|ca)_[A-Za-z0-9]{16,}|lin_api_[A-Za-z0-9]{16,}"
    r"|PMAK-[A-Za-z0-9-]{16,}|ATATT3x[A-Za-z0-9_=-]{16,}|AGE-SECRET-KEY-1[A-Z0-9]{16,}|(?:AC|SK)[0-9a-f]{32}(?![0-9A-Za-z])"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.?[A-Za-z0-9_-]*)" + _BROKEN
)
# broken before its shape is complete, or cut short by pytest's summary
_SPLIT = re.compile(_START + rf"(?:{_HEADS})[A-Za-z0-9_.-]{{2,}}" + _BROKEN[:-1])
_SPLIT_AS_TEXT = re.compile(
    _START + rf"(?:{_HEADS})[A-Za-z0-9_.-]{{2,}}(?:\\{{1,2}}r)?\\{{1,2}}n(?=[^\s'\"]*\d)[A-Za-z0-9_+/=.~-]{{4,}}"
)
_CUT = re.compile(_START + rf"(?:{_HEADS})(?=[A-Za-z_-]*[0-9A-Z])[A-Za-z0-9_-]{{2,}}(?=\.\.\.|…|\[\.\.\.)")
_PARAMETER = re.compile(
    r"((?:\b(?:AccountKey|SharedAccessKey|SharedAccessSignature|SharedSecret|Pwd|_authToken|_auth)|(?<=[?&;])(?:sig|signature|token|key|code|access_token|api_key)"
    r"|X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token))\s?=\s?)(?:\[masked\]|[^\s&;\"'<>]+)",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"((?<![\w-])--(?:[a-z]+-)*(?:password|passwd|passphrase|token|secret|api-?key|access-?key|secret-?key|private-?key|pat)(?:=|\s+))"
    r"(?!-)" + _VALUE,
    re.IGNORECASE,
)
_USER = re.compile(
    r"((?<!\S)(?:-u\s?|--user[= ]|--proxy-user[= ])[\"']?(?!\d+:\d+(?:\s|$))[^\s:\"'/]+:)(?:\[masked\]|[^\s\"']+)"
)
_NETRC = re.compile(r"(\blogin\s+\S+\s+(?:account\s+\S+\s+)?password\s+)(?:\[masked\]|\S+)")
_AUTH = re.compile(
    r"""(["'](?:auth|identitytoken|registrytoken|access_token|refresh_token|id_token|client_secret)["']\s*:\s*["'])(?:\[masked\]|[^"'\n]{6,})""",
    re.IGNORECASE,
)
_ALONE = re.compile(
    rf"\b([A-Za-z][A-Za-z0-9+.-]{{0,20}}://)(?!\[masked\]@)[^\s/@:\"'<>]{{16,}}(?:{_WRAP}[^\s/@\"'<>]+)?@"
)  # a token as the user of an address
_LITERAL = re.compile(
    r"""(?<![A-Za-z0-9_])([A-Za-z0-9_]*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|HF_)[A-Za-z0-9_]*)(["']?\]?\s?[=:]\s?)(["'])([^"'\s]{6,})\3""",
    re.IGNORECASE,
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
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gl", "hf_", "sk-", "xox", "xapp-", "akia", "asia", "aiza", "pypi-", "sg.",
    "_live_", "_test_", "whsec_", "hvs.", "hvb.", "hvr.", "npm_", "dckr_pat_", "nvapi-", "gsk_", "ya29.", "dop_v1_", "shp", "lin_api_",
    "pmak-", "atatt3x", "age-secret", "eyj", "ac", "sk",
)  # fmt: skip
_PARAMETER_WORDS = ("accountkey", "sharedaccess", "sharedsecret", "pwd", "_auth", "?", "&", ";", "x-amz-", "x-goog-")
# what a line end broke off a value that is masked already
_REST = re.compile(
    r"(\[masked\]\\?\r?\n[ \t>|]{0,12}(?:E[ \t]+)?)(?=[\w+/=~-]*\d)(?=[\w+/=~-]*[a-z])(?=[\w+/=~-]*[A-Z])[A-Za-z0-9_+/=~-]{8,}"
)
_OTHER_SECRET = re.compile(r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL")
_HARMLESS = re.compile(r"(?:-?\d{1,6}|true|false|none|null)", re.IGNORECASE)
_COUNTED = re.compile(r"(?:PASS|SECRET|CREDENTIAL|HF_)")
_LINE_END = re.compile(r"\\?\r?\n[ \t>|]{0,12}(?:E[ \t]+)?")
SHORTEST_PREFIX = 8  # characters of a known value that are masked where the rest was cut off


def is_secret_name(name: str) -> bool:
    """A variable of this name holds a secret."""
    return _SECRET_NAME.fullmatch(name) is not None and _is_telling(name)


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
    """The text without secrets and without escape sequences; `values` are masked literally, and masking twice changes nothing more."""
    text = without_escapes(text)
    shown = _mask(text, values)
    return _REST.sub(rf"\1{MASK}", shown) if shown != text or MASK in shown else shown


def mask_code(text: str, values: Iterable[str] = ()) -> str:
    """Source without secrets: tokens of known shapes, keys, credentials in addresses, and quoted text given to a secret name.

    `secret = make()` and `token: str = other` are code and stay.
    """
    for value in values:
        text = _without_value(text, value)
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _ALONE.sub(rf"\1{MASK}@", _URL.sub(rf"\1{MASK}@", text))
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _SPLIT.sub(MASK, _SPLIT_AS_TEXT.sub(MASK, _CUT.sub(MASK, _SHAPES.sub(MASK, text))))
    for pattern in (_VARIABLE, _WORDED, _HEADER, _PARAMETER, _OPTION, _USER, _NETRC, _AUTH):
        text = pattern.sub(_mask_random, text)
    return _LITERAL.sub(_keep_quotes, text)


def _mask_random(found: re.Match[str]) -> str:
    """A value that looks drawn: twelve or more small letters and capitals, with digits or in no order."""
    head = "".join(group or "" for group in found.groups())
    value = found.group(0)[len(head) :].strip("'\"")
    mixed = all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]"))
    turns = len(re.findall("[a-z][A-Z]|[A-Z]{2}[a-z]", value))  # names in camel case turn less often
    drawn = mixed and len(value) >= 12 and (re.search(r"\d", value) or turns * 8 >= len(value))
    return f"{head}{MASK}" if drawn and "(" not in value and "{" not in value else found.group(0)


def _keep_quotes(found: re.Match[str]) -> str:
    name, sign, quote, value = found.groups()
    is_word = value.isalpha() and len(value) < 20  # a placeholder, or the name of a variable
    if _OTHER_SECRET.search(name.upper()) is None:  # the key of a dict, or one to a door
        is_word = len(value) < 16 or not re.search(r"\d", value)
    return found.group(0) if is_word or not _is_telling(name) or "{" in value else f"{name}{sign}{quote}{MASK}{quote}"


def _mask(text: str, values: Iterable[str]) -> str:
    for value in values:
        text = _without_value(text, value)
    low = text.lower()
    if " private key-----" in low:
        text = _PRIVATE_KEY_END.sub(MASK, _PRIVATE_KEY.sub(MASK, text))
    if "://" in low:
        text = _ALONE.sub(rf"\1{MASK}@", _URL.sub(rf"\1{MASK}@", text))
    if _any(_HEADER_WORDS, low):
        text = _HEADER.sub(rf"\1\2\3{MASK}", text)
    if "bearer" in low:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if _any(_SHAPE_WORDS, low):
        text = _CUT.sub(MASK, _SHAPES.sub(MASK, text))
        text = _SPLIT_AS_TEXT.sub(MASK, text) if "\\n" in text else text
        text = _SPLIT.sub(MASK, text) if "\n" in text else text
    if "--" in text:
        text = _OPTION.sub(rf"\1{MASK}", text)
    if "-u" in text:
        text = _USER.sub(rf"\1{MASK}", text)
    if "login" in low:
        text = _NETRC.sub(rf"\1{MASK}", text)
    if "=" not in text and ":" not in text:
        return text
    if _any(_PARAMETER_WORDS, low):
        text = _PARAMETER.sub(rf"\1{MASK}", text)
    if "auth" in low or "token" in low or "secret" in low:
        text = _AUTH.sub(rf"\1{MASK}", text)
    if _any(_VARIABLE_WORDS, text):
        text = _VARIABLE.sub(_keep_name, text)
    if _any(_WORDED_WORDS, low):
        text = _WORDED.sub(_keep_name, text)
    return text


def _without_value(text: str, value: str) -> str:
    """The text without this value, also where a line end broke it or its end was cut off."""
    start = value[:SHORTEST_PREFIX]
    at = text.find(start)
    while at >= 0:
        end, matched = at, 0
        while matched < len(value):
            if text.startswith(value[matched], end):
                end, matched = end + 1, matched + 1
                continue
            broken = _LINE_END.match(text, end)
            if broken is None:
                break
            end = broken.end()
        cut = SHORTEST_PREFIX <= matched < len(value) and text.startswith(("...", "…", "[..."), end)
        if matched == len(value) or cut:
            text = text[:at] + MASK + text[end:]
            at = text.find(start, at + len(MASK))
        else:
            at = text.find(start, at + 1)
    return text


def _any(words: tuple[str, ...], text: str) -> bool:
    for word in words:  # noqa: SIM110  a generator costs more than the look itself
        if word in text:
            return True
    return False


def _keep_name(found: re.Match[str]) -> str:
    name, value = found.group(1), found.group(0)[len(found.group(1)) + len(found.group(2)) :]
    quote = value[0] if value[:1] in {"'", '"'} else ""
    if not _is_telling(name) or (_HARMLESS.fullmatch(value.strip("'\"")) and not _COUNTED.search(name.upper())):
        return found.group(0)
    return f"{name}{found.group(2)}{quote}{MASK}{quote}"


def _is_telling(name: str) -> bool:
    """KEY counts as a word of its own at the name's end or before _ID and the like: PYTORCH_KEY_AVERAGES holds no secret."""
    upper = name.upper()
    if _OTHER_SECRET.search(upper) or upper.startswith("HF_"):
        return True
    return re.search(r"KEYS?(?:[_-]?(?:ID|B64|BASE64|PEM|FILE|\d+))*$", upper) is not None


def is_secret_file(name: str, data: bytes) -> bool:
    """By its last name, or by a private key or a token of a known shape in it."""
    if _SECRET_FILE.fullmatch(name):
        return True
    text = data[:MOST_SEARCHED].decode("utf-8", "replace")
    return bool(_PRIVATE_KEY.search(text) or _SHAPES.search(text))
