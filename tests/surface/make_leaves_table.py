"""Writes scripts/debug_spyre/surface/data/leaves-VERSION.tsv: what torch's composite kernels, Inductor's decompositions and lowerings need.

    python tests/surface/make_leaves_table.py

Every op of torch's own test database is run on its sample inputs, on the CPU, under a dispatch mode that takes each composite
apart by one step. A line is: op, c (composite kernel) or d (decomposition), and the sets of ops that one call made, `|` between
sets that differ by the arguments. A line with l is a lowering: each call that was seen is lowered by Inductor, and the line has the
pointwise handlers that its loops use, `reduction:KIND` and `call:OP` for a kernel that it keeps; with p it is what a pass of Inductor puts
in the op's place.
"""

import itertools
import operator
import re
import sys
import time
import types
import warnings
from pathlib import Path
from unittest import TestCase

import torch
from torch._inductor import ir, lowering
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

sys.modules.setdefault(
    "expecttest", types.SimpleNamespace(TestCase=TestCase)
)  # torch's test database imports it and does not use it here


# Where the way depends on the device: what these call for another device than the CPU.
BY_DEVICE = {
    "aten::copy_": [("aten::_copy_from",)],
    "aten::_to_copy": [("aten::empty_strided", "aten::copy_")],
    "aten::scaled_dot_product_attention": [
        ("aten::_fused_sdp_choice", "aten::_scaled_dot_product_fused_attention_overrideable")
    ],
    # with a probability of 0 or 1 it is no dropout
    "aten::dropout": [("aten::empty_like", "aten::bernoulli_.float", "aten::div_.Scalar", "aten::mul.Tensor")],
}
# What Inductor's pass puts in place of random factories (torch/_inductor/fx_passes/replace_random.py).
BY_PASS = {
    "aten::rand": [("index_expr", "rand")],
    "aten::bernoulli.p": [("index_expr", "rand")],
    "aten::randn": [("index_expr", "randn")],
    **{f"aten::{name}": [("index_expr", "randint64")] for name in ("randint", "randint.low")},
}
EVERYWHERE = {"load", "store", "constant", "indirect_indexing", "check_bounds"}  # every backend has these
KEYS = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
MOST_VARIANTS, MOST_SAMPLES, MOST_CALLS = 6, 6, 4
SECONDS = 150  # of the processor, for the samples


def composite(op):
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return next((key for key in KEYS[:2] if has(op.name(), key)), None)


class Steps(TorchDispatchMode):
    def __init__(self, decompositions):
        super().__init__()
        self.decompositions, self.edges, self.calls, self.within = decompositions, {}, {}, []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for called in self.within[-1:]:
            called.append(op.name())
        if any(isinstance(a, torch.Tensor) and not a.numel() for a in pytree.tree_leaves((args, kwargs))):
            return op(*args, **kwargs)  # nothing to compute: a short cut that says nothing of other sizes
        if sum(1 for _ in self.within) > 12:
            return op(*args, **kwargs)
        calls = self.calls.setdefault(op, [])
        if len(calls) < MOST_CALLS:
            calls.append((args, kwargs))
        if op in self.decompositions and not self.full(op, "d"):
            self.step(op, "d", lambda: self.decompositions[op](*args, **kwargs), quiet=True)
        key = composite(op)
        if key is None or self.full(op, "c"):
            return op(*args, **kwargs)
        return self.step(op, "c", lambda: op._op_dk(getattr(torch._C.DispatchKey, key), *args, **kwargs))

    def full(self, op, kind):
        return len(self.edges.get((op.name(), kind), ())) >= MOST_VARIANTS

    def step(self, op, kind, function, *, quiet=False):
        self.within.append([])
        try:
            with self:
                result = function()
        except Exception:
            self.within.pop()
            if quiet:
                return None
            raise
        called = tuple(dict.fromkeys(name for name in self.within.pop()))
        variants = self.edges.setdefault((op.name(), kind), [])
        if set(called) not in map(set, variants) and len(variants) < MOST_VARIANTS:
            variants.append(called)
        return result


def samples():
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        dtypes = [d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in info.dtypes][:1]
        for dtype in dtypes:
            try:
                yield from ((info, s) for s in itertools.islice(info.sample_inputs("cpu", dtype), MOST_SAMPLES))
            except Exception as error:
                print(info.name, error, file=sys.stderr)


def overloads(packet_name):
    packet = getattr(torch.ops.aten, packet_name, None)
    return [getattr(packet, n) for n in packet.overloads()] if isinstance(packet, torch._ops.OpOverloadPacket) else []


def arguments(op):
    return [(a.name, str(a.type)) for a in op._schema.arguments if not a.is_out]


def siblings(op):
    """Functional, out and in-place forms that take the same arguments, and Python's operators."""
    name = op._schema.name.partition("::")[2].removesuffix("_")
    operator_name = f"__{name.removeprefix('bitwise_')}__"
    for other in [*overloads(name), *overloads(f"{name}_"), *overloads(operator_name)]:
        if other is not op and arguments(other) == arguments(op):
            yield other


def replay(steps):
    """The out and in-place forms of what was called."""
    for op, calls in list(steps.calls.items()):
        if op.namespace != "aten":
            continue
        for other in siblings(op):
            for args, kwargs in calls:
                try:
                    given = dict(kwargs)
                    outs = [a.name for a in other._schema.arguments if a.is_out]
                    if outs:
                        results = op(*args, **kwargs)
                        results = results if isinstance(results, (tuple, list)) else [results]
                        given |= {n: torch.empty_like(r) for n, r in zip(outs, results)}
                    with torch.inference_mode(), steps:
                        other(*args, **given)
                except Exception:
                    steps.within.clear()


def lowered(op, args, kwargs):
    """What Inductor's lowering of one call needs of a backend."""
    flat, spec = pytree.tree_flatten((args, kwargs))
    where = [i for i, value in enumerate(flat) if isinstance(value, torch.Tensor)]
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    tensors = [fake.from_tensor(flat[i].detach().clone()) for i in where]
    graph = torch.fx.Graph()
    holes = [graph.placeholder(f"given{i}") for i in where]

    def filled(values):
        given = list(flat)
        for i, value in zip(where, values):
            given[i] = value
        return pytree.tree_unflatten(given, spec)

    node = graph.call_function(op, *filled(holes))
    with fake:
        again, named = filled(tensors)
        node.meta["val"] = op(*again, **named)
    for hole, tensor in zip(holes, tensors):
        hole.meta["val"] = tensor
    results = [node]
    if isinstance(node.meta["val"], (tuple, list)):
        results = []
        for i, value in enumerate(node.meta["val"]):
            results.append(graph.call_function(operator.getitem, (node, i)))
            results[-1].meta["val"] = value
    graph.output(tuple(results))
    made = GraphLowering(torch.fx.GraphModule({}, graph), shape_env=fake.shape_env)
    with V.set_graph_handler(made), V.set_fake_mode(fake):
        made.run(*tensors)
    return tuple(sorted({need for operation in made.operations for need in needs(operation)}))


def needs(operation):
    """Handlers, reduction kinds and kept calls of one operation of a lowered graph."""
    if isinstance(operation, ir.ComputedBuffer):
        yield from operation.data.inner_fn_opcount().used_ops - EVERYWHERE
        if isinstance(operation.data, ir.Reduction):
            yield f"reduction:{operation.data.reduction_type}"
        elif isinstance(operation.data, (ir.Scan, ir.Sort)):
            yield f"reduction:{type(operation.data).__name__.lower()}"
    elif isinstance(operation, (ir.ExternKernel, ir.MultiOutput)) and getattr(operation, "op_overload", None):
        kept = operation.op_overload
        if isinstance(operation, ir.ExternKernelOut):
            forms = [
                kept,
                *(o for o in overloads(kept._schema.name.partition("::")[2]) if arguments(o) == arguments(kept)),
            ]
            kept = next((o for o in forms if any(a.is_out for a in o._schema.arguments)), kept)
        yield f"call:{kept.name()}"


def lowerings_of(steps):
    """The lowering of each call that was seen."""
    known = dict(lowering.lowerings)
    for op, calls in sorted(steps.calls.items(), key=lambda item: item[0].name()):
        found = []
        for args, kwargs in calls if op in known else ():
            try:
                need = lowered(op, args, kwargs)
            except Exception:
                continue
            if need not in found:
                found.append(need)
        if any(found):
            yield op.name(), [need for need in found if need]


def main():
    import torch._inductor.decomposition as decomposition

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    steps = Steps(dict(decomposition.select_decomp_table()))
    for info, sample in samples():
        if time.process_time() > SECONDS:
            break
        for function in filter(None, (info.op, info.inplace_variant, *(alias.op for alias in info.aliases))):
            try:
                with torch.inference_mode(), steps:
                    function(sample.input, *sample.args, **sample.kwargs)
            except Exception:
                steps.within.clear()
    replay(steps)
    steps.edges |= {(op, "l"): variants for op, variants in lowerings_of(steps)}
    steps.edges["aten::native_dropout", "d"] = [("aten::rand_like", "aten::gt.Scalar", "aten::mul.Tensor")]  # no sample
    steps.edges |= {(op, "p"): variants for op, variants in BY_PASS.items()}
    steps.edges |= {(op, "c"): variants for op, variants in BY_DEVICE.items()}
    version = re.match(r"[\d.]+", torch.__version__)[0]
    lines = [
        f"# torch {version}: what composite kernels (c) and Inductor's decompositions (d) call, what its lowerings (l) need (tests/surface/make_leaves_table.py)"
    ]
    lines += [
        f"{op}\t{kind}\t{'|'.join(','.join(v) for v in variants)}"
        for (op, kind), variants in sorted(steps.edges.items())
    ]
    path = Path(__file__).parents[2] / f"scripts/debug_spyre/surface/data/leaves-{version}.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    print(path, len(lines))


if __name__ == "__main__":
    main()
