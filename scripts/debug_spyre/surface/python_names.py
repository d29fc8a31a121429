"""Python's names for ops: methods, operators, modules and functions that are called otherwise than the op behind them."""

from __future__ import annotations

import re

_MODULES = {
    "CrossEntropyLoss": "cross_entropy_loss", "NLLLoss": "nll_loss_nd", "MSELoss": "mse_loss", "Softmax": "softmax.int",
    "LogSoftmax": "log_softmax.int", "BatchNorm1d": "batch_norm", "BatchNorm2d": "batch_norm", "MaxPool2d": "max_pool2d",
    "SiLU": "silu", "GELU": "gelu", "ReLU": "relu", "PReLU": "prelu", "ELU": "elu", "RMSNorm": "rms_norm", "Hardswish": "hardswish",
}  # fmt: skip
_METHODS = {
    "float": "to.dtype", "half": "to.dtype", "bfloat16": "to.dtype", "int": "to.dtype", "long": "to.dtype", "bool": "to.dtype",
    "double": "to.dtype", "type": "to.dtype", "cpu": "to.device", "tolist": "_local_scalar_dense", "masked_fill": "masked_fill",
}  # fmt: skip
_OPERATORS = {
    "getitem": "index.Tensor", "setitem": "index_put_", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "invert": "bitwise_not", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "pos": "positive",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "float": "item", "int": "item", "bool": "item",
}  # fmt: skip
_FUNCTIONS = {
    "cross_entropy": "cross_entropy_loss", "sdpa": "scaled_dot_product_attention", "nll_loss": "nll_loss_nd",
    "softmax": "softmax.int", "log_softmax": "log_softmax.int",
}  # fmt: skip
_NAME = re.compile(
    r"(?:torch\.)?(?:(?P<module>nn)\.(?P<class>[A-Z]\w*)|(?P<operator>operator)\.(?P<op>\w+?)_?"
    r"|(?P<tensor>Tensor|[a-z])\.(?:__(?:[ri](?=\w{3,}__))?(?P<dunder>\w+?)__|(?P<method>\w+))"
    r"|(?P<family>linalg|fft|special)\.(?P<function>\w+)|(?P<home>F|nn\.functional)\.(?P<inner>\w+))(?:\(.*\))?$"
)


def op_behind(word: str) -> str | None:
    """The aten name of a Python spelling, with an overload where only one can be meant; None where it is no such spelling."""
    if word in {"sdpa", "F.sdpa"}:
        return _FUNCTIONS["sdpa"]
    found = _NAME.fullmatch(word)
    if found is None:
        return None
    part = found.groupdict()
    if part["class"]:
        return _MODULES.get(part["class"]) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", part["class"]).lower()
    if part["op"] or part["dunder"]:
        name = part["op"] or part["dunder"]
        return _OPERATORS.get(name, name)
    if part["method"]:
        return _METHODS.get(part["method"]) or (
            part["method"] if part["tensor"] == "Tensor" or part["method"] == "item" else None
        )
    if part["function"]:
        return f"{part['family']}_{part['function']}"
    return _FUNCTIONS.get(part["inner"], part["inner"])
