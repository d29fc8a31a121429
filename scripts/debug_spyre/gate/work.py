"""Is the fix a work-around? What the members do on the card and on the CPU, counted before the fix and after it.

CPU ops or transfers that the fix adds shut the gate until a person approves the patch; fewer device ops are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from debug_spyre.gate.before_after import BeforeAfter, Measure
from debug_spyre.gate.close_request import OPEN, SHUT, UNKNOWN, VALIDATE, CloseRequest, Condition
from debug_spyre.tree.changes import Changes
from debug_spyre.vocabulary.evidence import Kind, Work

CODE = "work-on-the-card"
SHOWN = 3
_STOPS = {Kind.EXCEPTION, Kind.COMPILE, Kind.CRASH, Kind.TIMEOUT}


def no_added_cpu_work(m: BeforeAfter, claim: CloseRequest, changes: Changes | None) -> Condition:
    """The members do nothing more on the CPU, and move nothing more, than before the fix; or a person approved the patch."""
    if claim.approved or (m.session.approval is not None and m.session.approval.digest == m.patched):
        return Condition(CODE, OPEN, "a person approved the patch, whatever it does on the CPU")
    if m.patched is not None and m.patched == m.start:
        return Condition(CODE, OPEN, "no file differs from the start")
    if m.patched is None or m.work_after is None:
        return Condition(CODE, UNKNOWN, "what the members do on the card was not counted with the fix", next=VALIDATE)
    members = {x.nodeid for x in m.session.members}
    uncounted = tuple(sorted(members - _by_test(m.work_after).keys()))
    if uncounted:
        text = f"{m.work_after.run.id} did not count what {len(uncounted)} of {len(members)} members do"
        return Condition(CODE, UNKNOWN, text, uncounted, "debug-spyre validate --again")
    if m.work_before is None:
        text = "what the members do on the card was not counted without the fix"
        return Condition(CODE, UNKNOWN, text, next="debug-spyre revert, then debug-spyre close resolved")
    added = list(_added(m.work_before, m.work_after, changes, members))
    lost = _lost(m.work_before, m.work_after)
    if added:
        ids = tuple(dict.fromkeys(nodeid for nodeid, _ in added))
        what = "; ".join(dict.fromkeys(text for _, text in added[:SHOWN]))
        text = f"a work-around: {len(ids)} members do more on the CPU than before the fix: {what}{lost}"
        following = "a person decides: debug-spyre close resolved --patch-approved REASON"
        return Condition(CODE, SHUT, text, ids, following)
    runs = f"{m.work_before.run.id}/{m.work_after.run.id}"
    return Condition(CODE, OPEN, f"no CPU op and no transfer more than before the fix in {runs}{lost}")


def _added(before: Measure, after: Measure, changes: Changes | None, members: set[str]) -> Iterator[tuple[str, str]]:
    was, now = _by_test(before), _by_test(after)
    touched = set(changes.files) if changes is not None else set()
    for nodeid in sorted(members & now.keys()):
        stopped = _stopped(before, nodeid) or nodeid not in was
        for name, words in (("moved", "transfers"), ("cpu", "CPU ops")):
            old, new = _counts(was.get(nodeid), name), _counts(now[nodeid], name)
            for what in sorted(new.keys() - {k for k in new if new[k] <= old[k]}):
                site = next(site for found, site, _ in getattr(now[nodeid], name) if found == what)
                # a test that broke off never reached the rest of its way: there only the patch's own files tell
                if not stopped or site.rpartition(":")[0] in touched:
                    yield nodeid, f"{new[what] - old[what]} {words} more ({what} at {site})"


def _by_test(measure: Measure) -> dict[str, Work]:
    assert measure.sight is not None
    return {work.nodeid: work for work in measure.sight.evidence.work}


def _counts(work: Work | None, name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for what, _, times in getattr(work, name) if work is not None else ():
        found[what] += times
    return found


def _stopped(measure: Measure, nodeid: str) -> bool:
    assert measure.sight is not None
    failure = measure.sight.of(nodeid).failure
    return failure is not None and failure.kind in _STOPS


def _lost(before: Measure, after: Measure) -> str:
    totals = [sum(sum(work.device.values()) for work in _by_test(m).values()) for m in (before, after)]
    return f"; {totals[1]} device ops, {totals[0]} before" if totals[1] < totals[0] else ""
