"""The triages of a checkout: folders with one matrix run and the clusters found in it, until a session takes them in."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from debug_spyre.host.files import make_folder
from debug_spyre.session.events import Event, RunFinished, RunStarted
from debug_spyre.session.io.workspace import Folder
from debug_spyre.vocabulary.errors import BadInputError, UsageError

TRIAGE_FILE = "triage.json"


@dataclass(frozen=True, slots=True)
class KeptTriage:
    """One triage as it lies on disk. `folder` has the run's journal, or none for a log made elsewhere."""

    folder: Folder
    data: dict[str, Any]

    @property
    def clusters(self) -> list[dict[str, Any]]:
        """Clusters in their JSON form (contracts)."""
        return list(self.data.get("clusters") or [])


def find_triage(logs: Path, name: str | None = None) -> KeptTriage:
    """The newest triage of this checkout, or the one named by its folder's name or path.

    Raises:
        UsageError: there is none; BadInputError: its file can't be read.
    """
    if name and Path(name).is_dir():
        return read_triage(Path(name))
    base = logs / "triage"
    found = sorted(p for p in base.iterdir() if (p / TRIAGE_FILE).is_file()) if base.is_dir() else []
    fitting = [p for p in found if name is None or name in p.name]
    if not fitting:
        raise UsageError(
            "there is no triage in this checkout yet" if name is None else f"there is no triage {name!r}",
            next="debug-spyre triage tests",
        )
    return read_triage(fitting[-1])


def read_triage(folder: Path) -> KeptTriage:
    """The triage in that folder.

    Raises:
        BadInputError: its file can't be read.
    """
    path = folder / TRIAGE_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError(f"cannot read {path}: {error}", next="debug-spyre triage tests") from error
    if not isinstance(data, dict):
        raise BadInputError(f"{path} is not a triage", next="debug-spyre triage tests")
    return KeptTriage(Folder(folder), data)


def choose_cluster(triage: KeptTriage, wanted: str) -> dict[str, Any]:
    """The cluster of that id (`c2` or `2`) or slug.

    Raises:
        UsageError: there is none; the clusters are listed.
    """
    for cluster in triage.clusters:
        if wanted in (cluster["id"], str(cluster["id"]).removeprefix("c"), cluster["slug"]):
            return cluster
    listed = list_clusters(triage)
    raise UsageError(f"there is no cluster {wanted!r}", details=listed, next="debug-spyre open --cluster c1")


def list_clusters(triage: KeptTriage) -> tuple[str, ...]:
    """The clusters, a line each.

    Raises:
        UsageError: there are none, so no session can be opened on one.
    """
    if not triage.clusters:
        words = shlex.join(map(str, triage.data.get("pytest_args") or ()))
        warnings = triage.data.get("evidence", triage.data).get("warnings") or ()
        raise UsageError(
            f"the triage that is meant, {triage.folder.path.name} of {words or 'all tests'}, found no cluster",
            details=tuple(f"  {w}" for w in warnings if "no test ran" in w),
            next="debug-spyre triage tests",
        )
    return tuple(
        f"  {c['id']}  {c['slug']}  ({len(c['nodeids'])} test{'s' if len(c['nodeids']) != 1 else ''})"
        for c in triage.clusters
    )


def take_in(triage: Folder, session: Folder, *, named: str | None = None) -> tuple[Event, ...]:
    """Copy the finished runs of a triage (or of a session: those of one name) with their files into a session.

    Returns:
        The events that say so, with the times at which the runs really began and ended.
    """
    if not triage.journal.path.is_file():
        return ()
    taken: list[RunStarted | RunFinished] = []
    finished = set()
    for event in triage.journal.read().events:
        if isinstance(event, RunStarted) and named in (None, event.name):
            taken.append(replace(event, began_at=event.began_at or event.at))
        elif isinstance(event, RunFinished):
            finished.add(event.run)
            taken.append(replace(event, ended_at=event.ended_at or event.at))
    begun = {e.run for e in taken if isinstance(e, RunStarted)}
    kept = tuple(e for e in taken if e.run in finished & begun)
    for event in kept:
        if isinstance(event, RunStarted):
            _share_tree(triage.path / "runs" / event.run, session.path / "runs" / event.run)
            _share(triage.path / event.output, session.path / event.output)
    return kept


def _share_tree(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    for path in sorted(source.rglob("*")):
        if path.is_file():
            _share(path, target / path.relative_to(source))


def _share(source: Path, target: Path) -> None:
    """A hard link where the file system allows it, else a copy; an existing target stays."""
    if not source.is_file() or target.exists():
        return
    make_folder(target.parent)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
