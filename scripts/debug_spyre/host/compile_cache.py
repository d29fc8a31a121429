"""Where Inductor keeps what it compiled, and torch-spyre its first-failure reports below it."""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

_NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")


def compile_cache(env: Mapping[str, str]) -> Path:
    """The folder that torch takes under this environment, by its own rule: a uid without a name (a pod's) included."""
    given = env.get("TORCHINDUCTOR_CACHE_DIR")
    if given:
        return Path(given)
    user = next((env[name] for name in _NAMES if env.get(name)), "") or _name_of(os.getuid())
    return Path(env.get("TMPDIR") or tempfile.gettempdir()) / ("torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid_{uid}"
