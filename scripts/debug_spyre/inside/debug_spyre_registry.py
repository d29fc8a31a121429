"""Asks the running registry what an installed or given torch_spyre registers. Starts no device.

Usage: python debug_spyre_registry.py QUESTION ANSWER; the question is {"folder", "stub": bool, "cpp": [["aten::mm", "file:line"], ...]},
the answer a JSON file. With `stub` a stand-in takes the place of `torch_spyre._C`, and the C++ kernels that the question names are
registered by it. Only the standard library and torch are imported here; what fails is told and not raised.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import debug_spyre_stub as stub  # type: ignore[import-not-found]

KEY = "PrivateUse1"
NAMESPACES = ("aten", "prims", "spyre", "_c10d_functional", "vllm")
PACKAGE = "torch_spyre"
PARTS = ("ops.eager", "ops.fallbacks", "_inductor.customops", "_inductor.decompositions", "_inductor.lowering")
_LACKS = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


class Registrations:
    """Every call of Library.impl for the device, with the place in the package that made it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[str, tuple[str, str]] = {}

    def watch(self, library: Any) -> None:
        """From now on."""
        original = library.impl

        def impl(this: Any, name: Any, function: Any, key: str = "", *more: Any, **named: Any) -> Any:
            if key == KEY or (not key and getattr(this, "dispatch_key", "") == KEY):
                full = name if isinstance(name, str) else name.name()
                full = full if "::" in full else f"{this.ns}::{full}"
                self.seen[full] = self.caller(function)  # a later one takes the place of an earlier
            return original(this, name, function, key, *more, **named)

        library.impl = impl

    def caller(self, function: Any) -> tuple[str, str]:
        """(kind, file:line): the outermost line of the registering module, and what its helpers are called."""
        frames = [
            (getattr(code, "co_qualname", code.co_name), f"{self.name(code.co_filename)}:{line}")
            for code, line in _stack()
            if self.inside(code.co_filename)
        ]
        words = " ".join(name for name, _ in frames[:4]).lower()
        at = next((place for name, place in frames if name == "<module>"), None)
        if "decomposition" in words or "dispatchkey" in words:
            kind = "decomposition"
        elif "fallback" in words:
            kind = "fallback"
        elif "inplace" in words:
            kind = "inplace-kernel"
        elif "torch_compile" in words:
            kind = "compiled-kernel"
        else:
            kind = "kernel"
        own = self.place(function)
        return kind, (own if kind in {"kernel", "decomposition"} and own else at or own or "")

    def place(self, function: Any) -> str:
        """Where a function of the package is written."""
        function = inspect.unwrap(function) if callable(function) else function
        for _ in range(4):
            code = getattr(function, "__code__", None)
            if code is not None and self.inside(code.co_filename):
                inner = [c.cell_contents for c in function.__closure__ or () if _filled(c)]
                wrapped = next((i for i in inner if inspect.isfunction(i) and i.__name__ not in _WRAPPERS), None)
                if "<locals>" in function.__qualname__ and wrapped is not None:
                    function = inspect.unwrap(wrapped)
                    continue
                return f"{self.name(code.co_filename)}:{code.co_firstlineno}"
            break
        return ""

    def inside(self, file: str) -> bool:
        """A file of the package."""
        return file.startswith(f"{self.folder}{os.sep}")

    def name(self, file: str) -> str:
        """The file as answers write it."""
        return f"{PACKAGE}/{os.path.relpath(file, self.folder)}"


_WRAPPERS = frozenset({"wrapper", "dispatch", "_wrapped"})


def _stack() -> list[tuple[Any, int]]:
    """Code and line of every frame, the innermost first; inspect.stack would look for all their sources."""
    found: list[tuple[Any, int]] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def load(troubles: list[str], soft: list[str]) -> None:
    """Run the package's own registration. `soft`: what was missing and does not matter for what is registered."""
    package = importlib.import_module(PACKAGE)
    autoload = getattr(package, "_autoload", None)
    trouble = patiently(autoload, soft) if autoload else ""
    if trouble and "already been registered" not in trouble:  # which a second try says
        soft.append(f"_autoload: {trouble}")
    for part in PARTS:
        if stub.exists(f"{PACKAGE}.{part.split('.')[0]}") and stub.exists(f"{PACKAGE}.{part}"):
            trouble = patiently(lambda part=part: importlib.import_module(f"{PACKAGE}.{part}"), soft)
            if trouble:
                troubles.append(f"{PACKAGE}.{part}: {trouble}"[:300])


def patiently(action: Any, soft: list[str]) -> str:
    """Do it; a name that this torch lacks is put there and it is done again. Returns what is wrong in the end."""
    for _ in range(20):
        try:
            action()
        except ImportError as error:
            lacks = _LACKS.search(str(error))
            module = sys.modules.get(lacks[2]) if lacks else None
            if module is None or not lacks or lacks[2].partition(".")[0] != "torch":
                return f"{type(error).__name__}: {error}"[:300]
            setattr(module, lacks[1], stub.Anything(lacks[1]))
            soft.append(f"this torch has no {lacks[2]}.{lacks[1]}")
            with contextlib.suppress(AttributeError):
                del action._ran
        except Exception as error:  # noqa: BLE001  any failure of a foreign import is an answer here
            return f"{type(error).__name__}: {error}"[:300]
        else:
            return ""
    return "too many names are missing"


class Compiled:
    """What Inductor does for the device: tables as they are inside the backend's own contexts."""

    def __init__(self, stack: contextlib.ExitStack, seen: Registrations) -> None:
        import torch._inductor.decomposition as upstream
        from torch._inductor import lowering

        own = _module("_inductor.lowering")
        made = _module("_inductor.decompositions")
        table: Any = dict(upstream.select_decomp_table())
        scoped = False
        if hasattr(own, "enable_spyre_lowerings"):
            scoped = _enter(stack, own.enable_spyre_lowerings())
        if hasattr(made, "get_spyre_decomp_table"):
            table = made.get_spyre_decomp_table()
        elif hasattr(made, "enable_spyre_decompositions"):
            _enter(stack, made.enable_spyre_decompositions(decomps=table))
        self.own_decompositions = getattr(made, "spyre_decompositions", {})
        self.own_lowerings = getattr(own, "spyre_lowerings", {})
        self.listed = set() if scoped else _overloads_in(getattr(_module("ops.fallbacks"), "fallback_ops", ()))
        self.decompositions, self.lowerings = table, lowering.lowerings
        self.fallbacks, self.places = lowering.fallbacks, seen
        kernel = _module("_inductor.spyre_kernel")
        classes = [
            c for _, c in inspect.getmembers(kernel, inspect.isclass) if c.__module__ == getattr(kernel, "__name__", "")
        ]
        self.handlers = sorted({n for c in classes if c.__name__.endswith("OpFuncs") for n in vars(c) if n[0] != "_"})
        resolve = getattr(_module("_inductor.split_multi_ops"), "_resolve_fx_target", None)
        self.alone = [name for name in self.handlers if resolve is not None and resolve(name) is None]
        self.refused = sorted({w for c in classes for w in _refused(vars(c).get("reduction"))})

    def of(self, op: Any) -> list[Any]:
        """[kind, place or detail] of one overload, in Inductor's order."""
        if op.name() in self.listed:
            return ["nothing", ""]
        mine = self.own_decompositions.get(op) or self.own_decompositions.get(op.overloadpacket)
        if self.listed and mine is not None:
            return ["decomposition", self.places.place(mine)]
        if self.listed and op in self.own_lowerings:
            return ["lowering", self.places.place(self.own_lowerings[op])]
        if op in self.decompositions:
            mine = self.own_decompositions.get(op)
            if mine is not None and self.decompositions[op] is mine:
                return ["decomposition", self.places.place(mine)]
            generic = getattr(getattr(self.decompositions[op], "func", None), "__name__", "")
            if generic == "_special_op_to_decompose_cia":
                return ["composite", ""]
            declines = _declines(self.decompositions[op])
            if not declines or op not in self.lowerings or op in self.fallbacks:
                return ["upstream-decomposition", "declines" if declines and op in self.fallbacks else ""]
        function = self.lowerings.get(op)
        if function is None:
            return ["nothing", ""]
        where = self.places.place(function)
        if where:
            return ["lowering", where]
        if op in self.fallbacks:
            return ["upstream-fallback", ""]
        return ["upstream-lowering", _handler(function) or "", _reduction(function) or ""]


def _enter(stack: contextlib.ExitStack, manager: Any) -> bool:
    """Enter a version's context; False where it has none and its own tables must be looked at."""
    if hasattr(manager, "__enter__"):
        stack.enter_context(manager)
        return True
    return False


def _overloads_in(ops: Any) -> set[str]:
    found: set[str] = set()
    for op in ops:
        names = (
            [getattr(op, n).name() for n in op.overloads()]
            if hasattr(op, "overloads")
            else [getattr(op, "name", lambda op=op: op)()]
        )
        found.update(names)
    return found


def _module(name: str) -> Any:
    return sys.modules.get(f"{PACKAGE}.{name}") or (
        importlib.import_module(f"{PACKAGE}.{name}") if stub.exists(f"{PACKAGE}.{name}") else None
    )


def _refused(method: Any) -> list[str]:
    code = getattr(method, "__code__", None)
    return [
        w
        for const in getattr(code, "co_consts", ())
        if isinstance(const, (tuple, frozenset))
        for w in const
        if isinstance(w, str)
    ]


def _cells(function: Any) -> dict[str, Any]:
    code = getattr(function, "__code__", None)
    closure = getattr(function, "__closure__", None) or ()
    return {n: c.cell_contents for n, c in zip(code.co_freevars if code else (), closure, strict=False) if _filled(c)}


def _declines(function: Any) -> bool:
    """A decomposition for some arguments only: it gives NotImplemented for the others, and the lowering has them."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code is not None and "NotImplemented" in code.co_names


def _handler(function: Any, depth: int = 0) -> str | None:
    """The pointwise handler that ops_wrapper closed over, inside the wrappers of make_pointwise."""
    cells = _cells(function)
    if depth > 6 or not cells:
        return None
    if function.__qualname__ == "ops_wrapper.<locals>.fn":
        return str(cells["name"])
    inner = (_handler(cells[key], depth + 1) for key in ("decomp_fn", "fn") if key in cells)
    return next((name for name in inner if name), None)


def _reduction(function: Any, depth: int = 0) -> str | None:
    """The kind of reduction that a lowering makes."""
    cells = _cells(function)
    if isinstance(cells.get("reduction_type"), str):
        return str(cells["reduction_type"])
    code = getattr(function, "__code__", None)
    if code is not None and "make_reduction" in code.co_names:
        kinds = [c for c in code.co_consts if isinstance(c, str) and c in {"any", "xor_sum"}]
        if kinds:
            return kinds[0]
    if code is not None and "var_mean_helper_" in code.co_names:
        return "welford_reduce"
    inner = (_reduction(cells[key], depth + 1) for key in ("decomp_fn", "fn") if key in cells and depth < 6)
    return next((name for name in inner if name), None)


def arguments(schema: Any, *, names: bool) -> list[Any]:
    """What two forms of one op have in common."""
    return [(a.name if names else "", str(a.type)) for a in schema.arguments if not a.is_out]


def mutates(schema: Any) -> bool:
    """In-place or out form."""
    return any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)


def forms_of(torch: Any, packet_name: str, namespace: str) -> list[Any]:
    """All overloads of a packet."""
    packet = getattr(getattr(torch.ops, namespace), packet_name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return []
    return [getattr(packet, name) for name in packet.overloads()]


def sibling(op: Any, forms: list[Any], *, out: bool) -> str | None:
    """The overload with the same signature that mutates nothing (or that has an out argument)."""
    for names in (True, False):
        mine = arguments(op._schema, names=names)
        for other in forms:
            fits = any(a.is_out for a in other._schema.arguments) if out else not mutates(other._schema)
            if other is not op and fits and arguments(other._schema, names=names) == mine:
                return str(other.name())
    return None


def overloads(
    torch: Any, compiled: Compiled, seen: Registrations, custom: dict[str, Any], cpp: dict[str, str]
) -> dict[str, Any]:
    """Every overload that the dispatcher knows, with what each mode finds."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    found: dict[str, Any] = {}
    names = {s.name for s in torch._C._jit_get_all_schemas() if s.name.partition("::")[0] in NAMESPACES}
    names |= {
        name.partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.partition("::")[0] in NAMESPACES
    }
    for name in sorted(names):
        namespace, _, packet = name.partition("::")
        forms = forms_of(torch, packet, namespace)
        for op in forms:
            full = op.name()
            if not torch._C._dispatch_has_kernel(full):
                continue
            implicit = has(full, "CompositeImplicitAutograd")
            row: dict[str, Any] = {"c": compiled.of(op)}
            if has(full, KEY):
                kind, place = seen.seen.get(full, ("cpp", cpp.get(full, "")))
                row["e"] = ["custom-op", custom[full]] if full in custom and kind != "fallback" else [kind, place]
            elif full in custom:
                row["e"] = ["custom-op", custom[full]]
            elif has(full, "CompositeExplicitAutogradNonFunctional"):
                homes = forms_of(torch, packet[:-1], namespace) if packet.endswith("_") else forms
                row["e"] = ["structured", sibling(op, homes or forms, out=True) or ""]
            elif has(full, "CompositeExplicitAutograd") or implicit:
                row["e"] = ["composite", ""]
            else:
                row["e"] = ["none", ""]
            row["i"] = implicit
            if mutates(op._schema):
                homes = forms_of(torch, packet[:-1], namespace) if packet.endswith("_") else forms
                row["f"] = sibling(op, homes, out=False)
            found[full] = row
    return found


def customs(seen: Registrations) -> dict[str, str]:
    """Custom ops that the package defines, with their places."""
    from torch._library.custom_ops import OPDEFS

    found = {}
    for definition in OPDEFS.values():
        place = seen.place(definition._init_fn)
        if place:
            found[definition._qualname] = place
    return found


def device_files() -> list[str]:
    """What of the card this process holds: nothing, unless an import took it."""
    held = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(entry.path)
                if "vfio" in target or target in os.environ.get("DEBUG_SPYRE_DEVICES", "").split(os.pathsep):
                    held.add(target)
    return sorted(held)


def main() -> None:
    """Read the question, write the answer."""
    question = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(question["folder"]).resolve()
    troubles: list[str] = []
    soft: list[str] = []
    import torch

    cpp = dict(question["cpp"]) if question["stub"] else {}
    libraries = stub.install(folder, list(cpp)) if question["stub"] else []
    seen = Registrations(folder)
    seen.watch(torch.library.Library)
    load(troubles, soft)
    with contextlib.ExitStack() as stack:
        compiled = Compiled(stack, seen)
        rows = overloads(torch, compiled, seen, customs(seen), cpp)
    answer = {
        "torch": torch.__version__, "stub": question["stub"], "troubles": troubles, "soft": soft, "holds": device_files(),
        "handlers": compiled.handlers, "refused": compiled.refused, "alone": compiled.alone, "overloads": rows,
    }  # fmt: skip
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")
    del libraries
    sys.stdout.flush()
    os._exit(0)  # nothing of the backend's own leave-taking is wanted here


if __name__ == "__main__":
    main()
