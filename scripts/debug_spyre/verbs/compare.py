"""The verb `compare`: are two tensor files close, and if not, what is the pattern."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_spyre.host.files import write_atomically
from debug_spyre.numerics.io.tensor_files import read_tensor
from debug_spyre.session.events import ReportMade
from debug_spyre.session.io.workspace import Folder
from debug_spyre.verbs.session_option import add_session_argument, after_change, the_session
from debug_spyre.verbs.verb import Verb, answer
from debug_spyre.vocabulary.errors import BadInputError, Exit, UsageError

if TYPE_CHECKING:
    from debug_spyre.numerics.comparison import Comparison
    from debug_spyre.numerics.formats import Values


def _add(parser: ArgumentParser) -> None:
    parser.add_argument("actual", metavar="A", help="the device's result: FILE or FILE:KEY (.safetensors .npy .pt)")
    parser.add_argument("expected", metavar="B", help="the reference result")
    parser.add_argument("--rtol", type=float, metavar="R", help="relative tolerance (default: torch's for the dtype)")
    parser.add_argument("--atol", type=float, metavar="A", help="absolute tolerance")
    parser.add_argument(
        "--golden", metavar="FILE", help="float64 result of the same inputs, to judge device and reference against"
    )
    parser.add_argument(
        "--layout", metavar="NAMES", help="names of the axes, comma-separated; NAME=SIZE splits an axis"
    )
    parser.add_argument("--picture", metavar="FILE.svg", type=Path, help="write a picture of the wrong elements")
    parser.add_argument("--log", action="store_true", help="keep the answer and its picture in the session's log")
    add_session_argument(parser)


def _run(args: Namespace) -> int:
    for name in ("rtol", "atol"):
        value = getattr(args, name)
        if value is not None and not (value >= 0 and math.isfinite(value)):
            raise UsageError(f"--{name} {value} is no tolerance", next=f"debug-spyre compare A B --{name} 0.001")
    keep = the_session(args) if args.log else None
    return _compare(
        args.actual, args.expected, golden=args.golden, layout=args.layout, picture=args.picture,
        rtol=args.rtol, atol=args.atol, as_json=args.json, keep=keep,
    )  # fmt: skip


def _compare(
    actual: str, expected: str, *, golden: str | None, layout: str | None, picture: Path | None,
    rtol: float | None, atol: float | None, as_json: bool, keep: Folder | None,
) -> int:  # fmt: skip
    a, e = read_tensor(actual), read_tensor(expected)
    from debug_spyre.numerics.comparison import compare, lines_of
    from debug_spyre.numerics.measure import magnitude_lines, magnitudes
    from debug_spyre.numerics.verdict import as_svg

    g = read_tensor(golden) if golden else None
    _same_shape(actual, a, expected, e)
    if g is not None:
        _same_shape(golden or "", g, expected, e)
    names, shape = _layout(layout, a.array.shape)
    a, e = _reshaped(a, shape), _reshaped(e, shape)
    golden_values = _reshaped(g, shape) if g is not None else None
    comparison = compare(a, e, rtol=rtol, atol=atol, golden=golden_values, names=names)
    lines, data = lines_of(comparison), comparison.to_json()
    if a.dtype != e.dtype:
        lines.insert(1, f"  types differ: {a.dtype} and {e.dtype}")
    if layout:
        table = magnitudes(a.array, e.array, names)
        lines += magnitude_lines(table)
        data["magnitudes"] = table
    if picture:
        _draw(picture, comparison, as_svg)
    if keep is not None:
        facts = {"picture": comparison.picture} if comparison.picture else {}
        keep.journal.append(ReportMade(verb="compare", lines=(f"{actual} against {expected}", *lines[:9]), data=facts))
        lines.append(f"log: {after_change(keep)}")
    answer(lines, data, as_json=as_json)
    return int(Exit.YES if comparison.verdict.value == "same" else Exit.NO)


def _draw(path: Path, comparison: Comparison, as_svg: Any) -> None:
    data = comparison.picture or {"rows": 1, "cols": 1, "values": [[0]], "caption": comparison.judgement.reason}
    write_atomically(path, as_svg(data))


def _same_shape(first: str, a: Values, second: str, b: Values) -> None:
    if a.array.shape != b.array.shape:
        raise BadInputError(
            f"shapes differ: {first} is {list(a.array.shape)}, {second} is {list(b.array.shape)}",
            next="compare tensors of one shape",
        )


def _layout(layout: str | None, shape: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Axis names and the shape they stand for; NAME=SIZE parts say how a flattened axis splits."""
    if not layout:
        return (), shape
    words = [word.partition("=") for word in layout.split(",")]
    names = tuple(name.strip() for name, _, _ in words)
    example = ",".join(f"axis{i}" for i in range(len(shape))) or "NAME"
    if all(size == "" for _, _, size in words):
        if len(names) != len(shape):
            raise BadInputError(
                f"--layout names {len(names)} axes, the tensors have {len(shape)}: {list(shape)}",
                next=f"--layout {example}, or NAME=SIZE for each to split one",
            )
        return names, shape
    try:
        sizes = tuple(int(size) for _, _, size in words)
    except ValueError as error:
        raise BadInputError(f"--layout {layout}: give a size for every axis", next="--layout head=8,dim=64") from error
    if math.prod(sizes) != math.prod(shape) or min(sizes) < 1:
        raise BadInputError(
            f"--layout {layout} has {math.prod(sizes)} elements, the tensors have {math.prod(shape)}",
            next=f"the shape is {list(shape)}",
        )
    return names, sizes


def _reshaped(values: Values, shape: tuple[int, ...]) -> Values:
    return replace(values, array=values.array.reshape(shape))


VERBS = {
    "compare": Verb(
        add_arguments=_add,
        run=_run,
        example="debug-spyre compare runs/r2/tensors/001-test-rms.safetensors:actual0 runs/r2/tensors/001-test-rms.safetensors:expected0",
    )
}
