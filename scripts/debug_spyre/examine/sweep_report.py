"""A sweep in words: under which condition an op is wrong, what of its surroundings is right, and a verdict ready to record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

MODULI = (64, 32, 128, 16, 256, 8, 4, 2, 3, 5)
Points = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Condition:
    """When the op is wrong: `where` in words, `relation` of its size (>, <, %, !%, always, listed) to `value`."""

    where: str
    relation: str
    value: int | None = None
    over: int | None = None  # only sizes above it, beside a divisibility
    sizes: tuple[int, ...] = ()

    def words(self) -> str:
        """The condition in words."""
        if self.relation == "always":
            return "at every size that was tried"
        text = {
            ">": f"when {self.where} is longer than {self.value}",
            "<": f"when {self.where} is shorter than {self.value}",
            "!%": f"when {self.where} is no multiple of {self.value}",
            "%": f"when {self.where} is a multiple of {self.value}",
            "listed": f"when {self.where} is {', '.join(map(str, self.sizes[:8]))}"
            + (", ..." if len(self.sizes) > 8 else ""),
        }[self.relation]
        return text + (f" (and longer than {self.over})" if self.over is not None else "")

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "where": self.where,
            "relation": self.relation,
            "value": self.value,
            "over": self.over,
            "sizes": list(self.sizes),
        }


def relation_of(answers: Mapping[int, bool]) -> tuple[str, int | None, int | None] | None:
    """(relation, value, over) that explains which sizes are wrong; None where all are right."""
    sizes = sorted(answers)
    wrong = [size for size in sizes if answers[size]]
    if not wrong:
        return None
    if len(wrong) == len(sizes):
        return "always", None, None
    changes = [(a, b) for a, b in pairwise(sizes) if answers[a] != answers[b]]
    if len(changes) == 1:
        low, high = changes[0]
        return (">", low, None) if answers[high] else ("<", high, None)
    for modulus in MODULI:
        for name in ("!%", "%"):
            hits = {n: (n % modulus == 0) == (name == "%") for n in sizes}
            if all(answers[n] == hits[n] for n in sizes):
                return name, modulus, None
            above = [n for n in sizes if n >= wrong[0]]
            smaller = [n for n in sizes if n < wrong[0] and hits[n]]
            mixed = {answers[n] for n in above} == {True, False}
            if len(above) > 6 and mixed and smaller and all(answers[n] == hits[n] for n in above):
                return name, modulus, max(smaller)
    return "listed", None, None


def size_conditions(points: Points) -> list[Condition]:
    """What each dimension's size has to do with it; deciding ones first."""
    families: dict[str, dict[int, bool]] = {}
    for point in points:
        if str(point["family"]).startswith("size ") and point.get("wrong") is not None:
            families.setdefault(str(point["family"]), {})[int(point["size"])] = bool(point["wrong"])
    found = []
    for family, answers in families.items():
        relation = relation_of(answers)
        if relation is None:
            continue
        name, value, over = relation
        wrong = tuple(n for n in sorted(answers) if answers[n])
        found.append(Condition(dimension_words(family.removeprefix("size ")), name, value, over, wrong))
    rank = {">": 0, "<": 0, "!%": 0, "%": 0, "listed": 1, "always": 2}
    return sorted(found, key=lambda c: rank[c.relation])


def dimension_words(group: str) -> str:
    """0.-1+1.-2: the last dimension of argument 0 (and dimension -2 of argument 1)."""
    parts = []
    for place in group.split("+"):
        tensor, _, dim = place.partition(".")
        name = "the last dimension" if dim == "-1" else f"dimension {dim}"
        parts.append(f"{name} of argument {tensor}")
    return parts[0] if len(parts) == 1 else f"{parts[0]} (= {', '.join(parts[1:])})"


def summary(op: str, points: Points) -> dict[str, Any]:
    """{"wrong", "refused", "condition", "text", "lines"}: the answer of a sweep."""
    tried = [p for p in points if p.get("wrong") is not None]
    wrong = [p for p in tried if p["wrong"]]
    refused = [p for p in points if p.get("refused")]
    cut = any(p["family"] == "end" for p in points)
    refuses = not wrong and any(p["family"] == "given" for p in refused)  # the call itself, not only a variant of it
    if refuses:
        points = [{**p, "wrong": True} if p.get("refused") else p for p in points]
    conditions = size_conditions(points)
    condition = conditions[0] if conditions else None
    text = _refusal(op, condition) if refuses else _text(op, points, condition, bool(wrong))
    lines = [text, *_surroundings(points, "refused" if refuses else "wrong")]
    if refused:
        lines.append(f"refused on the card at {len(refused)} points: {refused[0]['label']}: {refused[0]['error']}")
    fallbacks = sorted({f"{p['family']} {p['label']}" for p in points if p.get("fallback")})
    lines.append(
        f"falls back to the CPU at {len(fallbacks)} points: {', '.join(fallbacks[:3])}" if fallbacks else "no fallback"
    )
    counted = f"{len(tried)} points compared, {len(wrong)} wrong"
    lines.append(counted + ("; stopped at the budget: --resume goes on" if cut else ""))
    return {
        "op": op, "wrong": bool(wrong), "refused": refuses, "text": text,
        "condition": condition.to_json() if condition and (wrong or refuses) else None,
        "conditions": [c.to_json() for c in conditions], "lines": lines, "complete": not cut,
    }  # fmt: skip


def _refusal(op: str, condition: Condition | None) -> str:
    """The card raises where the CPU does not: when."""
    when = condition.words() if condition else "as it was called; no size was tried"
    return f"{op.removesuffix('.default')} is refused on the card {when}"


def _text(op: str, points: Points, condition: Condition | None, wrong: bool) -> str:
    name = f"{op.removesuffix('.default')}"
    if not wrong:
        return (
            f"{name} is right at every point that was compared"
            if any(p.get("wrong") is False for p in points)
            else (f"{name}: nothing could be compared")
        )
    order = _order(points)
    if order:
        return f"{name} {order}"
    special = _view_only(points)
    if special:
        return f"{name} is wrong {special}"
    done = _contribution(points)
    how = f"adds only {done}" if done else "is wrong"
    if condition is None:
        first = next(p for p in points if p.get("wrong"))
        return (
            f"{name} is wrong ({first['family']} {first['label']}); right at every size that was tried with random data"
        )
    pattern = next((p["pattern"] for p in points if p.get("wrong") and p.get("pattern")), None)
    return f"{name} {how} {condition.words()}" + (f"; {pattern}" if pattern and not done else "")


def _by(points: Points, family: str) -> dict[str, bool]:
    return {str(p["label"]): bool(p["wrong"]) for p in points if p["family"] == family and p.get("wrong") is not None}


def _order(points: Points) -> str | None:
    order = _by(points, "order")
    alone = [is_wrong for label, is_wrong in order.items() if label.startswith("many rows alone")]
    if order.get("many rows after few") and alone and not any(alone):  # narrower and wider ones are right
        pattern = next((p.get("pattern") for p in points if p["label"] == "many rows after few"), None)
        return "is wrong after a call with fewer rows of the same width" + (f": {pattern}" if pattern else "")
    repeats = _by(points, "repeat")
    if any(repeats.values()) and not all(repeats.values()):
        bad = [label.split()[1] for label, is_wrong in repeats.items() if is_wrong]
        return f"is wrong at some calls of one shape and not at others (calls {', '.join(bad)} of {len(repeats)})"
    return None


def _view_only(points: Points) -> str | None:
    """Wrong as views and right when contiguous."""
    given = _by(points, "given")
    if given.get("contiguous") is not False:
        return None
    views = _by(points, "view")
    bad = [label for label, is_wrong in views.items() if is_wrong]
    if bad:
        return f"only with {', '.join(bad)}; right with contiguous inputs"
    return (
        "only with its inputs as given (their views); right with contiguous ones" if given.get("random data") else None
    )


def _contribution(points: Points) -> str | None:
    """Which part of the sum counts, from one-hot inputs."""
    seen = [(int(p["size"]), p["missing"]) for p in points if p["family"] == "contribution" and p.get("missing")]
    if not seen or any(len(runs) != 1 or runs[0][1] != size for size, runs in seen):
        return None
    kept = [(size, runs[0][0]) for size, runs in seen]
    if all(start == size // 2 for size, start in kept):
        return "the first half"
    if len({start for _, start in kept}) == 1:
        return f"the first {kept[0][1]}"
    return None


def _surroundings(points: Points, wrong: str = "wrong") -> list[str]:
    lines = []
    for family, title in (
        ("dims", "dims"),
        ("overload", "overloads"),
        ("neighbour", "neighbours"),
        ("dtype", "types"),
        ("view", "views"),
    ):
        answers = _by(points, family)
        if not answers:
            continue
        right = [label.split(" of ")[0] for label, is_wrong in answers.items() if not is_wrong]
        bad = [label.split(" of ")[0] for label, is_wrong in answers.items() if is_wrong]
        if not right or not bad:
            lines.append(
                f"{title}: {wrong if bad else 'right'} in all {len(answers)}: {', '.join(answers) if family != 'view' else 'offset, slices, transposed, expanded'}"
            )
            continue
        parts = [f"right: {', '.join(right)}"] if right else []
        parts += [f"{wrong}: {', '.join(bad)}"] if bad else []
        lines.append(f"{title}: {'; '.join(parts)}")
    return lines
