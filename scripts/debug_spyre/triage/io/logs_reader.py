"""Reads logs that anybody made and the runs of our own: recognises the form, streams it, returns Evidence.

No evidence is never green: what holds no test outcome is refused, with what it looks like.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from debug_spyre.triage.assemble import evidence_of, merge, without_copies
from debug_spyre.triage.carriers import looks_like
from debug_spyre.triage.ffdc import Report, as_evidence, joined, parse
from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.accepted_fallbacks import parameter_names
from debug_spyre.triage.io.junit_file import read_junit
from debug_spyre.triage.io.sources import Source, numbered_lines, opened, raw_lines
from debug_spyre.triage.junit import from_json_report, from_reportlog, is_json_report, is_reportlog
from debug_spyre.triage.lines import MOST_STREAMS
from debug_spyre.triage.results import Results
from debug_spyre.triage.rule import Rule, RuleFormatError, parse_rules
from debug_spyre.triage.rules import RULES
from debug_spyre.triage.terminal import Terminal
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Counts, Evidence, Kind, Triage


def all_rules(path: Path | None) -> tuple[Rule, ...]:
    """The user's rules, then ours.

    Raises:
        BadInputError: the file can't be read, is no TOML, or a rule in it is not right.
    """
    if path is None:
        return RULES
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return (*parse_rules(data), *RULES)
    except OSError as error:
        raise BadInputError(
            f"cannot read {path}: {error.strerror or error}", next="triage --rules FILE.toml"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RuleFormatError) as error:
        raise BadInputError(
            f"{path} holds no rules that can be used: {error}",
            next='a rule: [[rule]] id = "x" stage = "runtime" pattern = "text"',
        ) from error


_WHOLE = 1 << 28  # bytes of one JSON object that is read as a whole


def read_logs(paths: Sequence[Path], *, checkout: Path | None, rules: Sequence[Rule] = RULES) -> Evidence:
    """The evidence of one or several logs, in any form that triage knows.

    Raises:
        BadInputError: a file can't be read, or it is of no known form.
    """
    with opened(paths) as sources:
        found = [(source, *_read_one(source, rules)) for source in sources]
        told = [(evidence, form != "text") for _, form, evidence in found if holds_outcome(evidence)]
        if not told:
            raise _no_outcome(sources)
        silent = tuple(
            f"{source.name} holds no test outcome: it looks like {_looks(source)}"
            for source, _, evidence in found
            if not holds_outcome(evidence) and not source.is_part
        )
    whole = merge(without_copies(told))
    return _accept(replace(whole, warnings=(*whole.warnings, *silent)), checkout)


def holds_outcome(evidence: Evidence) -> bool:
    """At least one test ran to an outcome, or failed to; or an op is named that falls back."""
    seen = evidence.counts or evidence.seen
    return bool(evidence.failures or evidence.fallbacks) or (seen is not None and seen != Counts())


def _no_outcome(sources: Sequence[Source]) -> BadInputError:
    first = sources[0] if sources else None
    if first is None:
        return BadInputError("the folder or archive holds no log", next="debug-spyre triage --from FILE")
    more = f" and {len(sources) - 1} more hold" if len(sources) > 1 else " holds"
    return BadInputError(
        f"{first.name}{more} no test outcome: it looks like {_looks(first)}",
        details=tuple(f"  {s.name}: {_looks(s)}" for s in sources[1:12]),
        next="debug-spyre triage --from FILE, with what pytest or unittest printed, or a JUnit file",
    )


def _looks(source: Source) -> str:
    with source.path.open("rb") as stream:
        head = stream.read(65_536)
    lines = [line for _, _, line, _ in islice(numbered_lines(source.path), 5000)]
    if any("test session starts" in line for line in lines):
        return "a pytest session that ran no test, or ended before its first outcome"
    return looks_like(head, [line for line in lines if line.strip()])


def read_run(
    results: Path | None,
    output: Path,
    *,
    checkout: Path | None,
    reports: Sequence[Report] = (),
    rules: Sequence[Rule] = RULES,
) -> Evidence:
    """The evidence of a run of ours: its results file first, its output for what no results file can say.

    `reports` are the first-failure reports of the run's processes (`reports_of`).

    Raises:
        BadInputError: neither can be read.
    """
    if results is None or not results.is_file() or results.stat().st_size == 0:
        return _accept(_read_text(output, rules), checkout)
    reader = _read_results(results, rules)
    text = _read_text(output, rules) if output.is_file() else None
    evidence = reader.evidence()
    if text is None:
        return _accept(evidence, checkout)
    open_test = reader.left_open()
    ending = next((f for f in text.failures if f.kind in {Kind.CRASH, Kind.TIMEOUT}), None)
    session = next((f for f in text.failures if f.nodeid is None), None)
    if open_test is not None and ending is not None:
        evidence = reader.evidence(replace(ending, nodeid=open_test))
    elif not reader.finished and not evidence.failures and session is not None:
        evidence = reader.evidence(session)
    sources = (str(results), str(output))
    warnings = (*evidence.warnings, *(w for w in text.warnings if "log ends" not in w and "sessions" not in w))
    known = {(f.op, f.file, f.line) for f in evidence.fallbacks}
    fallbacks = (*evidence.fallbacks, *(f for f in text.fallbacks if _not_yet(f.op, f.line, known)))
    whole = replace(evidence, sources=sources, warnings=warnings, fallbacks=fallbacks, signal=text.signal)
    return _accept(joined(whole, reports), checkout)


def _not_yet(op: str, line: int | None, known: set[tuple[str, str | None, int | None]]) -> bool:
    return not any(op == other and line == number for other, _, number in known)


def _accept(evidence: Evidence, checkout: Path | None) -> Evidence:
    if checkout is None or not evidence.fallbacks:
        return evidence
    from debug_spyre.triage.io.accepted_fallbacks import mark_accepted

    return mark_accepted(evidence, checkout)


def _read_one(source: Source, rules: Sequence[Rule]) -> tuple[str, Evidence]:
    """(its form, what it shows)."""
    with source.path.open("rb") as stream:
        head = stream.read(4096)
    form = "json-report" if _is_json_report(source.path, head) else _form(head)
    if form == "xml":
        return form, read_junit(source.path, source.name, rules)
    if form == "report":
        return form, _read_report(source)
    if form == "reportlog":
        objects = (x for data in _objects(source.path) for x in from_reportlog(data))
        return form, _read_reports(source, rules, objects)
    if form == "json-report":
        whole = json.loads(source.path.read_text(encoding="utf-8"))
        return form, _read_reports(source, rules, from_json_report(whole))
    if form == "results":
        return form, _read_results(source.path, rules, source.name).evidence()
    return form, _read_text(source.path, rules, source.name)


def _form(head: bytes) -> str:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:5] == b"<?xml" or re.match(rb"<testsuites?\b", text):
        return "xml"
    first = text.split(b"\n", 1)[0]
    if first[:1] == b"{":
        try:
            data = json.loads(first)
        except ValueError:
            data = None
        if is_reportlog(data):
            return "reportlog"
        if (isinstance(data, dict) and "e" in data) or (data is None and first.startswith((b'{"e":', b'{"e" :'))):
            return "results"
        if first.strip() == b"{" and re.search(rb'"(?:metadata|failure|collector)"\s*:\s*\{', head):
            return "report"
        if isinstance(data, dict) and isinstance(data.get("failure"), dict):
            return "report"
    return "text"


def _is_json_report(path: Path, head: bytes) -> bool:
    if head.lstrip()[:1] != b"{" or b'"exitcode"' not in head or path.stat().st_size > _WHOLE:
        return False
    try:
        return is_json_report(json.loads(path.read_text(encoding="utf-8")))
    except ValueError:
        return False


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    for raw, _ in raw_lines(path):
        try:
            data = json.loads(raw)
        except ValueError:
            continue
        if isinstance(data, dict):
            yield data


def _read_reports(source: Source, rules: Sequence[Rule], objects: Iterable[dict[str, Any]]) -> Evidence:
    reader = Results(source.name, rules)
    for number, data in enumerate(objects, start=1):
        reader.feed(data, number)
    return reader.evidence()


def _read_report(source: Source) -> Evidence:
    try:
        report = parse(json.loads(source.path.read_text(encoding="utf-8", errors="surrogateescape")), source.name)
    except (OSError, ValueError) as error:
        raise BadInputError(f"cannot read {source.name}: {error}", next="check the file and repeat") from error
    if report is None:
        raise BadInputError(f"{source.name} is JSON, but no report of a failure", next="debug-spyre triage --from FILE")
    return as_evidence(report)


def _read_text(path: Path, rules: Sequence[Rule], name: str | None = None) -> Evidence:
    terminals: dict[str, Terminal] = {}
    for number, stream, line, whole in numbered_lines(path):
        terminal = terminals.get(stream)
        if terminal is None:
            terminal = terminals[stream if len(terminals) < MOST_STREAMS else ""] = Terminal(stream)
        if whole:
            terminal.feed(number, line)
        else:
            terminal.torn(number, line)
    return evidence_of(list(terminals.values()) or [Terminal()], source=name or str(path), rules=rules)


def _read_results(path: Path, rules: Sequence[Rule], name: str | None = None) -> Results:
    reader = Results(name or str(path), rules)
    for number, (raw, _) in enumerate(raw_lines(path), start=1):
        try:
            data = json.loads(raw)
        except ValueError:
            continue
        if isinstance(data, dict):
            reader.feed(data, number)
    return reader


def triage_logs(paths: Sequence[Path], *, checkout: Path | None, rules: Sequence[Rule] = RULES) -> Triage:
    """Read the logs and group what fails in them.

    Raises:
        BadInputError: a file can't be read, or it is of no known form.
    """
    return grouped(read_logs(paths, checkout=checkout, rules=rules), checkout)


def grouped(evidence: Evidence, checkout: Path | None) -> Triage:
    """The clusters of a run's or log's failures, with the parameter names that the checkout's tests give."""
    names = parameter_names((f.nodeid for f in evidence.failures), checkout)
    return Triage(evidence, group(evidence, names=names))
