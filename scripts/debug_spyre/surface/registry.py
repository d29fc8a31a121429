"""From a package's files to its surface: every registration of every era, in one pass over the text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from debug_spyre.surface.cpp import known_sites, read_cpp
from debug_spyre.surface.finder import find_sites
from debug_spyre.surface.rows import read_rows
from debug_spyre.surface.sites import Site, Surface

_USES_COMPILED = re.compile(r"torch_spyre\._C\b|from \.+_C import|from \.+ import _C\b")
_ROWS = "Metadata.yaml"


def read_surface(files: Mapping[str, str], *, compiled: bool = False) -> Surface:
    """The surface of a package. `files`: path beginning with the package's name, and text.

    `compiled`: the package is meant to have a compiled part; where its Python uses one and no C++ source is among the
    files, the shipped list stands in.
    """
    python = {file: text for file, text in files.items() if file.endswith(".py")}
    found = find_sites(python)
    sites, warnings = list(found.sites), list(found.warnings)
    for file, text in files.items():
        if file.endswith((".cpp", ".cc", ".h")):
            sites += read_cpp(file, text)
    sites += _generated(files)
    has_cpp = any(file.endswith(".cpp") for file in files)
    package = next(iter(sorted(files)), "torch_spyre").partition("/")[0]
    if compiled and not has_cpp and any(_USES_COMPILED.search(text) for text in files.values()):
        if f"{package}/ops/eager.py" in files:
            sites += known_sites(package, "\n".join(files.values()))
        else:  # older: most kernels were C++ and generated
            warnings.append(
                f"{package}: its kernels are in the compiled part, whose sources are not here: eager answers lack them"
            )
    return Surface(
        sites=_unique(sites),
        unresolved=tuple(dict.fromkeys(found.unresolved)),
        warnings=tuple(warnings),
        files=len(python),
        lines=sum(text.count("\n") for text in python.values()),
    )


def _generated(files: Mapping[str, str]) -> list[Site]:
    sites: list[Site] = []
    for file, text in files.items():
        if file.rpartition("/")[2] != _ROWS:
            continue
        templates = {f.rpartition("/")[2].partition(".")[0]: t for f, t in files.items() if f.endswith(".jinja2")}
        python = any("register_kernel" in t for t in templates.values())
        sites += read_rows(file, text, templates=frozenset(templates) or None, python=python)
    return sites


def _unique(sites: list[Site]) -> tuple[Site, ...]:
    seen: dict[tuple[object, ...], Site] = {}
    for site in sites:
        seen.setdefault((site.form, site.op, site.file, site.line, site.listed_only), site)
    return tuple(sorted(seen.values(), key=lambda s: (str(s.op), s.file, s.line, s.form)))
