"""From a failure's text to a Failure: kind, stage, numbers, frames, the rule that matched and why.

The innermost cause counts, not the wrapper; what a failure's text does not say stays None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from debug_spyre.triage import numbers
from debug_spyre.triage.block import Block, Frame
from debug_spyre.triage.decisive import BENIGN_RAS, HINTS, RAS_JSON, critical_text, decisive, engine_root, problem_block
from debug_spyre.triage.numbers import severity
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import FRAME_STAGES, RULES
from debug_spyre.vocabulary.evidence import Failure, Kind, Severity, Stage

MESSAGE = 2000
_COMPILE_CLASS = re.compile(
    r"torch\._(?:inductor|dynamo)\b|InductorError|BackendCompilerFailed|LoweringException|TorchDynamoException|torch_spyre\._inductor"
)
_COMPILE_FRAME = re.compile(
    r"(?:torch/_(?:inductor|dynamo)|torch_spyre/_inductor)/|torch_spyre/execution/async_compile"
)
_BACKEND = re.compile(r"(?:^|/)(?:torch_spyre|spyre_inference)/")
_KERNEL = re.compile(r"torch_spyre/ops/eager|torch/_dynamo/external_utils")
_TEST_PATH = re.compile(r"(?:^|/)tests?/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$")
_CRASHED = re.compile(r"crashed while running|running the test CRASHED with signal")
_IMPORTS = ("ImportError", "ModuleNotFoundError", "SyntaxError")
_COMPARE = re.compile(r"assert .{0,400}?(?:==|!=|<=|>=|<|>| is (?:not )?| in |allclose|equal|close)", re.DOTALL)
_UNITTEST = re.compile(r"AssertionError: .{0,300}?(?: != | differ: )")
_BARE_TRUTH = re.compile(r"AssertionError: (?:False is not true|True is not false)")
_TRUTH_OF_VALUES = re.compile(r"assert(?:True|False)\(.{0,200}(?:equal|close|==|!=|isnan|isinf|isfinite)")
_NO_COMPARE = re.compile(
    r"returncode|exit_?code|exitcode|\bcalled?\b|call_|[Mm]ock|\brc\b|WEXITSTATUS|\.is_alive|exists\(|isinstance|hasattr"
)
_OF_THE_TEST = frozenset({"TypeError", "AttributeError", "NameError", "KeyError", "IndexError", "UnboundLocalError"})
_OF_PYTHON = _OF_THE_TEST | {"ValueError", "AssertionError"}
_TORCH_COMPILER = re.compile(r"torch/_(?:inductor|dynamo)/")
_OF_THE_DEVICE = frozenset(
    {"RuntimeError", "NotImplementedError", "CalledProcessError", "OSError", "SystemError", "MemoryError"}
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules say about one failure."""

    rule: Rule | None
    stage: Stage | None
    key: str | None
    reason: str | None


def judge(block: Block, *, source: str | None, kind: Kind | None = None, rules: Sequence[Rule] = RULES) -> Failure:
    """The Failure that the text of `block` shows."""
    was_cut = kind is None and block.frames and not block.errors  # what else stands in it tells no cause
    text = block.text or ("" if was_cut else "\n".join(block.plain).strip())
    error_class = block.error_class
    inner_class, inner_text = block.inner
    found = numbers.read_numbers(block.errors or block.plain)
    block.unwritten = block.unwritten or found.is_unwritten
    kind = kind or _kind(block, text, error_class, found)
    cause = decisive(inner_text or text, block.captured, kind)
    verdict = classify(
        block, text=text, cause=cause, error_class=error_class, inner=inner_class, kind=kind, rules=rules
    )
    grade, why = (None, None)
    if kind is Kind.MISMATCH:
        grade, why = severity(found, text, unwritten=block.unwritten)
        why = _with_critical(why, block)
    if inner_class is None and (root := engine_root(text, block.captured)):
        inner_class = root.partition(": ")[0]
    stage = verdict.stage or (_mismatch_stage(grade, block, text, found) if kind is Kind.MISMATCH else None)
    tags = list(verdict.rule.tags if verdict.rule else ())
    if grade is Severity.SPECIAL:
        tags.append("special-values")
    if block.unwritten:
        tags.append("unwritten-memory")
    if kind is Kind.MISMATCH and _is_compiled(block, text):
        tags.append("compiled")
    return Failure(
        nodeid=block.nodeid,
        phase=block.phase,
        kind=kind,
        stage=stage,
        tags=tuple(dict.fromkeys(tags)),
        severity=grade,
        reason=verdict.reason or why,
        error_class=error_class,
        inner_class=inner_class,
        message=text[:MESSAGE] or None,
        mismatched=found.mismatched if kind is Kind.MISMATCH else None,
        total=found.total if kind is Kind.MISMATCH else None,
        max_abs=found.max_abs if kind is Kind.MISMATCH else None,
        max_rel=found.max_rel if kind is Kind.MISMATCH else None,
        innermost_frame=str(block.frames[-1]) if block.frames else None,
        backend_frame=backend_frame(block.frames),
        source=source,
        line=block.number or None,
        rule=verdict.rule.id if verdict.rule else None,
        key=(problem_block(inner_text or text) or verdict.key or "")[:500] or None,
        cause=(cause or "")[:1500] or None,
    )


def _with_critical(why: str | None, block: Block) -> str | None:
    """What the log said as CRITICAL before the values differed."""
    critical = critical_text(block.captured)
    return f"{why or 'values differ'}; before it, CRITICAL: {critical[:300]}" if critical else why


def backend_frame(frames: Sequence[Frame]) -> str | None:
    """The last frame in torch_spyre or the plugin; the body of a fallback's warning says less than its caller."""
    inside = [
        f for f in frames if _BACKEND.search(f.path) and not _TEST_PATH.search(f.path.rsplit("torch_spyre/", 1)[-1])
    ]
    inside = [f for f in inside if not _is_test(f.path)]
    outside_fallbacks = [f for f in inside if not f.path.endswith("ops/fallbacks.py")]
    chosen = (outside_fallbacks or inside)[-1:] if inside else []
    return str(chosen[0]) if chosen else None


def _is_test(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name.startswith("test_") or name == "conftest.py"


def _kind(block: Block, text: str, error_class: str | None, found: numbers.Mismatch) -> Kind:
    name = (error_class or "").rsplit(".", 1)[-1]
    if name in {"Failed", "TimeoutExpired", "TimeoutError"} and re.search(r"Timeout|timed? ?out", text):
        return Kind.TIMEOUT
    if _CRASHED.search(text) or any(_CRASHED.search(line) for line in block.plain):
        return Kind.CRASH
    if numbers.is_comparison(text) and (error_class is None or name in {"AssertionError", "Failed", "Exception"}):
        return Kind.MISMATCH
    if error_class and name not in _IMPORTS and not (name == "RuntimeError" and RAS_JSON.search(text)):
        if _COMPILE_CLASS.search(error_class):
            return Kind.COMPILE
        last = block.frames[-1].path if block.frames else ""
        if block.phase in {"call", "setup"} and _raised_by_compiler(block.frames, last, name):
            return Kind.COMPILE
    if name == "AssertionError" and not found.is_empty:
        return Kind.MISMATCH
    if _BARE_TRUTH.match(text) and any(_TRUTH_OF_VALUES.search(line) for line in block.context):
        return Kind.MISMATCH
    if name == "AssertionError" and _UNITTEST.search(text[:2000]) and not _NO_COMPARE.search(text[:2000]):
        return Kind.MISMATCH
    if name == "AssertionError" and _COMPARE.search(text[:2000]) and not _NO_COMPARE.search(text[:2000]):
        return Kind.MISMATCH
    return Kind.EXCEPTION


def _raised_by_compiler(frames: Sequence[Frame], last: str, name: str) -> bool:
    if name in _OF_PYTHON and not any(_TORCH_COMPILER.search(f.path) for f in frames):
        return False  # a test that calls a part of the compiler by hand
    if _COMPILE_FRAME.search(last):
        return not name.endswith("Warning")
    compiling = any(_COMPILE_FRAME.search(f.path) and "eval_frame" not in f.path for f in frames[-12:])
    return name == "CalledProcessError" and (compiling or "async_compile" in last)


def classify(
    block: Block,
    *,
    text: str,
    cause: str,
    error_class: str | None,
    inner: str | None,
    kind: Kind,
    rules: Sequence[Rule],
) -> Verdict:
    """The first rule that matches, else the stage of the innermost backend frame."""
    error = HINTS.sub("", f"{error_class or ''}: {text}\n{cause}")
    if "WarningMessage object" in text:  # the test's own lines name the class that it looks for
        error = "\n".join([error, *block.context])
    beside = "\n".join(captured for captured in block.captured if BENIGN_RAS not in captured)
    if kind is not Kind.MISMATCH and (ras := RAS_JSON.search(cause)):
        error = f"{ras[0]}\n{error}"
    if root := engine_root(text, block.captured):
        error = f"{root}\n{error}"
    places = {"error": error, "captured": beside, "any": f"{error}\n{beside}", "class": inner or error_class or ""}
    places["frame"] = "\n".join(str(f) for f in block.frames[-6:])
    places["outside"] = error if block.frames and not _is_test(block.frames[-1].path) else ""
    places["kernel"] = error if any(_KERNEL.search(f.path) for f in block.frames[-6:]) else ""
    places["mock"] = block.mocked or ""
    places["source"] = "\n".join([error, *block.context])
    found = _first(places, kind, rules)
    critical = critical_text(block.captured) if found is None and kind is not Kind.MISMATCH else None
    if critical:  # an empty message, and a log line before it that says what happened
        found = _first({"error": critical}, kind, rules)
        return found or Verdict(None, _frame_stage(block, kind), critical, None)
    return found or Verdict(None, None if kind is Kind.MISMATCH else _frame_stage(block, kind), None, None)


def _first(places: Mapping[str, str], kind: Kind, rules: Sequence[Rule]) -> Verdict | None:
    for rule in rules:
        allowed = kind in rule.kinds if rule.kinds else kind is not Kind.MISMATCH
        where = places.get(rule.where, "")
        if not allowed or not where:
            continue
        match = rule.pattern.search(where, 0, 20_000)
        if match:
            groups = [value for value in match.groupdict().values() if value]
            return Verdict(rule, rule.stage, groups[0].strip() if groups else None, rule.reason)
    return None


def _frame_stage(block: Block, kind: Kind) -> Stage | None:
    for frame in reversed(block.frames):
        for part, stage in FRAME_STAGES:
            if part in frame.path and ("torch_spyre" in frame.path or part.startswith("torch/")):
                return stage
    if block.phase in {"setup", "teardown", "session"}:
        return Stage.ENVIRONMENT
    if block.phase == "collect":
        return Stage.ENVIRONMENT
    if kind is Kind.COMPILE:
        return Stage.LOWERING
    if kind in {Kind.CRASH, Kind.TIMEOUT}:
        return Stage.RUNTIME
    name = (block.error_class or "").rsplit(".", 1)[-1]
    if name in _OF_THE_TEST and block.frames and _is_test(block.frames[-1].path):
        return Stage.TEST_BUG
    if name in _OF_THE_DEVICE or _NO_COMPARE.search(block.text[:2000]):
        return Stage.RUNTIME
    return None


_COMPILED = re.compile(
    r"compiled spyre|compilation_STOCK|STOCK_TORCH_COMPILE|[\[_-]compiled?\b|[\[_-]inductor\b|torch\.compile\(|compiled?=True|run_eager=False"
)
_EAGER = re.compile(r"eager spyre|compilation_NONE|[\[_-]eager\b|run_compile=False|compiled?=False")
_GRAPH_COUNT = re.compile(
    r"_dynamo\b|counters\[|unique_graphs|frame_count|op_count|graph_count|recompil|CompileCounter"
)
_LAYOUT_WORDS = re.compile(
    r"seqs|paged?_|batch_|mixed\(|slice|offset|stride|view|expand|permut|transpos|narrow|unfold|roll|as_strided|chunk|split|page",
    re.IGNORECASE,
)


def _is_compiled(block: Block, text: str) -> bool:
    where = f"{text[:400]}\n{block.nodeid or block.title}"
    if _EAGER.search(where):
        return False
    return bool(_COMPILED.search(where) or any(_COMPILED.search(line) for line in block.context))


def _mismatch_stage(grade: Severity | None, block: Block, text: str, found: numbers.Mismatch) -> Stage:
    if block.unwritten:
        return Stage.CODEGEN
    if "The values for attribute '" in text:
        return Stage.LOWERING  # a shape or dtype is no matter of numbers
    if grade in {Severity.SPECIAL, Severity.ACCUMULATION}:
        return Stage.NUMERICS
    name = block.nodeid or block.title
    if found.is_python_number:
        of_dynamo = any(_GRAPH_COUNT.search(line) for line in block.context)
        return Stage.DYNAMO if of_dynamo else Stage.CODEGEN  # exact values that differ are no rounding
    if grade is Severity.STRUCTURAL:
        if "Scalars are not equal" in text:
            return Stage.CODEGEN
        if _LAYOUT_WORDS.search(name):
            return Stage.LAYOUT
        if _is_compiled(block, text) or found.max_rel == 1.0 or "are not equal!" in text:
            return Stage.CODEGEN  # zeros for a result, or exact values that differ, are no rounding
    return Stage.NUMERICS
