"""How likely pure scatter shows what was found: log10 probabilities, corrected for everything that was tried."""

from __future__ import annotations

from math import lgamma, log, log10

LN10 = log(10)
SIGNIFICANT = -2.5  # log10: at most three in a thousand, over all that was tried


def _log_choose(n: float, k: float) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def log10_filled(*, inside: float, size: float, bad: float, total: float) -> float:
    """log10 of the chance that `bad` elements thrown at random on `total` put `inside` or more into a set of `size`.

    The hypergeometric tail, bounded by its largest term times the number of terms.
    """
    if inside <= 0 or size <= 0 or inside / size <= bad / max(total, 1):
        return 0.0
    inside, bad = min(inside, size, bad), min(bad, total)
    point = _log_choose(size, inside) + _log_choose(total - size, bad - inside) - _log_choose(total, bad)
    terms = max(1.0, min(size, bad) - inside + 1)
    return min(0.0, (point + log(terms)) / LN10)


def log10_matched(*, matched: float, tried: float, rate: float) -> float:
    """log10 of a bound on the chance that `matched` of `tried` elements agree when each agrees with probability `rate`.

    Chernoff's bound for a binomial tail.
    """
    if tried <= 0 or matched <= 0:
        return 0.0
    share = matched / tried
    rate = min(max(rate, 1e-9), 1.0)
    if share <= rate:
        return 0.0
    gain = share * log(share / rate)
    if share < 1:
        gain += (1 - share) * log((1 - share) / (1 - rate))
    return -tried * gain / LN10


def as_probability(log10_chance: float) -> float:
    """10 ** `log10_chance`; numbers below 1e-300 become 1e-300, so that they can be printed."""
    return float(10.0 ** max(log10_chance, -300.0)) if log10_chance < 0 else 1.0


def log10_count(number: float) -> float:
    """log10 of a number of hypotheses."""
    return log10(max(number, 1.0))
