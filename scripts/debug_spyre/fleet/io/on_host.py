"""The part that runs on a worker's host, in two processes.

The functions at the top run inside the Dask worker, whose environment has no debug_spyre: standard library and distributed only.
`main` is the lane's own process, under the target's interpreter with the package that was sent: it runs one job of ours under
the card's lock and speaks to the worker by lines of JSON. Each ends by itself where the one above it is gone.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

LEASE_SECONDS = 20.0  # a lane of which the driver has not asked for so long is ended
FACTS_SECONDS = 60.0
MOST_BYTES = 8 << 20  # of one answer, a lane
BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from debug_spyre.fleet.io.on_host import main; sys.exit(main(sys.argv[2:]))"
RELAYS: dict[str, Relay] = {}
STORE = ""  # the driver's call says it


def receive(place: str, name: str, offset: int, data: bytes, *, last: bool) -> bool:
    """A part of an archive; with the last one it is laid out as `place`/`name`. True where that folder is there already."""
    folder = _store() / place
    if (folder / name).is_dir():
        return True
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = folder / f"{name}.part"
    with part.open("r+b" if offset else "wb") as stream:
        stream.seek(offset)
        stream.write(data)
    if last:
        laid = Path(tempfile.mkdtemp(dir=folder))
        unpack(part.read_bytes(), laid)
        part.unlink()
        laid.rename(folder / name)
    return last


def unpack(archive: bytes, into: Path) -> None:
    """Files and links of an archive of ours; links last, so that nothing is written through one.

    Raises:
        ValueError: a name leads outside.
    """
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as packed:
        members = packed.getmembers()
        for member in sorted(members, key=lambda m: m.issym()):
            if member.name.startswith("/") or ".." in member.name.split("/"):
                raise ValueError(f"{member.name!r} leads outside")
            place = into / member.name
            place.parent.mkdir(parents=True, exist_ok=True)
            if member.issym():
                place.symlink_to(member.linkname)
                continue
            source = packed.extractfile(member)
            place.write_bytes(source.read() if source else b"")
            place.chmod(0o700 if member.mode & 0o100 else 0o600)


def where(place: str) -> str:
    """The folder in which it lies."""
    return str(_store() / place)


def forget(place: str) -> None:
    """Remove what was laid out there."""
    shutil.rmtree(_store() / place, ignore_errors=True)


def _store() -> Path:
    """Below the worker's own folder, which Dask removes when the worker ends."""
    return Path(STORE)


def _interpreter(wanted: str) -> str | None:
    """The target's interpreter here: as this host's user says, else where it lies on the driver's host."""
    return shutil.which(os.environ.get("DEBUG_SPYRE_PYTHON") or wanted)


def _environment() -> dict[str, str]:
    """The worker's variables without what Dask and its own environment put there: tests see the host as its user does."""
    import dask

    env = dict(os.environ)
    for name, value in (dask.config.get("distributed.nanny.pre-spawn-environ", default=None) or {}).items():
        if env.get(name) == str(value):
            del env[name]
    if env.get("VIRTUAL_ENV") == sys.prefix:
        del env["VIRTUAL_ENV"]
    return env


async def facts(wanted: str, package: str) -> dict[str, Any]:
    """What this host's interpreter tells, or the trouble with it."""
    python = _interpreter(wanted)
    if python is None:
        told = os.environ.get("DEBUG_SPYRE_PYTHON")
        what = f"DEBUG_SPYRE_PYTHON={told} is" if told else f"the interpreter of the driver's host, {wanted}, is"
        return {
            "trouble": f"{what} no program there",
            "next": "start that worker with DEBUG_SPYRE_PYTHON=PYTHON, where torch and pytest are installed",
        }
    scripts = str(_store() / package / "scripts")
    words = [python, "-P", "-c", BOOT, scripts, "facts"]
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe, env=_environment())
        out, err = await asyncio.wait_for(process.communicate(), FACTS_SECONDS)
        return {"facts": json.loads(out) | {"interpreter": python}}
    except TimeoutError:
        process.kill()
        return {"trouble": f"{python} did not answer in {FACTS_SECONDS:g} s"}
    except (OSError, ValueError):
        last = (err.decode("utf-8", "replace").strip().splitlines() or ["nothing was printed"])[-1]
        return {"trouble": f"{python} can't run debug-spyre: {last[:200]}", "next": "Python 3.11 or newer with jinja2"}


def hold(key: str, place: str, package: str, order: dict[str, Any]) -> str:
    """The task that has the cards: one lane, from its start to its end."""
    from distributed import secede

    secede()  # a lane mostly waits: it takes a card, not a thread
    relay = RELAYS[key] = Relay(_store() / place, _store() / package / "scripts", order)
    try:
        while not relay.told_end and time.monotonic() - relay.asked_at < LEASE_SECONDS:
            time.sleep(0.05)
    finally:
        relay.close()
        RELAYS.pop(key, None)
    return "ended"


def exchange(wishes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is new of each lane; a lane that waits for its cards has nothing yet."""
    return {key: RELAYS[key].exchange(wish) for key, wish in wishes.items() if key in RELAYS}


class Relay:
    """Between the driver and a lane's process."""

    def __init__(self, run: Path, scripts: Path, order: dict[str, Any]) -> None:
        self.folder = run / "lanes" / str(order["number"])
        self.folder.mkdir(parents=True, mode=0o700)
        self.said: list[dict[str, Any]] = []
        self.run: dict[str, str] = {}  # where results and output lie
        self.end: dict[str, Any] | None = None
        self.asked_at = time.monotonic()
        self.told_end = False
        python = _interpreter(str(order["python"]))
        order = {**order, "folder": str(self.folder), "tree": str(run / "tree")}
        self.log = self.folder / "lane.txt"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(python), "-P", "-c", BOOT, str(scripts), "lane", json.dumps(order)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, cwd=run / "tree", env=_environment(), start_new_session=True, text=True,
            )  # fmt: skip
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            if "run" in told:
                self.run = told["run"]
            elif "over" in told:
                self.end = told["over"]
            else:
                self.said.append(told)
        code = self.process.wait()
        if self.end is None:
            tail = self.log.read_text(encoding="utf-8", errors="replace").strip()[-300:]
            self.end = {
                "refused": f"its process ended by itself (exit {code}): {tail.splitlines()[-1] if tail else ''}"
            }

    def exchange(self, wish: dict[str, Any]) -> dict[str, Any]:
        """`wish`: lines to `send`, whether to `end` and to `release`, offsets of `results` and `output`, a `file` and its offset."""
        self.asked_at = time.monotonic()
        for line in wish["send"]:
            self._tell(line)
        if wish.get("end"):
            self._tell({"end": True})
        self.told_end = self.told_end or bool(wish.get("release"))
        end, said = self.end, len(self.said)  # first: what was written before these words is read after them
        answer: dict[str, Any] = {"began": bool(self.run)}
        whole = True
        for name in ("results", "output"):
            answer[name] = _read(self.run[name], wish[name]) if name in self.run else b""
            whole = whole and len(answer[name]) < MOST_BYTES
        if wish.get("file") and self.run:
            name, offset = wish["file"]
            answer["file"] = _read(os.path.join(os.path.dirname(self.run["results"]), name), offset)
        if whole:
            answer["said"], self.said = self.said[:said], self.said[said:]
            answer["end"] = end
        return answer

    def _tell(self, words: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):
            self.process.stdin.write(json.dumps(words) + "\n")
            self.process.stdin.flush()

    def close(self) -> None:
        """The lane's process ends its run and itself when it hears nobody any more."""
        with suppress(OSError, ValueError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(LEASE_SECONDS)


def _read(path: str, offset: int) -> bytes:
    try:
        with open(path, "rb") as stream:
            stream.seek(offset)
            return stream.read(MOST_BYTES)
    except OSError:
        return b""


# -- the lane's own process, under the target's interpreter


def main(words: list[str]) -> int:
    """`facts`: print them. `lane ORDER`: run a lane."""
    if words[0] == "facts":
        sys.stdout.write(json.dumps(facts_here()) + "\n")
        return 0
    return lane(json.loads(words[1]))


def facts_here() -> dict[str, Any]:
    """The facts of this host under this interpreter."""
    import platform
    import socket

    from debug_spyre.card.holders import visible_cards
    from debug_spyre.host.fingerprint import package_folder, site_packages

    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "torch": _version("torch"),
        "torch_spyre": content_digest(package_folder(site_packages())),
        "devices": [card.device for card in visible_cards()],
        "boot": boot,
        "interpreter": sys.executable,
        "host": socket.gethostname(),
    }


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def content_digest(folder: Path | None) -> str | None:
    """One short name for the content of a package: the same wherever it was installed."""
    import hashlib

    if folder is None:
        return None
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"):
        total.update(str(path.relative_to(folder)).encode("utf-8", "surrogateescape") + b"\0")
        with path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()[:12]


def lane(order: dict[str, Any]) -> int:
    """Run pytest as a job of ours under the locks of the cards, and pass words between its plugin and the worker."""
    from debug_spyre.card.holders import card_environment, visible_cards
    from debug_spyre.fleet.io.lane import FILES
    from debug_spyre.runs.io.jobs import JobSpec, NeverBegan, follow, submit
    from debug_spyre.vocabulary.errors import DebugSpyreError

    folder, tree = Path(order["folder"]), Path(order["tree"])
    pipes = Path(tempfile.mkdtemp(dir=folder))
    cards = [card for card in visible_cards() if card.device in order["devices"]]
    env = {**card_environment(cards, os.environ), **order["env"], FILES: str(pipes)}
    found = [str(p) for p in (tree, tree / "src") if p.is_dir()]
    env["PYTHONPATH"] = os.pathsep.join([*found, *filter(None, [os.environ.get("PYTHONPATH")])])
    spec = JobSpec(
        folder=folder / "job",
        checkout=tree,
        verb="run",
        name=None,
        argv=(sys.executable, *order["argv"]),
        pytest_args=tuple(order["pytest_args"]),
        env=env,
        cards=",".join(order["devices"]),
        python=sys.executable,
    )
    ends = _pipes(pipes)
    try:
        run = submit(spec)
        _say(run={"results": str(run.results), "output": str(run.job().output_path)})
        heard_all = threading.Event()
        threading.Thread(target=_pass_down, args=(run, ends[0]), daemon=True).start()
        threading.Thread(target=_pass_up, args=(ends[1], heard_all), daemon=True).start()
        record = follow(run)
        os.write(ends[1], b'{"last": true}\n')
        heard_all.wait(5)
    except DebugSpyreError as error:
        _say(over={"refused": error.what, "next": error.next})
        return 0
    except NeverBegan:
        _say(over={"status": "interrupted"})
        return 0
    warnings = [w for w in record.warnings if not w.startswith("python: ")]
    _say(over={"status": record.status.value, "exit": record.exit, "valid": record.valid, "warnings": warnings,
               "holders": list(record.holders)})  # fmt: skip
    return 0


def _pipes(folder: Path) -> tuple[int, int]:
    """Both pipes, open for reading and writing: opening never waits, and both close when this process ends."""
    for name in ("down", "up"):
        os.mkfifo(folder / name, 0o600)
    return os.open(folder / "down", os.O_RDWR | os.O_CLOEXEC), os.open(folder / "up", os.O_RDWR | os.O_CLOEXEC)


def _pass_down(run: Any, down: int) -> None:
    """From the worker to the plugin; the end of the worker, or its wish, ends the run."""
    from debug_spyre.runs.io.jobs import request_stop

    for line in sys.stdin:
        if json.loads(line).get("end"):
            break
        os.write(down, line.encode())
    request_stop(run)


def _pass_up(up: int, heard_all: threading.Event) -> None:
    with open(up, encoding="utf-8", closefd=False) as stream:
        for line in stream:
            told = json.loads(line)
            if "last" in told:
                heard_all.set()
                return
            _say(**told)


_saying = threading.Lock()


def _say(**words: Any) -> None:
    with _saying, suppress(OSError):
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()
