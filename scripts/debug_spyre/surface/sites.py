"""Where ops are registered: frozen sites out of source text, and what could not be resolved, never dropped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from debug_spyre.surface.names import OpName


class Form(StrEnum):
    """What a site does. The first group is what `op --json` calls a site; the second is listed as related."""

    COMPILED_KERNEL = "compiled-kernel"
    KERNEL = "kernel"
    INPLACE_KERNEL = "inplace-kernel"
    FALLBACK = "fallback"
    DECOMPOSITION = "decomposition"
    EXCLUDED = "excluded"
    LOWERING = "lowering"
    CUSTOM_OP = "custom-op"
    CPP = "cpp"

    OTHER_DEVICE = "other-device"  # a kernel for the CPU, say
    PATCH = "patch"  # a Python function replaced
    FAKE = "fake"  # a shape function
    PATTERN = "pattern"  # a graph rewrite
    MARK = "mark"  # metadata of a compiler pass
    AUTOCAST = "autocast"
    MODEL_FALLBACK = "model-fallback"


SITES = frozenset(list(Form)[:9])


@dataclass(frozen=True, slots=True)
class Site:
    """One registration of one op, or of all overloads of a packet."""

    form: Form
    op: OpName
    file: str
    line: int
    detail: str = ""  # how it was written, where that matters
    notes: tuple[str, ...] = ()  # what its body shows: int64, cpu, cpu-in-a-branch, warns, ...
    compiled_only: bool = False
    listed_only: bool = False  # in the list of fallback ops, without a kernel of its own
    assumed: bool = False  # from the shipped list of compiled registrations

    @property
    def place(self) -> str:
        """file:line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A registration whose op could not be told from the text alone."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Surface:
    """Everything that a package registers, as far as its text tells."""

    sites: tuple[Site, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    warnings: tuple[str, ...] = ()  # files that could not be read
    files: int = 0
    lines: int = 0
