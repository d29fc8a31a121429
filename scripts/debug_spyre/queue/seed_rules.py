"""The rules that propose the starter set of hypotheses: a reason, a class, a cost, a ready command for each.

A rule without evidence of its own proposes nothing; only "the test or its reference is wrong" and "something carries
over" are always possible, and say so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from debug_spyre.queue.queue_rules import CHEAP_SECONDS, CONFIDENCES, stage
from debug_spyre.queue.seeds import ATTENTION_SET, Seed, Situation, attention_traces
from debug_spyre.vocabulary.evidence import Evidence, Kind, Outcome, Severity, Stage

OVERFLOW = 60000.0
_OP = re.compile(r"\b(aten|spyre|prims|vllm)(?:::|\.)([A-Za-z_]\w*)(?:\.(\w+))?")
_DTYPE = re.compile(
    r"\b(?:u?int(?:8|16|32|64)|float(?:16|32|64)|bfloat16|half|bool|dtype|long|double)\b", re.IGNORECASE
)
_LAYOUT = re.compile(
    r"\b(?:strides?|contiguous|non-contiguous|transposed?|permut\w*|layout|storage[_ ]offset|view)\b", re.IGNORECASE
)
_LAYOUT_PATTERN = re.compile(r"\b(?:transpos|permut|roll|stick|padded)\w*", re.IGNORECASE)
_PERIOD = re.compile(r"\bperiod\w*|\bevery \d+", re.IGNORECASE)
_SHAPE = re.compile(
    r"\b(?:(?:shape|size|hidden|width|height|token|seq|len|batch|head|block|dim|row|col)\w*|kv|q|n|m|k)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_INTEGER_OPS = {
    "arange", "argmax", "argmin", "cumsum", "eq", "ne", "gt", "ge", "lt", "le", "isin", "max", "min", "nonzero", "sort",
    "topk", "bitwise_and", "bitwise_or", "bitwise_xor", "tril", "triu", "embedding", "index", "where",
}  # fmt: skip


Rule = Callable[[Situation], Iterable[Seed]]


def _fallback_differs(s: Situation) -> Iterable[Seed]:
    for fallback in s.fallbacks[:3]:
        where = f" at {fallback.file}:{fallback.line}" if fallback.file else ""
        known = f"; the checkout accepts it at {fallback.accepted}" if fallback.accepted else ""
        yield Seed(
            "fallback",
            f"{fallback.op} runs on the CPU{where} and gives another dtype, layout or rounding than the device would",
            s.verb("shadow"),
            "probe",
            s.cost(5),
            "medium" if fallback.accepted or not s.has(Kind.MISMATCH) else "high",
            f"FallbackWarning for {fallback.op}{where}{known}",
        )


def _overload_missing(s: Situation) -> Iterable[Seed]:
    named = {f.op: f"it falls back ({f.file}:{f.line})" for f in s.fallbacks}
    for failure in s.failures:
        for space, name, overload in _OP.findall(failure.message or ""):
            op = f"{space}.{name}" + (f".{overload}" if overload else "")
            named.setdefault(op, f"{failure.error_class or failure.kind} names it")
    for op, why in list(named.items())[:3]:
        yield Seed(
            "overload",
            f"{op} has no kernel for the overload that is called, only for another",
            f"debug-spyre op {shlex.quote(op)}",
            "probe",
            1.0,
            "high" if op in {f.op for f in s.fallbacks} else "medium",
            why,
        )
    if not named and s.has(Kind.MISMATCH):
        yield Seed(
            "overload",
            "an op that is taken for on-device goes to the CPU without a visible warning",
            s.run("--fallback-as-error"),
            "probe",
            s.cost(),
            "low",
            "a mismatch without a FallbackWarning: the warning is shown once a process only",
        )


def _dtype_forced(s: Situation) -> Iterable[Seed]:
    integer = next((f.op for f in s.fallbacks if f.op.split(".")[-1].split("::")[-1] in _INTEGER_OPS), None)
    quoted = s.quote(_DTYPE)
    special = s.is_severe(Severity.SPECIAL)
    if not (integer or quoted or special):
        return
    why = f"{integer} makes integers or masks" if integer else quoted or "NaN or infinity in the result"
    yield Seed(
        "dtype",
        "a dtype is forced on the way: integer indices, a bool mask or a float32 intermediate where the card has float16",
        s.verb("shadow"),
        "probe",
        s.cost(5),
        "high" if quoted and s.at(Stage.DISPATCH) else "medium",
        why,
    )


def _layout(s: Situation) -> Iterable[Seed]:
    pattern = next((f.pattern for f in s.failures if f.pattern and _LAYOUT_PATTERN.search(f.pattern)), None)
    staged = s.at(Stage.LAYOUT) or s.at(Stage.LOWERING)
    quoted = s.quote(_LAYOUT)
    if not (pattern or staged or quoted):
        return
    yield Seed(
        "layout",
        "a stride, view or contiguous() that the backend does not honour: transposed input, offset, padded stick",
        s.verb("ladder"),
        "probe",
        s.cost(6),
        "high" if pattern or s.at(Stage.LAYOUT) else "medium",
        pattern or quoted or "the failure lies in lowering",
    )


def _shape(s: Situation) -> Iterable[Seed]:
    for separator in s.cluster.get("separators") or ():
        if not _is_shape(separator):
            continue
        function = s.probe.split("[", 1)[0]
        yield Seed(
            "shape",
            f"shapes beyond a limit take another path: {separator['parameter']} tells failing from passing",
            f"debug-spyre run {shlex.quote(function)}",
            "full-run" if s.seconds is None or s.cost(20) > CHEAP_SECONDS else "probe",  # type: ignore[operator]
            s.cost(20),
            "high",
            str(separator.get("text") or separator["parameter"]),
        )
        return


def _is_shape(separator: Mapping[str, Any]) -> bool:
    """A size by its name, or by values that are numbers (a parameter without a name)."""
    if _SHAPE.search(str(separator.get("parameter", ""))):
        return True
    values = [str(value) for value in separator.get("failing") or ()]
    return bool(values) and all(_NUMBER.fullmatch(value) for value in values)


def _wrong_op(s: Situation) -> Iterable[Seed]:
    if not s.is_severe(Severity.STRUCTURAL):
        return
    failure = next((f for f in s.failures if f.severity is Severity.STRUCTURAL), None)
    why = (failure.pattern or failure.reason) if failure else None
    yield Seed(
        "wrong-op",
        "one op on the card gives a wrong result by itself, whatever surrounds it",
        s.verb("shadow"),
        "probe",
        s.cost(5),
        "high",
        why or str(s.cluster.get("reason") or "a structural mismatch"),
    )


def _accumulation(s: Situation) -> Iterable[Seed]:
    if not s.is_severe(Severity.ACCUMULATION):
        return
    failure = next((f for f in s.failures if f.severity is Severity.ACCUMULATION), None)
    test = (
        f"debug-spyre compare {shlex.quote(s.tensors[0][0])} {shlex.quote(s.tensors[0][1])}"
        if s.tensors
        else s.verb("shadow")
    )
    yield Seed(
        "accumulation",
        "only the order of float16 sums differs between the card and the CPU; nothing is structurally wrong",
        test,
        "probe",
        2.0 if s.tensors else s.cost(5),
        "medium",
        (failure.reason if failure else None) or str(s.cluster.get("reason") or "a small mismatch in a small part"),
    )


def _test_wrong(s: Situation) -> Iterable[Seed]:
    blamed = s.at(Stage.TEST_BUG)
    yield Seed(
        "test",
        "the test is wrong: its inputs, its reference or its tolerance",
        s.verb("repro", "--cpu", "--test"),
        "probe",
        s.cost(2),
        "high" if blamed else "low",
        "the failure lies in the test's own code" if blamed else "always possible until the CPU control passes",
    )


def _carry_over(s: Situation) -> Iterable[Seed]:
    alone = {t.nodeid: t.outcome for t in s.evidence.tests}.get(s.probe)
    among = {t.nodeid: t.outcome for t in s.matrix.tests}.get(s.probe) if s.matrix else None
    differs = alone is not None and among is not None and alone is not among
    cured = differs and alone is Outcome.PASSED  # a run of the probe passes anyhow: with those before it, then
    numbers = _magnitudes(s)
    confidence = "high" if differs else "medium" if numbers else "low"
    why = (
        f"alone it is {alone}, in the matrix {among}"
        if differs
        else numbers or "always possible until a fresh process with an empty cache shows the same"
    )
    yield Seed(
        "carry-over",
        "state of an earlier test carries over: compile cache, warm-up, memory on the card",
        f"debug-spyre run --alone {shlex.quote(s.probe.partition('::')[0])}" if cured else s.run("--fresh-cache"),
        "probe",
        None if cured else s.cost(2),
        confidence,
        why,
    )


def _magnitudes(s: Situation) -> str | None:
    def of(evidence: Evidence | None) -> float | None:
        return next((f.max_abs for f in evidence.failures if f.nodeid == s.probe), None) if evidence else None

    alone, among = of(s.evidence), of(s.matrix)
    if s.matrix is s.evidence or alone is None or among is None or alone == among:
        return None
    return f"largest difference {alone:g} alone, {among:g} in the matrix"


def _broadcast(s: Situation) -> Iterable[Seed]:
    for failure in s.failures:
        pattern = failure.pattern or ""
        overflow = "overflow" in pattern or "special-values" in failure.tags or (failure.max_abs or 0.0) >= OVERFLOW
        if _PERIOD.search(pattern) and overflow:
            yield Seed(
                "broadcast",
                "a broadcast operand is read wrongly in a matmul or softmax: put .expand(...).contiguous() on its "
                "singleton axis (it tells, it is not the fix)",
                s.run(),
                "code-change",
                s.cost(),
                "high",
                f"a period and an overflow together: {pattern}",
            )
            return


def _compile(s: Situation) -> Iterable[Seed]:
    if not s.has(Kind.COMPILE):
        return
    frame = next((f.backend_frame or f.innermost_frame for f in s.failures if f.kind is Kind.COMPILE), None)
    inner = next((f.inner_class or f.error_class for f in s.failures if f.kind is Kind.COMPILE), None)
    yield Seed(
        "compile",
        "the compiler rejects this op or its input as such, whatever the module around it does",
        s.verb("ladder"),
        "probe",
        s.cost(6),
        "high",
        f"{inner or 'a compile error'} at {frame or 'an unknown place'}",
    )
    yield Seed(
        "compile",
        "the backend's own log names the pass or the kernel that gives up",
        s.run("--as verbose", "--verbose-backend"),
        "probe",
        s.cost(2),
        "medium",
        "a compile error says little without the vendor's log",
    )


def _card(s: Situation) -> Iterable[Seed]:
    tags = {tag for f in s.failures for tag in f.tags}
    if {"card-busy", "device-error"} & tags:
        yield Seed(
            "card",
            "somebody else holds the card, or it is in a bad state from an earlier process",
            "debug-spyre doctor",
            "probe",
            5.0,
            "high",
            "the failures carry " + " and ".join(sorted({"card-busy", "device-error"} & tags)),
        )
    if s.has(Kind.TIMEOUT) or s.has(Kind.CRASH):
        yield Seed(
            "card",
            "the crash or hang is not the test's: an earlier one leaves the card so that this one dies",
            s.run("--isolate"),
            "probe",
            s.cost(2),
            "medium",
            "a " + ("hang" if s.has(Kind.TIMEOUT) else "crash") + " among the members",
        )


def _attention(s: Situation) -> Iterable[Seed]:
    traces = attention_traces((s.probe, *s.members), s.failures)
    if not traces:
        return
    for entry in ATTENTION_SET:
        quoted = s.quote(entry.sign) or next(
            (f.pattern for f in s.failures if f.pattern and entry.sign.search(f.pattern)), None
        )
        yield Seed(
            "attention",
            entry.text,
            s.verb(entry.verb),
            "probe",
            s.cost(5),
            "medium" if quoted else "low",
            quoted or f"attention code is in the failure: {traces[0]}",
        )


RULES: tuple[Rule, ...] = (
    _fallback_differs, _wrong_op, _overload_missing, _dtype_forced, _layout, _shape, _accumulation, _test_wrong, _carry_over,
    _broadcast, _compile, _card, _attention,
)  # fmt: skip


def seeds(situation: Situation) -> tuple[Seed, ...]:
    """All rows that the evidence supports, confident and cheap ones first."""
    found = [seed for rule in RULES for seed in rule(situation)]
    unique = {seed.text: seed for seed in found}
    return tuple(sorted(unique.values(), key=_order))


def _order(seed: Seed) -> tuple[int, int, float]:
    return (
        stage(seed.test_class, seed.confidence, seed.cost_seconds),
        CONFIDENCES.index(seed.confidence),
        seed.cost_seconds or 0.0,
    )
