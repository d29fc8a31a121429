"""From a package's files to its surface: every registration of every era, in one pass over the text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from debug_spyre.surface.cpp import known_sites, read_cpp
from debug_spyre.surface.modules import Package
from debug_spyre.surface.rows import read_rows
from debug_spyre.surface.sites import Site, Surface

_EAGER_LOOP = re.compile(r"^( *)for .* in (\w*decompositions\w*)\.items\(\):\n((?:\1 +.*\n|\s*\n)+)", re.MULTILINE)
_WINS = re.compile(r"\.update\(\s*spyre_decompositions\s*\)")
_TRACKED = re.compile(r"^\s*fallback_ops\b.*=|\bfallback_ops\.append", re.MULTILINE)
_SKIP = re.compile(r"['\"](Tensor|dtype|Dimname)['\"] (?:not )?in \w+")
_RULES = {"Tensor": "schema-lacks", "dtype": "name-has", "Dimname": "schema-has"}
_USES_COMPILED = re.compile(r"torch_spyre\._C\b|from \.+_C import|from \.+ import _C\b")
_ROWS = "Metadata.yaml"


def read_surface(files: Mapping[str, str], *, compiled: bool = False) -> Surface:
    """The surface of a package. `files`: path beginning with the package's name, and text.

    `compiled`: the package is meant to have a compiled part; where its Python uses one and no C++ source is among the
    files, the shipped list stands in.
    """
    recorder = Package(files).run()
    sites = list(recorder.sites)
    cpp = [
        site for file, text in files.items() if file.endswith((".cpp", ".cc", ".h")) for site in read_cpp(file, text)
    ]
    has_cpp = any(file.endswith(".cpp") for file in files)
    package = next(iter(sorted(files)), "torch_spyre").partition("/")[0]
    sites += cpp
    sites += _generated(files)
    compiled = compiled and any(_USES_COMPILED.search(text) for text in files.values())
    warnings = list(recorder.warnings)
    if compiled and not has_cpp and f"{package}/ops/eager.py" in files:
        sites += known_sites(package, "\n".join(files.values()))
    elif compiled and not has_cpp:  # older: most kernels were C++ and generated
        warnings.append(
            f"{package}: its kernels are in the compiled part, whose sources are not here: eager answers lack them"
        )
    python = {file: text for file, text in files.items() if file.endswith(".py")}
    eager = [loop for text in python.values() if "decomposition" in text for loop in _eager_loops(text)]
    return Surface(
        sites=_unique(sites),
        unresolved=tuple(dict.fromkeys(recorder.unresolved)),
        handlers=dict(recorder.handlers),
        handler_class=recorder.handler_class,
        warnings=tuple(warnings),
        installs_eager=bool(eager),
        packets_too="whole" in eager,
        decomposition_wins=any(_WINS.search(text) for text in python.values()),
        tracks_fallbacks=any(_TRACKED.search(text) for text in python.values()),
        skips=tuple(skip for text in python.values() for skip in _skips(text)),
        catch_all=recorder.catch_all,
        has_cpp=has_cpp,
        files=len(python),
        lines=sum(text.count("\n") for text in python.values()),
    )


def _skips(text: str) -> list[tuple[str, str]]:
    """The conditions under which an overload of a packet gets no compiled kernel: (schema-lacks, schema-has or name-has, word)."""
    if "def register_torch_compile_kernel" not in text:
        return []
    return [(_RULES[word], word) for word in dict.fromkeys(_SKIP.findall(text))]


def _eager_loops(text: str) -> list[str]:
    """Loops that install decompositions as kernels of the device's key: `whole` where packets count as well."""
    if "PrivateUse1" not in text:
        return []
    found = []
    for _, table, body in _EAGER_LOOP.findall(text):
        if ".impl(" in body:
            found.append("whole" if "dispatchkey" not in table and "OpOverload)" not in body else "overloads")
    return found


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
