"""Two users on one host, and pods: foreign locks, foreign devices, a uid without a passwd entry, no HOME, root's checkout."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.runs.conftest import MAIN, Place, alive, until

ONE, OTHER = 54321, 54322


def _readable_python():
    """A Python that every user of the machine may start (the one in a home folder may not be)."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")):
        code = "import sys; sys.exit(sys.version_info < (3, 11))"
        if python and subprocess.run([*_as(ONE), python, "-c", code], capture_output=True, check=False).returncode == 0:
            return python
    return None


def _as(uid):
    # setpriv still has its powers when it starts the command: a shell in between has none
    shell = ["sh", "-c", 'exec "$@"', "sh"]
    return [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
        *shell,
    ]


WHY_NOT = (
    "not root: other users can't be impersonated"
    if os.getuid()
    else "no setpriv here"
    if not shutil.which("setpriv")
    else None
)
PYTHON = None if WHY_NOT else _readable_python()
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(bool(WHY_NOT), reason=str(WHY_NOT)),
    pytest.mark.skipif(not WHY_NOT and PYTHON is None, reason="no Python >= 3.11 that other users may start"),
]


@pytest.fixture
def world():
    """A place that all users can read, with folders that each may write."""
    folder = Path(tempfile.mkdtemp(prefix="debug-spyre-users-"))
    folder.chmod(0o755)
    place = Place(folder)
    place.device.chmod(0o666)
    place.locks.mkdir()
    place.locks.chmod(0o1777)
    # the package itself may lie in a private folder: a copy, as `install` makes one
    scripts = Path(__file__).resolve().parents[2] / "scripts"
    shutil.copytree(scripts, folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    place.env |= {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": "/tmp"}
    yield place
    shutil.rmtree(folder, ignore_errors=True)


def start(place, uid, *words, env=None, python=None):
    logs = place.checkout.parent / f"logs of {uid}"
    if not logs.exists():
        logs.mkdir()
        os.chown(logs, uid, uid)
    main = MAIN.replace(str(Path(__file__).resolve().parents[2] / "scripts"), str(place.checkout.parent / "scripts"))
    prefix = _as(uid) if uid else []
    variables = place.env | {"HOME": "/nonexistent", "DEBUG_SPYRE_LOGS": str(logs), "DEBUG_SPYRE_PYTHON": str(PYTHON)}
    return subprocess.Popen([*prefix, python or PYTHON, "-c", main, *map(str, words)], cwd=place.checkout,
                            env=variables | (env or {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip


def call(place, uid, *words, **how):
    process = start(place, uid, *words, **how)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def holding(place, uid, seconds=60, verb=("exec", "--")):
    """A run of that user that holds lock and device."""
    ready = place.checkout.parent / f"ready of {uid}"
    ready.parent.chmod(0o777)
    command = [PYTHON, place.target, place.device, "self", seconds, ready]
    process = start(place, uid, *verb, *command) if verb else subprocess.Popen([*_as(uid), *map(str, command)])
    until(ready.exists, what="the holder")
    return process


def lock_file(place):
    (found,) = place.locks.iterdir()
    return found


def test_a_user_without_a_passwd_entry_and_without_home_in_roots_checkout_can_run(world):
    """As in a pod: random uid, HOME missing, git's dubious ownership, nothing writable but the logs folder."""
    done = call(world, ONE, "exec", "--", "sh", "-c", "echo it works")
    assert done.returncode == 0, done.stdout + done.stderr
    output = next((world.checkout.parent / f"logs of {ONE}").rglob("r1.txt"))
    assert output.read_text() == "it works\n"
    assert not (world.checkout / ".claude").exists()


def test_an_unwritable_logs_folder_is_one_line_with_the_remedy(world):
    done = call(world, ONE, "exec", "--", "true", env={"DEBUG_SPYRE_LOGS": "/proc/no/where"})
    assert done.returncode == 69 and "DEBUG_SPYRE_LOGS" in done.stderr and "Traceback" not in done.stderr


def test_the_first_users_file_serves_everybody(world):
    for uid in (ONE, OTHER, 0, ONE):
        assert call(world, uid, "exec", "--no-wait", "--", "true").returncode == 0
    assert lock_file(world).stat().st_uid == ONE and lock_file(world).stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize(("holder", "asker"), [(ONE, OTHER), (ONE, 0), (0, ONE)])
def test_another_users_run_keeps_the_card_and_is_named(world, holder, asker):
    process = holding(world, holder)
    try:
        refused = call(world, asker, "exec", "--no-wait", "--", "true")
        assert refused.returncode == 75, refused.stderr
        assert (f"uid {holder}" if holder else "root") in refused.stderr and "target.py" in refused.stderr
        told = call(world, asker, "lock", "--json")
        assert '"held": true' in told.stdout
    finally:
        call(world, holder, "stop")
        process.communicate(timeout=60)
    assert call(world, asker, "exec", "--wait", "20", "--", "true").returncode == 0


def test_a_device_held_by_a_user_who_cannot_be_looked_into_is_found_by_trying(world):
    process = holding(world, ONE, verb=())
    try:
        refused = call(world, OTHER, "exec", "--no-wait", "--reap", "--", "true")
        assert refused.returncode == 75 and "a process that this user can't look into" in refused.stderr
        assert process.poll() is None, "never signalled, --reap or not"
    finally:
        process.kill()
        process.wait()
    assert call(world, OTHER, "exec", "--no-wait", "--", "true").returncode == 0


def test_a_lock_file_that_only_its_owner_may_write_still_locks(world):
    assert call(world, ONE, "exec", "--", "true").returncode == 0
    lock_file(world).chmod(0o644)
    process = holding(world, OTHER)
    try:
        refused = call(world, ONE, "exec", "--no-wait", "--", "true")
        assert refused.returncode == 75 and "held by" in refused.stderr
    finally:
        call(world, OTHER, "stop")
        process.communicate(timeout=60)


def test_a_lock_file_that_cannot_even_be_read_is_said_with_its_owner(world):
    assert call(world, ONE, "exec", "--", "true").returncode == 0
    lock_file(world).chmod(0o600)
    refused = call(world, OTHER, "exec", "--no-wait", "--", "true")
    assert refused.returncode == 69 and f"uid {ONE}" in refused.stderr and str(lock_file(world)) in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_place_that_is_read_only_is_said(world):
    world.locks.chmod(0o755)
    refused = call(world, ONE, "exec", "--no-wait", "--", "true")
    assert refused.returncode == 69 and "Permission denied" in refused.stderr


def test_orphans_of_another_user_are_left_alone_and_their_owner_ends_them(world):
    process = holding(world, ONE)
    state = json.loads(next((world.checkout.parent / f"logs of {ONE}").rglob("state.json")).read_text())
    process.kill()
    process.communicate()
    os.kill(state["supervisor"], 9)
    refused = call(world, OTHER, "exec", "--no-wait", "--reap", "--", "true")
    assert refused.returncode == 75 and "what it started may hold it" in refused.stderr
    assert alive(state["child"])
    assert call(world, ONE, "exec", "--no-wait", "--", "true").returncode == 0
    assert not alive(state["child"])
