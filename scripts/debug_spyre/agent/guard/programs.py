"""H1: what uses the card runs under its lock. Tests, Python programs, vLLM, and tasks of make and its like."""

from __future__ import annotations

from debug_spyre.agent.guard import light, tables
from debug_spyre.agent.guard.files import SCRIPT, saved_script
from debug_spyre.agent.guard.finding import EXPERIMENT, LOOKS, NOTHING, Finding, ask, deny, strongest
from debug_spyre.agent.guard.line import Judge
from debug_spyre.agent.guard.own import judge_selection, selection
from debug_spyre.agent.guard.shell import Command
from debug_spyre.agent.guard.shell_words import join, options, unescaped
from debug_spyre.agent.guard.tables import NAME


def judge_pytest(words: list[str], command: Command, judge: Judge) -> Finding:
    """Pytest in a place that is made for Spyre."""
    arguments = words[1:]
    bad = judge_selection(arguments)
    if judge.locked:
        return bad if bad.stops else EXPERIMENT
    if not judge.place.is_spyre_place():
        return NOTHING
    if tables.RUNS_NOTHING & {*arguments}:
        return bad if bad.rule == "H1" else NOTHING
    session, overrides = judge.place.has_open_session(), _environment(command)
    verb = "run" if session or overrides else "triage"
    line = join([NAME, verb, *(_run_name(command) if session else []), *overrides, *selection(arguments)[0]])
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
    stems = [light.name(text).partition(".")[0] for text in texts]
    return next((["--as", stem] for stem in stems if stem in tables.RUN_NAMES), [])


def outside_the_lock(words: list[str], command: Command, why: str) -> Finding:
    """Any other command that uses the card."""
    line = join([NAME, "exec", *_environment(command), "--", *words])
    told = f"{why}, and the card takes one process at a time. Under the lock, with its output kept: {line}"
    return deny("H1", told, card=True)


def is_test(word: str) -> bool:
    """The word names tests: a node id, a test file, the folder of tests."""
    file = light.name(word.partition("::")[0])
    return "::" in word or (file.startswith("test_") and file.endswith(".py")) or word in ("tests", "tests/")


def judge_python(words: list[str], command: Command, judge: Judge) -> Finding:
    """A Python with -m, -c, a script, or a program on stdin."""
    kind, value, rest = python_target(words)
    if kind == "-m":
        return _judge_module(value, rest, words, command, judge)
    if kind == "script" and light.name(value) in tables.TESTERS:
        return judge_pytest([value, *rest], command, judge)
    if kind == "script" and light.name(value) == "setup.py" and {*rest} & {"install", "develop"}:
        return ask("P4", "a person confirms changes of the environment (setup.py)")
    if kind == "looks":
        return LOOKS
    text = value if kind == "-c" else judge.place.read(value) if kind == "script" else judge.fed_to(command)
    found = judge_program(text, value if kind == "script" else "", words, command, judge)
    if kind == "-c" and not judge.locked and _only_filters(value):
        return LOOKS
    if judge.locked:
        return saved_script(value, judge.place, found) if kind == "script" else NOTHING if found.card else found
    if kind == "script" and is_test(value) and not found.stops and judge.place.is_spyre_place():
        return outside_the_lock(words, command, f"{value} is a test")
    return found


def python_target(words: list[str]) -> tuple[str, str, list[str]]:
    """What a Python runs: ("-m", module, rest), ("-c", text, rest), ("script", path, rest), ("stdin", "", []) or ("looks", ...)."""
    for option, value, rest in options(words[1:], ("-m", "-c", "-W", "-X")):
        if option in ("--version", "--help", "-V", "-VV", "-h"):
            return "looks", "", []
        if option in ("-m", "-c"):
            return option, value, rest
    is_script = rest and rest[0] not in ("-", "/dev/stdin", "$(...)")  # $(...): it was <(...)
    return ("script", rest[0], rest[1:]) if is_script else ("stdin", "", [])


def _judge_module(module: str, rest: list[str], words: list[str], command: Command, judge: Judge) -> Finding:
    root = module.partition(".")[0]
    if root in tables.MODULES_OF_PROGRAMS:
        found = judge.words([tables.MODULES_OF_PROGRAMS[root], *rest], command)
        return found if found is LOOKS else judge.vouched(found)
    if root in ("venv", "ensurepip", "virtualenv"):
        return ask("P4", f"a person confirms changes of environments (python -m {root})")
    if root in tables.RUN_MODULES:
        at = next(
            (at for at, w in enumerate(rest) if w == "-m" or w.endswith(".py") or light.name(w) in tables.TESTERS), -1
        )
        if at >= 0:
            return judge_python(["python", *rest[at:]], command, judge)
        return judge_program("\n".join(rest), "", words, command, judge)
    if root == "unittest" and (judge.locked or not judge.place.is_spyre_place()):
        return EXPERIMENT if judge.locked else NOTHING
    if root in ("unittest", *tables.SPYRE_MODULES) or module.startswith("torch.distributed"):
        return outside_the_lock(words, command, f"{module} uses the card")
    return LOOKS if module in ("json.tool", "site", "sysconfig", "platform") else NOTHING


def judge_program(text: str | None, path: str, words: list[str], command: Command, judge: Judge) -> Finding:
    """A program's source: does it reach for the card, for a shell, for files that are kept? No path: it stands in the line."""
    if not text or "\0" in text:
        return NOTHING
    what = path or "this program"
    names = [name for name in (*tables.KEPT_NAMES, "torch_spyre.__file__") if name in text]
    if names and any(mark in text for mark in tables.WRITING_CODE):
        told = f"{what} seems to write an environment, a locked file or evidence; a person confirms it"
        return ask("P5", f"{told}. {SCRIPT}")
    if "pip" in text and "import" in text and "main(" in text and "install" in text:
        return ask("P4", f"{what} installs packages; a person confirms it")
    literals = _literals(text)
    runs = any(mark in text for mark in tables.RUNS_CODE)
    inner = strongest([judge.shell(literal) for literal in literals]) if runs else NOTHING
    if inner.stops and not inner.card:
        return inner
    reached = reaches_card(text) or ("runs pytest" if inner.card or ("pytest" in text and "main(" in text) else "")
    if not reached and runs and not path:
        files = [judge.place.read(literal) or "" for literal in literals if literal.endswith(".py")]
        reached = next(filter(None, map(reaches_card, files)), "")
    if not reached:
        return NOTHING
    if path:
        return outside_the_lock(words, command, f"{path} {reached}")
    told = f"{NAME} save NAME.py <<'EOF' ... EOF, then {NAME} exec -- python PATH"
    why = f"{what} {reached}, and the card takes one process at a time. Keep it and run it under the lock: {told}"
    return deny("H1", why, card=True)


def _only_filters(text: str) -> bool:
    """A program that reads its stdin and prints: it imports only what can do nothing else."""
    if any(mark in text for mark in tables.UNPLAIN_CODE):
        return False
    lines = [line.strip() for line in text.replace("\n", ";").split(";") if "import" in line]
    return all(
        line.startswith("import ") and set(line[7:].replace(",", " ").split()) <= tables.PLAIN_MODULES for line in lines
    )


def _literals(text: str) -> list[str]:
    """The short strings of a program that may be commands, alone and where they stand in one list."""
    found: list[str] = []
    for line in text.splitlines():
        row: list[str] = []
        while True:
            quote = next((char for char in line if char in "'\"`"), "")
            if not quote:
                break
            between, _, line = line.partition(quote)
            literal, _, line = line.replace(f"\\{quote}", "\0").partition(quote)
            literal, line = (part.replace("\0", f"\\{quote}") for part in (literal, line))
            row = [literal] if between.strip(", \t") else [*row, literal]
            found += [unescaped(literal), unescaped(" ".join(row))]
    return [literal for literal in dict.fromkeys(found) if 2 < len(literal) < 300][:200]


def reaches_card(text: str) -> str:
    """In words why this source uses the card, empty where nothing says so."""
    for line in text.splitlines() if "\n" in text else text.split(";"):
        bare = line.strip().partition("#")[0]
        is_import = bare.startswith(("import ", "from ")) or "; import" in bare
        if is_import or "__import__" in bare or "import_module" in bare:
            for mark in ",.'\"();":
                bare = bare.replace(mark, " ")
            for module in tables.SPYRE_MODULES:
                if module in bare.split():
                    return f"imports {module}"
    is_device = any(mark in text for mark in tables.SPYRE_DEVICE) and "torch" in text
    return "uses the spyre device" if is_device else ""


def judge_card_program(words: list[str], command: Command, judge: Judge) -> Finding:  # noqa: ARG001
    """vllm, torchrun and their like: what loads a model, or starts processes that do."""
    name, verbs = light.name(words[0]), tables.CARD_PROGRAMS[light.name(words[0])]
    verb = next((word for word in words[1:2] if word in verbs), "")
    if verbs and not verb:
        return NOTHING
    return outside_the_lock(
        words, command, f"{name} {verb} uses the card" if verb else f"{name} starts processes that use the card"
    )


def judge_task(words: list[str], command: Command, judge: Judge) -> Finding:
    """A task of make, npm, tox and their like, by the text that says what it does."""
    name, rest = light.name(words[0]), words[1:]
    if set(rest) & tables.TASK_LOOKS:
        return NOTHING
    folder = next((rest[at + 1] for at, word in enumerate(rest[:-1]) if word in ("-C", "--directory", "--prefix")), ".")
    files = [rest[at + 1] for at, word in enumerate(rest[:-1]) if word in ("-f", "--file", "--justfile", "-c")]
    tasks = [w for w in rest if not w.startswith("-") and "=" not in w and w not in (folder, *files)]
    named = [task.rpartition(":")[2] for task in tasks if task not in tables.TASK_VERBS]
    named = named or (["test"] if tasks and name in ("npm", "pnpm", "yarn", "bun") else [])
    for path in files or tables.PASSING[name]:
        text = judge.place.read(light.join(folder, path)) if path != "-" else judge.fed_to(command)
        if path == "package.json":
            text = (text or "").replace("{", "{\n").replace(', "', ',\n"').replace("}", "\n}")
        is_whole = name in tables.WHOLE_FILE
        lines = _lines_with_commands(name, path, text or "", named) if is_whole else task_lines(text or "", named)
        lines += ["pytest"] if (name, *tasks[:1]) == ("hatch", "test") else []
        found = strongest([judge.shell(line) for line in lines])
        if found.stops:
            told = f"{join([name, *rest])} would run this: {found.reason}"
            return Finding(found.verdict, found.rule, told, card=found.card)
        if reaches_card("\n".join(lines)):
            return outside_the_lock([name, *rest], command, f"{path} uses the card")
    return NOTHING


def task_lines(text: str, tasks: list[str]) -> list[str]:
    """What these tasks run, and the tasks that they need: `task: ...` or `"task": "..."` and the deeper lines below it.

    One reading for Makefiles, justfiles, package.json, TOML and YAML. Without a task the first one of the file.
    """
    lines = text.replace("\\\n", " ").splitlines()
    heads = [(number, *_head(line)) for number, line in enumerate(lines)]
    todo = list(tasks) or [next((name for _, name, _ in heads if name), "")]
    seen, found = set[str](), list[str]()
    while todo:
        task = todo.pop(0)
        for number, name, rest in heads if task not in seen else ():
            if name not in (task, f"pre{task}", f"post{task}"):
                continue
            todo += [word for word in rest.split() if word.isidentifier()]
            found.append(rest)
            depth = len(lines[number]) - len(lines[number].lstrip())
            for line in lines[number + 1 :]:
                if line.strip() and len(line) - len(line.lstrip()) <= depth:
                    break
                found.append(line.strip().lstrip("@-+"))
        seen.add(task)
    for line in lines:  # `NAME = value` of a Makefile or justfile
        key, equals, value = line.partition("=")
        key, value = key.strip(" :?+"), value.strip().strip("'\"")
        for mark in (f"$({key})", f"${{{key}}}", f"{{{{{key}}}}}") if equals and key.isidentifier() else ():
            found = [line.replace(mark, value) for line in found]
    return [line.replace("$$", "$") for line in found]


def _head(line: str) -> tuple[str, str]:
    """(the task that this line begins, what follows on the line); no task: two empty texts."""
    bare = line.strip().rstrip(",")
    at = min((bare.find(mark) for mark in (":", " =") if mark in bare), default=-1)
    name = bare[: max(at, 0)].strip("\"'@ ").partition(" ")[0]
    if name.replace("-", "").replace("_", "").isalnum():
        return name, bare[at + 1 :].lstrip(":=;@ ").strip("[]\"'")
    return "", ""


def _lines_with_commands(name: str, path: str, text: str, tasks: list[str]) -> list[str]:
    """Of runners that hide what they run: every line with a command in it, of the sections that count."""
    lines, shared = [], path in ("pyproject.toml", "setup.cfg")
    own = [f"[testenv:{task}]" for task in tasks if name == "tox" and f"[testenv:{task}]" in text]
    counts = not shared and not own
    for line in text.splitlines():
        if line.startswith("["):
            counts = line.strip() in own if own else name in line or not shared
        for mark in "\"'[](),=-":
            line = line.replace(mark, " " if mark != "-" or line.lstrip().startswith("- ") else mark)
        words = line.split()
        at = next((n for n, word in enumerate(words) if word in tables.IN_FILES), None)
        if counts and at is not None and words[0] not in ("deps", "#"):
            lines.append(" ".join(words[at:]))
    return lines
