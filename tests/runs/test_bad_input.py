"""Bad input: a clear answer, nothing lost, the card free afterwards."""

import json
import os
import shutil
import subprocess

import pytest

FUZZ = int(os.environ.get("DEBUG_SPYRE_FUZZ", "0"))


@pytest.fixture(autouse=True)
def card_is_free_afterwards(place):
    yield
    assert place.json("lock", env={"DEBUG_SPYRE_LOGS": ""})["held"] is False
    assert place.json("exec", "--no-wait", "--", "true", env={"DEBUG_SPYRE_LOGS": ""})["status"] == "passed"


def test_nothing_collected_does_not_count(place):
    place.write("test_it.py", "x = 1\n")
    done = place.json("run", "test_it.py")
    assert done["exit"] == done["status_of_process"] == 5
    assert done["status"] == "error" and done["valid"] is False and "no test ran" in done["warnings"][0]


def test_a_selection_that_is_not_there_does_not_count(place):
    done = place.json("run", "nowhere")
    assert done["exit"] == 4 and done["valid"] is False


def test_a_collection_error_is_a_failure_with_its_cause(place):
    place.write("test_it.py", "import no_such_module\n")
    place.write("test_ok.py", "def test_a(): pass\n")
    done = place.json("run")
    assert done["exit"] == 2 and done["status"] == "error"
    assert any(f["phase"] == "collect" and "no_such_module" in str(f["message"]) for f in done["failures"]), done[
        "failures"
    ]


def test_ids_with_spaces_brackets_colons_and_unicode_come_back_as_they_are(place):
    names = ["a b", "[(q=1,kv=256)]", "x::y", "ü</script>", "\u202eevil", 'it\'s "quoted"', "$(touch x)", "-n 4"]
    place.write(
        "sub dir/test ü.py",
        f"import pytest\n@pytest.mark.parametrize('x', {names!r}, ids=lambda x: x)\ndef test_it(x): assert x == 'a b'\n",
    )
    done = place.json("run", "sub dir/test ü.py")
    ids = done["scope"]["selected"]
    assert len(ids) == len(names) and all(i.startswith("sub dir/test ü.py::test_it[") for i in ids)
    again = place.json("run", *ids[:3])
    assert again["scope"]["selected"] == ids[:3], "each id can be given back as it was printed"
    assert not (place.checkout / "x").exists()


def test_binary_garbage_and_escapes_are_kept_byte_for_byte_and_not_repeated_to_the_terminal(place):
    garbage = bytes(range(256)) * 40 + b"\x1b[2J\x1b]0;title\x07 no newline"
    place.write("garbage", "")
    (place.checkout / "garbage").write_bytes(garbage)
    done = place.call("exec", "--", "sh", "-c", "cat garbage; exit 3")
    assert done.returncode == 3 and "\x1b" not in done.stdout + done.stderr
    output = next(place.logs.rglob("r1.txt"))
    assert output.read_bytes() == garbage


def test_hostile_output_of_a_test_does_not_reach_the_answer_raw(place):
    place.write("test_it.py", "def test_it(): raise ValueError('\\x1b[31m\\u202e</script>' + 'y' * 100000)\n")
    done = place.call("run", "test_it.py")
    assert "\x1b" not in done.stdout and "\u202e" not in done.stdout and len(done.stdout.encode()) <= 1500


def test_fifty_failures_are_answered_in_four_kilobytes_and_one_in_one_and_a_half(place):
    place.write(
        "test_it.py",
        "import pytest\n@pytest.mark.parametrize('n', range(50))\ndef test_with_a_rather_long_name_as_they_are_usual(n): assert n < 0, 'y' * 300\n",
    )
    many = place.call("run", "test_it.py")
    one = place.call("run", "test_it.py::test_with_a_rather_long_name_as_they_are_usual[3]")
    assert many.returncode == one.returncode == 1
    assert len(many.stdout.encode()) <= 4096 and len(one.stdout.encode()) <= 1536, (len(many.stdout), len(one.stdout))
    assert "50 failed" in many.stdout


def test_very_much_output_is_kept_whole(place):
    size = (1000 if FUZZ else 40) * 1_000_000
    place.write(
        "test_it.py",
        f"def test_big():\n    line = 'x' * 9999\n    for _ in range({size // 10_000}): print(line)\ndef test_ok(): pass\n",
    )
    done = place.json("run", "-s", "test_it.py", timeout=280)
    assert done["status"] == "passed" and done["counts"]["passed"] == 2
    assert os.path.getsize(done["output"]) > size


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    if os.getuid() or not shutil.which("mount"):
        pytest.skip("not root: no small file system can be mounted")
    disk = tmp_path / "small"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=False)


@pytest.mark.root
def test_a_disk_that_fills_up_under_a_run_is_said_and_what_was_kept_stays(place, small_disk):
    place.write(
        "test_it.py", "def test_ok(): pass\ndef test_big():\n    print('x' * 3_000_000)\ndef test_after(): pass\n"
    )
    env = {"DEBUG_SPYRE_LOGS": str(small_disk)}
    done = place.call("run", "-s", "test_it.py", env=env)
    assert done.returncode != 0 and "Traceback" not in done.stderr, done.stderr
    assert (
        "No space left" in done.stdout + done.stderr or "free space" in done.stderr or "no space" in done.stdout.lower()
    )
    journal = next(small_disk.rglob("journal.jsonl"))
    assert json.loads(journal.read_text().splitlines()[0])["kind"] == "run_started"
    # space is made: whoever looks next finds the run's end
    next(small_disk.rglob("r1.txt")).write_text("")
    found = place.json("wait", env=env)
    assert found["status"] in {"lost", "error", "failed", "killed"}, found
    events = [json.loads(line)["kind"] for line in journal.read_text().splitlines()]
    assert events == ["run_started", "run_finished"]


@pytest.mark.root
def test_a_full_disk_refuses_the_run_in_one_line(place, small_disk):
    with open(small_disk / "filler", "wb", buffering=0) as stream:
        try:
            while stream.write(b"x" * 4096):
                pass
        except OSError:
            pass
    done = place.call("exec", "--", "true", env={"DEBUG_SPYRE_LOGS": str(small_disk)})
    assert done.returncode == 69 and "Traceback" not in done.stderr and "next:" in done.stderr, done.stderr


def test_a_damaged_journal_is_one_line_and_nothing_is_written(place):
    first = place.json("exec", "--", "true")
    folder = os.path.dirname(first["output"])
    journal = os.path.join(folder, "journal.jsonl")
    with open(journal, "a") as stream:
        stream.write("no json\n")
    before = open(journal).read()
    done = place.call("exec", "--session", os.path.basename(folder), "--", "true")
    assert done.returncode == 2 and "line 3 is damaged" in done.stderr
    assert open(journal).read() == before


def test_a_torn_last_line_does_not_stop_the_next_run(place):
    first = place.json("exec", "--", "true")
    folder = os.path.dirname(first["output"])
    with open(os.path.join(folder, "journal.jsonl"), "a") as stream:
        stream.write('{"v":1,"seq":3,"kind":"run_st')
    done = place.json("exec", "--session", os.path.basename(folder), "--", "true")
    assert done["run"] == "r2" and done["status"] == "passed"


def test_wait_and_stop_without_a_run_are_one_line(place):
    for verb in ("wait", "stop"):
        done = place.call(verb)
        assert done.returncode == 64 and "there is no run" in done.stderr and "next:" in done.stderr
    assert not place.logs.exists()


def test_a_logs_folder_that_cannot_be_written_is_said(place):
    blocker = place.write("blocker", "")
    done = place.call("exec", "--", "true", env={"DEBUG_SPYRE_LOGS": str(blocker / "logs")})
    assert done.returncode == 69 and "DEBUG_SPYRE_LOGS" in done.stderr
