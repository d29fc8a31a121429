"""A pattern: where the wrong elements lie or what they are, with its parameters, support, chance and words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from debug_spyre.numerics.axes import STICK, Span, as_probability
from debug_spyre.numerics.location import Region
from debug_spyre.numerics.relations import Relation
from debug_spyre.vocabulary.codec import to_json


@dataclass(frozen=True, slots=True)
class Pattern:
    """One finding, in the terms of contracts (`compare`)."""

    kind: str
    support: int
    of: int
    chance: float
    text: str
    axis: int | None = None
    period: int | None = None
    phase: int | None = None
    width: int | None = None
    start: int | None = None
    stop: int | None = None
    shift: int | None = None
    factor: float | None = None
    order: tuple[int, ...] | None = None
    source: int | None = None
    block: int | None = None
    region: tuple[dict[str, Any], ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The form of contracts.md and a few keys more."""
        return {
            "kind": self.kind, "axis": self.axis, "period": self.period, "phase": self.phase, "start": self.start,
            "stop": self.stop, "shift": self.shift, "factor": to_json(self.factor), "support": self.support,
            "of": self.of, "chance": self.chance, "text": self.text, "width": self.width,
            "order": list(self.order) if self.order else None, "source": self.source, "block": self.block,
            "region": list(self.region),
        }  # fmt: skip


def patterns_of(region: Region | None, what: tuple[Relation, ...], names: tuple[str, ...], count: int) -> list[Pattern]:
    """The patterns of one region (None: everywhere) and of what its elements are.

    `count`: wrong elements of the region, of `region.size`. `names`: names of the axes.
    """
    found: list[Pattern] = []
    meaning = "; ".join(words_of(relation, names) for relation in what) or "wrong"
    where: dict[str, Any] = {}
    if region is not None:
        main = _main_axis(region)
        span = region.spans[main]
        where = {
            "axis": main, "period": span.period, "phase": span.phase, "start": span.start, "stop": span.stop,
            "width": span.width if span.period else None, "region": tuple(_span_json(k, s) for k, s in region.spans.items()),
        }  # fmt: skip
        text = f"{place_of(region, names)}: {meaning} ({_support(region, what)})"
        chance = as_probability(region.log_chance)
        found.append(Pattern(span.kind, region.inside, region.size, chance, text, **where))
    for relation in what:
        parameters = {**where}
        if relation.axis is not None:
            parameters["axis"] = relation.axis
        text = words_of(relation, names)
        share = f"{100 * relation.share:.3g} % of the {count:,} wrong elements"
        text = f"{place_of(region, names)}: {text}" if region else f"{text} ({share})"
        found.append(
            Pattern(
                relation.kind, round(relation.share * count), count, as_probability(relation.log_chance), text,
                **{
                    **parameters, "shift": relation.shift, "factor": relation.factor, "order": relation.order,
                    "source": relation.source, "block": relation.block,
                },
            )
        )  # fmt: skip
    return found


def _main_axis(region: Region) -> int | None:
    rank = {"period": 0, "block": 1, "slice": 2}
    return min(region.spans, key=lambda axis: rank[region.spans[axis].kind])


def _span_json(axis: int | None, span: Span) -> dict[str, Any]:
    return {
        "axis": axis, "kind": span.kind, "start": span.start, "stop": span.stop, "period": span.period,
        "phase": span.phase, "width": span.width if span.period else None,
    }  # fmt: skip


def _support(region: Region, what: tuple[Relation, ...]) -> str:
    """How many elements of the region are wrong. Where all have one value, those that are right by chance are told."""
    text = f"{region.inside:,} of {region.size:,}"
    alike = next((relation.alike for relation in what if relation.alike is not None), None)
    if alike is not None and alike > region.inside:
        text = f"{alike:,} of {region.size:,} have that value, {region.inside:,} of them far from the reference"
    return f"{text}; elsewhere {region.outside:,} of {region.rest:,}" if region.rest else text


def axis_name(axis: int | None, names: tuple[str, ...]) -> str:
    """What an axis is called."""
    if axis is None:
        return "the flat index"
    return names[axis] if axis < len(names) else f"axis {axis}"


def place_of(region: Region | None, names: tuple[str, ...]) -> str:
    """A region in words, its periods first."""
    if region is None:
        return "everywhere"
    rank = {"period": 0, "block": 1, "slice": 2}
    parts = sorted(region.spans.items(), key=lambda item: rank[item[1].kind])
    return ", ".join(_span_words(span, axis_name(axis, names)) for axis, span in parts)


def _span_words(span: Span, name: str) -> str:
    if span.period is not None:
        if span.width == 1:
            return f"every {_ordinal(span.period)} of {name} from {span.phase}"
        sticks = " (sticks)" if span.width % STICK == 0 and span.period % STICK == 0 else ""
        return f"{span.width} of every {span.period} of {name} from {span.phase}{sticks}"
    if span.stop - span.start == 1:
        return f"{name} {span.start}"
    aligned = ", a stick's edge" if span.start % STICK == 0 and span.start else ""
    if span.start == 0:
        edge = ", a stick's edge" if span.stop % STICK == 0 else ""
        return f"{name} before {span.stop}{edge}"
    if span.stop == span.length:
        return f"{name} from {span.start} on{aligned}"
    return f"{name} {span.start}..{span.stop - 1}"


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }".replace(" ", "")


def number(value: float | None) -> str:
    """A number with five significant digits; ? for None."""
    return "?" if value is None else f"{value:.5g}"


def words_of(relation: Relation, names: tuple[str, ...]) -> str:
    """What the elements are, in words."""
    axis = axis_name(relation.axis, names)
    kind = relation.kind
    if kind == "overflow":
        return (
            f"near {number(relation.factor)}, the largest numbers of fp16"
            if relation.factor != float("inf")
            else "infinite"
        )
    if kind == "nan":
        return "NaN"
    if kind == "zeros":
        return "exactly zero"
    if kind == "constant":
        return f"constant {number(relation.factor)}"
    if kind == "scale":
        return f"the reference scaled by {number(relation.factor)}"
    if kind == "offset":
        return f"the reference plus {number(relation.factor)}"
    if kind == "roll":
        end = "" if relation.wraps else ", without wrapping"
        return f"the reference rolled by {relation.shift} along {axis}{end}"
    if kind == "copy" and relation.source is not None:
        return f"copies of {axis} {relation.source} of the reference"
    if kind == "copy":
        return f"copies of the slice {relation.shift} before, along {axis}"
    if kind == "transpose":
        return f"the reference with axes {_swapped(relation.order)} transposed (strides ignored)"
    if relation.order:
        return f"the reference with its axes in the order {relation.order}"
    return f"the reference's slices of {axis} in another order, in blocks of {relation.block}"


def _swapped(order: tuple[int, ...] | None) -> str:
    moved = [str(axis) for axis, other in enumerate(order or ()) if axis != other]
    return " and ".join(moved)
