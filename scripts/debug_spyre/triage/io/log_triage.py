"""The triage of logs that anybody made: the same for whoever asks, so that a cluster's number means one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from debug_spyre.triage.grouping import group
from debug_spyre.triage.io.logs_reader import read_logs
from debug_spyre.triage.io.parameter_sources import parameter_names
from debug_spyre.triage.rule import Rule
from debug_spyre.triage.rules import RULES
from debug_spyre.vocabulary.evidence import Evidence, Triage


def triage_logs(paths: Sequence[Path], *, checkout: Path | None, rules: Sequence[Rule] = RULES) -> Triage:
    """Read the logs and group what fails in them.

    Raises:
        BadInputError: a file can't be read, or it is of no known form.
    """
    return grouped(read_logs(paths, checkout=checkout, rules=rules), checkout)


def grouped(evidence: Evidence, checkout: Path | None) -> Triage:
    """The clusters of a run's or log's failures, with the parameter names that the checkout's tests give."""
    names = parameter_names((f.nodeid for f in evidence.failures), checkout)
    return Triage(evidence, group(evidence, names=names))
