"""Bisections drawn at random, without processes: a fault at a drawn commit, flaky, some revisions that can't be built.

As a script: python tests/fleet/drawn_bisections.py [DRAWS]: is the answer wrong no oftener than the stated confidence says?
"""

import math
import random
import sys
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from debug_spyre.fleet.bisect_record import Record, Seen
from debug_spyre.fleet.bisection import history_of
from debug_spyre.vocabulary.errors import RefusedError

FAULT = ("v2|mismatch|structural",)


def line(count):
    """Commits one after another, as git lists them."""
    return history_of([f"r{n} r{n - 1}" if n else "r0 good" for n in reversed(range(count))])


def merged(count, draw):
    """A history with side branches: every few commits two lines run side by side, then meet."""
    rows, tips = [], ["good"]
    for n in range(count):
        parents = list(tips) if len(tips) > 1 and (draw.random() < 0.3 or n == count - 1) else [draw.choice(tips)]
        rows.append(f"r{n} {' '.join(parents)}")
        left = [tip for tip in tips if tip not in parents]
        fork = len(parents) == 1 and len(tips) < 3 and draw.random() < 0.25 and n < count - 2
        tips = [*left, f"r{n}", *(parents if fork else [])]
    return history_of(reversed(rows))


def search(seed, *, history=None, rate=1 / 3, noise=0.0, broken=0.15, cards=1, confidence=0.95):
    """(record at its end, the commit that was drawn)."""
    draw = random.Random(seed)
    history = history or line(64)
    count = len(history.revisions)
    fault = draw.randrange(count)
    unbuilt = {n for n in range(count - 1) if draw.random() < broken}
    begin = draw.randrange(count)
    unbuilt |= set(range(begin, min(begin + 5, count - 1)))  # they often can't be built in a row
    number = {name: n for n, name in enumerate(history.revisions)}
    record = Record("good", history.revisions[-1], history, confidence, 2000)
    built = set()
    while True:
        batch = []
        for _ in range(cards):
            revision = record.next_run(built, batch, set(), 10.0)
            if revision is None:
                break
            batch.append(revision)
        if not batch:
            return record, history.revisions[fault]
        for revision in batch:
            at = number.get(revision)
            if at in unbuilt:
                record = replace(record, unbuilt={**record.unbuilt, revision: "the build ended with 1"})
                continue
            built.add(revision)
            has_it = at is not None and history.has(at, fault)
            fails = draw.random() < (rate if has_it else noise)
            record = replace(
                record, runs=(*record.runs, Seen(revision, f"r{len(record.runs)}", FAULT if fails else ()))
            )


def tried(seeds, **how):
    """(wrong answers, wrong ones that the stated confidences foretell, draws that came to an answer)."""
    wrong, foretold, settled = 0, 0.0, 0
    for seed in seeds:
        try:
            record, fault = search(seed, **how)
        except RefusedError:
            continue
        among, sure = record.groups[0]
        if sure >= record.confidence:
            settled += 1
            wrong += fault not in among
            foretold += 1 - sure
    return wrong, foretold, settled


def most_wrong(foretold):
    """As many wrong answers as chance allows once in a thousand times where so many are foretold."""
    count, term, total = 0, math.exp(-foretold), math.exp(-foretold)
    while total < 0.999:
        count += 1
        term *= foretold / count
        total += term
    return count


if __name__ == "__main__":
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    failed = False
    for name, how in (
        ("flaky at 1 in 3", {}),
        ("always failing", {"rate": 1.0}),
        ("2 in 3, and 2 in 100 without the fault", {"rate": 2 / 3, "noise": 0.02}),
        ("flaky at 1 in 3, four cards", {"cards": 4}),
        ("flaky at 1 in 3, four in ten can't be built", {"broken": 0.4}),
    ):
        wrong, foretold, settled = tried(range(draws), **how)
        failed |= wrong > most_wrong(foretold) or settled < 0.95 * draws
        print(f"{name}: wrong {wrong} of {settled} ({draws} drawn), foretold {foretold:.1f}", flush=True)
    sys.exit(failed)
