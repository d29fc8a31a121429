"""Any legal sequence of events folds, gives a valid page, and gives it twice."""

import os
import re
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debug_spyre.page.io import page
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import load_session

FACTOR = float(os.environ.get("DEBUG_SPYRE_FUZZ") or 1)
words = st.text(max_size=40) | st.sampled_from(
    [
        "</script>",
        "<!--",
        "H1 r1 F1 `x`",
        "\x1b[31mred",
        "a\u202eb",
        "]]>",
        "{{ 1 }}",
        "HF_TOKEN=abcdefgh",
        "tests/t.py::f[a-b]",
        "x" * 3000,
        "\ud800",
    ]
)
ids = st.builds("tests/{}.py::{}[{}]".format, st.sampled_from("ab"), st.sampled_from("fg"), words) | words.filter(bool)
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32)
small = st.dictionaries(
    words, words | st.integers() | st.booleans() | st.none() | st.lists(words, max_size=2), max_size=3
)


class Journal:
    """Draws legal events one after the other."""

    def __init__(self, draw, told, story):
        self.draw, self.told, self.story = draw, told, story
        self.rows, self.open_rows, self.running, self.runs, self.members = 0, [], [], [], []

    def open(self):
        self.members = self.draw(st.lists(ids, max_size=6, unique=True))
        made = tuple(
            {
                "nodeid": n,
                "predicate": self.draw(
                    st.sampled_from(
                        [{"kind": "fails"}, {"kind": "falls-back", "op": "aten.mm"}, {"kind": "slower", "seconds": 2.0}]
                    )
                ),
            }
            for n in self.members
        )
        self.story.opened(
            self.told,
            members=made,
            probe=self.draw(st.none() | st.sampled_from(self.members)) if self.members else None,
            symptom=self.draw(words),
            cluster=self.draw(
                st.none()
                | st.fixed_dictionaries(
                    {
                        "signature": words,
                        "why": words,
                        "separators": st.lists(st.fixed_dictionaries({"text": words}), max_size=2),
                    }
                )
            ),
            checkout=self.draw(words),
            local_time=self.draw(
                st.sampled_from(["", "2026-07-30 14:12:05 +0200", "2026-07-30 14:12:05 -0930", "nonsense"])
            ),
        )

    def step(self):
        kinds = [
            "run",
            "start",
            "add",
            "summary",
            "finding",
            "next",
            "experiment",
            "artifact",
            "report",
            "validate",
            "revert",
            "override",
            "approve",
            "link",
            "unknown",
            "member",
            "close",
            "reopen",
        ]
        kinds += ["progress", "finish"] * bool(self.running) + ["begin", "conclude", "drop"] * bool(self.open_rows)
        getattr(self, self.draw(st.sampled_from(kinds)))()

    def run(self):
        outcome = st.sampled_from(list(self.story.Outcome))
        tests = self.draw(st.lists(st.tuples(ids, outcome), max_size=6))
        failing = [
            self.story.mismatch(n, self.draw(st.integers(0, 9)), 9, self.draw(st.floats(min_value=0, width=32)), 0.1)
            for n, o in tests
            if o is self.story.Outcome.FAILED
        ]
        fell = (
            [self.story.Fallback(self.draw(words), self.draw(st.none() | words), 3, tuple(n for n, _ in tests))]
            if self.draw(st.booleans())
            else []
        )
        name = self.draw(st.sampled_from([None, "baseline", "full-matrix", "post-fix", "post-fix-matrix", "own-name"]))
        evidence = self.story.evidence(tests, failing, fell)
        self.runs.append(
            self.told.run(
                name,
                self.draw(st.lists(words, max_size=4)),
                evidence=evidence,
                output=self.draw(words),
                hypothesis=self.draw(st.none() | st.integers(1, 9)),
                members_only=self.draw(st.booleans()),
                env=self.draw(st.dictionaries(words, words, max_size=2)),
                provenance=self.draw(small),
                tree_digest=self.draw(st.none() | words),
            )
        )

    def start(self):
        self.running.append(self.told.start(self.draw(st.sampled_from([None, "post-fix", "verbose"])), ["pytest"]))

    def progress(self):
        self.told.add(
            ev.RunProgressed(
                run=self.draw(st.sampled_from(self.running)),
                done=self.draw(st.integers(0, 70)),
                failed=self.draw(st.integers(0, 5)),
                collected=self.draw(st.none() | st.integers(0, 60)),
                current=self.draw(st.none() | ids),
            )
        )

    def finish(self):
        status = st.sampled_from(
            [
                "passed",
                "failed",
                "error",
                "timeout",
                "stalled",
                "busy",
                "orphans",
                "invalid",
                "interrupted",
                "killed",
                "lost",
            ]
        )
        self.told.finish(
            self.running.pop(),
            status=self.draw(status),
            valid=self.draw(st.booleans()),
            warnings=(self.draw(words),),
            digest=(self.draw(words),),
        )

    def add(self):
        self.rows += 1
        self.open_rows.append(self.rows)
        self.told.add(
            ev.HypothesisAdded(
                number=self.rows,
                text=self.draw(words),
                test=self.draw(words),
                cost_seconds=self.draw(numbers),
                confidence=self.draw(st.sampled_from(["high", "medium", "low"])),
                reason=self.draw(st.none() | words),
            )
        )

    def begin(self):
        self.told.add(ev.HypothesisStarted(number=self.draw(st.sampled_from(self.open_rows)), command=self.draw(words)))

    def conclude(self):
        verdict = st.sampled_from(["confirmed", "ruled-out", "inconclusive"])
        runs = tuple(self.draw(st.lists(st.sampled_from(self.runs), max_size=2))) if self.runs else ()
        self.told.add(
            ev.HypothesisConcluded(
                number=self.open_rows.pop(),
                verdict=self.draw(verdict),
                sentence=self.draw(words),
                excerpt=(self.draw(words),),
                runs=runs,
            )
        )

    def drop(self):
        self.told.add(ev.HypothesisDropped(number=self.open_rows.pop(), reason=self.draw(words)))

    def summary(self):
        self.told.add(ev.SummaryNoted(text=self.draw(words)))

    def finding(self):
        self.told.add(ev.FindingNoted(text=self.draw(words), reference=self.draw(st.none() | words)))

    def next(self):
        self.told.add(ev.NextNoted(text=self.draw(words)))

    def experiment(self):
        self.told.add(
            ev.ExperimentNoted(
                text=self.draw(words),
                command=self.draw(st.none() | words),
                output=self.draw(st.none() | words),
                tail=(self.draw(words),),
                conclusion=self.draw(st.none() | words),
                hypothesis=self.draw(st.none() | st.integers(1, 9)),
            )
        )

    def artifact(self):
        self.told.add(
            ev.ArtifactSaved(path=self.draw(words), sha256=self.draw(words), size=self.draw(st.integers(0, 10**12)))
        )

    def report(self):
        self.told.add(
            ev.ReportMade(
                verb=self.draw(words),
                lines=(self.draw(words),),
                report=self.draw(st.none() | words),
                data=self.draw(small),
            )
        )

    def validate(self):
        gate = {
            "gate": self.draw(st.sampled_from(["open", "shut", "unknown"])),
            "reasons": [
                {
                    "code": self.draw(words),
                    "text": self.draw(words),
                    "nodeids": [self.draw(ids)],
                    "next": self.draw(words),
                }
            ],
        }
        rows = tuple(
            {"nodeid": n, "pre": self.draw(words), "post": self.draw(words), "note": self.draw(words)}
            for n in self.members
        )
        self.told.add(ev.ValidationRecorded(rows=rows, matrix=self.draw(st.none() | small), gate=gate))

    def revert(self):
        self.told.add(ev.TreeReverted(patch=self.draw(st.none() | words), files=(self.draw(words),), digest="d"))

    def override(self):
        self.told.add(ev.GateOverridden(code=self.draw(words), reason=self.draw(words)))

    def approve(self):
        self.told.add(ev.PatchApproved(reason=self.draw(words)))

    def link(self):
        self.told.add(ev.SessionLinked(stem=self.draw(words), relation=self.draw(words)))

    def unknown(self):
        with self.told.folder.journal.path.open("a") as stream:
            self.told.seq += 1
            stream.write(f'{{"v":7,"seq":{self.told.seq},"at":"{self.told.stamp()}","by":"x","kind":"later"}}\n')

    def member(self):
        if self.members and self.draw(st.booleans()):
            self.told.add(
                ev.MemberRemoved(
                    nodeid=self.members.pop(), reason=self.draw(words), moved_to=self.draw(st.none() | words)
                )
            )
        else:
            name = self.draw(ids)
            self.members = [m for m in self.members if m != name] + [name]
            self.told.add(ev.MemberAdded(nodeid=name, predicate={"kind": "fails"}, reason=self.draw(words)))

    def close(self):
        self.told.add(
            ev.SessionClosed(
                status=self.draw(st.sampled_from(["resolved", "blocked"])),
                cause=self.draw(st.none() | words),
                next_action=self.draw(st.none() | words),
                escalated=self.draw(st.none() | words),
            )
        )

    def reopen(self):
        self.told.add(ev.SessionReopened(reason=self.draw(words)))


@settings(max_examples=int(40 * FACTOR), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_property_any_legal_journal_gives_a_valid_page_twice(story, strict, data):
    with tempfile.TemporaryDirectory() as scratch:
        told = story.Story(Path(scratch))
        journal = Journal(data.draw, told, story)
        journal.open()
        for _ in range(data.draw(st.integers(0, 14))):
            journal.step()
        session = load_session(told.folder)
        assert session.last_seq == told.seq
        page.render(told.folder)
        first, twin = told.folder.html.read_bytes(), told.folder.markdown.read_bytes()
        found = strict.check(first.decode("utf-8"))
        assert strict.sections(found) == strict.SECTIONS
        assert re.findall(r"^## (\d)\.", twin.decode(), flags=re.M) == list("1234567")
        assert b"abcdefgh" not in first or b"HF_TOKEN=abcdefgh" not in first
        page.render(told.folder)
        assert told.folder.html.read_bytes() == first and told.folder.markdown.read_bytes() == twin
        page.render_index(told.folder.path.parent)
        strict.check((told.folder.path.parent / "index.html").read_text(encoding="utf-8"))
