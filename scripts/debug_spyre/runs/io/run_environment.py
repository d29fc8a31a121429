"""The environment of a run: provenance, the tree's digest, the backend's fingerprint, and the conditions that its test process told.

Also the protections that the kill matrix takes away to see itself go red; with a real card they can't be taken away.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debug_spyre.card.holders import card_facts
from debug_spyre.host.files import Digests, kept_going
from debug_spyre.host.fingerprint import backend_fingerprint, site_packages
from debug_spyre.runs.io import run_folder as rf
from debug_spyre.session.events import FindingNoted, RunFinished, RunStarted
from debug_spyre.tree.io.scan import covered_files
from debug_spyre.vocabulary.codec import to_json
from debug_spyre.vocabulary.conditions import BACKEND as PACKAGE
from debug_spyre.vocabulary.conditions import Conditions, Loaded
from debug_spyre.vocabulary.masking import is_secret_name, mask

NO_DESCRIPTOR = "DEBUG_SPYRE_UNSAFE_NO_DESCRIPTOR"  # the command gets no descriptor of the lock
NO_HOLDER_CHECK = "DEBUG_SPYRE_UNSAFE_NO_HOLDER_CHECK"  # nobody looks who has the device


def drop_unless_stand_in(cards: Sequence[str]) -> list[str]:
    """Forget these variables unless every card is a plain file, as only tests have it; in words which are in force."""
    told = [name for name in (NO_DESCRIPTOR, NO_HOLDER_CHECK) if os.environ.get(name)]
    if told and not (cards and all(map(_is_plain_file, cards))):
        for name in told:
            del os.environ[name]
        return [f"{name} was set and had no effect: the card is a real one" for name in told]
    return [f"{name} is set: this run was not protected" for name in told]


def _is_plain_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


_SITE = re.compile(r"^(.*/(?:site|dist)-packages)/([^/]+)(/.*)?$")
# of the shell, the terminal, the desktop and the client: what differs from call to call and steers no test
_NOISE = re.compile(
    r"(?:_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|TERM.*|COLORTERM|HIST.*|PS[0-9]|PROMPT.*|LESS.*|LS_COLORS|EDITOR|VISUAL|PAGER|MAIL"
    r"|LOGNAME|USER|USERNAME|HOSTNAME|SHELL|PATH|SSH_.*|XDG_.*|DBUS_.*|DISPLAY|WAYLAND.*|WINDOWID|TMUX.*|STY|VSCODE_.*|GIT_.*|NO_COLOR|FORCE_COLOR"
    r"|CLAUDE.*|BOB_.*|AI_AGENT|INVOCATION_ID|JOURNAL_STREAM|SUDO_.*|DEBUG_SPYRE_.*|PYTHONPATH|PYTHONUNBUFFERED|PYTEST_VERSION|PYTEST_CURRENT_TEST"
    r"|KUBERNETES_.*|.*_SERVICE_(?:HOST|PORT.*)|.*_PORT(?:_\d+_(?:TCP|UDP).*)?|.*_CACHE_DIR|.*_CACHE_HOME|npm_.*|NODE.*|VIRTUAL_ENV_PROMPT|OMP_DISPLAY_ENV)"
)


def conditions_of(results: Path, checkout: Path, cache: Path, *, began_ns: int) -> Conditions | None:
    """What this results file says of its process; None where it says nothing."""
    start: dict[str, Any] | None = None
    files: dict[str, tuple[str, bool]] = {}
    stale: list[str] = []
    complete = False
    with results.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if '"e": "session_finish"' in line[:40]:
                complete = True
            if '"e": "conditions"' not in line[:40]:
                continue
            with suppress(ValueError, AttributeError, TypeError):
                told = json.loads(line)
                if told.get("when") == "start":
                    start = told
                else:
                    late = told.get("when") == "end"
                    files |= {str(place): (str(name), late) for place, name in told["files"].items()}
                    stale += map(str, told["stale"])
    if start is None:
        return None
    root = str(start.get("root") or checkout)
    startup = {str(place): ("", False) for place in start.get("startup") or ()}
    return Conditions(
        python=tuple(map(str, start.get("python") or ())),
        environment=_counted(start.get("environment") or {}),
        path=tuple(str(entry) for entry in start.get("path") or ()),
        plugins=tuple(map(str, start.get("plugins") or ())),
        options={str(k): mask(str(v)) for k, v in (start.get("options") or {}).items()},
        ini={str(k): _short(str(v), root) for k, v in (start.get("ini") or {}).items()},
        loaded=to_json(_loaded({**files, **startup}, checkout, cache, began_ns)),
        stale=tuple(_short(place, root) for place in stale),
        complete=complete,
        ended_ns=time.time_ns(),
    )


def _counted(environment: dict[str, Any]) -> dict[str, str]:
    found = {str(k): str(v) for k, v in environment.items() if not _NOISE.fullmatch(str(k))}
    return {k: "(set)" if is_secret_name(k) else mask(v) for k, v in sorted(found.items())}


def _short(text: str, root: str) -> str:
    return mask(text.replace(root.rstrip("/") + "/", ""))


def _loaded(files: dict[str, tuple[str, bool]], checkout: Path, cache: Path, began_ns: int) -> dict[str, Loaded]:
    covered = {os.path.join(os.fsencode(checkout), path) for path in covered_files(checkout)}
    digests = Digests(cache)
    groups: dict[str, list[tuple[str, bool]]] = {}
    for place, (module, late) in files.items():
        if os.fsencode(place) in covered:
            continue
        name = _group(place, module, checkout)
        if name is not None:
            groups.setdefault(name, []).append((place, late))
    found = {}
    for name, members in sorted(groups.items()):
        one = _one(name, members, digests, checkout, began_ns)
        if one is not None:
            found[name] = one
    digests.keep()
    return found


def _group(place: str, module: str, checkout: Path) -> str | None:
    """The name under which this file counts: its package in a site folder, else the file itself."""
    site = _SITE.match(place)
    if site and place.endswith(".pth"):
        return place
    if site and not os.path.basename(place).startswith(("sitecustomize", "usercustomize")):
        return f"package {site[2].partition('.')[0]}"
    top = module.partition(".")[0]
    if top == PACKAGE:
        return f"package {PACKAGE}"
    return os.path.relpath(place, checkout) if place.startswith(f"{checkout}{os.sep}") else place


def _one(name: str, members: list[tuple[str, bool]], digests: Digests, checkout: Path, began_ns: int) -> Loaded | None:
    total, newest, seen = hashlib.sha256(), 0, 0
    places = [place for place, _ in members]
    if name == f"package {PACKAGE}":
        places = sorted({*places, *_whole(places)})
    for place in sorted(places):
        known = digests.of(place)
        if known is None:
            continue
        digest, changed = known
        # generated while it ran (a compiler's cache): a result of the run, not a condition
        if changed >= began_ns and not place.startswith(f"{checkout}{os.sep}") and not _SITE.match(place):
            continue
        seen += 1
        newest = max(newest, changed)
        total.update(f"{os.path.basename(place)} {digest}\0".encode())
    if not seen:
        return None
    first = _SITE.match(places[0])
    where = f"{first[1]}/{first[2]}" if first else os.path.dirname(places[0]) if seen > 1 else places[0]
    last = os.path.basename(places[0])
    always = last == "conftest.py" or last.endswith(".pth") or last.startswith(("sitecustomize", "usercustomize"))
    return Loaded(where, total.hexdigest()[:16], newest, seen, all(late for _, late in members), always)


def _whole(places: Iterable[str]) -> Iterable[str]:
    """All files of the backend's folder: it reads tables and libraries that are no modules."""
    for folder in {
        place[: place.rindex(f"/{PACKAGE}/") + len(PACKAGE) + 2] for place in places if f"/{PACKAGE}/" in place
    }:
        for where, folders, names in os.walk(folder):
            folders[:] = [x for x in folders if x != "__pycache__"]
            yield from (os.path.join(where, name) for name in names if not name.endswith(".pyc"))


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
