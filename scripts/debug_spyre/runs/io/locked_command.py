"""`lock -- COMMAND`: a command in the foreground with the caller's own streams, under the card's lock."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from debug_spyre.card import holders
from debug_spyre.card.lock import HolderInfo, acquire
from debug_spyre.host import processes
from debug_spyre.host.interpreter import choose, first_on_path
from debug_spyre.runs.io.child import Redraw
from debug_spyre.runs.io.finish_run import end_orphans, grace_seconds, release_seconds
from debug_spyre.session.io.workspace import find_checkout
from debug_spyre.vocabulary.errors import CardBusyError, DebugSpyreError, Exit, UsageError


def run_locked(words: Sequence[str], *, cards: Sequence[str], wait: float | None, redraw: Redraw) -> int:
    """Run it and return its own exit status (128+n for signal n).

    Raises:
        CardBusyError: the lock or the device is held; UsageError: there is no such command.
    """
    processes.become_subreaper()

    def clean() -> None:
        for owner in end_orphans(cards):
            redraw(owner)

    clean()

    told: list[str] = []

    def blocked(holder: str) -> None:
        if holder not in told:
            told.append(holder)
            sys.stderr.write(f"debug-spyre: waiting for the card, held by {holder}\n")
        clean()

    held = acquire(cards, wait=wait, claim=HolderInfo(shlex.join(words)), blocked=blocked)
    try:
        if not held.nested:
            now = holders.wait_until_free(cards, seconds=5.0 if wait is None else wait)
            if now.state is holders.CardState.HELD:
                raise CardBusyError(f"the card is {now.says()}", next="debug-spyre lock")
        status = _run(words, held.descriptors, held.environment())
        processes.end(lambda: processes.descendants(os.getpid()), grace=grace_seconds(), reap=_reap)
        if not held.nested:
            now = holders.wait_until_free(cards, seconds=release_seconds())
            if now.state is holders.CardState.HELD:
                sys.stderr.write(f"debug-spyre: the command has ended, and the card is still {now.says()}\n")
                return int(Exit.STILL_HELD)
        return status
    finally:
        held.release()


def _run(words: Sequence[str], descriptors: Sequence[int], environment: dict[str, str]) -> int:
    try:
        env = {**os.environ, **environment, **_path()}
        child = subprocess.Popen(words, pass_fds=descriptors, env=env)
    except OSError as error:
        raise UsageError(
            f"{words[0]} can't be started: {error.strerror}", next="debug-spyre lock -- COMMAND"
        ) from error
    while True:
        try:
            code = child.wait()
            return Exit.SIGNALLED - code if code < 0 else code
        except KeyboardInterrupt:  # the terminal told the child too; it ends as it likes
            with suppress(ProcessLookupError):
                child.send_signal(signal.SIGINT)


def _path() -> dict[str, str]:
    """The checkout's own Python first, where there is a checkout."""
    try:
        return first_on_path(choose(find_checkout()).python, os.environ)
    except DebugSpyreError:
        return {}


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
