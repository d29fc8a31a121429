"""One JUnit file as Evidence: streamed, so that its size does not matter; damaged ends are told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from debug_spyre.triage.io.sources import PIECE, raw_lines
from debug_spyre.triage.junit import Junit
from debug_spyre.triage.rule import Rule
from debug_spyre.vocabulary.errors import BadInputError
from debug_spyre.vocabulary.evidence import Evidence

_CASE_NAME = re.compile(rb'<testcase\b[^>]{0,4000}?\bname="([^"]{0,4000})"')


def read_junit(path: Path, name: str, rules: Sequence[Rule]) -> Evidence:
    """All that the file's cases say, as far as it can be read."""
    reader = Junit(name, _Lines(path), rules)
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


class _Lines:
    """Line numbers of test cases by name, found once when first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, int] | None = None

    def __call__(self, name: str) -> int | None:
        if self.found is None:
            self.found = {}
            for number, (raw, _) in enumerate(raw_lines(self.path), start=1):
                if b"<testcase" not in raw:
                    continue
                for match in _CASE_NAME.finditer(raw):
                    text = match[1].decode("utf-8", "replace")
                    for mark, plain in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
                        text = text.replace(mark, plain)
                    self.found.setdefault(text, number)
        return self.found.get(name)
