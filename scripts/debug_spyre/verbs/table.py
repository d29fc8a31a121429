"""Every verb's name, its module and its one line of help. Modules are imported only when their verb is called."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from debug_spyre.verbs.verb import Verb


@dataclass(frozen=True, slots=True)
class Row:
    """One verb of the table."""

    name: str
    module: str  # in debug_spyre.verbs; its VERBS maps the name to a Verb
    summary: str
    first_screen: bool = True


ROWS = (
    Row("doctor", "doctor", "is everything in place? card, lock, torch-spyre, torch, git, logs folder, hooks"),
    Row("triage", "triage", "run the matrix once, or read a log, and print the clusters"),
    Row("open", "sessions", "start a session on one cluster; prints the log's path"),
    Row("run", "runs", "one pytest run under the card's lock, kept and read"),
    Row("exec", "runs", "the same for any other command (a repro script)"),
    Row("wait", "runs", "follow a job that outlived its caller"),
    Row("stop", "runs", "end a job"),
    Row("hypothesis", "hypotheses", "the queue: add, seed, start, conclude, drop, list"),
    Row("note", "notes", "the log's prose: summary, finding, next, experiment"),
    Row("save", "notes", "stdin into the session's folder, listed as an artifact"),
    Row("cluster", "clusters", "re-split while working: list, add, move, drop, probe"),
    Row("revert", "tree", "the tree back to what it was at open; the patch is saved first"),
    Row("validate", "validation", "all members, then the matrix; fills the validation table"),
    Row("close", "closing", "resolved or blocked, through the gate"),
    Row("reopen", "closing", "back to investigating"),
    Row("escalate", "escalation", "the bundle for the torch-spyre team"),
    Row("op", "op", "where an op is registered in the installed torch-spyre"),
    Row("compare", "compare", "are two tensor files close, and if not, what is the pattern"),
    Row("status", "status", "where we are, one screen"),
    Row("shadow", "shadow", "each device op again on the CPU: names the first that differs", first_screen=False),
    Row("sweep", "sweep", "one op over sizes, views, dtypes, overloads: when does it fail", first_screen=False),
    Row("ladder", "ladder", "the failure under a table of switches", first_screen=False),
    Row("repro", "repro", "the smallest script that shows the fault, proved", first_screen=False),
    Row("limits", "limits", "known limitations of torch-spyre; --probe tries them", first_screen=False),
    Row("similar", "sessions", "past sessions with the same signature", first_screen=False),
    Row("render", "pages", "write the log's page again", first_screen=False),
    Row("index", "pages", "the list of all sessions as a page", first_screen=False),
    Row("prune", "pages", "remove old closed sessions and triages", first_screen=False),
    Row("lock", "runs", "who holds the card; or run a command under its lock", first_screen=False),
    Row("install", "install", "put the skill into a checkout or take it out", first_screen=False),
    Row("demo", "demo", "the whole loop on the simulated card", first_screen=False),
)
BY_NAME = {row.name: row for row in ROWS}


def load(name: str) -> Verb:
    """The verb of that name; its module is imported now."""
    module = importlib.import_module(f"debug_spyre.verbs.{BY_NAME[name].module}")
    verb: Verb = module.VERBS[name]
    return verb
