"""H1: what uses the card runs under its lock. Tests, Python programs, vLLM, and tasks of make and its like."""

from __future__ import annotations

from debug_spyre.agent.guard import light, tables
from debug_spyre.agent.guard.files import SCRIPT, is_test, saved_script
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
    overrides = _environment(command)
    verb = "run" if overrides or judge.place.has_open_session() else "triage"
    line = join([NAME, verb, *overrides, *selection(arguments)[0]])
    if bad.stops:
        return deny(bad.rule, f"{bad.reason}. And pytest uses the card, so it runs under the lock: {line}")
    return outside_the_lock(words, command, "pytest uses the card", line)


def _environment(command: Command) -> list[str]:
    """The command's environment overrides as our flags."""
    pairs = [f"{name}={value}" for name, value in command.assigns if name.isupper() or "_" in name]
    return [word for pair in pairs for word in ("--env", pair)]


def outside_the_lock(words: list[str], command: Command, why: str, line: str = "") -> Finding:
    """A command that uses the card, and the line that stands in its place."""
    line = line or join([NAME, "exec", *_environment(command), "--", *words])
    told = f"{why}, and the card takes one process at a time. Under the lock, with its output kept: {line}"
    return deny("H1", told, card=True)


def judge_python(words: list[str], command: Command, judge: Judge) -> Finding:
    """A Python with -m, -c, a script, or a program on stdin."""
    for option, value, rest in options(words[1:], frozenset(("-m", "-c", "-W", "-X"))):
        if option in ("--version", "--help", "-V", "-VV", "-h"):
            return LOOKS
        if option == "-m":
            return _judge_module(value, rest, words, command, judge)
        if option == "-c":
            break
    path = rest[0] if option != "-c" and rest and rest[0] not in ("-", "/dev/stdin", "$(...)") else ""  # $(...): <(...)
    if not path:
        found = judge_program(value if option == "-c" else judge.fed_to(command), "", words, command, judge)
        is_filter = option == "-c" and not judge.locked and _only_filters(value)
        return LOOKS if is_filter else NOTHING if judge.locked and found.card else found
    if light.name(path) in tables.TESTERS:
        return judge_pytest(rest, command, judge)
    if light.name(path) == "setup.py" and {*rest} & {"install", "develop"}:
        return ask("P4", "a person confirms changes of the environment (setup.py)")
    found = judge_program(judge.place.read(path), path, words, command, judge)
    if judge.locked:
        return saved_script(path, judge.place, found)
    if is_test(path) and not found.stops and judge.place.is_spyre_place():
        return outside_the_lock(words, command, f"{path} is a test")
    return found


def _judge_module(module: str, rest: list[str], words: list[str], command: Command, judge: Judge) -> Finding:
    root = module.partition(".")[0]
    if root in tables.MODULES_OF_PROGRAMS:
        found = judge.deeper().program([tables.MODULES_OF_PROGRAMS[root], *rest], command)
        return found if found is LOOKS or judge.locked else found.doubted()
    if root in ("venv", "ensurepip", "virtualenv"):
        return ask("P4", f"a person confirms changes of environments (python -m {root})")
    if root in tables.RUN_MODULES:
        for at, word in enumerate(rest):
            if word == "-m" or word.endswith(".py") or light.name(word) in tables.TESTERS:
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
    texts = [text, *(judge.place.read(word) or "" for word in literals if runs and not path and word.endswith(".py"))]
    is_test_run = inner.card or ("pytest" in text and "main(" in text)
    reached = next(filter(None, map(reaches_card, texts)), "runs pytest" if is_test_run else "")
    if not reached:
        return NOTHING
    if path:
        return outside_the_lock(words, command, f"{path} {reached}")
    told = f"{NAME} save NAME.py <<'EOF' ... EOF, then {NAME} exec -- python PATH"
    why = f"{what} {reached}, and the card takes one process at a time. Keep it and run it under the lock: {told}"
    return deny("H1", why, card=True)


def _only_filters(text: str) -> bool:
    """A program that reads its stdin and prints: it imports only what can do nothing else."""
    lines = [line.strip() for line in text.replace("\n", ";").split(";") if "import" in line]
    modules = {word for line in lines for word in line.removeprefix("import ").replace(",", " ").split()}
    return modules <= tables.PLAIN_MODULES and not any(mark in text for mark in tables.UNPLAIN_CODE)


def _literals(text: str) -> list[str]:
    """The short strings of a program that may be commands, alone and where they stand in one list."""
    found: list[str] = []
    for line in text.splitlines():
        row: list[str] = []
        while quote := next((char for char in line if char in "'\"`"), ""):
            between, _, line = line.partition(quote)
            literal, _, line = line.replace(f"\\{quote}", "\0").partition(quote)
            literal, line = (part.replace("\0", f"\\{quote}") for part in (literal, line))
            row = [literal] if between.strip(", \t") else [*row, literal]
            found += [unescaped(literal), unescaped(" ".join(row))]
    return [literal for literal in dict.fromkeys(found) if 2 < len(literal) < 300][:200]


def reaches_card(text: str) -> str:
    """In words why this source uses the card, empty where nothing says so."""
    for line in text.replace(";", "\n").splitlines():
        bare = line.partition("#")[0]
        for mark in ",.'\"()":
            bare = bare.replace(mark, " ")
        words = bare.split()
        module = next((module for module in tables.SPYRE_MODULES if module in words), "")
        if module and (words[0] in ("import", "from") or {"__import__", "import_module"} & {*words}):
            return f"imports {module}"
    is_device = any(mark in text for mark in tables.SPYRE_DEVICE) and "torch" in text
    return "uses the spyre device" if is_device else ""


def judge_card_program(words: list[str], command: Command, judge: Judge) -> Finding:  # noqa: ARG001
    """vllm, torchrun and their like: what loads a model, or starts processes that do."""
    verbs = tables.CARD_PROGRAMS[light.name(words[0])]
    is_card = not verbs or verbs & {*words[1:2]}
    return outside_the_lock(words, command, f"{join(words[:2])} uses the card") if is_card else NOTHING


def judge_task(words: list[str], command: Command, judge: Judge) -> Finding:
    """A task of make, npm, tox and their like, by the text that says what it does."""
    name, rest = light.name(words[0]), words[1:]
    if set(rest) & tables.TASK_LOOKS:
        return NOTHING
    pairs = list(zip(rest, rest[1:]))  # noqa: B905, RUF007  Python 3.9
    folder = next((value for option, value in pairs if option in ("-C", "--directory", "--prefix")), ".")
    files = [value for option, value in pairs if option in ("-f", "--file", "--justfile", "-c")]
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
    todo, found = [*tasks] or [next((name for _, name, _ in heads if name), "")], list[str]()
    for task in todo:  # it grows by the tasks that these need
        for number, name, rest in heads:
            if name in (task, f"pre{task}", f"post{task}"):
                todo += [word for word in rest.split() if word.isidentifier() and word not in todo]
                found.append(rest)
                depth = len(lines[number]) - len(lines[number].lstrip())
                for line in lines[number + 1 :]:
                    if line.strip() and len(line) - len(line.lstrip()) <= depth:
                        break
                    found.append(line.strip().lstrip("@-+"))
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
        for mark in "\"'[](),=":
            line = line.replace(mark, " ")
        words = line.split()
        at = next((n for n, word in enumerate(words) if word in tables.IN_FILES), None)
        if counts and at is not None and words[0] not in ("deps", "#"):
            lines.append(" ".join(words[at:]))
    return lines
