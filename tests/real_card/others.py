"""Tests of another project as they are, in the environment of the real package: run, counted, each failure named with its reason.

A test that takes the process with it is counted as died, and the rest goes on in a new one. What a test's own marks skip or expect
to fail is not counted among those that ran.
"""

import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from tests.real_card.environment import HOME

OUTSIDE = ("conv", "fp8", "pool")  # ops that the interpreter does not know: counted apart
BAD = ("FAILED", "ERROR", "DIED")
LINE = re.compile(r"^([A-Z]+) (\S.*?)(?: - (.*))?$")
SECONDS, MOST_DEATHS = 600, 50


def run_others(real, checkout, files, every):
    """(outcome, test, reason) of each test that ran."""
    work = Path(tempfile.mkdtemp(prefix="real-"))
    outcomes, report = work / "outcomes.txt", work / "report.txt"
    (work / "card").touch()
    env = real.variables(
        work / "card",
        TORCHINDUCTOR_CACHE_DIR=work / "inductor",
        PYTHONPATH=HOME / "sampling",
        EVERY=every,
        OUTCOMES=outcomes,
    )
    words = [
        str(real.python),
        "-m",
        "pytest",
        "-p",
        "each_nth",
        "-p",
        "there_is_a_card",
        "-q",
        "--tb=short",
        "--show-capture=no",
    ]
    words += ["--timeout", str(SECONDS), "--timeout-method", "thread"] if real.said.get("pytest_timeout") else []
    print(
        f"{checkout}: {len(files)} paths{f', one test in {every}' if every > 1 else ''}; the report is {report}",
        flush=True,
    )
    for _ in range(MOST_DEATHS):
        with report.open("a", encoding="utf-8") as stream:
            ended = subprocess.run([*words, *files], cwd=checkout, env=env, stdout=stream, stderr=subprocess.STDOUT)
        dead = _died(outcomes)
        if ended.returncode in (0, 1, 5) or dead is None:
            break
        with outcomes.open("a", encoding="utf-8") as stream:
            stream.write(f"DIED {dead} - exit {ended.returncode}\n")
    return rows_of(outcomes)


def rows_of(outcomes):
    """The outcomes; of a test with two (its teardown failed as well) the worse."""
    found = {}
    for line in outcomes.read_text(encoding="utf-8").splitlines() if outcomes.exists() else ():
        outcome, name, reason = LINE.match(line).groups()
        if outcome != "BEGUN" and (name not in found or outcome in BAD):
            found[name] = (outcome, name, reason or "")
    return list(found.values())


def _died(outcomes):
    """The test that began last and has no outcome."""
    lines = outcomes.read_text(encoding="utf-8").splitlines() if outcomes.exists() else []
    begun = [LINE.match(line)[2] for line in lines if line.startswith("BEGUN")]
    known = {row[1] for row in rows_of(outcomes)}
    return begun[-1] if begun and begun[-1] not in known else None


def told(rows):
    """The counts, those of ops that the interpreter doesn't know apart, and a line for each failure."""
    for label, outside in (("", False), (" of " + ", ".join(OUTSIDE), True)):
        counts = Counter(o for o, name, _ in rows if any(part in name.lower() for part in OUTSIDE) is outside)
        ran = counts["PASSED"] + sum(counts[o] for o in BAD)
        share = f", {100 * counts['PASSED'] / ran:.1f} % of those that ran" if ran else ""
        yield f"  tests{label}: {', '.join(f'{n} {o.lower()}' for o, n in sorted(counts.items())) or 'none'}{share}"
    yield from (f"  {outcome.lower()}: {name}: {reason}" for outcome, name, reason in rows if outcome in BAD)
