"""The bundle: refused while something is missing, complete, redacted as a whole, never overwritten."""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from debug_spyre.queue.session_warnings import session_warnings
from debug_spyre.session import events as ev
from debug_spyre.session.io.workspace import load_session, new_session_folder
from debug_spyre.vocabulary.evidence import (
    Evidence,
    Failure,
    Fallback,
    Kind,
    Outcome,
    Severity,
    TestRecord,
    evidence_to_json,
)

COMMAND = Path(__file__).parents[2] / "scripts/debug-spyre"
NODE = "tests/test_a.py::test_b[decode(q=1,kv=256)-</script>]"
SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123"
USER, HOST = "carmenq", "zeus9"


@pytest.fixture
def place(tmp_path):
    checkout = tmp_path / "home" / USER / "spyre-inference"
    checkout.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    folder = new_session_folder(checkout / ".claude/skills/debug-spyre/logs", "debug-20261130-100000-wide-rows")
    return checkout, folder


def tell(place, *, control=True, revision=True, failing=True, repro=True):
    """A session told to the point of an escalation."""
    checkout, folder = place
    provenance = {
        "torch_spyre": {"state": "pinned", "revision": "7c41f0d2" if revision else None, "pin": None},
        "torch": "2.13.0",
    }
    message = f"Tensor-likes are not close!\nread from /home/{USER}/x on {HOST} with {SECRET}"
    failure = Failure(
        NODE, "call", Kind.MISMATCH, severity=Severity.STRUCTURAL, mismatched=97, total=100, max_abs=1.5, message=message,
        error_class="AssertionError", innermost_frame="tests/test_a.py:3", pattern="the reference scaled by 1.5",
    )  # fmt: skip
    evidence = Evidence(
        ("baseline.txt",), None, True, failures=(failure,) if failing else (), fallbacks=(Fallback("aten.sin.default", "x.py", 3),),
        tests=(TestRecord(NODE, Outcome.FAILED, 1.0),),
    )  # fmt: skip
    (folder.path / "runs/r1").mkdir(parents=True)
    (folder.path / "runs/r1/evidence.json").write_text(json.dumps(evidence_to_json(evidence)))
    (folder.path / "baseline.txt").write_text("line\n" * 200000 + f"{USER}@{HOST} HF_TOKEN={SECRET}\nthe last line\n")
    made = [
        ev.SessionOpened(
            stem=folder.stem, slug="wide-rows", symptom="97 % wrong", members=({"nodeid": NODE},), checkout=str(checkout),
            probe=NODE, matrix=("tests",),
        ),
        ev.RunStarted(run="r1", verb="run", name="baseline", argv=("pytest",), output="baseline.txt", provenance=provenance),
        ev.RunFinished(
            run="r1", status="failed", valid=True, seconds=1.0, exit=1, evidence="runs/r1/evidence.json", digest=("97 of 100 wrong",)
        ),
        ev.HypothesisAdded(number=1, text="accumulation order", test="t"),
        ev.HypothesisStarted(number=1, command="c"),
        ev.HypothesisConcluded(number=1, verdict="ruled-out", sentence="differs by more than one"),
    ]  # fmt: skip
    if control:
        (folder.path / "cpu-control.txt").write_text("1 passed\n")
        made += [
            ev.RunStarted(
                run="r2",
                verb="repro",
                name="cpu-control",
                argv=("python",),
                output="cpu-control.txt",
                provenance=provenance,
            ),
            ev.RunFinished(run="r2", status="passed", valid=True, seconds=1.0, exit=0),
        ]
    if repro:
        (folder.path / "repro.py").write_text(f"# {USER}\nprint('shows')\nraise SystemExit(0)\n")
        made.append(
            ev.ReportMade(
                verb="repro", lines=("repro.py: VERIFIED",), data={"script": "repro.py", "stamp": "VERIFIED: 3 of 3"}
            )
        )
    folder.journal.append_with(lambda _: made)
    return folder


@pytest.fixture
def escalate(place):
    def run(*words, status=0):
        env = {
            **os.environ, "DEBUG_SPYRE_PYTHON": sys.executable, "USER": USER, "LOGNAME": USER, "HOSTNAME": HOST,
            "HF_TOKEN": SECRET, "HOME": f"/home/{USER}",
        }  # fmt: skip
        done = subprocess.run([COMMAND, "escalate", *words], cwd=place[0], capture_output=True, text=True, env=env)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.mark.parametrize(
    ("missing", "code"),
    [({"control": False}, "cpu-control"), ({"revision": False}, "revision"), ({"failing": False}, "traceback")],
)
def test_an_escalation_is_refused_while_something_is_missing_and_says_which(place, escalate, missing, code):
    folder = tell(place, **missing)
    done = escalate(status=1)
    assert f"{code}: " in done.stderr
    assert "next: debug-spyre" in done.stderr
    assert not (folder.path / "escalation").exists()
    assert f"missing: {code}" or code in escalate("--preview", status=1).stdout


def test_a_control_that_fails_on_the_cpu_sends_back_to_our_own_logic(place, escalate):
    folder = tell(place, control=False)
    folder.journal.append_with(
        lambda _: [
            ev.RunStarted(run="r2", verb="repro", name="cpu-control", argv=("python",), output="cpu-control.txt"),
            ev.RunFinished(run="r2", status="failed", valid=True, seconds=1.0, exit=1),
        ]
    )
    assert "our own logic" in escalate(status=1).stderr


def test_a_bundle_holds_what_the_team_needs(place, escalate):
    folder = tell(place)
    said = escalate().stdout
    bundle = folder.path / "escalation"
    assert str(bundle) in said
    names = {str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file()}
    assert {
        "issue.md", "repro.py", "environment.json", "hypotheses.md", "failure.json", "log.html", "log.md", "SHA256SUMS",
        "logs/baseline.txt", "logs/cpu-control.txt",
    } <= names  # fmt: skip
    issue = (bundle / "issue.md").read_text()
    for heading in ("What happened?", "Expected", "How can we reproduce it?", "Environment", "Anything else", "Logs"):
        assert f"### {heading}" in issue
    for words in (
        NODE,
        "7c41f0d2",
        "2.13.0",
        "VERIFIED: 3 of 3",
        "accumulation order",
        "scaled by 1.5",
        "print('shows')",
    ):
        assert words in issue, words
    for line in (bundle / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ", 1)
        assert hashlib.sha256((bundle / name).read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(folder.path / "escalation.zip") as archive:
        assert {n.split("/", 1)[1] for n in archive.namelist()} == names
        for name in names:
            assert archive.read(f"escalation/{name}") == (bundle / name).read_bytes()
    assert "the last line" in (bundle / "logs/baseline.txt").read_text()
    assert "[cut: the first" in (bundle / "logs/baseline.txt").read_text()


def test_nothing_private_is_in_any_file_of_the_bundle_and_the_map_lies_outside(place, escalate):
    folder = tell(place)
    escalate()
    for path in (folder.path / "escalation").rglob("*"):
        if path.is_file():
            text = path.read_text(errors="replace")
            for private in (SECRET, USER, HOST):
                assert private not in text, f"{private} in {path.name}"
    private_map = folder.path / "escalation.map.json"
    assert set(json.loads(private_map.read_text())) & {USER, HOST, f"/home/{USER}"}
    assert private_map.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(folder.path / "escalation.zip") as archive:
        assert not [n for n in archive.namelist() if "map" in n]


def test_a_preview_writes_nothing(place, escalate):
    folder = tell(place)
    before = sorted(p.name for p in folder.path.iterdir())
    said = escalate("--preview").stdout
    assert "nothing was written" in said
    assert "hidden: " in said
    assert sorted(p.name for p in folder.path.iterdir()) == before


def test_a_preview_says_first_what_is_missing_and_lists_few_files(place, escalate):
    folder = tell(place, control=False)
    for n in range(12):
        (folder.path / f"more-{n}.txt").write_text("text")
        digest = hashlib.sha256(b"text").hexdigest()
        folder.journal.append(ev.ArtifactSaved(path=f"more-{n}.txt", sha256=digest, size=4))
    lines = escalate("--preview", status=1).stdout.splitlines()
    assert lines[0].startswith("title: ") and lines[1].startswith("missing: ")
    listed = [line for line in lines if re.match(r" +\d+  \S", line)]
    assert len(listed) <= 8


def test_a_bundle_is_never_overwritten(place, escalate):
    folder = tell(place)
    escalate()
    before = (folder.path / "escalation/issue.md").read_bytes()
    assert "never overwritten" in escalate("--name", "escalation", status=1).stderr
    escalate("--name", "second")
    escalate()
    assert (folder.path / "escalation-2/issue.md").exists()
    assert (folder.path / "escalation/issue.md").read_bytes() == before


def test_a_bundle_that_is_older_than_the_log_is_said_to_be(place, escalate):
    folder = tell(place)
    escalate()
    assert load_session(folder).since_bundle == ()
    folder.journal.append(ev.FindingNoted(text="only odd sizes"))
    assert load_session(folder).since_bundle == ("a finding",)
    assert "stale-bundle" in {x.code for x in session_warnings(load_session(folder), {})}
    escalate()
    assert load_session(folder).since_bundle == ()


def test_what_is_over_the_cap_is_left_out_and_listed(place, escalate):
    folder = tell(place)
    said = escalate("--cap", "0.02").stdout
    assert "left out: logs/baseline.txt" in said
    assert not (folder.path / "escalation/logs/baseline.txt").exists()
    assert (folder.path / "escalation/issue.md").exists()


def test_without_a_proved_repro_the_bundle_says_unverified(place, escalate):
    tell(place, repro=False)
    assert "UNVERIFIED" in escalate().stdout


def test_a_full_disk_leaves_no_half_bundle(place, escalate):
    folder = tell(place)
    if os.geteuid() != 0:
        folder.path.chmod(0o500)
        try:
            assert "cannot write" in escalate(status=69).stderr
        finally:
            folder.path.chmod(0o700)
    else:
        (folder.path / "escalation.zip").write_text("in the way")
        escalate("--name", "escalation", status=1)
    assert not (folder.path / "escalation").exists()
    assert not list(folder.path.glob(".bundle-*"))


def test_first_failure_reports_of_the_run_go_along(place, escalate):
    folder = tell(place)
    (folder.path / "runs/r1/ffdc").mkdir()
    (folder.path / "runs/r1/ffdc/ffdc_unimplemented_20261130T100000_1_99.json").write_text(f'{{"host": "{HOST}"}}')
    escalate()
    text = (folder.path / "escalation/reports/r1-ffdc_unimplemented_20261130T100000_1_99.json").read_text()
    assert text == '{"host": "<host-1>"}'


def test_a_user_whose_name_is_a_word_of_the_script_does_not_break_it(place):
    folder = tell(place)
    script = "import torch\nscale = torch.ones(3).max()  # max's machine\nraise SystemExit(0)\n"
    (folder.path / "repro.py").write_text(script)
    env = {**os.environ, "DEBUG_SPYRE_PYTHON": sys.executable, "USER": "max", "LOGNAME": USER, "HOME": "/home/max"}
    done = subprocess.run([COMMAND, "escalate"], cwd=place[0], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert (folder.path / "escalation/repro.py").read_text() == script
    assert "these names stay readable in the bundle: max" in done.stdout
    assert USER not in (folder.path / "escalation/logs/baseline.txt").read_text()


CAUSE = {
    "id": "k1", "session": None, "sentence": "aten.var.dim adds only the first 96 when size -1 of argument 0 > 96",
    "op": "aten.var.dim", "claim": "cause", "manner": "wrong-values", "tests": [NODE],
    "condition": {
        "text": "size -1 of argument 0 > 96", "exact": True,
        "borders": [{"right": "aten.var.dim 'f16[2,96]' '[-1]'", "wrong": "aten.var.dim 'f16[2,97]' '[-1]'"}],
    },
    "explains": {"tests": 4, "of": 4, "calls": 1204, "predicted_wrong": 40, "were_wrong": 39, "contradictions": 1},
    "control": "passes", "ways_round": [{"text": "compiled", "measured": "wrong"}, {"text": "in float32", "measured": "right"}],
}  # fmt: skip


def told(folder, *causes):
    data = {"matrix": {}, "seconds": 1.0, "budget": {"minutes": 15, "left_out": []}, "causes": causes}
    (folder.path / "dossier.json").write_text(json.dumps({"schema": 1, **data}))


def test_the_issue_begins_with_what_was_found_and_says_where_it_begins(place, escalate):
    folder = tell(place)
    told(folder, {**CAUSE, "claim": "located", "sentence": "another sentence"}, CAUSE)
    escalate()
    issue = (folder.path / "escalation/issue.md").read_text()
    assert issue.splitlines()[0] == f"# {CAUSE['sentence']}"
    happened = issue.split("### What happened?")[1].split("###")[0]
    assert happened.strip().startswith(CAUSE["sentence"])
    for words in (
        "both sides of each border", "right is `aten.var.dim 'f16[2,96]'", "wrong is `aten.var.dim 'f16[2,97]'",
        "4 of 4 failing tests", "40 were predicted wrong and 39 were", "Right on the same call: in float32", "Wrong as well: compiled",
    ):  # fmt: skip
        assert words in happened, words
    assert "accumulation order: differs by more than one" in issue


def test_the_words_to_search_with_are_the_op_and_what_it_does_without_numbers(place, escalate):
    folder = tell(place)
    told(folder, CAUSE)
    search = json.loads(escalate("--json").stdout)["search"]
    assert search.startswith("aten.var adds only first") and not any(c.isdigit() for c in search)
    assert len(search.split()) == len(set(search.split()))


def test_a_located_cause_is_handed_over_as_located(place, escalate):
    folder = tell(place)
    told(folder, {**CAUSE, "claim": "located", "control": None})
    escalate()
    assert "Claim: located: no proof" in (folder.path / "escalation/issue.md").read_text()


def test_got_and_wanted_are_what_the_proved_script_printed(place, escalate):
    folder = tell(place)
    (folder.path / "repro").mkdir()
    proof = {"script": "repro.py", "runs": ["r3"], "stamp": "VERIFIED"}
    (folder.path / "repro/verification.json").write_text(json.dumps({"proofs": [proof]}))
    (folder.path / "r3.txt").write_text("5 of 9 elements are wrong: got [0.5], wanted [1.0]\n")
    folder.journal.append_with(
        lambda _: [
            ev.RunStarted(run="r3", verb="repro", name=None, argv=("python",), output="r3.txt"),
            ev.RunFinished(run="r3", status="passed", valid=True, seconds=1.0, exit=0),
            ev.ReportMade(
                verb="repro", lines=("repro.py: VERIFIED",), report="repro/verification.json",
                data={"script": "repro.py", "stamp": "VERIFIED: 3 of 3"},
            ),
        ]
    )  # fmt: skip
    escalate()
    assert (
        "It prints:\n\n```text\n5 of 9 elements are wrong: got [0.5], wanted [1.0]\n```"
        in (folder.path / "escalation/issue.md").read_text()
    )


@pytest.mark.parametrize("text", ["", "{", '{"causes": 3}', "[]"])
def test_a_dossier_that_can_not_be_read_leaves_the_failure_as_title(place, escalate, text):
    folder = tell(place)
    (folder.path / "dossier.json").write_text(text)
    escalate()
    assert (folder.path / "escalation/issue.md").read_text().startswith("# wide-rows: ")
