"""Reads logs that anybody made and the runs of our own: recognises the form, streams it, returns Evidence.

A file is read once, in pieces; bytes that are not UTF-8 survive as surrogate escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from debug_spyre.triage.assemble import evidence_of
from debug_spyre.triage.ffdc import Report, as_evidence, joined, parse
from debug_spyre.triage.junit import Junit
from debug_spyre.triage.lines import LONGEST, clean
from debug_spyre.triage.merging import merge
from debug_spyre.triage.results import Results
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.triage.terminal import Terminal
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Evidence, Kind

PIECE = 1 << 20
_CASE_NAME = re.compile(rb'<testcase\b[^>]{0,4000}?\bname="([^"]{0,4000})"')


def read_logs(paths: Sequence[Path], *, checkout: Path | None, rules: Sequence[Rule] = RULES) -> Evidence:
    """The evidence of one or several logs, in any form that triage knows.

    Raises:
        BadInputError: a file can't be read, or it is of no known form.
    """
    found = [_read_one(path, rules) for path in paths]
    return _accept(merge(found), checkout)


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


def _read_one(path: Path, rules: Sequence[Rule]) -> Evidence:
    try:
        with path.open("rb") as stream:
            head = stream.read(4096)
    except OSError as error:
        raise BadInputError(
            f"cannot read {path}: {error.strerror or error}",
            next="debug-spyre triage --from FILE, with a file that exists",
        ) from error
    form = _form(head)
    if form == "xml":
        return _read_junit(path, rules)
    if form == "report":
        return _read_report(path)
    if form == "results":
        return _read_results(path, rules).evidence()
    return _read_text(path, rules)


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
        if (isinstance(data, dict) and "e" in data) or (data is None and first.startswith((b'{"e":', b'{"e" :'))):
            return "results"
        if first.strip() == b"{" and re.search(rb'"(?:metadata|failure|collector)"\s*:\s*\{', head):
            return "report"
        if isinstance(data, dict) and isinstance(data.get("failure"), dict):
            return "report"
    return "text"


def _read_report(path: Path) -> Evidence:
    try:
        report = parse(json.loads(path.read_text(encoding="utf-8", errors="surrogateescape")), str(path))
    except (OSError, ValueError) as error:
        raise BadInputError(f"cannot read {path}: {error}", next="check the file and repeat") from error
    if report is None:
        raise BadInputError(f"{path} is JSON, but no report of a failure", next="debug-spyre triage --from FILE")
    return as_evidence(report)


def _read_text(path: Path, rules: Sequence[Rule]) -> Evidence:
    terminal = Terminal()
    for number, line, whole in numbered_lines(path):
        if whole:
            terminal.feed(number, line)
        else:
            terminal.torn(number, line)
    return evidence_of(terminal, source=str(path), rules=rules)


def numbered_lines(path: Path) -> Iterator[tuple[int, str, bool]]:
    """(number, cleaned line, whether its end is there); a carriage return inside parts a line but not its number.

    Raises:
        BadInputError: the file can't be read.
    """
    for number, (raw, whole) in enumerate(_raw_lines(path), start=1):
        text = raw.decode("utf-8", "surrogateescape")
        if "\r" in text:
            parts = text.rstrip("\r").split("\r")
            for part in parts[:-1]:
                if part:
                    yield number, clean(part), True
            text = parts[-1]
        yield number, clean(text), whole


def _raw_lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    rest = b""
    try:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE):
                lines = (rest + piece).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    yield (line, True)
                if len(rest) > 4 * LONGEST:
                    rest = rest[: 2 * LONGEST] + rest[-2 * LONGEST :]
    except OSError as error:
        raise BadInputError(
            f"cannot read {path}: {error.strerror or error}", next="check the file and repeat"
        ) from error
    if rest:
        yield (rest, False)


def _read_junit(path: Path, rules: Sequence[Rule]) -> Evidence:
    reader = Junit(str(path), _line_finder(path), rules)
    complete, warnings = True, []
    parser: ET.XMLPullParser[Any] = ET.XMLPullParser(events=("start", "end"))
    suites: list[ET.Element] = []
    try:
        with path.open("rb") as stream:
            while piece := stream.read(PIECE):
                parser.feed(piece)
                _take_cases(parser, reader, suites)
        parser.close()
        _take_cases(parser, reader, suites)
    except ET.ParseError as error:
        complete = False
        warnings.append(f"the XML ends early or is damaged: {error}")
        try:
            _take_cases(parser, reader, suites)
        except ET.ParseError:
            pass
    except OSError as error:
        raise BadInputError(
            f"cannot read {path}: {error.strerror or error}", next="check the file and repeat"
        ) from error
    return reader.evidence(complete=complete, warnings=tuple(warnings))


def _take_cases(parser: ET.XMLPullParser[Any], reader: Junit, suites: list[ET.Element]) -> None:
    found: Any = parser.read_events()
    for event, element in found:
        if not isinstance(element, ET.Element):
            continue
        if event == "start" and element.tag == "testsuite":
            suites.append(element)
        elif event == "end" and element.tag == "testcase":
            reader.case(element)
            element.clear()
            for suite in suites[-1:]:
                suite.clear()


def _line_finder(path: Path) -> _Lines:
    return _Lines(path)


class _Lines:
    """Line numbers of test cases by name, found once when first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, int] | None = None

    def __call__(self, name: str) -> int | None:
        if self.found is None:
            self.found = {}
            for number, (raw, _) in enumerate(_raw_lines(self.path), start=1):
                if b"<testcase" not in raw:
                    continue
                for match in _CASE_NAME.finditer(raw):
                    text = match[1].decode("utf-8", "replace")
                    for mark, plain in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
                        text = text.replace(mark, plain)
                    self.found.setdefault(text, number)
        return self.found.get(name)


def _read_results(path: Path, rules: Sequence[Rule]) -> Results:
    reader = Results(str(path), rules)
    for number, (raw, _) in enumerate(_raw_lines(path), start=1):
        try:
            data = json.loads(raw)
        except ValueError:
            continue
        if isinstance(data, dict):
            reader.feed(data, number)
    return reader
