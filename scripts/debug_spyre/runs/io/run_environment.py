"""What a run stands on, before and after: provenance, the tree's digest, the backend's fingerprint, declared changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debug_spyre.card.cards import card_facts
from debug_spyre.host.best_effort import kept_going
from debug_spyre.host.fingerprint import backend_fingerprint, site_packages
from debug_spyre.runs.io import run_folder as rf
from debug_spyre.session.events import FindingNoted, RunFinished, RunStarted

BACKEND = "torch-spyre"


@dataclass
class Provenance:
    """Which torch-spyre, torch, vLLM, Python and git state the run sees."""

    facts: dict[str, Any] = field(default_factory=dict)
    packages: Path | None = None

    def backend(self) -> str | None:
        """The installed backend's fingerprint now."""
        return backend_fingerprint(self.packages) if self.packages else None


@dataclass(frozen=True, slots=True)
class After:
    """What the surroundings were when the command had ended."""

    backend: str | None
    tree: str | None
    changed: bool


def provenance_of(job: rf.Job) -> Provenance:
    """Facts about the surroundings; an empty record where they can't be had."""
    found = Provenance(packages=site_packages(job.python))
    with kept_going("provenance"):
        from debug_spyre.host.provenance import provenance

        found.facts = provenance(job.checkout, job.python)
        found.facts["cards"] = card_facts()
    return found


def tree_of(job: rf.Job) -> str | None:
    """The digest of the checkout's tree."""
    with kept_going("tree digest"):
        from debug_spyre.tree.io.snapshot import tree_digest

        return tree_digest(job.checkout)
    return None


def look_again(job: rf.Job, started: RunStarted) -> After:
    """Look again: did the backend or the tree change under the run?"""
    packages = site_packages(job.python)
    backend = backend_fingerprint(packages) if packages else None
    return After(backend, tree_of(job), changed=backend != started.backend)


def is_declared(job: rf.Job, events: Iterable[object], started: RunStarted) -> bool:
    """A change on purpose: told with the run, or noted after the run before it."""
    if BACKEND in job.expect_change:
        return True
    declared = False
    for event in events:
        if isinstance(event, RunFinished) and event.seq < started.seq:
            declared = False
        if isinstance(event, FindingNoted) and event.expect_change:
            declared = True
    return declared


def changes_before(events: Iterable[object], started: RunStarted, job: rf.Job) -> list[str]:
    """The backend differs from what the run before saw, and nobody said so."""
    before: RunFinished | None = None
    declared = BACKEND in job.expect_change
    for event in events:
        if isinstance(event, RunFinished) and event.seq < started.seq and event.backend is not None:
            before, declared = event, BACKEND in job.expect_change
        elif isinstance(event, FindingNoted) and event.expect_change:
            declared = True
    if before is None or started.backend is None or before.backend == started.backend or declared:
        return []
    return [
        f"torch-spyre is another one than in {before.run} (fingerprint {before.backend} then, {started.backend} now)"
    ]


def change_words(started: RunStarted, now: After, *, declared: bool) -> str:
    """The change in words, and what follows from it."""
    what = f"torch-spyre changed under the run (fingerprint {started.backend} before, {now.backend} after)"
    if declared:
        return f"{what}, as declared"
    return f"{what}: its evidence does not count; run it again with nothing that syncs, or declare it: --expect-change {BACKEND}"
