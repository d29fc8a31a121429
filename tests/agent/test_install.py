"""Installing: a real copy from each of the three layouts, logs kept, the person's settings kept, everything out again."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKILL = Path(".claude/skills/debug-spyre")
PERSONS = {
    "model": "opus",
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "their-own é.sh"}]}],
        "Notification": [],
    },
}


def install(*words, cwd, launcher=ROOT / "scripts/debug-spyre", env=None):
    surroundings = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "DEBUG_SPYRE_PYTHON": sys.executable, **(env or {})}
    return subprocess.run([str(launcher), "install", *words], cwd=cwd, env=surroundings, capture_output=True, text=True)


def ok(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def tree(folder):
    """Every path below, with the bytes of files."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
        if ".git" not in p.relative_to(folder).parts and "__pycache__" not in p.parts
    }


@pytest.fixture
def target(tmp_path):
    top = tmp_path / 'it\'s a "checkout" é'
    top.mkdir()
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    (top / "README.md").write_text("x")
    return top


def test_a_project_skill_is_a_whole_real_copy(target):
    ok(install(cwd=target))
    skill = target / SKILL
    for name in ("SKILL.md", "attention-notes.md", "references/permissions.md", "scripts/debug-spyre", "scripts/guard.py",
                 "scripts/debug_spyre/cli.py", ".gitignore"):  # fmt: skip
        assert (skill / name).is_file(), name
    assert not [p for p in skill.rglob("*") if p.is_symlink()]
    assert not list(skill.rglob("__pycache__"))
    assert os.access(skill / "scripts/debug-spyre", os.X_OK)
    templates = {p.name for p in (ROOT / "templates").rglob("*") if p.is_file()}
    assert {p.name for p in (skill / "templates").rglob("*") if p.is_file()} == templates


def test_the_copy_runs_by_itself_and_git_does_not_see_its_logs(target):
    ok(install(cwd=target))
    launcher = target / SKILL / "scripts/debug-spyre"
    done = subprocess.run([str(launcher), "--version"], cwd=target, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "DEBUG_SPYRE_PYTHON": sys.executable})  # fmt: skip
    assert done.stdout.startswith("debug-spyre "), done.stderr
    (target / SKILL / "logs/debug-1").mkdir(parents=True)
    (target / SKILL / "logs/debug-1/journal.jsonl").write_text("{}\n")
    status = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=target, capture_output=True, text=True
    ).stdout
    assert "SKILL.md" in status
    assert "logs/" not in status
    assert "__pycache__" not in status


def test_an_installed_copy_installs_itself_elsewhere(target, tmp_path):
    ok(install(cwd=target))
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    ok(install(str(other), cwd=target, launcher=target / SKILL / "scripts/debug-spyre"))
    first, second = tree(target / SKILL), tree(other / SKILL)
    assert first == second


def test_a_wheel_installs_the_same_files(target, tmp_path):
    """The layout of a wheel, as pyproject's force-include describes it."""
    import tomllib

    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    site = tmp_path / "site"
    shutil.copytree(ROOT / "scripts/debug_spyre", site / "debug_spyre", ignore=shutil.ignore_patterns("__pycache__"))
    for source, place in config["force-include"].items():
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        (site / place).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / source, site / place)
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from debug_spyre.cli import main; sys.exit(main())", "install", str(target)],
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    from_wheel = tree(target / SKILL)
    shutil.rmtree(target / SKILL)
    ok(install(cwd=target))
    assert from_wheel == tree(target / SKILL)


@pytest.mark.slow
def test_the_built_wheel_has_what_an_install_needs(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(".venv", ".git", ".work", "logs", "node_modules", "__pycache__", ".*_cache"))  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    wheel = next(tmp_path.glob("*.whl"))
    names = set(zipfile.ZipFile(wheel).namelist())
    for part in ("skill/SKILL.md", "skill/attention-notes.md", "skill/references/permissions.md", "scripts/guard.py",
                 "scripts/debug-spyre"):  # fmt: skip
        assert f"debug_spyre/bundle/{part}" in names


def test_upgrading_keeps_logs_and_removes_what_an_older_version_had(target):
    ok(install(cwd=target))
    skill = target / SKILL
    log = skill / "logs/debug-20261130-101112-x/journal.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("precious\n")
    manifest = json.loads((skill / ".installed.json").read_text())
    (skill / "scripts/debug_spyre/session/gone.py").write_text("old\n")
    manifest["files"]["scripts/debug_spyre/session/gone.py"] = "0" * 64
    (skill / ".installed.json").write_text(json.dumps(manifest))
    (skill / "notes-of-mine.md").write_text("mine")
    answer = ok(install(cwd=target))
    assert "1 files of an older version removed" in answer
    assert log.read_text() == "precious\n"
    assert not (skill / "scripts/debug_spyre/session/gone.py").exists()
    assert (skill / "notes-of-mine.md").read_text() == "mine"


def test_an_older_skill_of_that_name_is_moved_aside_and_comes_back(target):
    skill = target / SKILL
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("the older prose\n")
    before = tree(target)
    answer = ok(install(cwd=target))
    assert "another skill was here: SKILL.md moved to" in answer
    assert "--uninstall puts it back" in answer
    assert (skill / "replaced/SKILL.md").read_text() == "the older prose\n"
    ok(install("--uninstall", cwd=target))
    assert tree(target) == before


def test_a_file_changed_by_hand_survives_upgrade_and_uninstall(target):
    ok(install(cwd=target))
    skill = target / SKILL
    (skill / "references/permissions.md").write_text("my own words")
    ok(install(cwd=target))
    assert (skill / "replaced/references/permissions.md").read_text() == "my own words"
    (skill / "SKILL.md").write_text("edited")
    answer = ok(install("--uninstall", cwd=target))
    assert "kept, since changed by hand: SKILL.md" in answer
    assert (skill / "SKILL.md").read_text() == "edited"


def test_uninstalling_leaves_no_trace_but_logs(target):
    before = tree(target)
    ok(install("--guard", cwd=target))
    ok(install("--uninstall", cwd=target))
    assert tree(target) == before
    ok(install(cwd=target))
    (target / SKILL / "logs/debug-1").mkdir(parents=True)
    (target / SKILL / "logs/debug-1/journal.jsonl").write_text("x")
    assert "the logs stay" in ok(install("--uninstall", cwd=target))
    assert (target / SKILL / "logs/debug-1/journal.jsonl").read_text() == "x"
    assert "nothing is installed" in ok(install("--uninstall", cwd=target))


@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_the_guard_goes_into_the_settings_and_out_without_a_loss(target, indent):
    settings = target / ".claude/settings.json"
    settings.parent.mkdir()
    text = json.dumps(PERSONS, indent=indent, ensure_ascii=False) + "\n"
    settings.write_text(text, encoding="utf-8")
    settings.chmod(0o600)
    ok(install("--guard", cwd=target))
    ok(install("--guard", cwd=target))
    merged = json.loads(settings.read_text(encoding="utf-8"))
    assert list(merged) == list(PERSONS)
    assert merged["hooks"]["PreToolUse"][0] == PERSONS["hooks"]["PreToolUse"][0]
    for event in ("PreToolUse", "Stop", "SessionStart"):
        ours = [g for g in merged["hooks"][event] if "import guard" in g["hooks"][0]["command"]]
        assert len(ours) == 1
    assert settings.stat().st_mode & 0o777 == 0o600
    ok(install("--uninstall", cwd=target))
    assert settings.read_text(encoding="utf-8") == text


def test_a_settings_file_that_only_we_made_goes_again(target):
    ok(install("--guard", cwd=target))
    assert (target / ".claude/settings.json").is_file()
    ok(install("--uninstall", cwd=target))
    assert not (target / ".claude/settings.json").exists()


@pytest.mark.parametrize("text", ['{"a": 1,}', "[1, 2]", "// a comment\n{}", '{"a": "\xff'])
def test_settings_that_are_no_json_are_refused_and_nothing_is_written(target, text):
    settings = target / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(text, encoding="latin-1")
    before = tree(target)
    done = install("--guard", cwd=target)
    assert done.returncode == 2
    assert "settings.json" in done.stderr
    assert "next:" in done.stderr
    assert tree(target) == before


@pytest.mark.parametrize("words", [["--guard"], ["--uninstall"], ["--personal"]])
def test_a_dry_run_changes_nothing(target, words):
    ok(install("--guard", cwd=target))
    before = tree(target)
    answer = ok(install("--dry-run", *words, cwd=target))
    assert "would be" in answer
    assert tree(target) == before


def test_a_personal_skill_names_its_guard_by_its_full_path(target, tmp_path):
    home = tmp_path / "home"
    ok(install("--personal", "--guard", cwd=target, env={"HOME": str(home)}))
    assert (home / ".claude/skills/debug-spyre/SKILL.md").is_file()
    command = json.loads((home / ".claude/settings.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert str(home / ".claude/skills/debug-spyre/scripts") in command
    ok(install("--personal", "--uninstall", cwd=target, env={"HOME": str(home)}))
    assert not (home / ".claude/skills").exists() or not any((home / ".claude/skills").iterdir())


def test_places_that_do_not_fit_get_one_line_and_a_way_out(target, tmp_path):
    for words, cwd in (([str(tmp_path / "absent")], target), ([], tmp_path)):
        done = install(*words, cwd=cwd)
        assert done.returncode == 69
        assert "next:" in done.stderr
    done = install("--personal", cwd=target, env={"HOME": ""})
    assert done.returncode == 69
    assert "HOME" in done.stderr


def test_a_link_in_the_way_is_not_followed(target, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (target / ".claude/skills").mkdir(parents=True)
    (target / SKILL).symlink_to(elsewhere)
    done = install(cwd=target)
    assert done.returncode == 69
    assert "is a link" in done.stderr
    assert not any(elsewhere.iterdir())


def test_the_projects_own_skill_folder_is_not_copied_over_itself():
    before = sorted(p.name for p in (ROOT / SKILL).iterdir())
    assert "here already" in ok(install(cwd=ROOT))
    assert sorted(p.name for p in (ROOT / SKILL).iterdir()) == before


UPSTREAM = {  # a prose skill of this name, as the plugin's own tree may carry it
    "SKILL.md": "---\nname: debug-spyre\ndescription: prose\n---\nRun pytest.\n",
    "attention-notes.md": "older notes\n",
    "references/extra.md": "theirs\n",
}


def put_upstream(target, folder):
    for name, text in UPSTREAM.items():
        (target / folder / name).parent.mkdir(parents=True, exist_ok=True)
        (target / folder / name).write_text(text)
    other = target / folder.parent / "debug-compilation/SKILL.md"
    other.parent.mkdir()
    other.write_text("another skill\n")


@pytest.mark.parametrize(("options", "folder"), [([], ".claude"), (["--bob"], ".bob"), (["--agents"], ".agents")])
def test_upstreams_own_skill_makes_room_and_comes_back(options, folder, target):
    skill = Path(folder) / "skills/debug-spyre"
    put_upstream(target, skill)
    before = tree(target)
    answer = ok(install(*options, cwd=target))
    assert "another skill was here: SKILL.md, attention-notes.md moved to" in answer
    assert (
        "Run everything" in (target / skill / "SKILL.md").read_text()
        or "debug-spyre triage" in (target / skill / "SKILL.md").read_text()
    )
    assert (target / skill / "references/extra.md").read_text() == "theirs\n"
    ok(install(*options, cwd=target))
    ok(install(*options, "--uninstall", cwd=target))
    assert tree(target) == before


@pytest.mark.parametrize(("option", "folder"), [("--bob", ".bob"), ("--agents", ".agents")])
def test_for_other_clients_the_text_names_nothing_that_only_one_client_knows(option, folder, target):
    answer = ok(install(option, cwd=target))
    assert "no hooks of ours" in answer
    skill = target / folder / "skills/debug-spyre"
    text = (skill / "SKILL.md").read_text()
    head = text.split("\n---\n")[0]
    assert [line.partition(":")[0] for line in head.splitlines()[1:]] == [
        "name",
        "description",
        "license",
        "compatibility",
    ]
    for word in ("$ARGUMENTS", "CLAUDE_SKILL_DIR", "A hook refuses"):
        assert word not in text
    assert f"{folder}/skills/debug-spyre/scripts/debug-spyre" in text
    assert not (skill / "scripts/guard.py").exists()
    env = {"PATH": "/usr/bin:/bin", "DEBUG_SPYRE_PYTHON": sys.executable, "HOME": str(target)}
    done = subprocess.run(
        [f"./{folder}/skills/debug-spyre/scripts/debug-spyre", "lock"],
        cwd=target,
        capture_output=True,
        text=True,
        env=env,
    )
    assert "lock: free" in done.stdout, done.stderr
    done = install(str(target), cwd=target, launcher=skill / "scripts/debug-spyre")
    assert done.returncode == 69
    assert "not whole" in done.stderr, "a copy without hooks is no source for a client with hooks"


@pytest.mark.parametrize(
    "words", [["--bob", "--agents"], ["--bob", "--guard"], ["--bob", "--personal"], ["--agents", "--print-permissions"]]
)
def test_options_of_two_places_do_not_go_together(words, target):
    done = install(*words, cwd=target)
    assert done.returncode == 64
    assert "do not go together" in done.stderr
    assert not (target / ".bob").exists()


def test_the_manifest_has_the_packages_version():
    from debug_spyre import __version__

    manifest = json.loads((ROOT / SKILL / ".claude-plugin/plugin.json").read_text())
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
    assert manifest["version"] == __version__
    assert [entry["source"] for entry in market["plugins"]] == [f"./{SKILL}"]
    assert market["plugins"][0]["name"] == manifest["name"]


def test_the_command_of_the_plugin_is_the_launcher_beside_it(target):
    ok(install(cwd=target))
    env = {"PATH": "/usr/bin:/bin", "DEBUG_SPYRE_PYTHON": sys.executable}
    done = subprocess.run(
        [str(target / SKILL / "bin/debug-spyre"), "--version"], cwd=target, capture_output=True, text=True, env=env
    )
    assert done.stdout.startswith("debug-spyre "), done.stderr


OLD = "e257796"  # the tree before the rooms: other folders, other modules


def test_a_checkout_with_the_tree_before_the_rooms_updates_cleanly(target, tmp_path):
    source = tmp_path / "old"
    source.mkdir()
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", OLD], capture_output=True)
    if archive.returncode:
        pytest.skip("this copy of the project has no history")
    subprocess.run(["tar", "x", "-C", str(source)], input=archive.stdout, check=True)
    ok(install("--guard", str(target), cwd=target, launcher=source / "scripts/debug-spyre"))
    skill = target / SKILL
    ok(install("--dry-run", cwd=target, launcher=skill / "scripts/debug-spyre"))
    assert list(skill.rglob("__pycache__")), "the old copy ran and left its bytecode"
    log = skill / "logs/debug-20261130-101112-x/journal.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("precious\n")
    answer = ok(install(cwd=target))
    assert "of an older version removed" in answer
    assert "moved to" not in answer
    assert log.read_text() == "precious\n"
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    subprocess.run(["git", "init", "-q", str(fresh)], check=True)
    ok(install("--guard", cwd=fresh))
    shutil.rmtree(skill / "logs")
    assert tree(skill) == tree(fresh / SKILL)
    assert not [p for p in skill.rglob("*") if p.is_dir() and not any(p.iterdir())]
    hook = json.loads((target / ".claude/settings.json").read_text())["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    event = json.dumps(
        {
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "pytest tests"},
            "cwd": str(target),
        }
    )
    env = {"CLAUDE_PROJECT_DIR": str(target), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", hook], input=event, capture_output=True, text=True, env=env)
    assert '"permissionDecision": "deny"' in done.stdout, "the hook line of the old settings runs the new guard"


def test_where_nothing_can_be_written_it_is_said_and_nothing_is_half_there(target):
    (target / ".claude").write_text("a file in the way\n")
    before = tree(target)
    done = install(cwd=target)
    assert done.returncode in (2, 69)
    assert "next:" in done.stderr
    assert tree(target) == before


def test_the_printed_permissions_are_a_settings_file(target):
    rules = json.loads(ok(install("--print-permissions", cwd=target)))["permissions"]
    assert f"Bash({target}/{SKILL}/scripts/debug-spyre:*)" in rules["allow"]
    assert not [rule for rule in rules["allow"] if rule.startswith("Write(")]
    assert not (target / ".claude").exists()


def test_the_settings_hook_and_the_skills_hook_watch_the_same_tools():
    from debug_spyre.agent.client_settings import TOOLS

    assert f'matcher: "{TOOLS}"' in (ROOT / SKILL / "SKILL.md").read_text()


def test_an_installed_skill_is_fewer_than_309_files(target):
    """People read what they install: small modules that are always read together are one."""
    ok(install(cwd=target))
    files = [path for path in (target / SKILL).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert 100 < len(files) < 309
