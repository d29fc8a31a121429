"""The table of generated kernels that torch-spyre had until spring 2026: YAML rows of an operator and a template."""

from __future__ import annotations

import re

from debug_spyre.surface.names import ATEN, OpName
from debug_spyre.surface.sites import Form, Site

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
