"""The calls, lists and tables by which torch-spyre registered ops, over all its eras."""

from __future__ import annotations

import re

from debug_spyre.surface.sites import Form

DEVICES = {"spyre", "privateuseone", "PrivateUse1"}
INTERESTING = re.compile(
    r"register_|custom_op|triton_op|fallback_ops|\.impl\(|lowerings\s*\[|lowerings\.pop|make_fallback|_to_exclude|remove_decomp|py_impl"
    r"|torch\.nn\.functional\.\w+\s*=[^=]|torch\.\w+\s*=[^=]|Tensor\.\w+\s*=[^=]|\.define\(|inplaceable_ops|mark_lx_safe|_meta_ops"
)
# the call's name: the form, how it is said, whether it counts in compiled graphs only
CALLS = {
    "register_torch_compile_kernel": (Form.COMPILED_KERNEL, "", False),
    "register_inplace_kernels": (Form.INPLACE_KERNEL, "derived from the functional form", False),
    "register_fallback_default": (Form.FALLBACK, "", False),
    "register_fallback": (Form.FALLBACK, "", False),
    "register_fallback_over_decomp": (Form.FALLBACK, "over a decomposition", True),
    "make_fallback": (Form.FALLBACK, "make_fallback", True),
    "register_spyre_decomposition": (Form.DECOMPOSITION, "", False),
    "register_spyre_decompositions": (Form.DECOMPOSITION, "", False),
    "register_spyre_decompositions_via_dispatchkey": (Form.DECOMPOSITION, "eager only", False),
    "register_decomposition": (Form.DECOMPOSITION, "raw", False),
    "register_spyre_lowering": (Form.LOWERING, "", False),
    "register_lowering": (Form.LOWERING, "", False),
    "unregister_lowering": (Form.EXCLUDED, "lowering", False),
    "unregister_lowerings": (Form.EXCLUDED, "lowering", False),
    "remove_decompositions": (Form.EXCLUDED, "decomposition", False),
    "register_graph_pattern": (Form.PATTERN, "graph rewrite", False),
    "register_lowering_pattern": (Form.PATTERN, "graph rewrite", False),
    "mark_lx_safe": (Form.MARK, "scratchpad-safe", False),
    "_register_effectful_op": (Form.MARK, "has effects", False),
    "register_kernel": (Form.KERNEL, "", False),
    "py_impl": (Form.KERNEL, "py_impl", False),
    "impl": (Form.KERNEL, "Library.impl", False),
    "custom_op": (Form.CUSTOM_OP, "", False),
    "triton_op": (Form.CUSTOM_OP, "", False),
    "define": (Form.CUSTOM_OP, "schema only", False),
}
LISTS = (
    (re.compile(r"decomp\w*_to_(?:exclude|remove)$"), Form.EXCLUDED, "decomposition, by {}"),
    (re.compile(r"fallback_ops$"), Form.FALLBACK, "in {}"),
    (re.compile(r"_meta_ops$"), Form.FAKE, "in {}"),
)
TABLES = {"lowerings": Form.LOWERING, "decompositions": Form.DECOMPOSITION, "inplaceable_ops": Form.MARK}
PATCHED = {"torch.nn.functional", "torch.Tensor", "torch.linalg", "torch"}
