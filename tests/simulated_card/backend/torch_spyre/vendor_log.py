"""Noise of the vendor's libraries; the three levels are read once, when the package is imported, as the real ones are."""

import os
import sys

QUIET = {"TORCH_SENDNN_LOG": "CRITICAL", "DT_DEEPRT_VERBOSE": "-1", "DTLOG_LEVEL": "error"}
_loud = {"sendnn": False, "deeprt": False, "dtlog": False}


def read_levels():
    """Take the levels from the environment; where they are not set, set them to quiet."""
    for name, level in QUIET.items():
        os.environ.setdefault(name, level)
    _loud["sendnn"] = os.environ["TORCH_SENDNN_LOG"].upper() in {"DEBUG", "INFO", "TRACE"}
    try:
        _loud["deeprt"] = int(os.environ["DT_DEEPRT_VERBOSE"]) >= 1
    except ValueError:
        _loud["deeprt"] = False
    _loud["dtlog"] = os.environ["DTLOG_LEVEL"].lower() in {"debug", "info", "trace"}


def say(library, text):
    """One line on stderr if the library's level is raised."""
    if not _loud[library]:
        return
    forms = {"sendnn": "[sendnn] [info] {}", "deeprt": "deeprt(1): {}", "dtlog": "INFO  dtlog {}"}
    print(forms[library].format(text), file=sys.stderr, flush=True)
