"""When a call is wrong: terms over its features, joined by `and`; which conjunctions fit what was observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from debug_spyre.examine.features import WORD, Features, Value, feature_words

MODULI = (64, 128, 32, 2)
DIVISIBLE = ("size", "offset", "numel")
MOST_TERMS = 3
MOST_FITTING = 16
# How ready we are to believe that a fault looks at such a feature; ties between fitting conditions are broken by it.
COST = {
    "size": 1.0, "offset": 1.0, "expanded": 1.0, "strided": 1.1, "reduced": 1.3, "reduces": 1.2, "numel": 1.4, "rows": 1.6,
    "sticks": 1.7, "form": 1.0, "dtype": 1.2, "mode": 1.0, "highest": 1.3, "value": 1.5, "kind": 1.2, "rank": 1.3,
    "keyword": 1.4, "host": 1.5, "layout": 1.0, "op": 1.6, "broadcast": 1.5,
}  # fmt: skip
OPPOSITE = {">": "<=", "<=": ">", "==": "!=", "!=": "==", "%": "!%", "!%": "%"}


@dataclass(frozen=True, slots=True)
class Term:
    """A feature, a relation and a value: >, <=, ==, !=, % (is a multiple of), !% (is none)."""

    feature: str
    relation: str
    value: Value

    def holds(self, of: Features) -> bool:
        """Whether a call with these features fulfils it; one without the feature does not."""
        have = of.get(self.feature)
        if have is None:
            return False
        if self.relation in {"==", "!="}:
            return (have == self.value) == (self.relation == "==")
        if not isinstance(have, (int, float)) or not isinstance(self.value, (int, float)):
            return False
        if self.relation == ">":
            return have > self.value
        if self.relation == "<=":
            return have <= self.value
        return (have % self.value == 0) == (self.relation == "%")

    @property
    def cost(self) -> float:
        """How far-fetched it is: 1 for a plain size."""
        found = WORD.fullmatch(self.feature)
        name = found["name"] if found else self.feature
        base = COST.get(name, COST.get(name.rstrip("0123456789"), 1.5))
        who = found["who"] if found else ""
        base += {"out": 0.15, "any": 0.25}.get(who, 0.05 * int(who) if who.isdigit() else 0.0)
        if name == "size" and found and found["dim"]:
            base += 0.04 * (-int(found["dim"]) - 1)
        if self.relation == "==" and not isinstance(self.value, (bool, str)):
            return base + 0.4
        return base + {"<=": 0.2, "!=": 0.2, "%": 0.25, "!%": 0.2}.get(self.relation, 0.0)

    def words(self) -> str:
        """In plain English, to stand behind `when`."""
        who = feature_words(self.feature)
        found = WORD.fullmatch(self.feature)
        if isinstance(self.value, bool):
            return _said_of_bool(
                found["name"] if found else self.feature, found, truth=self.value == (self.relation == "==")
            )
        if self.relation in {"==", "!="}:
            return f"{who} is {'not ' * (self.relation == '!=')}{self.value}"
        number = f"{self.value:,.12g}" if isinstance(self.value, float) else f"{self.value:,}"
        is_size = self.feature.startswith("size(")
        return {
            ">": f"{who} is {'longer' if is_size else 'more'} than {number}",
            "<=": f"{who} is at most {number}",
            "%": f"{who} is a multiple of {number}",
            "!%": f"{who} is no multiple of {number}",
        }[self.relation]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"feature": self.feature, "relation": self.relation, "value": self.value, "words": self.words()}


def _said_of_bool(name: str, found: Any, *, truth: bool) -> str:
    who = "an argument" if found and found["who"] == "any" else f"argument {found['who']}" if found else "it"
    if name == "reduces":
        return f"dimension {found['dim']} is {'' if truth else 'not '}reduced"
    if name.startswith("ragged"):
        multiple = name.removeprefix("ragged")
        return (
            f"the last dimension of {who} is longer than 1 and no multiple of {multiple}"
            if truth
            else f"every last dimension is 1 or a multiple of {multiple}"
        )
    state = {
        "strided": "not contiguous",
        "expanded": "expanded",
        "host": "on the CPU",
        "broadcast": "broadcast",
        "layout": "laid out on the card in another way than by default",
    }.get(name, name)
    return (
        f"{who} is {state}" if truth else f"no argument is {state}" if who == "an argument" else f"{who} is not {state}"
    )


@dataclass(frozen=True, slots=True)
class Condition:
    """All terms together. No terms: always."""

    terms: tuple[Term, ...] = ()

    def holds(self, of: Features) -> bool:
        """Whether a call with these features is predicted to be wrong."""
        return all(term.holds(of) for term in self.terms)

    @property
    def cost(self) -> float:
        """The sum over its terms."""
        return sum(term.cost for term in self.terms)

    def words(self) -> str:
        """When A and B; "at every call that was tried" where there is no term."""
        if not self.terms:
            return "at every call that was tried"
        return "when " + " and ".join(term.words() for term in self.terms)


@dataclass(frozen=True, slots=True)
class Seen:
    """One call that was judged: its features, and whether it was wrong."""

    features: Features
    wrong: bool


def fitting(seen: Sequence[Seen]) -> list[Condition]:
    """The smallest conditions that fit everything that was seen, the least far-fetched first; none where none fits.

    All have the same number of terms. Of the thresholds that fit, the one is taken that leaves out most right calls.
    """
    wrong = [s.features for s in seen if s.wrong]
    right = [s.features for s in seen if not s.wrong]
    if not wrong:
        return []
    if not right:
        return [Condition()]
    masks = _useful(_terms(wrong, right), right)
    everything = (1 << len(right)) - 1
    for count in range(1, MOST_TERMS + 1):
        found = [Condition(chosen) for chosen in _covers(masks, everything, count)]
        if found:
            unique = {frozenset(c.terms): c for c in sorted(found, key=lambda c: c.cost)}
            return list(unique.values())[:MOST_FITTING]
    return []


def _terms(wrong: Sequence[Features], right: Sequence[Features]) -> Iterator[Term]:
    """All terms that every wrong call fulfils and some right one does not."""
    names = set(wrong[0]).intersection(*wrong)
    for name in sorted(names):
        bad = [of[name] for of in wrong]
        good = [of[name] for of in right if name in of]
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (*bad, *good)):
            yield from _numeric(name, bad, good)  # type: ignore[arg-type]
        elif len(set(bad)) == 1:
            yield Term(name, "==", bad[0])
        else:
            yield from (Term(name, "!=", v) for v in sorted(set(map(str, good)) - set(map(str, bad))) if v in good)


def _numeric(name: str, bad: Sequence[float], good: Sequence[float]) -> Iterator[Term]:
    low, high = min(bad), max(bad)
    below, above = [v for v in good if v < low], [v for v in good if v > high]
    if below:
        yield Term(name, ">", max(below))
    if above:
        yield Term(name, "<=", high)
    if len(set(bad)) == 1 and (below or above):
        yield Term(name, "==", low)
    if name.split("(", maxsplit=1)[0] not in DIVISIBLE or not all(float(v).is_integer() for v in bad):
        return
    for modulus in MODULI:
        multiples = {v % modulus == 0 for v in bad}
        if len(multiples) == 1:
            yield Term(name, "%" if multiples.pop() else "!%", modulus)


def _useful(terms: Iterator[Term], right: Sequence[Features]) -> dict[Term, int]:
    """Each term with the right calls that it leaves out, as bits; of equal ones the least far-fetched few."""
    by_mask: dict[int, list[Term]] = {}
    for term in terms:
        mask = sum(1 << n for n, of in enumerate(right) if not term.holds(of))
        if mask:
            by_mask.setdefault(mask, []).append(term)
    return {term: mask for mask, some in by_mask.items() for term in sorted(some, key=lambda t: t.cost)[:4]}


def _covers(masks: Mapping[Term, int], everything: int, count: int) -> Iterator[tuple[Term, ...]]:
    """Sets of so many terms that together leave out every right call."""
    by_size = sorted(masks, key=lambda t: (-masks[t].bit_count(), t.cost))
    most = {1: len(by_size), 2: 160, 3: 48}[count]
    for chosen in combinations(by_size[:most], count):
        total = 0
        for term in chosen:
            total |= masks[term]
        if total == everything:
            yield chosen
