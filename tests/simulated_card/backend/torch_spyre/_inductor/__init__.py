"""The compiler side: torch.compile's inductor hands graphs with a spyre tensor to this package, all others are untouched."""

import importlib.abc
import importlib.machinery
import sys

from .errors import Unsupported

__all__ = ["Unsupported"]
_HOOKED = "torch._inductor.compile_fx"


class _AfterImport(importlib.abc.MetaPathFinder):
    """Wraps compile_fx when, and only when, somebody imports it: inductor costs a second."""

    def find_spec(self, name, path=None, target=None):
        if name != _HOOKED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            _wrap(module)

        spec.loader.exec_module = exec_module
        return spec


def _wrap(module):
    original = module.compile_fx
    if getattr(original, "_spyre", False):
        return

    def compile_fx(graph, example_inputs, *args, **kwargs):
        from torch_spyre._inductor import compile_graph
        from torch_spyre.execution.compile_once import raise_limit

        if compile_graph.concerns_spyre(graph, example_inputs):
            raise_limit()
            return compile_graph.compile_for_spyre(graph, example_inputs)
        return original(graph, example_inputs, *args, **kwargs)

    compile_fx._spyre = True
    module.compile_fx = compile_fx


def _autoload():
    from . import customops, decompositions  # noqa: F401

    if _HOOKED in sys.modules:
        _wrap(sys.modules[_HOOKED])
    else:
        sys.meta_path.insert(0, _AfterImport())
    decompositions.register_spyre_decompositions_via_dispatchkey()
