"""A call as a person types it: aten.mean.dim 'f16[8,513]' '[-1]' True, or dtype=torch.float16 for keyword arguments."""

from __future__ import annotations

import ast
import re

from debug_spyre.examine.call import Arg, Call, Tensor, Word
from debug_spyre.vocabulary.errors import UsageError

SHORT = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip
_TENSOR = re.compile(
    r"(?P<dtype>[a-z0-9_]+)\[(?P<shape>[\d, ]*)\](?:@(?P<stride>[\d, ]+))?(?:\+(?P<offset>\d+))?(?:<(?P<high>\d+))?"
)
_NAME = re.compile(r"(?:torch\.ops\.)?(?P<name>[a-z_0-9]+(?:\.|::)[A-Za-z_0-9]+(?:\.[A-Za-z_0-9]+)?)")
HINT = "debug-spyre repro --op aten.mean.dim 'f16[8,513]' '[-1]' True"


def read_call(op: str, words: list[str], *, example: str = HINT) -> Call:
    """The call that the words mean. A tensor is DTYPE[SHAPE], with @STRIDES, +OFFSET or <HIGH (integers) behind it.

    `example` is a right call of the verb that reads.

    Raises:
        UsageError: a word is neither a tensor nor a Python literal nor a torch word.
    """
    try:
        return _call(op, words)
    except UsageError as error:
        raise UsageError(error.what, next=example) from error


def _call(op: str, words: list[str]) -> Call:
    named = _NAME.fullmatch(op)
    if not named:
        raise UsageError(f"{op!r} is no op: NAMESPACE.NAME.OVERLOAD", next=HINT)
    name = named["name"].replace("::", ".")
    if name.count(".") == 1:
        name += ".default"
    args: list[Arg] = []
    kwargs: dict[str, Arg] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key.isidentifier():
            kwargs[key] = read_word(value)
        elif kwargs:
            raise UsageError(f"{word!r} stands behind a keyword argument", next=HINT)
        else:
            args.append(read_word(word))
    return Call(name, tuple(args), kwargs)


def read_word(word: str) -> Arg:
    """One argument.

    Raises:
        UsageError: it is of no known form.
    """
    found = _TENSOR.fullmatch(word)
    if found and SHORT.get(found["dtype"], found["dtype"]) in SHORT.values():
        return _tensor(found)
    if word.startswith("torch.") and word.replace(".", "").replace("_", "").isalnum():
        return Word(word)
    try:
        return _frozen(ast.literal_eval(word))
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise UsageError(f"{word!r} is neither a tensor (f16[8,64]) nor a Python value", next=HINT) from error


def _tensor(found: re.Match[str]) -> Tensor:
    shape = _numbers(found["shape"])
    stride = _numbers(found["stride"]) if found["stride"] else None
    if stride is not None and len(stride) != len(shape):
        raise UsageError(f"{found.group()!r} has {len(shape)} dimensions and {len(stride)} strides", next=HINT)
    return Tensor(
        shape=shape,
        dtype=SHORT.get(found["dtype"], found["dtype"]),
        stride=stride,
        offset=int(found["offset"] or 0),
        high=int(found["high"] or 2),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.replace(" ", "").split(",") if part)


def _frozen(value: object) -> Arg:
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise UsageError(f"{value!r} can't be an argument", next=HINT)
