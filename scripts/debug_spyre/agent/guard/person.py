"""Decisions of a person: commits, pushes, pull requests, installs; and git's ways to lose edits."""

from __future__ import annotations

from debug_spyre.agent.guard import light, tables
from debug_spyre.agent.guard.files import judge_writer, lost_edits
from debug_spyre.agent.guard.finding import LOOKS, NOTHING, Finding, Judge, ask, deny, never_allowed, strongest
from debug_spyre.agent.guard.shell import Command
from debug_spyre.agent.guard.shell_words import join


def judge_git(rest: list[str], command: Command, judge: Judge) -> Finding:
    """P3 and P6."""
    settings, where, words = _git_words(rest, command)
    if not words:
        return LOOKS if rest in ([], ["--version"], ["--help"]) else NOTHING
    verb, after = words[0], words[1:]
    for setting in settings:  # a pager, an editor, an alias: text of shell
        key, _, value = setting.partition("=")
        text = value[1:] if value.startswith("!") else f"git {value} {join(after)}" if key == f"alias.{verb}" else value
        if judge.shell(text).stops:
            return judge.shell(text)
    if any(word in ("-h", "--help") for word in after[:2]):
        return LOOKS
    if verb in ("commit", "push", "send-pack") and "--dry-run" not in after:
        return ask("P3", f"a person confirms git {verb}")
    moved = _judge_moves(verb, after, where, judge)
    written = judge_writer("git", after, judge.place) if verb in ("mv", "rm") else NOTHING
    if moved.stops or written.stops:
        return strongest([moved, written])
    if verb in ("rebase", "bisect", "submodule") and {"-x", "--exec", "run", "foreach"} & {*after}:
        at = next(n for n, word in enumerate(after) if word in ("-x", "--exec", "run", "foreach"))
        return never_allowed(
            judge.shell("".join(after[at + 1 : at + 2]) if verb == "rebase" else join(after[at + 1 :]))
        )
    lists = tables.GIT_LISTS.get(verb)
    if verb in tables.GIT_LOOKS or (lists is not None and (set(after[:2]) & lists or (not after and verb != "stash"))):
        writes = any(word.startswith(tables.GIT_WRITES) for word in after) or settings
        return NOTHING if writes else LOOKS
    return NOTHING


def _git_words(rest: list[str], command: Command) -> tuple[list[str], str, list[str]]:
    """(settings given by -c, the folder that git works on, its words from the subcommand on)."""
    place, tree, settings, at = ".", dict(command.assigns).get("GIT_WORK_TREE", ""), [], 0
    while at < len(rest) and rest[at].startswith("-"):
        option, equals, value = rest[at].partition("=")
        if not equals and option in tables.GIT_VALUED and at + 1 < len(rest):
            at += 1
            value = rest[at]
        if option == "-C":
            place = light.join(place, light.expand(value))
        elif option == "--work-tree":
            tree = value
        elif option == "-c":
            settings.append(value)
        at += 1
    return settings, light.join(place, tree) if tree else place, rest[at:]


def judge_forge(name: str, rest: list[str], judge: Judge) -> Finding:
    """P3: the commands of the forges, and what sends something to their pull requests."""
    words = _git_words(rest, Command())[2]
    sends = any(word.startswith(tables.SENDS) for word in rest) and any("/pulls" in w or "/merge" in w for w in rest)
    if sends and (words[:1] == ["api"] or name not in ("gh", "glab", "hub")):
        return ask("P3", "a person confirms creating or merging a pull request")
    if not words or "--help" in words:
        return LOOKS if words else NOTHING
    if name == "hub":
        is_persons = words[0] in ("pull-request", "push", "commit", "merge")
        return (
            ask("P3", f"a person confirms hub {words[0]}")
            if is_persons
            else _judge_moves(words[0], words[1:], ".", judge)
        )
    if name in ("gh", "glab") and words[0] in ("pr", "mr") and words[1:]:
        if words[1] in tables.FORGE_WRITES:
            return ask("P3", f"a person confirms {name} {' '.join(words[:2])}")
        if words[1] == "checkout" and judge.place.has_open_session():
            return lost_edits(f"{name} pr checkout")
    return NOTHING


def _judge_moves(verb: str, words: list[str], where: str, judge: Judge) -> Finding:
    """P6: while a session is open, git neither takes edits out of its tree nor puts other files under it."""
    takes = _takes_edits(verb, words)
    unclear = verb in tables.ASKED_GIT or (
        verb == "config" and not set(words) & tables.GIT_LISTS["config"] and len(words) > 1
    )
    if not takes and not unclear and verb in tables.GIT_LOOKS | tables.GIT_FREE | tables.MOVING:
        return NOTHING
    if not judge.place.is_here(where) or not judge.place.has_open_session():
        return NOTHING
    half = next((word for word in words if word in tables.HALF_WAY), "")
    if verb in tables.MOVING and half:
        return ask("P6", f"a person confirms git {verb} {half}: it changes files under an open session")
    if takes:
        return lost_edits("git stash" if verb == "stash" else f"git {verb}")
    return ask(
        "P6", f"a person confirms git {verb} while a session is open: it can hide edits, or the guard does not know it"
    )


def _takes_edits(verb: str, words: list[str]) -> bool:
    """Whether this subcommand of git changes files that may hold edits, or puts edits away."""
    if verb in ("checkout", "switch"):
        return not _is_new_branch(verb, words)
    takes, spares = tables.TAKES.get(verb, ((), frozenset()))
    if verb in ("stash", "bisect"):
        return words[:1] != [] and words[0] not in spares if verb == "bisect" else not set(words[:1]) & spares
    if set(words) & spares or (verb == "clean" and any(_letters(w) and "n" in w.partition("e")[0] for w in words)):
        return False
    if verb == "restore" and not any(word in ("-S", "--staged") for word in words):
        return True
    if "" in takes:
        return True
    for word in words:
        if any(word == option or (len(word) > 3 and option.startswith(word)) for option in takes):
            return True
        if verb == "apply" and _letters(word) and "R" in word:
            return True
    return verb in tables.ALWAYS_TAKES


def _letters(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--")


def _is_new_branch(verb: str, words: list[str]) -> bool:
    """No commit is asked for: nothing at all, or a new branch where HEAD is. Edits stay as they are."""
    making = ("-b", "-B") if verb == "checkout" else ("-c", "-C", "--create", "--force-create")
    left = [word for word in words if word not in ("-q", "--quiet", "--no-track")]
    return left[2:] in ([], ["HEAD"], ["@"]) if len(left) > 1 and left[0] in making else not left


def judge_pip(rest: list[str]) -> Finding:
    """P4: pip."""
    verb = next((w for w in rest if not w.startswith("-")), "")
    if verb in ("install", "uninstall", "sync") and "--dry-run" not in rest and "--help" not in rest:
        return ask("P4", f"a person confirms changes of the environment (pip {verb})")
    return LOOKS if verb in ("list", "show", "freeze", "check") else NOTHING


def judge_installer(name: str, rest: list[str]) -> Finding:
    """P4: the installers of systems and of other languages."""
    verb = next((w for w in rest if not w.startswith("-")), "")
    is_list = (name, verb) in (("apt", "update"), ("apt-get", "update")) or "--dry-run" in rest
    if (verb in tables.INSTALLS and not is_list) or rest[:2] == ["env", "update"]:
        return ask("P4", f"a person confirms installing packages ({name} {verb})")
    if verb == "version" and len(rest) > 1 and not rest[-1].startswith("-"):
        return ask("P4", f"a person confirms changes of pyproject.toml ({name} version)")
    return NOTHING


def judge_uv(words: list[str], command: Command, judge: Judge) -> Finding:
    """L1 and P4: uv."""
    rest, at = words[1:], 0
    while at < len(rest) and rest[at].startswith("-"):
        at += 2 if rest[at] in tables.UV_VALUED else 1
    verb, after = (rest[at], rest[at + 1 :]) if at < len(rest) else ("", [])
    if verb == "run":
        return _judge_uv_run(words[: at + 2], after, command, judge)
    if verb == "pip":
        return judge_pip(after)
    if verb == "tool" and after[:1] == ["run"]:
        return judge.words(["uvx", *after[1:]], command)
    if "--dry-run" in after or "--check" in after or "--help" in after:
        return LOOKS
    local = judge.place.local_build() if verb == "sync" else None
    if local:
        told = "uv sync would replace it with the pinned one. Without a sync: uv run --no-sync COMMAND"
        return deny("L1", f"{local}; {told}")
    if verb in ("add", "remove", "lock", "sync", "venv", "init", "self") or (
        verb in ("tool", "python") and {*after} & tables.INSTALLS
    ):
        return ask("P4", f"a person confirms changes of the environment, pyproject.toml and uv.lock (uv {verb})")
    return judge_installer("uv", rest[at:]) if verb == "version" else NOTHING


def _judge_uv_run(head: list[str], after: list[str], command: Command, judge: Judge) -> Finding:
    """What `uv run` runs comes first; then whether it would undo a local build."""
    at, module = 0, False
    while at < len(after) and after[at].startswith("-") and after[at] not in ("-", "--"):
        module = after[at] in ("-m", "--module")
        at += 2 if after[at] in tables.UV_VALUED else 1
        if module:
            break
    inner = after[at + 1 :] if after[at : at + 1] == ["--"] else after[at:]
    if module or (inner and inner[0].endswith(".py")):
        inner = ["python", *(["-m"] if module else []), *inner]
    options = head + after[:at]
    found = judge.words(inner, command) if inner else NOTHING
    if found.stops:
        return found
    is_spared = {"--no-sync", "--no-project", "--isolated"} & {*options} or ("UV_NO_SYNC", "1") in command.assigns
    local = None if is_spared else judge.place.local_build()
    if local:
        told = (
            f"a plain uv run replaces it with the pinned one without a word. Use: {join([*head, '--no-sync', *after])}"
        )
        return deny("L1", f"{local}; {told}")
    if any(w.startswith(("--with", "--reinstall", "--upgrade")) or w in ("-w", "-U") for w in options):
        return ask("P4", "a person confirms installing packages (uv run --with)")
    return judge.vouched(found)
