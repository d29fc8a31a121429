"""demo: the whole loop on the simulated card, through the public command only; ends with two finished logs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debug_spyre.demo.demo_card import PACKAGE, Demo, prepare
from debug_spyre.verbs.answer import answer
from debug_spyre.verbs.verb import Verb
from debug_spyre.vocabulary.errors import DebugSpyreError, Exit

COMMAND = "import sys; sys.path.insert(0, sys.argv.pop(1)); from debug_spyre.cli import main; sys.exit(main())"
ACCUMULATION = """\
import torch, torch_spyre
x = torch.randn(4, 256, dtype=torch.float16)
fp16 = x.to("spyre").sum(-1).cpu()
print("sum: largest difference to the CPU", float((fp16 - x.sum(-1)).abs().max()))
"""
MEAN = """\
import torch, torch_spyre
for width in (64, 128, 129, 256, 512):
    x = torch.ones(2, width, dtype=torch.float16)
    print(f"mean of {width} ones: {float(x.to('spyre').mean(-1)[0]):.4f}")
"""
MUL = """\
import torch, torch_spyre
for width in (64, 50):
    a = torch.randn(3, width, dtype=torch.float16).to("spyre")
    try:
        print(width, tuple((a * a).shape))
    except Exception as error:
        print(width, type(error).__name__, str(error).strip().splitlines()[0][:150])
"""


@dataclass(frozen=True, slots=True)
class Shell:
    """Types the public command in the demo's checkout and shows what is typed and answered."""

    demo: Demo
    quiet: bool
    began: float

    def type(self, *words: str, stdin: str = "", allow: tuple[int, ...] = (0,)) -> str:
        """One command; a status that is not in `allow` ends the demo."""
        self._say(f"\n[{time.monotonic() - self.began:5.1f} s] $ debug-spyre {shlex.join(words)}")
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, str(PACKAGE.parent), *words],
            cwd=self.demo.checkout,
            env=self.demo.env,
            input=stdin,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if self.quiet else None,
            check=False,
        )
        if "--json" not in words:
            self._say(done.stdout.rstrip())
        if done.returncode not in allow:
            raise DebugSpyreError(
                f"the demo's step ended with status {done.returncode}: debug-spyre {shlex.join(words)}",
                details=tuple((done.stdout + (done.stderr or "")).splitlines()[-12:]),
                next=f"look into {self.demo.checkout}",
            )
        return done.stdout

    def ask(self, *words: str, allow: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """The same with --json."""
        data: dict[str, Any] = json.loads(self.type(*words, "--json", allow=allow))
        return data

    def _say(self, text: str) -> None:
        if text and not self.quiet:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="where to make the checkout (default: a new temporary folder)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end, nothing before")


def _demo(args: Namespace) -> int:
    began = time.monotonic()
    shell = Shell(prepare(args.keep), args.json, began)
    shell.type("install", str(shell.demo.checkout))
    clusters = _triage(shell)
    resolved = _first_session(shell, clusters)
    blocked = _second_session(shell, clusters)
    index = shell.ask("index")["page"]
    untouched = shell.demo.is_users_edit_untouched()
    lines = [
        f"finished in {time.monotonic() - began:.0f} s; the user's uncommitted edit is {'byte-identical' if untouched else 'CHANGED'}",
        f"resolved: {resolved}",
        f"blocked:  {blocked}",
        f"index:    {index}",
    ]
    data = {
        "resolved": resolved,
        "blocked": blocked,
        "index": index,
        "untouched": untouched,
        "checkout": str(shell.demo.checkout),
    }
    answer(lines, data, as_json=args.json)
    return int(Exit.YES if untouched else Exit.NO)


def _triage(shell: Shell) -> list[dict[str, Any]]:
    found = shell.ask("triage", "tests", allow=(0, 1))["clusters"]
    for cluster in found:
        shell._say(f"  {cluster['id']}  {cluster['slug']}  ({len(cluster['nodeids'])} tests)  {cluster['why'][:110]}")
    return list(found)


def _first_session(shell: Shell, clusters: list[dict[str, Any]]) -> str:
    mismatches = [c for c in clusters if c["kind"] == "mismatch"]
    first = mismatches[0]
    opened = shell.ask("open", "rmsnorm-wide-hidden-mismatch", "--cluster", first["id"])
    others = [n for c in mismatches[1:] for n in c["nodeids"]]
    if others:
        shell.type("cluster", "add", *others, "--reason", "rms_norm too, wide rows only, the same sizes of difference")
    probe = first["probe"]
    shell.type("run", "--as", "baseline", probe, allow=(1,))
    shell.type("run", "--as", "baseline", "--members", allow=(1,))
    shell.type(
        "note",
        "summary",
        "rms_norm is wrong for rows of 256 elements and more, right up to 128, compiled or not. Best theory: a reduction.",
    )
    shell.type("hypothesis", "seed")
    own = {
        "accumulation": (
            "fp16 accumulation order in the sum of squares",
            "debug-spyre exec -- python accumulation.py",
            "10",
            "low",
        ),
        "mean": (
            "torch.mean over the last dimension leaves out a part of wide rows",
            "debug-spyre exec -- python mean.py",
            "10",
            "high",
        ),
        "chunks": (
            "the mean of 64-wide means goes round it",
            "edit rms_norm.py, debug-spyre run PROBE",
            "20",
            "medium",
        ),
    }
    numbers = {}
    for key, (text, test, cost, confidence) in own.items():
        words = ["hypothesis", "add", text, "--test", test, "--cost", cost, "--confidence", confidence]
        if key == "chunks":
            words += ["--class", "code-change"]
        numbers[key] = _newest(shell.ask(*words))
    _script(shell, numbers["accumulation"], "accumulation.py", ACCUMULATION, opened)
    shell.type(
        "hypothesis",
        "conclude",
        numbers["accumulation"],
        "ruled-out",
        "the sum of a wide row agrees with the CPU to rounding",
    )
    _script(shell, numbers["mean"], "mean.py", MEAN, opened)
    shell.type(
        "hypothesis",
        "conclude",
        numbers["mean"],
        "confirmed",
        "the mean of 129 and more ones is below 1: elements behind 128 are left out",
        "--lines",
        "1-5",
    )
    shell.type(
        "note", "finding", "aten.mean.dim over the last dimension adds the first 128 elements only; sum is right"
    )
    shell.type("hypothesis", "start", numbers["chunks"], "--command", f"debug-spyre run {shlex.quote(probe)}")
    shell.demo.patch()
    shell.type("run", probe)
    shell.type(
        "hypothesis", "conclude", numbers["chunks"], "confirmed", "the probe passes with means of 64-wide chunks"
    )
    _drop_rest(shell, "the reduction explains the failure")
    shell.type(
        "note",
        "summary",
        "aten.mean.dim adds the first 128 elements of a row only. Means of 64-wide chunks go round it; all members pass.",
    )
    shell.type("validate")
    shell.type("revert")
    closed = shell.ask(
        "close", "resolved",
        "--cause", "aten.mean.dim leaves out elements behind the 128th of a row",
        "--wasted", "the accumulation-order experiment: 97 % of the elements differed by more than 1",
        "--signal", "the separator: every failing row is wider than 128, no passing one is",
    )  # fmt: skip
    return str(closed["log"])


def _newest(queue: dict[str, Any]) -> str:
    return str(max(row["number"] for row in queue["hypotheses"]))


def _script(shell: Shell, row: str, name: str, text: str, opened: dict[str, Any]) -> None:
    path = Path(opened["folder"]) / name
    python = shell.demo.env["DEBUG_SPYRE_PYTHON"]
    shell.type("hypothesis", "start", row, "--command", f"debug-spyre exec -- {python} {name}")
    shell.type("save", name, stdin=text)
    shell.type("exec", "--", python, str(path))


def _drop_rest(shell: Shell, reason: str) -> None:
    for row in shell.ask("status")["hypotheses"]:
        if row["status"] == "queued":
            shell.type("hypothesis", "drop", str(row["number"]), reason)


def _second_session(shell: Shell, clusters: list[dict[str, Any]]) -> str:
    compiles = [c for c in clusters if c["kind"] == "compile"]
    opened = shell.ask("open", "mul-unaligned-width-layout", "--cluster", compiles[0]["id"])
    shell.type("run", "--as", "baseline", compiles[0]["probe"], allow=(1,))
    shell.type("hypothesis", "seed")
    added = shell.ask(
        "hypothesis", "add", "aten.mul.Tensor has no layout for widths that are no multiple of 64",
        "--test", "debug-spyre exec -- python mul.py", "--cost", "10", "--confidence", "high",
    )  # fmt: skip
    shell.type("op", "aten.mul.Tensor")
    row = _newest(added)
    _script(shell, row, "mul.py", MUL, opened)
    shell.type(
        "hypothesis",
        "conclude",
        row,
        "confirmed",
        "64 columns work, 50 are refused by the layout pass",
    )
    _drop_rest(shell, "the layout pass refuses the op by itself")
    shell.type(
        "note",
        "summary",
        "silu_and_mul with a half of 50 or 100 columns: propagate_layouts finds no output layout for aten.mul.Tensor. Padding would change the interface.",
    )
    closed = shell.ask(
        "close", "blocked",
        "--next", "decide: pad the gated activation to whole sticks in the plugin, or ask torch-spyre for a layout of unaligned pointwise ops",
    )  # fmt: skip
    return str(closed["log"])


VERBS = {"demo": Verb(_arguments, _demo, "debug-spyre demo")}
