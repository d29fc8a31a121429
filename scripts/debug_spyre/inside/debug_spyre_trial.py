"""Runs many small scripts in one process on the device and says of each what it showed; one JSON line each, flushed.

A crash loses the script that crashed and nothing before it. Usage: python debug_spyre_trial.py REQUEST.json RESULTS.jsonl
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import sys
import traceback
from typing import Any

MOST_PLACES = 4


def main(request_path: str, results_path: str) -> int:
    """Answer every trial of the request; the exit status says only whether all were answered."""
    with open(request_path, encoding="utf-8") as stream:
        request = json.load(stream)
    with open(results_path, "a", encoding="utf-8") as results:
        for trial in request.get("trials", []):
            results.write(json.dumps({"begun": trial["id"]}) + "\n")
            results.flush()
            answer = run_script(trial["text"], keep=trial.get("keep"))
            results.write(json.dumps({"id": trial["id"], **answer}) + "\n")
            results.flush()
        if request.get("groups"):
            results.write(json.dumps({"id": "groups", "groups": legal_groups(request["groups"])}) + "\n")
    return 0


def run_script(text: str, *, keep: str | None = None) -> dict[str, Any]:
    """Execute one script as if it were the main module; its exit status, its words, and how far the results differ."""
    names: dict[str, Any] = {"__name__": "__main__"}
    said = io.StringIO()
    answer: dict[str, Any] = {"exit": 0, "error": None, "frames": []}
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(text, "repro.py", "exec"), names)  # noqa: S102  the scripts are ours
        except SystemExit as end:
            answer["exit"] = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException as error:  # noqa: BLE001  whatever the backend raises is the answer
            answer["exit"] = 2
            answer["error"] = {
                "cls": f"{type(error).__module__}.{type(error).__qualname__}",
                "message": str(error)[:4000],
            }
            answer["frames"] = [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-3:]]
    answer["said"] = said.getvalue()[-2000:]
    if "got" in names and "want" in names:
        answer["difference"] = difference(names["got"], names["want"], names.get("wrong"))
        if keep:
            _keep(names["got"], names["want"], keep)
    return answer


def difference(got: Any, want: Any, wrong: Any) -> dict[str, Any]:
    """Numbers of one comparison, as plain values."""
    import torch

    if not torch.is_tensor(got) or not torch.is_tensor(want):
        return {"shape": None}
    gap = (got.double() - want.double()).abs()
    finite = gap[torch.isfinite(gap)]
    return {
        "shape": list(want.shape),
        "wrong": int(wrong.sum()) if wrong is not None else None,
        "total": int(want.numel()),
        "max_abs": float(finite.max()) if finite.numel() else None,
        "special": int((~torch.isfinite(got.double())).sum()),
        "first": _first(wrong),
    }


def _first(wrong: Any) -> list[int] | None:
    if wrong is None or not bool(wrong.any()):
        return None
    return [int(i) for i in wrong.nonzero()[0]]


def _keep(got: Any, want: Any, path: str) -> None:
    import torch

    torch.save({"got": got.contiguous(), "want": want.contiguous()}, path)


def legal_groups(request: dict[str, Any]) -> list[list[int]]:
    """Which sets of size places can change together: tried on the meta device, where nothing is computed.

    `request`: {"count": number of places, "sizes": [...], "texts": {"0,3": script text with these places changed}}.
    """
    import torch

    legal: list[list[int]] = []
    for key, text in request["texts"].items():
        chosen = [int(n) for n in key.split(",")]
        if any(set(done) <= set(chosen) for done in legal):
            continue
        try:
            with torch.device("meta"):
                exec(compile(text, "meta.py", "exec"), {})  # noqa: S102
        except Exception:  # noqa: BLE001, S112  an illegal change
            continue
        legal.append(chosen)
    return legal


def subsets(places: int) -> list[tuple[int, ...]]:
    """Sets of places to try, the smallest first."""
    found: list[tuple[int, ...]] = []
    for count in range(1, min(places, MOST_PLACES) + 1):
        found += itertools.combinations(range(places), count)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
