"""limits: known limitations of torch-spyre and of attention on it; --probe asks the card which it really has."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any

from debug_spyre.runs.io.jobs import foreground_seconds
from debug_spyre.session.io.workspace import find_checkout
from debug_spyre.surface.io.limits_probe import ask, kept_answers, load_limits, which_torch_spyre
from debug_spyre.surface.limits import ATTENTION, GENERAL, Limit, Probed, lines_of
from debug_spyre.verbs.answer import answer, warn
from debug_spyre.verbs.verb import Verb
from debug_spyre.vocabulary.errors import Exit, UsageError

MOST_WHOLE = 6


def _arguments(parser: ArgumentParser) -> None:
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


def _run(args: Namespace) -> int:
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


VERBS = {"limits": Verb(_arguments, _run, "debug-spyre limits --probe transpose-contiguous")}
