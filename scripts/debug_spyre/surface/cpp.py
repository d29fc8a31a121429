"""Registrations in C++ sources, and the list of them that stands in where only the compiled library is there."""

from __future__ import annotations

import re

from debug_spyre.surface.names import OpName
from debug_spyre.surface.sites import Form, Site

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
