"""Which node id a failure belongs to: its heading's, and those of later tests for which pytest repeats a fixture's error.

A name is only completed where the text says how; otherwise it stays as printed, with the tag `name-only`.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import replace

from debug_spyre.triage.block import Block, Frame
from debug_spyre.triage.nodeids import candidates, domain, file_of, from_domain, function_of, split_nodeid
from debug_spyre.triage.session_text import Session, SummaryLine
from debug_spyre.vocabulary.evidence import Failure, Outcome


def with_first_verdict(failures: Iterable[Failure]) -> list[Failure]:
    """The failures in order, repetitions of a set-up error judged as its first."""
    first: dict[tuple[object, ...], Failure] = {}
    found = []
    for failure in failures:
        key = (failure.source, failure.error_class, failure.message, failure.innermost_frame)
        if failure.phase == "setup" and failure.innermost_frame:
            judged = first.setdefault(key, failure)
            if (
                judged is not failure
                and judged.rule != failure.rule
                and (failure.cause or "") in (failure.message or "")
            ):
                failure = _as(failure, judged)
        found.append(failure)
    return found


def _as(failure: Failure, judged: Failure) -> Failure:
    tags = tuple(dict.fromkeys((*failure.tags, *judged.tags)))
    return replace(
        failure,
        stage=judged.stage,
        tags=tags,
        reason=judged.reason,
        rule=judged.rule,
        key=judged.key,
        cause=judged.cause,
    )


FAILED_WORDS = frozenset({"FAILED", "SUBFAILED", "SUBFAIL"})
_CRASHED = re.compile(r"worker '(\w+)' crashed while running '(.+)'$")
_BAD = frozenset({Outcome.FAILED, Outcome.ERROR})


def name_summary(session: Session) -> None:
    """Give every FAILED and ERROR line of the summary its node id."""
    titles = {block.title for block in session.blocks}
    known = session.progress.outcomes
    for line in session.summary:
        readings = candidates(line.text)
        chosen = next((r for r in readings if domain(r) in titles or r in titles), None)
        chosen = chosen or next((r for r in readings if r in known), None)
        line.nodeid = chosen or (readings[0] if readings else line.text)
    if session.counts is None and _is_cut_off(session):
        session.summary.pop()


def _is_cut_off(session: Session) -> bool:
    """The text ends within the last line's name: it is the beginning of another one."""
    last = session.summary[-1] if session.summary else None
    if last is None or last.nodeid != last.text:
        return False
    known = (*session.progress.outcomes, *(line.nodeid or "" for line in session.summary[:-1]))
    return any(name != last.text and name.startswith(last.text) for name in known)


def name_blocks(session: Session) -> None:
    """Give every failure text its node id where that can be known."""
    name_summary(session)
    waiting: dict[tuple[bool, str], deque[SummaryLine]] = defaultdict(deque)
    for line in session.summary:
        if line.word in FAILED_WORDS or line.word == "ERROR":
            nodeid = line.nodeid or ""
            waiting[(line.word != "ERROR", domain(nodeid) if "::" in nodeid else nodeid)].append(line)
    by_domain = _progress_names(session)
    for block in session.blocks:
        if block.nodeid is not None or block.is_headless:
            continue
        crashed = next((m for text in block.plain if (m := _CRASHED.match(text))), None)
        if crashed:
            block.nodeid = crashed[2]
            _take(waiting, block.phase == "call", domain(crashed[2]))
            continue
        block.nodeid = _from_summary(waiting, block) or _from_progress(by_domain, block) or _from_frames(block, session)
    _name_headless(session)


def _name_headless(session: Session) -> None:
    """A text without its heading stands where the summary has its line: between those of its neighbours."""
    places = {line.nodeid: place for place, line in enumerate(session.summary)}
    taken = {block.nodeid for block in session.blocks}
    for number, block in enumerate(session.blocks):
        if not block.is_headless or not block.errors:
            continue
        frame = next((f for f in block.frames if _is_test_file(f.path) and (f.function or "").startswith("test")), None)
        path = as_printed(frame.path, session) if frame else None
        free = [
            (place, line.nodeid)
            for place, line in enumerate(session.summary)
            if line.word in FAILED_WORDS | {"ERROR"}
            and line.nodeid not in taken
            and (frame is None or function_of(line.nodeid or "") == frame.function)
        ]
        after = places.get(session.blocks[number + 1].nodeid) if number + 1 < len(session.blocks) else None
        before = places.get(session.blocks[number - 1].nodeid) if number else None
        near = [nodeid for place, nodeid in free if after == place + 1 or before == place - 1]
        block.nodeid = near[0] if near else free[0][1] if len(free) == 1 else None
        named = sum(line.word in FAILED_WORDS or line.word == "ERROR" for line in session.summary)
        counted = session.counts.failed + session.counts.errors if session.counts else named + 1
        if block.nodeid is None and path and frame and not free and named < counted:
            block.nodeid = f"{path}::{frame.function}"
        taken.add(block.nodeid)


def _from_summary(waiting: dict[tuple[bool, str], deque[SummaryLine]], block: Block) -> str | None:
    for name in dict.fromkeys((block.title, without_subtest(block.title))):
        line = _take(waiting, block.phase == "call", name)
        if line is not None:
            if not block.errors and (message := line.message):
                block.feed(f"E   {message}")  # its own text was cut off before the error
            return line.nodeid
    return None


def without_subtest(title: str) -> str:
    """The test's own name: pytest puts a subtest's message and values behind it."""
    split = split_nodeid(f"a.py::{title}")
    return split[0][6:] if split and split[1][:2] in {" [", " (", " <"} else title


def _take(waiting: dict[tuple[bool, str], deque[SummaryLine]], is_call: bool, name: str) -> SummaryLine | None:
    queue = waiting.get((is_call, name))
    return queue.popleft() if queue else None


def _progress_names(session: Session) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for nodeid, outcome in session.progress.outcomes.items():
        if outcome in _BAD:
            found[domain(nodeid)].append(nodeid)
    return found


def _from_progress(by_domain: dict[str, list[str]], block: Block) -> str | None:
    names = by_domain.get(block.title) or by_domain.get(without_subtest(block.title)) or []
    return names[0] if len(set(names)) == 1 else None


def _from_frames(block: Block, session: Session) -> str | None:
    if block.phase == "collect":
        return block.title
    title = without_subtest(block.title)
    if "::" in title.partition("[")[0]:
        return title
    base = title.partition("[")[0].rsplit(".", 1)[-1]
    frame = next((f for f in block.frames if (f.function or "").split(".")[-1] == base), None)
    if frame is None and block.phase == "call" and block.frames and _is_test_file(block.frames[0].path):
        frame = block.frames[0]
    path = as_printed(frame.path, session) if frame else None
    return from_domain(path, title) if path else None


def as_printed(path: str, session: Session) -> str | None:
    """A frame's path as node ids have it: relative to the root folder; None where that is not known."""
    if not path.startswith("/") and path[1:3] != ":/":
        return path
    root = (session.rootdir or "").replace("\\", "/")
    if root and path.startswith(root + "/"):
        return path[len(root) + 1 :]
    files = dict.fromkeys([*session.progress.files[-50:], *(file_of(n) for n in list(session.progress.outcomes)[-50:])])
    return next((f for f in files if path.endswith("/" + f)), None)


def _is_test_file(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name.startswith("test_") or name.endswith("_test.py")


def from_dump(frames: list[Frame], session: Session) -> str | None:
    """The test function that a stack dump shows, named by the path that pytest printed."""
    environment = next((f.path.split("/.venv/", 1)[0] + "/" for f in frames if "/.venv/" in f.path), None)
    for frame in frames:
        if not (frame.function or "").startswith("test") or not _is_test_file(frame.path):
            continue
        path = as_printed(frame.path, session)
        if path is None and environment and frame.path.startswith(environment):
            path = frame.path[len(environment) :]
        return f"{path or frame.path}::{frame.function}"
    return None
