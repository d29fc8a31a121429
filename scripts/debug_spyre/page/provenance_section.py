"""The foot of the page: which torch-spyre, torch, vLLM, Python and tree the runs saw, and what the journal holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from debug_spyre.page.page_context import Frame, Link, session_link
from debug_spyre.vocabulary.local_time import Moment
from debug_spyre.vocabulary.masking import mask_environment
from debug_spyre.vocabulary.safe_text import count

MOST_FACTS, SHORT = 40, 120
PACKAGES = frozenset({"torch", "vllm", "spyre_inference", "torch_sendnn", "transformers", "numpy", "pytest"})
FIRST = ("torch_spyre", "torch-spyre", "torch", "vllm", "python", "git", "card")
RELATIONS = {"carved-from": "carved out of", "carved-out": "carved out of this one", "similar": "similar"}


@dataclass(frozen=True, slots=True)
class ProvenanceView:
    """The foot of the page."""

    facts: tuple[tuple[str, str], ...]
    folded: tuple[tuple[str, str], ...]  # long values, for machines rather than people
    run: Link | None
    differs: tuple[str, ...]  # keys that were not the same in all runs
    environment: tuple[tuple[str, str], ...]
    journal: str
    links: tuple[tuple[str, Link], ...]
    rendered: Moment


def provenance(frame: Frame) -> ProvenanceView:
    """From the newest run that recorded it."""
    session = frame.session
    runs = [r for r in session.runs.values() if r.provenance]
    newest = runs[-1] if runs else None
    facts = _flat(newest.provenance) if newest else {}
    order = sorted(
        facts, key=lambda key: next((i for i, f in enumerate(FIRST) if key.replace(" ", "_").startswith(f)), 99)
    )
    return ProvenanceView(
        facts=tuple(
            (frame.line(k, 60), frame.line(facts[k], 300)) for k in order[:MOST_FACTS] if not _is_long(k, facts)
        ),
        folded=tuple((frame.line(k, 60), frame.line(facts[k], 900)) for k in order[:MOST_FACTS] if _is_long(k, facts)),
        run=frame.run_link(newest.id) if newest else None,
        differs=_differs(frame, [r.provenance for r in runs]),
        environment=tuple((frame.line(k, 80), frame.line(v, 200)) for k, v in _environment(frame).items()),
        journal=_journal(frame),
        links=tuple(
            (RELATIONS.get(relation, frame.line(relation, 40)), session_link(frame, stem))
            for relation, stem in session.links
        ),
        rendered=frame.at(session.updated_at),
    )


def _is_long(key: str, facts: Mapping[str, str]) -> bool:
    return key == "environment" or len(facts[key]) > SHORT


def _flat(data: Mapping[str, Any]) -> dict[str, str]:
    """A record's facts in words; what it does not know stays visible as unknown."""
    found: dict[str, str] = {}
    is_known = any(data.get(key) for key in PACKAGES)  # else the environment itself was not found
    for key, value in data.items():
        name = key.replace("_", " ").replace("torch spyre", "torch-spyre")
        if key in {"torch_spyre", "torch-spyre"} and isinstance(value, Mapping):
            found[name] = _backend(value)
        elif key == "git" and isinstance(value, Mapping):
            found[name] = _git(value)
        elif key == "environment" and isinstance(value, Mapping):
            shown = mask_environment({str(k): str(v) for k, v in value.items()})
            found[name] = " ".join(f"{k}={v}" for k, v in shown.items())
        elif value is None and key in PACKAGES and is_known:
            found[name] = "not installed"
        else:
            found[name] = _words(value)
    return {k: v for k, v in found.items() if v}


def _backend(record: Mapping[str, Any]) -> str:
    revision = str(record.get("revision") or record.get("commit") or "")
    state = str(record.get("state") or record.get("build") or "")
    words = [revision[:12] or "revision unknown", "" if state == "unknown" else state]
    pin = record.get("pin") or record.get("pinned")
    words += [f"pin {str(pin)[:12]}"] if pin else []
    words += [f"version {record['version']}"] if record.get("version") else []
    words += ["with local changes"] if record.get("dirty") else []
    return ", ".join(word for word in words if word)


def _git(record: Mapping[str, Any]) -> str:
    words = [str(record.get("head") or "head unknown")[:12]]
    words += [f"on {record['branch']}"] if record.get("branch") else []
    changed = record.get("dirty")
    if isinstance(changed, int) and not isinstance(changed, bool):
        words.append(count(changed, "changed file") if changed else "no changed file")
    return ", ".join(words)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{str(k).replace('_', ' ')} {_words(v)}"
            for k, v in list(value.items())[:20]
            if v not in (None, "", {}, [])
        )
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(v) for v in value[:12])
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else str(value)


def _differs(frame: Frame, records: list[dict[str, Any]]) -> tuple[str, ...]:
    if len(records) < 2:
        return ()
    last = records[-1]
    keys = [k for k in last if any(k in r and _lasting(r[k]) != _lasting(last[k]) for r in records[:-1])]
    return tuple(frame.line(k.replace("_", " "), 60) for k in keys[:12])


def _lasting(value: Any) -> Any:
    """What stays the same while one works: not the number of changed files."""
    return {k: v for k, v in value.items() if k != "dirty"} if isinstance(value, dict) else value


def _environment(frame: Frame) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in frame.session.runs.values():
        found.update(run.env)
    return dict(list(mask_environment(found).items())[:30])


def _journal(frame: Frame) -> str:
    material = frame.material
    unknown = frame.session.unknown_events
    words = [count(material.events, "event")]
    words.append("a torn last line was dropped" if material.torn else "none torn")
    words.append(f"{count(unknown, 'event')} of kinds this version does not know" if unknown else "none unknown")
    return ", ".join(words)
