"""Asking the card which limitations it has: one small script each, its own process under the lock, answers kept.

What was found is kept for each torch-spyre (revision, or fingerprint of a local build) in the logs folder; a call that
ran out of time is continued by the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from debug_spyre.host.clock import utc_now
from debug_spyre.host.files import make_folder, write_atomically
from debug_spyre.host.fingerprint import backend_fingerprint, search_path
from debug_spyre.host.interpreter import choose
from debug_spyre.host.provenance import torch_spyre_of
from debug_spyre.runs.io.jobs import JobSpec, run_job
from debug_spyre.session.io.workspace import logs_folder
from debug_spyre.surface.io.doctor_checks import Check, State
from debug_spyre.surface.limits import Answer, Limit, Probed, read_limits
from debug_spyre.vocabulary.errors import CardBusyError, DebugSpyreError

DATA = Path(__file__).parents[1] / "data/limits.toml"
SCRIPT = Path(__file__).parents[2] / "inside/debug_spyre_probe.py"
SECONDS = 300.0
WAIT_SECONDS = 60.0
KEPT = "limits.json"
_PLUGINS = ("spyre_inference", "vllm_spyre")


def load_limits() -> tuple[Limit, ...]:
    """The limitations of the shipped data."""
    return read_limits(DATA.read_text(encoding="utf-8"))


def which_torch_spyre(checkout: Path) -> str:
    """What the answers are kept for: the revision, or the fingerprint of a local or unknown build."""
    packages = choose(checkout).packages
    found = torch_spyre_of(checkout, packages)
    if found["revision"] and found["state"] in {"pinned", "drifted"}:
        return str(found["revision"])
    return f"build {backend_fingerprint(packages) or 'unknown'}"


def kept_answers(checkout: Path, which: str) -> dict[str, Probed]:
    """Answers found earlier on this torch-spyre; a damaged file holds none."""
    rows = _read(logs_folder(checkout) / KEPT).get(which)
    found = {}
    for name, row in rows.items() if isinstance(rows, dict) else ():
        try:
            found[name] = Probed(Answer(row["answer"]), str(row["why"]), str(row["at"]), which)
        except (KeyError, TypeError, ValueError):
            continue
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _keep(checkout: Path, which: str, name: str, probed: Probed) -> None:
    logs = logs_folder(checkout)
    make_folder(logs)
    folder = os.open(logs, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # two calls at once: none loses the other's answer
        data = _read(logs / KEPT)
        kept = data[which] if isinstance(data.get(which), dict) else {}
        data[which] = {**kept, name: {"answer": probed.answer.value, "why": probed.why, "at": probed.at}}
        write_atomically(logs / KEPT, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    finally:
        os.close(folder)


def ask(
    checkout: Path,
    limits: Iterable[Limit],
    *,
    deadline: float | None = None,
    said: Callable[[Limit, Probed], None] = lambda _limit, _probed: None,
) -> tuple[dict[str, Probed], list[Limit]]:
    """(answers by id, limits that were not asked since time ran out). Probes that need the card run one after the other.

    Raises:
        CardBusyError: the card was not to be had.
    """
    which = which_torch_spyre(checkout)
    answers: dict[str, Probed] = {}
    left: list[Limit] = []
    for limit in limits:
        if limit.why_no_probe:
            continue
        if deadline is not None and answers and time.monotonic() > deadline:
            left.append(limit)
            continue
        answer, why = in_plugin(checkout, limit.text) if limit.text else on_card(checkout, limit.probe)
        answers[limit.id] = Probed(answer, why, utc_now(), which)
        _keep(checkout, which, limit.id, answers[limit.id])
        said(limit, answers[limit.id])
    return answers, left


def on_card(checkout: Path, name: str) -> tuple[Answer, str]:
    """Run one probe as a job under the lock.

    Raises:
        CardBusyError: the card was not to be had.
    """
    chosen = choose(checkout)
    spec = JobSpec(
        folder=logs_folder(checkout) / "limits",
        checkout=checkout,
        verb="limits",
        name=None,
        argv=(*chosen.words, str(SCRIPT), name),
        timeout=SECONDS,
        wait=WAIT_SECONDS,
    )
    try:
        record = run_job(spec)
    except CardBusyError:
        raise
    except DebugSpyreError as error:
        return Answer.UNKNOWN, error.what
    told = answer_in(record.output)
    if told is None:
        return Answer.UNKNOWN, f"the probe gave no answer: {record.status} (exit {record.exit}), see {record.output}"
    return told


def answer_in(output: Path) -> tuple[Answer, str] | None:
    """The answer at the end of a probe's output."""
    try:
        lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        if line.startswith('{"probe"'):
            try:
                told = json.loads(line)
                return Answer(told["answer"]), str(told["why"])
            except (ValueError, KeyError, TypeError):
                return None
    return None


def in_plugin(checkout: Path, pattern: str) -> tuple[Answer, str]:
    """Whether the plugin's own source still has what stands for the limitation; no card is needed."""
    roots = [checkout / name for name in _PLUGINS if (checkout / name).is_dir()]
    if not roots:
        folders = search_path(choose(checkout).packages)
        roots = [f / name for name in _PLUGINS for f in folders if (f / name).is_dir()][:1]
    if not roots:
        return Answer.UNKNOWN, "the plugin's source is not here"
    wanted = re.compile(pattern)
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            found = wanted.search(text)
            if found:
                line = text.count("\n", 0, found.start()) + 1
                return Answer.HOLDS, f"{found.group(0)} at {path.relative_to(root.parent)}:{line}"
    return Answer.LIFTED, f"nothing like it in {', '.join(str(r) for r in roots)}"


def try_card(checkout: Path) -> Check:
    """One small tensor to the card and back."""
    try:
        answer, why = on_card(checkout, "alive")
    except CardBusyError as error:
        return Check("probe", State.FAIL, error.what, error.next)
    if answer is Answer.LIFTED:
        return Check("probe", State.OK, why)
    return Check("probe", State.FAIL, why, "debug-spyre lock")
