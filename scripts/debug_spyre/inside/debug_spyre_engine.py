"""Makes calls on the card and judges them, one after another as they are asked: the one engine of search and measurement.

`python debug_spyre_engine.py FOLDER`: reads FOLDER/asks.jsonl as it grows and answers in FOLDER/answers.jsonl, one JSON
line each, in order. This process never touches the card: a worker that it forks does, and a new one takes its place when
it dies or hangs. An ask with "isolated" gets a worker of its own, so that no earlier call matters.
Ends at {"kind": "end"}, or when whoever asks has died: FOLDER/alive is locked by it as long as it lives.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from debug_spyre_trial import AUTOLOAD, LATER, _take_name, preload  # type: ignore[import-not-found]

LOOK_SECONDS = 1.0
CALL_SECONDS = 120.0
FORMS = 100_000  # of eager kernels in one worker; the card's plugin takes the same


def main(words: list[str]) -> int:
    """Serve the folder until the end is asked for."""
    folder = Path(words[0])
    _take_name()
    preload()
    worker: Worker | None = None
    with open(folder / "answers.jsonl", "a", encoding="utf-8") as answers:
        for ask in _asks(folder / "asks.jsonl"):
            if ask.get("kind") == "end":
                break
            if ask.get("isolated") and worker:
                worker.end()
                worker = None
            worker = worker or Worker()
            answer = worker.ask(ask)
            if answer.get("died") or ask.get("isolated"):
                worker.end()
                worker = None
            answers.write(json.dumps({"id": ask["id"], **answer}) + "\n")
            answers.flush()
    if worker:
        worker.end()
    return 0


def _asks(path: Path) -> Iterator[dict[str, Any]]:
    """Whole lines of the growing file, until nobody is left who could ask."""
    looked, rest = time.monotonic(), ""
    with open(path, "a+", encoding="utf-8") as stream:
        stream.seek(0)
        while True:
            rest += stream.readline()
            if rest.endswith("\n"):
                yield json.loads(rest)
                rest = ""
                continue
            time.sleep(0.005)
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                if _is_orphan(path.with_name("alive")):
                    return


def _is_orphan(path: Path) -> bool:
    """Nobody holds the lock of whoever asks."""
    try:
        with open(path, "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


class Worker:
    """A forked process that has the card; it answers one ask at a time."""

    def __init__(self) -> None:
        asks, self.give = os.pipe()
        self.take, answers = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(self.give)
            os.close(self.take)
            _work(asks, answers)
        os.close(asks)
        os.close(answers)
        self.rest = b""

    def ask(self, ask: dict[str, Any]) -> dict[str, Any]:
        """The answer; {"died": how} where there is none."""
        try:
            os.write(self.give, json.dumps(ask).encode() + b"\n")
        except BrokenPipeError:
            return {"died": self._death()}
        deadline = time.monotonic() + float(ask.get("seconds") or CALL_SECONDS)
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.take], [], [], max(deadline - time.monotonic(), 0.0))
            if not ready:
                os.kill(self.pid, signal.SIGKILL)
                return {"died": "it hangs"}
            part = os.read(self.take, 1 << 16)
            if not part:
                return {"died": self._death()}
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _death(self) -> str:
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return (
            f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
            if os.WIFSIGNALED(status)
            else (f"exit {os.waitstatus_to_exitcode(status)}")
        )

    def end(self) -> None:
        """Its pipe is closed, so it ends as a process of its own ends and gives the card back."""
        os.close(self.give)
        os.close(self.take)
        if self.pid:
            os.waitpid(self.pid, 0)


def _work(asks: int, answers: int) -> None:
    """In the child: load the backend, answer until the pipe is closed."""
    atexit._clear()  # the parent's are the parent's to run
    if os.environ.get(AUTOLOAD, "1") == "1":
        for load in LATER:
            load()
    import torch
    import torch._dynamo.config as dynamo

    torch.set_num_threads(1)
    for limit in ("recompile_limit", "accumulated_recompile_limit"):  # a form beyond them would end in RecursionError
        if hasattr(dynamo, limit):
            setattr(dynamo, limit, FORMS)
    with (
        os.fdopen(asks, encoding="utf-8") as given,
        os.fdopen(answers, "w", encoding="utf-8") as out,
        torch.inference_mode(),
    ):
        for line in given:
            out.write(json.dumps(answer_to(json.loads(line))) + "\n")
            out.flush()
    atexit._run_exitfuncs()
    os._exit(0)


def answer_to(ask: dict[str, Any]) -> dict[str, Any]:
    """One ask: {"kind": point|shape|space, "call", "before"}; what it asks for as plain data."""
    from debug_spyre_points import judged_point, shapes_of, space_of  # type: ignore[import-not-found]
    from debug_spyre_variants import missing_indices, runs  # type: ignore[import-not-found]

    try:
        if ask["kind"] == "shape":
            return {"out": shapes_of(ask["call"])}
        if ask["kind"] == "missing":
            missing = missing_indices(ask["packet"], int(ask["size"]))
            return {"missing": None if missing is None else runs(missing)[:8]}
        if ask["kind"] == "space":
            return {"space": space_of(ask["call"])}
        for call in ask.get("before") or ():
            judged_point(call, key="before", times=1)
        key = str(ask.get("key") or ask["id"])
        return dict(judged_point(ask["call"], key=key, pattern=bool(ask.get("pattern"))))
    except Exception as error:  # noqa: BLE001  the answer says what went wrong with the question
        return {"verdict": "uncompared", "error": f"{type(error).__name__}: {error}"[:200], "out": []}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main(sys.argv[1:]))
