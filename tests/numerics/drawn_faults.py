"""Faults drawn at random on the simulated card: does `shadow` name the op, does `sweep` find the condition?

python tests/numerics/drawn_faults.py [DRAWS] [SEED]   prints each draw and the two figures. The tools never see the
fault's variable's meaning: it is set for the process that stands for the card only.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSIDE = ROOT / "scripts/debug_spyre/inside"
PLUGIN_REPO = ROOT / "tests/simulated_card/plugin_repo"
SWEPT = {
    "mean": ("aten.mean.dim", ["f16[4,{n}]", "[-1]", "True"]),
    "sum": ("aten.sum.dim_IntList", ["f16[4,{n}]", "[-1]", "True"]),
    "amax": ("aten.amax.default", ["f16[4,{n}]", "[-1]", "True"]),
    "mm": ("aten.mm.default", ["f16[8,{n}]", "f16[{n},64]"]),
    "bmm": ("aten.bmm.default", ["f16[2,8,{n}]", "f16[2,{n},64]"]),
    "mul": ("aten.mul.Tensor", ["f16[4,{n}]", "f16[{n}]"]),
    "add": ("aten.add.Tensor", ["f16[4,{n}]", "f16[4,{n}]"]),
    "exp": ("aten.exp.default", ["f16[4,{n}]"]),
    "sigmoid": ("aten.sigmoid.default", ["f16[4,{n}]"]),
    "_softmax": ("aten._softmax.default", ["f16[4,{n}]", "-1", "False"]),
}
NEAR = {"mm": {"mm", "addmm", "linear", "matmul"}, "bmm": {"bmm", "matmul", "batched_matmul"}, "silu": {"silu"}}


def environment(folder, fault, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPYRE_", "DEBUG_SPYRE", "PYTEST_", "TORCH_SPYRE"))}
    device = folder / "card"
    device.touch()
    env |= {"SPYRE_SIM_DEVICE": str(device), "DEBUG_SPYRE_DEVICES": str(device), "SPYRE_SIM_COMPILE": "0"}
    env |= {"SPYRE_SIM_FAULTS": fault, "PYTHONPATH": str(INSIDE), "DEBUG_SPYRE_RESULTS": str(folder / "results.jsonl")}
    return env | more


def draw_for_shadow(rng):
    """(specification, base names of ops that may be named)."""
    kind = rng.choice(
        ["partial", "stick", "scaled", "rolled", "copied", "offset", "broadcast", "mask", "cast", "stale", "strides"]
    )
    op = rng.choice(["mul", "add", "rsqrt", "mm", "silu"])
    if kind == "partial":
        op = rng.choice(["mean", "mm", "bmm"])
        return f"partial_reduction:op={op}:width={rng.randint(48, 250)}:keep={rng.choice(['half', 'width'])}", {op}
    if kind == "stick":
        op = rng.choice(["mul", "mm", "silu"])
        return f"after_first_stick:op={op}:stick=64:how={rng.choice(['repeat', 'zero', 'scale'])}", {op}
    if kind == "scaled":
        op = rng.choice(["mul", "_softmax", "rsqrt", "add", "mm"])
        return f"scaled:op={op}:factor={rng.choice([0.5, 1.4140625, 2.0])}:over=0", {op}
    if kind == "rolled":
        op = rng.choice(["add", "mul", "mm", "silu"])
        return f"rolled:op={op}:dim=-1:shift={rng.randint(1, 3)}", {op}
    if kind == "copied":
        op = rng.choice(["add", "mul", "mm"])
        return f"copied_row:op={op}:dim=-1:source=0:target={rng.randint(2, 9)}", {op}
    if kind == "offset":
        op = rng.choice(["mm", "mul", "silu", "add"])
        return f"dropped_offset:op={op}", {op}
    if kind == "broadcast":
        every = rng.randint(2, 8)
        return f"broadcast_overflow:every={every}:phase={rng.randint(0, 1)}", {"bmm", "matmul"}
    if kind == "mask":
        return f"flipped_mask:op=le:every={rng.choice([2, 64])}", {"le"}
    if kind == "cast":
        return "clobbered_cast:way=h2d", {"_to_copy", "copy_"}
    if kind == "stale":
        op = rng.choice(["mul", "add"])
        return f"stale_output:op={op}:every=2", {op}
    return "copy_ignores_strides:way=d2d", {"clone", "contiguous", "copy_"}


def shadow(fault, folder, tests):
    """The report of one shadowed run of the plugin repo's tests."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "debug_spyre_shadow", "-p", "no:cacheprovider", *tests]
    env = environment(folder, fault, DEBUG_SPYRE_SHADOW=json.dumps({"root": str(PLUGIN_REPO)}))
    done = subprocess.run(words, cwd=PLUGIN_REPO, env=env, capture_output=True, text=True)
    report = json.loads((folder / "shadow.json").read_text(encoding="utf-8"))
    return report, done


def names(op):
    base = op.split(".")[1].rstrip("_") if not op.split(".")[1].startswith("_") else op.split(".")[1]
    return {base} | {key for key, others in NEAR.items() if base in others}


def one_shadow(seed, tests=("-k", "not STOCK", "tests")):
    """(outcome, text): named, missed, or silent (no test fails and nothing was off)."""
    rng = random.Random(seed)
    fault, wanted = draw_for_shadow(rng)
    with tempfile.TemporaryDirectory(prefix="drawn-") as name:
        folder = Path(name)
        report, done = shadow(fault, folder, tests)
        suspect = report.get("suspect")
        if suspect and names(suspect["op"]) & {w.rstrip("_") if not w.startswith("_") else w for w in wanted} | (
            {suspect["op"].split(".")[1]} & wanted
        ):
            return "named", f"{fault}: {suspect['op']} at {suspect['site']}"
        if suspect:
            return "missed", f"{fault}: named {suspect['op']} at {suspect['site']}"
        failed = [n for n, o in report["outcomes"].items() if o == "failed" and "does_not_fall_back" not in n]
        return ("missed" if failed else "silent"), f"{fault}: nothing named, {len(failed)} tests fail"


def draw_for_sweep(rng):
    """(specification, op, the condition that should be found)."""
    kind = rng.choice(["partial", "partial", "partial", "stick", "padding", "scaled"])
    if kind == "partial":
        op = rng.choice(["mean", "sum", "amax", "mm", "bmm"])
        width = rng.randint(48, 271)
        keep = rng.choice(["half", "width"])
        return f"partial_reduction:op={op}:width={width}:keep={keep}", op, (">", width)
    op = rng.choice(["mul", "add", "exp", "sigmoid"])
    if kind == "stick":
        stick = rng.choice([64, 128])
        return (
            f"after_first_stick:op={op}:stick={stick}:how={rng.choice(['repeat', 'zero', 'scale'])}",
            op,
            (">", stick),
        )
    if kind == "padding":
        return f"padding_lanes:op={op}:value={rng.choice(['nan', 'zero'])}", op, ("!%", 64)
    op = rng.choice(["_softmax", "mul", "add"])
    over = rng.randint(60, 300)
    return f"scaled:op={op}:factor={rng.choice([0.5, 1.4140625, 2.0])}:over={over}", op, (">", over)


def sweep(fault, op, size, folder):
    """The summary of one sweep of the op at that size."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from debug_spyre.core.repro.call import call_to_json
    from debug_spyre.core.repro.words import read_call
    from debug_spyre.core.sweeping import summary

    name, words = SWEPT[op]
    call = call_to_json(read_call(name, [w.format(n=size) for w in words]))
    request = json.dumps({"call": call, "calls": 900, "seconds": 300})
    env = environment(folder, fault, DEBUG_SPYRE_SWEEP=request)
    done = subprocess.run(
        [sys.executable, "-m", "debug_spyre_sweep"], env=env, cwd=folder, capture_output=True, text=True
    )
    lines = (folder / "sweep.jsonl").read_text(encoding="utf-8").splitlines()
    return summary(name, [json.loads(line) for line in lines]), done


def one_sweep(seed):
    """(found the condition?, text)."""
    rng = random.Random(seed)
    fault, op, (relation, value) = draw_for_sweep(rng)
    size = rng.choice([320, 384, 500]) if relation == ">" else 100
    with tempfile.TemporaryDirectory(prefix="drawn-") as name:
        found, _ = sweep(fault, op, size, Path(name))
    condition = found["condition"] or {}
    exact = (
        condition.get("relation") == relation
        and condition.get("value") == value
        and "last dimension of argument 0" in str(condition.get("where"))
    )
    return exact, f"{fault}: {found['text']}"


def main(draws, seed):
    began = time.time()
    tally = {"named": 0, "missed": 0, "silent": 0}
    number = seed
    while tally["named"] + tally["missed"] < draws:
        outcome, text = one_shadow(number)
        tally[outcome] += 1
        print(f"shadow {number} {outcome}: {text}", flush=True)
        number += 1
    hits = 0
    for number in range(seed, seed + draws):
        exact, text = one_sweep(number)
        hits += exact
        print(f"sweep {number} {'exact' if exact else 'NOT exact'}: {text}", flush=True)
    print(
        f"shadow named the op in {tally['named']} of {draws} draws ({tally['silent']} faults showed in no test); "
        f"sweep found the exact condition in {hits} of {draws}; {time.time() - began:.0f} s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
