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
    "Makefile": "PY ?= python\nall: lint test\ntest: ; $(PY) -m pytest tests\ncheck: lint test\nlint:\n\truff check .\n\tmypy .\nclean:\n\trm -rf build\ninstall:\n\tpip install .\n",
    "justfile": "test *args:\n    pytest {{args}}\n\nlint:\n    ruff check .\n",
    "package.json": '{"scripts": {"test": "python -m pytest", "check": "npm run lint && npm run test", "lint": "eslint ."}}',
    "tox.ini": "[testenv]\ndeps = pytest\ncommands = pytest {posargs}\n",
    "noxfile.py": "import nox\n\n@nox.session\ndef tests(session):\n    session.run('pytest', 'tests')\n",
    "pyproject.toml": '[project]\nname = "spyre-inference"\n\n[tool.hatch.envs.default.scripts]\ntest = "pytest {args:tests}"\n\n[tool.pytest.ini_options]\naddopts = "-ra"\n',
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
        (checkout / name).write_text(text)
    folder = kit.write_session(checkout)
    (folder / "runs/r1").mkdir(parents=True)
    for name in ("evidence.json", "fix.patch", "repro.py", "runs/r1/evidence.json"):
        (folder / name).write_text("{}")
    return checkout


def verdict(guard, world, line):
    return guard.decide("Bash", {"command": line.replace("{s}", SESSION)}, world())


@pytest.mark.parametrize("row", DISGUISED, ids=[f"{r[0]}-{r[1]}" for r in DISGUISED])
def test_what_breaks_a_rule_in_disguise_is_stopped(row, guard, world, place):
    found = verdict(guard, world, row[2])
    assert found.verdict in ("deny", "ask"), row[2]
    assert found.reason


@pytest.mark.parametrize("row", HARMLESS, ids=[f"{r[0]}-{r[1]}" for r in HARMLESS])
def test_what_is_harmless_is_not_stopped(row, guard, world, place):
    """`ours`: without a prompt; `theirs`: the client judges it as if we were not there."""
    found = verdict(guard, world, row[2])
    assert found.verdict == {"ours": "allow", "theirs": None}[row[1]], (row[2], found.rule, found.reason)
    if row[1] == "ours" and found.command:
        assert found.command.endswith(row[2].replace("{s}", SESSION))


def test_the_tables_are_as_big_as_promised():
    kinds = Counter(kind for _, kind, _ in DISGUISED)
    assert len(DISGUISED) >= 250
    assert min(kinds.values()) >= 4
    assert len(HARMLESS) >= 150
    assert len({line for *_, line in DISGUISED}) == len(DISGUISED)
    assert len({line for *_, line in HARMLESS}) == len(HARMLESS)
