"""Writes surface/data/aten-<version>.tsv: every overload of torch's ops, as `op` needs it without importing torch.

Run it by hand with the torch that is meant: python tests/surface/make_aten_table.py [FOLDER].
One line a packet: namespace.packet, a tab, then its overloads separated by spaces, each `overload:flags[=value]...`:
  t  no tensor in its schema          n  dimension names in its schema      j  no dispatcher op behind it (TorchScript only)
  l  Inductor lowers it               d  Inductor decomposes it
  c  composite, implicit autograd     e  composite, explicit autograd
  =o:X  torch computes it by its overload X (structured: the functional form calls the out form)
  =i    in-place form whose functional sibling has the same signature
  =h:X  its lowering is the pointwise handler X
"""

import sys
from pathlib import Path

import torch

NAMESPACES = ("aten", "prims", "_c10d_functional")


def packets_of(namespace):
    names = {s.name.partition("::")[2] for s in torch._C._jit_get_all_schemas() if s.name.startswith(f"{namespace}::")}
    for name in sorted(names):
        packet = getattr(getattr(torch.ops, namespace), name, None)
        if isinstance(packet, torch._ops.OpOverloadPacket):
            yield name, packet


def overload_of(packet, name):
    try:
        return getattr(packet, name)
    except (RuntimeError, AttributeError):
        return None


def arguments(schema, *, alias=False):
    return [(a.name, str(a.type), a.kwarg_only) for a in schema.arguments if alias or not a.is_out]


def handler(function, depth=0):
    """The name that ops_wrapper closed over, inside the wrappers of make_pointwise."""
    if depth > 6 or not hasattr(function, "__code__"):
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    if function.__qualname__ == "ops_wrapper.<locals>.fn":
        return cells["name"].cell_contents
    for key in ("decomp_fn", "fn"):
        if key in cells:
            found = handler(cells[key].cell_contents, depth + 1)
            if found:
                return found
    return None


def flags(namespace, name, packet, overload_name, lowerings, decompositions):
    op = overload_of(packet, overload_name)
    if op is None or not torch._C._dispatch_has_kernel(op.name()):
        return "j"
    schema = op._schema
    text = "t" if "Tensor" not in str(schema) else ""
    text += "n" if "Dimname" in str(schema) else ""
    text += "l" if op in lowerings else ""
    text += "d" if op in decompositions else ""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if has(op.name(), "CompositeImplicitAutograd"):
        text += "c"
    if has(op.name(), "CompositeExplicitAutograd"):
        text += "e"
    if has(op.name(), "CompositeExplicitAutogradNonFunctional"):
        target = out_form(packet, op)
        text += f"=o:{target}" if target else "e"
    if name.endswith("_") and len(schema.returns) == 1:
        sibling = getattr(getattr(torch.ops, namespace), name[:-1], None)
        other = (
            overload_of(sibling, overload_name)
            if sibling is not None and overload_name in sibling.overloads()
            else None
        )
        if other is not None and arguments(other._schema) == arguments(schema):
            text += "=i"
    if op in lowerings:
        found = handler(lowerings[op])
        text += f"=h:{found}" if found else ""
    return text


def out_form(packet, op):
    """The out overload that this functional or in-place one is computed by."""
    namespace, name = op.namespace, op._schema.name.partition("::")[2]
    home = getattr(getattr(torch.ops, namespace), name[:-1], packet) if name.endswith("_") else packet
    for overload_name in home.overloads():
        other = overload_of(home, overload_name)
        if other is None or other is op or not any(a.is_out for a in other._schema.arguments):
            continue
        if arguments(other._schema) == arguments(op._schema):
            return overload_name
    return None


def make(folder):
    import torch._inductor.decomposition as decomposition
    import torch._inductor.lowering as lowering

    version = torch.__version__.partition("+")[0]
    lines = [
        f"# torch {version}: ops, their overloads and what torch itself does with them (tests/surface/make_aten_table.py)"
    ]
    for namespace in NAMESPACES:
        for name, packet in packets_of(namespace):
            cells = [
                f"{o}:{flags(namespace, name, packet, o, lowering.lowerings, decomposition.decompositions)}"
                for o in packet.overloads()
            ]
            lines.append(f"{namespace}.{name}\t{' '.join(cells)}")
    path = Path(folder) / f"aten-{version}.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


if __name__ == "__main__":
    here = Path(__file__).parents[2] / "scripts/debug_spyre/surface/data"
    print(make(sys.argv[1] if len(sys.argv) > 1 else here))
