"""Asks torch's dispatcher, with the backend loaded, which ops have a kernel on its key. Starts no device.

Usage: python debug_spyre_dispatcher.py FILE; the file holds {"packets": ["aten.mm", ...]}; the answer goes to stdout.
Only stdlib and torch are imported; what the backend refuses to load is reported, not raised.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from typing import Any

KEY = "PrivateUse1"
PARTS = (
    "fallbacks",
    "ops",
    "ops.fallbacks",
    "ops.eager",
    "codegen_ops",
    "_inductor.customops",
    "_inductor.decompositions",
    "_inductor.lowering",
)  # fmt: skip  of all eras: a version has some of them


def load_backend() -> list[str]:
    """Import what registers ops; returns what could not be imported."""
    troubles = []
    try:
        importlib.import_module("torch_spyre")._autoload()  # gives the device its name; starts no runtime
    except AttributeError:
        pass
    except Exception as error:  # noqa: BLE001  any failure of a foreign import is an answer here
        troubles.append(f"torch_spyre: {type(error).__name__}: {error}"[:300])
    for part in PARTS:
        if not exists(f"torch_spyre.{part}"):
            continue
        try:
            module = importlib.import_module(f"torch_spyre.{part}")
        except Exception as error:  # noqa: BLE001  any failure of a foreign import is an answer here
            troubles.append(f"torch_spyre.{part}: {type(error).__name__}: {error}"[:300])
            continue
        install = getattr(module, "_register_spyre_dispatchkey_kernels_permanently", None)
        if install is not None:
            try:
                install()
            except Exception as error:  # noqa: BLE001
                troubles.append(f"torch_spyre.{part}: {type(error).__name__}: {error}"[:300])
    return troubles


def exists(name: str) -> bool:
    """Whether this version has such a module."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, AttributeError, ValueError):
        return False


def overloads(torch: Any, name: str) -> dict[str, Any] | None:
    """Overload to what the dispatcher has for it; None where there is no such op."""
    namespace, _, packet_name = name.partition(".")
    try:
        packet = getattr(getattr(torch.ops, namespace), packet_name)
    except AttributeError:
        return None
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    found = {}
    for overload in packet.overloads():
        full = f"{namespace}::{packet_name}" + ("" if overload == "default" else f".{overload}")
        if not torch._C._dispatch_has_kernel(full) or "schema: (none)" in torch._C._dispatch_dump(full):
            continue
        found[overload] = {
            "own": has(full, KEY),
            "explicit": has(full, "CompositeExplicitAutograd"),
            "implicit": has(full, "CompositeImplicitAutograd"),
        }
    return found


def main() -> None:
    """Read the question, print the answer."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        question = json.load(stream)
    import torch

    troubles = load_backend()
    answer = {name: overloads(torch, name) for name in question["packets"]}
    print("\n" + json.dumps({"torch": torch.__version__, "troubles": troubles, "packets": answer}))


if __name__ == "__main__":
    main()
