"""Logs drawn at random: a real pytest run, what a collector puts in front, a cut, several sessions; and the truth of each.

`python tests/triage/drawn_logs.py N [SEED]` draws N and says which are read wrongly.
"""

from __future__ import annotations

import functools
import html
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPTIONS = (
    ("--tb=short", "-v"), ("--tb=short",), ("--tb=long", "-v"), ("--tb=auto", "-q"), ("--tb=native", "-v"), ("--tb=short", "-rA"),
    ("--tb=short", "-n", "2", "-v"), ("--tb=short", "-q", "-rfE"), ("--tb=auto", "-vv"), ("--tb=short", "-v", "--color=yes"),
    ("--tb=line",), ("--tb=no", "-v"), ("--tb=no", "-q"), ("--tb=native", "-q"), ("--tb=long", "-rA"),
)  # fmt: skip
ERRORS = (
    'RuntimeError("Spyre backend does not support dtype Double")',
    "NotImplementedError(\"Could not run 'aten::roll' with arguments from the 'spyre' backend.\")",
    "ImportError(\"cannot import name 'ComboKernel' from 'torch._inductor'\")",
    'RuntimeError("Host compute stream id 65 is already registered")',
)
RAISES = (  # plainly, or out of another error of the same function
    "        raise {error}",
    "        raise {error}",
    "        try:\n            raise ValueError('no layout in case {place}')\n        except ValueError:\n            raise {error}",
    "        try:\n            assert size == {place} + 100\n        except AssertionError as failed:\n            raise {error} from failed",
)
COLLECT = """
import json, os
def pytest_runtest_logreport(report):
    if report.failed or (report.when == "call" and report.passed):
        with open(os.environ["TRUTH"], "a") as out:
            out.write(json.dumps([report.nodeid, report.when, report.outcome]) + "\\n")
"""


@dataclass(frozen=True)
class Run:
    """What one run printed and what is true of it."""

    text: str
    failing: frozenset[str]
    causes: int  # functions that fail, each with its own error
    passed: int


@dataclass
class Log:
    """A drawn log: what it shows and what must be found. Where `is_cut`, only what is left of the names."""

    text: str
    failing: set[str]
    failed: int | None
    passed: int | None
    causes: int | None
    is_cut: bool = False
    is_mixed: bool = False  # the beginning of one failure's text and the end of another's stand under one heading
    named: set[str] = field(default_factory=set)  # of a cut log: these names stand in it whole
    said: list[str] = field(default_factory=list)  # how it was drawn


def real_run(chance: random.Random, number: int) -> Run:
    """A small file of tests, run by pytest."""
    name = f"test_part{number}"
    lines, causes = ["import pytest", ""], 0
    for place, error in enumerate(chance.sample(ERRORS, chance.randint(1, 3))):
        raises = chance.choice(RAISES).format(error=error, place=place)
        good = chance.randint(1, 3)
        bad = chance.randint(1, 3)
        lines += [
            f'@pytest.mark.parametrize("size", {list(range(good + bad))})',
            f"def test_case{place}(size):",
            '    print("some output of the test")',
            f"    if size >= {good}:",
            raises,
            "",
        ]
        causes += 1
    lines += ["def test_fine():", "    pass", ""]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / f"{name}.py").write_text("\n".join(lines), encoding="utf-8")
        (path / "conftest.py").write_text(COLLECT, encoding="utf-8")
        (path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *chance.choice(OPTIONS), "."],
            cwd=folder, env={"PATH": "/usr/bin:/bin", "TRUTH": str(path / "truth"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        told = [json.loads(line) for line in (path / "truth").read_text(encoding="utf-8").splitlines()]
    failing = frozenset(n for n, _, outcome in told if outcome == "failed")
    passed = {n for n, when, outcome in told if when == "call" and outcome == "passed"}
    return Run(done.stdout, failing, causes, len(passed))


def drawn_prefix(chance: random.Random) -> Callable[[int], str]:
    """What some collector writes before line n: clocks, names, brackets, in any order."""
    word = "".join(chance.choice("abcdefghkmnprstuvwz") for _ in range(chance.randint(2, 9)))
    parts: list[Callable[[int], str]] = []
    for _ in range(chance.randint(1, 4)):
        opening, closing = chance.choice(["[]", "()", "<>", "||", "  "])
        core = chance.choice(
            [
                lambda n: f"2026-08-{1 + n % 28:02d}T10:{n % 60:02d}:{n * 7 % 60:02d}.{n * 7919 % 1000:03d}Z",
                lambda n: f"10:{n % 60:02d}:{n * 7 % 60:02d}",
                lambda n: f"{1723456789 + n}.{n * 7919 % 1000:03d}",
                lambda n: f"Aug {1 + n % 28:2d} 10:{n % 60:02d}:00",
                lambda n, w=word: f"{w}-worker-3",
                lambda n, w=word: f"pod/{w}-x7f9k/tests",
                lambda n: "rank0",
                lambda n, w=word: f"{w}.{w}",
                lambda n: f"{n:6d}",
            ]
        )
        is_bare = chance.random() < 0.4
        parts.append(core if is_bare else (lambda n, o=opening, c=closing, f=core: f"{o}{f(n)}{c}".strip()))
    end = chance.choice([" ", ": ", " | ", "\t", "> ", "  "])
    return lambda n: " ".join(p(n) for p in parts) + end


def _mail(lines: list[str]) -> list[str]:
    return [f"> {line}".rstrip() for line in lines]


def _page(lines: list[str]) -> list[str]:
    return ["<pre><code>", *(html.escape(line) for line in lines), "</code></pre>"]


def _docker(lines: list[str]) -> list[str]:
    return [json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-08-01T10:00:00Z"}) for line in lines]


def _fence(lines: list[str]) -> list[str]:
    return ["this is what I get:", "```text", *lines, "```", "any idea?"]


def _cat_v(lines: list[str]) -> list[str]:
    return [line.replace("\x1b", "^[") + "^M" for line in lines]


def _numbers(lines: list[str]) -> list[str]:
    return [part for n, line in enumerate(lines, start=1) for part in (str(n), line)]


def _csv(lines: list[str]) -> list[str]:
    return ["timestamp,message", *(f'2026-08-01T10:00:00Z,"{line.replace(QUOTE, 2 * QUOTE)}"' for line in lines)]


def _document(lines: list[str]) -> list[str]:
    events = [{"timestamp": n, "message": line} for n, line in enumerate(lines)]
    return json.dumps({"events": events}, indent=1).split("\n")


def _typescript(lines: list[str]) -> list[str]:
    head = 'Script started on 2026-08-01 10:00:00+00:00 [TERM="xterm-256color"]\r'
    return [head, "\x1b[?2004h$ pytest\r", "\x1b[?2004l\r", *(f"{line}\x1b[K\r" for line in lines), "Script done\r"]


def _narrow(lines: list[str]) -> list[str]:
    """A copy out of a terminal that is narrower than the lines: cut at its width, blanks at the end lost."""
    width = 53 + len(lines) % 20
    return [line[at : at + width].rstrip() for line in map(PLAIN, lines) for at in range(0, max(1, len(line)), width)]


QUOTE = '"'
PLAIN = functools.partial(re.compile(r"\x1b\[[\d;]*m").sub, "")
COLLECTORS = (_mail, _page, _docker, _fence, _cat_v, _numbers, _csv, _document, _typescript, _narrow)
OMITTED = (
    (),
    ("... 1234 lines omitted ...",),
    ("[output truncated]",),
    ("Job's log exceeded limit of 4194304 bytes.",),
)


def _cut(chance: random.Random, log: Log, lines: list[str]) -> list[str]:
    """Without its head, its end or a part between; often in the middle of a failure, sometimes of a line."""
    marks = [i for i, line in enumerate(map(PLAIN, lines)) if line.startswith("____")] or [len(lines) // 2]
    inside = min(len(lines) - 1, chance.choice(marks) + chance.randint(0, 8))
    kind = chance.choice(["head", "middle", "end", "heading", "counts"])
    log.said.append(f"cut: {kind}")
    if kind == "heading":
        return [line for line in lines if "short test summary" not in line]
    if kind == "counts":
        log.failed, log.passed = None, None
        return lines[:-1]
    log.is_cut = True
    if kind == "head":
        lines = lines[inside:]
    elif kind == "end":
        lines = [*lines[:inside], lines[inside][: chance.randint(0, len(lines[inside]))]]
    else:
        after = inside + chance.randint(1, 30)
        log.is_mixed = any(line.startswith("____") for line in map(PLAIN, lines[inside:after]))
        lines = [*lines[:inside], *chance.choice(OMITTED), *lines[after:]]
    if not lines or not re.search(r"\d passed.* in [\d.]+s", PLAIN(lines[-1])):
        log.failed, log.passed = None, None
    told = "\n".join(map(PLAIN, lines))
    log.named = {
        n for n in log.failing if re.search(rf"(?m)^FAILED {re.escape(n)}(?: - |$)|^{re.escape(n)} FAILED +\[", told)
    }
    return lines


def drawn(seed: int, runs: list[Run]) -> Log:
    """One log: one or two sessions, perhaps cut, perhaps carried."""
    chance = random.Random(seed)
    chosen = chance.sample(runs, chance.choice([1, 1, 1, 2]))
    log = Log(
        "".join(run.text.rstrip("\n") + "\n\n" for run in chosen),
        set().union(*(run.failing for run in chosen)),
        sum(len(run.failing) for run in chosen),
        sum(run.passed for run in chosen),
        sum(run.causes for run in chosen) if len(chosen) == 1 else None,
        said=[f"seed {seed}", f"{len(chosen)} sessions"],
    )
    lines = log.text.rstrip("\n").split("\n")
    if len(chosen) == 1 and chance.random() < 0.4:
        lines = _cut(chance, log, lines)
    carry = chance.random()
    if carry < 0.5:
        prefix = drawn_prefix(chance)
        log.said.append(f"prefix {prefix(3)!r}")
        lines = [prefix(n) + line for n, line in enumerate(lines)]
        if chance.random() < 0.3:
            lines = [line.rstrip() for line in lines]
    elif carry < 0.9:
        collector = chance.choice(COLLECTORS)
        log.said.append(collector.__name__)
        lines = collector(lines)
    log.text = chance.choice(["\n", "\n", "\r\n"]).join(lines) + "\n"
    return log


def wrong(log: Log, path: Path) -> list[str]:
    """What a triage of the log says otherwise than the truth."""
    from debug_spyre.triage.io.logs_reader import triage_logs
    from debug_spyre.triage.nodeids import domain
    from debug_spyre.vocabulary.errors import BadInputError

    path.write_text(log.text, encoding="utf-8", newline="")
    try:
        found = triage_logs([path], checkout=None)
    except BadInputError as refused:  # little may be left
        is_right = log.is_cut and not log.named and "holds no test outcome" in str(refused)
        return [] if is_right else [f"{', '.join(log.said)}: {refused}"]
    told = {f.nodeid for f in found.evidence.failures if "name-only" not in f.tags}
    short = {f.nodeid for f in found.evidence.failures if "name-only" in f.tags} - {domain(n) for n in log.failing}
    counts = found.evidence.counts
    said = []
    invented = (told - log.failing) | short
    missing = (log.named if log.is_cut else log.failing) - told
    if invented or missing:
        said.append(f"failing: missing {sorted(missing)[:3]}, invented {sorted(map(str, invented))[:3]}")
    if log.failed is not None and (counts is None or (counts.failed, counts.passed) != (log.failed, log.passed)):
        said.append(f"counts: {counts}, not {log.failed} failed, {log.passed} passed")
    causes = log.causes
    if log.is_cut:
        causes = len({str(f.nodeid).partition("[")[0].rpartition("::")[2] for f in found.evidence.failures})
    if causes is not None and abs(len(found.clusters) - causes) > log.is_mixed:
        said.append(f"clusters: {len(found.clusters)}, not {causes}")
    return [f"{', '.join(log.said)}: {text}" for text in said]


def real_runs(count: int, seed: int = 1) -> list[Run]:
    """Runs to draw from."""
    chance = random.Random(seed)
    return [real_run(chance, number) for number in range(count)]


def main() -> int:
    """Draw as many as asked."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    sys.path.insert(0, str(ROOT / "scripts"))
    runs = real_runs(max(8, min(40, count // 20)), seed)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(seed * 100_000, seed * 100_000 + count):
            told = wrong(drawn(number, runs), Path(folder) / "log.txt")
            bad += bool(told)
            print("\n".join(told[:4]), end="\n" if told else "")
    print(f"{count} logs of {len(runs)} real runs drawn: {count - bad} read right, {bad} wrong")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
