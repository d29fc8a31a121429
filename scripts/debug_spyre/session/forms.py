"""The forms of what an event's open fields hold: keys that readers use have the type that they expect; others are free.

A value of another type makes its line a damaged one, named by its number, instead of a crash in whoever reads it later.
"""

from __future__ import annotations

from typing import Any

from debug_spyre.vocabulary.codec import FormError

Form = Any  # a type, [form of the items], or {key: form of its value}; null is allowed for every key

_REASON = {"code": str, "text": str, "nodeids": [str], "next": str, "override": str, "state": str}
_CHANGES = {"tree": str, "files": [str], "tests": [str], "tolerances": [str], "expectations": [str]}
FORMS: dict[str, dict[str, Form]] = {
    "session_opened": {
        "members": [{"nodeid": str, "predicate": dict}],
        "cluster": {
            "signature": str, "why": str, "kind": str, "stage": str, "severity": str, "reason": str, "slug": str, "id": str,
            "separators": list, "folded": list, "hidden": list, "nodeids": [str],
        },
        "tree": {"digest": str, "head": str, "branch": str, "store": str, "dirty": list, "skipped": list, "half_way": str, "trouble": str},
    },
    "run_finished": {"scope": {"digest": str, "collected": int, "options": [str]}},
    "validation_recorded": {
        "rows": [{"nodeid": str, "pre": str, "post": str, "note": str, "cleared": bool}],
        "matrix": {
            "pre_run": str, "post_run": str, "new": [str], "unsteady": [str], "flaky": [str], "gone": [str], "numbers": dict,
            "changes": _CHANGES,
        },
        "gate": {"gate": str, "reasons": [_REASON], "conditions": [_REASON]},
    },
}  # fmt: skip


def check_forms(kind: str, data: dict[str, Any]) -> None:
    """Check the open fields of one event as its line has them.

    Raises:
        FormError: one holds another type than its readers expect.
    """
    for name, form in FORMS.get(kind, {}).items():
        if data.get(name) is not None:
            _check(data[name], form, f"{kind}.{name}")


def _check(value: Any, form: Form, where: str) -> None:
    if isinstance(form, dict):
        if not isinstance(value, dict):
            raise FormError(f"{where} is not an object")
        for key, inner in form.items():
            if value.get(key) is not None:
                _check(value[key], inner, f"{where}.{key}")
    elif isinstance(form, list):
        if not isinstance(value, list):
            raise FormError(f"{where} is not a list")
        for item in value:
            _check(item, form[0], where)
    elif not isinstance(value, form) or (form is int and isinstance(value, bool)):
        raise FormError(f"{where} is {type(value).__name__}, not {form.__name__}")
