"""The investigation that README shows runs as it stands, in a fresh copy of the plugin repo."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from debug_spyre.demo.demo_card import prepare

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ANSWERS = {0, 1}  # yes and no; anything else is a command that does not run

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1500)]


def commands():
    block = re.search(r"## One investigation by hand.*?```sh\n(.*?)```", README, re.DOTALL)[1]
    return [shlex.split(line, comments=True) for line in block.splitlines() if line.strip()]


def test_every_command_of_the_investigation_by_hand_runs_as_it_stands(tmp_path):
    demo = prepare(tmp_path / "demo")
    assert [words[1] for words in commands()][-1] == "finish"
    for words in commands():
        assert words[0] == "debug-spyre"
        done = subprocess.run(
            [ROOT / "scripts/debug-spyre", *words[1:]], cwd=demo.checkout, env=demo.env, capture_output=True, text=True
        )
        assert done.returncode in ANSWERS, f"{words} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert demo.is_users_edit_untouched()
