"""Coordinates: integer expressions of sympy over the points of an iteration space, evaluated exactly."""

from functools import reduce
from operator import add, mul

import numpy as np
import sympy

from spyre_standin.formats import CardError


def evaluate(expression, points):
    """The expression's values. `points` gives each symbol an array, and under "indirect" how to read an index tensor."""
    e = sympy.sympify(expression)
    if e.is_Integer:
        return int(e)
    if e.is_Symbol:
        if e.name not in points:
            raise CardError(f"no value for the symbol {e}")
        return points[e.name]
    name = type(e).__name__
    if name == "IndirectAccess":
        return points["indirect"](str(e.args[0]))
    if name == "floor":
        above, below = sympy.fraction(sympy.together(e.args[0]))
        return evaluate(above, points) // evaluate(below, points)
    if name not in _COMBINE:
        raise CardError(f"can't evaluate {name} in {e}")
    return _COMBINE[name](*(evaluate(part, points) for part in e.args))


_COMBINE = {
    "Add": lambda *parts: reduce(add, parts),
    "Mul": lambda *parts: reduce(mul, parts),
    "Mod": lambda a, b: a % b,
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "ModularIndexing": lambda a, b, c: a // b % c,
    "Min": lambda *parts: reduce(np.minimum, parts),
    "Max": lambda *parts: reduce(np.maximum, parts),
}


def space(sizes):
    """One array a dimension, shaped so that they broadcast to the whole iteration space."""
    rank = len(sizes)
    return [
        np.arange(n, dtype=np.int64).reshape([n if d == i else 1 for d in range(rank)]) for i, n in enumerate(sizes)
    ]


def indirect_names(argument):
    """The tensors whose values this argument's coordinates use as indices."""
    found = set()
    for coordinate in argument.device_coordinates:
        for part in sympy.sympify(coordinate).atoms(sympy.Function):
            if type(part).__name__ == "IndirectAccess":
                found.add(str(part.args[0]))
    return found
