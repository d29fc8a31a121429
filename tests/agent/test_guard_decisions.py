"""The decision table: each hard rule broken in many spellings, and as many innocent commands beside them."""

from argparse import ArgumentParser

import pytest

from debug_spyre.verbs import table

NODE = "tests/test_rms_norm.py::test_it[decode(q=1,kv=256)]"
STATES = {"open", "local"}  # needs of a case: a session is open; a local build is installed

# (id, command, verdict, rule, what the reason must hold)
BROKEN = [
    # H1: Spyre-backed outside the lock
    ("bare", "pytest tests/test_rms_norm.py", "deny", "H1", "debug-spyre triage tests/test_rms_norm.py"),
    ("session", "pytest tests/test_rms_norm.py -x", "deny", "H1", "debug-spyre run tests/test_rms_norm.py -x", "open"),
    ("node-id", f"uv run pytest '{NODE}' --tb=long", "deny", "H1", f"'{NODE}' --tb=long", "open"),
    ("upstream-filter", "uv run pytest -m 'not upstream' tests", "deny", "H1", "debug-spyre run tests", "open"),
    ("module", "python -m pytest tests", "deny", "H1", "triage tests"),
    ("module-path", ".venv/bin/python3.12 -m pytest -q tests", "deny", "H1", "triage -q tests"),
    ("uv-module", "uv run -m pytest tests", "deny", "H1", "triage tests"),
    ("uv-python", "uv run --no-sync python -m pytest tests", "deny", "H1", "triage tests"),
    ("uv-flags", "uv --project . run --extra dev --python 3.12 -- pytest tests", "deny", "H1", "triage tests"),
    ("tee", "uv run pytest tests 2>&1 | tee .claude/skills/debug-spyre/logs/s/baseline.txt", "deny", "H1", "triage tests"),
    ("env", "TORCH_SENDNN_LOG=INFO DTLOG_LEVEL=info uv run pytest t.py -s", "deny", "H1", "--env TORCH_SENDNN_LOG=INFO --env DTLOG_LEVEL=info t.py -s", "open"),
    ("env-command", "env -u A SENCORES=1 pytest t.py", "deny", "H1", "--env SENCORES=1 t.py"),
    ("continuation", "DTLOG_LEVEL=info \\\n  uv run pytest \\\n  t.py", "deny", "H1", "--env DTLOG_LEVEL=info t.py"),
    ("timeout", "timeout -k 5 600 uv run pytest t.py", "deny", "H1", "triage t.py"),
    ("nohup", "nohup nice -n 5 stdbuf -oL pytest t.py > out.txt 2>&1 &", "deny", "H1", "triage t.py"),
    ("bash-c", "bash -lc 'cd tests && pytest t.py'", "deny", "H1", "triage t.py"),
    ("nested-shell", "sh -c \"bash -c 'pytest t.py'\"", "deny", "H1", "triage t.py"),
    ("and", "true && pytest t.py", "deny", "H1", "triage t.py"),
    ("or", "ls x || pytest t.py", "deny", "H1", "triage t.py"),
    ("cd", "cd tests && pytest t.py", "deny", "H1", "triage t.py"),
    ("loop", "for f in tests/*.py; do pytest $f; done", "deny", "H1", "triage"),
    ("while", 'while read -r f; do pytest "$f"; done < list', "deny", "H1", "triage"),
    ("if", "if pytest t.py; then echo ok; fi", "deny", "H1", "triage t.py"),
    ("subshell", "(cd tests; pytest t.py)", "deny", "H1", "triage t.py"),
    ("substitution", 'echo "$(pytest t.py | tail -1)"', "deny", "H1", "triage t.py"),
    ("backtick", "echo `pytest t.py`", "deny", "H1", "triage t.py"),
    ("process-substitution", "diff <(pytest a.py) <(pytest b.py)", "deny", "H1", "triage a.py"),
    ("xargs", "ls tests | xargs -n1 pytest", "deny", "H1", "triage"),
    ("find-exec", "find tests -name 't*.py' -exec pytest {} \\;", "deny", "H1", "triage"),
    ("variable", "P='uv run pytest'; $P t.py", "deny", "H1", "triage t.py"),
    ("eval", "eval 'pytest t.py'", "deny", "H1", "triage t.py"),
    ("function", "f() { pytest t.py; }; f", "deny", "H1", "triage t.py"),
    ("case", "case $x in a) pytest t.py;; esac", "deny", "H1", "triage t.py"),
    ("heredoc-shell", "bash <<'EOF'\npytest t.py\nEOF", "deny", "H1", "triage t.py"),
    ("echo-shell", "echo 'pytest t.py' | bash", "deny", "H1", "triage t.py"),
    ("parallel-runs", "pytest a.py & pytest b.py; wait", "deny", "H1", "triage a.py"),
    ("tmux", "tmux new-session -d 'pytest t.py'", "deny", "H1", "triage t.py"),
    ("quoted-name", 'py"te"st t.py', "deny", "H1", "triage t.py"),
    ("flock", "flock /tmp/l -c 'pytest t.py'", "deny", "H1", "triage t.py"),
    ("coverage", "coverage run --branch -m pytest t.py", "deny", "H1", "triage t.py"),
    ("script", "python repro.py --n 4", "deny", "H1", "debug-spyre exec -- python repro.py --n 4"),
    ("uv-script", "uv run repro.py", "deny", "H1", "debug-spyre exec -- python repro.py"),
    ("script-env", "DT_DEEPRT_VERBOSE=1 python repro.py", "deny", "H1", "exec --env DT_DEEPRT_VERBOSE=1 -- python repro.py"),
    ("device-script", "python device.py", "deny", "H1", "exec -- python device.py"),
    ("program", "python -c 'import torch, torch_spyre; print(1)'", "deny", "H1", "debug-spyre save"),
    ("program-stdin", "python - <<'EOF'\nfrom vllm import LLM\nEOF", "deny", "H1", "debug-spyre save"),
    ("written-now", "cat > new.py <<'EOF'\nimport torch_spyre\nEOF\npython new.py", "deny", "H1", "exec -- python new.py"),
    ("shell-script", "bash run.sh", "deny", "H1", "triage t.py"),
    ("shell-script-path", "./run.sh", "deny", "H1", "triage t.py"),
    ("vllm-serve", "vllm serve some/model --max-model-len 128", "deny", "H1", "debug-spyre exec -- vllm serve"),
    ("vllm-bench", "uv run --no-sync vllm bench latency", "deny", "H1", "debug-spyre exec -- vllm bench latency"),
    ("vllm-module", "python -m vllm.entrypoints.openai.api_server", "deny", "H1", "exec -- python -m vllm"),
    ("torchrun", "torchrun --nproc-per-node 2 x.py", "deny", "H1", "exec -- torchrun"),
    ("other-tree", "cd ../torch-spyre && pytest tests", "deny", "H1", "triage tests"),
    # H1: xdist, background, the shared lock
    ("xdist", "uv run pytest -n 4 tests", "deny", "H1", "triage tests"),
    ("xdist-glued", "debug-spyre run -n4 tests", "deny", "H1", "debug-spyre run tests"),
    ("xdist-auto", "debug-spyre triage --numprocesses=auto tests", "deny", "H1", "serially"),
    ("xdist-addopts", "PYTEST_ADDOPTS='-n 2' debug-spyre run tests", "deny", "H1", "serially"),
    ("xdist-exec", "debug-spyre exec -- pytest -n 2 tests", "deny", "H1", "serially"),
    ("collect-xdist", "pytest --collect-only -n 4 tests", "deny", "H1", "serially"),
    ("ampersand", "debug-spyre run tests &", "deny", "H1", "debug-spyre run --foreground 570 tests"),
    ("lock-dir", "DEBUG_SPYRE_LOCK_DIR=/tmp/x debug-spyre run tests", "deny", "H1", "drop it"),
    ("lock-marks", "DEBUG_SPYRE_LOCK_FDS=3:1:2 debug-spyre run tests", "deny", "H1", "drop it"),
    ("unprotected", "DEBUG_SPYRE_UNSAFE_NO_HOLDER_CHECK=1 debug-spyre run tests", "deny", "H1", "drop it"),
    # L1
    ("uv-run", "uv run python -c 'print(1)'", "deny", "L1", "uv run --no-sync python -c", "local"),
    ("uv-run-tool", "uv run ruff check .", "deny", "L1", "uv run --no-sync ruff check .", "local"),
    ("uv-sync", "uv sync --extra dev", "deny", "L1", "uv run --no-sync", "local"),
    ("uv-run-chained", "cd tests && uv run mypy .", "deny", "L1", "uv run --no-sync mypy .", "local"),
    # R3, R4
    ("k-bracket", "debug-spyre run -k 'decode(q=1' t.py", "deny", "R3", "--collect-only"),
    ("k-comma", "debug-spyre triage t.py -k 'a,b'", "deny", "R3", "--collect-only"),
    ("k-square", "debug-spyre run '-ktest[64]' t.py", "deny", "R3", "node ids"),
    ("k-raw", "uv run pytest t.py -k 'kv=256'", "deny", "R3", "debug-spyre triage t.py"),
    ("k-inner", "debug-spyre exec -- pytest -k 'a(b' t.py", "deny", "R3", "node ids"),
    ("w-user", "debug-spyre run -W error::UserWarning t.py", "deny", "R4", "run --fallback-as-error t.py"),
    ("w-all", "debug-spyre run -Werror::Warning t.py", "deny", "R4", "--fallback-as-error"),
    ("w-raw", "uv run pytest t.py -W error::UserWarning", "deny", "R4", "triage t.py --fallback-as-error"),
    # P3
    ("commit", "git commit -am 'x'", "ask", "P3", "commit"),
    ("push", "git push origin HEAD", "ask", "P3", "push"),
    ("push-elsewhere", "git -C ../x -c a.b=c push", "ask", "P3", "push"),
    ("push-wrapped", "timeout 60 git push", "ask", "P3", "push"),
    ("push-shell", "bash -c 'git add . && git commit -m x'", "ask", "P3", "commit"),
    ("pr", "gh pr create --fill", "ask", "P3", "pr create"),
    ("merge", "gh -R o/r pr merge 12", "ask", "P3", "pr merge"),
    ("api", "gh api repos/o/r/pulls -f title=x", "ask", "P3", "pull request"),
    ("exec-push", "debug-spyre exec -- git push", "ask", "P3", "push"),
    ("exec-shell-push", "debug-spyre exec -- bash -c 'git push'", "ask", "P3", "push"),
    ("exec-no-dashes", "debug-spyre exec git push", "ask", "P3", "push"),
    ("and-push", "debug-spyre status && git push", "ask", "P3", "push"),
    ("newline-push", "debug-spyre status\ngit push", "ask", "P3", "push"),
    ("substituted-push", 'debug-spyre note summary "$(git push)"', "ask", "P3", "push"),
    # P4
    ("pip", "pip install numpy", "ask", "P4", "pip install"),
    ("python-pip", "python -m pip install -U torch", "ask", "P4", "pip install"),
    ("uv-pip", "uv pip install --no-deps --force-reinstall ./torch-spyre", "ask", "P4", "pip install"),
    ("uv-add", "uv add numpy", "ask", "P4", "uv add"),
    ("uv-sync-pinned", "uv sync", "ask", "P4", "uv sync"),
    ("lock-pip", "debug-spyre lock -- pip install x", "ask", "P4", "pip install"),
    ("apt", "sudo apt-get install -y jq", "ask", "P4", "apt-get install"),
    ("redirect-lock", "echo x >> uv.lock", "ask", "P4", "uv.lock"),
    ("sed-project", "sed -i 's/a/b/' pyproject.toml", "ask", "P4", "pyproject.toml"),
    ("uv-with", "uv run --no-sync --with rich python x.txt", "ask", "P4", "--with"),
    # P5
    ("sed-venv", "sed -i 's/a/b/' .venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py", "ask", "P5", "standalone script"),
    ("tee-venv", "echo x | tee .venv/x", "ask", "P5", "standalone"),
    ("redirect-venv", "cat a > .venv/lib/python3.12/site-packages/a.py", "ask", "P5", "standalone"),
    ("cp-venv", "cp a.py .venv/lib/python3.12/site-packages/a.py", "ask", "P5", "standalone"),
    # P6: git must not take edits out of the tree of an open session, nor move the tree under it
    *(
        (f"tree-{number}", command, "deny", "P6", "debug-spyre revert", "open")
        for number, command in enumerate((
            "git checkout main", "git checkout -- .", "git checkout .", "git checkout -f", "git checkout HEAD~1 -- plugin.py",
            "git checkout -- spyre_inference/custom_ops/rms_norm.py", "git checkout -b fix origin/main", "git checkout -f -b fix",
            "git checkout --orphan fix", "git checkout -p", "git switch main", "git switch -", "git switch --detach HEAD~2",
            "git switch -c fix main", "git restore .", "git restore --staged --worktree t.py", "git restore -SW t.py",
            "git restore --source=HEAD~1 t.py", "git restore --staged --work t.py", "git reset --hard", "git reset -q --hard HEAD~1",
            "git reset --har", "git reset --merge", "git reset --keep main", "git stash", "git stash push -m x", "git stash -u",
            "git stash -- t.py", "git stash save x", "git stash pop", "git stash apply", "git stash drop", "git stash clear",
            "git stash branch x", "git clean -f", "git clean -fdx", "git clean -d --force", "git clean -f -e n", "git clean -fen",
            "git -c clean.requireForce=false clean", "git clean -i", "git rebase main", "git rebase -i HEAD~3", "git pull",
            "git pull --rebase", "git merge main", "git cherry-pick a1b2", "git revert HEAD", "git am x.patch",
            "git bisect start", "git bisect reset", "gh pr checkout 12", "hub checkout main", "git -C . reset --hard",
            "git -C tests -C .. stash", "git --no-pager -c a.b=c stash", "git --work-tree=. checkout main",
            "git --git-dir .git stash", "command git stash", "env X=1 git checkout .", "GIT_PAGER=cat git stash", "git   stash",
            "git\\\n stash", "/usr/bin/git stash", "g'i't st\"ash\"", "bash -c 'git stash'", "sh -c \"bash -c 'git stash'\"",
            "true && git stash", "git diff > x.patch; git checkout .", "git stash && git pull", "(cd tests; git stash)",
            "cd tests && git checkout .", "echo $(git stash)", "git ls-files -m | xargs git checkout --", "timeout 5 git stash",
            "git ls-files -m | xargs git restore", "find . -name '*.py' -exec git checkout {} +", "G='git stash'; $G",
            "if git diff --quiet; then :; else git stash; fi", "git status && git add . && git stash", "sudo git stash",
            "debug-spyre exec -- git stash", "debug-spyre exec -- bash -c 'git checkout .'", "debug-spyre lock -- git pull",
            "debug-spyre status && git stash", "cd ../torch-spyre; cd -; git -C {here} stash", "bash <<'EOF'\ngit stash\nEOF",
            "GIT_WORK_TREE={here} git -C {outside} checkout .",
        ))
    ),
    ("tree-way-out", "git stash", "deny", "P6", "git apply", "open"),
    ("tree-look", "git checkout HEAD~1", "deny", "P6", "git worktree add", "open"),
    ("tree-abort", "git merge --abort", "ask", "P6", "git merge --abort", "open"),
    ("tree-continue", "git rebase -q --continue", "ask", "P6", "--continue", "open"),
    # a person's decisions, odd things inside exec
    ("approved", "debug-spyre close resolved --patch-approved", "deny", "P6", "terminal of their own"),
    ("shipped", "debug-spyre triage --hosts tls://h:1 --ship-approved tests", "deny", "P2", "terminal of their own"),
    ("shipped-short", "debug-spyre run --hosts tls://h:1 --ship-app tests", "deny", "P2", "terminal of their own"),
    ("override", "debug-spyre close resolved --override=missing --reason x", "deny", "gate", "terminal of their own"),
    ("reap", "debug-spyre run --reap t.py", "deny", "gate", "terminal of their own"),
    ("exec-rm", "debug-spyre exec -- rm -rf spyre_inference", "ask", "P2", "person"),
    ("exec-curl", "debug-spyre exec -- timeout 5 curl https://example.invalid", "ask", "P2", "person"),
    ("exec-tmp", "debug-spyre exec -- python /tmp/x.py", "deny", "G2", "debug-spyre save x.py < /tmp/x.py", "open"),
    ("note-substitution", 'debug-spyre note summary "the op `aten.mm` is wrong"', "deny", "guard", "single quotes"),
    ("unreadable", "pytest 'tests", "ask", "guard", "can't read"),
]  # fmt: skip

# (id, command, verdict)
INNOCENT = [
    ("status", "debug-spyre status", "allow"),
    ("triage", "debug-spyre triage tests/test_rms_norm.py", "allow"),
    ("run", f"debug-spyre run --as baseline '{NODE}'", "allow"),
    ("run-env", "TORCH_SENDNN_LOG=INFO debug-spyre run --as verbose t.py", "allow"),
    ("run-k", "debug-spyre run -k 'wide and not decode' t.py", "allow"),
    ("run-filter", "debug-spyre run -W error::torch_spyre.ops.fallbacks.FallbackWarning t.py", "allow"),
    ("run-merge", "debug-spyre run t.py 2>&1", "allow"),
    ("run-n0", "debug-spyre run -n 0 t.py", "allow"),
    ("exec", "debug-spyre exec -- python repro.py", "allow"),
    ("exec-uv", "debug-spyre exec -- uv run --no-sync python repro.py", "allow"),
    ("exec-shell", "debug-spyre exec -- bash -c 'python repro.py'", "allow"),
    ("exec-vllm", "debug-spyre exec -- vllm bench latency", None),
    ("lock", "debug-spyre lock", "allow"),
    ("save", "debug-spyre save repro.py <<'EOF'\nimport torch_spyre\nprint('pytest $(git push)')\nEOF", "allow"),
    ("note", "debug-spyre note summary 'git push & pytest -n 4 (a `b` $c)'", "allow"),
    ("hypothesis", "debug-spyre hypothesis add 'rows wrap' --test 'pytest -n 4'", "allow"),
    ("quoted-patch", "debug-spyre note next 'ask for --patch-approved'", "allow"),
    ("close", "debug-spyre close blocked --next 'decide'", "allow"),
    ("absolute", "{launcher} status --json", "allow"),
    ("relative", "./.claude/skills/debug-spyre/scripts/debug-spyre status", "allow"),
    ("log-redirect", "debug-spyre status > .claude/skills/debug-spyre/logs/x.txt", "allow"),
    ("redirect-out", "debug-spyre status > notes.txt", "allow"),
    ("redirect-code", "debug-spyre status > notes.py", None),
    ("redirect-hidden", "debug-spyre status > .notes.txt", None),
    ("other-launcher", "/opt/elsewhere/debug-spyre status", None),
    ("piped", "debug-spyre status | head -5", "allow"),
    ("piped-into-unknown", "debug-spyre status | foo", None),
    ("chained", "debug-spyre status && ls", "allow"),
    ("chained-with-unknown", "debug-spyre status && foo", None),
    ("ls", "ls -la tests", None),
    ("grep", "grep -rn 'pytest' tests", None),
    ("grep-push", 'grep -rn "git push" .github', None),
    ("echo-push", 'echo "git push"', None),
    ("git-log", "git log --oneline --grep 'uv sync' | head", None),
    ("git-status", "git status --short && git diff --stat", None),
    ("git-checkout", "git checkout -- spyre_inference/custom_ops/rms_norm.py", None),
    ("git-stash-list", "git stash list", None),
    ("git-commit-help", "git commit --help", None),
    *(
        (f"tree-kept-{number}", command, None, "open")
        for number, command in enumerate((
            "git status", "git diff HEAD -- .", "git log --oneline main..", "git show HEAD~1:plugin.py", "git show stash@{0}",
            "git stash list", "git stash show -p", "git stash create", "git stash --help", "git checkout", "git checkout -q",
            "git checkout -b fix", "git checkout -q -b fix HEAD", "git switch -c fix", "git switch --help", "git switch -h",
            "git restore --staged t.py", "git restore -S .", "git reset", "git reset -- t.py", "git reset --soft HEAD~1",
            "git clean -n", "git clean -fdn", "git clean --dry-run -f", "git worktree add ../look HEAD~1", "git fetch",
            "git worktree remove ../look", "git merge-base HEAD main", "git merge-tree a b", "git pull --dry-run", "git add .",
            "git rebase --show-current-patch", "git bisect log", "git apply fix.patch", "git branch -a", "git blame t.py",
            "git help stash", "gh pr diff 12", "gh pr checkout --help", "echo 'git stash'", "grep -rn 'git stash' .",
            "git log --grep 'git reset --hard'", "git commit --help",
            "git -C ../torch-spyre checkout main", "cd ../torch-spyre && git pull", "cd {outside} && git stash",
            "git --work-tree ../torch-spyre checkout .",
        ))
    ),
    *(
        (f"tree-no-session-{number}", command, None)
        for number, command in enumerate((
            "git checkout main", "git switch main", "git restore .", "git reset --hard", "git stash", "git clean -fd",
            "git rebase main", "git pull", "git merge main", "git merge --abort", "git bisect start", "gh pr checkout 12",
        ))
    ),
    ("cat-project", "cat pyproject.toml uv.lock", None),
    ("sed-read", "sed -n '1,80p' .venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py", None),
    ("grep-venv", "grep -n 'aten.mm' .venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py | head", None),
    ("pip-show", "uv pip show torch-spyre", None),
    ("pip-list", "pip list | grep torch", None),
    ("pip-dry", "pip install --dry-run x", None),
    ("uv-run-pinned", "uv run python -c 'print(1)'", None),
    ("uv-no-sync", "uv run --no-sync ruff check .", None, "local"),
    ("uv-cache", "uv cache clean torch-spyre", None, "local"),
    ("uv-version", "uv --version", None, "local"),
    ("uvx", "uvx ruff check", None, "local"),
    ("collect", "uv run --no-sync pytest --collect-only -q tests", None),
    ("pytest-version", "pytest --version", None),
    ("python-json", "python -m json.tool x.json", None),
    ("python-plain", "python plain.py", None),
    ("python-version", "python --version", None),
    ("python-c", "python -c 'print(\"pytest vllm\")'", None),
    ("comment", "ls # pytest tests", None),
    ("heredoc-data", "cat > notes.md <<'EOF'\npytest tests\ngit push\nEOF", None),
    ("case-pattern", "case $x in pytest) echo a;; vllm) ls;; esac", None),
    ("vllm-version", "vllm --version", None),
    ("gh-view", "gh pr view 12", None),
    ("gh-list", "gh pr list --search 'create merge'", None),
    ("kill-zero", "kill -0 1234", None),
    ("npm-test", "npm test", None),
    ("apt-list", "apt list --installed", None),
    ("outside", "cd {outside} && pytest tests", None),
    ("man", "man pytest", None),
    ("which", "which pytest vllm uv", None),
    ("command-v", "command -v pytest", None),
    ("rm", "rm -f notes.txt", None),
    ("broken-quote", "echo 'a", None),
    ("empty", "   ", None),
]  # fmt: skip


@pytest.fixture
def place(checkout, kit):
    """Scripts of all sorts in the checkout, another Spyre tree and a folder that has nothing to do with it."""
    (checkout / "repro.py").write_text("import torch\nimport torch_spyre\n")
    (checkout / "device.py").write_text("import torch\nprint(torch.ones(2, device='spyre'))\n")
    (checkout / "plain.py").write_text("# import torch_spyre is only mentioned\nprint('vllm')\n")
    (checkout / "run.sh").write_text("#!/bin/sh\nset -e\npytest t.py\n")
    (checkout / "run.sh").chmod(0o755)
    other = checkout.parent / "torch-spyre"
    (other / "torch_spyre").mkdir(parents=True)
    (other / ".git").mkdir()
    outside = checkout.parent / "else where"
    outside.mkdir()
    return checkout


def prepare(case, place, kit):
    needs = set(case) & STATES if len(case) > 3 else set()
    if "open" in needs:
        kit.write_session(place, client="client-1")
    if "local" in needs:
        kit.set_build(place, kit.LOCAL)


def fill(command, place):
    outside = str(place.parent / "else where").replace(" ", "\\ ")
    launcher = '"' + str(place / ".claude/skills/debug-spyre/scripts/debug-spyre") + '"'
    command = command.replace("{launcher}", launcher).replace("{here}", '"' + str(place) + '"')
    return command.replace("{outside}", outside.replace("'", "\\'"))


@pytest.mark.parametrize("case", BROKEN, ids=[case[0] for case in BROKEN])
def test_a_broken_rule_is_stopped_with_the_way_out(case, guard, world, place, kit):
    prepare(case, place, kit)
    found = guard.decide("Bash", {"command": fill(case[1], place)}, world())
    assert (found.verdict, found.rule) == (case[2], case[3]), found.reason
    assert case[4] in found.reason


@pytest.mark.parametrize("case", INNOCENT, ids=[case[0] for case in INNOCENT])
def test_an_innocent_command_passes(case, guard, world, place, kit):
    prepare(case, place, kit)
    found = guard.decide("Bash", {"command": fill(case[1], place)}, world())
    assert found.verdict == case[2], (found.rule, found.reason)


def test_the_tables_are_big_enough():
    assert len(BROKEN) >= 40
    assert len(INNOCENT) >= 40


@pytest.mark.parametrize("command", [case[1] for case in INNOCENT if "debug-spyre" in case[1] and "/" not in case[1]])
def test_our_command_is_found_without_being_on_the_path(command, guard, world, place, kit):
    """The same line, with the launcher's folder in front of the PATH; another program of that name does not run."""
    kit.write_session(place)
    made = world()
    line = guard.decide("Bash", {"command": fill(command, place)}, made).command
    assert line.endswith(f"; {fill(command, place)}")
    first = guard.Reader(line).read()[0]
    assert first.assigns[0][1].split(":")[0] == str(place / kit.SKILL / "scripts")
    assert guard.Reader(line).read()[-1].words == guard.Reader(fill(command, place)).read()[-1].words


@pytest.mark.parametrize("command", [case[1] for case in INNOCENT if case[2] == "allow"])
def test_nothing_of_ours_is_allowed_beside_a_push(command, guard, world, place):
    """Whatever is allowed alone is no longer allowed once something else stands in the same call."""
    for joined in (f"{fill(command, place)}\ngit push", f"git commit -m x; {fill(command, place)}"):
        assert guard.decide("Bash", {"command": joined}, world()).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "run t.py",
        "exec -- python repro.py",
        "triage tests",
        "validate",
        "lock -- sleep 1",
        "limits --probe",
        "doctor --probe",
    ],
)
def test_a_card_verb_is_never_started_in_the_background(command, guard, world, place):
    found = guard.decide("Bash", {"command": f"debug-spyre {command}", "run_in_background": True}, world())
    assert (found.verdict, found.rule) == ("deny", "H1")
    assert "600000" in found.reason
    parser = ArgumentParser()
    table.load(command.split()[0]).add_arguments(parser)
    assert ("--foreground 570" in found.reason) == ("--foreground" in parser._option_string_actions)


@pytest.mark.parametrize("command", ["wait", "status --watch", "lock", "triage --from log.txt", "limits"])
def test_waiting_in_the_background_is_fine(command, guard, world, place):
    assert (
        guard.decide("Bash", {"command": f"debug-spyre {command}", "run_in_background": True}, world()).verdict
        == "allow"
    )


EDITS = [
    ("spyre_inference/custom_ops/rms_norm.py", True, "allow", "P2"),
    ("tests/test_rms_norm.py", True, "allow", "P2"),
    ("tests/new_test.py", True, "allow", "P2"),
    ("spyre_inference/custom_ops/rms_norm.py", False, None, ""),
    ("README.md", True, None, ""),
    (".github/workflows/ci.yml", True, None, ""),
    (".git/config", True, "deny", "P6"),
    (".claude/settings.json", True, "deny", "P1"),
    (".claude/skills/debug-spyre/scripts/guard.py", True, "deny", "P1"),
    (".claude/skills/debug-spyre/logs/debug-20261130-101112-rmsnorm-wide/journal.jsonl", True, "deny", "G2"),
    ("pyproject.toml", True, "ask", "P4"),
    ("uv.lock", False, "ask", "P4"),
    ("tests/../pyproject.toml", True, "ask", "P4"),
    (".venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py", True, "ask", "P5"),
    ("tests/../.venv/x.py", True, "ask", "P5"),
    ("/usr/lib/python3/site-packages/x.py", False, "ask", "P5"),
    ("/tmp/elsewhere.py", True, None, ""),
    ("tests/link/x.py", True, None, ""),
    ("tests/venv-link/x.py", True, "ask", "P5"),
]


@pytest.mark.parametrize(("path", "is_open", "verdict", "rule"), EDITS, ids=[f"{e[0]}-{e[1]}" for e in EDITS])
@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_edits_are_judged_by_where_they_go(tool, path, is_open, verdict, rule, guard, world, place, kit):
    (place / "tests/link").symlink_to("/tmp")
    (place / "tests/venv-link").symlink_to(place / ".venv")
    if is_open:
        kit.write_session(place)
    absolute = path if path.startswith("/") else str(place / path)
    found = guard.decide(tool, {"file_path": absolute}, world())
    assert (found.verdict, found.rule) == (verdict, rule)
    if rule == "P5":
        assert "standalone script" in found.reason


def test_edits_pass_untouched_once_the_session_is_closed(guard, world, place, kit):
    kit.write_session(place, ("session_closed", {"status": "resolved"}))
    target = {"file_path": str(place / "tests/test_rms_norm.py")}
    assert guard.decide("Edit", target, world()).verdict is None
    kit.write_session(place, ("session_closed", {"status": "resolved"}), ("session_reopened", {"reason": "x"}))
    assert guard.decide("Edit", target, world()).verdict == "allow"


def test_git_may_move_the_tree_again_once_the_session_is_closed(guard, world, place, kit):
    """Open, closed, opened again: the refusal goes with the state of the journal; another checkout has none."""
    ended = ("session_closed", {"status": "resolved"})
    for events, verdict in (((), "deny"), ((ended,), None), ((ended, ("session_reopened", {"reason": "x"})), "deny")):
        kit.write_session(place, *events)
        for command in ("git stash", "git checkout ."):
            assert guard.decide("Bash", {"command": command}, world()).verdict == verdict
    nested = place / "torch-spyre"
    (nested / ".git").mkdir(parents=True)
    assert guard.decide("Bash", {"command": "git stash"}, world(cwd=nested)).verdict is None
    assert guard.decide("Bash", {"command": "git -C torch-spyre pull"}, world()).verdict is None


def test_a_person_is_not_asked_which_hypothesis_to_try(guard, world, place, kit):
    assert guard.decide("AskUserQuestion", {"questions": []}, world()).verdict is None
    kit.write_session(place, client="somebody-else")
    assert guard.decide("AskUserQuestion", {"questions": []}, world()).verdict is None
    kit.write_session(place, client="client-1", stem="debug-20261130-111111-other")
    found = guard.decide("AskUserQuestion", {"questions": []}, world())
    assert (found.verdict, found.rule) == ("deny", "S5")
    assert "hypothesis add" in found.reason


def test_a_build_that_differs_from_the_pin_counts_as_local(guard, world, place, kit):
    kit.set_build(place, {"vcs_info": {"vcs": "git", "commit_id": "a" * 40}, "url": "https://example.invalid/x"})
    found = guard.decide("Bash", {"command": "uv run ruff check"}, world())
    assert (found.verdict, found.rule) == ("deny", "L1")
    assert "aaaaaaaaa" in found.reason
    assert "f8d4f43b0" in found.reason


def test_the_command_refuses_an_agent_what_the_guard_refuses():
    """Two lists, since the guard is not installed for every client."""
    from debug_spyre.agent.guard.tables import PERSONS_OPTIONS
    from debug_spyre.cli import PERSONS

    assert set(PERSONS) == set(PERSONS_OPTIONS)
