"""Each op on the card is run again on the CPU from the same inputs: names the first op whose result differs.

pytest plugin (`-p debug_spyre_shadow`), or for a script: `python -m debug_spyre_shadow SCRIPT ARGS`. Errors do not
propagate, since every op is judged from what the device gave it. Settings come in DEBUG_SPYRE_SHADOW (JSON).
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from debug_spyre_calls import Copier, is_device, mapped, name_of, run_folder, save_suspect, tensors_in, write_json  # type: ignore[import-not-found]
from debug_spyre_flight import Flight  # type: ignore[import-not-found]
from debug_spyre_judging import (  # type: ignore[import-not-found]
    Difference,
    Verdicts,
    difference,
    pattern_of,
    tolerance,
)
from debug_spyre_kernels import keep_apart  # type: ignore[import-not-found]
from debug_spyre_running import (  # type: ignore[import-not-found]
    cloned,
    golden_errors,
    has_own_kernel,
    host_form,
    is_named,
    is_random,
    is_view,
    kernel_of_code,
    repeated,
    run_on_card,
    written,
)
from debug_spyre_tally import Tally, site_of  # type: ignore[import-not-found]
from debug_spyre_transfers import Transfers  # type: ignore[import-not-found]
from torch.utils._python_dispatch import TorchDispatchMode

MOST_ELEMENTS = 1 << 26
FRESH = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "resize_", "set_"}
TRANSFERS = {"_to_copy", "copy_", "_copy_from", "_copy_from_and_resize", "to_copy"}
READS = {"_local_scalar_dense", "item", "equal", "is_nonzero"}


class Shadow(TorchDispatchMode):
    """Runs every device op twice and keeps the tally; saves the inputs and outputs of the suspect only."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        super().__init__()
        self.folder = folder
        self.only, self.skip = set(settings.get("only") or ()), set(settings.get("skip") or ())
        self.most = int(settings.get("max_elements") or MOST_ELEMENTS)
        self.golden = bool(settings.get("golden"))
        self.root = str(settings.get("root") or os.getcwd())
        self.copier, self.tally, self.flight = Copier(), Tally(), Flight(folder)
        self.transfers = Transfers(self.tally.moved)
        self.transfers.watch()
        self.verdicts = Verdicts(folder, keeps_values=bool(settings.get("ledger")))
        self.nodeid: str | None = None
        self.began = time.time()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self._concerns_card(args, kwargs):
            return func(*args, **kwargs)
        key = kernel_of_code(func)
        if key is not None:
            with self:
                return func._op_dk(key, *args, **kwargs)
        if not has_own_kernel(func):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        self.transfers.is_ours = True
        try:
            return self._shadowed(func, args, kwargs)
        finally:
            self.transfers.is_ours = False

    def _concerns_card(self, args: Any, kwargs: Any) -> bool:
        for value in (*args, kwargs.get("device")):
            if isinstance(value, torch.device) and value.type not in {"cpu", "meta"}:
                return True
        return any(is_device(t) for t in tensors_in(args)) or any(is_device(t) for t in tensors_in(kwargs))

    def _shadowed(self, func: Any, args: Any, kwargs: Any) -> Any:
        site, name = site_of(self.root), name_of(func)
        entry = self.tally.entry(name, site)
        entry.saw(args, kwargs)
        why_not = self._why_not(func, (args, kwargs))
        host, call = None, None
        if why_not is None:
            host = self.copier.copies((args, kwargs))
            number, call, is_new = self.tally.number(name, host, (args, kwargs))
            place = {"op": name, "site": site, "nodeid": self.nodeid}
            self.flight.begin(number, call if is_new else None, place)
        self.transfers.watch()
        counted, self.transfers.is_ours = self.transfers.counted, False
        result, fell_back, error = run_on_card(func, args, kwargs)
        self.transfers.is_ours = True
        entry.count(fell_back)
        if fell_back:
            self.tally.fell_back(name, site, call)
        if self.transfers.counted == counted:
            self._count_transfer(func, args, result)
        if error is not None:
            entry.raised = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
            if self._judge_error(func, entry, host, (args, kwargs)) and call is not None:
                self._to_ledger(number, call, "refused", None, {**place, "said": entry.raised})
            raise error
        for tensor in tensors_in(result):
            if is_device(tensor):
                self.copier.saw(tensor)
        if why_not is not None:
            entry.unchecked(why_not)
        elif call is not None:
            verdict, said = self._check(func, entry, host, (args, kwargs), result)
            if verdict:
                self._to_ledger(number, call, verdict, result, {**place, "said": said})
            if func.overloadpacket.__name__ not in TRANSFERS:
                self.tally.remember(call)
        return result

    def _to_ledger(self, number: int, call: Any, verdict: str, result: Any, place: Any) -> None:
        out = [{"shape": list(t.shape), "dtype": str(t.dtype).removeprefix("torch.")} for t in tensors_in(result)]
        self.verdicts.judged(number, call, verdict, out, place)

    def _why_not(self, func: Any, given: Any) -> str | None:
        """Why this call isn't run again; None: it is."""
        name = func.overloadpacket.__name__
        if self.only and not is_named(func, self.only):
            return "not asked for"
        if is_named(func, self.skip):
            return "skipped as asked"
        if name in FRESH:
            return "its contents are undefined"
        if name in READS:
            return "a read of one value"
        if is_random(func, *given):
            return "random"
        if is_view(func):
            return "a view"
        sizes = [t.numel() for t in tensors_in(given)]
        if sum(sizes) > self.most:
            return f"more than {self.most} elements"
        return None

    def _count_transfer(self, func: Any, args: Any, result: Any) -> None:
        name = func.overloadpacket.__name__
        if name in READS and args and is_device(args[0]):
            self.tally.moved("d2h", args[0])
        if name not in TRANSFERS:
            return
        source, target = (
            (args[1], args[0]) if name == "copy_" else (args[0], args[1] if name.startswith("_copy") else result)
        )
        if isinstance(source, torch.Tensor) and isinstance(target, torch.Tensor) and source.device != target.device:
            self.tally.moved("h2d" if is_device(target) else "d2h", target)

    def _host_run(self, func: Any, entry: Any, host: Any) -> Any:
        """The op on the CPU copies; NotImplemented where it can't be run there."""
        args, kwargs = host
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return host_form(func)(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  the CPU has no kernel for it, or not for these arguments
            first = str(error).splitlines()[0][:120] if str(error) else ""
            missing = (
                isinstance(error, NotImplementedError) or "not implemented for" in first or "Could not run" in first
            )
            entry.unchecked("no CPU kernel" if missing else f"fails on the CPU: {type(error).__name__}: {first}")
            return NotImplemented

    def _judge_error(self, func: Any, entry: Any, host: Any, given: Any) -> bool:
        """The card refused: does the CPU carry it out? Then this op is the suspect."""
        if host is None or self._host_run(func, entry, host) is NotImplemented:
            return False
        entry.refused = True
        self._keep_values(func, entry, (host, given), worst=None, again=None, place=0)
        if self.tally.suspect is None or self.tally.suspect["nodeid"] != self.nodeid:
            self._save(func, entry, (host, given), worst=None, again=None, place=0)
        return True

    def _check(self, func: Any, entry: Any, host: Any, device: Any, result: Any) -> tuple[str | None, str | None]:
        """(verdict, what was seen): right or wrong; None where the CPU could not run it."""
        before = mapped(host, cloned) if func._schema.is_mutable else host  # in-place ops change their CPU copies
        want = self._host_run(func, entry, host)
        if want is NotImplemented:
            return None, None
        pairs = list(zip(tensors_in(result), tensors_in(want), strict=False))
        pairs += written(func, device, host)
        worst: tuple[Difference, torch.Tensor, torch.Tensor, int] | None = None
        for place, (got, expected) in enumerate(pairs):
            there = self.copier.copies(got) if is_device(got) else got
            found = difference(func, there, expected, *before)
            if found is None:
                continue
            entry.add(found)
            if found.is_clear and (worst is None or found.ratio > worst[0].ratio):
                worst = found, there, expected, place
        entry.checked += 1
        if worst is None:
            return "right", None
        entry.off += 1
        self._suspect(func, entry, before, worst, device)
        return "wrong", f"{worst[0].wrong:,} of {worst[0].total:,} elements, up to {worst[0].max_abs:.4g}"

    def _suspect(self, func: Any, entry: Any, before: Any, worst: Any, device: Any) -> None:
        found, got, want, place = worst
        self._keep_values(func, entry, (before, device), worst=(found, got, want), again=None, place=place)
        if self.tally.suspect is not None and (self.tally.suspect["nodeid"] == self.nodeid or self.tally.settled):
            return
        again = repeated(func, device, want, self.copier) if not func._schema.is_mutable else None
        self._save(func, entry, (before, device), worst=(found, got, want), again=again, place=place)

    def _keep_values(self, func: Any, entry: Any, arguments: Any, *, worst: Any, again: str | None, place: int) -> None:
        """The values of a wrong call, for the ledger: a few of each op."""
        folder = self.verdicts.place_for(name_of(func), entry.site)
        if folder is not None:
            self._saved_in(folder, func, entry, arguments, worst=worst, again=again, place=place)

    def _save(self, func: Any, entry: Any, arguments: Any, *, worst: Any, again: str | None, place: int) -> None:
        folder = self.folder / "suspect"
        saved = self._saved_in(folder, func, entry, arguments, worst=worst, again=again, place=place)
        self.tally.suspect = {key: value for key, value in saved.items() if key != "prelude"}
        self.write()

    def _saved_in(
        self, folder: Path, func: Any, entry: Any, arguments: Any, *, worst: Any, again: Any, place: int
    ) -> Any:
        facts: dict[str, Any] = {
            "op": name_of(func), "site": entry.site, "nodeid": self.nodeid, "call_number": entry.calls, "again": again,
            "prelude": self.tally.prelude(), "error": entry.raised, "off": None, "pattern": None,
            "judged": {"output": place if worst and len(func._schema.returns) > 1 else None},
        }  # fmt: skip
        host, given = arguments
        results: dict[str, torch.Tensor] = {}
        if worst is not None:
            found, got, want = worst
            facts["off"] = {
                "wrong": found.wrong,
                "total": found.total,
                "max_abs": str(found.max_abs),
                "ratio": str(found.ratio),
            }
            results = {"actual": got, "expected": want}
            facts["pattern"] = pattern_of(got, want)
            facts["judged"] |= tolerance(func, want)
            if self.golden:
                facts["golden"] = golden_errors(func, host, results)
        return save_suspect(folder, facts, host, given, results)

    def write(self) -> None:
        """The report as it stands."""
        write_json(self.folder / "shadow.json", self.tally.report(seconds=time.time() - self.began))


_SHADOW: Shadow | None = None


def _shadow() -> Shadow:
    global _SHADOW  # noqa: PLW0603  one mode a process
    if _SHADOW is None:
        keep_apart()
        _SHADOW = Shadow(run_folder(), json.loads(os.environ.get("DEBUG_SPYRE_SHADOW") or "{}"))
    return _SHADOW


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: Any) -> Any:
    """Fixtures, the test and its teardown run under the mode."""
    shadow = _shadow()
    shadow.transfers.watch()
    shadow.nodeid = item.nodeid
    with shadow:
        yield


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: Any) -> None:
    """Whether the failure shows under the mode."""
    shadow = _shadow()
    shadow.tally.outcome(report.nodeid, report.when, report.outcome)


def pytest_sessionfinish() -> None:
    """The report on disk."""
    _shadow().write()
    _shadow().flight.end()
    _shadow().verdicts.end()


def main(words: list[str]) -> int:
    """Run a script under the mode; its own exit status."""
    shadow = _shadow()
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    try:
        with shadow:
            runpy.run_path(words[0], run_name="__main__")
        shadow.tally.outcome(words[0], "call", "passed")
    except SystemExit as end:
        shadow.tally.outcome(words[0], "call", "failed" if end.code else "passed")
        raise
    except BaseException:
        shadow.tally.outcome(words[0], "call", "failed")
        raise
    finally:
        shadow.write()
        shadow.flight.end()
        shadow.verdicts.end()
    return 0


if __name__ == "__main__":
    import debug_spyre_shadow  # type: ignore[import-not-found]

    sys.exit(debug_spyre_shadow.main(sys.argv[1:]))
