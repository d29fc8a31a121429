"""Lists the dated facts of our texts that a tree at hand contradicts: python tests/surface/check_facts.py TREE [PLUGIN]."""

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FACTS = Path(__file__).with_name("facts.toml")


@dataclass(frozen=True)
class Fact:
    id: str
    told: list[str]
    of: str
    file: str
    shown: str
    there: bool
    commit: str
    date: str


def read_facts():
    return [Fact(**row) for row in tomllib.loads(FACTS.read_text(encoding="utf-8"))["fact"]]


def stale(facts, trees):
    """(fact, why) of those that a tree contradicts; `trees`: name to folder."""
    for fact in facts:
        folder = trees.get(fact.of)
        if folder is None:
            continue
        path = folder / fact.file
        if not path.is_file():
            yield fact, f"{fact.file} is gone"
        elif bool(re.search(fact.shown, path.read_text(encoding="utf-8", errors="replace"))) is not fact.there:
            yield fact, f"{fact.file} {'no longer shows' if fact.there else 'shows'} {fact.shown!r}"


def main(words):
    if not words or not all(Path(w).is_dir() for w in words):
        print(
            "usage: make facts TREE=torch-spyre [PLUGIN=spyre-inference], each a folder with its source",
            file=sys.stderr,
        )
        return 2
    trees = dict(zip(("torch-spyre", "spyre-inference"), map(Path, words)))
    facts = [f for f in read_facts() if f.of in trees]
    found = list(stale(facts, trees))
    for fact, why in found:
        print(f"{fact.id} ({fact.commit} of {fact.date}): {why}; told in {fact.told[0]}")
    print(f"{len(facts)} facts checked, {len(found)} stale")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
