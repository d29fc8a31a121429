"""The tensors that a run's failed comparisons kept, compared after the run: pattern, severity and reason per failure.

Never raises: what can't be compared becomes a warning of the evidence.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_spyre.host.files import PRIVATE, write_atomically
from debug_spyre.numerics.io.tensor_files import need_numpy, read_safetensors
from debug_spyre.vocabulary.errors import DebugSpyreError
from debug_spyre.vocabulary.evidence import Evidence, Failure, Kind, Severity

if TYPE_CHECKING:
    from debug_spyre.numerics.comparison import Comparison
    from debug_spyre.numerics.formats import Values

COMPARISONS = "comparisons.json"
SECONDS = 60.0
MOST_PICTURES = 40
MOST_TESTS = 400


def compare_kept(run_folder: Path, evidence: Evidence) -> Evidence:
    """Compare the tensors that each failure of the run kept; fill in pattern, severity and reason.

    Writes runs/<id>/comparisons.json. A pair that can't be compared leaves its failure as it is.
    """
    lines = list(_tensor_lines(run_folder / "results.jsonl"))
    if not lines:
        return evidence
    try:
        need_numpy()
    except DebugSpyreError as error:
        return _warned(evidence, f"kept tensors were not compared: {error.what}")
    warnings: list[str] = []
    entries: list[dict[str, Any]] = []
    said: dict[str, dict[str, Any]] = {}
    deadline = time.monotonic() + SECONDS
    for number, line in enumerate(lines):
        if number >= MOST_TESTS or time.monotonic() > deadline:
            why = f"{MOST_TESTS} were" if number >= MOST_TESTS else "time"
            warnings.append(
                f"tensors of {len(lines) - number} of {len(lines)} failed comparisons were not compared ({why})"
            )
            break
        found = _compared(run_folder, line, warnings, pictures=len(entries) < MOST_PICTURES)
        entries += found["entries"]
        said[str(line.get("nodeid"))] = found
    try:
        text = json.dumps({"schema": 1, "comparisons": entries}, ensure_ascii=False, allow_nan=False)
        write_atomically(run_folder / COMPARISONS, text, mode=PRIVATE)
    except (DebugSpyreError, ValueError) as error:
        warnings.append(f"{COMPARISONS} could not be written: {error}")
    failures = tuple(_filled(f, said.get(f.nodeid or "")) for f in evidence.failures)
    return _warned(replace(evidence, failures=failures), *warnings)


def _warned(evidence: Evidence, *texts: str) -> Evidence:
    return replace(evidence, warnings=(*evidence.warnings, *texts))


def _tensor_lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as stream:
            for raw in stream:
                if b'"tensors"' not in raw:
                    continue
                try:
                    line = json.loads(raw)
                except ValueError:
                    continue
                if isinstance(line, dict) and line.get("e") == "tensors":
                    yield line
    except OSError:
        return


def _compared(folder: Path, line: dict[str, Any], warnings: list[str], *, pictures: bool) -> dict[str, Any]:
    """All comparisons of one test: the entries for the file, the worst one, the selector that differs."""
    entries: list[dict[str, Any]] = []
    worst: Comparison | None = None
    exact: list[tuple[str, Values, str, Values]] = []
    nodeid = line.get("nodeid")
    for pair in line.get("pairs") or ():
        try:
            names = [str(n) for n in pair.get("names") or ("actual", "expected")][:2]
            a = read_safetensors(_inside(folder, pair["file"]), pair["actual"])
            e = read_safetensors(_inside(folder, pair["file"]), pair["expected"])
            exact.append((names[0], a, names[-1], e))
            comparison = _pair(a, e, pair, pictures=pictures)
        except (DebugSpyreError, OSError, ValueError, KeyError, TypeError, AttributeError, MemoryError) as error:
            warnings.append(f"kept tensors of {nodeid}: {getattr(error, 'what', error)}")
            continue
        entries.append({"nodeid": nodeid, "name": " / ".join(names), "file": pair["file"], **comparison.to_json()})
        if worst is None or _weight(comparison) > _weight(worst):
            worst = comparison
    return {"entries": entries, "worst": worst, "selector": _selector(folder, line, exact, warnings)}


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{name} lies outside the run's folder")
    return path


def _pair(a: Values, e: Values, pair: dict[str, Any], *, pictures: bool) -> Comparison:
    from debug_spyre.numerics.comparison import compare

    rtol, atol = pair.get("rtol"), pair.get("atol")
    if rtol is None or atol is None:
        rtol = atol = None
    return compare(a, e, rtol=rtol, atol=atol, draw=pictures)


def _weight(comparison: Comparison) -> tuple[bool, bool, int]:
    return bool(comparison.patterns), comparison.verdict.value == "structural", comparison.measured.mismatched


def _selector(
    folder: Path, line: dict[str, Any], exact: list[tuple[str, Values, str, Values]], warnings: list[str]
) -> str | None:
    """The first integer or bool tensor that differs from its reference, in words."""
    from debug_spyre.numerics.slices import couples, first_difference

    others: dict[str, Values] = {}
    for other in line.get("others") or ():
        try:
            others[str(other["name"])] = read_safetensors(_inside(folder, other["file"]), other["key"])
        except (DebugSpyreError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            warnings.append(f"kept tensor {other!r:.80}: {getattr(error, 'what', error)}")
    pairs = [(one, others[one], two, others[two]) for one, two in couples(others)]
    difference = first_difference([*pairs, *exact])
    return difference.text if difference else None


def _filled(failure: Failure, found: dict[str, Any] | None) -> Failure:
    """The failure with what its tensors say; the pattern wins over what the ratio alone suggested."""
    if found is None or failure.kind not in {Kind.MISMATCH, Kind.EXCEPTION}:
        return failure
    worst: Comparison | None = found["worst"]
    reasons = [found["selector"]] if found["selector"] else []
    changes: dict[str, Any] = {}
    if worst is not None and worst.verdict.value != "same":
        severity = Severity(worst.verdict.value)
        if severity is not Severity.INCONCLUSIVE or failure.severity is None:
            changes["severity"] = severity
        reasons.insert(0, worst.judgement.reason)
        if worst.patterns:
            changes["pattern"] = worst.patterns[0].text
        m = worst.measured
        known = {"mismatched": m.mismatched, "total": m.total, "max_abs": m.max_abs, "max_rel": m.max_rel}
        changes.update({k: v for k, v in known.items() if getattr(failure, k) is None})
    if reasons:
        changes["reason"] = "; ".join(reasons)
    return replace(failure, **changes)
