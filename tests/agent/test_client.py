"""The skill in the real Claude Code client: what prompts, what is refused, what the hooks do. A model of ours replays calls.

Nothing but loopback is reached; skipped with the reason where npm can't be reached. Prints a table mode x command.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.client]
ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("client_kit", Path(__file__).with_name("client_kit.py"))
kit = importlib.util.module_from_spec(spec)
sys.modules["client_kit"] = kit
spec.loader.exec_module(kit)
bash = kit.bash

MODES = ("default", "acceptEdits", "dontAsk", "auto", "bypassPermissions")
SPELT_OUT = ("acceptEdits", "bypassPermissions")  # here the agent types the launcher's path, else the bare name
TABLE = []


@pytest.fixture(scope="session")
def binary():
    try:
        return kit.find_client()
    except kit.NoClientError as error:
        pytest.skip(f"the Claude Code client can't be had: {error}")


class Place:
    """A checkout with the skill installed, and the client in it."""

    def __init__(self, folder, binary, *, personal=False):
        self.folder = folder
        self.top = kit.make_checkout(folder / "plug in")
        self.env = {
            "DEBUG_SPYRE_PYTHON": sys.executable,
            "DEBUG_SPYRE_DEVICES": str(folder / "device"),
            "SPYRE_SIM_DEVICE": str(folder / "device"),
            "DEBUG_SPYRE_LOCK_DIR": str(folder / "locks"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        if personal:
            self.install("--personal", CLAUDE_CONFIG_DIR=str(folder / "home/.claude"))
        else:
            self.install()
        self.ours = f'"{self.top}/.claude/skills/debug-spyre/scripts/debug-spyre"'
        self.client = kit.Client(binary, folder / "home", self.top)
        self.prefix = ()

    def install(self, *words, **env):
        command = [str(ROOT / "scripts/debug-spyre"), "install", str(self.top), *words]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, **self.env, **env}
        ).stdout

    def as_nobody(self):
        """Another user than root, in a user namespace: the client refuses bypass mode to root."""
        if os.getuid():
            return self
        self.prefix = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
        works = shutil.which("unshare") and subprocess.run([*self.prefix, sys.executable, "-c", "pass"]).returncode == 0
        if not works:
            pytest.skip("root gets no bypass mode, and no user namespace can be made here")
        return self

    def run(self, prompt, steps, *, env=None, **more):
        return self.client.run(prompt, steps, env={**self.env, **(env or {})}, prefix=self.prefix, **more)

    def open_session(self):
        """Steps that lead to an open session with a queue."""
        return [
            bash(f"{self.ours} open stops-early --members '{kit.PROBE}'"),
            bash(f"{self.ours} hypothesis add 'the sum stops at 64' --test 'a script'"),
        ]


@pytest.fixture
def place(tmp_path, binary):
    return Place(tmp_path, binary)


def in_mode(place, mode):
    if mode == "bypassPermissions":
        place.as_nobody()
    return place


@pytest.fixture(scope="session", autouse=True)
def table(request):
    """What was seen, mode by mode; the conftest prints it at the end."""
    request.config.modes_and_commands = TABLE


def note(place, mode, outcome):
    for number, (_, tool, given) in enumerate(outcome.calls):
        shown = given.get("command") or f"{tool} {given.get('file_path', '')}"
        shown = shown.replace(place.ours, "debug-spyre").replace(str(place.top), "").splitlines()[0]
        TABLE.append((mode, shown, outcome.verdict(number)))


def test_the_skill_loads_in_a_fresh_checkout(place):
    outcome = place.run("/debug-spyre rms_norm <fails> with 'quotes'", [])
    init = next(e for e in outcome.events if e.get("subtype") == "init")
    assert "debug-spyre" in init["skills"]
    text = outcome.texts()
    assert f"{place.top}/.claude/skills/debug-spyre/scripts/debug-spyre" in text
    assert "${CLAUDE_SKILL_DIR}" not in text
    assert "rms_norm <fails> with 'quotes'" in text
    assert "Shell command permission check failed" not in text
    names = {tool["name"] for tool in outcome.requests[0]["tools"]}
    assert "AskUserQuestion" not in names


def plugin_command(place, *words):
    """A call of the client's own plugin commands, in the HOME of this place."""
    env = {**place.client.environment(type("Nowhere", (), {"url": "http://127.0.0.1:9"}), {}), **place.env}
    done = subprocess.run(
        [place.client.binary, "plugin", *words], env=env, capture_output=True, text=True, timeout=120, cwd=place.top
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_plugin_installs_from_its_marketplace_and_works(tmp_path, binary):
    """What `git clone` brings: only the tracked files."""
    place = Place(tmp_path, binary)
    place.install("--uninstall")
    source = tmp_path / "clone"
    source.mkdir()
    listed = subprocess.run(
        [
            "git",
            "-C",
            str(ROOT),
            "ls-files",
            "-z",
            ".claude",
            ".claude-plugin",
            "scripts",
            "templates",
            "README.md",
            "LICENSE",
        ],
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(
        ["tar", "c", "-C", str(ROOT), "--null", "-T", "-", "-f", str(tmp_path / "clone.tar")], input=listed, check=True
    )
    subprocess.run(["tar", "x", "-C", str(source), "-f", str(tmp_path / "clone.tar")], check=True)
    for folder in (source, source / ".claude/skills/debug-spyre"):
        assert "Validation passed" in plugin_command(place, "validate", "--strict", str(folder))
    plugin_command(place, "marketplace", "add", str(source))
    plugin_command(place, "install", "debug-spyre@debug-spyre")
    steps = [bash("debug-spyre lock"), bash("debug-spyre lock | tail -3"), bash("pytest tests"), bash("git push")]
    outcome = place.run(
        "/debug-spyre:debug-spyre it fails",
        [*steps, bash(f"debug-spyre open stops-early --members '{kit.PROBE}'"), "a", "b", "c"],
    )
    init = next(e for e in outcome.events if e.get("subtype") == "init")
    assert [p["source"] for p in init["plugins"] if p["name"] == "debug-spyre"] == ["debug-spyre@debug-spyre"]
    assert [outcome.verdict(n) for n in range(5)] == ["ran", "ran", "refused", "asked", "ran"]
    assert "lock: free" in outcome.result(1)
    assert list((place.top / ".claude/skills/debug-spyre/logs").glob("debug-*.html")), "sessions belong to the checkout"
    plugin_command(place, "uninstall", "debug-spyre@debug-spyre")
    outcome = place.run("hello", [bash("debug-spyre lock")])
    assert outcome.verdict(0) == "asked"


def test_the_evaluations_load_in_a_client_that_knows_them(tmp_path, binary):
    """A ceiling of no money at all: every case is read, none is run."""
    place = Place(tmp_path, binary)
    shutil.copytree(
        ROOT / ".claude/skills/debug-spyre", tmp_path / "plugin", ignore=shutil.ignore_patterns("__pycache__", "logs")
    )
    env = {**place.client.environment(type("Nowhere", (), {"url": "http://127.0.0.1:9"}), {}), **place.env}
    words = [
        "plugin",
        "eval",
        str(tmp_path / "plugin"),
        "--trust-plugin",
        "--max-cost-usd",
        "0",
        "--no-publish",
        "--runs",
        "1",
    ]
    done = subprocess.run([binary, *words], env=env, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    if (
        "early access" in done.stderr + done.stdout
        or "unknown command" in done.stderr
        or "unknown option" in done.stderr
    ):
        pytest.skip("this client does not run evaluations yet (2.1.269 and later do)")
    assert "10 cases" in done.stdout + done.stderr


def test_a_personal_skill_works_in_a_checkout_that_has_none(tmp_path, binary):
    place = Place(tmp_path, binary, personal=True)
    steps = [bash("debug-spyre lock"), bash("pytest tests"), bash("git push")]
    steps.append(bash(f"debug-spyre open stops-early --members '{kit.PROBE}'"))
    outcome = place.run("/debug-spyre x", [*steps, "a", "b", "c"])
    assert [outcome.verdict(n) for n in range(4)] == ["ran", "refused", "asked", "ran"]
    assert "lock: free" in outcome.result(0)
    assert len(list((place.top / ".claude/skills/debug-spyre/logs").glob("debug-*.html"))) == 1
    assert not (place.top / ".claude/skills/debug-spyre/SKILL.md").exists()


@pytest.mark.parametrize("mode", [MODES[0], *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES[1:])])
def test_an_ordinary_investigation_has_no_prompt(mode, place):
    in_mode(place, mode)
    ours = place.ours if mode in SPELT_OUT else "debug-spyre"
    steps = kit.investigation(place.top, ours)
    assert len(steps) >= 23
    outcome = place.run("/debug-spyre tests/test_reduce.py fails", steps, mode=mode)
    init = next((e for e in outcome.events if e.get("subtype") == "init"), {})
    if mode == "auto" and init.get("permissionMode") != "auto":
        pytest.skip(f"this client does not offer auto mode offline (it says {init.get('permissionMode')!r})")
    assert len(outcome.calls) == len(steps), outcome.stderr
    note(place, mode, outcome)
    asked = [outcome.calls[n][2] for n in range(len(steps)) if outcome.verdict(n) != "ran"]
    assert not asked
    assert not outcome.denials
    if ours == "debug-spyre":  # the launcher's path is as long as the folder
        over = {name: value for name, value in kit.figures(outcome).items() if value > kit.BUDGET[name]}
        assert not over, kit.BUDGET
    said = "\n".join(outcome.results.values())
    assert "a fault of ours" not in said
    assert "Traceback" not in said
    source = (place.top / "spyre_inference/reduce.py").read_text()
    assert "LIMIT = 64" in source, "the experiment was not reverted"
    logs = place.top / ".claude/skills/debug-spyre/logs"
    assert len(list(logs.glob("debug-*.html"))) == 1
    assert "blocked" in outcome.result(len(steps) - 1)


BREAKS = [
    ("{ours} status && git push", "asked"),
    ("{ours} exec -- git push", "asked"),
    ("{ours} exec -- bash -c 'git commit -m x'", "asked"),
    ("{ours} lock -- pip install no-such-package-x", "asked"),
    ("{ours} close resolved --patch-approved", "refused"),
    ("{ours} close resolved --override 'x' --reason y", "refused"),
    ("{ours} run --reap tests", "refused"),
    ("{ours} exec -- rm -rf spyre_inference", "asked"),
    ("git commit --allow-empty -m x", "asked"),
    ("git push origin main", "asked"),
    ("gh pr create --fill", "asked"),
    ("gh pr merge 1", "asked"),
    ("pip install --no-index no-such-package-x", "asked"),
    ("uv pip install --no-index no-such-package-x", "asked"),
    ("uv add no-such-package-x", "asked"),
    ("uv sync", "refused"),
    ("echo x >> uv.lock", "asked"),
    ("sed -i 's/0/1/' pyproject.toml", "asked"),
    ("sed -i 's/mm/bmm/' .venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py", "asked"),
    ("echo x | tee .venv/new.py", "asked"),
    ("pytest tests", "refused"),
    ("uv run pytest tests 2>&1 | tee out.txt", "refused"),
    ("SENCORES=1 timeout 60 python -m pytest tests", "refused"),
    ("cd tests && pytest test_reduce.py", "refused"),
    ("bash -c 'pytest tests'", "refused"),
    ("for t in tests/*.py; do pytest $t; done", "refused"),
    ("ls tests | xargs pytest", "refused"),
    ("echo $(pytest tests)", "refused"),
    ("pytest tests & pytest tests; wait", "refused"),
    ("nohup pytest tests > out.txt &", "refused"),
    ("python -c 'import torch_spyre'", "refused"),
    ("python - <<'EOF'\nimport vllm\nEOF", "refused"),
    ("cat > x.py <<'EOF'\nimport torch_spyre\nEOF\npython x.py", "refused"),
    ("vllm serve some/model", "refused"),
    ("torchrun x.py", "refused"),
    ("{ours} run -n 4 tests", "refused"),
    ("PYTEST_ADDOPTS='-n 2' {ours} run tests", "refused"),
    ("{ours} run tests &", "refused"),
    ("DEBUG_SPYRE_LOCK_DIR=/tmp/x {ours} run tests", "refused"),
    ("{ours} run -k 'sum(q=1' tests", "refused"),
    ("{ours} run -W error::UserWarning tests", "refused"),
    ("uv run ruff check .", "refused"),
    ('{ours} note summary "`aten.mm` is wrong"', "refused"),
]  # fmt: skip
BREAKING_EDITS = [
    (".venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py", "asked"),
    ("pyproject.toml", "asked"),
    ("uv.lock", "asked"),
]  # the first two exist: the client wants to have read what it overwrites
INNOCENT = [
    "ls -la tests",
    "git status --short && git diff --stat",
    "git log --oneline --grep 'git push' | head -3",
    "grep -rn 'pytest' tests | head -3",
    "cat pyproject.toml",
    'echo "git push"',
    "{ours} status",
    "{ours} hypothesis list",
    "{ours} note finding 'git push & pytest -n 4'",
    "{ours} lock",
    '{ours} note summary "$(date)"',
]


@pytest.mark.parametrize(
    "mode", ["default", *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES[1:] if mode != "auto")]
)
def test_a_broken_rule_bites_and_an_innocent_command_does_not_prompt(mode, place):
    """Also where the person has switched prompts off: deny and ask of the hook hold there."""
    info = place.top / ".venv/lib/python3.12/site-packages/torch_spyre-0.0.1.dist-info"
    info.mkdir()
    (info / "direct_url.json").write_text('{"url": "file:///elsewhere", "dir_info": {}}')
    in_mode(place, mode)
    head = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(place.top), "rev-parse", "HEAD"], capture_output=True
    ).stdout
    before = {
        p: p.read_bytes()
        for p in place.top.rglob("*")
        if p.is_file() and ".git" not in p.parts and ".claude" not in p.parts
    }
    wanted = [verdict for _, verdict in (*BREAKS, *BREAKING_EDITS)] + ["ran"] * len(INNOCENT)
    ours = place.ours if mode in SPELT_OUT else "debug-spyre"
    steps = [bash(command.replace("{ours}", ours)) for command, _ in BREAKS]
    steps += [("Write", {"file_path": str(place.top / path), "content": "x"}) for path, _ in BREAKING_EDITS]
    steps += [bash(command.replace("{ours}", ours)) for command in INNOCENT]
    reads = [("Read", {"file_path": str(place.top / path)}) for path, _ in BREAKING_EDITS[:2]]
    opening = [*place.open_session(), *reads]
    outcome = place.run("/debug-spyre tests/test_reduce.py fails", [*opening, *steps], mode=mode)
    assert len(outcome.calls) == len(opening) + len(steps), outcome.stderr
    note(place, mode, outcome)
    seen = [outcome.verdict(len(opening) + n) for n in range(len(steps))]
    wrong = [
        (steps[n][1], seen[n], outcome.result(len(opening) + n)[:200])
        for n in range(len(steps))
        if seen[n] != wanted[n]
    ]
    assert not wrong
    again = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(place.top), "rev-parse", "HEAD"], capture_output=True
    ).stdout
    assert again == head
    after = {p: p.read_bytes() for p in before}
    assert after == before


SPELLINGS = [
    line.split("\t", 1)
    for line in (Path(__file__).with_name("data") / "spellings.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
ALL = os.environ.get(
    "DEBUG_SPYRE_CLIENT_ALL"
)  # `make client`: every spelling in every mode; `make test`: a dozen in one


def test_the_spellings_are_as_many_as_promised():
    assert len(SPELLINGS) >= 60
    assert len([line for wanted, line in SPELLINGS[:12] if wanted == "runs"]) == 10


@pytest.mark.parametrize("mode", MODES if ALL else MODES[:1])
def test_our_command_is_found_however_it_is_typed(mode, place):
    in_mode(place, mode)
    (place.top / "Makefile").write_text("test:\n\tpytest tests\n")
    before = (place.top / ".git/HEAD").read_text()
    spellings = SPELLINGS if ALL else SPELLINGS[:12]
    opening = place.open_session()

    def step(line):
        """The session's folder is known once the client has opened it."""
        logs = Path(".claude/skills/debug-spyre/logs")
        found = lambda: str(logs / next(p.name for p in (place.top / logs).glob("debug-*") if p.is_dir()))  # noqa: E731
        return lambda request: bash(line.replace("\\n", "\n").replace("{s}", found()))

    outcome = place.run(
        "/debug-spyre it fails", [*opening, *(step(line) for _, line in spellings)], mode=mode, timeout=900
    )
    init = next((e for e in outcome.events if e.get("subtype") == "init"), {})
    if mode == "auto" and init.get("permissionMode") != "auto":
        pytest.skip(f"this client does not offer auto mode offline (it says {init.get('permissionMode')!r})")
    note(place, mode, outcome)
    assert len(outcome.calls) == len(opening) + len(spellings), outcome.stderr
    wrong = []
    for number, (wanted, line) in enumerate(spellings, start=len(opening)):
        seen, said = outcome.verdict(number), outcome.result(number)
        if seen != {"runs": "ran"}.get(wanted, wanted) or "not found" in said or "Exit code 127" in said:
            wrong.append((line, wanted, seen, said[:200]))
    assert not wrong
    assert (place.top / ".git/HEAD").read_text() == before
    assert (place.top / "spyre_inference/reduce.py").read_text() == kit.QUICK["spyre_inference/reduce.py"]


def test_a_background_start_of_a_card_verb_is_refused(place):
    outcome = place.run("/debug-spyre x", [bash(f"{place.ours} run tests/test_reduce.py", run_in_background=True)])
    assert outcome.verdict(0) == "refused"
    assert "600000" in outcome.result(0)


def test_the_grant_survives_a_background_notification(place):
    """The skill's own allowed-tools end with the turn; the hook's answer does not."""
    steps = [
        bash("sleep 3", run_in_background=True),
        kit.WAITING,
        bash(f"{place.ours} lock"),
        bash(f"{place.ours} save x.py <<'EOF'\nprint(1)\nEOF"),
    ]
    outcome = place.run("/debug-spyre x", [*place.open_session(), *steps])
    assert any(e.get("subtype") == "task_notification" for e in outcome.events)
    verdicts = [outcome.verdict(n) for n in range(len(outcome.calls))]
    assert verdicts == ["ran"] * 5


@pytest.mark.slow
def test_a_run_that_outlives_the_shell_is_taken_up_again(place):
    """run -> 79 -> wait; and where the shell's own limit strikes first, the job goes on and wait finds it."""
    slow = "import time\n\n\ndef test_slow():\n    time.sleep(6)\n"
    (place.top / "tests/test_slow.py").write_text(slow)
    limits = {"BASH_DEFAULT_TIMEOUT_MS": "3000", "BASH_MAX_TIMEOUT_MS": "3000"}
    steps = [
        bash(f"{place.ours} run --foreground 1 tests/test_slow.py"),
        bash(f"{place.ours} wait --foreground 1"),
        bash(f"{place.ours} run tests/test_slow.py"),  # waits for the lock, beyond the shell's limit
        bash("sleep 2"),
        *[bash(f"{place.ours} wait --foreground 2.5")] * 6,
    ]
    outcome = place.run("/debug-spyre x", steps, env=limits)
    assert "Exit code 79" in outcome.result(0)
    assert "wait" in outcome.result(0)
    assert "Exit code 79" in outcome.result(1)
    finished = [outcome.result(n) for n in range(4, len(steps)) if "passed" in outcome.result(n)]
    assert finished, [outcome.result(n) for n in range(len(outcome.calls))]
    assert "1 passed" in finished[-1]
    journals = list((place.top / ".claude/skills/debug-spyre/logs").rglob("journal.jsonl"))
    ends = [e for j in journals for e in map(json.loads, j.read_text().splitlines()) if e["kind"] == "run_finished"]
    assert [e["status"] for e in ends] == ["passed", "passed"]


def test_an_agent_that_stops_too_early_is_held_twice_and_then_let_go(place):
    outcome = place.run("/debug-spyre x", [*place.open_session(), "I am done.", "Still done.", "Really."])
    said = json.dumps(outcome.requests[-1]["messages"])
    assert said.count("is still investigating and no run is in flight") >= 2
    assert "hypothesis start 1" in said
    assert len(outcome.requests) == len(place.open_session()) + 3
    assert outcome.final["result"] == "Really."


def test_a_pause_is_respected(place):
    opening = place.open_session()
    outcome = place.client.talk(
        ["/debug-spyre x", "Please pause here."], [*opening, "a", "b", "c", "Paused."], env=place.env
    )
    assert outcome.final["result"] == "Paused."
    assert len(outcome.requests) == len(opening) + 4


def test_after_a_compaction_the_state_is_there_again(place):
    opening = place.open_session()
    # the client writes its transcript behind its own back: the mark of the compaction may be there one call later
    calls = [bash("ls"), bash("ls -a"), bash("pwd"), bash("ls -l")]
    steps = [*opening, "a", "b", "c", *calls, "d", "e", "f"]
    outcome = place.client.talk(["/debug-spyre x", "/compact", "go on"], steps, env=place.env)
    assert outcome.compactions == 1
    text = json.dumps(outcome.requests[-1]["messages"])
    assert "debug-spyre session in progress" in text
    assert kit.PROBE in text
    assert text.count("debug-spyre session in progress") == 1
    assert "One card, one process." in text, "the rules of SKILL.md did not come back"


def test_the_projects_guard_holds_without_the_skill_and_tells_after_a_compaction(place):
    place.install("--guard")
    steps = [
        bash("pytest tests"),
        bash(f"{place.ours} lock"),
        *place.open_session(),
        "a",
        "b",
        "c",
        bash("ls"),
        "d",
        "e",
    ]
    outcome = place.client.talk(["look at the tests", "/compact", "go on"], steps, env=place.env)
    assert outcome.verdict(0) == "refused"
    assert outcome.verdict(1) == "ran"
    assert "debug-spyre session in progress" in json.dumps(outcome.requests[-1]["messages"])


@pytest.mark.slow
def test_the_printed_permissions_suffice_where_hooks_are_disabled(place):
    rules = json.loads(place.install("--print-permissions"))
    settings = place.top / ".claude/settings.json"
    settings.write_text(json.dumps({**rules, "disableAllHooks": True}))
    trust = {"projects": {str(place.top): {"hasTrustDialogAccepted": True}}}
    (place.client.config / ".claude.json").write_text(json.dumps(trust))
    ours = place.ours.strip('"').replace(str(place.top) + "/", "")
    steps = [
        *kit.investigation(place.top, ours),
        bash("git push"),
        bash("pytest tests"),
        bash(f"{ours} close resolved --patch-approved"),
        bash(f"{ours} exec -- git push"),
    ]
    outcome = place.run("look at the tests", steps)
    note(place, "no hooks, rules", outcome)
    asked = [outcome.calls[n][2] for n in range(len(steps) - 4) if outcome.verdict(n) != "ran"]
    assert not asked
    assert [outcome.verdict(n) for n in range(len(steps) - 4, len(steps))] == ["asked"] * 4
