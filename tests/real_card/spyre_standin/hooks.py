"""Remembers the OpSpecs of each bundle by its folder, from outside: no file of torch_spyre is changed.

The runtime (src/launch.cpp) installs this as soon as torch_spyre loads it.
"""

import functools
import importlib.machinery
import sys

GENERATOR = "torch_spyre._inductor.codegen.bundle"


def remember(module):
    """Let generate_bundle of this module tell us what it was given; wrong values of its own stay its own."""
    real = module.generate_bundle

    @functools.wraps(real)
    def generate_bundle(kernel_name, output_dir, specs, *rest, **named):
        made = real(kernel_name, output_dir, specs, *rest, **named)
        from spyre_standin import card

        pool = named.get("pool_size", rest[0] if rest else 0)
        card.PROGRAMS[output_dir] = card.Program(kernel_name, list(specs), pool)
        return made

    module.generate_bundle = generate_bundle


class _Loader:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        self.inner.exec_module(module)
        remember(module)


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name != GENERATOR:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


def install():
    """Once a process."""
    if GENERATOR in sys.modules:
        remember(sys.modules[GENERATOR])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
