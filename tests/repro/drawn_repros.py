"""Every numeric and compile fault of the simulated card, its parameters drawn: from shadow to a proved script.

python tests/repro/drawn_repros.py [DRAWS] [SEED] [KIND...]   prints each draw and the figures. Starting torch costs
more than a draw, so the processes of a draw are forked from one that has torch loaded and has not touched the card.
SPYRE_SIM_COMPILE=1 compiles eager kernels as the card does, which is slow.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INSIDE = ROOT / "scripts/debug_spyre/inside"
OPS = {
    "add": "torch.add(x, y)", "mul": "torch.mul(x, y)", "sub": "torch.sub(x, y)", "div": "torch.div(x, y)",
    "exp": "torch.exp(x)", "rsqrt": "torch.rsqrt(x)", "silu": "torch.nn.functional.silu(x)",
    "sigmoid": "torch.sigmoid(x)", "_softmax": "torch.softmax(x, -1)", "mm": "torch.mm(x, w)",
    "bmm": "torch.bmm(x.view(1, *x.shape).contiguous(), w.view(1, *w.shape).contiguous())",
    "le": "x <= y", "lt": "x < y", "ge": "x >= y", "gt": "x > y", "eq": "x == y",
    "cumsum": "torch.cumsum(x, -1)", "repeat": "x.repeat(2, 1)", "cat": "torch.cat([x, y])",
    "index_select": "torch.index_select(x, 0, index)", "addmm": "torch.addmm(y, x, w)",
}  # fmt: skip
REDUCED = {
    "mean": "x.mean(-1, keepdim=True)", "mean.dim": "x.mean(-1)", "sum": "x.sum(-1)", "amax": "x.amax(-1)",
    "sum.dim_IntList": "x.sum(-1, keepdim=True)",
}  # fmt: skip
INPUTS = """
import torch
torch.manual_seed({seed})
x = (torch.rand({rows}, {width}) * 2 + 0.1).half().to("spyre")
y = (torch.rand({rows}, {out}) * 2 + 0.1).half().to("spyre")
w = (torch.rand({width}, {out}) * 2 + 0.1).half().to("spyre")
index = torch.randint(0, {rows}, ({rows},)).to("spyre")
torch.neg(x); torch.abs(y)
"""


@dataclass(frozen=True)
class Case:
    """A fault, a piece of work that shows it, and what the smallest program must look like."""

    fault: str
    source: str
    is_smallest: Callable[[Any], bool]
    text: str
    said: str = ""


def drawn(kind, rng, **fixed):
    """A fault of that kind with its parameters."""
    from torch_spyre import faults

    text = faults.draw(kind, rng, **fixed)
    return text, faults.parse(text)[0]


def given(expression, form, names="xy"):
    """The expression with its inputs in that form."""
    return re.sub(rf"\b[{names}]\b", lambda found: form.format(found.group()), expression)


def inputs(rng, *, width=None, rows=None, square=True):
    width = width or rng.randint(130, 400)
    rows = rows or rng.randint(4, 9)
    return INPUTS.format(seed=rng.randrange(999), rows=rows, width=width, out=width if square else rng.randint(70, 140))


def sizes(program):
    """All sizes of the judged call."""
    return [size for t in program.call.tensors() for size in t.shape]


def last(program):
    """The last dimension of the result of a pointwise op or a matrix product."""
    return program.call.tensors()[-1].shape[-1] if program.call.tensors()[-1].shape else 1


def case_of(kind, rng):
    return CASES[kind](kind, rng)


def _plain(kind, rng, expect, words, *, width=None, rows=None, said=lambda fault: "", **fixed):
    text, fault = drawn(kind, rng, **fixed)
    expression = {**OPS, **REDUCED}[fault.op]
    return Case(
        text,
        inputs(rng, width=width, rows=rows) + expression + "\n",
        lambda p: expect(p, fault),
        words(fault),
        said(fault),
    )


def partial(kind, rng):
    case = _plain(
        kind, rng, lambda p, f: p.call.tensors()[0].shape[-1] == f.width + 1, lambda f: f"width {f.width + 1}",
        width=rng.randint(280, 600),
    )  # fmt: skip
    rising = case.source.replace("* 2 + 0.1", "* 2 + torch.linspace(0, 4, x_width)", 1)  # the largest are dropped
    return replace(case, source=re.sub(r"x_width", re.search(r"rand\(\d+, (\d+)\)", rising)[1], rising))


def broadcast(kind, rng):
    text, fault = drawn(kind, rng)
    source = (
        inputs(rng) + "torch.bmm(x.view(1, *x.shape).expand(3, *x.shape), w.view(1, *w.shape).expand(3, *w.shape))\n"
    )

    def expect(program):
        a = program.call.tensors()[0]
        return a.shape[0] == 2 and a.shape[1] == fault.phase + 1

    return Case(text, source, expect, f"2 batches of {fault.phase + 1} rows")


def offset(kind, rng):
    text, fault = drawn(kind, rng, op=rng.choice(["add", "mul", "mm", "exp"]))  # it does not reach into cat's list
    expression = given(OPS[fault.op], "{}[2:]")
    return Case(
        text, inputs(rng) + expression + "\n", lambda p: max(t.offset for t in p.call.tensors()) == 1, "offset 1"
    )


def stick(kind, rng):
    return _plain(kind, rng, lambda p, f: last(p) == f.stick + 1, lambda f: f"width {f.stick + 1}")


def padding(kind, rng):
    def least(f):
        return 2 if f.op == "_softmax" and f.value == "1.0" else 1

    return _plain(
        kind, rng, lambda p, f: last(p) == least(f), lambda f: f"width {least(f)}", width=rng.randint(65, 127)
    )


def stale(kind, rng):
    text, fault = drawn(kind, rng)
    again = given(OPS[fault.op], "({} + 1)", names="x")
    source = inputs(rng) + f"{OPS[fault.op]}\n" * (fault.every - 1) + again + "\n"
    ones = lambda p: len(p.prelude) == fault.every - 1 and set(sizes(p)) == {1}  # noqa: E731
    return Case(text, source, ones, f"{fault.every - 1} calls before")


def nan(kind, rng):
    return _special(kind, rng, "x[1, 3] = float('nan')\n")


def _special(kind, rng, line):
    text, fault = drawn(kind, rng)
    made = (
        inputs(rng)
        .replace("x = (", "x = made = (")
        .replace('.half().to("spyre")\ny', f".half()\n{line}x = made.to('spyre')\ny")
    )
    return Case(text, made + OPS[fault.op] + "\n", lambda p: set(sizes(p)) == {1}, "sizes of 1")


def plan(kind, rng):
    text, fault = drawn(kind, rng)
    small = given(OPS[fault.op], "{}[:2].contiguous()")
    source = inputs(rng) + small + "\n" + OPS[fault.op] + "\n"

    def expect(program):
        return len(program.prelude) == 1 and program.call.tensors()[0].shape[-2] == 2

    return Case(text, source, expect, "one call before, 2 rows")


def history(kind, rng):
    text, fault = drawn(kind, rng, op=rng.choice(["mul", "add", "rsqrt", "silu"]))
    trigger = {"sum": "x.sum(-1)"}.get(fault.trigger) or OPS[fault.trigger]
    source = inputs(rng) + f"{trigger}\n" * (fault.times + rng.randint(0, 2)) + OPS[fault.op] + "\n"

    def expect(program):
        return len(program.prelude) == fault.times and set(sizes(program)) <= {1}

    return Case(text, source, expect, f"{fault.times} calls of {fault.trigger} before")


def scaled(kind, rng):
    return _plain(
        kind, rng, lambda p, f: last(p) == f.over + 1, lambda f: f"width {f.over + 1}", width=rng.randint(210, 400)
    )


def along(least):
    def case(kind, rng):
        def size(program, fault):
            tensors = program.call.tensors()
            t = tensors[-1] if fault.dim == -1 else tensors[0]
            return t.shape[fault.dim]

        return _plain(
            kind, rng, lambda p, f: size(p, f) == least(f), lambda f: f"size {least(f)}", rows=rng.randint(140, 180)
        )

    return case


def shifted(kind, rng):
    text, fault = drawn(kind, rng)
    made = inputs(rng) + "i = torch.randint(0, 900, (3, 20), dtype=torch.int32).to('spyre')\n"
    work = {"add": "i + i", "sub": "i - 1", "index_select": "torch.index_select(i, 0, index[:1] * 0)"}[fault.op]
    return Case(
        text, made + work + "\n", lambda p: p.call.tensors()[0].shape[-1] == fault.start + 1, f"width {fault.start + 1}"
    )


def ones(kind, rng):
    return _plain(kind, rng, lambda p, f: set(sizes(p)) <= {1}, lambda f: "sizes of 1")


def flaky(kind, rng):
    text, fault = drawn(kind, rng)
    source = inputs(rng) + f"{OPS[fault.op]}\n" * 60
    return Case(text, source, lambda p: p.repeat > 1 and set(sizes(p)) <= {1}, "repeated, sizes of 1")


def overload(kind, rng):
    op = rng.choice(["add", "mul", "sub", "div", "exp", "rsqrt", "sigmoid"])  # silu has one entry for all its forms
    text, fault = drawn(kind, rng, op=op)
    if fault.form == "functional" and rng.random() < 0.5:
        text, fault = drawn(kind, rng, op=op, form="functional", how="dtype")
    second = ", y" if fault.op in {"add", "mul", "sub", "div"} else ""
    work = {
        "functional": f"torch.{fault.op}(x{second})",
        "inplace": f"torch.ops.aten.{fault.op}_(x{second})",
        "out": f"torch.ops.aten.{fault.op}.out(x{second}, out=torch.empty_like(x))",
    }[fault.form]
    return Case(text, inputs(rng) + work + "\n", lambda p: set(sizes(p)) <= {1}, f"{fault.form}, sizes of 1")


def eager(kind, rng):
    text, fault = drawn(kind, rng, where="eager")
    return Case(text, inputs(rng) + OPS[fault.op] + "\n", lambda p: set(sizes(p)) <= {1}, "sizes of 1")


def strided_fallback(kind, rng):
    text, fault = drawn(kind, rng)
    work = given(OPS[fault.op], "{}.t()")
    return Case(text, inputs(rng) + work + "\n", small_and_strided, "strided, at most 2 by 2")


def small_and_strided(program):
    tensors = program.call.tensors()
    return any(t.stride is not None for t in tensors) and max(t.numel for t in tensors) <= 4


def cast(kind, rng):
    text, fault = drawn(kind, rng)
    work = "torch.rand(5, 70).to('spyre', torch.float16)\n" if fault.way == "h2d" else "x.to('cpu', torch.float32)\n"
    return Case(text, inputs(rng) + work, lambda p: set(sizes(p)) <= {1}, "sizes of 1")


def copy(kind, rng):
    text, fault = drawn(kind, rng)
    work = "x.t().clone(memory_format=torch.contiguous_format)\n" if fault.way == "d2d" else "x.t().cpu()\n"
    return Case(text, inputs(rng) + work, small_and_strided, "strided, at most 2 by 2")


def argument(kind, rng):
    text, fault = drawn(kind, rng)
    work = OPS[fault.op].removesuffix(")") + f", alpha={rng.choice([2, 3])})"
    return Case(
        text,
        inputs(rng) + work + "\n",
        lambda p: "alpha" in p.call.kwargs and set(sizes(p)) <= {1},
        "alpha, sizes of 1",
    )


def layout_width(kind, rng):
    return _plain(
        kind, rng, lambda p, f: max(sizes(p)) == 2, lambda f: "size 2", width=rng.randint(65, 120),
        said=lambda f: f"no multiple of {f.multiple}",
    )  # fmt: skip


def layout_shape(kind, rng):
    def case(program, fault):
        return any(len(t.shape) >= -fault.dim and t.shape[fault.dim] == fault.over + 1 for t in program.call.tensors())

    return _plain(
        kind, rng, case, lambda f: f"size {f.over + 1}", width=rng.randint(280, 330), rows=rng.randint(280, 330)
    )


CASES = {
    "partial_reduction": partial, "broadcast_overflow": broadcast, "dropped_offset": offset, "after_first_stick": stick,
    "padding_lanes": padding, "stale_output": stale, "nan_to_finite": nan, "plan_reuse": plan, "history": history,
    "scaled": scaled, "rolled": along(lambda f: f.shift + 1), "copied_row": along(lambda f: f.target + 1),
    "swapped_blocks": along(lambda f: 2 * f.block), "shifted_index": shifted, "flipped_mask": ones, "flaky": flaky,
    "wrong_overload": overload, "mode_only": eager, "fallback_ignores_strides": strided_fallback, "clobbered_cast": cast,
    "copy_ignores_strides": copy, "ignored_argument": argument, "falls_back": ones, "layout_width": layout_width,
    "layout_shape": layout_shape, "lowering_error": ones, "codegen_error": ones, "unimplemented": ones,
}  # fmt: skip


def forked(work):
    """What `work` returns, in a child; raises what it raises as text."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            data = {"value": work()}
        except BaseException:
            data = {"error": traceback.format_exc()}
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            json.dump(data, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    data = json.loads(said)
    assert "error" not in data, data["error"]
    return data["value"]


def use_card(folder):
    """This process becomes one whose children have the card."""
    compiled = os.environ.get("SPYRE_SIM_COMPILE", "0")
    for name in [n for n in os.environ if n.startswith(("SPYRE_", "DEBUG_SPYRE", "PYTEST_"))]:
        del os.environ[name]
    (folder / "card").touch()
    os.environ |= {
        "SPYRE_SIM_DEVICE": str(folder / "card"),
        "SPYRE_SIM_COMPILE": compiled,
        "DEBUG_SPYRE_PYTHON": sys.executable,
    }
    sys.path[:0] = [str(ROOT / "scripts"), str(INSIDE)]
    import torch

    torch.set_num_threads(1)


def shadowed(case, folder):
    """The report of the piece of work under the shadow."""

    def work():
        import debug_spyre_shadow
        from torch_spyre import faults

        mode = debug_spyre_shadow.Shadow(folder, {"root": str(folder)})
        script = folder / "work.py"
        script.write_text(case.source, encoding="utf-8")
        with faults.inject(case.fault):
            try:
                with mode:
                    exec(compile(case.source, str(script), "exec"), {})
            except Exception as error:
                print(f"{type(error).__name__}: {str(error)[:200]}", file=sys.stderr) if os.environ.get(
                    "LOUD"
                ) else None
        mode.write()

    forked(work)
    return json.loads((folder / "shadow.json").read_text(encoding="utf-8"))


def searched(case, folder, suspect):
    """The search for the smallest program and its proof: (search, proof)."""
    from debug_spyre.examine.io.trials import Trials
    from debug_spyre.repro.io.proof import Prover
    from debug_spyre.repro.io.repro_session import ReproSession
    from debug_spyre.session.events import SessionOpened
    from debug_spyre.session.io.workspace import new_session_folder
    from debug_spyre.vocabulary.words import RunStatus

    session = new_session_folder(folder / "logs", "debug-20261130-100000-drawn")
    opened = SessionOpened(
        stem=session.stem, slug="drawn", symptom="s", members=({"nodeid": "t::a"},), checkout=str(folder)
    )
    session.journal.append(opened)

    class ForkedTrials(Trials):
        def ask(self, question, answers, seconds, card=None):
            import debug_spyre_trial
            from torch_spyre import faults

            def work():
                with faults.inject(case.fault):
                    return debug_spyre_trial.main(str(question), str(answers))

            from debug_spyre.examine.io.trials import _read

            forked(work)
            return {**_read(answers), "status": "passed"}

    class ForkedProver(Prover):
        def run_script(self, path, *, name=None):
            import debug_spyre_trial
            from torch_spyre import faults

            def work():
                with faults.inject(case.fault):
                    return debug_spyre_trial.run_script(
                        path.read_text(encoding="utf-8").replace("__file__", repr(str(path)))
                    )

            return SimpleNamespace(exit=forked(work)["exit"], id="r1", status=RunStatus.PASSED)

    trials = ForkedTrials(session, folder, runs=400, seconds=900)
    search = ReproSession(ForkedProver(session, folder, trials), 2)
    proof = search.from_call(suspect.call, suspect.original, prelude=suspect.prelude)
    return search, proof, (session.path / proof.script).read_text(encoding="utf-8") if proof.shown else ""


def suspect_of(report, folder):
    """What repro would take up."""
    from debug_spyre.examine.call import call_from_json
    from debug_spyre.repro.io.suspects import read_suspect
    from debug_spyre.repro.same_fault import Fingerprint

    if report["suspect"]:
        suspect = read_suspect(folder / "suspect/call.json")
        kind = "error" if report["suspect"]["error"] else "difference"
        return SimpleNamespace(call=suspect.call, prelude=suspect.prelude, original=Fingerprint(kind))
    calls = [f["call"] for f in report["fallbacks"] if f["call"]]
    return (
        SimpleNamespace(call=call_from_json(calls[0]), prelude=(), original=Fingerprint("fallback")) if calls else None
    )


def formatted_lines(text):
    """Lines that are not empty once a formatter has laid the script out."""
    ruff = Path(sys.executable).with_name("ruff")
    done = subprocess.run([ruff, "format", "--isolated", "-"], input=text, capture_output=True, text=True, check=True)
    return sum(bool(line.strip()) for line in done.stdout.splitlines())


def one(kind, seed):
    """(fine?, text, script)."""
    from debug_spyre.repro.script import MOST_LINES

    case = case_of(kind, random.Random(f"{kind} {seed}"))
    with tempfile.TemporaryDirectory(prefix="drawn-") as name:
        folder = Path(name)
        suspect = suspect_of(shadowed(case, folder), folder)
        if suspect is None:
            return False, f"{case.fault}: shadow names nothing", ""
        search, proof, text = searched(case, folder, suspect)
        lines = formatted_lines(text)
        fine = proof.is_verified and lines <= MOST_LINES and case.is_smallest(search.smallest)
        fine = fine and case.said in "; ".join(search.thresholds)
    words = "" if fine else f"; wanted {case.text}, {'; '.join(search.notes)}\n{text}"
    return fine, f"{case.fault}: {lines} lines, {proof.stamp}; {'; '.join(search.thresholds)}{words}", text


def main(draws, seed, kinds):
    """Print every draw and the figures."""
    with tempfile.TemporaryDirectory(prefix="drawn-") as name:
        use_card(Path(name))
        hits = dict.fromkeys(kinds, 0)
        for kind in kinds:
            for number in range(seed, seed + draws):
                began = time.time()
                fine, text, _ = one(kind, number)
                hits[kind] += fine
                print(
                    f"{kind} {number} {'fine' if fine else 'NOT FINE'} {time.time() - began:.1f} s {text}", flush=True
                )
    print(f"{sum(hits.values())} of {draws * len(kinds)} draws gave a verified script of the smallest size")
    print(", ".join(f"{kind} {n}" for kind, n in hits.items() if n < draws) or "every kind")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if sys.argv[1:] else 2, int(sys.argv[2]) if sys.argv[2:] else 0, sys.argv[3:] or sorted(CASES)
    )
