"""doctor: is everything in place? Each line ok, warn or fail (status 1) with its remedy. limits: known limitations of torch-spyre; --probe asks the card."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from debug_spyre.host.files import write_atomically
from debug_spyre.host.provenance import provenance
from debug_spyre.runs.io.jobs import foreground_seconds
from debug_spyre.session.io.workspace import find_checkout
from debug_spyre.surface.io.doctor_checks import REBUILD, Check, State, examine, has_text
from debug_spyre.surface.io.limits_probe import ask, kept_answers, load_limits, which_torch_spyre
from debug_spyre.surface.limits import ATTENTION, GENERAL, Limit, Probed, lines_of
from debug_spyre.verbs.verb import Verb, answer, warn
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, Exit, UsageError

MOST_WHOLE = 6


def _arguments_limits(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="only these (default: all)")
    parser.add_argument("--group", choices=(GENERAL, ATTENTION), help="only that group")
    parser.add_argument("--probe", action="store_true", help="ask the card, one small script each, under the lock")
    parser.add_argument(
        "--again", action="store_true", help="with --probe: also what was asked on this torch-spyre before"
    )
    parser.add_argument(
        "--foreground", type=float, metavar="S", help="stop asking after S seconds; the next call goes on"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _run_limits(args: Namespace) -> int:
    checkout = find_checkout()
    limits = _chosen(args.ids, args.group)
    which = which_torch_spyre(checkout)
    known = kept_answers(checkout, which)
    left: list[Limit] = []
    if args.probe:
        wanted = [limit for limit in limits if args.again or limit.id not in known]
        seconds = foreground_seconds(args.foreground)
        deadline = None if seconds is None else time.monotonic() + seconds
        found, left = ask(checkout, wanted, deadline=deadline, said=_say)
        known |= found
    data: dict[str, Any] = {
        "torch_spyre": which,
        "limits": [_json(limit, known.get(limit.id)) for limit in limits],
        "not_asked": [limit.id for limit in left],
    }
    lines = [line for limit in limits for line in lines_of(limit, known.get(limit.id), whole=len(limits) <= MOST_WHOLE)]
    if len(limits) > MOST_WHOLE:
        lines.append(f"as read in sources up to {max(m.seen for m in limits)}; work-arounds: debug-spyre limits ID")
    if left:
        lines.append(f"{len(left)} not asked yet  next: debug-spyre limits --probe")
    answer(lines, data, as_json=args.json)
    return int(Exit.RUNNING if left else Exit.YES)


def _chosen(ids: list[str], group: str | None) -> list[Limit]:
    limits = load_limits()
    unknown = [name for name in ids if name not in {limit.id for limit in limits}]
    if unknown:
        raise UsageError(
            f"no limitation {unknown[0]!r}; there are {', '.join(limit.id for limit in limits)}",
            next="debug-spyre limits",
        )
    return [m for m in limits if (not ids or m.id in ids) and group in {None, m.group}]


def _say(limit: Limit, probed: Probed) -> None:
    warn(f"{limit.id}: {probed.answer.value} ({probed.why[:120]})")


def _json(limit: Limit, probed: Probed | None) -> dict[str, Any]:
    return {
        **asdict(limit),
        "state": limit.state.value,
        "probed": {**asdict(probed), "answer": probed.answer.value} if probed else None,
    }


_LIMITS = {"limits": Verb(_arguments_limits, _run_limits, "debug-spyre limits --probe transpose-contiguous")}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--has", metavar="TEXT", help="is this text (a symbol you just added) in the installed torch-spyre?"
    )
    parser.add_argument("--probe", action="store_true", help="also put one small tensor on the card, under the lock")
    parser.add_argument(
        "--acceptance",
        action="store_true",
        help="check on this card, under the lock, what was only tried on simulations; writes a redacted report",
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, metavar="M", help="of --acceptance: end it after M minutes (10)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _run(args: Namespace) -> int:
    checkout = find_checkout()
    if args.has is not None:
        return _has(checkout, args.has, as_json=args.json)
    if args.acceptance:
        return _acceptance(checkout, args.minutes, as_json=args.json)
    checks, seen = examine(checkout)
    if args.probe:
        from debug_spyre.surface.io.limits_probe import try_card

        checks.append(try_card(checkout))
    failed = sum(c.state is State.FAIL for c in checks)
    warned = sum(c.state is State.WARN for c in checks)
    state = "fail" if failed else "warn" if warned else "ok"
    data: dict[str, Any] = {"state": state, "checks": [c.to_json() for c in checks], "provenance": seen}
    last = f"{len(checks)} lines: {failed} fail, {warned} warn"
    answer([*map(_line, checks), last], data, as_json=args.json)
    return int(Exit.NO if failed else Exit.YES)


def _acceptance(checkout: Path, minutes: float, *, as_json: bool) -> int:
    from debug_spyre.escalation.io.bundle import private_of_this_host
    from debug_spyre.escalation.redaction import Redactor
    from debug_spyre.surface.io.acceptance import DIFFERS, accept, lines_of, report_of

    if minutes <= 0:
        raise UsageError(f"{minutes:g} minutes is no time", next="debug-spyre doctor --acceptance --minutes 10")
    rows, output = accept(checkout, minutes=minutes)
    report = output.with_name("acceptance.json")
    write_atomically(report, Redactor(private_of_this_host()).redact(report_of(rows, provenance(checkout))))
    differs = any(row["answer"] == DIFFERS for row in rows)
    lines = [*lines_of(rows), f"report, redacted, to be sent to who maintains debug-spyre: {report}"]
    answer(lines, {"checks": rows, "report": str(report)}, as_json=as_json)
    return int(Exit.NO if differs else Exit.YES)


def _line(check: Check) -> str:
    head = f"{check.state.value:4s}  {check.name}: {check.text}"
    return f"{head}\n      -> {check.remedy}" if check.remedy and check.state is not State.OK else head


def _has(checkout: Path, text: str, *, as_json: bool) -> int:
    seen = provenance(checkout)["torch_spyre"]
    if not seen["path"]:
        raise EnvironmentTroubleError("torch-spyre is not installed in the target's environment", next="uv sync")
    places = has_text(Path(seen["path"]), text)
    local = str(seen["url"] or "").removeprefix("file://") or "PATH/TO/torch-spyre"
    remedies = [] if places else ["uv cache clean torch-spyre", REBUILD.format(source=local)]
    if places:
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        lines = [f"yes: {text!r} is in {', '.join(places[:3])}{more} of {seen['path']}"]
        if seen["state"] == "local":
            lines.append("a plain uv run would take this build away: uv run --no-sync (debug-spyre does)")
    else:
        lines = [
            f"no: {text!r} is nowhere in {seen['path']}: the install did not land",
            *(f"  next: {r}" for r in remedies),
        ]
        lines.append("  a build takes about 50 s: batch the edits")
    answer(lines, {"has": bool(places), "places": places, "torch_spyre": seen, "remedies": remedies}, as_json=as_json)
    return int(Exit.YES if places else Exit.NO)


VERBS = {**_LIMITS, "doctor": Verb(_arguments, _run, "debug-spyre doctor --has lower_flip")}
