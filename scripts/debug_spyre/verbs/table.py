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
    Row("doctor", "doctor", "check card, lock, torch-spyre, torch, git, logs folder, hooks"),
    Row("triage", "triage", "run the matrix once, or read a log, and print the clusters"),
    Row("investigate", "investigating", "from failing tests to proved causes, in one job"),
    Row("open", "sessions", "start a session on one cluster; prints the log's path"),
    Row("run", "runs", "run pytest under the card's lock; keep and read the output"),
    Row("exec", "runs", "run any other command (a repro script) in the same way"),
    Row("wait", "runs", "follow a run that is still going on"),
    Row("stop", "runs", "end a run"),
    Row("hypothesis", "hypotheses", "the queue of hypotheses: add, seed, start, conclude, drop, list"),
    Row("note", "notes", "write in the log: summary, finding, next, experiment"),
    Row("save", "notes", "save standard input as a file of the session"),
    Row("cluster", "clusters", "change the session's members: list, add, move, drop, probe"),
    Row("revert", "tree", "put the tree back as it was at open; the patch is saved first"),
    Row("validate", "validation", "run all members, then the matrix they came from; fill the validation table"),
    Row("close", "closing", "close the session as resolved or blocked, if the conditions are met"),
    Row("finish", "finishing", "validate, revert, escalate and close, in one call"),
    Row("reopen", "closing", "investigate a closed session again"),
    Row("escalate", "escalation", "make the bundle for the torch-spyre team"),
    Row("op", "op", "show where an op is registered in the installed torch-spyre"),
    Row("compare", "compare", "compare two tensor files; name the pattern of the differences"),
    Row("status", "status", "show the state of the session on one screen"),
    Row("shadow", "shadow", "repeat each device op on the CPU; name the first that differs", first_screen=False),
    Row("sweep", "shadow", "find for which sizes, types and views an op fails", first_screen=False),
    Row("ladder", "ladder", "run the failure under a table of switches", first_screen=False),
    Row("repro", "repro", "make the smallest script that shows the fault, and prove it", first_screen=False),
    Row("limits", "doctor", "list known limitations of torch-spyre; --probe tries them", first_screen=False),
    Row("bisect", "bisecting", "find the commit of torch-spyre that brought a fault", first_screen=False),
    Row("similar", "sessions", "find past sessions with the same signature", first_screen=False),
    Row("render", "status", "render the log's page again", first_screen=False),
    Row("index", "status", "render the list of all sessions", first_screen=False),
    Row("prune", "status", "remove old closed sessions and triages", first_screen=False),
    Row("lock", "runs", "show who holds the card, or run a command under its lock", first_screen=False),
    Row("install", "install", "install the skill into a checkout, or remove it", first_screen=False),
    Row("demo", "demo", "run the whole loop on a simulated card", first_screen=False),
)
BY_NAME = {row.name: row for row in ROWS}


def load(name: str) -> Verb:
    """The verb of that name; its module is imported now."""
    module = importlib.import_module(f"debug_spyre.verbs.{BY_NAME[name].module}")
    verb: Verb = module.VERBS[name]
    return verb
