"""The provenance of a run: which torch-spyre, torch, vLLM and Python, the checkout's git state, the environment. No import.

Every run records it, so it reads files only: metadata folders, uv.lock, .git. Two cheap `git` calls say head and dirt.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from debug_spyre.host.fingerprint import Installed, installed, installed_in, package_folder, pinned, search_path
from debug_spyre.host.git import SETTINGS
from debug_spyre.host.interpreter import choose
from debug_spyre.vocabulary.errors import DebugSpyreError

GIT_SECONDS = 5


def provenance(checkout: Path, python: str | None = None) -> dict[str, Any]:
    """Everything an escalation needs to know of the surroundings; what can't be told is None."""
    from debug_spyre.host.spyre_variables import listed_variables

    packages = _packages(checkout, python)
    return {
        "torch_spyre": torch_spyre_of(checkout, packages),
        "torch": version_of(packages, "torch"),
        "vllm": version_of(packages, "vllm"),
        "spyre_inference": version_of(packages, "spyre_inference", "vllm_spyre"),
        "python": python_version(packages),
        "host": {"arch": platform.machine(), "system": platform.system(), "kernel": platform.release()},
        "git": git_state(checkout),
        "ibm_packages": ibm_packages(),
        "environment": listed_variables(os.environ),
    }


def _packages(checkout: Path, python: str | None) -> Path | None:
    from debug_spyre.host.fingerprint import site_packages

    if python is not None:
        return site_packages(python)
    with suppress(DebugSpyreError):
        return choose(checkout).packages
    return None


def torch_spyre_of(checkout: Path, packages: Path | None) -> dict[str, Any]:
    """The installed torch-spyre against the pin: state pinned, local, drifted, unknown or absent, with both revisions."""
    found, pin = installed(packages), pinned(checkout)
    if found is None:
        state = "unknown" if package_folder(packages) else "absent"
        return {"state": state, "revision": None, "pin": pin, "version": None, "url": None, "path": None, "dirty": None}
    tree = _tree_of(found, found.source, checkout)
    local = git_state(tree) if tree else {}
    revision = found.commit or local.get("head")
    return {
        "state": "local" if tree else _state(found, revision, pin),
        "revision": revision,
        "pin": pin,
        "version": found.version,
        "url": _masked_url(found.url) or (str(tree) if tree else None),
        "path": str(found.source) if found.source else None,
        "dirty": local.get("dirty"),
    }


def _state(found: Installed, revision: str | None, pin: str | None) -> str:
    if found.is_local:
        return "local"
    if found.commit and pin:
        return "pinned" if _same(found.commit, pin) else "drifted"
    if pin and found.version == pin:
        return "pinned"
    return "drifted" if pin and revision else "unknown"


def _same(one: str, other: str) -> bool:
    short = min(len(one), len(other))
    return short >= 7 and one[:short] == other[:short]


def _masked_url(url: str | None) -> str | None:
    return re.sub(r"//[^/@]+@", "//***@", url) if url else None


def _tree_of(found: Installed | None, package: Path | None, checkout: Path | None) -> Path | None:
    """The folder that a local build came from: its record names it, else the git checkout that the package's folder lies in.

    The second is how a path file or PYTHONPATH makes a checkout importable; the plugin's own checkout is not meant.
    """
    if found is not None and found.is_local and found.url:
        from urllib.parse import unquote, urlparse

        folder = Path(unquote(urlparse(found.url).path))
        return folder if folder.is_dir() else None
    if package is None or (found is not None and found.commit) or not (package.parent / ".git").exists():
        return None
    return package.parent if checkout is None or package.parent.resolve() != checkout.resolve() else None


def revision_of(folder: Path, checkout: Path | None) -> str | None:
    """The revision of a package folder: of its installation record, else of the git checkout it came from."""
    found = installed_in((folder.parent,))
    if found is not None and found.commit:
        return found.commit
    tree = _tree_of(found, folder, checkout)
    return head_of(tree) if tree else None


def head_of(folder: Path) -> str | None:
    """The commit that .git says is checked out, read without git."""
    git = next((f / ".git" for f in (folder, *folder.parents) if (f / ".git").exists()), folder / ".git")
    try:
        if git.is_file():  # a worktree
            git = (git.parent / git.read_text(encoding="utf-8").partition(":")[2].strip()).resolve()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head or None
        name = head.partition(":")[2].strip()
        common = git / "commondir"
        root = (git / common.read_text(encoding="utf-8").strip()).resolve() if common.is_file() else git
        for home in (git, root):
            if (home / name).is_file():
                return (home / name).read_text(encoding="utf-8").strip()
        for line in (root / "packed-refs").read_text(encoding="utf-8").splitlines():
            if line.endswith(f" {name}"):
                return line.partition(" ")[0]
    except (OSError, UnicodeDecodeError):
        return None
    return None


def git_state(folder: Path) -> dict[str, Any]:
    """Head, branch and number of changed files. Another owner's checkout is read all the same, without changing any setting."""
    head = head_of(folder)
    state: dict[str, Any] = {"head": head, "branch": None, "dirty": None}
    told = _git(folder, "status", "--porcelain", "--branch", "--untracked-files=normal")
    if told is None:
        return state
    lines = told.splitlines()
    branch = re.match(r"## (?:No commits yet on )?([^.\s]+(?:\.[^.\s]+)*)", lines[0]) if lines else None
    state["branch"] = branch[1] if branch and "HEAD (no branch)" not in lines[0] else None
    state["dirty"] = sum(1 for line in lines if not line.startswith("##"))
    return state


def _git(folder: Path, *words: str) -> str | None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    try:
        done = subprocess.run(
            ["git", *settings, *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def version_of(packages: Path | None, *names: str) -> str | None:
    """The version of the first of these packages that is found there, by the name of its metadata folder."""
    folders = search_path(packages)
    for name in names:
        for record in (r for folder in folders for r in sorted(folder.glob(f"{name}-*.dist-info"))):
            return record.name.removesuffix(".dist-info").partition("-")[2]
    return None


def python_version(packages: Path | None) -> str | None:
    """The target's Python, from its environment's own note or the folder's name."""
    if packages is None:
        return None
    root = packages.parents[2] if len(packages.parents) > 2 else packages
    with suppress(OSError):
        text = (root / "pyvenv.cfg").read_text(encoding="utf-8")
        found = re.search(r"^version(?:_info)?\s*=\s*([\d.]+)", text, re.MULTILINE)
        if found:
            return found[1]
    if root == Path(sys.prefix):
        return platform.python_version()
    return packages.parent.name.removeprefix("python") or None


@cache
def ibm_packages() -> dict[str, str] | None:
    """Packages named ibm-* that the system's package database knows, with versions; None where there is no database."""
    status = Path("/var/lib/dpkg/status")
    if status.is_file():
        with suppress(OSError):
            text = status.read_text(encoding="utf-8", errors="replace")
            found = re.findall(r"^Package: (ibm-\S+)\n(?:.+\n)*?Version: (\S+)", text, re.MULTILINE)
            return dict(found)
    if any(Path(p).exists() for p in ("/var/lib/rpm", "/usr/lib/sysimage/rpm")):
        try:
            done = subprocess.run(
                ["rpm", "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\n", "ibm-*"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=GIT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        rows = (line.split(" ", 1) for line in done.stdout.decode("utf-8", "replace").splitlines() if " " in line)
        return {row[0]: row[1] for row in rows}
    return None


def as_text(seen: dict[str, Any]) -> str:
    """One line for the log: which torch-spyre, torch, vLLM, Python, and the checkout's state."""
    spyre = seen.get("torch_spyre") or {}
    revision = (spyre.get("revision") or "revision unknown")[:12]
    parts = [f"torch-spyre {revision} ({spyre.get('state')})"]
    parts += [f"{name} {seen[name]}" for name in ("torch", "vllm", "python") if seen.get(name)]
    git = seen.get("git") or {}
    if git.get("head"):
        parts.append(f"checkout {git['head'][:12]}" + (f" +{git['dirty']} changed" if git.get("dirty") else ""))
    return ", ".join(parts)
