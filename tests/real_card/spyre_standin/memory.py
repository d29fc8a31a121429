"""Device memory as an op's arguments see it: tensors in HBM, the bundle's pool, the scratchpad."""

import ctypes
from dataclasses import dataclass

import numpy as np
import sympy

from spyre_standin.formats import CardError, storage


class Memory:
    """The memory of one launch. Tensors of the caller lie at addresses; pool and scratchpad live as long as the launch."""

    def __init__(self, addresses, order, pool_size):
        self.addresses, self.order = addresses, order
        self.pool = np.zeros(max(pool_size, 1), np.uint8)
        self.scratchpad = {}

    def buffer(self, argument, turns):
        """The argument's memory as stored elements."""
        kind = storage(argument.device_dtype.name)
        size = int(np.prod([int(n) for n in argument.device_size])) * kind.itemsize
        if "lx" in argument.allocation:
            return self._scratch(int(argument.allocation["lx"]), size).view(kind)
        if "hbm_pool" in argument.allocation:
            rest = self.pool[int(argument.allocation["hbm_pool"]) :]
            return rest[: len(rest) // kind.itemsize * kind.itemsize].view(kind)
        place = self.order.get(argument.arg_index, argument.arg_index)
        if not 0 <= place < len(self.addresses):
            raise CardError(f"argument {argument.arg_index} of {len(self.addresses)}")
        if argument.device_tile_advance_expr is not None:  # device_size is of one tile, the address of the whole tensor
            size *= turns[1]
        whole = (ctypes.c_char * size).from_address(self.addresses[place])
        return np.frombuffer(whole, dtype=kind)

    def _scratch(self, address, size):
        """Whole buffers by address: that two of them overlap in part is not shown."""
        held = self.scratchpad.get(address)
        if held is None or held.nbytes < size:
            grown = np.zeros(size, np.uint8)
            if held is not None:
                grown[: held.nbytes] = held
            self.scratchpad[address] = held = grown
        return held[:size]


@dataclass(frozen=True)
class Place:
    """Positions in a buffer."""

    flat: object

    @classmethod
    def of(cls, argument, value_of):
        """From the argument's coordinates; one that leaves the buffer raises, it never wraps."""
        flat, stride = 0, 1
        sizes = [int(n) for n in argument.device_size]
        for size, coordinate in zip(reversed(sizes), reversed(argument.device_coordinates), strict=True):
            value = value_of(coordinate)
            low, high = int(np.min(value)), int(np.max(value))
            if low < 0 or high >= size:
                raise CardError(
                    f"coordinate {coordinate} reaches {low}..{high} in a device dimension of {size}, {sizes}"
                )
            flat = flat + value * stride
            stride *= size
        return cls(flat)

    def at(self, argument, turns, evaluate):
        """The positions in this turn of the loops around the op."""
        advance = argument.device_tile_advance_expr
        if advance is None or not turns[0]:
            return self.flat
        nothing = {str(symbol): 0 for symbol in sympy.sympify(advance).free_symbols}
        return self.flat + evaluate(advance, nothing | turns[0])
