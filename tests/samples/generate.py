"""Makes the logs of this folder: real pytest runs over small throw-away projects, with the answers from the plan.

usage: python tests/samples/generate.py [--only NAME] [--python PYTHON]
The answers are written from what the plan built into the projects (values, lines, causes), never from what triage reads.
A log that is made again differs in times and addresses only; commit it only when its plan changed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import wrappers

HERE = Path(__file__).parent
INTO = [HERE]
NUMBERS = ("mismatched", "total", "max_abs", "max_rel")


@dataclass
class Fails:
    """One failure of the plan. `frame` names a mark `#@name` in the project's sources, `fixed` a frame as it is printed."""

    nodeid: str | None
    kind: str
    cluster: str
    error_class: str | None = "AssertionError"
    frame: str | None = None
    fixed: str | None = None
    phase: str = "call"
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass
class Sample:
    """One log: project, command, wrapper, plan."""

    name: str
    files: dict[str, str]
    args: list[str]
    failures: list[Fails]
    stages: dict[str, str]
    counts: dict[str, int] | None = None
    fallbacks: list[tuple[str, str]] = field(default_factory=list)  # (op, mark)
    env: dict[str, str] = field(default_factory=dict)
    wrap: Callable[[str], str] | None = None
    absolute_frames: bool = False
    junit: bool = False
    results: bool = False  # the recorder's own file instead of the terminal's text
    shell: str | None = None
    timeout: float = 120.0


PAD = "\n" * 3

BACKEND = {
    "torch_spyre/__init__.py": "",
    "torch_spyre/ops/__init__.py": "",
    "torch_spyre/_inductor/__init__.py": "",
    "torch_spyre/execution/__init__.py": "",
    "torch_spyre/_inductor/errors.py": '''
class Unsupported(RuntimeError):
    def __init__(self, text):
        super().__init__(f"Spyre backend does not support: {text}")
''',
    "torch_spyre/ops/fallbacks.py": '''
import warnings


class FallbackWarning(UserWarning):
    pass


def warn_fallback(op, level=3):
    warnings.warn(f"{op} is falling back to cpu", FallbackWarning, stacklevel=level)  #@warn
''',
    "torch_spyre/_inductor/propagate_layouts.py": '''
from torch_spyre._inductor.errors import Unsupported


def check_stick(expression):
    raise Unsupported(f"Unexpected stick expression {expression}: expected Mod(var, 64)")  #@stick


def output_layout(name, sizes):
    raise Unsupported(f"{name}: no supported output layout found with size={sizes}")  #@layout
''',
    "torch_spyre/execution/async_compile.py": '''
import subprocess
import sys


def sdsc(message, folder):
    code = f"import os, sys; sys.stderr.write({message!r}); sys.stderr.flush(); os.abort()"
    args = ["dxp_standalone", "--bundle", "-d", folder]
    subprocess.run([sys.executable, "-c", code], stderr=None)  # its stderr is ours
    raise subprocess.CalledProcessError(-6, args)  #@abort
''',
    "torch_spyre/execution/kernel_runner.py": '''
def launch(name, op):
    raise RuntimeError(f"Invoked {name} which contains unimplemented operation {op}")  #@launch


def ras(name, extra):
    import json
    body = {"action": "information", "category": "hardware", "code": "0x17", "message": "no answer", "name": name, "severity": "ERROR", **extra}
    raise RuntimeError(json.dumps(body, separators=(",", ":")))  #@ras
''',
    "spyre_inference/__init__.py": "",
    "spyre_inference/layers.py": '''
from torch_spyre.ops.fallbacks import warn_fallback


def mask(n):
    warn_fallback("aten.tril.default", 2)  #@mask
    return n


def positions(n):
    warn_fallback("conversion from torch.int64 to torch.float16", 2)  #@positions
    return n
''',
    "conftest.py": "",
    "pyproject.toml": "[tool.pytest.ini_options]\n",
}

CLOSE = '''
import torch


def near(n, wrong, by, value=1.0):
    """`wrong` of n elements differ by exactly `by` from `value`."""
    expected = torch.full((n,), value, dtype=torch.float64)
    actual = expected.clone()
    actual[:wrong] += by
    return actual, expected


def compare(actual, expected, **kw):
    torch.testing.assert_close(actual, expected, **{"atol": 0.01, "rtol": 0.01, **kw})  #@compare
'''


def numbers(n: int, wrong: int, by: float, value: float = 1.0) -> dict[str, Any]:
    return {"mismatched": wrong, "total": n, "max_abs": by, "max_rel": by / value}


def project(**files: str) -> dict[str, str]:
    return {**BACKEND, "tests/close.py": CLOSE, **{k.replace("__", "/") + ".py": v for k, v in files.items()}}


MATRIX = '''
import sys, pathlib
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import pytest
from close import near, compare
from torch_spyre._inductor import propagate_layouts


@pytest.mark.parametrize("hidden", [64, 128, 256, 512])
def test_wide(hidden):
    actual, expected = near(hidden, 0 if hidden < 256 else hidden, 4.0)
    compare(actual, expected)  #@wide


@pytest.mark.parametrize("n", [128, 256])
def test_noise(n):
    actual, expected = near(n, 4, 0.03125)
    compare(actual, expected)  #@noise


class TestLayout:
    @pytest.mark.parametrize("expression", ["2*d1", "Mod(d0, 71)"])
    def test_slice(self, expression):
        propagate_layouts.check_stick(expression)  #@slice


def test_plain():
    assert 4 == 16  #@plain
'''
MATRIX_FAILS = [
    Fails("tests/test_matrix.py::test_wide[256]", "mismatch", "wide", frame="compare", numbers=numbers(256, 256, 4.0)),
    Fails("tests/test_matrix.py::test_wide[512]", "mismatch", "wide", frame="compare", numbers=numbers(512, 512, 4.0)),
    Fails("tests/test_matrix.py::test_noise[128]", "mismatch", "noise", frame="compare", numbers=numbers(128, 4, 0.03125)),
    Fails("tests/test_matrix.py::test_noise[256]", "mismatch", "noise", frame="compare", numbers=numbers(256, 4, 0.03125)),
    Fails("tests/test_matrix.py::TestLayout::test_slice[2*d1]", "compile", "stick", "torch_spyre._inductor.errors.Unsupported", "stick"),
    Fails("tests/test_matrix.py::TestLayout::test_slice[Mod(d0, 71)]", "compile", "stick", "torch_spyre._inductor.errors.Unsupported", "stick"),
    Fails("tests/test_matrix.py::test_plain", "mismatch", "plain", frame="plain"),
]
MATRIX_STAGES = {"wide": "numerics", "noise": "numerics", "stick": "layout", "plain": "numerics"}
MATRIX_COUNTS = {"passed": 2, "failed": 7}


def matrix(name: str, args: list[str], **more: Any) -> Sample:
    values: dict[str, Any] = {
        "files": project(tests__test_matrix=MATRIX),
        "failures": MATRIX_FAILS,
        "stages": MATRIX_STAGES,
        "counts": MATRIX_COUNTS,
    }
    values.update(more)
    shows_passing = "-v" in args or "-vv" in args or bool(values.get("junit") or values.get("results"))
    if shows_passing and values["stages"] is MATRIX_STAGES:
        values["stages"] = {**MATRIX_STAGES, "wide": "codegen"}  # that widths alone decide shows only with the passing tests
    return Sample(name=name, args=args, **values)


def without_frames(fails: list[Fails], *, no_class: bool = False) -> list[Fails]:
    """The plan for a log in which the frames aren't printed."""
    return [Fails(f.nodeid, f.kind, f.cluster, None if no_class else f.error_class, None, None, f.phase, f.numbers) for f in fails]


def crash_lines(fails: list[Fails]) -> list[Fails]:
    """The plan for --tb=line: the place is that of the exception itself."""
    return fails


def samples() -> list[Sample]:
    from plans import all_samples

    return all_samples()


def file_of(sample: Sample) -> str:
    return f"{sample.name}.{'xml' if sample.junit else 'jsonl' if sample.results else 'txt'}"


def write_answer(sample: Sample) -> None:
    file = file_of(sample)
    text = json.dumps(answer(sample, file), indent=1, ensure_ascii=False) + "\n"
    (INTO[0] / f"{sample.name}.json").write_text(text, encoding="utf-8")


def build(sample: Sample, python: str) -> None:
    with tempfile.TemporaryDirectory(prefix="samples-") as folder:
        root = Path(folder) / "work" / "plugin"
        for name, text in sample.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(re.sub(r"  #@\w+$", "", text, flags=re.MULTILINE), encoding="utf-8")
        log = run(sample, root, python)
        log = log.replace(folder, "").replace(sys.prefix, "/work/plugin/.venv").replace(str(HERE.parents[1]), "/work/plugin")
        log = log.replace(sys.base_prefix, "/usr")
        log = log.replace("/tmp/torchinductor_root", "/tmp/torchinductor_dev")
        log = re.sub(r'hostname="[^"]*"', 'hostname="spyre-dev-0"', log)
        if sample.wrap:
            log = sample.wrap(log)
        file = file_of(sample)
        (INTO[0] / file).write_bytes(log.encode("utf-8", "surrogateescape"))
    write_answer(sample)


def run(sample: Sample, root: Path, python: str) -> str:
    env = {k: v for k, v in os.environ.items() if k not in {"CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "GITHUB_ACTIONS"}}
    env |= {"PYTHONPATH": str(root), "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", "TERM": "dumb", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **sample.env}
    if sample.env.get("FORCE_COLOR"):
        env.pop("NO_COLOR")
    if sample.results:
        inside = HERE.parents[1] / "scripts/debug_spyre/inside"
        env |= {"PYTHONPATH": f"{root}:{inside}", "DEBUG_SPYRE_RESULTS": str(root / "results.jsonl"), "DEBUG_SPYRE_RUN": "r1"}
        sample.args = ["-p", "debug_spyre_recorder", *sample.args]
    args = [python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:randomly", *sample.args]
    command = sample.shell.replace("PYTEST", shlex.join(args)).replace("PYTHON ", f"{python} ") if sample.shell else shlex.join(args)
    if sample.junit:
        command += " --junitxml=out.xml"
    done = subprocess.run(["bash", "-c", command], cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=sample.timeout)
    if sample.results:
        return (root / "results.jsonl").read_text(encoding="utf-8", errors="surrogateescape")
    if sample.junit:
        return (root / "out.xml").read_text(encoding="utf-8", errors="surrogateescape")
    return done.stdout.decode("utf-8", "surrogateescape")


def marks(sample: Sample) -> dict[str, str]:
    found = {}
    for name, text in sample.files.items():
        for number, line in enumerate(text.split("\n"), start=1):
            if match := re.search(r"#@(\w+)$", line):
                found[match[1]] = f"{name}:{number}"
    return found


def answer(sample: Sample, file: str) -> dict[str, Any]:
    places = marks(sample)
    failures = []
    for f in sample.failures:
        frame = f.fixed or (places[f.frame] if f.frame else None)
        if frame and sample.absolute_frames:
            frame = f"/work/plugin/{frame}"
        values = {k: wrappers.json_number(f.numbers.get(k)) for k in NUMBERS}
        failures.append({"nodeid": f.nodeid, "kind": f.kind, **values, "error_class": f.error_class, "innermost_frame": frame, "phase": f.phase})
    clusters: dict[str, list[str | None]] = {}
    for f in sample.failures:
        clusters.setdefault(f.cluster, []).append(f.nodeid)
    words = ("passed", "failed", "errors", "skipped", "xfailed", "xpassed")
    counts = {w: (sample.counts or {}).get(w, 0) if sample.counts is not None else None for w in words}
    fallbacks = [{"op": op, "file": places[m].rsplit(":", 1)[0], "line": int(places[m].rsplit(":", 1)[1])} for op, m in sample.fallbacks]
    return {
        "log": file,
        "counts": counts,
        "failures": failures,
        "fallbacks": fallbacks,
        "clusters": list(clusters.values()),
        "cluster_stages": [sample.stages[c] for c in clusters],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--answers-only", action="store_true", help="write the answers, run nothing")
    parser.add_argument("--into", type=Path, default=HERE, help="another folder: to try another pytest, say")
    given = parser.parse_args()
    INTO[0] = given.into
    for sample in samples():
        if given.only is None or given.only in sample.name:
            print(sample.name, flush=True)
            if given.answers_only:
                write_answer(sample)
            else:
                build(sample, given.python)
    return 0


if __name__ == "__main__":
    sys.modules["generate"] = sys.modules["__main__"]
    raise SystemExit(main())
