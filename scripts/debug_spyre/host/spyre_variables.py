"""Environment variables that change what Spyre does, which of them may be shown, and where Inductor keeps what it compiled."""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from debug_spyre.host.fingerprint import package_folder
from debug_spyre.vocabulary.masking import mask

FIRST_FAILURE = "TORCH_SPYRE_FFDC"


def known_switches(packages: Path | None, names: Iterable[str]) -> frozenset[str]:
    """Those of these variables that the torch_spyre in this site-packages folder reads; empty where there is none."""
    folder = package_folder(packages) if packages else None
    return switches_in(folder, names) if folder else frozenset()


def switches_in(folder: Path, names: Iterable[str]) -> frozenset[str]:
    """The same for a torch_spyre folder."""
    wanted = {name.encode() for name in names}
    found: set[bytes] = set()
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            if name.endswith(".py") and found != wanted:
                with suppress(OSError):
                    text = (Path(here) / name).read_bytes()
                    found |= {switch for switch in wanted - found if switch in text}
    return frozenset(name.decode() for name in found)


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


LISTED = (
    "AIU_WORLD_SIZE", "SPYRE_DEVICES", "SPYRE_VISIBLE_DEVICES", "LOCAL_RANK", "RANK", "WORLD_SIZE",
    "PCIDEVICE_IBM_COM_AIU_PF", "FLEX_DEVICE", "SENLIB_DEVEL_CONFIG_FILE",
    "SENCORES", "LX_PLANNING", "CO_OPTIMIZING_LX_PLANNING", "LX_BOUNDARY_CLONES", "DXP_LX_FRAC_AVAIL",
    "CHUNK_LARGE_TENSORS", "GLOBAL_STICK_OPTIMIZER", "UNROLL_LOOPS", "BUNDLE_SYMBOLIC_ARGS", "MAX_BUCKETS",
    "MIN_DEFAULT_GRANULARITY", "IS_INDUCTOR_SPAWNED_SUBPROCESS", "DUMP_SPYRE_CODE", "LAYOUT_SOLVER",
    "HBM_POOL_PLANNING", "FRONTEND_POOL_ALLOCATION", "ENABLE_LX_CONTEXT_SWITCHING", "KTIR_DEVICE_MLIR", "LIB_VERSION_FILE",
    "DTCOMPILER_KEEP_EXPORT", "DTCOMPILER_EXPORT_DIR", "DEEPRT_EXPORT_DIR", "USE_SPYRE_PROFILER", "USE_SPYRE_CCL",
    "TORCH_LOGS", "TORCH_COMPILE_DEBUG", "TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_FORCE_DISABLE_CACHES",
    "TORCHDYNAMO_DISABLE", "TORCH_DEVICE_BACKEND_AUTOLOAD", "PYTHONWARNINGS", "PYTHONPATH", "PYTEST_ADDOPTS",
    "UV_NO_SYNC", "UV_FROZEN", "UV_PROJECT_ENVIRONMENT", "VIRTUAL_ENV", "OMP_NUM_THREADS",
)  # fmt: skip
PREFIXES = (
    "SPYRE_",
    "TORCH_SPYRE_",
    "TORCH_SENDNN_",
    "DT_",
    "DTLOG_",
    "AIU_",
    "VLLM_",
    "FLEX_",
    "SENLIB_",
    "PCIDEVICE_IBM_",
)
_SECRET = re.compile(r"TOKEN|SECRET|PASS(WORD|WD)?|CREDENTIAL|API_?KEY|PRIVATE|AUTH|COOKIE|_KEY$|^KEY$", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"//[^/\s:@]+:[^/\s@]+@|\b(?:hf_|ghp_|gho_|github_pat_|sk-|xox[bap]-)\w{8,}|eyJ[\w-]{20,}")
MASK = "***"


def is_listed(name: str) -> bool:
    """Whether the variable changes what Spyre does."""
    return name in LISTED or name.startswith(PREFIXES)


def shown(name: str, value: str) -> str:
    """The value, or a mask where the name or the value looks like a secret."""
    return MASK if _SECRET.search(name) or _SECRET_VALUE.search(value) or mask(value) != value else value


def listed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The listed variables that are set, sorted, secrets masked."""
    return {name: shown(name, value) for name, value in sorted(environment.items()) if is_listed(name)}
