"""The append-only journal: nothing acknowledged is lost, a torn line is dropped and said so, writers do not collide."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from debug_spyre.session import events as ev
from debug_spyre.session.io.journal import Journal
from debug_spyre.vocabulary.errors import BadInputError, EnvironmentTroubleError

SCRIPTS = Path(__file__).parents[2] / "scripts"
WRITER = """
import sys
from pathlib import Path
from debug_spyre.session.events import NextNoted
from debug_spyre.session.io.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    done = journal.append(NextNoted(text=f"{sys.argv[2]}-{number} " + "x" * 300))
    print(done.seq, flush=True)
"""


def writer(folder, name, count):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
    )


def test_what_is_appended_is_read_back_with_number_time_and_actor(tmp_path, hostile, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    journal = Journal(tmp_path)
    first = journal.append(ev.NextNoted(text=hostile))
    second = journal.append(ev.FindingNoted(text=hostile))
    assert (first.seq, second.seq, first.by) == (1, 2, "agent")
    assert first.at.endswith("Z")
    assert journal.read().events == (first, second)
    assert journal.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_torn_last_line_is_dropped_said_and_overwritten(tmp_path, cut):
    journal = Journal(tmp_path)
    journal.append(ev.NextNoted(text="kept"))
    journal.append(ev.NextNoted(text="torn"))
    data = journal.path.read_bytes()
    journal.path.write_bytes(data[:-cut])
    reading = journal.read()
    assert [e.text for e in reading.events] == ["kept"]
    assert reading.torn
    assert journal.append(ev.NextNoted(text="next")).seq == 2
    assert [e.text for e in journal.read().events] == ["kept", "next"]
    assert journal.read().torn is None


def test_a_damaged_line_in_the_middle_is_named_with_its_number_and_nothing_is_written(tmp_path):
    journal = Journal(tmp_path)
    for text in "abc":
        journal.append(ev.NextNoted(text=text))
    lines = journal.path.read_bytes().split(b"\n")
    lines[1] = b"\xff\xfe garbage"
    journal.path.write_bytes(b"\n".join(lines))
    before = journal.path.read_bytes()
    with pytest.raises(BadInputError, match="line 2"):
        journal.read()
    with pytest.raises(BadInputError, match="line 2"):
        journal.append(ev.NextNoted(text="d"))
    assert journal.path.read_bytes() == before


def test_a_missing_journal_and_an_unwritable_folder_say_so(tmp_path):
    with pytest.raises(BadInputError):
        Journal(tmp_path).read()
    with pytest.raises(EnvironmentTroubleError):
        Journal(tmp_path / "missing").append(ev.NextNoted(text="x"))


def test_a_symlink_in_place_of_the_journal_is_refused(tmp_path):
    target = tmp_path / "elsewhere"
    target.write_text("precious")
    (tmp_path / "journal.jsonl").symlink_to(target)
    with pytest.raises(EnvironmentTroubleError):
        Journal(tmp_path).append(ev.NextNoted(text="x"))
    assert target.read_text() == "precious"


def test_a_check_and_its_event_are_one_step(tmp_path):
    journal = Journal(tmp_path)
    journal.append(ev.NextNoted(text="one"))
    assert journal.append_with(lambda events: [ev.NextNoted(text=f"seen {len(events)}")])[0].text == "seen 1"

    def refuse(_events):
        raise BadInputError("no")

    with pytest.raises(BadInputError):
        journal.append_with(refuse)
    assert len(journal.read().events) == 2


def test_several_writers_lose_nothing_and_share_the_numbers(tmp_path):
    writers = [writer(tmp_path, name, 25) for name in "abcd"]
    acknowledged = [int(line) for w in writers for line in w.communicate(timeout=120)[0].split()]
    events = Journal(tmp_path).read().events
    assert sorted(acknowledged) == list(range(1, 101)) == [e.seq for e in events]


def test_a_writer_killed_at_any_moment_loses_nothing_that_it_acknowledged(tmp_path):
    rounds = int(6 * float(os.environ.get("DEBUG_SPYRE_FUZZ", "1")))
    acknowledged = 0
    for number in range(rounds):
        process = writer(tmp_path, f"k{number}", 10_000)
        process.stdout.readline()
        time.sleep(0.01 * (number % 5))
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
        process.wait()
        acknowledged = max([acknowledged, *(int(s) for s in rest.split("\n")[:-1] if s)])
        events = Journal(tmp_path).read().events
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        assert len(events) >= acknowledged
        for line in Journal(tmp_path).path.read_bytes().split(b"\n")[:-1]:
            json.loads(line)


def test_a_full_disk_is_said_and_leaves_the_journal_whole(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    import resource

    journal = Journal(tmp_path)
    journal.append(ev.NextNoted(text="kept"))
    size = journal.path.stat().st_size
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from debug_spyre.session.events import NextNoted\nfrom debug_spyre.session.io.journal import Journal\n"
        "from debug_spyre.vocabulary.errors import EnvironmentTroubleError\n"
        f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 50}, {size + 50}))\n"
        "try:\n    Journal(Path(sys.argv[1])).append(NextNoted(text='y' * 5000))\n"
        "except EnvironmentTroubleError as error:\n    print('said:', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
    )
    assert "said: cannot write the journal" in done.stdout, done.stderr
    assert [e.text for e in journal.read().events] == ["kept"]
    assert resource is not None
