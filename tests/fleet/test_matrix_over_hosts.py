"""A matrix over the hosts of a Dask cluster: a real scheduler and real workers, each with simulated cards and locks of its own."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.fleet.conftest import plain_file
from tests.runs.conftest import alive, until


def evidence_of(place):
    newest = max(place.logs.rglob("evidence.json"), key=lambda p: p.stat().st_mtime_ns)
    return json.loads(newest.read_text())


def outcomes(place):
    return {t["nodeid"]: t["outcome"] for t in evidence_of(place)["tests"]}


def series_of(place):
    return json.loads(max(place.logs.rglob("series.json"), key=lambda p: p.stat().st_mtime_ns).read_text())


def expected(files, tests):
    return [f"{name}::test_{n}" for name in files for n in range(tests)]


def over(dask, *more, verb="triage"):
    return [verb, "--hosts", dask.address, "--ship-approved", *more]


def test_every_test_runs_once_on_the_tree_as_it_is_and_what_it_kept_comes_back(three):
    place = three.place
    names = [f"test_{letter}.py" for letter in "abcdef"]
    for name in names:
        place.write(name, plain_file(2, 0.5))
    place.write("helper.py", "VALUE = 1\n")
    place.write(".gitignore", "ignored.py\n*.log\n")
    place.write("ignored.py", "")
    place.write("note.log", "")
    place.write(".env", "PASSWORD=hunter22\n")
    subprocess.run(["git", "-C", str(place.checkout), "add", "helper.py", ".gitignore"], check=True)
    place.write("helper.py", "VALUE = 2  # not committed\n")
    place.write(
        "test_tree.py",
        "import os, pathlib, helper\n"
        "def test_tree(card):\n"
        "    here = pathlib.Path(__file__).parent\n"
        "    assert helper.VALUE == 2 and here.samefile(os.getcwd())\n"
        "    assert not [n for n in ('ignored.py', 'note.log', '.env', '.git') if (here / n).exists()]\n"
        "def test_tensor(card):\n"
        "    import torch\n"
        "    torch.testing.assert_close(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 2.0, 3.0]))\n",
    )
    done = place.call(*over(three, "--cards", "3", "."))
    assert done.returncode == 0, done.stdout + done.stderr
    assert evidence_of(place)["selected"] == [
        *expected(names, 2),
        "test_tree.py::test_tree",
        "test_tree.py::test_tensor",
    ]
    assert outcomes(place) == {
        **{n: "passed" for n in expected(names, 2)}, "test_tree.py::test_tree": "passed", "test_tree.py::test_tensor": "failed",
    }, done.stdout  # fmt: skip
    ran = place.traced()
    assert {host for _, host, *_ in ran} == {"ann", "bob", "cy"}
    (run,) = (e for e in place.events("run_finished"))
    assert run["valid"] and run["status"] == "failed", run
    assert any(".env" in w for w in run["warnings"]), run["warnings"]
    failure = next(f for f in evidence_of(place)["failures"] if "test_tensor" in f["nodeid"])
    assert list(place.logs.rglob("lanes/*/tensors/*.safetensors")) and failure["mismatched"] == 1, failure
    assert str(place.checkout) in json.dumps(evidence_of(place)) and "scratch" not in json.dumps(
        evidence_of(place)["failures"]
    )
    data = series_of(place)["data"]
    assert [h["name"] for h in data["hosts"]] == ["ann", "bob", "cy"] and data["out"] == {}
    assert not list(place.logs.rglob("tree-*.tar")) and not list(three.folder.glob("scratch*/**/runs/*/tree"))


def test_a_worker_that_is_killed_costs_its_files_and_they_run_elsewhere(three):
    place = three.place
    names = [f"test_{letter}.py" for letter in "abcdef"]
    for name in names:
        place.write(name, plain_file(3, 0.7, fails=(1,) if name == "test_c.py" else ()))
    caller = place.start(*over(three, "--cards", "3", "."))
    until(lambda: sum(host == "bob" for _, host, *_ in place.traced()) >= 1, 60, "bob at work")
    there = {pid for pid, host, *_ in place.traced() if host == "bob"}
    os.kill(three.workers["bob"].pid, signal.SIGKILL)
    out, err = caller.communicate(timeout=150)
    assert caller.returncode == 0, out + err
    selected = evidence_of(place)["selected"]
    assert selected == expected(names, 3) and len(evidence_of(place)["tests"]) == 18
    assert outcomes(place) == {n: "failed" if n == "test_c.py::test_1" else "passed" for n in selected}
    lost = [h["name"] for h in series_of(place)["data"]["hosts"] if h["lost"]]
    assert lost == ["bob"] and "bob was lost" in next(iter(place.logs.rglob("*.txt"))).read_text()
    until(lambda: not any(alive(pid) for pid in there), 40, "the end of what ran on bob")
    assert not place.trace.with_name("trace.busy").exists()


@pytest.mark.long
def test_the_driver_is_killed_and_wait_does_what_it_left(three):
    place = three.place
    names = [f"test_{letter}.py" for letter in "abcdef"]
    for name in names:
        place.write(name, plain_file(2, 0.8))
    caller = place.start(*over(three, "--cards", "3", ".", verb="run"))

    def record():
        return "".join(p.read_text() for p in place.logs.rglob("lanes/record.jsonl"))

    until(lambda: record().count('"passed"') >= 2, 60, "two files that are done")
    state = json.loads(next(place.logs.rglob("state.json")).read_text())
    os.kill(state["child"], signal.SIGKILL)
    out, err = caller.communicate(timeout=60)
    assert caller.returncode == 128 + 9 and "debug-spyre wait" in out + err, out + err
    done = [json.loads(line)["unit"] for line in record().splitlines() if '"passed"' in line]
    ran = len(place.traced())
    again = place.json("wait", timeout=150)
    assert again["status"] == "passed" and again["status_of_process"] == 0, again
    assert again["scope"]["selected"] == expected(names, 2) and again["counts"]["passed"] == 12
    later = {nodeid.partition("::")[0] for *_, nodeid in place.traced()[ran:]}
    assert not later & set(done), "a file that was done ran again"
    assert any("whose driver died" in line for line in series_of(place)["lines"])
    assert place.json("wait")["run"] == again["run"], "there is nothing left to do"


@pytest.mark.long
def test_wait_refuses_where_the_tree_is_no_longer_what_was_sent(three):
    place = three.place
    place.write("test_a.py", plain_file(1, 30))
    caller = place.start(*over(three, "--cards", "1", ".", verb="run"))
    until(place.traced, 60, "a test that runs")
    os.kill(json.loads(next(place.logs.rglob("state.json")).read_text())["child"], signal.SIGKILL)
    caller.communicate(timeout=60)
    place.write("test_a.py", plain_file(1, 0))
    done = place.call("wait")
    assert done.returncode == 1 and "has changed since" in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("words", [(), ("--cards", "2")])
def test_nothing_is_sent_before_a_person_says_yes(place, words):
    """No connection is tried: nobody listens at that address, and it is not found out."""
    place.env["DEBUG_SPYRE_CLUSTER_PYTHON"] = sys.executable
    place.write("test_a.py", plain_file(1))
    place.write(".env", "")
    began = time.monotonic()
    done = place.call("triage", "--hosts", "tcp://127.0.0.1:1", *words, ".", stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and time.monotonic() - began < 9, done.stderr
    assert "a person has to confirm" in done.stderr and "2 untracked" in done.stderr.replace(
        "1 untracked", "2 untracked"
    )
    assert ".env" in done.stderr and "without TLS" in done.stderr and "--ship-approved" in done.stderr
    assert not list(place.logs.rglob("*"))


def refused(done, says, status=69):
    lines = [line for line in done.stderr.splitlines() if line.startswith("debug-spyre:")]
    assert done.returncode == status and len(lines) == 1 and says in lines[0], done.stdout + done.stderr
    assert "next:" in done.stderr
    return lines[0]


def test_without_dask_it_is_one_line_and_where_to_get_it(place, tmp_path):
    place.write("test_a.py", plain_file(1))
    words = ["run", "--hosts", "tcp://127.0.0.1:1", "--ship-approved", "test_a.py"]
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    done = place.call(*words, env={"DEBUG_SPYRE_CLUSTER_PYTHON": str(bare)})
    assert "has no Dask distributed" in refused(done, str(bare)) and "debug-spyre[cluster]" in done.stderr
    refused(place.call(*words, env={"DEBUG_SPYRE_CLUSTER_PYTHON": "/no/python"}), "is no program")
    assert not list(place.logs.rglob("job.json"))


def test_an_old_dask_is_named(place, tmp_path):
    place.write("test_a.py", plain_file(1))
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho 2024.1.0\n")
    old.chmod(0o755)
    done = place.call(
        "run", "--hosts", "tcp://h:1", "--ship-approved", ".", env={"DEBUG_SPYRE_CLUSTER_PYTHON": str(old)}
    )
    refused(done, "has distributed 2024.1.0; 2025.7 is the oldest")


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", pytest.param("tcp://no-such-host.invalid:8786", marks=pytest.mark.long)]
)
def test_a_scheduler_that_does_not_answer_is_named_in_bounded_time(place, address):
    place.env["DEBUG_SPYRE_CLUSTER_PYTHON"] = sys.executable
    place.write("test_a.py", plain_file(1))
    began = time.monotonic()
    refused(place.call("run", "--hosts", address, "--ship-approved", "."), f"no Dask scheduler answers at {address}")
    assert time.monotonic() - began < 30 and not list(place.logs.rglob("job.json"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cards", "0,1"], "lists cards of this host"),
        (["-x"], "-x stops"),
        (["--isolate"], "stay on one host"),
        (["--hosts", "nonsense://x"], "is no address"),
    ],
)
def test_words_that_several_hosts_can_not_follow_are_refused(place, words, says):
    place.write("test_a.py", plain_file(1))
    refused(place.call("run", "--hosts", "tcp://h:1", "--ship-approved", *words, "."), says, 64)


PATCH = """
import importlib.metadata as m
real = m.version
m.version = lambda name: "2024.1.0" if name == "distributed" else real(name)
"""


@pytest.mark.long
def test_workers_that_can_not_take_part_are_one_line_each(dask, tmp_path):
    """One cluster, one unfit worker at a time: none with the resource, another version, architecture, no interpreter, no card."""
    place = dask.place
    place.write("test_a.py", plain_file(1))
    dask.scheduler()
    refused(place.call(*over(dask, ".")), "no worker, so none with the resource 'spyre'")
    cases = [
        ("dry", {"offered": 0}, "none with the resource 'spyre'"),
        ("old", {"env": {"PYTHONPATH": str(tmp_path / "patch")}}, "worker old has distributed 2024.1.0"),
        ("odd", {"before": ["setarch", "i686"]}, "worker odd is a i686"),
        (
            "bare",
            {"env": {"DEBUG_SPYRE_PYTHON": "/no/python"}},
            "worker bare: DEBUG_SPYRE_PYTHON=/no/python is no program there",
        ),
        ("none", {"env": {"DEBUG_SPYRE_DEVICES": ""}}, "worker none offers spyre=4, and its host shows no card"),
    ]
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch/sitecustomize.py").write_text(PATCH)
    for name, how, says in cases:
        dask.worker(name, **how).ready(1)
        refused(place.call(*over(dask, ".")), says)
        dask.workers[name].terminate()
        dask.workers[name].wait(timeout=30)
    assert not list(place.logs.rglob("job.json"))


@pytest.mark.long
def test_hosts_that_differ_are_shown_and_cards_of_one_host_serve_a_test_that_needs_several(dask, tmp_path):
    place = dask.place
    other = tmp_path / "other/env"
    (other / "bin").mkdir(parents=True)
    (other / "lib/python3.11/site-packages/torch_spyre").mkdir(parents=True)
    (other / "lib/python3.11/site-packages/torch_spyre/__init__.py").write_text("OTHER = True\n")
    (other / "bin/python").write_text(place.python.read_text())
    (other / "bin/python").chmod(0o755)
    dask.scheduler().worker("ann", cards=2).worker(
        "bob", cards=3, env={"PYTHONPATH": str(other / "lib/python3.11/site-packages")}
    ).ready(2)
    place.write("pytest.ini", "[pytest]\nmarkers = cards\n")
    place.write(
        "test_three.py", "import pytest\n@pytest.mark.cards(3)\ndef test_0(card):\n    assert card.cards == [0, 1, 2]\n"
    )
    for letter in "abcd":
        place.write(f"test_{letter}.py", plain_file(2, 0.1))
    done = place.json(*over(dask, ".", verb="run"))
    assert done["status"] == "passed", done
    three = [host for _, host, cards, _ in place.traced() if len(cards) == 3]
    assert three == ["bob"]


@pytest.mark.long
def test_a_card_that_lies_is_told_from_the_code_across_hosts(dask):
    place = dask.place
    dask.scheduler().worker("ann", cards=2, env={"HOST_NATURE": json.dumps({"1": "lies"})}).worker(
        "bob", cards=1
    ).ready(2)
    for letter in "abcdef":
        place.write(f"test_{letter}.py", plain_file(2, 0.3))
    done = place.call(*over(dask, "."))
    assert done.returncode == 0 and set(outcomes(place).values()) == {"passed"}, done.stdout + done.stderr
    assert list(series_of(place)["data"]["out"]) == ["ann card 1"]


@pytest.mark.long
def test_all_hosts_are_lost_and_wait_goes_on_with_new_ones(dask):
    place = dask.place
    dask.scheduler().worker("ann", cards=2).ready(1)
    names = [f"test_{letter}.py" for letter in "abcd"]
    for name in names:
        place.write(name, plain_file(2, 0.6))
    caller = place.start(*over(dask, ".", verb="run"))
    until(
        lambda: any('"passed"' in p.read_text() for p in place.logs.rglob("lanes/record.jsonl")),
        60,
        "a file that is done",
    )
    os.kill(dask.workers["ann"].pid, signal.SIGKILL)
    out, err = caller.communicate(timeout=60)
    assert caller.returncode == 69 and "debug-spyre wait" in out + err, out + err
    dask.worker("dee", cards=2).ready(1)
    again = place.json("wait", timeout=100)
    assert again["status"] == "passed" and again["scope"]["selected"] == expected(names, 2), again


@pytest.mark.parametrize(("reply", "says"), [("n", "nothing was sent"), ("y", "no Dask scheduler answers")])
def test_a_person_at_a_terminal_is_asked_what_may_leave(place, reply, says):
    """With a yes the scheduler is looked for, and there is none."""
    place.env["DEBUG_SPYRE_CLUSTER_PYTHON"] = sys.executable
    place.write("test_a.py", plain_file(1))
    here, there = os.openpty()
    asked = place.start("run", "--hosts", "tcp://127.0.0.1:1", ".", stdin=there, stderr=there)
    os.close(there)
    os.write(here, f"{reply}\n".encode())
    asked.communicate(timeout=60)
    os.set_blocking(here, False)
    said = os.read(here, 65536).decode()
    os.close(here)
    assert "Send it? [y/N]" in said and "1 untracked ones" in said and says in said, said
    assert asked.returncode == (69 if reply == "y" else 1) and not list(place.logs.rglob("job.json"))
