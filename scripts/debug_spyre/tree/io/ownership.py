"""Which changes are the session's own: what it edited, and what it created where tests can see it. All else stays.

A file that a person or another program made meanwhile is neither removed nor put into a patch; it is named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.host.git import index_entries
from debug_spyre.tree.io.scan import is_under_source, source_folders
from debug_spyre.tree.io.snapshot import Change, Start, changes_since, load_start, patch_of

_SECRET = re.compile(
    rb"(?:^|/)(?:\.env(?:\..*|rc)?|\.netrc|\.pgpass|\.pypirc|\.npmrc|\.git-credentials|credentials(?:\.\w+)?|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*"
    rb"|[^/]*\.(?:pem|key|p12|pfx|jks|keystore|kdbx)|secrets?\.(?:json|ya?ml|toml|ini|env)|(?:hf|github)_?token[^/]*)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Split:
    """The session's own changes, and the files that are left as they are with the reason."""

    own: tuple[Change, ...]
    left: tuple[tuple[Change, str], ...]


def split(checkout: Path, start: Start, changes: Iterable[Change], *, keep: Collection[bytes] = ()) -> Split:
    """Tell the session's own changes from others; `keep` are paths that the caller says are not its own."""
    judge = _Judge(checkout, start, frozenset(index_entries(checkout)), tuple(keep))
    judged = [(change, judge.why_left(change)) for change in changes]
    return Split(tuple(c for c, why in judged if not why), tuple((c, why) for c, why in judged if why))


def patch_since(checkout: Path, tree: Mapping[str, Any], folder: Path | None = None) -> bytes:
    """The patch of the session's own changes since the snapshot; empty where there are none.

    Raises:
        BadInputError: there is no snapshot; EnvironmentTroubleError: git can't answer or a file changes meanwhile.
    """
    start = load_start(tree, folder)
    return patch_of(checkout, start, split(checkout, start, changes_since(checkout, start)).own)


@dataclass(frozen=True, slots=True)
class _Judge:
    checkout: Path
    start: Start
    staged: frozenset[bytes]
    keep: tuple[bytes, ...]

    def why_left(self, change: Change) -> str:
        """Why this file stays as it is; empty where it is the session's own."""
        path = change.path
        if any(path == name or path.startswith(name + b"/") for name in self.keep):
            return "as asked"
        if path in self.start.index or change.after is None:
            return ""
        if _SECRET.search(path):
            return "it may hold secrets"
        if path in self.staged or any(name.startswith(path + b"/") for name in self.start.files):
            return ""  # staged, or in the way of a folder that was there
        if not is_under_source(path, source_folders(self.start.index)):
            return "no test sees it, so it is no part of the experiment"
        try:
            is_ours = os.lstat(os.fsencode(self.checkout) + b"/" + path).st_uid == os.getuid()
        except OSError:
            is_ours = True
        return "" if is_ours else "another user made it"
