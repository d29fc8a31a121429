"""From a package's files to its surface: every registration of every era, in one pass; Python, C++ sources and the table of 2026."""

from __future__ import annotations

import re
from collections.abc import Mapping

from debug_spyre.surface.finder import find_sites
from debug_spyre.surface.names import ATEN, OpName
from debug_spyre.surface.sites import Form, Site, Surface

_NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#[ \t]*define(?:[^\n\\]|\\.|\\\n)*', re.DOTALL | re.MULTILINE
)
_BLOCK = re.compile(r"TORCH_LIBRARY_(?:IMPL|FRAGMENT)\s*\(\s*(\w+)\s*(?:,\s*(\w+)\s*)?,\s*(\w+)\s*\)\s*\{")
_DEFINES = re.compile(r"TORCH_LIBRARY\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*\{")
_AUTOCAST = re.compile(r"KERNEL_PRIVATEUSEONE\s*\(\s*(\w+)\s*(?:,\s*(\w+)\s*)?,\s*(\w+)\s*\)")

# Registered on PrivateUse1 in C++ since spring 2026 (torch-spyre of 2026-06-24; file and line are of that revision).
KNOWN_SINCE = "2026-06-24"
KNOWN = (
    ("view", "csrc/spyre_views.cpp", 230),
    ("_unsafe_view", "csrc/spyre_views.cpp", 231),
    ("_reshape_alias", "csrc/spyre_views.cpp", 232),
    ("alias", "csrc/spyre_views.cpp", 233),
    ("as_strided", "csrc/spyre_views.cpp", 234),
    ("unfold", "csrc/spyre_views.cpp", 236),
    ("empty.memory_format", "csrc/spyre_mem.cpp", 772),
    ("empty_strided", "csrc/spyre_mem.cpp", 773),
    ("set_.source_Storage_storage_offset", "csrc/spyre_mem.cpp", 774),
    ("resize_", "csrc/spyre_mem.cpp", 776),
    ("_fused_sdp_choice", "csrc/attn_utils.cpp", 35),
)

# Of later versions (2026-08): there only if the Python part speaks of them.
KNOWN_LATER = ("broadcast_async", "all_gather_async", "all_reduce_async", "wait_work")
_LATER_FILE = "csrc/distributed/spyre_distributed.cpp"


def read_cpp(file: str, text: str) -> list[Site]:
    """Sites of one C++ file; comments don't count."""
    if "TORCH_LIBRARY" not in text and "KERNEL_PRIVATEUSEONE" not in text:
        return []
    clean = _NOISE.sub(_blank, text)
    sites = []
    for block in _BLOCK.finditer(clean):
        ns, key, variable = block.group(1), block.group(2), block.group(3)
        body = _body(clean, block.end())
        if key == "PrivateUse1":
            sites += _impls(file, clean, block.end(), body, ns=ns, variable=variable)
        elif key == "AutocastPrivateUse1":
            sites += _casts(file, clean, block.end(), body, ns)
        elif key is None:
            sites += _defs(file, clean, block.end(), body, ns=ns, variable=variable)
    for block in _DEFINES.finditer(clean):
        ns, variable = block.group(1), block.group(2)
        sites += _defs(file, clean, block.end(), _body(clean, block.end()), ns=ns, variable=variable)
    return sites


def known_sites(package: str, python: str) -> list[Site]:
    """The shipped list, for a package whose C++ sources are not there; `python` is its text."""
    sites = [
        Site(Form.CPP, _op("aten", name), f"{package}/{file}", line, f"as of {KNOWN_SINCE}", assumed=True)
        for name, file, line in KNOWN
    ]
    sites += [
        Site(Form.CPP, _op("spyre", name), f"{package}/{_LATER_FILE}", 1, "as of 2026-08-20", assumed=True)
        for name in KNOWN_LATER
        if f"spyre.{name}" in python
    ]
    return sites


def _blank(found: re.Match[str]) -> str:
    text = found.group(0)
    return text if text.startswith('"') else re.sub(r"[^\n]", " ", text)


def _body(text: str, start: int) -> str:
    depth, position = 1, start
    for brace in re.finditer(r'"(?:\\.|[^"\\\n])*"|[{}]', text[start:]):
        if brace.group(0) in "{}":
            depth += 1 if brace.group(0) == "{" else -1
        if depth == 0:
            position = start + brace.start()
            break
    else:
        position = len(text)
    return text[start:position]


def _op(ns: str, name: str) -> OpName:
    packet, _, overload = name.partition(".")
    return OpName(ns, packet, overload or "default")


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _impls(file: str, text: str, start: int, body: str, *, ns: str, variable: str) -> list[Site]:
    sites = []
    pattern = re.compile(rf'\b{variable}\s*\.\s*impl\s*\(\s*(?:TORCH_SELECTIVE_NAME\s*\(\s*)?"([^"]+)"([^;]*);')
    for found in pattern.finditer(body):
        name = found.group(1).rpartition("::")[2]
        if "makeFallthrough" in found.group(2):
            continue
        where = _line(text, start + found.start(1))
        sites.append(Site(Form.CPP, _op(ns, name.rstrip(".")), file, where, "C++"))
    return sites


def _casts(file: str, text: str, start: int, body: str, ns: str) -> list[Site]:
    return [
        Site(
            Form.AUTOCAST,
            OpName(ns, f.group(1), f.group(2) or "default"),
            file,
            _line(text, start + f.start()),
            f.group(3),
        )
        for f in _AUTOCAST.finditer(body)
    ]


def _defs(file: str, text: str, start: int, body: str, *, ns: str, variable: str) -> list[Site]:
    sites = []
    for found in re.finditer(rf'\b{variable}\s*\.\s*def\s*\(\s*"([\w.:]+)', body):
        name = found.group(1).rpartition("::")[2]
        sites.append(Site(Form.CUSTOM_OP, _op(ns, name), file, _line(text, start + found.start(1)), "C++ schema"))
    return sites


_ROW = re.compile(r"^-\s+operator_name:\s*['\"]?(\w+)")
_TEMPLATE = re.compile(r"^\s+template_name:\s*['\"]?(\w+)|^\s+template:\s*['\"]?(\w+)")
GENERATED = "generated"
HAND_WRITTEN = "custom"  # no template of that name: the kernel, if there is one, is written by hand


def read_rows(file: str, text: str, *, templates: frozenset[str] | None, python: bool) -> list[Site]:
    """Sites of the rows whose template exists; `python`: the generated kernels are Python and not C++."""
    sites = []
    name, line = "", 0
    for number, source in enumerate(text.splitlines(), 1):
        row, template = _ROW.match(source), _TEMPLATE.match(source)
        if row:
            name, line = row.group(1), number
        elif template and name:
            kind = template.group(1) or template.group(2)
            made = kind != HAND_WRITTEN if templates is None else kind in templates
            if made:
                form = Form.KERNEL if python else Form.CPP
                sites.append(Site(form, OpName(ATEN, name), file, line, f"{GENERATED} from template {kind}"))
            name = ""
    return sites


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
