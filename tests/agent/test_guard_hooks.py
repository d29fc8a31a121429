"""The guard as the client runs it: a process that gets one event on stdin. Stop, compaction, failure inside."""

import ast
import glob
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debug_spyre.agent.guard import light

FACTOR = int(os.environ.get("DEBUG_SPYRE_FUZZ", "1"))
ROWS = [
    ("hypothesis_added", {"number": 1, "text": "rows wrap at 64", "test": "shadow"}),
    ("hypothesis_added", {"number": 2, "text": "the mask is off by one", "test": "print it"}),
]
STARTED = ("hypothesis_started", {"number": 1, "command": "debug-spyre shadow x"})
CONCLUDED = ("hypothesis_concluded", {"number": 1, "verdict": "ruled-out", "sentence": "same on the CPU"})


def reply(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


def permission(done):
    said = reply(done)
    return said and said["hookSpecificOutput"]["permissionDecision"]


def stop(kit, checkout, *, client="client-1", args=(), **fields):
    event = {"hook_event_name": "Stop", "session_id": client, "stop_hook_active": False, **fields}
    return reply(kit.run_hook(event, cwd=checkout, args=args))


def bash(command):
    return {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}}


def test_a_decision_comes_out_as_the_client_wants_it(kit, checkout):
    said = reply(kit.run_hook(bash("pytest tests"), cwd=checkout))
    assert said["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert said["hookSpecificOutput"]["permissionDecisionReason"].startswith("debug-spyre H1: ")


def test_an_unrelated_command_gets_no_answer_at_all(kit, checkout):
    assert kit.run_hook(bash("ls"), cwd=checkout).stdout == b""


def test_the_launcher_beside_the_guard_is_our_command(kit, checkout):
    guard = kit.copy_guard(checkout)
    command = f'"{checkout / kit.SKILL}/scripts/debug-spyre" status'
    assert permission(kit.run_hook(bash(command), cwd=checkout, guard=guard)) == "allow"
    assert permission(kit.run_hook(bash(command), cwd=checkout)) is None  # another copy's launcher is not this one's


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b'{"hook_event_name":"PreToolUse","tool_input":[]}', b"\xff\xfe", b'{"cwd": 3}']
)
def test_an_event_that_is_none_never_breaks_the_guard(raw, kit, checkout):
    done = kit.run_hook(raw, cwd=checkout)
    assert done.returncode == 0
    assert permission(done) in ("ask", None)


def test_a_guard_that_fails_inside_asks_and_says_so(kit, checkout):
    broken = kit.copy_guard(checkout)
    judge = broken.parent / "debug_spyre/agent/guard/judge.py"
    assert "def judge_shell(" in judge.read_text()
    judge.write_text(judge.read_text().replace("def judge_shell(", "def judge_other(", 1))
    said = reply(kit.run_hook(bash("ls"), cwd=checkout, guard=broken))["hookSpecificOutput"]
    assert said["permissionDecision"] == "ask"
    assert "failed inside (NameError" in said["permissionDecisionReason"]
    assert "no rule was checked" in said["permissionDecisionReason"]


def hook_lines(kit):
    """The shell lines of the hooks, of the frontmatter and of the settings file."""
    from debug_spyre.agent.client_settings import hook_command

    text = (kit.ROOT / kit.SKILL / "SKILL.md").read_text()
    block = text.split("command: >-\n", 1)[1].split("  Stop:", 1)[0]
    line = " ".join(part.strip() for part in block.splitlines())
    return {"skill": line, "settings": hook_command("$CLAUDE_PLUGIN_ROOT/scripts")}


def run_line(line, checkout, path, root, event):
    env = {"CLAUDE_PROJECT_DIR": str(checkout), "CLAUDE_PLUGIN_ROOT": str(root), "PATH": path}
    text = json.dumps({"cwd": str(checkout), **event}).encode()
    return subprocess.run(["/bin/sh", "-c", line], input=text, capture_output=True, env=env)


@pytest.mark.parametrize("which", ["skill", "settings"])
def test_a_hook_that_cannot_run_at_all_asks_too(which, kit, checkout):
    """No Python at all, or no guard: it is said and asked."""
    line = hook_lines(kit)[which]
    for path, root in (("/usr/bin:/bin", checkout / "absent"), (str(checkout), checkout), (str(checkout), kit.ROOT)):
        assert permission(run_line(line, checkout, path, root, bash("ls"))) == "ask"


@pytest.mark.parametrize("which", ["skill", "settings"])
def test_the_hooks_line_runs_the_guard_also_where_only_the_environment_has_a_python(which, kit, checkout):
    line = hook_lines(kit)[which]
    (checkout / ".venv/bin").mkdir()
    (checkout / ".venv/bin/python").symlink_to(sys.executable)
    for path in (os.path.dirname(sys.executable), str(checkout)):
        assert permission(run_line(line, checkout, path, kit.ROOT, bash("pytest tests"))) == "deny"
        done = run_line(line, checkout, path, kit.ROOT, bash("ls"))
        assert (done.returncode, done.stdout) == (0, b"")


def test_an_older_python_in_front_is_passed_over(kit, checkout, tmp_path):
    """One that can't read the guard leaves its event to the next."""
    old = tmp_path / "bin/python3"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho SyntaxError >&2\nexit 1\n")
    old.chmod(0o755)
    (checkout / ".venv/bin").mkdir()
    (checkout / ".venv/bin/python").symlink_to(sys.executable)
    done = run_line(hook_lines(kit)["skill"], checkout, str(old.parent), kit.ROOT, bash("pytest tests"))
    assert permission(done) == "deny"


# -- Stop


def test_queued_rows_hold_an_agent_that_wants_to_stop(kit, checkout):
    kit.write_session(checkout, *ROWS)
    said = stop(kit, checkout)
    assert said["decision"] == "block"
    assert "2 rows queued (next: 1, rows wrap at 64)" in said["reason"]
    assert "hypothesis start 1" in said["reason"]


def test_a_row_in_progress_is_named(kit, checkout):
    kit.write_session(checkout, *ROWS, STARTED)
    assert "row 1 is in progress" in stop(kit, checkout)["reason"]


def test_rows_without_an_end_are_not_the_end(kit, checkout):
    done = ("hypothesis_dropped", {"number": 2, "reason": "same as 1"})
    kit.write_session(checkout, *ROWS, STARTED, CONCLUDED, done)
    assert "close blocked" in stop(kit, checkout)["reason"]


def test_it_holds_twice_for_one_state_and_again_once_something_happened(kit, checkout):
    kit.write_session(checkout, *ROWS)
    assert [bool(stop(kit, checkout, stop_hook_active=n > 0)) for n in range(4)] == [True, True, False, False]
    kit.write_session(checkout, *ROWS, STARTED, CONCLUDED)
    assert [bool(stop(kit, checkout)) for _ in range(3)] == [True, True, False]


def test_progress_of_a_run_is_no_new_state(kit, checkout):
    run = (
        "run_started",
        {"run": "r1", "verb": "run", "name": None, "argv": [], "output": "r1.txt", "supervisor": 2**22 + 1},
    )
    kit.write_session(checkout, *ROWS, run)
    assert [bool(stop(kit, checkout)) for _ in range(2)] == [True, True]
    kit.write_session(checkout, *ROWS, run, ("run_progressed", {"run": "r1", "done": 1, "failed": 0}))
    assert stop(kit, checkout) is None


def test_a_run_in_flight_lets_it_stop(kit, checkout):
    run = {"run": "r1", "verb": "run", "name": None, "argv": [], "output": "r1.txt", "supervisor": os.getpid()}
    kit.write_session(checkout, *ROWS, ("run_started", run))
    assert stop(kit, checkout) is None
    finished = ("run_finished", {"run": "r1", "status": "failed", "valid": True, "seconds": 1.0})
    kit.write_session(checkout, *ROWS, ("run_started", run), finished)
    assert stop(kit, checkout)


def test_a_run_whose_supervisor_died_is_not_in_flight(kit, checkout):
    run = {"run": "r1", "verb": "run", "name": None, "argv": [], "output": "r1.txt", "supervisor": 2**22 + 1}
    kit.write_session(checkout, *ROWS, ("run_started", run))
    assert stop(kit, checkout)


@pytest.mark.parametrize("status", ["resolved", "blocked"])
def test_a_closed_session_lets_it_stop(status, kit, checkout):
    kit.write_session(checkout, *ROWS, ("session_closed", {"status": status}))
    assert stop(kit, checkout) is None


def test_no_session_lets_it_stop(kit, checkout):
    assert stop(kit, checkout) is None


def test_a_session_of_another_client_holds_only_where_the_skill_is_in_use(kit, checkout):
    kit.write_session(checkout, *ROWS, client="another")
    assert stop(kit, checkout, args=["--project"]) is None
    assert stop(kit, checkout)


def test_a_torn_journal_is_read_as_far_as_it_goes(kit, checkout):
    kit.write_session(checkout, *ROWS, torn='{"v":1,"seq":9,"kind":"hypothesis_add')
    assert "2 rows queued" in stop(kit, checkout)["reason"]


def test_where_it_cannot_remember_it_holds_once(kit, checkout):
    folder = kit.write_session(checkout, *ROWS)
    (folder / ".stop-holds").mkdir()
    assert stop(kit, checkout)
    assert stop(kit, checkout, stop_hook_active=True) is None


def transcript(tmp_path, *texts):
    path = tmp_path / "transcript.jsonl"
    entries = [{"type": "user", "message": {"role": "user", "content": text}} for text in texts]
    entries.append(
        {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "pause"}]}}
    )
    entries.append({"type": "assistant", "message": {"content": [{"type": "text", "text": "pause"}]}})
    path.write_text("\n".join(json.dumps(e) for e in entries) + "\n")
    return str(path)


@pytest.mark.parametrize("text", ["Please pause here.", "stop", "hold on a moment", "OK that's enough for today!"])
def test_a_person_who_asks_for_a_pause_gets_it(text, kit, checkout, tmp_path):
    kit.write_session(checkout, *ROWS)
    assert stop(kit, checkout, transcript_path=transcript(tmp_path, "/debug-spyre it fails", text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "/debug-spyre the run halts: pause",
        "go on",
        "the loop stopped at 64, why? " * 20,
        "<task-notification>pause</task-notification>",
    ],
)
def test_other_words_are_no_pause(text, kit, checkout, tmp_path):
    kit.write_session(checkout, *ROWS)
    assert stop(kit, checkout, transcript_path=transcript(tmp_path, text))


def test_work_in_the_background_lets_it_wait_for_its_end(kit, checkout):
    kit.write_session(checkout, *ROWS)
    assert stop(kit, checkout, background_tasks=[{"id": "a", "status": "running"}]) is None
    assert stop(kit, checkout, background_tasks=[{"id": "a", "status": "completed"}])
    assert stop(kit, checkout, background_tasks=[])


def test_planning_is_not_held(kit, checkout):
    kit.write_session(checkout, *ROWS)
    assert stop(kit, checkout, permission_mode="plan") is None


# -- after compaction


def compacted(kit, checkout, **fields):
    event = {"hook_event_name": "SessionStart", "source": "compact", "session_id": "client-1", **fields}
    return reply(kit.run_hook(event, cwd=checkout))


def test_after_compaction_the_state_comes_back_as_facts(kit, checkout):
    summary = ("summary_noted", {"text": "the reduction stops early"})
    kit.write_session(checkout, *ROWS, STARTED, CONCLUDED, summary)
    said = compacted(kit, checkout)["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    text = said["additionalContext"]
    for part in (
        "debug-20261130-101112-rmsnorm-wide",
        "the reduction stops early",
        "1 queued, 1 ruled-out",
        "tests/a.py::t[1]",
    ):
        assert part in text


def tokens(text):
    """An upper bound: a word of up to four letters is one token, a longer one a token for each begun four; every other sign is one."""
    return sum(-(-len(word) // 4) if word.isalnum() else 1 for word in re.findall(r"[A-Za-z]+|\d{1,3}|\S", text))


def test_the_state_after_a_compaction_is_at_most_400_tokens(kit, checkout):
    """A session as big as they get: long texts everywhere, 40 rows."""
    long = "the reduction covers half of each row wider than 128 " * 20
    rows = [("hypothesis_added", {"number": n, "text": f"{n}: {long}", "test": "shadow"}) for n in range(1, 41)]
    kit.write_session(checkout, *rows, STARTED, ("summary_noted", {"text": long}))
    text = compacted(kit, checkout)["hookSpecificOutput"]["additionalContext"]
    assert "40" in text or "39 queued" in text
    assert "In progress: #1" in text
    assert tokens(text) <= 400, text


def test_a_command_that_gives_no_answer_is_said_after_a_compaction(kit, checkout):
    kit.write_session(checkout, *ROWS)
    guard = kit.copy_guard(checkout)  # beside a launcher that says nothing
    event = {"hook_event_name": "SessionStart", "source": "compact", "session_id": "client-1"}
    said = reply(kit.run_hook(event, cwd=checkout, guard=guard))["hookSpecificOutput"]["additionalContext"]
    assert "debug-20261130-101112-rmsnorm-wide is open" in said
    assert "debug-spyre doctor" in said


def test_after_compaction_without_a_session_nothing_is_said(kit, checkout):
    assert compacted(kit, checkout) is None


def test_after_compaction_the_commands_own_words_are_used_where_it_answers(kit, checkout):
    guard = kit.copy_guard(checkout)
    (checkout / kit.SKILL / "scripts/debug-spyre").write_text('#!/bin/sh\necho "words: $*"\n')
    kit.write_session(checkout, *ROWS)
    event = {"hook_event_name": "SessionStart", "source": "compact", "session_id": "client-1"}
    said = reply(kit.run_hook(event, cwd=checkout, guard=guard))["hookSpecificOutput"]["additionalContext"]
    assert "words: status --brief --session debug-20261130-101112-rmsnorm-wide" in said


def boundary(tmp_path, *stamps):
    path = tmp_path / "compacted.jsonl"
    entries = [{"type": "system", "subtype": "compact_boundary", "timestamp": stamp, "uuid": stamp} for stamp in stamps]
    path.write_text("".join(json.dumps(e) + "\n" for e in [{"type": "user"}, *entries, {"type": "user"}]))
    return str(path)


def test_the_first_call_after_a_compaction_brings_the_state_once(kit, checkout, tmp_path):
    kit.write_session(checkout, *ROWS)

    def call(command, *stamps):
        event = {**bash(command), "session_id": "client-1", "transcript_path": boundary(tmp_path, *stamps)}
        return (reply(kit.run_hook(event, cwd=checkout)) or {}).get("hookSpecificOutput", {})

    assert call("ls") == {}
    first = call("pytest tests", "one")
    assert first["permissionDecision"] == "deny"
    assert "debug-20261130-101112-rmsnorm-wide" in first["additionalContext"]
    assert call("ls", "one") == {}
    again = call("ls", "one", "two")
    assert "permissionDecision" not in again
    assert "debug-20261130-101112-rmsnorm-wide" in again["additionalContext"]
    assert call("ls", "one", "two") == {}


# -- start-up, reader


def test_starting_up_imports_no_more_than_it_needs(kit, checkout):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import debug_spyre.agent.guard.hooks; print(sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-IS", "-c", code, str(kit.ROOT / "scripts")], capture_output=True, text=True
    )
    loaded = set(re.findall(r"'([\w.]+)'", done.stdout))
    assert "debug_spyre.agent.guard.judge" in loaded, done.stderr
    assert not loaded & {"os", "re", "json", "dataclasses", "typing", "subprocess", "shlex", "debug_spyre.cli"}


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13"])
def test_it_runs_on_the_pythons_of_hosts(version, kit, checkout):
    """RHEL 9 brings 3.9. Where an interpreter of that version is here it runs; its syntax is checked in any case."""
    minor = int(version.partition(".")[2])
    for source in [kit.ROOT / "scripts/guard.py", *(kit.ROOT / "scripts/debug_spyre/agent/guard").glob("*.py")]:
        ast.parse(source.read_text(), feature_version=(3, minor))
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} here")
    for command, verdict in (("pytest tests", "deny"), ("debug-spyre status | tail", "allow"), ("git push", "ask")):
        assert permission(kit.run_hook(bash(command), cwd=checkout, python=found)) == verdict


def interpreter(version):
    """A Python of that version: on the PATH, or beside the one that runs this."""
    places = [
        shutil.which(f"python{version}"),
        *glob.glob(f"{os.path.dirname(sys.base_prefix)}/{version}.*/bin/python3"),
    ]
    for path in filter(None, places):
        done = subprocess.run(
            [path, "-IS", "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True
        )
        if done.stdout.strip() == f"(3, {version.partition('.')[2]})":
            return path
    return None


def test_a_python_that_is_too_old_leaves_the_event_to_the_next(kit):
    code = "import sys; sys.version_info = (3, 8, 0); import runpy; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run([sys.executable, "-IS", "-c", code, str(kit.ROOT / "scripts/guard.py")], capture_output=True)
    assert done.returncode == 1
    assert b"3.9" in done.stderr


PATHS = st.lists(st.sampled_from(["a", "b", "..", ".", "", "link", "missing", "to_b", "loop"]), max_size=6)


@settings(max_examples=150 * FACTOR, deadline=None)
@given(PATHS, st.booleans())
def test_property_the_light_path_reader_agrees_with_os(tmp_path_factory, parts, absolute):
    top = tmp_path_factory.getbasetemp() / "paths"
    if not top.exists():
        (top / "a/b").mkdir(parents=True)
        (top / "link").symlink_to("a")
        (top / "a/to_b").symlink_to(top / "a/b")
    path = os.path.join(str(top), "/".join(parts).lstrip("/")) if absolute else "/".join(parts)
    assert light.real(path) == os.path.realpath(path)


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=30)
SHELLISH = st.text(st.sampled_from(list("ab \t\n'\"\\`$(){}[]<>|&;#=-*!~")), max_size=60)


@settings(max_examples=150 * FACTOR, deadline=None)
@given(st.lists(WORDS.filter(lambda w: "=" not in w), min_size=1, max_size=5))
def test_property_words_survive_quoting_and_reading(guard, words):
    text = "x " + " ".join(guard.quote(word) for word in words)
    (command,) = guard.Reader(text).read()
    assert command.words == ["x", *words]


@settings(max_examples=300 * FACTOR, deadline=None)
@given(SHELLISH)
def test_property_the_reader_reads_or_refuses(guard, text):
    try:
        guard.Reader(text).read()
    except guard.ShellError:
        pass


@settings(max_examples=150 * FACTOR, deadline=None)
@given(SHELLISH, st.sampled_from([" ; pytest t.py", "\npytest t.py", " && pytest t.py"]))
def test_property_what_the_shell_would_run_is_not_hidden_by_what_stands_before(guard, before, last):
    """Whenever bash itself parses the text, and would get to the last command, the guard sees pytest there."""
    text = before + last
    parsed = subprocess.run(["bash", "-n", "-c", text], capture_output=True)
    if parsed.returncode or parsed.stderr:
        return
    shown = subprocess.run(["bash", "-c", "f() {\n" + text + "\n}; declare -f f"], capture_output=True, text=True)
    if shown.returncode or not re.search(r"^\s*(\S.* && )?pytest t\.py;?$", shown.stdout, re.MULTILINE):
        return  # inside quotes, a comment, a here-document or an argument of something else
    try:
        names = [c.words[0] for c in guard.Reader(text).read() if c.words]
    except guard.ShellError:
        return  # asked
    assert "pytest" in names, (text, names)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=100 * FACTOR, deadline=None)
@given(JSON, st.text(max_size=5))
def test_property_the_light_json_reader_agrees_with_json(guard, value, rest):
    text = json.dumps(value)
    assert guard.parse_json(" " + text + "\n") == value
    for other in (text + rest, text[:-1], rest):
        try:
            wanted = json.loads(other)
        except ValueError:
            with pytest.raises(ValueError):
                guard.parse_json(other)
        else:
            assert guard.parse_json(other) == wanted or wanted != wanted


@settings(max_examples=50 * FACTOR, deadline=None)
@given(JSON)
def test_property_answers_are_json(guard, value):
    assert json.loads(guard.to_json({"outer": value})) == {"outer": value}
