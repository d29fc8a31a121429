"""What a fault is: a name, parameters, and hooks at the few places where the card can go wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Parameter:
    """A value of a fault; `choices` (a tuple or a range) are what a draw takes from."""

    name: str
    default: Any
    text: str
    choices: Sequence = ()

    def convert(self, value):
        if isinstance(self.default, bool):
            return str(value).lower() in {"1", "true", "yes"}
        return type(self.default)(value)

    def draw(self, rng):
        return rng.choice(self.choices) if self.choices else self.default


def op_parameter(default, *choices):
    return Parameter(
        "op", default, "op by base name or overload, `a+b` for several, `*` for every one", choices or (default,)
    )


def draw(fault, rng, **fixed):
    """A specification of this fault with its free parameters drawn by `rng` (a random.Random)."""
    from torch_spyre import faults

    cls = faults.CATALOGUE[fault] if isinstance(fault, str) else fault
    values = {p.name: fixed.get(p.name, p.draw(rng)) for p in cls.parameters}
    return ":".join([cls.name, *(f"{k}={v}" for k, v in values.items())])


def base_of(name):
    """`aten::mean.dim` -> `mean`."""
    return name.partition("::")[2].partition(".")[0]


def names_op(wanted, name):
    """Whether `mean`, `mean.dim`, `aten.mean` or `a+b` means the op `aten::mean.dim`; `*` means all but copies."""
    short = name.partition("::")[2]
    for word in wanted.split("+"):
        word = word.removeprefix("torch.ops.").removeprefix("aten.").removeprefix("spyre.").removesuffix(".default")
        if word in {short, base_of(name)} or (word == "*" and not short.startswith("copy_")):
            return True
    return False


class Fault:
    """Base of all; a subclass sets name, text and parameters and overrides the hooks that it needs."""

    name = ""
    text = ""
    parameters: tuple = ()
    when_compiling = False

    def __init__(self, **values):
        known = {p.name: p for p in self.parameters}
        for key in values:
            if key not in known:
                raise ValueError(f"fault {self.name}: no parameter {key!r}; there are {', '.join(known) or 'none'}")
        for key, parameter in known.items():
            setattr(self, key, parameter.convert(values.get(key, parameter.default)))

    def __repr__(self):
        return ":".join([self.name, *(f"{p.name}={getattr(self, p.name)}" for p in self.parameters)])

    def applies(self, call):
        return hasattr(self, "op") and names_op(self.op, call.name) and self.matches(call)

    def matches(self, call):
        return True

    def before(self, call):
        """May raise, or change the call's arguments."""

    def after(self, call, result):
        """May change the result."""
        return result

    def ran(self, call, result):
        """Told of every launch."""

    def refuses(self, stage, name, output, inputs):
        return False

    def fallback_arguments(self, name, args):
        return args

    def started(self):
        """Told when the process has got the card."""


def main_tensor(result):
    """The first tensor of a result."""
    if isinstance(result, torch.Tensor):
        return result
    return next((r for r in result if isinstance(r, torch.Tensor)), None) if isinstance(result, (list, tuple)) else None


class ResultFault(Fault):
    """A fault that changes the first tensor of a result, in a copy."""

    def after(self, call, result):
        tensor = main_tensor(result)
        if tensor is None or not self.touches(call, tensor):
            return result
        changed = self.change(call, tensor.clone())
        if isinstance(result, torch.Tensor):
            return changed
        return type(result)([changed if r is tensor else r for r in result])

    def touches(self, call, tensor):
        return True

    def change(self, call, tensor):
        raise NotImplementedError
