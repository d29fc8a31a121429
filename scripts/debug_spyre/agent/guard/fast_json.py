"""JSON by the interpreter's own C parts: importing json (and with it re) would double the start-up, measured."""

from __future__ import annotations


class _Strict:
    """How the scanner reads."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def parse_json(text: str) -> object:
    """The value in the text.

    Raises:
        ValueError: it is no JSON.
    """
    text = text.strip(" \t\r\n")  # what JSON calls white space
    try:
        from _json import make_scanner

        value, end = make_scanner(_Strict)(text, 0)  # type: ignore[arg-type]
        if end == len(text):
            return value
    except (ImportError, StopIteration, SystemError, ValueError):
        pass
    import json  # says what is wrong, or reads it where the C part is not there

    return json.loads(text)


def to_json(value: object) -> str:
    """What the hooks answer, texts escaped to ASCII."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_json(str(key))}: {to_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_json, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        import json

        return json.dumps(str(value))
    return str(encode_basestring_ascii(str(value)))
