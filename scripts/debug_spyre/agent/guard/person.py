"""git, the forges and uv: what puts the work under an open session at risk, or changes the environment."""

from __future__ import annotations

from debug_spyre.agent.guard import light, tables
from debug_spyre.agent.guard.files import judge_writer, lost_edits
from debug_spyre.agent.guard.finding import LOOKS, NOTHING, Finding, ask, deny, strongest
from debug_spyre.agent.guard.line import Judge
from debug_spyre.agent.guard.place import checkout_of
from debug_spyre.agent.guard.shell import Command
from debug_spyre.agent.guard.shell_words import join, options


def judge_git(words: list[str], command: Command, judge: Judge) -> Finding:
    """P6, and the text of shell that git runs."""
    *given, (_, _, rest) = options(words[1:], tables.GIT_VALUED)
    if not rest:
        return LOOKS if words[1:] in ([], ["--version"], ["--help"]) else NOTHING
    verb, after = rest[0], rest[1:]
    folder, tree = ".", dict(command.assigns).get("GIT_WORK_TREE", "")
    findings, settings = list[Finding](), [value for option, value, _ in given if option == "-c"]
    for setting in settings:  # a pager, an editor, an alias
        key, _, value = setting.partition("=")
        text = value[1:] if value.startswith("!") else f"git {value} {join(after)}" if key == f"alias.{verb}" else value
        findings.append(judge.shell(text).doubted())
    for option, value, _ in given:
        folder = light.join(folder, value) if option == "-C" else folder
        tree = value if option == "--work-tree" else tree
    is_help = {"-h", "--help"} & {*after[:2]}
    if not is_help:
        findings.append(_judge_moves(verb, after, light.join(folder, tree), judge))
        findings += [judge_writer("git", after, judge.place)] if verb in ("mv", "rm") else []
    for at, word in enumerate(after):
        if verb in ("rebase", "bisect", "submodule") and word in ("-x", "--exec", "run", "foreach"):
            text = "".join(after[at + 1 : at + 2]) if verb == "rebase" else join(after[at + 1 :])
            findings.append(judge.shell(text).doubted())
    if strongest(findings).stops or is_help:
        return strongest(findings)
    lists = tables.GIT_LISTS.get(verb, frozenset())
    is_look = verb in tables.GIT_LOOKS or {*after[:2]} & lists or (lists and not after and verb != "stash")
    writes = settings or any(word.startswith(tables.GIT_WRITES) for word in after)
    return LOOKS if is_look and not writes else NOTHING


def judge_forge(words: list[str], command: Command, judge: Judge) -> Finding:
    """P3: the commands of the forges, and what sends something to their pull requests."""
    name, rest = light.name(words[0]), words[1:]
    after = options(rest, tables.GIT_VALUED)[-1][2]
    sends = any(word.startswith(tables.SENDS) for word in rest) and any("/pulls" in w or "/merge" in w for w in rest)
    if sends and (after[:1] == ["api"] or name in tables.SENDERS):
        return ask("P3", "a person confirms creating or merging a pull request")
    if not after or "--help" in after:
        return LOOKS if after else NOTHING
    if after[:2] in (["pr", "checkout"], ["mr", "checkout"]) and judge.place.has_open_session():
        return lost_edits(f"{name} pr checkout")
    return judge_git(words, command, judge) if name == "hub" else NOTHING


def _judge_moves(verb: str, words: list[str], where: str, judge: Judge) -> Finding:
    """P6: while a session is open, git neither takes edits out of its tree nor puts other files under it."""
    takes = _takes_edits(verb, words)
    sets = verb == "config" and len(words) > 1 and not {*words} & tables.GIT_LISTS["config"]
    is_plain = not takes and not sets and verb in tables.GIT_LOOKS | tables.GIT_FREE | tables.MOVING
    root = checkout_of(judge.place.real(where))  # not that of another clone, a worktree or one nested in it
    if is_plain or not root or root != checkout_of(judge.place.top()) or not judge.place.has_open_session():
        return NOTHING
    half = next((word for word in words if word in tables.HALF_WAY and verb in tables.MOVING), "")
    if half:
        return ask("P6", f"a person confirms git {verb} {half}: it changes files under an open session")
    if takes:
        return lost_edits("git stash" if verb == "stash" else f"git {verb}")
    return ask("P6", f"a person confirms git {verb}, which can hide edits under an open session, or is not known here")


def _takes_edits(verb: str, words: list[str]) -> bool:
    """Whether this subcommand of git changes files that may hold edits, or puts edits away."""
    if verb in ("checkout", "switch"):  # but for a new branch where HEAD is
        making = ("-b", "-B") if verb == "checkout" else ("-c", "-C", "--create", "--force-create")
        left = [word for word in words if word not in ("-q", "--quiet", "--no-track")]
        return left[2:] not in ([], ["HEAD"], ["@"]) if len(left) > 1 and left[0] in making else bool(left)
    if verb == "restore":
        return not _has(words, ("-S", "--staged")) or _has(words, ("-W", "--worktree"))
    takes, spares = tables.TAKES.get(verb, ((), ()))
    return not _has(words, spares) and ("" in takes or _has(words, takes))


def _has(words: list[str], wanted: tuple[str, ...]) -> bool:
    """One of these is there: a word in front, an option, its beginning, or its letter among others."""
    for at, word in enumerate(words):
        is_option = word.startswith("-")
        letters = "" if not is_option or word.startswith("--") else word.partition("e")[0]  # -e takes a value
        for one in wanted if is_option or at == 0 else ():
            if word == one or (len(word) > 3 and one.startswith(word)) or (len(one) == 2 and one[1] in letters):
                return True
    return False


def judge_uv(words: list[str], command: Command, judge: Judge) -> Finding:
    """L1 and P4: uv."""
    rest = options(words[1:], tables.UV_VALUED)[-1][2]
    verb, after = rest[0] if rest else "", rest[1:]
    if verb == "run":
        return _judge_uv_run(words[: len(words) - len(after)], after, command, judge)
    if verb == "pip" or (verb == "tool" and after[:1] == ["run"]):
        return judge.deeper().program(rest if verb == "pip" else ["uvx", *after[1:]], command)
    if {"--dry-run", "--check", "--help"} & {*after}:
        return LOOKS
    if verb != "sync":
        return NOTHING
    local = judge.place.local_build()
    told = "uv sync would replace it with the pinned one. Without a sync: uv run --no-sync COMMAND"
    if local:
        return deny("L1", f"{local}; {told}")
    return ask("P4", f"a person confirms {tables.BY_UV.format('uv', verb)}")


def _judge_uv_run(head: list[str], after: list[str], command: Command, judge: Judge) -> Finding:
    """What `uv run` runs comes first; then whether it would undo a local build."""
    given = list(head)
    for option, value, inner in options(after, tables.UV_VALUED | {"-m", "--module"}):
        given.append(option)
        if option in ("-m", "--module"):
            inner = ["python", "-m", value, *inner]
            break
    inner = ["python", *inner] if inner and inner[0].endswith(".py") else inner
    found = judge.deeper().program(inner, command) if inner else NOTHING
    if found.stops:
        return found
    is_spared = {"--no-sync", "--no-project", "--isolated"} & {*given} or ("UV_NO_SYNC", "1") in command.assigns
    local = "" if is_spared else judge.place.local_build()
    if local:
        told = "a plain uv run replaces it with the pinned one without a word"
        return deny("L1", f"{local}; {told}. Use: {join([*head, '--no-sync', *after])}")
    if any(word.startswith(("--with", "--reinstall", "--upgrade")) or word in ("-w", "-U") for word in given):
        return ask("P4", "a person confirms installing packages (uv run --with)")
    return found if judge.locked else found.doubted()
