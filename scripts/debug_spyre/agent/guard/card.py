"""H1: what uses the card runs under its lock. Tests, Python programs, vLLM, and tasks of make and its like."""

from __future__ import annotations

from debug_spyre.agent.guard import paths, tables
from debug_spyre.agent.guard.fast_json import parse_json
from debug_spyre.agent.guard.files import SCRIPT
from debug_spyre.agent.guard.finding import LOOKS, NOTHING, Finding, Judge, ask, deny, strongest
from debug_spyre.agent.guard.person import judge_pip, judge_uv
from debug_spyre.agent.guard.selection import RUNS_NOTHING, clean, judge_parallel, judge_selection
from debug_spyre.agent.guard.shell import Command
from debug_spyre.agent.guard.shell_words import join
from debug_spyre.agent.guard.tables import NAME

KEPT_NAMES = ("site-packages", ".venv", "pyproject.toml", "uv.lock", "journal.jsonl", "evidence.json", "settings.json", "guard.py", "info/exclude", ".git/")  # fmt: skip


def judge_pytest(arguments: list[str], command: Command, judge: Judge) -> Finding:
    """Pytest in a place that is made for Spyre."""
    if not judge.place.is_spyre_place():
        return NOTHING
    if any(word in RUNS_NOTHING for word in arguments):
        return judge_parallel(arguments)
    bad = judge_selection(arguments)
    session, overrides = judge.place.has_open_session(), _environment(command)
    verb = "run" if session or overrides else "triage"
    line = join([NAME, verb, *(_run_name(command) if session else []), *overrides, *clean(arguments)])
    if bad.stops:
        return deny(bad.rule, f"{bad.reason}. And pytest uses the card, so it runs under the lock: {line}")
    told = f"pytest uses the card, which takes one process at a time. Under the lock, with its output kept: {line}"
    return deny("H1", told, card=True)


def _environment(command: Command) -> list[str]:
    """The command's environment overrides as our flags."""
    pairs = [f"{name}={value}" for name, value in command.assigns if name.isupper() or "_" in name]
    return [word for pair in pairs for word in ("--env", pair)]


def _run_name(command: Command) -> list[str]:
    """--as NAME where the output was to go to a file of that name."""
    texts = [*(target for _, target in command.redirects), *command.words]
    stems = [paths.name(text).partition(".")[0] for text in texts]
    return next((["--as", stem] for stem in stems if stem in tables.RUN_NAMES), [])


def outside_the_lock(words: list[str], command: Command, why: str) -> Finding:
    """Any other command that uses the card."""
    line = join([NAME, "exec", *_environment(command), "--", *words])
    told = f"{why}, and the card takes one process at a time. Under the lock, with its output kept: {line}"
    return deny("H1", told, card=True)


def judge_python(words: list[str], command: Command, judge: Judge) -> Finding:
    """A Python with -m, -c, a script, or a program on stdin."""
    kind, value, rest = python_target(words)
    if kind == "-m":
        return _judge_module(value, rest, words, command, judge)
    if kind == "script" and paths.name(value) in tables.TESTERS:
        return judge_pytest(rest, command, judge)
    if kind == "script" and paths.name(value) == "setup.py" and {*rest} & {"install", "develop"}:
        return ask("P4", "a person confirms changes of the environment (setup.py)")
    if kind == "looks":
        return LOOKS
    text = value if kind == "-c" else judge.place.read(value) if kind == "script" else judge.fed_to(command)
    return judge_program(text, value if kind == "script" else "this program", words, command, judge)


def python_target(words: list[str]) -> tuple[str, str, list[str]]:
    """What a Python runs: ("-m", module, rest), ("-c", text, rest), ("script", path, rest), ("stdin", "", []) or ("looks", ...)."""
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word, following = words[at], words[at + 1 : at + 2]
        if word in ("--version", "--help", "-V", "-VV", "-h"):
            return "looks", "", []
        for number, letter in enumerate(word[1:], start=1) if not word.startswith("--") else ():
            glued = word[number + 1 :]
            if letter in "mc":
                rest = words[at + 1 :] if glued else words[at + 2 :]
                return f"-{letter}", glued or "".join(following), rest
            if letter in "WX":
                at += 0 if glued else 1
                break
        at += 1
    if at < len(words) and words[at] not in ("-", "/dev/stdin"):
        return "script", words[at], words[at + 1 :]
    return "stdin", "", []


def _judge_module(module: str, rest: list[str], words: list[str], command: Command, judge: Judge) -> Finding:
    root = module.partition(".")[0]
    if module in tables.TESTERS or root == "pytest":
        return judge_pytest(rest, command, judge)
    if root in ("pip", "uv"):
        return judge_pip(rest) if root == "pip" else judge_uv(["uv", *rest], command, judge)
    if root in ("tox", "nox", "invoke", "hatch"):
        return judge_task(root, rest, command, judge)
    if root in ("venv", "ensurepip", "virtualenv"):
        return ask("P4", f"a person confirms changes of environments (python -m {root})")
    if root in tables.RUN_MODULES:
        if "-m" in rest:
            at = rest.index("-m")
            return judge_python(["python", "-m", *rest[at + 1 :]], command, judge)
        scripts = [at for at, word in enumerate(rest) if word.endswith(".py") or paths.name(word) in tables.TESTERS]
        if scripts:
            return judge_python(["python", *rest[scripts[0] :]], command, judge)
        return judge_program("\n".join(rest), "this program", words, command, judge)
    if root in tables.SPYRE_MODULES or module.startswith("torch.distributed"):
        return outside_the_lock(words, command, f"{module} uses the card")
    return LOOKS if module in ("json.tool", "site", "sysconfig", "platform") else NOTHING


def judge_program(text: str | None, what: str, words: list[str], command: Command, judge: Judge) -> Finding:
    """A program's source: does it reach for the card, for a shell, for files that are kept?"""
    if not text or "\0" in text:
        return NOTHING
    if any(name in text for name in KEPT_NAMES) and any(mark in text for mark in tables.WRITING_CODE):
        return ask(
            "P5",
            f"{what} seems to write an environment, a locked file or evidence; a person confirms it. To instrument torch-spyre write a standalone script instead: {SCRIPT}",
        )
    runs = any(mark in text for mark in tables.RUNS_CODE)
    inner = strongest([judge.shell(literal) for literal in _literals(text)]) if runs else NOTHING
    if inner.stops and not inner.card:
        return inner
    reached = reaches_card(text) or ("runs pytest" if inner.card or ("pytest" in text and ".main(" in text) else None)
    if reached is None:
        return NOTHING
    if what == "this program":
        told = f"{NAME} save NAME.py <<'EOF' ... EOF, then {NAME} exec -- python PATH"
        return deny(
            "H1",
            f"{what} {reached}, and the card takes one process at a time. Keep it and run it under the lock: {told}",
            card=True,
        )
    return outside_the_lock(words, command, f"{what} {reached}")


def _literals(text: str) -> list[str]:
    """The short strings of a program that may be commands, alone and where they stand in one list."""
    found: list[str] = []
    row: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char not in "'\"`":
            if row and char not in ", \t":
                found += [" ".join(row)] if len(row) > 1 else []
                row = []
            at += 1
            continue
        end = at + 1
        while end < len(text) and text[end] != char and text[end] != "\n":
            end += 2 if text[end] == "\\" else 1
        literal = text[at + 1 : end]
        row.append(literal)
        found.append(literal)
        at = end + 1
    return [literal for literal in [*found, " ".join(row)] if 2 < len(literal) < 300][:200]


def reaches_card(text: str) -> str | None:
    """In words why this source uses the card, None where nothing says so."""
    for line in text.splitlines() if "\n" in text else text.split(";"):
        bare = line.strip().partition("#")[0]
        if "import" not in bare:
            continue
        starts = (
            bare.startswith(("import ", "from "))
            or "; import" in bare
            or "__import__" in bare
            or "import_module" in bare
        )
        for mark in ",.'\"();":
            bare = bare.replace(mark, " ")
        for module in tables.SPYRE_MODULES if starts else ():
            if module in bare.split():
                return f"imports {module}"
    if any(mark in text for mark in tables.SPYRE_DEVICE) and "torch" in text:
        return "uses the spyre device"
    return None


def judge_vllm(words: list[str], command: Command) -> Finding:
    """The commands serve, bench and the rest that load a model."""
    if len(words) > 1 and words[1] in tables.VLLM_VERBS:
        return outside_the_lock(words, command, f"vllm {words[1]} uses the card")
    return NOTHING


def judge_task(name: str, rest: list[str], command: Command, judge: Judge) -> Finding:
    """A task of make, npm, tox and their like, by the text that says what it does."""
    if set(rest) & tables.TASK_LOOKS:
        return NOTHING
    folder = next((rest[at + 1] for at, word in enumerate(rest[:-1]) if word in ("-C", "--directory", "--prefix")), ".")
    files = [rest[at + 1] for at, word in enumerate(rest[:-1]) if word in ("-f", "--file", "--justfile", "-c")]
    texts = [(path, judge.place.read(paths.join(folder, path))) for path in files or tables.PASSING[name]]
    tasks = [w for at, w in enumerate(rest) if not w.startswith("-") and "=" not in w and w not in (folder, *files)]
    if name == "hatch" and tasks[:1] == ["test"]:
        return _as_task(name, rest, judge_pytest([], command, judge))
    tasks = [task for task in tasks if task not in tables.TASK_VERBS] or (
        ["test"] if tasks and name in ("npm", "pnpm", "yarn") else []
    )
    for path, text in texts:
        lines = _task_lines(name, path, text or "", tasks)
        found = strongest([judge.shell(line) for line in lines])
        if found.stops:
            return _as_task(name, rest, found)
        if text and reaches_card("\n".join(lines)):
            return outside_the_lock([name, *rest], command, f"{path} uses the card")
    return NOTHING


def _as_task(name: str, rest: list[str], found: Finding) -> Finding:
    return Finding(found.verdict, found.rule, f"{join([name, *rest])} would run this: {found.reason}", card=found.card)


def _task_lines(name: str, path: str, text: str, tasks: list[str]) -> list[str]:
    """The lines of shell that these tasks run; of runners that hide them, every line with a command in it."""
    if path == "package.json":
        return _npm_scripts(text, tasks)
    if name in tables.WHOLE_FILE or path.endswith((".toml", ".yml", ".yaml", ".cfg")):
        return _hidden_lines(name, path, text)
    variables, rules, first = _rules(text)
    lines: list[str] = []
    todo, seen = list(tasks) or first, set[str]()
    while todo:
        task = todo.pop(0)
        if task in seen or task not in rules:
            continue
        seen.add(task)
        needs, recipe = rules[task]
        todo += needs
        for raw in recipe:
            line = raw.strip().lstrip("@-+")
            for variable, value in variables.items():
                line = (
                    line.replace(f"$({variable})", value)
                    .replace(f"${{{variable}}}", value)
                    .replace(f"{{{{{variable}}}}}", value)
                )
            lines.append(line.replace("$$", "$"))
    return lines


def _rules(text: str) -> tuple[dict[str, str], dict[str, tuple[list[str], list[str]]], list[str]]:
    """(variables, target -> (what it needs, its recipe), [the first target]) of a Makefile or justfile."""
    variables: dict[str, str] = {}
    rules: dict[str, tuple[list[str], list[str]]] = {}
    recipe: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and line.strip():
            recipe.append(line)
            continue
        head, colon, needs = line.partition(":")
        key, equals, value = line.partition("=")
        if equals and len(key) <= len(head) + 1:
            variables[key.strip(" :?+")] = value.strip().strip("'\"")
        elif colon and not line.startswith(("#", ".")):
            needs, semicolon, inline = needs.partition(";")
            recipe = [inline] if semicolon else []
            for target in head.split()[: 1 if "*" in head or "=" in head else None]:
                rules[target.lstrip("@")] = (needs.split(), recipe)
    return variables, rules, [next(iter(rules))] if rules else []


def _npm_scripts(text: str, tasks: list[str]) -> list[str]:
    try:
        data = parse_json(text)
    except (ValueError, RecursionError):
        return []
    scripts = data.get("scripts") if isinstance(data, dict) else None
    names = [prefix + task for task in tasks for prefix in ("", "pre", "post")]
    return [str(scripts[name]) for name in names if name in scripts] if isinstance(scripts, dict) else []


def _hidden_lines(name: str, path: str, text: str) -> list[str]:
    """Lines of a file that is no list of recipes, those of its own section where the file belongs to others too."""
    lines, mine = [], path not in ("pyproject.toml", "setup.cfg")
    for line in text.splitlines():
        if line.startswith("["):
            mine = path not in ("pyproject.toml", "setup.cfg") or name in line
        if (
            mine
            and any(mark in line for mark in ("pytest", "py.test", "vllm", "torchrun", "git ", "pip "))
            and not line.lstrip().startswith(("#", "deps", "-r"))
        ):
            value = line.strip().partition("=")[2] or line.strip().lstrip("- ")
            for mark in "\"'[](),":
                value = value.replace(mark, " ")
            words = value.split()
            at = next(
                (
                    n
                    for n, word in enumerate(words)
                    if word in (*tables.TESTERS, "python", "git", "vllm", "torchrun", "uv")
                ),
                None,
            )
            lines.append(" ".join(words[at:]) if at is not None else "")
    return lines
