"""JUnit XML of pytest, xunit1 and xunit2: one case at a time, node ids rebuilt from class, name and file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from debug_spyre.triage.block import Block
from debug_spyre.triage.fallback_warnings import Warned
from debug_spyre.triage.judging import judge
from debug_spyre.triage.lines import clean
from debug_spyre.triage.nodeids import file_of, from_junit
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.triage.shared_setup import with_first_verdict
from debug_spyre.vocabulary.evidence import Counts, Evidence, Failure, Kind, Outcome, TestRecord, Unrecognised

_PHASES = (("failed on setup", "setup"), ("failed on teardown", "teardown"), ("collection failure", "collect"))
_OUTCOME_OF = {Kind.CRASH: Outcome.CRASHED, Kind.TIMEOUT: Outcome.TIMEOUT}


@dataclass(slots=True)
class Junit:
    """Feed it finished `testcase` elements; `evidence` then holds what they say."""

    source: str
    line_of: Callable[[str], int | None]
    rules: Sequence[Rule] = RULES
    failures: list[Failure] = field(default_factory=list)
    records: dict[str, TestRecord] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    warned: Warned = field(default_factory=Warned)

    def case(self, case: Element) -> None:
        """Take in one test case."""
        nodeid = from_junit(case.get("classname") or "", case.get("name") or "", case.get("file"))
        outcome, phases = Outcome.PASSED, []
        for child in case:
            if child.tag in {"failure", "error"}:
                failure = self._failure(nodeid, child, case)
                phases.append(failure.phase)
                self.failures.append(failure)
                word = "failed" if child.tag == "failure" else "errors"
                self.totals[word] = self.totals.get(word, 0) + 1
                default = Outcome.FAILED if child.tag == "failure" else Outcome.ERROR
                outcome = _OUTCOME_OF.get(failure.kind, default)
            elif child.tag == "skipped":
                expected = (child.get("type") or "") == "pytest.xfail"
                outcome = Outcome.XFAILED if expected else Outcome.SKIPPED
                word = "xfailed" if expected else "skipped"
                self.totals[word] = self.totals.get(word, 0) + 1
        only_teardown = phases == ["teardown"]
        before = self.records.get(nodeid)
        if only_teardown and before is not None and before.outcome not in {Outcome.PASSED, Outcome.ERROR}:
            return  # pytest writes a second case where the teardown of a failed test fails too
        if outcome is Outcome.PASSED or only_teardown:  # its call had passed
            self.totals["passed"] = self.totals.get("passed", 0) + 1
        self.records[nodeid] = TestRecord(nodeid, outcome, _seconds(case.get("time")))

    def _failure(self, nodeid: str, child: Element, case: Element) -> Failure:
        message = child.get("message") or ""
        phase = next((name for words, name in _PHASES if message.startswith(words)), None)
        phase = phase or ("call" if child.tag == "failure" else "setup")
        block = Block(title=nodeid, phase=phase, nodeid=nodeid, number=self.line_of(case.get("name") or "") or 0)
        if phase == "collect":
            block.nodeid = file_of(nodeid)
        for line in (child.text or "").split("\n"):
            block.feed(clean(line))
        if not block.errors:
            for line in message.split("\n"):
                block.feed(f"E   {line}")
        block.in_captured = True
        for name in ("system-err", "system-out"):
            for line in (case.findtext(name) or "").split("\n"):
                block.feed(clean(line))
                self.warned.feed(clean(line), nodeid=nodeid)
        return judge(block, source=self.source, rules=self.rules)

    def evidence(self, *, complete: bool, warnings: tuple[str, ...] = ()) -> Evidence:
        """All that the cases say."""
        unknown = tuple(
            Unrecognised(f.source, f.line, (f.message or "no text").split("\n", 1)[0][:200])
            for f in self.failures
            if f.rule is None and f.kind is not Kind.MISMATCH
        )
        return Evidence(
            sources=(self.source,),
            counts=Counts(**self.totals) if self.records or complete else None,
            complete=complete,
            failures=tuple(with_first_verdict(self.failures)),
            fallbacks=self.warned.result(),
            tests=tuple(self.records.values()),
            unrecognised=unknown,
            warnings=(*self.warned.notes, *warnings),
            collected=len(self.records) or None,
        )


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
