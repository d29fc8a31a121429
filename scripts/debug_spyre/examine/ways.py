"""Ways round a fault: other forms of the very call that are worth a measurement, the cheapest first. Only measured ones are told."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from debug_spyre.examine.condition import Condition, Term
from debug_spyre.examine.features import WORD, JsonCall, features, packet_of, tensor_specs
from debug_spyre.examine.variation import Space, contiguous, default_layout, plain

Way = tuple[str, JsonCall]  # what an engineer would write, and the call that measures it
EXCHANGEABLE = {"aten.mul", "aten.add", "aten.maximum", "aten.minimum"}
NARROW = {"float16", "bfloat16"}


def ways_round(call: JsonCall, space: Space | None, condition: Condition | None) -> list[Way]:
    """All that may go round it: other views, forms and types, and what the condition's terms suggest."""
    found = [*_other_views(call), *_other_forms(call, space), *_other_types(call)]
    for term in condition.terms if condition else ():
        found += _of_term(call, term, space)
    return found


def _other_views(call: JsonCall) -> Iterator[Way]:
    every = tensor_specs(call)
    if any(s.get("stride") or s.get("offset") for s in every):
        yield "contiguous inputs", contiguous(plain(call))
    if any(s.get("layout") for s in every):
        yield "the card's default layout (a copy made on the CPU)", default_layout(call)


def _other_forms(call: JsonCall, space: Space | None) -> Iterator[Way]:
    for op, form in space.forms if space else ():
        if op != call["op"]:
            yield f"{op}{' (out=)' if form == 'out' else ''}", {**copy.deepcopy(call), "op": op, "form": form}
    yield "compiled", {**copy.deepcopy(call), "mode": "compiled"}
    if packet_of(call["op"]) in EXCHANGEABLE and len(call["args"]) > 1:
        swapped = copy.deepcopy(call)
        swapped["args"][:2] = swapped["args"][1::-1]
        yield "operands exchanged", swapped


def _other_types(call: JsonCall) -> Iterator[Way]:
    wide = copy.deepcopy(plain(call))
    for spec in tensor_specs(wide):
        spec["dtype"] = "float32" if spec["dtype"] in NARROW else spec["dtype"]
    if wide != plain(call):
        yield "in float32", wide


def _of_term(call: JsonCall, term: Term, space: Space | None) -> Iterator[Way]:
    """Below a threshold in chunks, up to a multiple by padding."""
    for group in space.groups if space else ():
        tensor, dim = group[0]
        shape = tensor_specs(call)[tensor]["shape"]
        named = f"dimension {dim - len(shape)}"
        multiple = _multiple(term, dim - len(shape))
        if multiple and shape[dim] % multiple:
            way = {"kind": "padded", "places": list(group), "size": multiple}
            yield f"{named} padded with zeros to a multiple of {multiple} and cut again", {**call, "way": way}
        size = _chunk(call, term, group)
        if size:
            way = {"kind": "chunks", "places": list(group), "size": size}
            more = ", then once more over the partial results" if term.feature == "reduced" else ""
            yield f"in chunks of at most {size} along {named}{more}", {**call, "way": way}


def _multiple(term: Term, back: int) -> int | None:
    """The multiple that the term asks for in this dimension, counted from the end."""
    found = WORD.fullmatch(term.feature)
    if term.relation == "!%" and found and found["name"] == "size" and found["dim"] == str(back):
        return int(term.value)
    if term.feature.startswith("ragged") and back == -1 and (term.value is True) == (term.relation == "=="):
        return int(term.feature.removeprefix("ragged").partition("(")[0])
    return None


def _chunk(call: JsonCall, term: Term, group: tuple[tuple[int, int], ...]) -> int | None:
    """The size of a chunk along the group that stays at or below the term's threshold; None where no chunk helps."""
    if term.relation != ">" or isinstance(term.value, (bool, str)):
        return None
    tensor, dim = group[0]
    shape = tensor_specs(call)[tensor]["shape"]
    long, back = shape[dim], dim - len(shape)
    found = WORD.fullmatch(term.feature)
    name = found["name"] if found else term.feature
    if name == "size" and found and found["dim"] != str(back):
        return None
    have = features(call, ()).get(term.feature) if name not in {"size", "reduced"} else long
    if name not in {"size", "reduced", "numel", "rows", "sticks"} or not isinstance(have, (int, float)) or not have:
        return None
    most = int(long * term.value / have)
    if not 1 < most < long:
        return None
    return next((n for n in range(most, max(most // 2, 1), -1) if long % n == 0), most)
