"""A matrix over the cards of a host: every test once, in the order of collection; cards that fail are named."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.fleet.conftest import plain_file
from tests.runs.conftest import alive, until


def evidence_of(host):
    (path,) = host.logs.rglob("evidence.json")
    return json.loads(path.read_text())


def outcomes(host):
    return {t["nodeid"]: t["outcome"] for t in evidence_of(host)["tests"]}


def series_of(host):
    return json.loads(next(host.logs.rglob("series.json")).read_text())


def expected(files, tests):
    return [f"{name}::test_{n}" for name in files for n in range(tests)]


def test_every_test_runs_once_and_the_result_is_in_the_order_of_collection(host):
    names = [f"test_{letter}.py" for letter in "abcdef"]
    for name in names:
        host.write(name, plain_file(3, 0.05, fails=(1,) if name == "test_c.py" else ()))
    done = host.call("triage", "--cards", "3", *names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert evidence_of(host)["selected"] == expected(names, 3)
    assert outcomes(host) == {n: "failed" if n == "test_c.py::test_1" else "passed" for n in expected(names, 3)}
    ran = host.traced()
    assert {tuple(cards) for _, cards, _ in ran} <= {(0,), (1,), (2,)} and len({pid for pid, *_ in ran}) >= 3
    (end,) = host.events("run_finished")
    assert end["valid"] and end["status"] == "failed", end
    data = series_of(host)["data"]
    assert sorted(f for s in data["sequences"] for f in s["files"]) == names
    assert data["out"] == {} and "the code, not the card" in " ".join(series_of(host)["lines"])


def test_a_file_stays_on_one_card_whole(host):
    for letter in "abcd":
        host.write(f"test_{letter}.py", plain_file(4, 0.02))
    host.call("triage", "--cards", "all", ".")
    by_file = {}
    for pid, cards, nodeid in host.traced():
        by_file.setdefault(nodeid.partition("::")[0], set()).add((pid, *cards))
    assert len(by_file) == 4 and all(len(places) == 1 for places in by_file.values())


@pytest.mark.parametrize(("nature", "more"), [("lies", ()), ("breaks", ()), ("dies", ()), ("hangs", ("--stall", "3"))])
def test_a_bad_card_is_taken_out_and_named_and_its_files_run_elsewhere(host, nature, more):
    names = [f"test_{letter}.py" for letter in "abcdef"]
    for name in names:
        host.write(name, plain_file(2, 0.1))
    done = host.call("triage", "--cards", "3", *more, *names, env={"HOST_NATURE": json.dumps({"1": nature})})
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(outcomes(host).values()) == {"passed"} and evidence_of(host)["selected"] == expected(names, 2)
    made = series_of(host)
    assert list(made["data"]["out"]) == ["card 1"], made
    assert "card 1 (" in " ".join(made["lines"]) and "the card, not the code" in " ".join(made["lines"])


def test_a_crash_of_the_code_is_one_on_every_card_and_no_card_is_blamed(host):
    host.write("test_a.py", plain_file(2) + "\ndef test_kill(card):\n    import os; os.kill(os.getpid(), 11)\n")
    host.write("test_b.py", plain_file(2))
    done = host.call("run", "--cards", "2", "test_a.py", "test_b.py")
    assert done.returncode == 128 + 11, done.stdout + done.stderr
    assert outcomes(host) == {
        **{n: "passed" for n in expected(["test_a.py", "test_b.py"], 2)}, "test_a.py::test_kill": "crashed",
    }  # fmt: skip
    assert series_of(host)["data"]["out"] == {}


def test_tests_that_need_several_cards_get_them_in_order(host):
    marked = "import pytest, time\n@pytest.mark.cards(2)\ndef test_two(card):\n    assert len(card.cards) == 2\n"
    by_parameter = "import pytest\n@pytest.mark.parametrize('tp_size', [4])\ndef test_four(card, tp_size):\n    assert card.cards == sorted(card.cards) and len(card.cards) == 4\n"
    host.write("pytest.ini", "[pytest]\nmarkers = cards\n")
    host.write("test_marked.py", marked)
    host.write("test_parameter.py", by_parameter)
    for letter in "abcdef":
        host.write(f"test_{letter}.py", plain_file(2, 0.1))
    done = host.call("triage", "--cards", "4", ".")
    assert done.returncode == 0 and set(outcomes(host).values()) == {"passed"}, done.stdout + done.stderr


def test_a_card_that_another_holds_is_left_out_and_named(host):
    for letter in "abc":
        host.write(f"test_{letter}.py", plain_file(2))
    code = f"import fcntl, os, time; d = os.open({host.devices[0]!r}, os.O_RDWR); fcntl.flock(d, 2); print('held', flush=True); time.sleep(60)"
    other = subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        done = host.json("run", "--cards", "3", ".")
    finally:
        other.kill()
        other.wait()
    assert done["status"] == "passed", done
    assert any("card 0" in w and f"pid {other.pid}" in w for w in done["warnings"]), done["warnings"]
    assert {tuple(cards) for _, cards, _ in host.traced()} <= {(1,), (2,)}  # a quick process may take all files


def test_validate_repeats_the_sequences_of_the_cards_also_on_fewer(host):
    """State crosses from file to file: after the fix each sequence runs as it did before it."""
    names = [f"test_{letter}.py" for letter in "abcd"]
    for name in names:
        host.write(name, plain_file(2, 0.05))
    host.write("test_c.py", "import code_under_test\ndef test_0(card):\n    assert code_under_test.VALUE == 2\n")
    host.write("code_under_test.py", "VALUE = 1\n")
    subprocess.run(["git", "-C", str(host.checkout), "add", "."], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(host.checkout), *who, "commit", "-qm", "x"], check=True)
    host.call("triage", "--cards", "3", *names)
    before = series_of(host)["data"]["sequences"]
    opened = host.call("open", "it", "--cluster", "c1")
    assert opened.returncode == 0, opened.stdout + opened.stderr
    assert host.call("run", "--members", "--as", "baseline").returncode == 1
    host.write("code_under_test.py", "VALUE = 2\n")
    done = host.call("validate", env={"SPYRE_DEVICES": "0,1"}, timeout=200)
    folder = next(p for p in host.folders() if p.parent.name != "triage")
    made = [json.loads(p.read_text())["data"]["sequences"] for p in sorted(folder.rglob("series.json"))]
    assert len(made) == 2, (
        done.stdout
        + done.stderr
        + opened.stdout
        + json.dumps(
            [
                (e["kind"], e.get("name"), e.get("status"), e.get("valid"), e.get("members_only"), e.get("warnings"))
                for e in host.events()
                if e["kind"].startswith("run_")
            ]
        )
    )
    assert (
        sorted(s["files"] for s in made[0]) == sorted(s["files"] for s in made[1]) == sorted(s["files"] for s in before)
    )


def test_the_simulated_host_tells_of_two_processes_on_one_card(host):
    """What the kill matrix looks for is seen where it happens: here past our lock."""
    host.write("test_a.py", plain_file(1, 3))
    words = [sys.executable, "-m", "pytest", "-q", "test_a.py"]
    both = [subprocess.Popen(words, cwd=host.checkout, env=host.env, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert sorted(process.wait(timeout=60) for process in both) == [0, 1] and len(host.busy()) == 1


@pytest.mark.parametrize(
    "victim", ["process", *(pytest.param(v, marks=pytest.mark.slow) for v in ("caller", "supervisor", "driver"))]
)
def test_kill_anything_and_no_card_has_two_holders_and_nothing_stays(host, victim):
    for letter in "abcd":
        host.write(f"test_{letter}.py", plain_file(2, 1.5))
    caller = host.start("run", "--cards", "4", ".")
    until(lambda: host.trace.exists() and len({p for p, *_ in host.traced()}) == 4, what="four cards at work")
    pids = sorted({pid for pid, *_ in host.traced()})
    state = json.loads(next(host.logs.rglob("state.json")).read_text())
    which = {"caller": caller.pid, "supervisor": state["supervisor"], "driver": state["child"], "process": pids[0]}[
        victim
    ]
    os.kill(which, signal.SIGKILL)
    caller.communicate(timeout=90)
    done = host.json("run", "--cards", "4", "test_a.py")  # comes in only when every card is free again
    assert done["status"] == "passed", done
    until(lambda: not any(alive(pid) for pid in pids), 20, "the end of the first run's processes")
    assert not host.busy(), "two processes met on one card"
    if victim == "process":
        first = [t for e in host.logs.rglob("evidence.json") for t in json.loads(e.read_text())["tests"]]
        assert len([t for t in first if t["outcome"] == "passed"]) >= 8


@pytest.mark.parametrize(
    ("words", "env", "status", "says"),
    [
        (["--cards", "9"], {}, 64, "asks for 9 cards"),
        (["--cards", "0,11"], {}, 64, "no card 11"),
        (["--cards", "all", "-x"], {}, 64, "-x stops"),
        (["--cards", "all"], {"DEBUG_SPYRE_DEVICES": ""}, 69, "no card is visible"),
        (["--cards", "all"], {"SPYRE_DEVICES": "0,12"}, 69, "SPYRE_DEVICES=0,12 names card 12"),
        (["--cards", "all"], {"AIU_WORLD_SIZE": "16"}, 69, "AIU_WORLD_SIZE=16"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(host, words, env, status, says):
    host.write("test_a.py", plain_file(1))
    done = host.call("run", *words, "test_a.py", env=env)
    assert done.returncode == status and says in done.stderr, done.stderr
    assert not list(host.logs.rglob("job.json"))


def test_one_card_only_is_a_plain_run_on_that_card(host):
    host.write("test_a.py", plain_file(2))
    done = host.json("run", "--cards", "1", "test_a.py")
    assert done["status"] == "passed" and {tuple(c) for _, c, _ in host.traced()} == {(0,)}


def test_isolate_repeat_and_alone_use_the_cards(host):
    host.write("test_a.py", plain_file(6, 0.3))
    began = time.monotonic()
    done = host.json("run", "--isolate", "--cards", "6", "test_a.py")
    assert done["status"] == "passed" and outcomes(host) == {n: "passed" for n in expected(["test_a.py"], 6)}
    assert len({tuple(cards) for _, cards, _ in host.traced()}) > 1, time.monotonic() - began
    host.trace.unlink()
    done = host.json("run", "--repeat", "4", "--cards", "4", "test_a.py")
    assert done["status"] == "passed" and len({tuple(cards) for _, cards, _ in host.traced()}) > 1
