"""Faults drawn at random on the simulated card: is the condition that the search finds right on calls that it never saw?

python tests/examine/drawn_conditions.py [DRAWS] [SEED]   prints each draw and the figures. All draws run in one process;
the fault is given to the card alone, the search sees calls and answers only. One draw in four depends on something that
no feature knows: there the right answer is that no condition was found.
"""

import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path

import drawn_faults

UNSEEN = 200
CALLS = {
    "mean": ("aten.mean.dim", ["f16[4,320]", "[-1]", "True"]),
    "sum": ("aten.sum.dim_IntList", ["f16[4,320]", "[-1]", "True"]),
    "amax": ("aten.amax.default", ["f16[4,320]", "[-1]", "True"]),
    "mm": ("aten.mm.default", ["f16[8,320]", "f16[320,96]"]),
    "bmm": ("aten.bmm.default", ["f16[2,8,320]", "f16[2,320,96]"]),
    "mul": ("aten.mul.Tensor", ["f16[6,320]", "f16[320]"]),
    "add": ("aten.add.Tensor", ["f16[6,320]", "f16[6,320]"]),
    "sub": ("aten.sub.Tensor", ["f16[6,320]", "f16[6,320]"]),
    "exp": ("aten.exp.default", ["f16[6,320]"]),
    "sigmoid": ("aten.sigmoid.default", ["f16[6,320]"]),
    "silu": ("aten.silu.default", ["f16[6,320]"]),
    "rsqrt": ("aten.rsqrt.default", ["f16[6,320]"]),
    "_softmax": ("aten._softmax.default", ["f16[6,320]", "-1", "False"]),
}


def draw(rng):
    """(specification, op, what the call needs to show it)."""
    kind = rng.choice(
        [
            "partial",
            "partial",
            "stick",
            "padding",
            "scaled",
            "offset",
            "copied",
            "rolled",
            "swapped",
            "wrong_form",
            "broadcast",
        ]
    )
    op = rng.choice(["mul", "add", "exp", "sigmoid"])
    if kind == "partial":
        op = rng.choice(["mean", "sum", "amax", "mm", "bmm"])
        return f"partial_reduction:op={op}:width={rng.randint(48, 271)}:keep={rng.choice(['half', 'width'])}", op, {}
    if kind == "stick":
        how = rng.choice(["repeat", "zero", "scale"])
        return f"after_first_stick:op={op}:stick={rng.choice([64, 128])}:how={how}", op, {}
    if kind == "padding":
        return f"padding_lanes:op={op}:value={rng.choice(['nan', 'zero'])}", op, {"size": 100}
    if kind == "scaled":
        op = rng.choice(["_softmax", "mul", "add"])
        return f"scaled:op={op}:factor={rng.choice([0.5, 1.4140625, 2.0])}:over={rng.randint(1, 300)}", op, {}
    if kind == "offset":
        op = rng.choice(["mul", "add", "mm"])
        return f"dropped_offset:op={op}", op, {"offset": 320}
    if kind == "copied":
        op = rng.choice(["add", "mul"])
        return f"copied_row:op={op}:dim={rng.choice([-1, -2])}:target={rng.choice([2, 3])}", op, {}
    if kind == "rolled":
        op = rng.choice(["add", "mul", "mm"])
        return f"rolled:op={op}:dim=-1:shift={rng.randint(1, 3)}", op, {}
    if kind == "swapped":
        return f"swapped_blocks:op={rng.choice(['mul', 'add'])}:dim=-1:block={rng.choice([32, 64])}", "mul", {}
    if kind == "wrong_form":
        op = rng.choice(["mul", "add", "exp"])
        return f"wrong_overload:op={op}:form=functional", op, {}
    return f"broadcast_overflow:op=bmm:every={rng.randint(2, 8)}:phase=0", "bmm", {"expand": True}


def call_for(op, needs):
    """The call that shows the fault, as it would be recorded."""
    from debug_spyre.examine.call import call_to_json
    from debug_spyre.examine.typed_call import read_call

    name, words = CALLS[op]
    size = str(needs.get("size", 320))
    call = call_to_json(read_call(name, [w.replace("320", size) for w in words]))
    first = call["args"][0]["tensor"]
    if needs.get("offset"):
        first["offset"] = needs["offset"]
    if needs.get("expand"):
        first["stride"] = [0, first["shape"][2], 1]
    return call


class Unknowable:
    """A fault that looks at something that no feature knows: a digest of the shape."""

    def __init__(self, op, seed):
        self.op, self.seed = op, seed

    def is_wrong(self, shape):
        import zlib

        return zlib.crc32(repr((self.seed, tuple(shape))).encode()) % 3 == 0


def serve(search, unknowable=None):
    """Run a search to its end in this process; returns what it found and how many calls it made."""
    from debug_spyre_points import judged_point, shapes_of

    from debug_spyre.examine.search import Answer, Verdict

    made = 0
    ask = next(search)
    while True:
        answers = []
        for call in ask.calls:
            if ask.only_shapes:
                out = shapes_of(call)
                answers.append(Verdict(Answer.SHAPE, tuple(out)) if out is not None else Verdict(Answer.ILLEGAL))
                continue
            made += 1
            found = judged_point(call, key=str(made))
            verdict = Answer(found["verdict"])
            if unknowable and verdict in {Answer.RIGHT, Answer.WRONG} and found["out"]:
                verdict = Answer.WRONG if unknowable.is_wrong(found["out"][0]["shape"]) else Answer.RIGHT
            answers.append(Verdict(verdict, tuple(found["out"])))
        try:
            ask = search.send(answers)
        except StopIteration as end:
            return end.value, made


def one(seed):
    """(outcome, text): right, wrong, none (no condition found where there is one), or invented."""
    from debug_spyre_points import space_of
    from torch_spyre import faults

    from debug_spyre.examine.search import find

    rng = random.Random(seed)
    fault, op, needs = draw(rng)
    op = op if f"op={op}" in fault else fault.split("op=")[1].split(":")[0]
    unknowable = Unknowable(op, seed) if seed % 4 == 3 else None
    call = call_for(op, needs)
    with faults.inject(*([] if unknowable else [fault])):
        space = made_space(call, space_of(call))
        found, calls = serve(find(space, seed=seed, unseen=60), unknowable)
        said = found.condition.words() if found.condition else f"no condition ({found.why})"
        if unknowable:
            return ("right" if found.condition is None else "invented"), f"unknowable {op}: {said}; {calls} calls"
        if found.condition is None:
            return "none", f"{fault}: {said}; {calls} calls"
        agree, tried = unseen_agreement(space, found.condition, seed)
    share = agree / max(tried, 1)
    return (
        "right" if share >= 0.99 else "wrong"
    ), f"{fault}: {said}; {calls} calls, right on {agree} of {tried} unseen"


def made_space(call, told):
    from debug_spyre.examine.features import tensor_specs
    from debug_spyre.examine.variation import Space

    place = told["dim_place"]
    return Space(
        call=call,
        groups=tuple(tuple(map(tuple, g)) for g in told["groups"]),
        forms=tuple(map(tuple, told["forms"])),
        dim_place=place,
        is_list=place is not None and place < len(call["args"]) and isinstance(call["args"][place], list),
        rank=max((len(s["shape"]) for s in tensor_specs(call)), default=0),
    )


def unseen_agreement(space, condition, seed):
    """On how many of 200 calls that the search did not draw the condition is right."""
    from debug_spyre_points import judged_point, shapes_of

    from debug_spyre.examine.features import features
    from debug_spyre.examine.variation import Draws, contiguous, drawn

    agree = tried = 0
    sides = {True: 0, False: 0}
    for call in drawn(space, [space.call, contiguous(space.call)], Draws(seed + 10_000_019), 4 * UNSEEN):
        if tried >= UNSEEN:
            break
        out = shapes_of(call)
        if out is None:
            continue
        expected = condition.holds(features(call, out, dim_place=space.dim_place))
        if sides[expected] >= UNSEEN // 2 + 20:
            continue
        found = judged_point(call, key=f"unseen-{tried}")
        if found["verdict"] not in {"right", "wrong"}:
            continue
        tried += 1
        sides[expected] += 1
        agree += (found["verdict"] == "wrong") == expected
        if (found["verdict"] == "wrong") != expected and "-v" in sys.argv:
            print(
                "   differs:",
                found["verdict"],
                call["op"],
                [a["tensor"] if isinstance(a, dict) and "tensor" in a else a for a in call["args"]],
            )
    return agree, tried


def main(draws, seed):
    began, tally = time.time(), {}
    with tempfile.TemporaryDirectory(prefix="drawn-") as name, contextlib.ExitStack():
        drawn_faults.use_card(Path(name))
        for number in range(seed, seed + draws):
            begun = time.time()
            outcome, text = one(number)
            tally[outcome] = tally.get(outcome, 0) + 1
            print(f"{number} {outcome} ({time.time() - begun:.0f} s): {text}", flush=True)
    good = tally.get("right", 0)
    print(f"{tally} of {draws} draws; {time.time() - began:.0f} s")
    return 0 if good >= 0.95 * draws and not tally.get("invented") else 1


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    sys.exit(main(int(words[0]) if words else 20, int(words[1]) if len(words) > 1 else 0))
