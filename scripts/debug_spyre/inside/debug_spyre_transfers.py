"""Counts what goes between host and card where the backend moves it, not only where the dispatcher sees it.

torch_spyre moves tensors with `_C.copy_tensor`. Module.to and .to(device_layout=) call it past the dispatcher, fallbacks and the re-tiling of
an eager result call it inside an op. A backend without it is counted by its ops.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch._guards

NAME = "copy_tensor"
WHERE = ("torch_spyre._C", "torch_spyre.model_utils", "torch_spyre.ops.eager")
MARK = "_debug_spyre_counts"
COMPILER = ("torch/_inductor/fx_passes/joint_graph.py", "torch/_inductor/pattern_matcher.py")


class Transfers:
    """Tells `moved(way, tensor)` of each transfer; silent while the shadow copies for itself."""

    def __init__(self, moved: Callable[[str, torch.Tensor], None]) -> None:
        self.moved = moved
        self.counted = 0
        self.is_ours = False

    def watch(self) -> None:
        """Wrap the backend's function wherever it is already known by name; may be called again."""
        for name in WHERE:
            module = sys.modules.get(name)
            function = getattr(module, NAME, None)
            if function is not None and not hasattr(function, MARK):
                setattr(module, NAME, self._counting(function))

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def copy_tensor(source: Any, target: Any, *rest: Any, **named: Any) -> Any:
            self._saw(source, target)
            return function(source, target, *rest, **named)

        setattr(copy_tensor, MARK, True)
        return copy_tensor

    def _saw(self, source: Any, target: Any) -> None:
        if self.is_ours or is_compiling() or not all(isinstance(t, torch.Tensor) for t in (source, target)):
            return
        there = [t.device.type != "cpu" for t in (source, target)]
        if there[0] != there[1]:
            self.counted += 1
            self.moved("h2d" if there[1] else "d2h", target)


def is_compiling() -> bool:
    """A graph is being compiled: what the compiler tries out for itself is no transfer of the program."""
    if torch._guards.TracingContext.try_get() is not None:
        return True
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:  # its own examples are made outside a tracing context
        if frame.f_code.co_filename.endswith(COMPILER):
            return True
        frame = frame.f_back
    return False
