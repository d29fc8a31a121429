"""Sessions written line by line with times of our own: a realistic one, a hostile one, a huge one."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import Folder
from debug_spyre.vocabulary.evidence import (
    Counts,
    Evidence,
    Failure,
    Fallback,
    Kind,
    Outcome,
    Severity,
    Stage,
    TestRecord,
    evidence_to_json,
)

FUNCTION = "tests/test_rms_norm.py::test_rmsnorm_matches_reference"
HIDDEN = (64, 80, 96, 112, 128, 129, 256, 512)
STEM = "debug-20260730-141205-rmsnorm-wide-hidden-mismatch"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}{%x%}\x1b[31mred\x1b]0;t\x07\u202eevil\u2028&amp;\x00"


class Story:
    """A session's folder that grows event by event."""

    def __init__(self, logs: Path, stem=STEM, start="2026-07-30T12:12:05.000Z", by="agent"):
        self.folder = Folder(logs / stem)
        self.folder.path.mkdir(parents=True)
        self.now = datetime.fromisoformat(start)
        self.seq = 0
        self.by = by
        self.runs = 0

    def stamp(self):
        return self.now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def add(self, event, after=1.0):
        self.now += timedelta(seconds=after)
        self.seq += 1
        kind = type(event)
        values = {name: getattr(event, name) for name in kind.__slots__ + ev.Event.__slots__ if hasattr(event, name)}
        values |= {"seq": self.seq, "at": self.stamp(), "by": event.by or self.by}
        with self.folder.journal.path.open("a", encoding="utf-8") as stream:
            stream.write(ev.to_line(kind(**values)) + "\n")

    def run(self, name, argv, *, evidence=None, output="", seconds=20.0, status=None, exit=None, **more):
        """A whole run: started, output and evidence written, finished."""
        run = self.start(name, argv, output=output, **more)
        return self.finish(run, name, evidence=evidence, seconds=seconds, status=status, exit=exit)

    def start(self, name, argv, *, output="", after=2.0, verb="run", **more):
        self.runs += 1
        run = f"r{self.runs}"
        path = f"{name or run}.txt"
        number = 2
        while (self.folder.path / path).exists():
            path = f"{name}-{number}.txt"
            number += 1
        (self.folder.path / path).write_bytes(output.encode("utf-8", "replace"))
        more.setdefault("pytest_args", tuple(argv))
        self.add(
            ev.RunStarted(
                run=run, verb=verb, name=name, argv=tuple(argv), output=path, cwd="/home/dev/spyre-inference", **more
            ),
            after,
        )
        return run

    def finish(self, run, name=None, *, evidence=None, seconds=20.0, status=None, exit=None, digest=(), **more):
        path = None
        counts, failing = None, 0
        if evidence is not None:
            path = f"runs/{run}/evidence.json"
            (self.folder.path / "runs" / run).mkdir(parents=True, exist_ok=True)
            (self.folder.path / path).write_text(json.dumps(evidence_to_json(evidence)), encoding="utf-8")
            counts = {k: getattr(evidence.counts, k) for k in Counts.__slots__} if evidence.counts else None
            failing = len(evidence.failures)
            digest = digest or tuple(_digest(evidence))
        status = status or ("failed" if failing else "passed")
        self.add(
            ev.RunFinished(
                run=run,
                status=status,
                valid=more.pop("valid", True),
                seconds=seconds,
                exit=exit if exit is not None else int(failing > 0),
                scope={
                    "digest": f"{len(evidence.tests):x}" if evidence else "0",
                    "collected": len(evidence.tests) if evidence else None,
                },
                counts=counts,
                failing=failing,
                digest=digest,
                evidence=path,
                **more,
            ),
            seconds,
        )
        return run


def _digest(evidence):
    for failure in evidence.failures[:3]:
        if failure.mismatched:
            yield (
                f"mismatch {failure.mismatched} / {failure.total} ({100 * failure.mismatched / failure.total:.1f} %), "
                f"max abs {failure.max_abs:g}, max rel {failure.max_rel:g}"
            )
        else:
            yield f"{failure.error_class}: {failure.message}"
    for fallback in evidence.fallbacks[:3]:
        yield f"fallback {fallback.op} at {fallback.file}:{fallback.line}, {len(fallback.nodeids)} tests"


def mismatch(nodeid, mismatched, total, max_abs, max_rel, **more):
    return Failure(
        nodeid=nodeid,
        phase="call",
        kind=Kind.MISMATCH,
        stage=Stage.NUMERICS,
        severity=Severity.STRUCTURAL if max_abs > 1 else Severity.ACCUMULATION,
        reason="the bad elements are one block, from column 128 to the end"
        if max_abs > 1
        else "few elements, small differences",
        error_class="AssertionError",
        message="Tensor-likes are not close!",
        mismatched=mismatched,
        total=total,
        max_abs=max_abs,
        max_rel=max_rel,
        innermost_frame="tests/test_rms_norm.py:58",
        backend_frame="spyre_inference/custom_ops/rms_norm.py:61",
        pattern="block on axis 1: columns 128..255, 1.414 x the reference" if max_abs > 1 else None,
        **more,
    )


def evidence(tests, failures=(), fallbacks=(), complete=True):
    outcomes = [o for _, o in tests]
    counts = Counts(
        passed=outcomes.count(Outcome.PASSED),
        failed=outcomes.count(Outcome.FAILED),
        errors=outcomes.count(Outcome.ERROR),
        skipped=outcomes.count(Outcome.SKIPPED),
        xfailed=outcomes.count(Outcome.XFAILED),
    )
    return Evidence(
        sources=("results.jsonl",),
        counts=counts,
        complete=complete,
        failures=tuple(failures),
        fallbacks=tuple(fallbacks),
        tests=tuple(TestRecord(n, o, 0.5) for n, o in tests),
        collected=len(tests),
        selected=tuple(n for n, _ in tests),
    )


def rms_ids():
    return [
        f"{FUNCTION}[hidden({h})-tokens({t})-residual({r})-device_spyre]"
        for h in HIDDEN
        for t in (1, 64)
        for r in (False, True)
    ]


def matrix_ids():
    linear = [
        f"tests/test_linear.py::test_linear_matches_reference[in({i})-out({o})-device_spyre]"
        for i in (64, 128, 256, 512, 1024)
        for o in (64, 4096)
    ]
    rotary = [
        f"tests/test_rotary_embedding.py::test_rotary_matches_reference[head({h})-neox({n})]"
        for h in (64, 80, 96, 128, 256)
        for n in (True, False)
    ]
    silu = [
        f"tests/test_silu_and_mul.py::test_silu_and_mul_matches_reference[d({d})-tokens({t})]"
        for d in (64, 128, 256, 512)
        for t in (1, 64)
    ]
    return [*linear, *rms_ids(), *rotary, *silu]


def members():
    return [i for i in rms_ids() if any(f"hidden({h})" in i for h in (129, 256, 512))]


PROBE = f"{FUNCTION}[hidden(256)-tokens(1)-residual(False)-device_spyre]"
_FIGURES = {"129": (1, 129, 10.6, 14.9), "256": (126, 256, 1.415, 0.541), "512": (380, 512, 3.101, 1.002)}
FALLBACKS = (
    ("aten.arange.start_step", "tests/test_rms_norm.py", 44, "tests/conftest.py:31"),
    ("conversion from torch.int64 to torch.float16", "spyre_inference/custom_ops/utils.py", 58, None),
)
PROVENANCE = {
    "torch_spyre": {"revision": "f8d4f43b91", "build": "local", "pinned": "f8d4f43b91", "drift": False},
    "torch": "2.13.0",
    "vllm": "0.27.1",
    "python": "3.12.1",
    "git": {"head": "a1b2c3d9e0", "dirty": 1},
    "platform": "Linux s390x",
}


def failing(nodeid, scale=1.0):
    wide = nodeid.split("hidden(")[1].split(")")[0]
    bad, total, max_abs, max_rel = _FIGURES[wide]
    tokens = 64 if "tokens(64)" in nodeid else 1
    return mismatch(nodeid, bad * tokens, total * tokens, round(max_abs * scale, 4), round(max_rel * scale, 4))


def fallbacks(ids):
    return [Fallback(op, file, line, tuple(ids), accepted) for op, file, line, accepted in FALLBACKS]


def picture():
    """A map of 32 x 64 with a bad block from the middle on."""
    values = [[0 if c < 32 else min(1 + (c * 7 + r * 5) % 5, 5) for c in range(64)] for r in range(32)]
    return {
        "rows": 32,
        "cols": 64,
        "values": values,
        "caption": "|device / reference| by token and column; the block starts at column 128.",
    }


def opened(story, **more):
    values = {
        "stem": story.folder.stem,
        "slug": "rmsnorm-wide-hidden-mismatch",
        "symptom": "RMSNorm on the card is wrong from column 128 on as soon as hidden > 128; columns 0 to 127 match the reference.",
        "members": tuple({"nodeid": n, "predicate": {"kind": "fails"}} for n in members()),
        "checkout": "/home/dev/spyre-inference",
        "probe": PROBE,
        "cluster": {
            "id": "c1",
            "kind": "mismatch",
            "stage": "numerics",
            "severity": "structural",
            "reason": "about half of the elements, differences above 1",
            "signature": "v1|mismatch|numerics|structural|tests/test_rms_norm.py:58",
            "why": "All raise the same mismatch at `tests/test_rms_norm.py:58`, with the same set of fallbacks, and differ only in shape-like parameters.",
            "separators": [
                {
                    "parameter": "hidden",
                    "failing": ["129", "256", "512"],
                    "passing": ["64", "80", "96", "112", "128"],
                    "text": "All 12 failing have hidden >= 129; 0 of 20 passing do.",
                }
            ],
        },
        "matrix": ("tests",),
        "tree": {"digest": "3be91f0c2a"},
        "backend": "f8d4f43b",
        "local_time": "2026-07-30 14:12:05 +0200",
    }
    story.add(ev.SessionOpened(**(values | more)), 0)


def realistic(logs, *, ending="investigating", start="2026-07-30T12:12:05.000Z"):
    """The session of the README's picture. `ending`: investigating (a run in flight), resolved or blocked."""
    story = Story(logs, start=start)
    ids, bad = matrix_ids(), members()
    opened(story)
    tree, fixed = "3be91f0c2a", "7d0e4c1b55"
    base = {"tree_digest": tree, "backend": "f8d4f43b", "provenance": PROVENANCE}
    pytest = ["uv", "run", "--no-sync", "pytest", "-m", "not upstream"]
    before = evidence(
        [(i, Outcome.FAILED if i in bad else Outcome.PASSED) for i in ids], [failing(i) for i in bad], fallbacks(bad)
    )
    story.run(
        "full-matrix", [*pytest, "--tb=short", "tests"], evidence=before, seconds=87.2, output=_output(12, 48), **base
    )
    alone = evidence([(i, Outcome.FAILED) for i in bad], [failing(i, 1.036) for i in bad], fallbacks(bad))
    story.run(
        "baseline",
        [*pytest, "--tb=short", *bad],
        evidence=alone,
        seconds=38.0,
        members_only=True,
        output=_output(12, 0),
        **base,
    )
    probe = evidence([(PROBE, Outcome.FAILED)], [failing(PROBE, 1.148)], fallbacks([PROBE]))
    story.run("baseline", [*pytest, "--tb=long", PROBE], evidence=probe, seconds=25.1, output=_output(1, 0), **base)
    (story.folder.path / "runs/r3/comparisons.json").write_text(
        json.dumps([{"nodeid": PROBE, "name": "actual against expected", "picture": picture()}])
    )
    rows = [
        (
            "fp16 accumulation order in x.pow(2).mean()",
            "debug-spyre compare runs/r2/actual.safetensors runs/r2/expected.safetensors",
            "probe",
            2,
            "low",
            "the mismatch is wide, not noise",
        ),
        (
            "`aten.mean.dim` runs on the CPU for this overload",
            "debug-spyre op aten.mean.dim aten.pow.Tensor_Scalar aten.rsqrt.default",
            "probe",
            1,
            "medium",
            "a fallback could hide behind an accepted one",
        ),
        (
            "The kernel compiled for hidden(129) is reused",
            f"debug-spyre run --as cache-empty --hypothesis 3 '{PROBE}'",
            "probe",
            60,
            "medium",
            None,
        ),
        (
            "The mean divides by the padded width on cores other than 0",
            "debug-spyre exec --as partial-sums -- python partial_sums.py",
            "probe",
            60,
            "medium",
            "the factor is 1.414 for 256 and 2.0 for 512",
        ),
        (
            "Cross-core reduction leaves the total on core 0 only; others use their own partial sum",
            "debug-spyre exec --as partial-sums -- python partial_sums.py",
            "probe",
            60,
            "high",
            "columns 0 to 127 are right",
        ),
        (
            "Workaround: square, then sum in blocks of 128 columns",
            "debug-spyre validate",
            "code-change",
            180,
            "high",
            None,
        ),
        (
            "Regression of H6: hidden(80) and hidden(112) drift over the tolerance",
            "debug-spyre run --as regression --hypothesis 7 tests",
            "full-run",
            180,
            "high",
            "2 tests that passed in r1",
        ),
    ]
    for number, (text, test, kind, cost, confidence, reason) in enumerate(rows[:6], start=1):
        story.add(
            ev.HypothesisAdded(
                number=number,
                text=text,
                test=test,
                test_class=kind,
                cost_seconds=cost,
                confidence=confidence,
                reason=reason,
                origin="seed" if number < 4 else "user",
            ),
            4,
        )
    _concluded(
        story,
        1,
        "compare",
        rows[0][1].split(),
        "ruled-out",
        "No noise: columns 0 to 127 agree within 2 ulp, the block from 128 on is off by one factor.",
        seconds=1.9,
        output=COMPARE,
    )
    _concluded(
        story,
        2,
        "op",
        rows[1][1].split(),
        "ruled-out",
        "All three run on the card in both modes.",
        seconds=0.4,
        output="aten.mean.dim  eager kernel torch_spyre/ops/eager.py:92  compiled lowering torch_spyre/_inductor/lowering.py:664\n",
    )
    _concluded(
        story,
        3,
        "cache-empty",
        [*pytest, "--tb=short", PROBE],
        "inconclusive",
        "Fails alike with an empty cache, yet the cache on the device could not be emptied.",
        seconds=68.4,
        output=_output(1, 0),
        ev_=probe,
        env={"TORCHINDUCTOR_CACHE_DIR": "cache-empty", "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwx"},
    )
    run = _concluded(
        story,
        4,
        "partial-sums",
        ["python", "partial_sums.py"],
        "ruled-out",
        "One wrong divisor would give the same factor for every token; it differs by token.",
        seconds=96.0,
        output=PARTIAL,
    )
    story.add(ev.HypothesisStarted(number=5, command=rows[4][1]), 2)
    story.add(
        ev.HypothesisConcluded(
            number=5,
            verdict="confirmed",
            sentence="Predicts each factor to 0.0002 at hidden 256 and 0.0001 at 512.",
            excerpt=tuple(PARTIAL.splitlines()[:6]),
            runs=(run,),
        ),
        12,
    )
    story.add(
        ev.SummaryNoted(
            text="Bug: for hidden > 128 the output is too large in every column from 128 on. A factor, not noise.\n\nBest theory: each core but the first divides its own partial sum by the full length (H5).\n\nRuled out: accumulation order (H1), `aten.mean.dim` on the CPU (H2), one wrong divisor (H4)."
        ),
        20,
    )
    story.add(
        ev.FindingNoted(
            text="After `aten.mean.dim` over more than 2 sticks only core 0 holds the total. Each other core divides its own partial sum by the full length (H5, r7).",
            reference="torch_spyre/_inductor/lowering.py:664",
        ),
        9,
    )
    (story.folder.path / "partial_sums.py").write_text("print('partial sums')\n")
    story.add(
        ev.ArtifactSaved(
            path="partial_sums.py",
            sha256="7710ab2e" * 8,
            size=2048,
            note="predictions of H4 and H5 against the card",
            run=run,
        ),
        2,
    )
    story.add(
        ev.ReportMade(
            verb="shadow",
            lines=(
                "first op that differs: aten.mean.dim at spyre_inference/custom_ops/rms_norm.py:61",
                "mismatch 126 / 256, max abs 1.41; 3 ops before it agree",
            ),
            report="runs/r5/shadow.json",
            run=run,
            data={"first": "aten.mean.dim", "ops": 4},
        ),
        40,
    )
    story.add(ev.HypothesisStarted(number=6, command="debug-spyre validate"), 60)
    after = {"tree_digest": fixed, "backend": "f8d4f43b", "provenance": PROVENANCE}
    story.run(
        None,
        [*pytest, PROBE],
        evidence=evidence([(PROBE, Outcome.PASSED)]),
        seconds=22.0,
        output="1 passed in 22.04s\n",
        **after,
    )
    fixed_fallback = Fallback(
        "spyre.reshape_via_cpu", "spyre_inference/custom_ops/rms_norm.py", 63, tuple(i for i in bad if "129" in i), None
    )
    good = evidence([(i, Outcome.PASSED) for i in bad], (), [*fallbacks(bad), fixed_fallback])
    story.run(
        "post-fix",
        [*pytest, "--tb=short", *bad],
        evidence=good,
        seconds=84.0,
        verb="validate",
        hypothesis=6,
        members_only=True,
        output="12 passed, 16 warnings in 82.30s (0:01:22)\n",
        **after,
    )
    new = [
        i for i in ids if "hidden(80)-tokens(64)-residual(True)" in i or "hidden(112)-tokens(64)-residual(True)" in i
    ]
    if ending == "investigating":
        live = story.start(
            "post-fix-matrix",
            [*pytest, "--tb=short", "tests"],
            verb="validate",
            hypothesis=6,
            output="tests/test_linear.py ..........                    [ 16%]\ntests/test_rms_norm.py .......F.......F...........\n",
            **after,
        )
        story.add(ev.RunProgressed(run=live, done=37, failed=2, collected=60, current=members()[7]), 90)
        return story
    broken = set() if ending == "resolved" else set(new)
    final = evidence(
        [(i, Outcome.FAILED if i in broken else Outcome.PASSED) for i in ids],
        [mismatch(i, 3, 5120, 0.0371, 0.09) for i in ids if i in broken],
        fallbacks(bad),
    )
    story.run(
        "post-fix-matrix",
        [*pytest, "--tb=short", "tests"],
        evidence=final,
        seconds=130.0,
        verb="validate",
        hypothesis=6,
        output=_output(len(broken), 60 - len(broken)),
        **after,
    )
    table = tuple(
        {
            "nodeid": i,
            "pre": "failed",
            "post": "passed",
            "note": "new fallback: spyre.reshape_via_cpu" if "129" in i else "",
        }
        for i in bad
    )
    reasons = (
        []
        if ending == "resolved"
        else [
            {
                "code": "no-regression",
                "text": "2 tests passed in r1 and fail in r10",
                "nodeids": new,
                "next": "debug-spyre hypothesis list",
            },
            {
                "code": "tree-at-start",
                "text": "1 file differs from the start and the patch is not approved",
                "nodeids": [],
                "next": "debug-spyre revert",
            },
        ]
    )
    story.add(
        ev.ValidationRecorded(
            rows=table,
            matrix={"before": 12, "after": len(broken), "new": new if broken else []},
            gate={"gate": "shut" if reasons else "open", "reasons": reasons},
            runs=("r9", "r10"),
        ),
        2,
    )
    if ending == "shut":
        return story
    story.add(
        ev.HypothesisConcluded(
            number=6,
            verdict="confirmed",
            sentence="All 12 members pass; the matrix shows no new failure."
            if ending == "resolved"
            else "All 12 members pass, yet 2 others fail now.",
            runs=("r9", "r10"),
        ),
        5,
    )
    (story.folder.path / "fix.patch").write_text(PATCH)
    story.add(ev.TreeReverted(patch="fix.patch", files=("spyre_inference/custom_ops/rms_norm.py",), digest=tree), 8)
    if ending == "resolved":
        story.add(
            ev.GateOverridden(
                code="no-new-fallback", reason="hidden(129) does not occur in a model that we serve", by="lena"
            ),
            8,
        )
        story.add(
            ev.SessionClosed(
                status="resolved",
                cause="The mean's cross-core reduction leaves the total on core 0 only.",
                wasted="H3: the device's cache can't be emptied from here, so it could not answer.",
                signal="A block of bad columns that starts on a stick, with a factor that differs by token.",
                workaround=True,
            ),
            30,
        )
    else:
        story.add(
            ev.SessionClosed(
                status="blocked",
                next_action="Ship the workaround (11 % slower), or hold until `aten.mean.dim` is fixed in torch-spyre?",
            ),
            30,
        )
    return story


def _concluded(story, number, name, argv, verdict, sentence, *, seconds, output, ev_=None, env=None):
    story.add(ev.HypothesisStarted(number=number, command=" ".join(argv)), 3)
    run = story.run(
        name,
        argv,
        evidence=ev_,
        verb="run" if ev_ else "exec",
        hypothesis=number,
        seconds=seconds,
        output=output,
        env=env or {},
        tree_digest="3be91f0c2a",
        **({} if ev_ else {"pytest_args": None}),
    )
    story.add(
        ev.HypothesisConcluded(
            number=number, verdict=verdict, sentence=sentence, excerpt=tuple(output.splitlines()[-4:]), runs=(run,)
        ),
        6,
    )
    return run


def _output(failed, passed):
    lines = ["============ test session starts ============", f"collected {failed + passed} items"]
    lines += ["tests/test_rms_norm.py:44: FallbackWarning: torch.ops.aten.arange.start_step is falling back to cpu"]
    if failed:
        lines += [
            "E   AssertionError: Tensor-likes are not close!",
            "E   Mismatched elements: 126 / 256 (49.2%)",
            "E   Greatest absolute difference: 1.4150390625 at index (0, 149) (up to 0.01 allowed)",
        ]
    tail = f"{failed} failed, {passed} passed" if failed else f"{passed} passed"
    return "\n".join([*lines, f"======= {tail}, 2 warnings in 86.10s (0:01:26) ======="]) + "\n"


COMPARE = """verdict  structural (the pattern outweighs the ratio)
shape    (64, 256) float16   mismatched 8042 / 16384 (49.1 %)   max abs 1.634 at (30, 171)
pattern  block  axis 1: 128..255, sticks 2-3 of 4, 64 of 64 rows, chance < 1e-9
pattern  scale  axis 1: 128..255 = reference x 1.414
clean    axis 1: 0..127, max 1.7 ulp
"""
PARTIAL = """hidden  block      device/reference by token     largest residual
                   median    min     max         H4       H5
   129  128..128   18.667  4.047 456.980    23.4810   0.0659
   256  128..255    1.414  1.282   1.572     0.1122   0.0002
   512  128..255    1.996  1.799   2.355     0.1796   0.0001
   512  256..383    1.994  1.831   2.175     0.0910   0.0001
hidden 129: |device| = 11.36 = sqrt(129) for 64 of 64 tokens
"""
PATCH = """--- a/spyre_inference/custom_ops/rms_norm.py
+++ b/spyre_inference/custom_ops/rms_norm.py
@@ -58,3 +58,8 @@
-        variance = x.pow(2).mean(dim=-1, keepdim=True)
+        width = x.shape[-1]
+        square = x * x
+        total = sum(square[..., s : s + 128].sum(-1, keepdim=True) for s in range(0, width, 128))
+        variance = total * (1.0 / width)
"""


def hostile(logs):
    """Every text that can come from outside is an attack."""
    story = Story(logs, stem="debug-20260730-141205-hostile", by=HOSTILE)
    bad = f"tests/test_x.py::test_x[{HOSTILE}]"
    other = "tests/te st's.py::Class::test_\u05d0\u05d1[\"<b>\"-'x']"
    opened(
        story,
        symptom=HOSTILE,
        members=tuple({"nodeid": n, "predicate": {"kind": "falls-back", "op": HOSTILE}} for n in (bad, other)),
        probe=bad,
        checkout=f"/tmp/{HOSTILE}",
        cluster={
            "why": HOSTILE,
            "signature": HOSTILE,
            "separators": [{"text": HOSTILE}],
            "kind": HOSTILE,
            "hidden": [HOSTILE],
            "folded": [HOSTILE],
        },
        linked_from="../../etc/passwd",
        source=HOSTILE,
    )
    seen = evidence(
        [(bad, Outcome.FAILED), (other, Outcome.PASSED)],
        [
            Failure(
                nodeid=bad,
                phase="call",
                kind=Kind.EXCEPTION,
                error_class=HOSTILE,
                message=HOSTILE,
                innermost_frame=HOSTILE,
                backend_frame=HOSTILE,
                reason=HOSTILE,
                pattern=HOSTILE,
            )
        ],
        [Fallback(HOSTILE, HOSTILE, 3, (bad,), HOSTILE)],
    )
    text = HOSTILE + "\nHF_TOKEN=hf_secretsecretsecret1\n" + "x" * 1_000_000 + "\n" + HOSTILE
    for name, only in (
        ("baseline", True),
        ("baseline", False),
        ("full-matrix", False),
        ("post-fix", True),
        ("post-fix-matrix", False),
    ):
        story.run(
            name,
            ["pytest", HOSTILE, bad],
            evidence=seen,
            output=text,
            members_only=only,
            env={"HF_TOKEN": "bare-secret-value", "X": HOSTILE},
            provenance={HOSTILE: HOSTILE, "torch_spyre": {"revision": HOSTILE}},
            tree_digest=HOSTILE,
        )
    (story.folder.path / "runs/r1/comparisons.json").write_text(
        json.dumps([{"nodeid": HOSTILE, "name": HOSTILE, "picture": picture() | {"caption": HOSTILE, "x": HOSTILE}}])
    )
    run = story.start("evil", ["sh", "-c", HOSTILE], output="bare-secret-value\n" + HOSTILE)
    story.finish(run, digest=(HOSTILE,), warnings=(HOSTILE,), holders=(HOSTILE,))
    story.add(
        ev.HypothesisAdded(
            number=1, text=HOSTILE, test=HOSTILE, test_class=HOSTILE, confidence=HOSTILE, reason=HOSTILE, origin=HOSTILE
        )
    )
    story.add(ev.HypothesisStarted(number=1, command=HOSTILE))
    story.add(
        ev.HypothesisConcluded(
            number=1, verdict="ruled-out", sentence=HOSTILE, excerpt=(HOSTILE,), runs=(HOSTILE, "r1")
        )
    )
    story.add(ev.SummaryNoted(text=HOSTILE))
    story.add(ev.FindingNoted(text=HOSTILE, reference=HOSTILE, expect_change=HOSTILE))
    story.add(ev.NextNoted(text=HOSTILE))
    story.add(
        ev.ExperimentNoted(
            text=HOSTILE, command=HOSTILE, output=f"../{HOSTILE}", tail=(HOSTILE,), conclusion=HOSTILE, hypothesis=7
        )
    )
    story.add(ev.ArtifactSaved(path=f"javascript:alert(1)//{HOSTILE}", sha256=HOSTILE, size=1, note=HOSTILE))
    story.add(ev.ArtifactSaved(path="../../escape", sha256="0", size=1))
    story.add(ev.MemberRemoved(nodeid=f"{other}2", reason=HOSTILE, moved_to=HOSTILE))
    story.add(
        ev.ReportMade(
            verb=HOSTILE,
            lines=(HOSTILE,),
            report=HOSTILE,
            data={HOSTILE: HOSTILE, "picture": picture() | {"caption": HOSTILE}},
        )
    )
    story.add(
        ev.ValidationRecorded(
            rows=({"nodeid": bad, "pre": HOSTILE, "post": HOSTILE, "note": HOSTILE},),
            matrix={HOSTILE: HOSTILE},
            gate={"gate": HOSTILE, "reasons": [{"code": HOSTILE, "text": HOSTILE, "nodeids": [bad], "next": HOSTILE}]},
        )
    )
    story.add(ev.TreeReverted(patch=f"p{1}.patch", files=(HOSTILE,), digest=HOSTILE))
    story.add(ev.PatchApproved(reason=HOSTILE))
    story.add(ev.GateOverridden(code=HOSTILE, reason=HOSTILE))
    story.add(ev.SessionLinked(stem=HOSTILE, relation=HOSTILE))
    with story.folder.journal.path.open("a") as stream:
        stream.write('{"v":9,"seq":99,"at":"2026-07-30T13:00:00Z","by":"x","kind":"from the future"}\n{"torn')
    return story


def huge(logs, *, experiments=1000, tests=10_000, count=400):
    """The budget's session: 1,000 experiments, a matrix of 10,000, 400 members with ids of 150 to 185 characters."""
    story = Story(logs, stem="debug-20260730-141205-huge")
    tail = (
        "block_size(16)-num_heads(32,8)-head_size(128)-alibi(False)-soft_cap(None)-sliding(None)-dtype(torch.float16)"
    )
    ids = [
        f"tests/plugin/attention/test_spyre_attention_{n // 1000}.py::test_decode_matches_reference_{n % 7}[q(1)-kv({n})-{tail}]"
        for n in range(tests)
    ]
    chosen = ids[:count]
    opened(
        story,
        slug="huge",
        members=tuple({"nodeid": n, "predicate": {"kind": "fails"}} for n in chosen),
        probe=chosen[0],
    )
    bad = set(chosen)
    before = evidence(
        [(i, Outcome.FAILED if i in bad else Outcome.PASSED) for i in ids],
        [mismatch(i, 100 + n, 4096, 1.5 + n / 100, 0.4) for n, i in enumerate(chosen)],
        fallbacks(chosen),
    )
    story.run("full-matrix", ["pytest", "tests"], evidence=before, output=_output(count, tests - count))
    story.run(
        "baseline",
        ["pytest", *chosen],
        evidence=evidence([(i, Outcome.FAILED) for i in chosen], [mismatch(i, 90, 4096, 1.4, 0.4) for i in chosen]),
        members_only=True,
    )
    for number in range(1, 41):
        story.add(
            ev.HypothesisAdded(
                number=number,
                text=f"Hypothesis {number} about the block table",
                test=f"debug-spyre run '{ids[number]}'",
                confidence="medium",
            )
        )
    one = evidence([(chosen[0], Outcome.FAILED)], [mismatch(chosen[0], 90, 4096, 1.4, 0.4)])
    for number in range(experiments):
        row = 1 + number % 40
        story.run(
            None,
            ["uv", "run", "--no-sync", "pytest", "-m", "not upstream", "--tb=short", chosen[number % count]],
            evidence=one,
            hypothesis=row,
            output=_output(1, 0),
            tree_digest=f"{number // 100:x}",
            after=10,
        )
        if number < 39:
            story.add(
                ev.HypothesisConcluded(
                    number=row,
                    verdict="ruled-out",
                    sentence="The figures did not move at all in this scope.",
                    runs=(f"r{story.runs}",),
                )
            )
    after = evidence([(i, Outcome.PASSED) for i in ids])
    story.run(
        "post-fix",
        ["pytest", *chosen],
        evidence=evidence([(i, Outcome.PASSED) for i in chosen]),
        members_only=True,
        verb="validate",
    )
    story.run("post-fix-matrix", ["pytest", "tests"], evidence=after, verb="validate")
    story.add(
        ev.ValidationRecorded(
            rows=tuple({"nodeid": i, "pre": "failed", "post": "passed", "note": ""} for i in chosen),
            gate={
                "gate": "shut",
                "reasons": [
                    {"code": "tree-at-start", "text": "1 file differs", "nodeids": [], "next": "debug-spyre revert"}
                ],
            },
        )
    )
    return story


def fresh_copy(source, logs, stem):
    """A session's folder under another name."""
    shutil.copytree(source, logs / stem)
    return Folder(logs / stem)
