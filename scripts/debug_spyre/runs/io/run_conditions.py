"""The conditions of a run from its results file: what the test process told, with digests of the files it loaded.

Digests are cached over device, inode, size and times, so that a run reads only what is new.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from debug_spyre.host.digests import Digests
from debug_spyre.tree.io.scan import covered_files
from debug_spyre.vocabulary.codec import to_json
from debug_spyre.vocabulary.conditions import BACKEND, Conditions, Loaded
from debug_spyre.vocabulary.masking import is_secret_name, mask

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
    if top == BACKEND:
        return f"package {BACKEND}"
    return os.path.relpath(place, checkout) if place.startswith(f"{checkout}{os.sep}") else place


def _one(name: str, members: list[tuple[str, bool]], digests: Digests, checkout: Path, began_ns: int) -> Loaded | None:
    total, newest, seen = hashlib.sha256(), 0, 0
    places = [place for place, _ in members]
    if name == f"package {BACKEND}":
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
        place[: place.rindex(f"/{BACKEND}/") + len(BACKEND) + 2] for place in places if f"/{BACKEND}/" in place
    }:
        for where, folders, names in os.walk(folder):
            folders[:] = [x for x in folders if x != "__pycache__"]
            yield from (os.path.join(where, name) for name in names if not name.endswith(".pyc"))
