"""The guard's tables of words."""

from __future__ import annotations


def words(*lines: str) -> frozenset[str]:
    """The words in these lines."""
    return frozenset(" ".join(lines).split())


# fmt: off

# -- our own command
NAME = "debug-spyre"
CARD_VERBS = words("triage run exec validate shadow sweep ladder repro lock investigate finish bisect")
FOLLOWING_VERBS = CARD_VERBS - {"lock"} | {"limits"}  # those that know --foreground
PYTEST_VERBS = words("triage run validate shadow ladder repro investigate")
CARD_OPTIONS = {"limits": "--probe", "doctor": "--probe"}
NO_CARD_OPTIONS = {"triage": ("--from", "--last"), "investigate": ("--show",), "bisect": ("--show",)}
PERSONS_OPTIONS = {"--patch-approved": "P6", "--override": "gate", "--reap": "gate", "--build-approved": "P2", "--ship-approved": "P2"}
PERSONS_VERBS = CARD_VERBS | {"close", "install", "prune"}  # a word that only the shell knows may be a person's option
ENDING_VERBS = words("close finish revert lock")
INNER_VALUED = words("--as --hypothesis --env --session --timeout --stall --foreground --wait --cards --card --on --image")
PYTEST_VALUED = {"-k": "-k", "--keyword": "-k", "-W": "-W", "--pythonwarnings": "-W", "-n": "-n", "--numprocesses": "-n", "--dist": "--dist", "--tx": "--tx",
                 "-m": "", "-p": "", "-c": "", "-o": "", "-r": ""}  # options of pytest that take a value -> those that matter
RUNS_NOTHING = words("--collect-only --co --version -V --help -h --fixtures --markers")
LOCK_ENV = ("DEBUG_SPYRE_LOCK_", "DEBUG_SPYRE_DEVICES", "DEBUG_SPYRE_UNSAFE_")  # how such names begin
AUTHOR_ENV = words("CLAUDECODE CLAUDE_CODE_SESSION_ID")  # they say whose a decision was
HARMLESS_ENV = ("TORCH", "SPYRE_", "DT", "VLLM_", "SENCORES", "NO_COLOR", "COLUMNS", "LX_", "FLEX_", "PYTEST_ADDOPTS", "UV_NO_SYNC", "LC_", "LANG", "PYTHONUNBUFFERED", "CUDA_VISIBLE_DEVICES")
POWERFUL_ENV = ("PATH", "LD_", "PYTHON", "BASH_", "ENV", "IFS", "GIT_", "PYTEST_", "NODE_", "SHELL", "PS", "PROMPT", "DEBUG_SPYRE", "HOME", "CLAUDE", "PERL", "RUBY", "LESS", "PAGER", "EDITOR", "VISUAL", "TMP", "XDG_", "VIRTUAL_ENV", "UV_", "PIP_")

# -- commands that only look. None: whatever the options; else the beginnings of options that write or run
READERS: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(words(
            "ls cat head tail wc cut tr uniq nl tac rev fold column paste comm join cmp diff grep egrep fgrep rg ag stat",
            "file du df basename dirname readlink realpath pwd date echo printf true false : test [ sleep wait seq id whoami",
            "hostname uname nproc free uptime ps pgrep printenv which type jq md5sum sha256sum cksum base64 xxd od hexdump",
            "strings lspci lscpu read exit return set shift local break continue less more tree lsof getconf locale man",
            "nvidia-smi sed yes cd pushd popd let expr bc zcat zgrep export declare typeset unset readonly"), None),
    "sort": ("-o", "--output", "--compress-program"),
    "find": ("-exec", "-ok", "-delete", "-fprint", "-fls"),
    **dict.fromkeys(("awk", "gawk", "mawk"), ("-f", "--file", "-E", "-l")), "mypy": ("--install-types",), "ruff": ("--fix", "format", "clean"),
}
TALKERS = words("hash whereis apropos tldr whatis info history kill disown jobs notify-send logger curl wget http xh mail apt-cache fc")
SHOWING = words("which show info list search view where help whence status ls log logs images inspect outdated config")  # X show pytest
FILTERS = words("cat tee tac head tail sed grep base64 rev tr sort nl cut")
CODE_READERS = words("sed awk gawk mawk")
CODE_WRITES = ("system", "getline", "popen", '>"', '> "', '|"', '| "', "w ", "/w", "/e")

# -- wrappers that change nothing: name -> (options that take a value, words of their own before the command)
WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "timeout": (words("-k -s --kill-after --signal"), 1), "time": (words("-f -o"), 0), "nohup": (words(), 0),
    "nice": (words("-n --adjustment"), 0), "ionice": (words("-c -n -p"), 0), "stdbuf": (words("-i -o -e"), 0),
    "env": (words("-u -C -S --unset --chdir --split-string"), 0), "command": (words(), 0), "builtin": (words(), 0),
    "xargs": (words("-I -n -P -L -d -a -s -E --max-procs --max-args"), 0),
}
PARALLEL = words("parallel watch entr setsid")  # they start several commands, or leave them alone
LATER = words("tmux screen su script systemd-run at batch crontab runuser expect sg ssh")  # stdin and files are shell text too
SHELLS = words("bash sh dash zsh ksh ash")
# words by which a program that the guard does not know may name another one
COMMANDS = SHELLS | words("pytest py.test ptw pytest-watch git gh hub vllm torchrun accelerate deepspeed uv uvx pip pip3 make tox nox hatch",
    "debug-spyre env rm mv cp tee dd sed perl truncate ln rsync timeout nohup xargs sudo npm just")

# -- the card
TESTERS = words("pytest py.test ptw pytest-watch pytest_watch")
SPYRE_MODULES = ("torch_spyre", "spyre_inference", "vllm")
SPYRE_DEVICE = ('"spyre"', "'spyre'", '"spyre:', "'spyre:")
CARD_PROGRAMS = {"vllm": words("serve bench chat complete run-batch"), **dict.fromkeys(("torchrun", "accelerate", "deepspeed"), words())}
RUN_MODULES = words("pdb cProfile profile trace runpy timeit coverage viztracer scalene memray kernprof bdb ipdb debugpy")
MODULES_OF_PROGRAMS = {name: name for name in words("pip uv tox nox invoke hatch easy_install pytest ptw")}  # python -m NAME
MODULES_OF_PROGRAMS.update({"pytest_watch": "ptw", "debug_spyre": NAME, "IPython": "ipython"})
PASSING = {  # a task runner -> the files that say what a task does
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("pdm", "poe"), ("pyproject.toml",)), **dict.fromkeys(("inv", "invoke"), ("tasks.py",)),
    "just": ("justfile", "Justfile", ".justfile"), "task": ("Taskfile.yml", "Taskfile.yaml"), "doit": ("dodo.py",),
    "tox": ("tox.ini", "tox.toml", "setup.cfg", "pyproject.toml"), "nox": ("noxfile.py",),
    "hatch": ("hatch.toml", "pyproject.toml"), "pre-commit": (".pre-commit-config.yaml",),
}
WHOLE_FILE = words("tox nox invoke inv doit poe pre-commit")  # any task of these is judged by the whole file
IN_FILES = words("pytest py.test python git vllm torchrun uv pip")  # looked for in the files of such runners
TASK_LOOKS = words("--version --help -h -n --dry-run --just-print -l --list --summary")
TASK_VERBS = words("run run-script t exec x env")
RUNS_CODE = ("os.system", "popen", "Popen", "subprocess", "exec", "spawn", "run_module", "run_path", "pytest.main", "pytest.console_main",
             "system", "child_process", "qx", "`", "__import__", "import pytest", "import_module", "getline")
DESTRUCTIVE_CODE = ("rmtree", "os.remove", "os.unlink", ".unlink(", "os.rename", "os.replace", "shutil.move", "os.rmdir", "truncate(", "urlopen", "urlretrieve", "os.kill")
PLAIN_MODULES = words("json sys re math collections itertools textwrap")  # a filter of these alone only looks
UNPLAIN_CODE = ("open", "exec", "eval", "__", "compile", "attr", "modules", "write", "import_", "globals", "vars", "breakpoint", "input")
WRITING_CODE = ("write", "'w", '"w', "'a'", '"a"', "unlink", "remove", "rename", "replace", "copy", "rmtree", "truncate", "move")
KEPT_NAMES = ("site-packages", ".venv", "pyproject.toml", "uv.lock", "journal.jsonl", "evidence.json", "settings.json", "guard.py", "info/exclude", ".git/")

# -- what a person confirms: programs, their first word, one that must follow, those that spare it, the rule, what is said
INSTALLS = words("install uninstall sync add remove update upgrade lock tree-install i ci purge dist-upgrade reinstall upgrade-all up")
INSTALLERS = words("apt apt-get dnf yum microdnf zypper apk npm pnpm yarn bun pipx brew snap conda mamba micromamba poetry pdm pipenv rye pixi hatch")
ENVIRONMENT, PACKAGES = "changes of the environment ({} {})", "installing packages ({} {})"
BY_UV = "changes of the environment, pyproject.toml and uv.lock ({} {})"
DRY = words("--dry-run -h --help")
CONFIRMED: tuple[tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str], str, str], ...] = (
    (words("git"), words("commit push send-pack"), words(), DRY, "P3", "{} {}"),
    (words("hub"), words("pull-request push commit merge"), words(), DRY, "P3", "{} {}"),
    (words("gh glab"), words("pr mr"), words("create merge new close edit ready comment review"), DRY, "P3", "{} {} {}"),
    (words("pip"), words("install uninstall sync"), words(), DRY, "P4", ENVIRONMENT),
    (words("easy_install"), words(), words(), words(), "P4", ENVIRONMENT),
    (words("apt apt-get"), INSTALLS - {"update"}, words(), DRY, "P4", PACKAGES),
    (INSTALLERS - {"apt", "apt-get"}, INSTALLS, words(), DRY, "P4", PACKAGES),
    (words("conda mamba micromamba"), words("env"), words("update"), DRY, "P4", PACKAGES),
    (words("uv"), words("add remove lock venv init self"), words(), DRY | {"--check"}, "P4", BY_UV),
    (words("uv"), words("tool python"), INSTALLS, DRY, "P4", BY_UV),
    (words("claude"), words("config plugin mcp"), words("set disable uninstall"), words(), "P1", "changes of the client's own settings, by hand"),
    (words(NAME), words("install"), words(), DRY | {"--print-permissions"}, "P1", "{1}, which writes into the client's folder"),
    (words(NAME), words("prune"), words(), DRY, "P1", "{1}, which removes old sessions with their evidence"),
)
UV_VALUED = words("--with --with-editable --with-requirements -w --python -p --project --directory -C --extra --group --only-group --no-group",
                 "--no-extra --env-file --index --index-url -i --extra-index-url --package --color --cache-dir --config-file --config-setting",
                 "--python-platform --refresh-package --reinstall-package --upgrade-package -P --link-mode --find-links -f --from")

# -- git
GIT_VALUED = words("-C -c --git-dir --work-tree --namespace --config-env --attr-source --super-prefix --exec-path -R --repo")
VALUED = {"uv": UV_VALUED, **dict.fromkeys(("git", "gh", "hub", "glab"), GIT_VALUED)}
PIP_LOOKS = words("list show freeze check")
GIT_LOOKS = words("status diff log show blame annotate ls-files ls-tree rev-parse describe shortlog grep merge-base cat-file rev-list name-rev help",
                 "version count-objects diff-tree diff-index diff-files for-each-ref show-ref whatchanged var check-ignore check-attr fsck",
                 "merge-tree range-diff cherry show-branch")
GIT_FREE = words("add branch tag fetch remote worktree clone init notes format-patch bundle gc maintenance mv ls-remote prune repack pack-refs config",
                "stash reset restore clean checkout switch bisect apply rm reflog archive commit push send-pack rerere request-pull")
GIT_WRITES = ("--output", "--ext-diff", "-O", "--open-files-in-pager", "--exec", "-x", "--textconv")
GIT_LISTS = {"branch": words("-a -r -v -vv --list --show-current --all --contains --merged"), "tag": words("-l --list -n"), "remote": words("-v show get-url"),
             "stash": words("list show"), "worktree": words("list"), "config": words("--get --get-all --list -l get list"), "reflog": words("show")}
MOVING = words("checkout switch rebase pull merge cherry-pick revert am bisect")
HALF_WAY = words("--abort --quit --continue --skip")
# verb -> options by which it takes edits away ("": any use of it does), words and options by which it does not
TAKES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(words("checkout-index filter-branch merge-recursive merge-resolve reset-index"), (("",), ())),
    **dict.fromkeys(words("rebase pull merge cherry-pick revert am"), (("",), ("--dry-run", "--show-current-patch"))),
    "reset": (("--hard", "--merge", "--keep"), ()), "read-tree": (("--reset", "-u", "-m"), ()),
    "apply": (("--reverse", "-R"), ("--check", "--stat", "--numstat", "--summary", "--cached")),
    "rm": (("",), ("--cached", "--dry-run", "-n")), "clean": (("",), ("--dry-run", "-n")),
    "stash": (("",), ("list", "show", "create", "store")),
    "bisect": (("start", "good", "bad", "new", "old", "skip", "reset", "replay", "run", "next"), ()),
}
SENDERS = words("curl wget http xh")
SENDS = ("-f", "-F", "--field", "--raw-field", "--input", "POST", "PUT", "PATCH", "-XP", "-XDELETE", "DELETE", "-d", "--data", "--post-data", "--json")

# -- files
LOCKED_DOWN = words("pyproject.toml uv.lock")
CLIENT_FILES = words("settings.json settings.local.json .claude.json .mcp.json managed-settings.json")
CONFIG_STEMS = ("requirements", "constraints", "package", "package-lock", "CMakeLists", "tsconfig", "setup")
SESSION_KEPT = (".jsonl", ".patch", ".html", "evidence.json", ".stop-holds", ".compaction-seen")
SOURCE_FOLDERS = words("spyre_inference torch_spyre vllm_spyre tests test src")
TEXT_FILES = (".txt", ".log", ".out", ".md", ".json", ".csv", ".tsv", ".html", ".diff", ".patch")
TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108  named to be judged
LAST_ONLY = words("cp install ln rsync scp")  # only the last path is written
COPIES = words("cp install ln mv dd sponge")
INTERPRETERS = words("perl ruby node awk gawk mawk lua php Rscript osascript tclsh deno")
