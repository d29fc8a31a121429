"""Runs through the command: kept, recorded, followed, ended; the caller's death changes nothing."""

import json
import os
import signal
import sys
import time

import pytest
from tests.runs.conftest import MAIN, Place, alive, state_of, until

TESTS = """
import pytest
@pytest.mark.parametrize("x", ["a b", "::", "[(q=1,kv=2)]", "</script>"])
def test_ok(x):
    print("said", x)
def test_bad():
    assert 1 == 2
@pytest.mark.upstream
def test_upstream():
    assert False
"""


def test_a_run_keeps_its_output_records_itself_and_returns_pytests_own_status(place):
    place.write("test_it.py", TESTS)
    done = place.json("run", "--as", "baseline", "test_it.py")
    assert done["status_of_process"] == 1 and done["exit"] == 1
    assert done["status"] == "failed" and done["valid"] is True
    assert done["counts"] == {"passed": 4, "failed": 1, "errors": 0, "skipped": 0, "xfailed": 0, "xpassed": 0}
    assert done["scope"]["collected"] == 5 and done["scope"]["selected"][0] == "test_it.py::test_ok[a b]"
    assert done["name"] == "baseline" and done["output"].endswith("/baseline.txt")
    assert [f["nodeid"] for f in done["failures"]] == ["test_it.py::test_bad"]
    started, finished = place.events("run_started")[0], place.events("run_finished")[0]
    assert started["seq"] < finished["seq"] and started["run"] == finished["run"] == "r1"
    assert started["tree_digest"] == finished["tree_digest"]
    output = open(done["output"]).read()
    assert "1 failed, 4 passed, 1 deselected" in output and "E       assert 1 == 2" in output
    assert os.stat(done["output"]).st_mode & 0o777 == 0o600


def test_a_second_use_of_a_name_takes_the_next_file(place):
    place.write("test_it.py", "def test_a(): pass\n")
    first = place.json("run", "--as", "baseline", "test_it.py")
    stem = os.path.basename(os.path.dirname(first["output"]))
    again = place.json("run", "--as", "baseline", "test_it.py", "--session", stem)
    other = place.json("run", "test_it.py", "--session", stem)
    assert [os.path.basename(x["output"]) for x in (first, again, other)] == [
        "baseline.txt",
        "baseline-2.txt",
        "r3.txt",
    ]


def test_exec_keeps_the_status_of_its_command_and_the_order_of_its_streams(place):
    script = "import sys\nfor n in range(5):\n print('o', n); print('e', n, file=sys.stderr)\nsys.exit(42)"
    done = place.json("exec", "--as", "cpu-control", "--", sys.executable, "-c", script)
    assert done["status_of_process"] == 42 and done["status"] == "failed"
    assert open(done["output"]).read() == "".join(f"o {n}\ne {n}\n" for n in range(5))


def test_a_command_killed_by_a_signal_answers_128_and_the_number(place):
    done = place.json("exec", "--", "sh", "-c", "kill -SEGV $$")
    assert done["status"] == "killed" and done["exit"] == -11 and done["status_of_process"] == 139


def test_a_command_that_is_not_there_is_said_and_leaves_the_card_free(place):
    done = place.json("exec", "--", "no such command")
    assert done["status_of_process"] == 127 and "no such command" in done["warnings"][0]
    assert place.json("lock")["held"] is False


def test_words_after_two_dashes_are_the_commands_own(place):
    done = place.json("exec", "--", "echo", "--json", "--as", "x", "--")
    assert open(done["output"]).read() == "--json --as x --\n"
    refused = place.call("exec", "echo", "x")
    assert refused.returncode == 64 and "next: debug-spyre exec -- echo x" in refused.stderr


def test_a_run_that_outlives_its_foreground_answers_79_and_wait_finishes_it(place):
    command, ready = place.hold(seconds=2)
    begun = place.call("exec", "--foreground", "0.6", "--", *command)
    assert begun.returncode == 79
    assert "next: debug-spyre wait r1 --session " in begun.stdout
    stem = begun.stdout.split("--session ")[1].split()[0]
    done = place.json("wait", "r1", "--session", stem)
    assert done["status"] == "passed" and done["status_of_process"] == 0


def test_under_an_agents_client_nothing_is_said_meanwhile(place):
    place.write("test_it.py", "def test_a(): pass\n")
    done = place.call("run", "test_it.py", env={"CLAUDECODE": "1"})
    assert done.returncode == 0 and done.stderr == ""
    assert len(done.stdout.encode()) <= 1500
    assert [e["by"] for e in place.events()] == ["agent", "agent"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_the_callers_death_does_not_end_the_run(place, number):
    command, ready = place.hold(seconds=1.5)
    caller = place.start("exec", "--", *command)
    until(ready.exists, what="the command")
    caller.send_signal(number)
    caller.communicate()
    done = place.json("wait")
    assert done["status"] == "passed" and open(done["output"]).read() == "holding\n"


def test_a_client_that_waits_for_its_childs_pipes_is_not_held_up(place):
    """The supervisor keeps neither the caller's standard streams nor its descriptors."""
    command, ready = place.hold(seconds=20)
    caller = place.start("exec", "--", *command)
    until(ready.exists)
    caller.kill()
    began = time.monotonic()
    caller.communicate(timeout=10)  # end of file on both pipes
    assert time.monotonic() - began < 8
    assert alive(int(ready.read_text()))
    assert place.call("stop").returncode == 0


def test_ctrl_c_of_a_person_ends_the_run(place):
    command, ready = place.hold(seconds=60)
    caller = place.start("exec", "--", *command)
    until(ready.exists)
    caller.send_signal(signal.SIGINT)
    out, err = caller.communicate(timeout=60)
    assert caller.returncode == 130 and "interrupted" in out
    assert not alive(int(ready.read_text()))
    assert place.events("run_finished")[0]["status"] == "interrupted"
    assert place.events("run_finished")[0]["valid"] is False


def test_stop_ends_a_job_with_all_that_it_started(place):
    command, ready = place.hold("fork", seconds=60)
    assert place.call("exec", "--foreground", "0.1", "--", *command).returncode == 79
    until(ready.exists)
    done = place.call("stop")
    assert done.returncode == 0 and "interrupted" in done.stdout
    assert not alive(int(ready.read_text()))
    assert "is not running" in place.call("stop").stdout


def test_the_total_timeout_names_the_test_and_answers_124(place):
    place.write("test_it.py", "import time\ndef test_quick(): pass\ndef test_slow(): time.sleep(60)\n")
    done = place.json("run", "test_it.py", "--timeout", "4")
    assert done["status"] == "timeout" and done["status_of_process"] == 124
    assert any("test_it.py::test_slow" in w for w in done["warnings"])
    assert done["counts"]["passed"] == 1, "what was seen before the end is kept"


def test_a_stall_kills_only_when_asked_to_and_names_the_test(place):
    place.write(
        "test_it.py",
        "import time, pytest\n@pytest.mark.parametrize('w', ['its bits'])\ndef test_silent(w): time.sleep(60)\n",
    )
    done = place.json("run", "test_it.py", "--stall", "6")
    assert done["status"] == "stalled" and done["status_of_process"] == 76
    assert any("the call of test_it.py::test_silent[its bits]" in w for w in done["warnings"])


def test_before_a_run_that_hangs_is_ended_its_stacks_are_in_the_output(place):
    """Threads and forked children as well, no line mixed with another; a process that isn't the recorder's is sent nothing."""
    place.write(
        "test_it.py",
        "import os, subprocess, sys, threading, time\n"
        "def waits_in_a_thread(): time.sleep(60)\ndef waits_in_a_child(deep=60):\n"
        "    time.sleep(60) if deep == 0 else waits_in_a_child(deep - 1)\n"
        "def test_hangs():\n"
        "    threading.Thread(target=waits_in_a_thread, daemon=True).start()\n"
        "    for _ in range(3):\n"
        "        if os.fork() == 0: waits_in_a_child()\n"
        "    other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "    print('other ended with', other.wait(), file=sys.__stderr__)\n"
        "    time.sleep(60)\n",
    )
    done = place.json("run", "test_it.py", "--stall", "12")
    output = open(done["output"]).read()
    stacks = output.partition("stacks before the run was ended\n")[2]
    assert stacks.count("in test_hangs\n") == 4 and stacks.count("in waits_in_a_thread\n") == 1
    assert stacks.count("in waits_in_a_child\n") == 3 * 61
    assert "other ended with -10" not in output
    assert any("stacks of all threads" in w for w in done["warnings"])


@pytest.mark.parametrize(("text", "given", "seen"), [("os.environ.get('TORCH_SPYRE_FFDC')", {}, "1"), ("", {}, "-"),
    ("os.environ.get('TORCH_SPYRE_FFDC')", {"TORCH_SPYRE_FFDC": "0"}, "0")])  # fmt: skip
def test_first_failure_reports_are_on_where_the_version_knows_them(place, text, given, seen):
    (place.packages / "torch_spyre").mkdir()
    (place.packages / "torch_spyre/__init__.py").write_text(f"import os\n{text}\n")
    place.write("test_it.py", f"import os\ndef test_it(): assert os.environ.get('TORCH_SPYRE_FFDC', '-') == {seen!r}\n")
    assert place.json("run", "test_it.py", env=given)["status"] == "passed"


def test_a_run_records_its_cards(place):
    place.write("test_it.py", "def test_it(): pass\n")
    place.json("run", "test_it.py", env={"PCIDEVICE_IBM_COM_AIU_VF": "0000:1a:00.1"})
    cards = place.events("run_started")[0]["provenance"]["cards"]
    assert cards == [{"device": str(place.device), "address": None, "function": "VF"}]


@pytest.mark.parametrize("how", ["fork", "spawn", "orphan"])
def test_nothing_of_a_run_stays_behind(place, how):
    command, ready = place.hold(how, seconds=4 if how != "orphan" else 60)
    done = place.json("exec", "--timeout", "2", "--", *command)
    assert done["status"] == ("passed" if how == "orphan" else "timeout")
    assert not alive(int(ready.read_text()))
    assert place.json("exec", "--no-wait", "--", *place.hold(seconds=0)[0])["status"] == "passed"


def test_a_process_that_ignores_term_is_killed_after_the_grace(place):
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); time.sleep(60)"
    done = place.json("exec", "--timeout", "1", "--", sys.executable, "-c", script, env={"DEBUG_SPYRE_GRACE": "0.5"})
    assert done["status"] == "timeout" and done["exit"] == -9


def test_a_foreign_holder_of_the_device_is_named_and_never_signalled(place):
    import subprocess

    command, ready = place.hold(seconds=60)
    foreign = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until(ready.exists)
        done = place.call("exec", "--no-wait", "--", "true")
        assert done.returncode == 75 and f"pid {foreign.pid}" in done.stderr and "--reap" in done.stderr
        assert foreign.poll() is None
        assert not place.events(), "a run that never began leaves nothing"
        assert place.json("exec", "--no-wait", "--reap", "--", "true")["status"] == "passed"
        assert foreign.wait(10) == -15
    finally:
        foreign.kill()
        foreign.wait()


def test_a_holder_that_stays_makes_77_and_the_next_start_is_refused(place):
    """A process that left the family altogether: as with one that the kernel does not let go."""
    command, ready = place.hold(seconds=60)
    # started by another parent beforehand, it takes the device when the run's command tells it to
    import subprocess

    waiting = subprocess.Popen(
        ["sh", "-c", f"while [ ! -e go ]; do sleep 0.05; done; exec {_join(command)}"],
        cwd=place.checkout,
        stdout=subprocess.DEVNULL,
    )
    try:
        script = f"touch go; while [ ! -e {_join([str(ready)])} ]; do sleep 0.05; done"
        done = place.json("exec", "--", "sh", "-c", script, env={"DEBUG_SPYRE_RELEASE": "0.5"})
        assert done["status"] == "orphans" and done["status_of_process"] == 77
        assert f"pid {waiting.pid}" in done["holders"][0]
        assert place.json("lock")["held"] is False
        assert place.call("exec", "--no-wait", "--", "true").returncode == 75
    finally:
        waiting.kill()
        waiting.wait()
    assert place.json("exec", "--", "true")["status"] == "passed"


def _join(words):
    import shlex

    return shlex.join(words)


def test_no_wait_answers_75_and_names_the_holder_and_a_waiter_gets_the_card(place):
    command, ready = place.hold(seconds=60)
    assert place.call("exec", "--foreground", "0.1", "--", *command).returncode == 79
    until(ready.exists)
    stem = place.folders()[0].name
    refused = place.call("exec", "--no-wait", "--", "true")
    assert refused.returncode == 75 and "held by" in refused.stderr and "target.py" in refused.stderr
    assert place.call("exec", "--wait", "0.5", "--", "true").returncode == 75
    assert place.json("lock")["holder"]["run"] == "r1"
    waiter = place.start("exec", "--wait", "60", "--", "true")
    until(lambda: state_of(place).get("state") == "waiting")
    assert place.call("stop", "r1", "--session", stem).returncode == 0
    out, _ = waiter.communicate(timeout=20)
    assert waiter.returncode == 0, out


def test_a_refused_run_without_a_session_leaves_no_folder(place):
    command, ready = place.hold(seconds=60)
    assert place.call("exec", "--foreground", "0.1", "--", *command).returncode == 79
    until(ready.exists)
    place.write("test_it.py", "def test_it():\n    pass\n")
    there = sorted((place.logs / "triage").iterdir())
    for words in (["exec", "--no-wait", "--", "true"], ["triage", "--no-wait", "test_it.py"]):
        assert place.call(*words).returncode == 75
        assert sorted((place.logs / "triage").iterdir()) == there
    place.call("stop", "r1", "--session", there[0].name)


@pytest.mark.parametrize("count", [9, 57, 58, 4000])
def test_exec_shows_the_last_lines_of_its_command_says_what_it_cut_and_shows_no_secrets(place, count):
    script = f"import os\nfor n in range({count}): print('line', n)\nprint()\nprint('x' * 900)\nprint('the token is', os.environ['MY_TOKEN'])"
    words = ("exec", "--", sys.executable, "-c", script)
    done = place.call(*words, env={"MY_TOKEN": "very-secret-text"})
    shown = [line for line in done.stdout.splitlines() if line.startswith("  | ")]
    if count + 2 <= 60:
        assert shown[:2] == ["  | line 0", "  | line 1"] and len(shown) == count + 2
    else:
        assert "cut: earlier lines" in shown[0] and shown[1] == f"  | line {count - 58}" and len(shown) == 61
    assert "very-secret-text" not in done.stdout and max(map(len, shown)) <= 210


def test_a_run_of_tests_shows_no_tail(place):
    place.write("test_it.py", "def test_it():\n    print('no')\n")
    assert place.json("run", "test_it.py")["tail"] == []


def test_a_mistyped_number_of_seconds_costs_no_run(place):
    for value in ("ten", "", "-1", "nan", "inf"):
        env = {f"DEBUG_SPYRE_{name}": value for name in ("GRACE", "QUIET", "RELEASE")}
        assert place.json("exec", "--", "true", env=env)["status"] == "passed", value


def test_words_that_are_not_utf8_reach_the_command_byte_for_byte(place):
    script = "import os, sys; sys.exit(os.fsencode(sys.argv[1]) != b'caf\\xe9')"
    assert place.call("exec", "--", sys.executable, "-c", script, os.fsdecode(b"caf\xe9")).returncode == 0


def test_a_run_that_was_only_reserved_is_no_run_to_wait_for(place):
    """The caller was killed between the number and the job."""
    assert place.call("exec", "--", "true").returncode == 0
    runs = next(place.logs.rglob("runs"))
    (runs / "r2").mkdir()
    assert place.json("wait")["run"] == "r1"
    assert place.json("exec", "--session", runs.parent.name, "--", "true")["run"] == "r3"


def test_nested_use_inside_a_held_lock_passes_through(place):
    inner = [sys.executable, "-c", MAIN, "exec", "--no-wait", "--", "echo", "inside"]
    done = place.call("lock", "--", *inner)
    assert done.returncode == 0, done.stderr
    assert place.events("run_finished")[0]["status"] == "passed"
    # Python closes descriptors on the way: then the ancestor that holds the lock is looked for
    script = f"import subprocess, sys; sys.exit(subprocess.run({inner!r}).returncode)"
    assert place.json("exec", "--", sys.executable, "-c", script)["status_of_process"] == 0


def test_a_forged_mark_of_a_held_lock_does_not_open_it(place):
    command, ready = place.hold(seconds=60)
    place.call("exec", "--foreground", "0.1", "--", *command)
    until(ready.exists)
    lock = next(place.locks.iterdir()).stat()
    forged = {"DEBUG_SPYRE_LOCK_FDS": f"0:{lock.st_dev}:{lock.st_ino}"}
    assert place.call("exec", "--no-wait", "--", "true", env=forged).returncode == 75
    for broken in ("x", "1:2", "a:b:c", ",:,::"):
        assert place.call("exec", "--no-wait", "--", "true", env={"DEBUG_SPYRE_LOCK_FDS": broken}).returncode == 75
    place.call("stop", "--session", place.folders()[0].name)


def test_lock_with_a_command_keeps_its_status_and_its_streams(place):
    done = place.call("lock", "--", "sh", "-c", "cat; echo err >&2; exit 5", stdin=None)
    assert done.returncode == 5 and done.stderr == "err\n"


def test_a_run_belongs_to_the_cwd_of_its_caller(place):
    place.write("sub/test_it.py", "def test_a(): pass\n")
    done = place.json("run", "test_it.py", cwd=place.checkout / "sub")
    assert done["status"] == "passed", done


def test_environment_overrides_reach_the_command_and_the_journal(place):
    done = place.json(
        "exec", "--env", "A_B=x=y", "--env", "Q=1", "--", "sh", "-c", "env | grep -a '^A_B='; echo $Q $DEBUG_SPYRE_RUN"
    )
    assert open(done["output"]).read() == "A_B=x=y\n1 r1\n"
    assert place.events("run_started")[0]["env"] == {"A_B": "x=y", "Q": "1"}
    assert place.call("exec", "--env", "novalue", "--", "true").returncode == 64


@pytest.mark.parametrize(
    "words",
    [
        ["run", "-n", "4"],
        ["run", "-k", "a(b=1)"],
        ["exec", "--", "pytest", "-n4"],
        ["exec", "--", sys.executable, "-m", "pytest", "--dist=each"],
        ["run", "--as", "../x"],
        ["run", "--hypothesis", "3"],
        ["run", "--members"],
        ["run", "--cards", "no-such"],
    ],
)
def test_a_refused_call_writes_nothing(place, words):
    done = place.call(*words)
    assert done.returncode == 64 and "next: " in done.stderr
    assert len(done.stderr.splitlines()) <= 4
    assert not place.logs.exists()


def test_addopts_in_the_environment_obey_the_same_rules(place):
    done = place.call("run", env={"PYTEST_ADDOPTS": "-n 2"})
    assert done.returncode == 64 and "PYTEST_ADDOPTS" in done.stderr


def test_xdist_in_an_ini_file_is_refused_by_the_plugin(place):
    pytest.importorskip("xdist")
    place.write("pytest.ini", "[pytest]\naddopts = -n 2\n")
    place.write("test_it.py", "def test_a(): pass\n")
    done = place.json("run", "test_it.py", env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""})
    assert done["status"] == "error" and done["valid"] is False
    assert "xdist starts several processes" in open(done["output"]).read()


def test_outside_a_checkout_there_is_one_line_and_status_69(place, tmp_path):
    done = place.call("run", cwd=tmp_path)
    assert done.returncode == 69 and "not inside a git checkout" in done.stderr


def test_the_supervisor_imports_no_torch_and_keeps_no_descriptor_of_its_caller(place, tmp_path):
    command, ready = place.hold(seconds=30)
    secret = open(tmp_path / "secret", "w")
    caller = place.start("exec", "--foreground", "0.2", "--", *command, pass_fds=(secret.fileno(),))
    caller.communicate()
    until(ready.exists)
    pid = state_of(place)["supervisor"]
    links = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
    assert not any("secret" in link or "pipe" in link for link in links), links
    assert "libtorch" not in open(f"/proc/{pid}/maps").read()
    place.call("stop")


def test_progress_is_said_in_lines_where_there_is_no_terminal_and_rewritten_in_one(place):
    import pty

    place.write("test_it.py", "import time\ndef test_slow(): time.sleep(1.5)\ndef test_b(): pass\n")
    main, other = pty.openpty()
    process = place.start("run", "test_it.py", stdout=-1, stderr=other)
    os.close(other)
    said = b""
    while True:
        try:
            data = os.read(main, 4096)
        except OSError:
            break
        if not data:
            break
        said += data
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"\r\x1b[K" in said and b"0/2 done" in said and b"test_it.py::test_slow" in said
    assert "\x1b" not in out


def test_a_killed_supervisor_leaves_a_lost_run_whose_results_are_kept(place):
    place.write("test_it.py", "import time\ndef test_one(): assert 0, 'seen'\ndef test_two(): time.sleep(60)\n")
    assert place.call("run", "test_it.py", "--foreground", "0.1").returncode == 79
    until(
        lambda: (
            place.logs.rglob("results.jsonl")
            and any('"test_it.py::test_two", "at"' in p.read_text() for p in place.logs.rglob("results.jsonl"))
        )
    )
    state = state_of(place)
    os.kill(state["supervisor"], signal.SIGKILL)
    assert alive(state["child"])
    lock = next(place.locks.iterdir())
    assert place.json("lock")["held"] is True, "the child still holds the lock"
    done = place.json("wait")
    assert done["status"] == "lost" and done["valid"] is False
    assert [f["nodeid"] for f in done["failures"]][:1] == ["test_it.py::test_one"]
    assert not alive(state["child"])
    assert place.json("lock")["held"] is False and lock.exists()
    assert place.json("exec", "--no-wait", "--", "true")["status"] == "passed"


def test_the_next_card_verb_of_another_checkout_ends_what_a_dead_supervisor_left(place, tmp_path):
    command, ready = place.hold("spawn", seconds=120)
    place.call("exec", "--foreground", "0.1", "--", *command)
    until(ready.exists)
    os.kill(state_of(place)["supervisor"], signal.SIGKILL)
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    env = {k: place.env[k] for k in ("DEBUG_SPYRE_DEVICES", "DEBUG_SPYRE_LOCK_DIR")}
    assert other.json("exec", "--wait", "30", "--", "true", env=env)["status"] == "passed"
    assert not alive(int(ready.read_text()))
    assert place.events("run_finished")[0]["status"] == "lost"


def test_two_supervisors_never_give_one_number_twice(place):
    first = place.json("exec", "--", "true")
    stem = os.path.basename(os.path.dirname(first["output"]))
    several = [place.start("exec", "--session", stem, "--json", "--", "true") for _ in range(5)]
    ids = [json.loads(p.communicate(timeout=120)[0])["run"] for p in several]
    assert sorted(ids) == ["r2", "r3", "r4", "r5", "r6"]
    assert len(place.events("run_finished")) == 6


def test_a_run_that_still_goes_on_tells_how_far_it_is(place):
    place.write("test_it.py", "import time\ndef test_bad(): assert 0\ndef test_slow(): time.sleep(60)\n")
    assert place.call("run", "test_it.py", "--foreground", "0.1").returncode == 79
    until(lambda: any('"test_it.py::test_slow", "at"' in p.read_text() for p in place.logs.rglob("results.jsonl")))
    text = place.call("wait", "--foreground", "0.1")
    assert text.returncode == 79 and "1/2 done, 1 failing" in text.stdout and "in test_it.py::test_slow" in text.stdout
    told = place.json("wait", "--foreground", "0.1")
    assert told["status"] == "running" and told["progress"]["collected"] == 2 and told["counts"] is None
    place.call("stop")


def test_silence_is_a_warning_with_the_tests_name_and_kills_nothing(place):
    place.write("test_it.py", "import time\ndef test_silent(): time.sleep(3)\n")
    done = place.call("run", "test_it.py", env={"DEBUG_SPYRE_QUIET": "1"})
    assert done.returncode == 0 and "no output and no result for" in done.stderr
    assert "the call of test_it.py::test_silent" in done.stdout


def test_stop_ends_a_job_that_still_waits_for_the_card(place):
    command, ready = place.hold(seconds=60)
    place.call("exec", "--foreground", "0.1", "--", *command)
    until(ready.exists)
    waiter = place.call("exec", "--foreground", "1", "--", "true")
    assert waiter.returncode == 79 and "waits for the card, held by" in waiter.stdout
    stem = waiter.stdout.split("--session ")[1].split()[0]
    stopped = place.call("stop", "--session", stem)
    assert stopped.returncode == 0 and "before it began" in stopped.stdout
    assert place.call("stop").returncode == 0
    assert [e["kind"] for e in place.events()] == ["run_started", "run_finished"]


def test_the_command_sees_the_umask_and_the_relative_places_of_its_caller(place):
    env = {"DEBUG_SPYRE_LOCK_DIR": "locks here", "DEBUG_SPYRE_PYTHON": "../env/bin/python"}
    before = os.umask(0o027)
    try:
        done = place.json("exec", "--", "sh", "-c", "umask", env=env)
    finally:
        os.umask(before)
    assert open(done["output"]).read().strip() == "0027"
    assert list((place.checkout / "locks here").iterdir())
    place.write("sub/test_it.py", "def test_a(): pass\n")
    assert (
        place.json("run", "test_it.py", cwd=place.checkout / "sub", env={"DEBUG_SPYRE_PYTHON": "../../env/bin/python"})[
            "status"
        ]
        == "passed"
    )
