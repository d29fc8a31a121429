"""H1: what uses the card runs under its lock. Tests, Python programs, vLLM, and tasks of make and its like."""

from __future__ import annotations

from debug_spyre.agent.guard import light, tables
from debug_spyre.agent.guard.files import SCRIPT, saved_script
from debug_spyre.agent.guard.finding import EXPERIMENT, LOOKS, NOTHING, Finding, Judge, ask, deny, strongest
from debug_spyre.agent.guard.own import RUNS_NOTHING, clean, judge_selection
from debug_spyre.agent.guard.person import judge_pip, judge_uv
from debug_spyre.agent.guard.shell import Command
from debug_spyre.agent.guard.shell_words import join
from debug_spyre.agent.guard.tables import NAME


def judge_pytest(arguments: list[str], command: Command, judge: Judge) -> Finding:
    """Pytest in a place that is made for Spyre."""
    bad = judge_selection(arguments)
    if judge.locked:
        return bad if bad.stops else EXPERIMENT
    if not judge.place.is_spyre_place():
        return NOTHING
    if any(word in RUNS_NOTHING for word in arguments):
        return judge_selection(arguments, only_parallel=True)
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
        return judge_pytest(rest, command, judge)
    if kind == "script" and light.name(value) == "setup.py" and {*rest} & {"install", "develop"}:
        return ask("P4", "a person confirms changes of the environment (setup.py)")
    if kind == "looks":
        return LOOKS
    if kind == "script" and value == "$(...)":  # <(...)
        kind = "stdin"
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
    if root in tables.TESTERS:
        return judge_pytest(rest, command, judge)
    if root in ("pip", "uv"):
        return judge_pip(rest) if root == "pip" else judge_uv(["uv", *rest], command, judge)
    if root in ("debug_spyre", "tox", "nox", "invoke", "hatch", "easy_install", "IPython"):
        program = {"debug_spyre": NAME, "IPython": "ipython"}.get(root, root)
        return judge.vouched(judge.words([program, *rest], command))
    if root in ("venv", "ensurepip", "virtualenv"):
        return ask("P4", f"a person confirms changes of environments (python -m {root})")
    if root in tables.RUN_MODULES:
        if "-m" in rest:
            return judge_python(["python", "-m", *rest[rest.index("-m") + 1 :]], command, judge)
        scripts = [at for at, word in enumerate(rest) if word.endswith(".py") or light.name(word) in tables.TESTERS]
        if scripts:
            return judge_python(["python", *rest[scripts[0] :]], command, judge)
        return judge_program("\n".join(rest), "", words, command, judge)
    if root == "unittest":
        if judge.locked:
            return EXPERIMENT
        return outside_the_lock(words, command, "a test uses the card") if judge.place.is_spyre_place() else NOTHING
    if root in tables.SPYRE_MODULES or module.startswith("torch.distributed"):
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
    reached = reaches_card(text) or ("runs pytest" if inner.card or ("pytest" in text and "main(" in text) else None)
    if reached is None and runs and not path:
        files = [judge.place.read(literal) or "" for literal in literals if literal.endswith(".py")]
        reached = next((why for why in map(reaches_card, files) if why), None)
    if reached is None:
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
        row.append(text[at + 1 : end])
        found.append(row[-1])
        at = end + 1
    return [literal for literal in [*found, " ".join(row)] if 2 < len(literal) < 300][:200]


def reaches_card(text: str) -> str | None:
    """In words why this source uses the card, None where nothing says so."""
    for line in text.splitlines() if "\n" in text else text.split(";"):
        bare = line.strip().partition("#")[0]
        is_import = bare.startswith(("import ", "from ")) or "; import" in bare
        if not (is_import or "__import__" in bare or "import_module" in bare):
            continue
        for mark in ",.'\"();":
            bare = bare.replace(mark, " ")
        for module in tables.SPYRE_MODULES:
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
    tasks = [w for w in rest if not w.startswith("-") and "=" not in w and w not in (folder, *files)]
    if name == "hatch" and tasks[:1] == ["test"]:
        return _as_task(name, rest, judge_pytest([], command, judge))
    named = [task.rpartition(":")[2] for task in tasks if task not in tables.TASK_VERBS]
    named = named or (["test"] if tasks and name in ("npm", "pnpm", "yarn", "bun") else [])
    for path in files or tables.PASSING[name]:
        text = judge.place.read(light.join(folder, path)) if path != "-" else judge.fed_to(command)
        if path == "package.json":
            text = (text or "").replace("{", "{\n").replace(', "', ',\n"').replace("}", "\n}")
        is_whole = name in tables.WHOLE_FILE
        lines = _lines_with_commands(name, path, text or "", named) if is_whole else task_lines(text or "", named)
        found = strongest([judge.shell(line) for line in lines])
        if found.stops:
            return _as_task(name, rest, found)
        if reaches_card("\n".join(lines)):
            return outside_the_lock([name, *rest], command, f"{path} uses the card")
    return NOTHING


def _as_task(name: str, rest: list[str], found: Finding) -> Finding:
    return Finding(found.verdict, found.rule, f"{join([name, *rest])} would run this: {found.reason}", card=found.card)


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
