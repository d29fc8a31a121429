"""Whether layers are compiled. vLLM's own configuration is used where vLLM is installed; without it this module stands in.

`None` is not `NONE`: a layer is compiled only where the mode is STOCK_TORCH_COMPILE, so a mode that nobody set stays eager.
"""

import contextlib
import enum

import torch


class CompilationMode(enum.IntEnum):
    """The two modes that the plugin knows; the numbers are vLLM's."""

    NONE = 0
    STOCK_TORCH_COMPILE = 1


RECOMPILES = 100_000
_chosen: list[CompilationMode | None] = [None]


@contextlib.contextmanager
def compilation(mode: CompilationMode | None):
    """Use this mode for layers that are made in the block."""
    _chosen.append(mode)
    try:
        yield
    finally:
        _chosen.pop()


def current_mode() -> CompilationMode | None:
    """The mode that was chosen here, else vLLM's, else none."""
    if _chosen[-1] is not None:
        return _chosen[-1]
    try:
        from vllm.config import get_current_vllm_config

        mode = get_current_vllm_config().compilation_config.mode
    except (ImportError, AssertionError):  # no vLLM, or none configured
        return None
    return None if mode is None else CompilationMode(min(int(mode), 1))


def maybe_compile(fn, mode: CompilationMode | None = None):
    """`fn` compiled if the mode asks for it; shapes are fixed, so each new one compiles anew."""
    mode = current_mode() if mode is None else mode
    if mode != CompilationMode.STOCK_TORCH_COMPILE:
        return fn
    raise_recompile_limit()
    return torch.compile(fn, dynamic=False)


def raise_recompile_limit() -> None:
    """Past dynamo's limit of eight a function runs eagerly without a word, and what it stores leaves the card."""
    import torch._dynamo

    config = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, RECOMPILES)
    config.accumulated_recompile_limit = max(config.accumulated_recompile_limit, RECOMPILES)
