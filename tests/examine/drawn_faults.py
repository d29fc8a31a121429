"""Faults drawn at random on the simulated card: does `shadow` name the op? (Conditions: drawn_conditions.py)

python tests/examine/drawn_faults.py [DRAWS] [SEED]   prints each draw and the figures. All draws run
in one process (starting torch costs more than the draw); the fault is given to the card alone, no tool reads it.
"""

import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSIDE = ROOT / "scripts/debug_spyre/inside"
PLUGIN_REPO = ROOT / "tests/simulated_card/plugin_repo"
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


TESTS = ("tests", "-k", "not STOCK and not decode")


def one_shadow(seed, tests=TESTS):
    """(outcome, text): named, missed, or silent (no test fails and nothing was off)."""
    fault, wanted = draw_for_shadow(random.Random(seed))
    with tempfile.TemporaryDirectory(prefix="drawn-") as name:
        report = shadow_here(fault, Path(name), tests)
    suspect = report.get("suspect")
    if suspect:
        said = {suspect["op"].split(".")[1], suspect["op"].split(".")[1].rstrip("_")} | names(suspect["op"])
        return ("named" if said & wanted else "missed"), f"{fault}: {suspect['op']} at {suspect['site']}"
    failed = [n for n, o in report["outcomes"].items() if o == "failed" and "does_not_fall_back" not in n]
    return ("missed" if failed else "silent"), f"{fault}: nothing named, {len(failed)} tests fail"


def names(op):
    base = op.split(".")[1]
    return {key for key, others in NEAR.items() if base in others}


def shadow_here(fault, folder, tests):
    """The report of one shadowed run of the plugin repo's tests, in this process."""
    import contextlib
    import io

    import debug_spyre_shadow
    import pytest
    from torch_spyre import faults

    mode = debug_spyre_shadow.Shadow(folder, {"root": str(PLUGIN_REPO)})
    debug_spyre_shadow._SHADOW = mode
    before = os.getcwd()
    os.chdir(PLUGIN_REPO)
    try:
        with contextlib.redirect_stdout(io.StringIO()), faults.inject(*([fault] if fault else [])):
            pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:warnings", *tests], plugins=[debug_spyre_shadow])
    finally:
        os.chdir(before)
    return json.loads((folder / "shadow.json").read_text(encoding="utf-8"))


def use_card(folder):
    """This process becomes one that has the card."""
    for name in [n for n in os.environ if n.startswith(("SPYRE_", "DEBUG_SPYRE", "PYTEST_"))]:
        del os.environ[name]
    (folder / "card").touch()
    os.environ |= {"SPYRE_SIM_DEVICE": str(folder / "card"), "SPYRE_SIM_COMPILE": "0"}
    sys.path[:0] = [str(ROOT / "scripts"), str(INSIDE)]
    import torch

    torch.set_num_threads(1)


def main(draws, seed):
    """Print every draw and the figures."""
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="drawn-") as name:
        use_card(Path(name))
        shadows(draws, seed)
    print(f"{time.time() - began:.0f} s")


def shadows(draws, seed):
    tally = {"named": 0, "missed": 0, "silent": 0}
    while tally["named"] + tally["missed"] < draws:
        outcome, text = one_shadow(seed)
        tally[outcome] += 1
        print(f"shadow {seed} {outcome}: {text}", flush=True)
        seed += 1
    print(f"shadow named the op in {tally['named']} of {draws} draws ({tally['silent']} more faults showed in no test)")


if __name__ == "__main__":
    given = [*sys.argv[1:], *["100", "0"][len(sys.argv) - 1 :]]
    main(int(given[0]), int(given[1]))
