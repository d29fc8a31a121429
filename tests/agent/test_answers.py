"""What an agent reads: short, plain, with what the log needs and the next command. Real verbs, real pytest."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("client_kit_for_answers", Path(__file__).with_name("client_kit.py"))
kit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kit)

MANY = """
import pytest
import torch


@pytest.mark.parametrize("width", range({count}), ids=lambda w: f"decode(q=1,kv={{w}})")
def test_wide(width):
    got = torch.zeros(4, 256, dtype=torch.float16)
    torch.testing.assert_close(got, torch.full((4, 256), 3.0, dtype=torch.float16), atol=1e-2, rtol=1e-2)
"""


@pytest.fixture
def place(tmp_path):
    top = kit.make_checkout(tmp_path / "plug in")

    def ours(*words, **more):
        env = {
            **{k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "FORCE_COLOR")},
            "DEBUG_SPYRE_PYTHON": sys.executable,
            "CLAUDECODE": "1",
            "CLAUDE_CODE_SESSION_ID": "one",
            "TERM": "xterm-256color",
            **more,
        }
        done = subprocess.run(
            [str(ROOT / "scripts/debug-spyre"), *words], cwd=top, env=env, capture_output=True, timeout=200
        )
        return done, done.stdout + done.stderr

    return top, ours


def is_plain(said):
    return b"\x1b" not in said and b"\r" not in said


@pytest.mark.parametrize(("count", "budget"), [(1, 1500), (50, 4000)])
def test_a_failing_run_is_read_in_few_bytes_with_what_the_log_wants(count, budget, place):
    top, ours = place
    (top / "tests/test_wide.py").write_text(MANY.format(count=count))
    done, said = ours("run", "--foreground", "150", "tests/test_wide.py")
    assert done.returncode == 1, said
    assert len(said) <= budget, said.decode()
    assert is_plain(said)
    text = said.decode()
    assert "1024 / 1024" in text or "1024 of 1024" in text
    assert "difference 3" in text
    assert f"{count} failed" in text
    assert re.search(r"^ *next: debug-spyre ", text, re.MULTILINE)


def test_verbs_that_only_record_answer_in_few_bytes(place):
    _, ours = place
    for words in (
        ("open", "stops-early", "--members", kit.PROBE),
        ("hypothesis", "add", "the sum stops at 64", "--test", "a script"),
        ("note", "summary", "the reduction stops early"),
        ("note", "finding", "LIMIT is 64"),
        ("hypothesis", "list"),
        ("status", "--brief"),
    ):
        done, said = ours(*words)
        assert done.returncode == 0, said
        assert is_plain(said)
        assert len(said) <= 1200, said.decode()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("hypothesis", "start"), 64), (("run", "-n", "4", "tests"), 64), (("run", "-k", "a(b", "tests"), 64),
        (("run", "-W", "error::UserWarning", "tests"), 64), (("close", "resolved"), 64), (("nonsense",), 64),
        (("exec", "--", "uv", "run", "pytest", "-n", "2"), 64),
    ],
)  # fmt: skip
def test_a_refusal_is_short_and_ends_with_what_to_do(words, status, place):
    done, said = place[1](*words)
    assert done.returncode == status, said
    assert len(said) <= 700, said.decode()
    assert is_plain(said)
    assert re.search(r"next: debug-spyre ", said.decode())
    assert b"Traceback" not in said


def test_a_second_cluster_is_a_second_session(place):
    """S4: opening does not mix into the session that is open, and says that it is there."""
    top, ours = place
    ours("open", "stops-early", "--members", kit.PROBE)
    other = "tests/test_reduce.py::test_sum[sum(q=1,kv=256)]"
    done, said = ours("open", "another-symptom", "--members", other, CLAUDE_CODE_SESSION_ID="two")
    assert done.returncode == 0, said
    assert b"stops-early" in said
    logs = top / ".claude/skills/debug-spyre/logs"
    folders = [*logs.glob("debug-*-stops-early/journal.jsonl"), *logs.glob("debug-*-another-symptom/journal.jsonl")]
    assert len(folders) == 2
    assert other not in folders[0].read_text()
    assert kit.PROBE not in folders[1].read_text()
