"""Faults of arithmetic and addressing: the op runs and its result is wrong."""

import torch

from torch_spyre.constants import FP16_MAX, STICK
from torch_spyre.execution import host_ops

from .kind import Fault, Parameter, ResultFault, base_of, main_tensor, names_op, op_parameter

MATMULS = ("mm", "bmm", "addmm", "matmul", "batched_matmul")
POINTWISE = ("add", "mul", "sub", "exp", "rsqrt", "silu", "sigmoid", "div")
DIM = Parameter("dim", -1, "the dimension, counted from the end", (-1, -2))


class PartialReduction(Fault):
    name = "partial_reduction"
    text = "a reduction (or the inner dimension of a matrix product) longer than `width` takes in only the first part"
    parameters = (
        op_parameter("mean", "mean", "sum", "amax", "mean.dim", "sum.dim_IntList", "mm", "bmm"),
        Parameter("width", 128, "longest size that is still right", range(48, 272)),
        Parameter("dim", "last", "`last`, `any`, or the number of a dimension (reductions only)", ("last",)),
        Parameter("keep", "half", "`half` of the dimension, or the first `width`", ("half", "width")),
    )

    def _reduced(self, call):
        """The reduced dimensions that are too long and count."""
        x = call.args[-2] if base_of(call.name) in MATMULS else call.args[0]
        if not isinstance(x, torch.Tensor) or not x.dim():
            return x, []
        if base_of(call.name) in MATMULS:
            return x, [x.dim() - 1] if x.size(-1) > self.width else []
        dims = (
            call.args[1]
            if len(call.args) > 1 and base_of(call.name) != "linalg_vector_norm"
            else call.kwargs.get("dim")
        )
        dims = host_ops._dims(x, dims if dims != () else None)
        wanted = {"last": {x.dim() - 1}, "any": set(range(x.dim()))}.get(self.dim)
        wanted = {int(self.dim) % x.dim()} if wanted is None else wanted
        return x, [d for d in dims if d in wanted and x.size(d) > self.width]

    def matches(self, call):
        return bool(self._reduced(call)[1])

    def after(self, call, result):
        x, dims = self._reduced(call)
        run = host_ops.implementation(call.op)
        kept = {d: x.size(d) // 2 if self.keep == "half" else self.width for d in dims}
        if base_of(call.name) in MATMULS:
            (count,) = kept.values()
            a, b = call.args[-2:]
            return run(*call.args[:-2], a.narrow(-1, 0, count), b.narrow(-2, 0, count), **call.kwargs)
        part, share = x, 1.0
        for d, count in kept.items():
            part, share = part.narrow(d, 0, count), share * count / x.size(d)
        partial = run(part, *call.args[1:], **call.kwargs)
        return partial * share if base_of(call.name) == "mean" else partial


class BroadcastOverflow(Fault):
    name = "broadcast_overflow"
    text = "a matrix product with a broadcast (stride-0) batch dimension has every Nth row at the largest float16"
    parameters = (
        op_parameter("bmm+matmul+batched_matmul"),
        Parameter("every", 2, "period of the bad rows", range(2, 9)),
        Parameter("phase", 1, "first bad row", (0, 1)),
        Parameter("value", FP16_MAX, "what they hold"),
    )

    def matches(self, call):
        wide = [t for t in call.tensors if t.dim() > 2]
        lone = len({tuple(t.shape[:-2]) for t in wide}) > 1
        return lone or any(t.stride(d) == 0 and t.size(d) > 1 for t in wide for d in range(t.dim() - 2))

    def after(self, call, result):
        result = result.clone()
        result[..., self.phase :: self.every, :] = self.value
        return result


class DroppedOffset(Fault):
    name = "dropped_offset"
    text = "the op reads a slice from the start of its storage: the storage offset is dropped"
    parameters = (op_parameter("add+mul+mm+silu", "add", "mul", "mm", "exp", "cat"),)

    def _shifted(self, value):
        return isinstance(value, torch.Tensor) and value.dim() and value.storage_offset() > 0

    def matches(self, call):
        return any(map(self._shifted, call.args))

    def before(self, call):
        call.args = tuple(a.as_strided(a.shape, a.stride(), 0) if self._shifted(a) else a for a in call.args)


class AfterFirstStick(ResultFault):
    name = "after_first_stick"
    text = "right up to the first stick of the last dimension, wrong after it"
    parameters = (
        op_parameter("mul", *POINTWISE, "mm"),
        Parameter("stick", STICK, "elements that are right", (64, 128)),
        Parameter(
            "how", "repeat", "`repeat` the first stick, `zero`, or `scale` by a half", ("repeat", "zero", "scale")
        ),
    )

    def touches(self, call, tensor):
        return tensor.dim() > 0 and tensor.size(-1) > self.stick

    def change(self, call, tensor):
        rest = tensor[..., self.stick :]
        if self.how == "repeat":
            lanes = torch.arange(rest.size(-1)) % self.stick
            rest.copy_(tensor[..., : self.stick].index_select(-1, lanes))
        else:
            rest.mul_(0.5 if self.how == "scale" else 0)
        return tensor


class PaddingLanes(ResultFault):
    name = "padding_lanes"
    text = "at widths that are no multiple of `multiple`, the lanes of the last, partly filled stick are wrong"
    parameters = (
        op_parameter("exp", *POINTWISE, "mm", "_softmax"),
        Parameter("multiple", STICK, "elements in a full stick", (64,)),
        Parameter("value", "nan", "what the lanes hold: `nan`, `zero`, or a number", ("nan", "zero", "1.0")),
    )

    def touches(self, call, tensor):
        return tensor.dim() > 0 and tensor.size(-1) % self.multiple != 0 and tensor.is_floating_point()

    def change(self, call, tensor):
        start = tensor.size(-1) - tensor.size(-1) % self.multiple
        tensor[..., start:] = {"zero": 0.0}.get(self.value) if self.value == "zero" else float(self.value)
        return tensor


class StaleOutput(ResultFault):
    name = "stale_output"
    text = "a call gives back the buffer of an earlier call of the same shape"
    parameters = (
        op_parameter("mul", *POINTWISE),
        Parameter("every", 2, "every so many calls of one shape", range(2, 5)),
    )

    def __init__(self, **values):
        super().__init__(**values)
        self.seen = {}

    def touches(self, call, tensor):
        key = (call.name, tensor.shape, tensor.dtype)
        count, old = self.seen.get(key, (0, None))
        stale = old is not None and (count + 1) % self.every == 0
        self.found = old if stale else None
        self.seen[key] = (count + 1, old if stale else tensor.clone())
        return stale

    def change(self, call, tensor):
        return self.found.clone()


class NanToFinite(ResultFault):
    name = "nan_to_finite"
    text = "a NaN of the result becomes a finite number"
    parameters = (
        op_parameter("*", *POINTWISE),
        Parameter("value", FP16_MAX, "the number"),
    )

    def touches(self, call, tensor):
        return tensor.is_floating_point() and bool(tensor.isnan().any())

    def change(self, call, tensor):
        return torch.where(tensor.isnan(), torch.tensor(self.value, dtype=tensor.dtype), tensor)


class PlanReuse(Fault):
    name = "plan_reuse"
    text = (
        "the plan of the first shape (per op and width) is used for later ones with more rows: rows beyond it stay zero"
    )
    parameters = (op_parameter("mul", *POINTWISE, "mm"),)

    def __init__(self, **values):
        super().__init__(**values)
        self.plans = {}

    def after(self, call, result):
        tensor = main_tensor(result)
        if tensor is None or tensor.dim() < 2:
            return result
        rows = tensor.size(-2)
        planned = self.plans.setdefault((call.name, tensor.size(-1)), rows)
        if rows > planned:
            tensor = tensor.clone()
            tensor[..., planned:, :] = 0
        return tensor


class History(ResultFault):
    name = "history"
    text = "the result is wrong once another op has run `times` times in this process"
    parameters = (
        op_parameter("mul", *POINTWISE),
        Parameter("trigger", "exp", "the other op", ("exp", "sum", "sigmoid")),
        Parameter("times", 1, "how often it must have run", range(1, 4)),
        Parameter("factor", 1.5, "the result is scaled by this"),
    )

    def __init__(self, **values):
        super().__init__(**values)
        self.count = 0

    def ran(self, call, result):
        self.count += names_op(self.trigger, call.name)

    def touches(self, call, tensor):
        return self.count >= self.times and tensor.is_floating_point()

    def change(self, call, tensor):
        return tensor * self.factor


class Scaled(ResultFault):
    name = "scaled"
    text = "the result is scaled by a constant where the last dimension is longer than `over`"
    parameters = (
        op_parameter("_softmax", "_softmax", *POINTWISE, "mm"),
        Parameter("factor", 0.5, "the constant", (0.5, 1.4140625, 2.0, -1.0)),
        Parameter("over", 0, "sizes up to this are right", range(0, 200)),
    )

    def touches(self, call, tensor):
        return tensor.is_floating_point() and tensor.dim() > 0 and tensor.size(-1) > self.over

    def change(self, call, tensor):
        return tensor * self.factor


class Rolled(ResultFault):
    name = "rolled"
    text = "the result is rolled along a dimension"
    parameters = (op_parameter("add", *POINTWISE, "mm"), DIM, Parameter("shift", 1, "by so many", range(1, 4)))

    def touches(self, call, tensor):
        return tensor.dim() >= -self.dim and tensor.size(self.dim) > self.shift

    def change(self, call, tensor):
        return tensor.roll(self.shift, self.dim)


class CopiedRow(ResultFault):
    name = "copied_row"
    text = "one slice of a dimension holds the values of another"
    parameters = (
        op_parameter("add", *POINTWISE, "mm"),
        DIM,
        Parameter("source", 0, "where the values come from", range(0, 2)),
        Parameter("target", 3, "the slice that is wrong", (2, 3)),
    )

    def touches(self, call, tensor):
        return tensor.dim() >= -self.dim and tensor.size(self.dim) > max(self.source, self.target)

    def change(self, call, tensor):
        tensor.select(self.dim, self.target).copy_(tensor.select(self.dim, self.source).clone())
        return tensor


class SwappedBlocks(ResultFault):
    name = "swapped_blocks"
    text = "blocks of a dimension are exchanged in pairs"
    parameters = (op_parameter("mul", *POINTWISE, "mm"), DIM, Parameter("block", STICK, "size of a block", (32, 64)))

    def touches(self, call, tensor):
        return tensor.dim() >= -self.dim and tensor.size(self.dim) >= 2 * self.block

    def change(self, call, tensor):
        pairs = tensor.size(self.dim) // (2 * self.block)
        order = torch.arange(tensor.size(self.dim))
        order[: pairs * 2 * self.block] = order[: pairs * 2 * self.block].view(pairs, 2, self.block).flip(1).reshape(-1)
        return tensor.index_select(self.dim, order)


class ShiftedIndex(ResultFault):
    name = "shifted_index"
    text = "an integer result is off by one from `start` on"
    parameters = (
        op_parameter("add", "add", "sub", "index_select"),
        Parameter("start", 1, "first wrong element of the last dimension", range(0, 6)),
    )

    def touches(self, call, tensor):
        return not tensor.is_floating_point() and tensor.dtype != torch.bool and tensor.dim() > 0

    def change(self, call, tensor):
        tensor[..., self.start :] += 1
        return tensor


class FlippedMask(ResultFault):
    name = "flipped_mask"
    text = "a bool result is inverted in every Nth place of the last dimension"
    parameters = (
        op_parameter("le+lt+ge+gt+eq+ne", "le", "lt", "ge", "gt", "eq"),
        Parameter("every", 64, "period", (2, 64)),
    )

    def touches(self, call, tensor):
        return tensor.dtype == torch.bool and tensor.dim() > 0

    def change(self, call, tensor):
        tensor[..., :: self.every] = ~tensor[..., :: self.every]
        return tensor


class Flaky(ResultFault):
    name = "flaky"
    text = "now and then a result is wrong, without a pattern over runs"
    parameters = (
        op_parameter("mul", *POINTWISE),
        Parameter("one_in", 3, "about one call in so many", range(2, 6)),
    )

    def touches(self, call, tensor):
        import random

        return tensor.is_floating_point() and random.SystemRandom().randrange(self.one_in) == 0

    def change(self, call, tensor):
        return tensor + 1


class WrongOverload(ResultFault):
    name = "wrong_overload"
    text = "only one form of an op is wrong; the others are right"
    parameters = (
        op_parameter("mul", *POINTWISE),
        Parameter("form", "functional", "`functional`, `inplace` or `out`", ("functional", "inplace", "out")),
        Parameter("how", "scale", "`scale` by two, or a `dtype` of float32", ("scale",)),
    )

    def applies(self, call):
        if call.entry is None or not names_op(self.op, call.entry.replace("_.", ".").removesuffix("_")):
            wanted = self.op.split("+")
            if call.entry is None or base_of(call.entry).removesuffix("_") not in wanted:
                return False
        base, _, overload = call.entry.partition("::")[2].partition(".")
        form = "inplace" if base.endswith("_") else "out" if overload.endswith("out") else "functional"
        return form == self.form

    def change(self, call, tensor):
        return tensor.float() if self.how == "dtype" else tensor * 2


class ModeOnly(ResultFault):
    name = "mode_only"
    text = "an op is wrong only inside a compiled graph of several ops, or only as an eager kernel"
    parameters = (
        op_parameter("mul", *POINTWISE, "mm"),
        Parameter("where", "graph", "`graph` or `eager`", ("graph", "eager")),
        Parameter("factor", 2.0, "the result is scaled by this"),
    )

    def matches(self, call):
        return call.compiled == (self.where == "graph")

    def touches(self, call, tensor):
        return tensor.is_floating_point()

    def change(self, call, tensor):
        return tensor * self.factor


FAULTS = [
    PartialReduction,
    BroadcastOverflow,
    DroppedOffset,
    AfterFirstStick,
    PaddingLanes,
    StaleOutput,
    NanToFinite,
    PlanReuse,
    History,
    Scaled,
    Rolled,
    CopiedRow,
    SwappedBlocks,
    ShiftedIndex,
    FlippedMask,
    Flaky,
    WrongOverload,
    ModeOnly,
]
