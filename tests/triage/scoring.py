"""Our copy of the scoring: how much of a log's answer a triage finds, by part, with what is missing in words."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.logs_reader import read_logs
from debug_spyre.triage.triage_words import triage_to_json
from debug_spyre.vocabulary.evidence import Triage

FIELDS = ("kind", "mismatched", "total", "max_abs", "max_rel", "error_class", "innermost_frame")


@dataclass
class Score:
    """(found, wanted) by part; `misses` says what is wrong."""

    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    misses: list[str] = field(default_factory=list)


def triage_of(log: Path) -> dict:
    evidence = read_logs([log], checkout=None)
    return json.loads(json.dumps(triage_to_json(Triage(evidence, group(evidence))), allow_nan=False))


def score(answer: Path) -> Score:
    want = json.loads(answer.read_text(encoding="utf-8"))
    got = triage_of(answer.with_name(want["log"]))
    result = Score()
    _counts(result, want, got)
    _failures(result, want, got)
    _rest(result, want, got)
    return result


def _counts(result: Score, want: dict, got: dict) -> None:
    if any(v is not None for v in want["counts"].values()):
        have = got["counts"] or {}
        same = all((have.get(k) or 0) == (v or 0) for k, v in want["counts"].items())
        result.parts["counts"] = (int(same), 1)
        if not same:
            result.misses.append(f"counts: wanted {want['counts']}, got {have}")


def _failures(result: Score, want: dict, got: dict) -> None:
    found = {f["nodeid"]: f for f in got["failures"]}
    right = total = hits = 0
    for f in want["failures"]:
        mine = found.get(f["nodeid"])
        hits += mine is not None
        for name in FIELDS:
            total += 1
            good = mine is not None and same(name, f.get(name), mine.get(name), f.get("kind_alternatives", ()))
            right += good
            if not good:
                result.misses.append(f"{f['nodeid']}: {name} wanted {f.get(name)!r}, got {mine and mine.get(name)!r}")
    extra = set(found) - {f["nodeid"] for f in want["failures"]}
    result.parts |= {
        "failures": (hits, len(want["failures"])),
        "no-extra": (int(not extra), 1),
        "fields": (right, total),
    }
    if extra:
        result.misses.append(f"not failures: {sorted(map(str, extra))[:4]}")


def _rest(result: Score, want: dict, got: dict) -> None:
    wanted = {(f["op"], f["file"].rsplit("/", 1)[-1], f["line"]) for f in want.get("fallbacks", [])}
    have = {(f["op"], str(f["file"]).rsplit("/", 1)[-1], f["line"]) for f in got["fallbacks"]}
    result.parts["fallbacks"] = (len(wanted & have), len(wanted | have))
    clusters, mine = pairs(want["clusters"]), pairs(c["nodeids"] for c in got["clusters"])
    result.parts["clusters"] = (len(clusters & mine), len(clusters | mine))
    if clusters != mine:
        result.misses.append(f"clusters: {[c['nodeids'] for c in got['clusters']]}")
    stage_of = {n: c["stage"] for c in got["clusters"] for n in c["nodeids"]}
    stages = want.get("cluster_stages") or []
    right = [stage_of.get(c[0]) == s for c, s in zip(want["clusters"], stages, strict=True)]
    result.parts["stage"] = (sum(right), len(stages))
    result.misses += [
        f"stage of {c[0]}: wanted {s}, got {stage_of.get(c[0])}"
        for c, s, good in zip(want["clusters"], stages, right, strict=True)
        if not good
    ]


def same(name: str, want: object, got: object, alternatives: object = ()) -> bool:
    if name == "kind" and got in tuple(alternatives or ()):
        return True
    if want is None or got is None:
        return want is None and got is None
    if name in {"max_abs", "max_rel"}:
        w, g = float(want), float(got)
        return (math.isnan(w) and math.isnan(g)) or w == g or math.isclose(w, g, rel_tol=1e-6)
    if name == "error_class":
        return str(want).rsplit(".", 1)[-1] == str(got).rsplit(".", 1)[-1]
    if name == "innermost_frame":
        w, g = str(want), str(got)
        return w == g or w.endswith("/" + g) or g.endswith("/" + w)
    return want == got


def pairs(groups: object) -> set:
    groups = [sorted({str(n) for n in g}) for g in groups]
    return {frozenset(p) for g in groups for p in combinations(g, 2)} | {frozenset([n]) for g in groups for n in g}
