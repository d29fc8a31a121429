"""An investigation on disk: its folder, the steps that are done, and the minutes that are left."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debug_spyre.examine.dossier import Dossier, dossier_to
from debug_spyre.host.files import write_atomically
from debug_spyre.vocabulary.errors import RefusedError

STATE, DOSSIER = "investigation.json", "dossier.json"
Redraw = Callable[[Path], None]


@dataclass(slots=True)
class Work:
    """`known` is what each step gave, by key; a step that is known is not done again."""

    folder: Path
    checkout: Path
    minutes: float
    redraw: Redraw
    known: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    before: float = 0.0  # seconds that earlier calls took

    def load(self) -> None:
        """Take up what was done."""
        try:
            data = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        self.known.update(data["known"])
        self.before = float(data["seconds"])

    @property
    def seconds(self) -> float:
        """What it has taken so far, earlier calls included."""
        return self.before + time.monotonic() - self.began

    def has_time(self, text: str) -> bool:
        """Whether another step may begin; where not, it is named as left out. A resumed call has its own minutes."""
        if time.monotonic() - self.began < self.minutes * 60:
            return True
        if text not in self.left_out:
            self.left_out.append(text)
        return False

    def once(self, key: str, do: Callable[[], Any]) -> Any:
        """What the step gives: done now, or known."""
        if key not in self.known:
            self.known[key] = do()
            self.save()
        return self.known[key]

    def check_under(self, now: dict[str, Any]) -> None:
        """Steps of one tree and one backend only: what was found on another is not gone on with.

        Raises:
            RefusedError: tree, backend or the card's variables are others than at the first step.
        """
        before = self.once("under", lambda: now)
        changed = [name for name, value in now.items() if before.get(name) != value]
        if changed:
            raise RefusedError(
                f"{' and '.join(changed)} changed since this investigation began, so its steps can't go on",
                next="debug-spyre investigate, with the same tests: a new one",
            )

    def save(self) -> None:
        """The steps so far, replaced at once."""
        write_atomically(self.folder / STATE, json.dumps({"known": self.known, "seconds": round(self.seconds, 1)}))

    def say(self, text: str) -> None:
        """One line of progress, in the job's output."""
        print(f"[{self.seconds:5.0f} s] {text}", flush=True)

    def write(self, dossier: Dossier) -> None:
        """The dossier as it stands."""
        write_atomically(self.folder / DOSSIER, json.dumps(dossier_to(dossier), ensure_ascii=False))
