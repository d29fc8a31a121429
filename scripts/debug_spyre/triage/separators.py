"""Which parameter values tell the failing tests of a cluster from the passing ones: only where the data support it.

A separator holds for every failing and no passing test of the same functions; with too few cases nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from debug_spyre.triage.nodeids import Value, base_and_parameters, family, features
from debug_spyre.vocabulary.evidence import Outcome, Separator, TestRecord

_DIVISORS = (64, 128, 32, 256, 16, 8, 2)
MOST = 6
_SHOWN = 8


def separators(
    failing: Sequence[str], tests: Sequence[TestRecord], names: Mapping[str, Sequence[str]] | None = None
) -> tuple[Separator, ...]:
    """At most six separators, the plainest first."""
    families = {family(base_and_parameters(n)[0]) for n in failing}
    passing = [t.nodeid for t in tests if t.outcome is Outcome.PASSED and _family(t.nodeid) in families]
    if not failing or not passing or len(failing) + len(passing) < 3:
        return ()
    known = names or {}
    bad, good = ([features(n, known.get(base_and_parameters(n)[0], ())) for n in ids] for ids in (failing, passing))
    shared = [name for name in bad[0] if all(name in f for f in bad)]
    found = []
    for name in shared:
        here = [f[name] for f in bad]
        there = [f[name] for f in good if name in f]
        if not there:
            continue
        told = _tell(here, there)
        if told:
            having = "the one failing has" if len(here) == 1 else f"all {len(here)} failing have"
            text = f"{having} {name} {told}; 0 of {len(there)} passing {'does' if len(there) == 1 else 'do'}"
            found.append(Separator(name, _values(here), _values(there), text))
    return tuple(found[:MOST])


def _family(nodeid: str) -> str:
    return family(base_and_parameters(nodeid)[0])


def _tell(bad: list[Value], good: list[Value]) -> str | None:
    distinct_bad, distinct_good = set(bad), set(good)
    if distinct_bad & distinct_good:
        return None
    numbers_bad = [v for v in bad if isinstance(v, float)]
    numbers_good = [v for v in good if isinstance(v, float)]
    if len(numbers_bad) == len(bad) and len(numbers_good) == len(good):
        told = _tell_numbers(numbers_bad, numbers_good)
        if told is not None:
            return told
    if len(distinct_bad) == 1:
        return f"= {show(bad[0])}"
    # a list of values separates anything when each test has its own value: it must cover several tests a value
    if len(distinct_bad) <= 3 and len(bad) >= 2 * len(distinct_bad) and len(distinct_bad) < len(distinct_good) + 2:
        return "in " + ", ".join(show(v) for v in sorted(distinct_bad, key=str))
    return None


def _tell_numbers(bad: list[float], good: list[float]) -> str | None:
    if set(bad) == {1.0} and min(good) > 1:
        return "= 1"
    several = len(set(bad)) + len(set(good)) >= 4
    for divisor in _DIVISORS if several else ():
        if all(v % divisor for v in bad) and not any(v % divisor for v in good):
            return f"not a multiple of {divisor}"
    single = len(set(bad)) == 1 and len(set(good)) == 1
    if min(bad) > max(good):
        return f"= {show(bad[0])}" if single else f">= {show(min(bad))}"
    if max(bad) < min(good):
        return f"= {show(bad[0])}" if single else f"<= {show(max(bad))}"
    for divisor in _DIVISORS if several and len(set(bad)) > 1 else ():
        if not any(v % divisor for v in bad) and all(v % divisor for v in good):
            return f"a multiple of {divisor}"
    return None


def show(value: Value) -> str:
    """A value as it stands in the id."""
    return f"{value:g}" if isinstance(value, float) else value[:60]


def _values(values: list[Value]) -> tuple[str, ...]:
    numbers = sorted({v for v in values if isinstance(v, float)})
    texts = sorted({v for v in values if isinstance(v, str)})
    shown = [show(v) for v in numbers] + texts
    return tuple(shown[:_SHOWN])
