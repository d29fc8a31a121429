"""The stand-in card: carries out the OpSpecs of a bundle on device memory, as the compiler laid it out.

Each argument is a flat buffer; its device_coordinates, evaluated over the op's iteration space, say which element belongs
to which point. Values are computed in float32 and rounded when stored. numpy only: a dispatch mode of the caller sees nothing.
"""

import os
from dataclasses import dataclass, field

import numpy as np

from spyre_standin import arithmetic, faults
from spyre_standin.coordinates import evaluate, indirect_names, space
from spyre_standin.formats import CardError, decode, encode
from spyre_standin.memory import Memory, Place

PROGRAMS = {}


class Budget:
    """Positions that were worked out are kept as long as they take no more than this many bytes in all."""

    def __init__(self, most):
        self.most, self.used = most, 0

    def keep(self, into, key, place):
        """Keep this one, if it fits."""
        size = np.asarray(place.flat).nbytes
        if self.used + size <= self.most:
            self.used += size
            into[key] = place


PLACES = Budget(256 << 20)
LOG = os.environ.get("SPYRE_STANDIN_LOG")


@dataclass
class Program:
    """One compiled bundle: its name, its specs, the bytes of its pool, and what was worked out about them."""

    name: str
    specs: list
    pool_size: int
    places: dict = field(default_factory=dict)

    def numbers(self):
        """The kernel's arguments that the bundle uses, in order: a tensor that is read and written counts once."""
        return sorted(
            {a.arg_index for s in flat(self.specs) for a in s.args if "hbm" in a.allocation and a.arg_index >= 0}
        )


def flat(specs):
    """The ops of a bundle, those of its loops too."""
    for spec in specs:
        if type(spec).__name__ == "LoopSpec":
            yield from flat(spec.body)
        elif hasattr(spec, "args"):
            yield spec


def launch(folder, addresses):
    """Run the program that was compiled in this folder."""
    program = PROGRAMS.get(folder)
    if program is None:
        raise CardError(f"no program was compiled in {folder} by this process")
    numbers = program.numbers()
    order = {number: i for i, number in enumerate(numbers)} if len(numbers) == len(addresses) else {}
    run = Run(program, Memory(addresses, order, program.pool_size))
    with np.errstate(all="ignore"):
        run.go(program.specs)


class Run:
    """One launch."""

    def __init__(self, program, memory):
        self.program, self.memory = program, memory

    def go(self, specs, loops=()):
        """The specs in order; `loops` are (turn, turns) of the loops around them, outermost first."""
        for spec in specs:
            kind = type(spec).__name__
            if kind == "LoopSpec":
                for turn in range(int(spec.count)):
                    self.go(spec.body, (*loops, (turn, int(spec.count))))
            elif kind == "OpSpec":
                try:
                    self.op(spec, loops)
                except CardError as error:
                    raise CardError(f"{spec.op}: {error}") from None
            else:
                raise CardError(f"unimplemented operation {getattr(spec, 'op', spec)}")

    def op(self, spec, loops):
        """Read, compute, store."""
        sizes = [int(extent[0]) for extent in spec.iteration_space.values()]
        points = dict(zip(map(str, spec.iteration_space), space(sizes), strict=True))
        turns = _turns(spec, loops)
        points["indirect"] = self._indices(spec, points, turns)
        hidden = set().union(*(indirect_names(a) for a in spec.args))
        inputs = [a for a in spec.args if a.is_input and a.name not in hidden]
        outputs = [a for a in spec.args if not a.is_input]
        if len(outputs) != 1:
            raise CardError(f"{len(outputs)} outputs")
        call = faults.Call(spec.op, tuple(sizes), bool(hidden))
        faults.before(call)
        where = arithmetic.staggered(spec.op, outputs[0], self._place(spec, outputs[0], points, turns))
        # the variance lies beside the mean: see arithmetic.VARIANCE
        beside = arithmetic.VARIANCE if spec.op == "layernormscale" else 0
        values = [self._read(spec, a, points, turns, beside) for a in inputs]
        results, where = _computed(spec, call, values, np.asarray(where))
        if LOG:
            print(f"[card] {self.program.name}: {spec.op} {sizes} -> {[np.shape(r) for r in results]}", flush=True)
        for offset, result in enumerate(results):
            places, stored = np.broadcast_arrays(where, faults.after(call, result))
            self.memory.buffer(outputs[0], turns)[places + offset] = encode(stored, outputs[0].device_dtype.name)

    def _place(self, spec, argument, points, turns):
        """Which elements of the argument's buffer the points mean; kept where it doesn't depend on values."""
        key = id(spec), id(argument)
        kept = self.program.places.get(key)
        if kept is None:
            kept = Place.of(argument, lambda c: evaluate(c, points))
            if not indirect_names(argument):
                PLACES.keep(self.program.places, key, kept)
        return kept.at(argument, turns, evaluate)

    def _read(self, spec, argument, points, turns, beside=0):
        places = arithmetic.staggered(spec.op, argument, self._place(spec, argument, points, turns))
        codes = self.memory.buffer(argument, turns)[places + beside]
        return np.asarray(decode(codes, argument.device_dtype.name))

    def _indices(self, spec, points, turns):
        named, read = {a.name: a for a in spec.args if a.name}, {}

        def indices(name):
            if name not in read:
                read[name] = self._read(spec, named[name], points, turns).astype(np.int64)
            return read[name]

        return indices


def _turns(spec, loops):
    """Each tiled symbol's turn, and the number of tiles."""
    turns, tiles = {}, 1
    for level, symbols in enumerate(spec.tiled_symbols):  # innermost first
        if level < len(loops):
            turn, count = loops[len(loops) - 1 - level]
            for symbol in symbols:
                turns[str(symbol)] = turn
                tiles *= count
    return turns, tiles


def _computed(spec, call, values, where):
    """(results, their places) of one op; exx2 alone has two results, side by side."""
    rank, sizes, constants = len(call.sizes), call.sizes, spec.op_info.get("constants", {})
    if not spec.is_reduction:
        return (arithmetic.pointwise(spec.op, values, constants),), where
    values = [v.reshape((1,) * (rank - v.ndim) + v.shape) for v in values]
    where = where.reshape((1,) * (rank - where.ndim) + where.shape)
    axes = tuple(i for i in range(rank) if where.shape[i] == 1 and sizes[i] > 1)
    values = faults.shortened(call, values, axes)
    if spec.op.startswith("batchmatmul"):
        return (arithmetic.product(*values, rank, sizes, axes),), where
    if spec.op.startswith("topk"):
        return (arithmetic.largest(spec.op, values[0], where.shape, axes),), where
    x = np.broadcast_to(values[0], sizes)
    x = x.astype(np.float32) if x.dtype.kind == "f" else x
    if spec.op == "exx2":
        return (x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)), where
    return (arithmetic.reduced(spec.op, x, axes, constants),), where
