"""The lock of the cards: exclusive among processes, users and checkouts; hostile places; what it says of its holder."""

import fcntl
import json
import os
import stat
import subprocess
import sys
import time

import pytest
from tests.runs.conftest import ROOT, until

from debug_spyre.card import holders, lock, lock_file
from debug_spyre.vocabulary.errors import CardBusyError, EnvironmentTroubleError, UsageError

PRELUDE = (
    f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); from debug_spyre.card import lock; import os, time\n"
)


@pytest.fixture(autouse=True)
def shared_place(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBUG_SPYRE_LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", "/no/such/card")
    monkeypatch.delenv("DEBUG_SPYRE_LOCK_FDS", raising=False)


def python(code, **how):
    return subprocess.Popen([sys.executable, "-c", PRELUDE + code], stdout=subprocess.PIPE, text=True, **how)


def only_file(tmp_path):
    (found,) = (tmp_path / "locks").iterdir()
    return found


def test_a_second_process_is_refused_and_told_who_holds_it(tmp_path):
    with lock.card_lock(["a"], command="pytest 'x y'"), pytest.raises(CardBusyError) as caught:
        lock.acquire(["a"], wait=0)
    assert str(os.getpid()) in caught.value.what and "pytest 'x y'" in caught.value.what
    lock.acquire(["a"], wait=0).release()


def test_the_file_is_for_everybody_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        with lock.card_lock(["a"]):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(only_file(tmp_path).stat().st_mode) == 0o666
    assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o1777


def test_different_cards_do_not_wait_for_each_other_and_one_that_overlaps_does(tmp_path):
    with lock.card_lock(["b", "a"]):
        lock.acquire(["c"], wait=0).release()
        with pytest.raises(CardBusyError):
            lock.acquire(["c", "b"], wait=0)
        lock.acquire(["c"], wait=0).release()  # what was taken before the refusal was let go


def test_two_cards_in_either_order_never_block_each_other_for_ever():
    code = "for _ in range(25):\n with lock.card_lock({0}): time.sleep(0.001)\n"
    both = [python(code.format(["x", "y"])), python(code.format(["y", "x"]))]
    assert [p.wait(120) for p in both] == [0, 0]


def test_contended_runs_never_overlap(tmp_path):
    """Eight processes, each many times: a counter that only an exclusive section keeps right."""
    count = tmp_path / "count"
    count.write_text("0")
    rounds = 25
    code = (
        f"for _ in range({rounds}):\n"
        " with lock.card_lock(['a']):\n"
        f"  n = int(open({str(count)!r}).read()); time.sleep(0.0005); open({str(count)!r}, 'w').write(str(n + 1))\n"
    )
    several = [python(code) for _ in range(8)]
    assert [p.wait(280) for p in several] == [0] * 8
    assert int(count.read_text()) == 8 * rounds


def test_a_waiter_gets_the_card_within_a_second_of_its_release():
    holder = python("h = lock.acquire(['a']); print('held', flush=True); sys.stdin.read(1); t = time.time(); h.release(); print(t)",
                    stdin=subprocess.PIPE)  # fmt: skip
    assert holder.stdout.readline() == "held\n"
    waiter = python("b = []; h = lock.acquire(['a'], blocked=b.append); print(time.time()); print(len(b) > 0)")
    time.sleep(0.5)
    released = float(holder.communicate("x")[0])
    got, blocked = waiter.communicate(timeout=30)[0].split()
    assert blocked == "True" and 0 <= float(got) - released < 1.0


def test_wait_gives_up_after_its_time():
    with lock.card_lock(["a"]):
        began = time.monotonic()
        with pytest.raises(CardBusyError, match="after 0.4 s"):
            lock.acquire(["a"], wait=0.4)
        assert time.monotonic() - began >= 0.4


def test_a_killed_holder_lets_go_at_once_and_its_name_does_not_matter():
    holder = python("h = lock.acquire(['a']); print('held', flush=True); time.sleep(60)")
    holder.stdout.readline()
    holder.kill()
    holder.wait()
    assert lock.read_holder(lock.lock_path("a")) is not None, "its words are still there"
    lock.acquire(["a"], wait=0).release()


def test_a_child_that_has_the_descriptor_keeps_it_held_when_the_holder_is_killed():
    code = (
        "import subprocess\nh = lock.acquire(['a'])\n"
        "p = subprocess.Popen(['sleep', '60'], pass_fds={0}, stdout=subprocess.DEVNULL); print(p.pid, flush=True); time.sleep(60)"
    )
    for passed, held in (("h.descriptors", True), ("()", False)):
        holder = python(code.format(passed))
        child = int(holder.stdout.readline())
        holder.kill()
        holder.wait()
        try:
            assert lock.is_held(lock.lock_path("a")) is held
        finally:
            os.kill(child, 9)
        until(lambda: lock.is_held(lock.lock_path("a")) is False)


def test_looking_takes_no_lock_away():
    path = lock.lock_path("a")
    with lock.card_lock(["a"]):
        pass
    prober = python(
        f"from pathlib import Path\nt = time.time()\nwhile time.time() - t < 1.5: lock.is_held(Path({str(path)!r}))"
    )
    for _ in range(20):
        lock.acquire(["a"], wait=0).release()
    prober.wait()


@pytest.mark.parametrize("put_there", [False, True], ids=["removed", "replaced"])
def test_a_file_that_was_removed_or_replaced_meanwhile_does_not_make_two_holders(tmp_path, put_there):
    first = lock.acquire(["a"])
    only_file(tmp_path).unlink()
    if put_there:
        (tmp_path / "other").write_text("somebody's notes\n")
        os.replace(tmp_path / "other", lock.lock_path("a"))
    waiter = python(
        "from debug_spyre.vocabulary.errors import CardBusyError\n"
        "try: lock.acquire(['a'], wait=0.5)\nexcept CardBusyError as error: print(error.what, flush=True)\n"
        "h = lock.acquire(['a']); print('got', flush=True); time.sleep(60)"
    )
    said = waiter.stdout.readline()
    assert f"pid {os.getpid()}" in said and "a lock file that was removed or replaced while it was held" in said
    first.release()
    assert waiter.stdout.readline() == "got\n"
    waiter.kill()
    waiter.wait()


def test_a_waiter_on_a_removed_file_goes_on_with_the_new_one(tmp_path):
    descriptor = os.open(lock.lock_path("a"), os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    waiter = python("b = []; h = lock.acquire(['a'], blocked=b.append); print(os.fstat(h.descriptors[0]).st_nlink)")
    time.sleep(0.4)
    lock.lock_path("a").unlink()
    os.close(descriptor)
    assert waiter.communicate(timeout=30)[0] == "1\n"


def hostile_link(path, tmp_path):
    (tmp_path / "precious").write_text("precious")
    path.symlink_to(tmp_path / "precious")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (hostile_link, "symbolic link"),
        (lambda path, _: path.mkdir(), "directory"),
        (lambda path, _: os.mkfifo(path), "not a plain file"),
    ],
    ids=["symlink", "folder", "fifo"],
)
def test_what_is_no_plain_file_is_refused_in_one_line_and_left_alone(tmp_path, make, says):
    path = lock.lock_path("a")
    make(path, tmp_path)
    with pytest.raises(EnvironmentTroubleError) as caught:
        lock.acquire(["a"], wait=0)
    assert says in caught.value.what.lower() and str(path) in caught.value.what and caught.value.next
    if (tmp_path / "precious").exists():
        assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize("content", ["somebody's notes\n", '{"tool": "other"}', "\x00\xff"])
def test_a_foreign_file_serves_as_lock_and_keeps_its_content(content):
    path = lock.lock_path("a")
    path.write_text(content)
    with lock.card_lock(["a"]):
        assert lock.is_held(path) is True and lock.read_holder(path) is None
    assert path.read_text() == content


def test_a_hard_link_to_a_precious_file_is_not_written_to(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("")
    os.link(precious, lock.lock_path("a"))
    with lock.card_lock(["a"]):
        assert precious.read_text() == ""


def test_the_holder_is_told_in_full_while_held_and_not_afterwards():
    claim = lock.HolderInfo("pytest </script> \x1b[31m", cwd="/co/ü", session="debug-x", run="r7")
    held = lock.acquire(["a"], claim=claim)
    holder = lock.read_holder(lock.lock_path("a"))
    assert holder.pid == os.getpid() and holder.session == "debug-x" and holder.run == "r7" and holder.cwd == "/co/ü"
    assert set(holder.to_json()) >= {"pid", "user", "cwd", "command", "session", "since"}
    assert "\x1b" not in holder.says()
    held.release()
    assert lock.read_holder(lock.lock_path("a")) is None


def test_a_place_that_cannot_be_made_is_one_line_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("DEBUG_SPYRE_LOCK_DIR", str(tmp_path / "no" / "such" / "place"))
    with pytest.raises(EnvironmentTroubleError, match="can't be made"):
        lock.acquire(["a"], wait=0)


def test_without_a_shared_place_there_is_no_silent_lock_of_ones_own(monkeypatch, tmp_path):
    monkeypatch.delenv("DEBUG_SPYRE_LOCK_DIR")
    monkeypatch.setattr(lock_file, "PLACES", (str(tmp_path / "missing"), str(tmp_path)))  # missing, and not sticky
    with pytest.raises(EnvironmentTroubleError, match="folder that all users share"):
        lock.acquire(["a"], wait=0)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setattr(lock_file, "PLACES", (str(tmp_path / "missing"), str(shared)))
    with lock.card_lock(["a"]):
        assert [p.parent for p in shared.iterdir()] == [shared]


def test_names_of_cards_never_meet(tmp_path):
    names = {
        lock.lock_path(d).name for d in ("/dev/vfio/1", "/dev/vfio/12", "/x/dev/vfio/1", "a b", "a-b", "a/b", None)
    }
    assert len(names) == 7


def test_cards_are_those_of_the_environment_sorted_and_narrowed(monkeypatch, tmp_path):
    one, two = tmp_path / "7", tmp_path / "12"
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", os.pathsep.join([str(one), str(two), str(one)]))
    assert holders.devices() == tuple(sorted([str(one), str(two)]))
    assert holders.devices("7") == (str(one),) and holders.devices(f"{two},7") == holders.devices()
    with pytest.raises(UsageError, match="there is no card 8"):
        holders.devices("8")
    monkeypatch.setenv("DEBUG_SPYRE_DEVICES", "")
    assert holders.devices() == ()


def test_the_device_is_free_held_or_unknown(place):
    device = [str(place.device)]
    assert holders.holders(device, probe=True).state is holders.CardState.FREE
    command, ready = place.hold(seconds=60)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until(ready.exists)
        seen = holders.holders(device)
        assert seen.state is holders.CardState.HELD and [p.pid for p in seen.processes] == [process.pid]
        assert f"pid {process.pid}" in seen.says() and "target.py" in seen.says()
    finally:
        process.kill()
        process.wait()
    assert holders.wait_until_free(device, seconds=5).state is holders.CardState.FREE
    assert holders.holders([]).state is holders.CardState.UNKNOWN


def test_a_holder_whom_proc_does_not_show_is_found_by_trying(place, monkeypatch, tmp_path):
    """As with hidepid, or from another container: nobody is seen, and the device is still not ours."""
    (tmp_path / "proc/1/fd").mkdir(parents=True)
    monkeypatch.setattr(holders, "PROC", tmp_path / "proc")
    device = [str(place.device)]
    assert holders.holders(device).state is holders.CardState.FREE
    with open(place.device, "r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert holders.holders(device, probe=True).state is holders.CardState.HELD
    assert holders.holders(device, probe=True).state is holders.CardState.FREE
    (tmp_path / "proc/1/fd").rmdir()
    (tmp_path / "proc/1").rmdir()
    assert holders.holders(device).state is holders.CardState.UNKNOWN, "no process 1: others are hidden"


def test_an_anonymous_device_counts_only_beside_our_own_group():
    vfio = {"/dev/vfio/7"}
    assert holders._holds({"/dev/vfio/7"}, vfio) and holders._holds({holders.ANONYMOUS}, vfio)
    assert holders._holds({holders.ANONYMOUS, "/dev/vfio/vfio"}, vfio)
    assert not holders._holds({holders.ANONYMOUS, "/dev/vfio/9"}, vfio), "somebody else's device"
    assert not holders._holds({holders.ANONYMOUS}, {"/tmp/simulated"})


def test_the_lock_verb_tells_both_in_json(place):
    free = place.json("lock")
    assert free["held"] is False and free["holder"] is None and free["device_holders"] == []
    command, ready = place.hold(seconds=60)
    assert place.call("exec", "--foreground", "0.1", "--", *command).returncode == 79
    until(ready.exists)
    held = place.json("lock")
    assert held["held"] is True and held["holder"]["cwd"] == str(place.checkout) and held["device"] == "held"
    assert json.dumps(held["device_holders"]).count("target.py") == 1
    place.call("stop")


def test_a_virtual_function_has_a_physical_one(tmp_path):
    for address in ("0000:1a:00.0", "0000:1a:00.1"):
        (tmp_path / address).mkdir()
    (tmp_path / "0000:1a:00.1/physfn").symlink_to(tmp_path / "0000:1a:00.0")
    assert holders.function_of("0000:1a:00.0", tmp_path) == "PF"
    assert holders.function_of("0000:1a:00.1", tmp_path) == "VF"


@pytest.mark.parametrize(("names", "said"), [(["PF"], "PF"), (["VF"], "VF"), (["PF", "VF"], None), ([], None)])
def test_where_the_host_shows_no_device_the_variable_tells(names, said, tmp_path, monkeypatch):
    for name in ("PF", "VF"):
        monkeypatch.delenv(f"PCIDEVICE_IBM_COM_AIU_{name}", raising=False)
    for name in names:
        monkeypatch.setenv(f"PCIDEVICE_IBM_COM_AIU_{name}", "0000:1a:00.0")
    assert holders.function_of("0000:1a:00.0", tmp_path) == said
