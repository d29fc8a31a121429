"""P4, P5 and the evidence: files whose change a person confirms, or that only debug-spyre writes."""

from __future__ import annotations

from debug_spyre.agent.guard import light, tables
from debug_spyre.agent.guard.finding import ALLOW, EXPERIMENT, LOOKS, NOTHING, Finding, ask, deny, strongest
from debug_spyre.agent.guard.place import Place
from debug_spyre.agent.guard.shell_words import quote
from debug_spyre.agent.guard.tables import NAME

SCRIPT = f"To instrument torch-spyre write a standalone script instead: {NAME} save probe.py <<'EOF' ... EOF, then {NAME} exec -- python PATH"
LOST = f"""a session is open, and {{}} would take its edits or the person's own out of the tree, or put other files under them. \
Back to what the tree was at open, the patch saved first: {NAME} revert (that patch goes on again by git apply). \
To look at another commit: git show COMMIT:PATH, or git worktree add DIR COMMIT"""
BY_HAND = "a person changes it, by hand"


def judge_edit(path: str, place: Place) -> Finding:
    """P2, P4, P5: edits by the client's own tools."""
    kept = kept_file(path, place)
    first, slash, _ = place.below(path, place.top()).partition("/")
    is_package = light.kind(light.join(place.top(), first, "__init__.py")) == light.FILE
    is_source = slash and not first.startswith(".") and (is_package or first in tables.SOURCE_FOLDERS)
    if kept.stops or not is_source or not place.has_open_session():
        return kept
    return Finding(ALLOW, "P2", "an experiment on source or tests while a session is open")


def kept_file(path: str, place: Place) -> Finding:
    """What the rules say to a change of this file; NOTHING where it is a file like any other.

    What lies in .git and .claude is refused, not asked: in its bypass mode the client passes over an `ask` there, measured.
    """
    real = place.real(path)
    for text in (path.rstrip("/"), real):
        *folders, last = text.split("/")
        if {"site-packages", ".venv"} & {*folders, last}:
            told = "is inside an installed environment: git does not see it and the next sync removes it"
            return ask("P5", f"{path} {told}. {SCRIPT}")
        if last.startswith(NAME) and last.endswith((".lock", "*")):
            return deny("H1", f"{path} is the lock of a card, which all users share: it is never removed or replaced")
        if last in tables.LOCKED_DOWN:
            return ask("P4", f"a person confirms changes of {last}")
        if ".git" in folders or (last == ".git" and text == real and light.kind(real)):
            return deny("P6", f"changes inside .git ({path}) can hide edits or lose them: {BY_HAND}")
        if last in tables.CLIENT_FILES and (".claude" in folders or last.startswith((".", "managed"))):
            return deny("P1", f"{path} holds the client's own settings: {BY_HAND}")
    logs, skill = light.real(place.logs()), light.parent(light.parent(light.real(place.launcher)))
    below = place.below(path, logs).split("/")
    if below != [""]:
        is_evidence = below[-1].endswith(tables.SESSION_KEPT) or {"runs", "tree"} & {*below[1:-1]}
        if is_evidence or light.kind(real) == light.DIRECTORY or (len(below) > 1 and light.kind(real)):
            told = f"A word of yours: {NAME} note finding 'TEXT'; a file: {NAME} save NAME < FILE"
            return deny("G2", f"{path} is evidence of a session, which only debug-spyre writes. {told}")
    elif f"{logs}/".startswith(f"{real}/") and "/.claude" in real and light.kind(logs):
        return deny("G2", f"{path} holds the sessions with their evidence: {BY_HAND}")
    elif f"{real}/".startswith((light.join(skill, "scripts/"), light.join(skill, "SKILL.md/"))):
        return deny("P1", f"{path} belongs to debug-spyre itself, which checks the rules: {BY_HAND}")
    return NOTHING


def written_file(path: str, place: Place, *, from_git: bool = False, append: bool = False) -> Finding:
    """A redirect or tee into this file."""
    if path in ("/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"):
        return LOOKS
    takes = from_git and place.has_open_session()
    if path == "$":
        told = "a file of another commit would be written over one that only the shell knows; write its name out"
        return ask("P6", told) if takes else NOTHING
    kept, inside = kept_file(path, place), place.below(path, place.top())
    if kept.stops or place.below(path, place.logs()):
        return kept if kept.stops else LOOKS
    name, real = light.name(path), place.real(path)
    is_text = name.endswith(tables.TEXT_FILES) and not name.startswith((".", *tables.CONFIG_STEMS))
    if not inside:
        return LOOKS if (is_text or "." not in name) and real.startswith(tables.TEMPORARY) else NOTHING
    if takes and light.kind(real) == light.FILE:
        return lost_edits(f"git ... > {path}")
    is_new = not append and not light.kind(real, follow=False)
    return LOOKS if is_text and is_new and "/." not in f"/{inside}" else NOTHING


def saved_script(path: str, place: Place, found: Finding) -> Finding:
    """Under the lock, a script by path: it lies in the session's folder or in the checkout, and destroys nothing."""
    if found.stops and not found.card:
        return found
    is_kept = place.below(path, place.logs()) or place.below(path, place.top())
    if not is_kept and place.has_open_session():
        told = f"{NAME} save {quote(light.name(path))} < {quote(path)}, then exec the path that it prints"
        return deny("G2", f"artifacts live in the session's folder, not in {light.parent(path)}: {told}")
    text = place.read(path) or ""
    mark = next((mark for mark in tables.DESTRUCTIVE_CODE if mark in text), "")
    if mark:
        return ask("P2", f"{path} holds {mark}; a person confirms it")
    if place.real(path) in place.written:
        return ask("P2", f"{path} is written in the same call; save it first: {NAME} save NAME < FILE")
    return EXPERIMENT if is_kept and not path.startswith("$") else NOTHING


def is_test(word: str) -> bool:
    """The word names tests: a node id, a test file, the folder of tests."""
    file = light.name(word.partition("::")[0])
    return "::" in word or (file.startswith("test_") and file.endswith(".py")) or word in ("tests", "tests/")


def lost_edits(said: str) -> Finding:
    """P6: git takes edits out of the tree of an open session."""
    return deny("P6", LOST.format(said))


def judge_writer(name: str, rest: list[str], place: Place, *, from_git: bool = False) -> Finding:
    """Any program that isn't known to only look: does one of its words name a kept file?"""
    named = [word.partition("=")[2] if word.startswith(("of=", "--")) else word for word in rest]
    named = [path for path in named if path and not path.startswith("-") and len(path) < 300]
    if name in tables.LAST_ONLY and not any(word.startswith(("-t", "--target-directory")) for word in rest):
        named = named[-1:]
    if name == "tee":
        return strongest([written_file(path, place, from_git=from_git, append="-a" in rest) for path in named])
    return next((kept for kept in (kept_file(path, place) for path in named) if kept.stops), NOTHING)


def edits_in_place(name: str, rest: list[str]) -> bool:
    """The -i of sed and awk, alone or among other letters."""
    letters = "".join(word.partition("=")[0][1:5] for word in rest if word.startswith("-") and word[1:2] != "-")
    return any(word.startswith("--in-place") for word in rest) or (name in tables.CODE_READERS and "i" in letters)
