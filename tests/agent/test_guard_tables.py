"""Two tables of lines as agents type them: what breaks a rule in disguise, and what is harmless."""

from collections import Counter
from pathlib import Path

import pytest

SESSION = ".claude/skills/debug-spyre/logs/debug-20261130-101112-rmsnorm-wide"
DATA = Path(__file__).with_name("data")
FILES = {
    "danger.py": "import shutil\nshutil.rmtree('spyre_inference')\n",
    "pushes.py": "import subprocess\nsubprocess.run(['git', 'push'])\n",
    "pushes.sh": "set -e\ngit push\n",
    "overrides.py": "import os\nos.system('debug-spyre close resolved --override no-edited-test x')\n",
    "repro.py": "import torch\nimport torch_spyre\n",
    "plain.py": "print('vllm')\n",
    "r.sh": "cd tests\npytest test_rms_norm.py\n",
    "lint.sh": "ruff check .\n",
    "list.txt": "tests/test_rms_norm.py\n",
    "Makefile": "PY ?= python\nall: lint test\ntest: ; $(PY) -m pytest tests\ncheck: lint test\nlint:\n\truff check .\n\tmypy .\nclean:\n\trm -rf build\ninstall:\n\tpip install .\ndeps: install\nsmoke:\n\t@cd tests && py.test -q\npublish:\n\tgit push origin HEAD\n",
    "justfile": "test *args:\n    pytest {{args}}\n\nlint:\n    ruff check .\n",
    "package.json": '{"scripts": {"test": "python -m pytest", "check": "npm run lint && npm run test", "lint": "eslint .", "e2e": "bash run_card.sh"}}',
    "tox.ini": "[testenv]\ndeps = pytest\ncommands = pytest {posargs}\n[testenv:lint]\ncommands = ruff check .\n",
    "noxfile.py": "import nox\n\n@nox.session\ndef tests(session):\n    session.run('pytest', 'tests')\n",
    "pyproject.toml": '[project]\nname = "spyre-inference"\n\n[tool.hatch.envs.default.scripts]\ntest = "pytest {args:tests}"\n\n[tool.pytest.ini_options]\naddopts = "-ra"\n',
    "ci/card.mk": "card:\n	pytest tests/test_rms_norm.py\n",
    "Taskfile.yml": "version: '3'\ntasks:\n  test:\n    cmds:\n      - pytest tests\n  lint:\n    cmds:\n      - ruff check .\n",
    "hatch.toml": '[envs.default.scripts]\ncard = "pytest tests"\nlint = "ruff check ."\n',
    "run_card.sh": '#!/bin/sh\nset -e\npytest tests/test_rms_norm.py "$@"\n',
    "tools/wrap.sh": '#!/usr/bin/env bash\nexec ./run_card.sh "$@"\n',
    "tools/look.sh": "#!/usr/bin/env bash\nls tests\ngit status\n",
    "go.py": "import torch\nimport torch_spyre\nprint(torch.ones(3, device='spyre'))\n",
    "push.py": "import subprocess\nsubprocess.run(['git', 'push', 'origin', 'HEAD'])\n",
    "wipe.py": "import shutil\nshutil.rmtree('spyre_inference')\n",
    "count.py": "import sys\nprint(sum(1 for _ in open(sys.argv[1])))\n",
    "fix.patch": "--- a/x\n+++ b/x\n",
    "ids.txt": "tests/test_rms_norm.py::test_it\n",
    "out.txt": "1 failed\n",
    "requirements.txt": "torch\n",
    "tests/test_mm.py": "def test_mm():\n    pass\n",
}  # fmt: skip


def table(name):
    """(number, kind, line) of every row."""
    rows = []
    for number, line in enumerate((DATA / name).read_text(encoding="utf-8").splitlines(), start=1):
        if line and not line.startswith("#"):
            kind, _, text = line.partition("\t")
            rows.append((number, kind, text.replace("\\n", "\n")))
    return rows


DISGUISED, HARMLESS = table("disguised.tsv"), table("harmless.tsv")


@pytest.fixture
def place(checkout, kit):
    """A checkout with an open session, files of all sorts, and saved evidence."""
    for name, text in FILES.items():
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text)
        (checkout / name).chmod(0o755 if name.endswith(".sh") else 0o644)
    folder = kit.write_session(checkout)
    (folder / "runs/r1").mkdir(parents=True)
    for name in ("evidence.json", "fix.patch", "repro.py", "runs/r1/evidence.json"):
        (folder / name).write_text("{}")
    return checkout


def verdict(guard, world, line):
    return guard.decide("Bash", {"command": line.replace("{s}", SESSION)}, world())


@pytest.mark.parametrize("kind", sorted({kind for _, kind, _ in DISGUISED}))
def test_what_breaks_a_rule_in_disguise_is_stopped(kind, guard, world, place):
    passed = []
    for number, _, line in (row for row in DISGUISED if row[1] == kind):
        found = verdict(guard, world, line)
        if found.verdict not in ("deny", "ask") or not found.reason:
            passed.append((number, line, found.verdict))
    assert not passed


@pytest.mark.parametrize("kind", ["ours", "theirs"])
def test_what_is_harmless_is_not_stopped(kind, guard, world, place):
    """`ours`: without a prompt; `theirs`: the client judges it as if we were not there."""
    wrong = []
    for number, _, line in (row for row in HARMLESS if row[1] == kind):
        found = verdict(guard, world, line)
        if found.verdict != {"ours": "allow", "theirs": None}[kind]:
            wrong.append((number, line, found.rule, found.reason))
        elif found.command and kind == "ours":
            assert found.command.endswith(line.replace("{s}", SESSION))
    assert not wrong


def test_the_tables_are_as_big_as_promised():
    kinds = Counter(kind for _, kind, _ in DISGUISED)
    assert len(DISGUISED) >= 750
    assert min(kinds.values()) >= 4
    assert len(HARMLESS) >= 450
    assert len({line for *_, line in DISGUISED}) == len(DISGUISED)
    assert len({line for *_, line in HARMLESS}) == len(HARMLESS)
