"""The corpus and how a text becomes evidence."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture
def read_text(tmp_path):
    """Evidence of a log given as text or bytes."""
    from debug_spyre.triage.io.logs_reader import read_logs

    def read(text, name="log.txt", checkout=None, **more):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
        return read_logs([path], checkout=checkout, **more)

    return read
