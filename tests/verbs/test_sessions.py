"""open, status, similar, cluster, note, save: through the real command in a real checkout."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import HOSTILE
from tests.verbs.conftest import COMMAND

NODE = 'tests/test_a.py::test_b[decode(q=1,kv=256)-x::y "quote" </script>]'
OTHER = "tests/test_a.py::test_b[prefill(q=32,kv=256)]"


def open_session(ds, slug="rms-wide-mismatch", *more):
    return ds.json("open", slug, "--members", NODE, OTHER, "--matrix", "tests", *more)


def test_open_prints_an_absolute_page_and_status_knows_the_session(ds, checkout):
    opened = open_session(ds)
    page = Path(opened["log"])
    assert page.is_absolute()
    assert page.parent == checkout / ".claude/skills/debug-spyre/logs"
    assert page.name == f"{opened['session']}.html"
    assert opened["session"].startswith("debug-20")
    status = ds.json("status")
    assert [m["nodeid"] for m in status["members"]] == [NODE, OTHER]
    assert status["status"] == "investigating"
    text = ds("status").stdout
    assert len(text.splitlines()) <= 25
    assert "no baseline" in text
    assert status["probe"] in text


@pytest.mark.parametrize("more", [("--cluster", "c1"), ("--triage", "triage-1"), ("--from", "a.log")])
def test_open_takes_its_tests_from_one_place(ds, more):
    assert "one of them" in ds("open", "slug", "--members", NODE, *more, status=64).stderr


def test_over_ssh_the_line_that_shows_the_page_survives_a_space_in_the_path(ds):
    shown = ds("open", "slug", "--members", NODE, SSH_CONNECTION="10.0.0.1 5 10.0.0.2 22").stdout
    line = next(line for line in shown.splitlines() if line.startswith("to see it: "))
    words = shlex.split(line.removeprefix("to see it: ").partition(", then ")[0])
    assert words[:4] == ["ssh", "-L", "8765:127.0.0.1:8765", "10.0.0.2"]
    assert Path(shlex.split(words[4])[-1]).is_dir()


def test_the_user_s_uncommitted_work_is_untouched_by_opening(ds, checkout):
    before = subprocess.run(["git", "-C", checkout, "status", "--porcelain"], capture_output=True, check=True).stdout
    open_session(ds)
    after = subprocess.run(
        ["git", "-C", checkout, "status", "--porcelain", "--", "plugin.py", "tests"], capture_output=True, check=True
    ).stdout
    assert after == before
    assert (checkout / "plugin.py").read_text() == "x = 1  # the user's own edit\n"


@pytest.mark.parametrize("slug", ["Bad Slug", "../up", "", "a" * 80, "ünï"])
def test_a_slug_that_is_no_file_name_is_refused_with_a_usable_one(ds, checkout, slug):
    done = ds("open", slug, "--members", NODE, status=64)
    assert "next: debug-spyre open" in done.stderr
    assert not (checkout / ".claude").exists()


def test_two_sessions_are_two_logs_and_the_second_open_warns(ds):
    first = open_session(ds)
    second = ds("open", "other-nan", "--members", OTHER)
    assert "other session" in second.stderr
    assert first["session"] in second.stderr
    assert first["session"] in ds("status").stdout
    assert ds.json("status", "--session", "rms-wide")["session"] == first["session"]


def test_the_session_of_this_client_is_the_current_one(ds):
    open_session(ds, CLAUDE_CODE_SESSION_ID="one") if False else ds(
        "open", "first-one", "--members", NODE, CLAUDE_CODE_SESSION_ID="one"
    )
    ds("open", "second-one", "--members", OTHER, CLAUDE_CODE_SESSION_ID="two")
    assert ds.json("status", CLAUDE_CODE_SESSION_ID="one")["slug"] == "first-one"
    assert ds.json("status", CLAUDE_CODE_SESSION_ID="two")["slug"] == "second-one"


@pytest.mark.parametrize("words", [["status"], ["note", "next", "x"], ["cluster", "list"], ["similar"], ["render"]])
def test_without_a_session_each_verb_says_what_to_do(ds, words):
    done = ds(*words, status=64)
    assert "no session" in done.stderr
    assert "next: debug-spyre investigate" in done.stderr


@pytest.mark.parametrize("words", [["status"], ["open", "x", "--members", "a"], ["note", "next", "x"]])
def test_outside_a_checkout_each_verb_says_so(ds, tmp_path, words):
    ds.cwd = tmp_path
    done = ds(*words, status=69)
    assert "not inside a git checkout" in done.stderr


def test_an_unwritable_logs_folder_is_named_and_nothing_is_left(ds, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    done = ds("open", "some-slug", "--members", NODE, status=69, DEBUG_SPYRE_LOGS=str(blocked / "logs"))
    assert "DEBUG_SPYRE_LOGS" in done.stderr
    assert blocked.read_text() == "a file, not a folder"


def test_home_may_be_missing(ds):
    ds.env.pop("HOME", None)
    assert open_session(ds)["session"]


def test_a_damaged_journal_is_named_with_its_line_and_not_written(ds, checkout):
    opened = open_session(ds)
    ds("note", "next", "x")
    journal = Path(opened["folder"]) / "journal.jsonl"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], "{broken", *lines[1:]]) + "\n")
    before = journal.read_bytes()
    done = ds("note", "next", "y", "--session", opened["session"], status=2)
    assert "line 2 is damaged" in done.stderr
    assert journal.read_bytes() == before
    assert "unreadable" in ds("status", "--all").stdout


@pytest.mark.parametrize("what", ["summary", "finding", "next", "experiment"])
def test_notes_come_from_an_argument_or_from_stdin(ds, what):
    """Every hostile name is given once to every kind of note, half of them by either way."""
    opened = open_session(ds)
    ds("note", what, HOSTILE[0])
    ds("note", what, stdin="from stdin " + "\n".join(HOSTILE[1:]))
    ds("note", what, " ".join(HOSTILE[1:]))
    kinds = [json.loads(line) for line in (Path(opened["folder"]) / "journal.jsonl").read_text().splitlines()]
    texts = [e["text"] for e in kinds if e["kind"] == f"{what}_noted"]
    assert texts == [HOSTILE[0], "from stdin " + "\n".join(HOSTILE[1:]), " ".join(HOSTILE[1:])]
    ds("note", what, "  ", status=64)


def test_an_experiment_done_by_hand_keeps_a_copy_of_its_output(ds, tmp_path):
    opened = open_session(ds)
    output = tmp_path / "by hand.log"
    output.write_bytes(b"first\n\xff\x00 not text\nlast\n")
    ds("note", "experiment", "by hand", "--command", "python x.py", "--output", str(output), "--conclusion", "same")
    kept = Path(opened["folder"]) / "by-hand-1.txt"
    assert kept.read_bytes() == output.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o600
    ds("note", "experiment", "x", "--output", str(tmp_path / "missing"), status=2)
    ds("note", "experiment", "x", "--hypothesis", "9", status=64)


def test_save_takes_stdin_and_never_overwrites_by_accident(ds):
    opened = open_session(ds)
    folder = Path(opened["folder"])
    ds("save", "repro.py", stdin="print(1)\n")
    ds("save", "repro.py", stdin="print(2)\n", status=64)
    ds("save", "repro.py", "--replace", stdin="print(3)\n")
    assert (folder / "repro.py").read_text() == "print(3)\n"
    assert (folder / "repro.py.1").read_text() == "print(1)\n"
    ds("save", "empty.py", stdin="", status=64)


@pytest.mark.parametrize("name", ["mine.txt", "runs", "fix.patch"])
def test_save_never_takes_the_place_of_what_a_run_or_a_revert_wrote(ds, name):
    """The gate reads the saved patch, the page the outputs: replaced, they'd say what never was."""
    folder = Path(open_session(ds)["folder"])
    ds("exec", "--as", "mine", "--", "true")
    (folder / "fix.patch").write_text("a patch\n")
    before = sorted((str(p), p.stat().st_size) for p in folder.rglob("*") if p.name != "log.md")
    ds("save", name, "--replace", stdin="x", status=64)
    assert sorted((str(p), p.stat().st_size) for p in folder.rglob("*") if p.name != "log.md") == before


@pytest.mark.parametrize(
    "words",
    [
        ["summary", "x", "--expect-change", "torch-spyre"],
        ["next", "x", "--output", "file"],
        ["finding", "x", "--hypothesis", "1"],
        ["experiment", "x", "--reference", "a.py:1"],
        ["finding", "x", "--expect-change", "torch"],
    ],
    ids=lambda words: words[0],
)
def test_an_option_that_would_do_nothing_is_refused(ds, words):
    opened = open_session(ds)
    journal = Path(opened["folder"]) / "journal.jsonl"
    before = journal.read_bytes()
    ds("note", *words, status=64)
    assert journal.read_bytes() == before


def test_the_members_of_a_closed_session_stay_as_they_were_judged(ds):
    opened = open_session(ds)
    journal = Path(opened["folder"]) / "journal.jsonl"
    ds("close", "blocked", "--next", "a person decides about the layout")
    before = journal.read_bytes()
    named = ("--session", opened["session"])
    for words in (["add", "t.py::x", "--reason", "r"], ["drop", OTHER, "--reason", "r"], ["probe", OTHER]):
        assert "reopen" in ds("cluster", *words, *named, status=1).stderr
    assert journal.read_bytes() == before
    assert NODE in ds("cluster", "list", *named).stdout


def test_a_status_that_is_no_word_of_ours_is_bad_input_and_no_fault(ds):
    opened = open_session(ds)
    journal = Path(opened["folder"]) / "journal.jsonl"
    event = {"v": 1, "seq": 2, "at": "t", "by": "b", "kind": "session_closed", "status": "finished"}
    journal.write_text(journal.read_text() + json.dumps(event) + "\n")
    assert "finished" in ds("status", "--session", opened["session"], status=2).stderr
    assert "unreadable" in ds("status", "--all").stdout


def test_two_logs_of_one_name_are_both_kept(ds, tmp_path):
    head = "=========================== short test summary info ============================\n"
    line = head + "FAILED tests/test_a.py::test_{} - RuntimeError: no kernel\n===== 1 failed in 0.10s =====\n"
    logs = []
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir()
        logs.append(tmp_path / name / "ci.log")
        logs[-1].write_text(line.format(number))
    opened = ds.json("open", "no-kernel", "--cluster", "c1", "--from", *map(str, logs))
    folder = Path(opened["folder"])
    assert {p.read_text() for p in folder.glob("source-*")} == {log.read_text() for log in logs}
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in folder.glob("source-*"))


RULE = """
[[rule]]
id = "no-kernel"
stage = "environment"
reason = "the kernels were not built"
pattern = "no kernel"
"""


def two_causes(tmp_path):
    """A log and a rules file; the rule makes the first cluster the last one."""
    log, rules = tmp_path / "ci log.txt", tmp_path / "my rules.toml"
    head = "=========================== short test summary info ============================\n"
    rows = [(f"b[{n}]", "ValueError: handshake lost in step seven") for n in (64, 128)]
    rows += [(f"b[{n}]", "OSError: handshake late, peer gone") for n in (256, 512)]
    rows += [(f"c[{n}]", "RuntimeError: no kernel") for n in (64, 128, 256)]
    seen = "".join(f"tests/test_a.py::test_{n} FAILED\n" for n, _ in rows)
    seen += "".join(f"tests/test_a.py::test_{f}[{n}] PASSED\n" for f in "bc" for n in (1, 2, 4, 8, 16, 32))
    failed = "".join(f"FAILED tests/test_a.py::test_{n} - {m}\n" for n, m in rows)
    starts = "============================= test session starts ==============================\n"
    log.write_text(f"{starts}{seen}{head}{failed}==== 7 failed, 12 passed in 1.00s ====\n")
    rules.write_text(RULE)
    return log, rules


def test_a_cluster_of_a_log_is_the_one_that_triage_numbered(ds, checkout, tmp_path):
    log, rules = two_causes(tmp_path)
    names = '@pytest.mark.parametrize("hidden", [64, 128, 256, 512])\ndef test_{}(hidden): pass\n'
    (checkout / "tests/test_a.py").write_text("import pytest\n" + names.format("b") + names.format("c"))
    with_rules = ds.json("triage", "--from", log, "--rules", rules)["clusters"]
    without = ds.json("triage", "--from", log)["clusters"]
    assert len(without) == len(with_rules) == 3
    assert with_rules[0]["nodeids"] != without[0]["nodeids"] == with_rules[2]["nodeids"]
    for cluster in with_rules:
        opened = ds.json("open", f"same-{cluster['id']}", "--cluster", cluster["id"], "--from", log, "--rules", rules)
        status = ds.json("status", "--session", opened["session"])
        assert sorted(m["nodeid"] for m in status["members"]) == sorted(cluster["nodeids"])
        journal = (Path(opened["folder"]) / "journal.jsonl").read_text().splitlines()[0]
        told = json.loads(journal)["cluster"]
        assert told["separators"] == cluster["separators"] and told["signature"] == cluster["signature"]
    assert any(s["parameter"] == "hidden" for c in with_rules for s in c["separators"])


def test_the_next_command_of_a_triage_opens_what_it_numbered(ds, tmp_path):
    log, rules = two_causes(tmp_path)
    said = ds("triage", "--from", log, "--rules", rules).stdout
    words = next(line for line in said.splitlines() if "debug-spyre open" in line).partition("debug-spyre ")[2]
    assert shlex.split(words)[-2:] == ["--rules", str(rules)]
    assert ds(*shlex.split(words)).stdout.startswith("log: ")
    refused = ds("open", "x", "--from", log, "--rules", rules, status=64).stderr
    assert shlex.quote(str(rules)) in refused.splitlines()[-2]


def test_rules_without_logs_are_refused(ds):
    assert "--from" in ds("open", "slug", "--members", NODE, "--rules", "x.toml", status=64).stderr


def test_an_opening_that_fails_leaves_nothing(ds, checkout, tmp_path):
    log = tmp_path / "ci.log"
    head = "=========================== short test summary info ============================\n"
    log.write_text(head + "FAILED tests/test_a.py::test_b - RuntimeError: x\n===== 1 failed in 0.10s =====\n")
    code = (
        "import os, sys, types; from debug_spyre.session.io import journal\n"
        "def full(*a): raise OSError(28, 'No space left on device')\n"
        "journal.os = types.SimpleNamespace(**vars(os) | {'write': full})\n"  # only the journal's disk is full
        "from debug_spyre.cli import main; sys.exit(main(['open', 'x', '--cluster', 'c1', '--from', sys.argv[1]]))"
    )
    env = {**ds.env, "PYTHONPATH": str(Path(__file__).parents[2] / "scripts")}
    done = subprocess.run([sys.executable, "-c", code, str(log)], cwd=checkout, env=env, capture_output=True, text=True)
    assert done.returncode == 69 and "No space left" in done.stderr, done.stderr
    assert not list((checkout / ".claude/skills/debug-spyre/logs").glob("debug-*"))


@pytest.mark.parametrize(
    "name",
    [
        "../up.py",
        "/abs.py",
        "by-hand-1.txt",
        "source-ci.log",
        "journal.jsonl",
        "baseline.txt",
        "full-matrix-2.txt",
        ".hidden",
        "a/b",
        "log.md",
    ],
)
def test_save_refuses_names_that_are_not_the_session_s_own(ds, name):
    open_session(ds)
    ds("save", name, stdin="x", status=64)


def test_a_member_is_moved_into_a_linked_session_of_its_own(ds):
    opened = open_session(ds)
    moved = ds.json(
        "cluster", "move", OTHER, "--to", "prefill-nan", "--reason", "NaN, not a scale", "--session", opened["session"]
    )
    assert [m["nodeid"] for m in ds.json("cluster", "list", "--session", opened["session"])["members"]] == [NODE]
    assert [m["nodeid"] for m in ds.json("cluster", "list", "--session", moved["to"])["members"]] == [OTHER]
    journal = (Path(opened["folder"]) / "journal.jsonl").read_text()
    assert moved["to"] in journal
    ds("cluster", "move", NODE, "--to", "rest", "--reason", "r", "--session", opened["session"], status=1)
    ds("cluster", "drop", "no::such", "--reason", "r", "--session", opened["session"], status=64)


KILLED = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
from debug_spyre import cli
from debug_spyre.triage.io import opening
def killed(*words, **more):
    os.kill(os.getpid(), 9)
opening.depart = killed
cli.main(sys.argv[1:])
"""


@pytest.fixture
def half_moved(ds, checkout):
    """A session out of which OTHER was carved by a call that was killed between the two journals."""
    opened = open_session(ds)
    words = ["cluster", "move", OTHER, "--to", "prefill-nan", "--reason", 'NaN: it\'s no "scale" [x]']
    argv = [sys.executable, "-c", KILLED, str(COMMAND.parent), *words, "--session", opened["session"]]
    assert subprocess.run(argv, cwd=checkout, env=ds.env, capture_output=True).returncode == -9
    logs = checkout / ".claude/skills/debug-spyre/logs"
    (carved,) = (p.name for p in logs.glob("debug-*-prefill-nan"))
    return opened["session"], carved


def members(ds, session):
    return [m["nodeid"] for m in ds.json("cluster", "list", "--session", session)["members"]]


def concern(ds, session):
    found = [c for c in ds.json("status", "--session", session)["concerns"] if c["code"] == "half-moved"]
    return found[0] if found else None


def test_a_move_that_was_killed_between_its_journals_is_said_and_finished_by_the_command_said(ds, checkout, half_moved):
    origin, carved = half_moved
    assert members(ds, origin) == [NODE, OTHER]
    assert members(ds, carved) == [OTHER]
    said = concern(ds, origin)
    assert said == concern(ds, carved)  # whichever of the two is looked at
    assert f"1 test is in two sessions: the move out of {origin} to {carved} was cut off" in said["text"]
    text = ds("status", "--session", origin).stdout
    assert "! 1 test is in two sessions" in text and f"  next: {said['next']}" in text
    program, *words = shlex.split(said["next"])
    assert program == "debug-spyre"
    done = ds.json(*words)
    assert (done["moved"], done["to"]) == ([OTHER], carved)
    assert members(ds, origin) == [NODE]
    assert members(ds, carved) == [OTHER]
    assert concern(ds, origin) is None and concern(ds, carved) is None
    journal = (checkout / ".claude/skills/debug-spyre/logs" / origin / "journal.jsonl").read_text()
    (gone,) = (json.loads(line) for line in journal.splitlines() if '"member_removed"' in line)
    assert (gone["reason"], gone["moved_to"]) == ('NaN: it\'s no "scale" [x]', carved)
    ds(*words, status=64)  # once more: it is no member here any more


def test_a_half_moved_member_goes_nowhere_else(ds, half_moved):
    origin, carved = half_moved
    refused = ds("cluster", "move", OTHER, "--to", "elsewhere", "--reason", "r", "--session", origin, status=1)
    assert "was cut off" in refused.stderr and concern(ds, origin)["next"] in refused.stderr
    ds("cluster", "drop", OTHER, "--reason", "r", "--session", origin)
    assert concern(ds, origin) is None  # one session alone has it


def test_two_moves_of_one_member_at_a_time_leave_it_in_one_session(ds, checkout):
    opened = open_session(ds)
    argv = [COMMAND, "cluster", "move", OTHER, "--reason", "r", "--session", opened["session"], "--to"]
    both = [
        subprocess.Popen([*argv, slug], cwd=checkout, env=ds.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for slug in ("one-way", "other-way")
    ]
    errors = [process.communicate(timeout=120)[1] for process in both]
    assert not any(b"Traceback" in error for error in errors), errors
    assert sorted(process.returncode == 0 for process in both) == [False, True], errors
    listed = [row["session"] for row in ds.json("status", "--all")["sessions"]]
    assert [OTHER in members(ds, stem) for stem in listed].count(True) == 1
    assert len(listed) == 2
    assert all(concern(ds, stem) is None for stem in listed)


def test_after_a_move_the_client_goes_on_in_the_session_that_it_opened(ds):
    ds("open", "first-one", "--members", NODE, OTHER, CLAUDE_CODE_SESSION_ID="one")
    moved = ds("cluster", "move", OTHER, "--to", "other-nan", "--reason", "NaN", CLAUDE_CODE_SESSION_ID="one")
    first = ds.json("status", CLAUDE_CODE_SESSION_ID="one")
    assert first["slug"] == "first-one"
    assert f"next: debug-spyre status --session {first['session']}" in moved.stdout
    assert ds.json("status", "--session", "other-nan", CLAUDE_CODE_SESSION_ID="one")["slug"] == "other-nan"


def test_members_by_predicate_are_said_in_words(ds):
    ds("open", "silent-fallback", "--members", NODE, "--falls-back", "aten.sin")
    assert "falls back: aten.sin" in ds("cluster", "list").stdout
    ds("cluster", "add", OTHER, "--reason", "slow too", "--slower", "2.5")
    assert "slower than 2.5 s" in ds("cluster", "list").stdout
    ds("cluster", "probe", OTHER)
    assert ds.json("status")["probe"] == OTHER


def test_similar_finds_the_past_session_with_the_same_signature(ds, checkout):
    logs = checkout / ".claude/skills/debug-spyre/logs"
    opened = open_session(ds)
    journal = logs / opened["session"] / "journal.jsonl"
    first, *rest = journal.read_text().splitlines()
    event = json.loads(first)
    event["cluster"] = {"signature": "v1|mismatch|numerics", "kind": "mismatch", "stage": "numerics", "why": "w"}
    journal.write_text("\n".join([json.dumps(event), *rest]) + "\n")
    assert ds("similar", status=1).stdout
    event |= {"stem": "debug-20260101-000000-old", "slug": "old"}
    (logs / event["stem"]).mkdir()
    end = {
        "v": 1,
        "seq": 2,
        "at": "t",
        "by": "b",
        "kind": "session_closed",
        "status": "resolved",
        "cause": "mean adds half",
        "wasted": "w",
        "signal": "s",
    }
    (logs / event["stem"] / "journal.jsonl").write_text(json.dumps(event) + "\n" + json.dumps(end) + "\n")
    found = ds("similar", "--session", opened["session"]).stdout
    assert "debug-20260101-000000-old" in found
    assert "mean adds half" in found


def test_the_logs_are_kept_out_of_git_wherever_the_skill_is_installed(ds, checkout):
    opened = open_session(ds)
    shown = subprocess.run(
        ["git", "-C", checkout, "status", "--porcelain"], capture_output=True, text=True, check=True
    ).stdout
    assert "logs" not in shown
    assert (Path(opened["folder"]).parent / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("words", [("--json",), ("--json", "--brief"), (), ("--brief",)], ids=str)
def test_watch_shows_each_change_until_the_session_is_closed(ds, checkout, words):
    """--json prints an object a line; into a pipe no code for a screen is written."""
    opened = open_session(ds)
    argv = [COMMAND, "status", "--watch", *words]
    with subprocess.Popen(argv, cwd=checkout, env=ds.env, stdout=subprocess.PIPE, text=True) as watching:
        first = watching.stdout.readline()
        assert opened["session"] in first
        ds("note", "summary", "the mask <b>is</b> off by one")
        ds("close", "blocked", "--next", "a person decides whether the mask goes in")
        rest, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert "\x1b" not in first + rest
    if "--json" in words:
        seen = [json.loads(line) for line in (first + rest).splitlines()]
        assert len(seen) > 1
        assert {(one["schema"], one["session"]) for one in seen} == {(1, opened["session"])}
        assert (seen[0]["status"], seen[-1]["status"]) == ("investigating", "blocked")
        assert seen[-1]["summary"] == "the mask <b>is</b> off by one"


def test_watch_follows_one_session(ds):
    open_session(ds)
    assert "status --watch" in ds("status", "--all", "--watch", status=64).stderr


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("  next: debug-spyre hypothesis start 3", "  next: debug-spyre hypothesis start 3 --session debug-x"),
        ("run it: debug-spyre exec -- python a.py", "run it: debug-spyre exec --session debug-x -- python a.py"),
        ("next: debug-spyre finish --session debug-y", "next: debug-spyre finish --session debug-y"),
        ("next: debug-spyre investigate --resume", "next: debug-spyre investigate --resume"),
        ("next: change the code", "next: change the code"),
        ("log: /x.html", "log: /x.html"),
    ],
)
def test_a_proposed_command_names_its_session(line, named):
    from debug_spyre.verbs.session_option import named as name

    assert name(line, "debug-x") == named


def test_where_several_sessions_are_open_what_is_proposed_works_as_it_stands(ds):
    for slug in ("one", "two"):
        ds("open", slug, "--members", "tests/test_a.py::test_b")
    stem = next(p.name for p in (ds.cwd / ".claude/skills/debug-spyre/logs").glob("debug-*-one"))
    said = ds("hypothesis", "add", "x", "--test", "debug-spyre shadow", "--session", stem).stdout
    shown = ds("status", "--session", stem).stdout
    proposed = [line for line in f"{said}\n{shown}".splitlines() if line.strip().startswith("next: debug-spyre")]
    assert proposed and all(f"--session {stem}" in line for line in proposed)


def test_status_with_nothing_open_lists_what_there_was(ds):
    ds("open", "one", "--members", "tests/test_a.py::test_b")
    ds("close", "blocked", "--next", "a person decides which card it is")
    done = ds("status")
    assert done.stdout.startswith("blocked") and "-one" in done.stdout
    assert ds("status", "--json", status=64)


def test_status_with_several_open_lists_them_and_names_the_next(ds):
    for slug in ("one", "two"):
        ds("open", slug, "--members", "tests/test_a.py::test_b")
    said = ds("status").stdout.splitlines()
    assert [line.split()[0] for line in said[:2]] == ["investigating"] * 2
    assert said[-1].startswith("next: debug-spyre status --session debug-") and ds("status", "--json", status=64)


def test_texts_that_finish_was_given_are_not_typed_again_for_close(ds):
    ds("open", "one", "--members", "tests/test_a.py::test_b")
    ds("finish", "--cause", "the mark is stale", "--wasted", "row 3", status=1)
    ds("close", "blocked", "--next", "a person decides on the mark")
    folder = next((ds.cwd / ".claude/skills/debug-spyre/logs").glob("debug-*-one"))
    closed = json.loads((folder / "journal.jsonl").read_text().splitlines()[-1])
    assert (closed["kind"], closed["cause"], closed["wasted"]) == ("session_closed", "the mark is stale", "row 3")
    assert not (folder / "finish.json").exists()
