"""The hooks of the Claude Code client: judges what the agent wants to do against the rules of debug-spyre.

One file, standard library only, also on the host's older Python (3.9). Nothing here is a sandbox: it keeps an
agent from breaking a rule by accident, and lets through without a prompt what the rules allow. If it fails inside,
it asks a person and says so. The lock of the card is the backstop where no hook runs at all.
"""

from __future__ import annotations

import os
import sys

NAME = "debug-spyre"  # how an agent types it; the hook puts the launcher's path in its place
ALLOW, DENY, ASK = "allow", "deny", "ask"
STRENGTH = {DENY: 3, ASK: 2, ALLOW: 1, None: 0}
MAX_DEPTH = 6
MAX_SCRIPT = 512_000
FRESH_SECONDS = 24 * 3600
MOST_HOLDS = 2
TAIL = 400_000  # bytes of a transcript that are looked at

CARD_VERBS = frozenset(("triage", "run", "exec", "validate", "shadow", "sweep", "ladder", "repro", "lock"))
FOLLOWING_VERBS = CARD_VERBS - {"lock"} | {"limits"}  # those that know --foreground
PYTEST_VERBS = frozenset(("triage", "run", "validate", "shadow", "ladder", "repro"))
PERSON_FLAGS = ("--patch-approved", "--override", "--reap")
RUN_NAMES = frozenset(("full-matrix", "baseline", "cpu-control", "post-fix", "post-fix-matrix", "verbose"))
LOCKED_DOWN = ("pyproject.toml", "uv.lock")
SOURCE_FOLDERS = frozenset(("spyre_inference", "torch_spyre", "vllm_spyre", "tests", "test", "src"))
SPYRE_MODULES = ("torch_spyre", "spyre_inference", "vllm")
SPYRE_DEVICE = ('"spyre"', "'spyre'", '"spyre:', "'spyre:")
HARMLESS_ENV = ("TORCH", "SPYRE_", "DT", "VLLM_", "SENCORES", "NO_COLOR", "COLUMNS", "LX_", "FLEX_", "PYTEST_ADDOPTS")
TEMPORARY = ("/tmp/", "/var/tmp/")  # noqa: S108  named to be refused
LOCK_ENV = ("DEBUG_SPYRE_LOCK_", "DEBUG_SPYRE_DEVICES", "DEBUG_SPYRE_UNSAFE_")  # how such names begin

# ---------------------------------------------------------------------------------------------------------------
# Reading shell: words, quotes, lists, pipes, redirects, here-documents, substitutions, the usual compound commands.


class ShellError(ValueError):
    """The text is no shell command that this reader understands."""


class Word:
    """One word after quote removal. `dynamic`: it holds a substitution or an unknown variable."""

    __slots__ = ("dynamic", "quoted", "text")

    def __init__(self, text: str, *, quoted: bool = False, dynamic: bool = False) -> None:
        self.text = text
        self.quoted = quoted
        self.dynamic = dynamic


class Command:
    """One simple command: `words` without assignments, redirects as (operator, target), text on stdin if known."""

    __slots__ = ("assigns", "background", "dynamic", "redirects", "source", "stdin", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.assigns: list[tuple[str, str]] = []
        self.redirects: list[tuple[str, str]] = []
        self.stdin: str | None = None
        self.source: Command | None = None  # the command whose output this one reads
        self.background = False
        self.dynamic = False  # a word holds a substitution


BACKGROUND = "&"
OPERATORS = ("&>>", "<<<", "<<-", ";;&", "&&", "||", ";;", ";&", "|&", "&>", "<<", ">>", "<&", ">&", "<>", ">|")
SINGLE = ";&|()<>\n"
LEADING = frozenset(
    ("if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "fi", "done", "esac", "coproc")
)
ENDS = frozenset((";", "\n", "&", "&&", "||", "|", "|&", "(", ")", ";;", ";&", ";;&"))


class Reader:
    """Reads shell text into simple commands, in order, the inner ones of substitutions included."""

    def __init__(self, text: str, depth: int = 0, variables: dict[str, str] | None = None) -> None:
        if depth > MAX_DEPTH:
            raise ShellError("nested too deep")
        self.text = text.replace("\\\r\n", "").replace("\r\n", "\n")
        self.at = 0
        self.depth = depth
        self.variables: dict[str, str] = {} if variables is None else dict(variables)
        self.found: list[Command] = []
        self.waiting: list[tuple[Command, str, bool, bool]] = []  # here-documents whose body is still to come
        self.buffer: list[str] = []  # the word that is being read
        self.done: list[str] = []  # its pieces before the last, where a variable held several words
        self.quoted = False
        self.dynamic = False
        self.joined = False  # lists, pipes, compounds or substitutions: more than one simple command

    def read(self) -> list[Command]:
        """All simple commands.

        Raises:
            ShellError: a quote, bracket or here-document does not end.
        """
        current = Command()
        left: list[Command] = []  # the and-or list so far, for `&`
        while True:
            token = self._token()
            if token is None or (isinstance(token, str) and token in ENDS):
                self._finish(current, left)
                if token is None:
                    break
                if token == BACKGROUND:
                    for command in left:
                        command.background = True
                if token in ("|", "|&") and left:
                    current = Command()
                    current.source = left[-1]
                    continue
                if token not in ("&&", "||", "|", "|&"):
                    left = []
                current = Command()
                continue
            if isinstance(token, str):
                self._redirect(current, token)
                continue
            self._word(current, token)
        self._bodies()
        return self.found

    def _finish(self, current: Command, left: list[Command]) -> None:
        for name, value in current.assigns:
            if not current.words:
                self.variables[name] = value
        if current.words or current.redirects or current.assigns:
            self.found.append(current)
            left.append(current)

    def _word(self, current: Command, words: list[Word]) -> None:
        for word in words:
            current.dynamic = current.dynamic or word.dynamic
            if not current.words and not word.quoted:
                text = word.text
                if text in LEADING:
                    self.joined = True
                    continue
                if text in ("for", "select"):
                    self._skip_for()
                    continue
                if text == "case":
                    self._skip_case()
                    continue
                if text == "function":
                    self._token()
                    continue
                if text == "[[":
                    self._skip_until("]]")
                    continue
            name, equals, value = word.text.partition("=")
            if not current.words and equals and name.rstrip("+").isidentifier():
                current.assigns.append((name.rstrip("+"), value))
            else:
                current.words.append(word.text)

    def _redirect(self, current: Command, operator: str) -> None:
        target = self._token()
        if not isinstance(target, list) or not target:
            raise ShellError(f"nothing follows {operator}")
        text = target[0].text
        current.dynamic = current.dynamic or target[0].dynamic
        if operator in ("<<", "<<-"):
            self.waiting.append((current, text, target[0].quoted, operator == "<<-"))
        elif operator == "<<<":
            current.stdin = text
        else:
            current.redirects.append((operator, text))
        current.words.extend(word.text for word in target[1:])

    def _bodies(self) -> None:
        for command, delimiter, quoted, strip in self.waiting:
            lines = []
            while True:
                if self.at >= len(self.text):
                    break
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = end + 1
                if (line.lstrip("\t") if strip else line) == delimiter:
                    break
                lines.append(line)
            command.stdin = "\n".join(lines) + "\n"
            if not quoted and ("$(" in command.stdin or "`" in command.stdin):
                inner = Reader(command.stdin, self.depth + 1, self.variables)
                while inner.at < len(inner.text):
                    inner._expand_at()  # only its substitutions count
                self._take(inner.found)
                command.dynamic = True
        self.waiting = []

    def _skip_for(self) -> None:
        self.joined = True
        while True:
            token = self._token()
            if token is None or (isinstance(token, str) and token in (";", "\n")):
                return
            if isinstance(token, list) and token and token[0].text == "do" and not token[0].quoted:
                return

    def _skip_case(self) -> None:
        """`case WORD in` and its first pattern; later patterns follow `;;` and end in `)`."""
        self.joined = True
        self._token()
        self._token()
        self._skip_until(")")

    def _skip_until(self, end: str) -> None:
        while True:
            token = self._token()
            if token is None or token == end:
                return
            if isinstance(token, list) and token and token[0].text == end:
                return

    def _take(self, commands: list[Command]) -> None:
        self.joined = True
        self.found.extend(commands)

    # -- tokens

    def _token(self) -> str | list[Word] | None:
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char in " \t\r":
                self.at += 1
            elif char == "\\" and text[self.at : self.at + 2] == "\\\n":
                self.at += 2
            elif char == "#" and (self.at == 0 or text[self.at - 1] in " \t\n;&|("):
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                break
        if self.at >= len(text):
            return None
        char = text[self.at]
        if char in SINGLE:
            return self._operator()
        if char.isdigit():  # a descriptor before a redirect
            end = self.at
            while end < len(text) and text[end].isdigit():
                end += 1
            if end < len(text) and text[end] in "<>":
                self.at = end
                return self._operator()
        return self._read_word()

    def _operator(self) -> str | list[Word] | None:
        text = self.text
        if text.startswith("((", self.at):
            end = text.find("))", self.at)
            if end > 0:
                self.at = end + 2
                return []
        if text[self.at] in "<>" and text.startswith("(", self.at + 1):
            return self._read_word()
        found = next((op for op in OPERATORS if text.startswith(op, self.at)), text[self.at])
        self.at += len(found)
        if found == "\n":
            self._bodies()
        if found in ENDS and found not in (";", "\n"):
            self.joined = True
        if found in (";;", ";&", ";;&"):
            self._pattern()
        return found

    def _pattern(self) -> None:
        """After `;;` stands either `esac` or a pattern that ends in `)`."""
        mark = self.at
        while self.at < len(self.text) and self.text[self.at] in " \t\n":
            self.at += 1
        if self.text.startswith("esac", self.at):
            return
        end = self.text.find(")", self.at)
        self.at = mark if end < 0 else end + 1

    def _read_word(self) -> list[Word]:
        """One token of words: an unquoted variable that is known may be several."""
        self._begin()
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char in " \t\r\n;&|)" or (char in "<>(" and not self._is_process(char)):
                if char == "(" and not self.quoted and "".join(self.buffer).endswith("="):
                    self._skip_array()
                    continue
                break
            if char == "\\":
                if text[self.at : self.at + 2] != "\\\n":
                    self.buffer.append(text[self.at + 1 : self.at + 2])
                    self.quoted = True
                self.at += 2
            elif char == "'":
                self._single()
            elif char == '"':
                self._double()
            else:
                self._expand_at()
        words = [Word(piece, quoted=self.quoted, dynamic=self.dynamic) for piece in self.done]
        last = "".join(self.buffer)
        if last or self.quoted or not words:
            words.append(Word(last, quoted=self.quoted, dynamic=self.dynamic))
        return words

    def _begin(self) -> None:
        self.buffer, self.done = [], []
        self.quoted = self.dynamic = False

    def _is_process(self, char: str) -> bool:
        return char in "<>" and self.text.startswith("(", self.at + 1)

    def _skip_array(self) -> None:
        end = self.text.find(")", self.at)
        if end < 0:
            raise ShellError("a bracket does not end")
        self.at = end + 1

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise ShellError("a single quote does not end")
        self.buffer.append(self.text[self.at + 1 : end])
        self.quoted = True
        self.at = end + 1

    def _double(self) -> None:
        self.at += 1
        self.quoted = True
        text = self.text
        while True:
            if self.at >= len(text):
                raise ShellError("a double quote does not end")
            char = text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\":
                following = text[self.at + 1 : self.at + 2]
                self.buffer.append(following if following in '$`"\\' else "" if following == "\n" else "\\" + following)
                self.at += 2
            elif char in "$`":
                self._expand_at(inside=True)
            else:
                self.buffer.append(char)
                self.at += 1

    def _expand_at(self, *, inside: bool = False) -> None:
        """One character, variable or substitution outside of quotes (or `inside` double ones)."""
        text, char = self.text, self.text[self.at]
        if char == "`":
            end = self.at + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            if end >= len(text):
                raise ShellError("a backtick does not end")
            self._substitution(text[self.at + 1 : end].replace("\\`", "`"))
            self.at = end + 1
        elif char == "$":
            self._dollar(inside=inside)
        elif char in "<>" and text.startswith("(", self.at + 1) and not inside:
            self.at += 1
            self._bracketed()
        else:
            self.buffer.append(char)
            self.at += 1

    def _dollar(self, *, inside: bool) -> None:
        text = self.text
        following = text[self.at + 1 : self.at + 2]
        if text.startswith("$((", self.at):
            end = text.find("))", self.at)
            if end < 0:
                raise ShellError("an arithmetic expression does not end")
            self.dynamic = True
            self.buffer.append("0")
            self.at = end + 2
        elif following == "(":
            self.at += 1
            self._bracketed()
        elif following == "{":
            end = text.find("}", self.at)
            if end < 0:
                raise ShellError("a variable's bracket does not end")
            name = text[self.at + 2 : end]
            if "$(" in name or "`" in name:
                inner = Reader(name, self.depth + 1, self.variables)
                while inner.at < len(inner.text):
                    inner._expand_at()
                self._take(inner.found)
            self._variable(name, text[self.at : end + 1], inside=inside)
            self.at = end + 1
        elif following == "'" and not inside:
            end = self.at + 2
            while end < len(text) and text[end] != "'":
                end += 2 if text[end] == "\\" else 1
            if end >= len(text):
                raise ShellError("a quote does not end")
            raw = text[self.at + 2 : end]
            self.buffer.append(raw.replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'"))
            self.quoted = True
            self.at = end + 1
        elif following == '"' and not inside:
            self.at += 1
        else:
            end = self.at + 1
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            if end == self.at + 1 and following and following in "@*#?$!-":
                end += 1
            if end == self.at + 1:
                self.buffer.append("$")
            else:
                self._variable(text[self.at + 1 : end], text[self.at : end], inside=inside)
            self.at = end

    def _variable(self, name: str, literal: str, *, inside: bool) -> None:
        value = self.variables.get(name)
        if value is None:
            self.dynamic = True
            self.buffer.append(literal)
        elif inside:
            self.buffer.append(value)
        else:
            pieces = value.split()
            if not pieces:
                return
            self.buffer.append(pieces[0])
            for piece in pieces[1:]:
                self.done.append("".join(self.buffer))
                self.buffer = [piece]

    def _bracketed(self) -> None:
        """A substitution's text up to its closing bracket; the reader stands on the opening one."""
        start = self.at + 1
        depth, at, text = 0, self.at, self.text
        while at < len(text):
            char = text[at]
            if char == "\\":
                at += 1
            elif char == "'":
                at = text.find("'", at + 1)
                if at < 0:
                    raise ShellError("a single quote does not end")
            elif char == '"':
                at += 1
                while at < len(text) and text[at] != '"':
                    at += 2 if text[at] == "\\" else 1
            elif char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    self._substitution(text[start:at])
                    self.at = at + 1
                    return
            at += 1
        raise ShellError("a substitution does not end")

    def _substitution(self, inner: str) -> None:
        self.dynamic = True
        self.buffer.append("$(...)")
        self._take(Reader(inner, self.depth + 1, self.variables).read())


def quote(word: str) -> str:
    """The word as it can be typed in a shell."""
    if word and all(c.isalnum() or c in "@%+=:,./-_" for c in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


# ---------------------------------------------------------------------------------------------------------------
# What surrounds the call: the checkout, its sessions, the installed torch-spyre, files. Everything is looked up late.


class World:
    """Facts about the place where the command would run; a test hands in another one."""

    def __init__(self, *, cwd: str, project: str | None, launcher: str, client: str | None = None) -> None:
        self.cwd = cwd
        self.launcher = launcher
        self.client = client
        self.project = project or _checkout_of(cwd)
        self.written: dict[str, str] = {}  # files that the same command writes before it runs them
        self._open: bool | None = None

    def read(self, path: str) -> str | None:
        """The text of a script, None where it can't be read."""
        full = os.path.join(self.cwd, path)
        if path in self.written:
            return self.written[path]
        try:
            with open(full, "rb") as stream:
                return stream.read(MAX_SCRIPT).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def real(self, path: str) -> str:
        """The path without links and dots."""
        return os.path.realpath(os.path.join(self.cwd, os.path.expanduser(path)))

    def is_ours(self, word: str) -> bool:
        """The word names the debug-spyre command: bare, or a path that leads to this skill's launcher."""
        if word == NAME:
            return True
        if os.path.basename(word) != NAME:
            return False
        real = self.real(word)
        if real == os.path.realpath(self.launcher):
            return True
        beside = (self.project and os.path.join(self.project, ".venv/bin/debug-spyre")) or ""
        return real == os.path.realpath(beside)

    def is_spyre_place(self) -> bool:
        """A pytest here would meet the card: the checkout itself, or another tree that is made for Spyre."""
        here = os.path.realpath(self.cwd)
        top = os.path.realpath(self.project) if self.project else here
        if here == top or here.startswith(top + os.sep):
            return True
        root = _checkout_of(here) or here
        if any(os.path.isdir(os.path.join(root, name)) for name in ("torch_spyre", "spyre_inference")):
            return True
        return "spyre" in (self.read(os.path.join(root, "pyproject.toml")) or "")

    def has_open_session(self) -> bool:
        """Some session of this checkout is being investigated."""
        if self._open is None:
            self._open = any(True for _ in live_journals(self.logs()))
        return self._open

    def is_here(self, folder: str) -> bool:
        """The folder belongs to the checkout of the sessions: not to another clone, a worktree or one nested in it."""
        root = _checkout_of(self.real(folder))
        return root is not None and self.project is not None and root == _checkout_of(self.project)

    def logs(self) -> str:
        """Where the sessions of this checkout live."""
        override = os.environ.get("DEBUG_SPYRE_LOGS")
        return override or os.path.join(self.project or self.cwd, ".claude/skills/debug-spyre/logs")

    def local_build(self) -> str | None:
        """In words: the installed torch-spyre is not the pinned one, so that a sync would undo it. None: it is, or unknown."""
        for folder in self._dist_infos():
            text = self.read(os.path.join(folder, "direct_url.json"))
            if text is None:
                continue
            if '"dir_info"' in text or '"file://' in text:
                return "a local build of torch-spyre is installed"
            mark = text.find('"commit_id"')
            commit = text[mark:].split('"')[3] if mark >= 0 and text[mark:].count('"') > 3 else None
            pin = self._pin()
            if commit and pin and not commit.startswith(pin) and not pin.startswith(commit):
                return f"the installed torch-spyre ({commit[:9]}) differs from the pin ({pin[:9]})"
        return None

    def _dist_infos(self) -> list[str]:
        places = [os.environ.get("UV_PROJECT_ENVIRONMENT"), self.project and os.path.join(self.project, ".venv")]
        places.append(os.environ.get("VIRTUAL_ENV"))
        found = []
        for place in places:
            lib = os.path.join(self.cwd, place, "lib") if place else ""
            for python in _listed(lib):
                packages = os.path.join(lib, python, "site-packages")
                found += [
                    os.path.join(packages, n)
                    for n in _listed(packages)
                    if n.startswith("torch_spyre-") and n.endswith(".dist-info")
                ]
            if found:
                return found
        return found

    def _pin(self) -> str | None:
        text = self.read(os.path.join(self.project, "uv.lock")) if self.project else None
        mark = (text or "").find('name = "torch-spyre"')
        if text is None or mark < 0:
            return None
        source = text[mark : mark + 800].partition("source = ")[2].partition("\n")[0]
        revision = source.rpartition("#")[2].partition('"')[0] if "#" in source else ""
        return revision or None


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder)) if folder else []
    except OSError:
        return []


def _checkout_of(start: str) -> str | None:
    folder = os.path.realpath(start)
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


# ---------------------------------------------------------------------------------------------------------------
# Judging


class Finding:
    """One judgement: verdict, the rule's id, what to do instead; `command` where the call is to be spelled otherwise."""

    __slots__ = ("command", "reason", "rule", "verdict")

    def __init__(self, verdict: str | None, rule: str = "", reason: str = "", command: str | None = None) -> None:
        self.verdict = verdict
        self.rule = rule
        self.reason = reason
        self.command = command


NOTHING = Finding(None)


def strongest(findings: list[Finding]) -> Finding:
    """Deny before ask before allow; the first of the strongest."""
    best = NOTHING
    for finding in findings:
        if STRENGTH[finding.verdict] > STRENGTH[best.verdict]:
            best = finding
    return best


def decide(tool: str, given: dict[str, object], world: World) -> Finding:
    """What the rules say to this tool call."""
    if tool in ("Bash", "Monitor"):
        background = bool(given.get("run_in_background")) or tool == "Monitor"
        return judge_shell(str(given.get("command") or ""), world, background=background)
    if tool in ("Edit", "Write", "MultiEdit", "NotebookEdit"):
        return judge_edit(str(given.get("file_path") or given.get("notebook_path") or ""), world)
    if tool == "AskUserQuestion":
        return judge_question(world)
    return NOTHING


def judge_question(world: World) -> Finding:
    """S5: while this client's session is open, nobody is asked which way to go."""
    if not any(client_of(data) == world.client for _, data in live_journals(world.logs())):
        return NOTHING
    told = f"{NAME} hypothesis add 'TEXT' --test 'COMMAND'"
    return Finding(
        DENY,
        "S5",
        f"the loop is autonomous: put every candidate on the queue ({told}) and test the rows in order; what only a person can decide is the next action of `close blocked`",
    )


def judge_edit(path: str, world: World) -> Finding:
    """P2, P4, P5: edits by the client's own tools."""
    if not path:
        return NOTHING
    kept = kept_file(path, world)
    if kept.verdict:
        return kept
    real = world.real(path)
    top = os.path.realpath(world.project) if world.project else None
    if top and real.startswith(top + os.sep):
        first, _, rest = real[len(top) + 1 :].partition(os.sep)
        if rest and is_source_folder(first, top) and world.has_open_session():
            return Finding(ALLOW, "P2", "an experiment on source or tests while a session is open")
    return NOTHING


def is_source_folder(name: str, top: str) -> bool:
    """Plugin source and tests: never a hidden folder."""
    if name.startswith("."):
        return False
    return name in SOURCE_FOLDERS or os.path.isfile(os.path.join(top, name, "__init__.py"))


def kept_file(path: str, world: World) -> Finding:
    """P4 and P5: files whose change a person confirms."""
    for text in (path, world.real(path)):
        parts = text.split(os.sep)
        if "site-packages" in parts or ".venv" in parts:
            return Finding(
                ASK,
                "P5",
                f"{path} is inside an installed environment: invisible to git and gone with the next sync. To instrument torch-spyre write a standalone script instead: {NAME} save probe.py <<'EOF' ... EOF, then {NAME} exec -- python PATH",
            )
        if parts[-1] in LOCKED_DOWN:
            return Finding(ASK, "P4", f"a person confirms changes of {parts[-1]}")
    return NOTHING


def judge_shell(text: str, world: World, *, background: bool = False, depth: int = 0) -> Finding:
    """Every command in the text; allowed is only our own one in its simple form."""
    if not text.strip():
        return NOTHING
    reader = Reader(text, depth)
    try:
        commands = reader.read()
    except ShellError as error:
        if any(mark in text for mark in ("pytest", "spyre", "vllm", "git ", "pip", "uv ", "gh ")):
            return Finding(
                ASK, "guard", f"the guard can't read this command ({error}), so no rule was checked; write it simpler"
            )
        return NOTHING
    findings, here = [], world.cwd
    for command in commands:
        if command.words and command.words[0] in ("cd", "pushd"):
            target = command.words[1] if len(command.words) > 1 else os.path.expanduser("~")
            world.cwd = os.path.normpath(os.path.join(world.cwd, os.path.expanduser(target)))
            continue
        note_written(command, world)
        findings.append(judge_command(command, world, background=background or command.background, depth=depth))
    world.cwd = here
    best = strongest(findings)
    if best.verdict == ALLOW and (len(commands) != 1 or reader.joined or not is_simple(commands[0], world)):
        return substituted(commands, world) or NOTHING
    if best.verdict == ALLOW and commands[0].words[0] == NAME:
        return Finding(ALLOW, best.rule, best.reason, spelled_out(text, commands[0], world))
    return best


def spelled_out(text: str, command: Command, world: World) -> str | None:
    """The same call with the launcher's path in place of the bare name, which need not be on the PATH."""
    at = text.find(NAME)
    while at >= 0:
        changed = text[:at] + quote(world.launcher) + text[at + len(NAME) :]
        try:
            again = Reader(changed).read()
        except ShellError:
            again = []
        if len(again) == 1 and again[0].words == [world.launcher, *command.words[1:]]:
            return changed if again[0].assigns == command.assigns else None
        at = text.find(NAME, at + 1)
    return None


def substituted(commands: list[Command], world: World) -> Finding | None:
    """Our command with something for the shell to run inside a word: refused with the simple form, since it would prompt."""
    for command in commands:
        if command.dynamic and command.words and world.is_ours(command.words[0]):
            return Finding(
                DENY,
                "guard",
                "one simple command of ours at a time, no $(...), backticks or variables in it: put text in 'single quotes' or give it on stdin with <<'EOF'",
            )
    return None


def is_simple(command: Command, world: World) -> bool:
    """One command of ours, no substitution, no redirect to a file outside the session's folders."""
    if command.dynamic or command.background:
        return False
    if any(not name.startswith(HARMLESS_ENV) for name, _ in command.assigns):
        return False
    logs = os.path.realpath(world.logs())
    for operator, target in command.redirects:
        if operator == "<" or (operator == ">&" and (target.isdigit() or target == "-")) or target == "/dev/null":
            continue
        if not world.real(target).startswith(logs + os.sep):
            return False
    return True


def note_written(command: Command, world: World) -> None:
    """Remember what `cat > file <<EOF` and `tee file <<EOF` write: the next command may run it."""
    if command.stdin is None or not command.words or command.words[0] not in ("cat", "tee"):
        return
    targets = [target for operator, target in command.redirects if operator.startswith(">")]
    targets += [word for word in command.words[1:] if command.words[0] == "tee" and not word.startswith("-")]
    for target in targets:
        world.written[target] = command.stdin


def judge_command(command: Command, world: World, *, background: bool, depth: int) -> Finding:
    """One simple command with its redirects, then what it runs."""
    findings = [
        kept_file(target, world) for operator, target in command.redirects if operator not in ("<", "<&", ">&", "<<<")
    ]
    if command.words:
        findings.append(judge_words(command.words, command, world, background=background, depth=depth))
    return strongest(findings)


WRAPPERS = {
    # name: options that take a value
    "timeout": ("-k", "-s", "--kill-after", "--signal"),
    "nohup": (), "time": ("-f", "-o"), "nice": ("-n", "--adjustment"), "ionice": ("-c", "-n", "-p"),
    "stdbuf": ("-i", "-o", "-e"), "env": ("-u", "-C", "--unset", "--chdir"), "command": (), "builtin": (),
    "exec": ("-a",), "setsid": (), "flock": ("-w", "-E", "--timeout", "--wait"), "watch": ("-n", "-d", "--interval"),
    "sudo": ("-u", "-g", "-C", "-D", "-h", "-p"), "doas": ("-u", "-C"), "taskset": (), "chrt": (), "unbuffer": (),
    "strace": ("-o", "-e", "-p", "-s"), "xargs": ("-I", "-n", "-P", "-L", "-d", "-a", "-s", "-E"),
    "numactl": (), "catchsegv": (), "parallel": ("-j", "--jobs"), "chronic": (), "caffeinate": (),
}  # fmt: skip
POSITIONALS = {"timeout": 1, "flock": 1, "taskset": 1, "chrt": 1}
SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh"))
RUNNERS = frozenset(("poetry", "pdm", "hatch", "pipenv", "rye", "pixi", "conda", "mamba", "micromamba"))
UV_VALUED = frozenset((
    "--with", "--with-editable", "--with-requirements", "-w", "--python", "-p", "--project", "--directory", "-C",
    "--extra", "--group", "--only-group", "--no-group", "--no-extra", "--env-file", "--index", "--index-url", "-i",
    "--extra-index-url", "--package", "--color", "--cache-dir", "--config-file", "--config-setting", "--python-platform",
    "--refresh-package", "--reinstall-package", "--upgrade-package", "-P", "--link-mode", "--find-links", "-f",
))  # fmt: skip


def judge_words(words: list[str], command: Command, world: World, *, background: bool, depth: int) -> Finding:
    """What these words run, wrappers stripped."""
    if depth > MAX_DEPTH or not words:
        return NOTHING
    word, rest = words[0], words[1:]
    if world.is_ours(word):
        return judge_own(words, command, world, background=background, depth=depth)
    name = os.path.basename(word)
    if name in SHELLS and rest and world.is_ours(next((w for w in rest if not w.startswith("-")), "")):
        words = words[words.index(next(w for w in rest if not w.startswith("-"))) :]
        return not_simple(judge_own(words, command, world, background=background, depth=depth))
    if name in WRAPPERS:
        return judge_wrapper(name, rest, command, world, background=background, depth=depth)
    if name in SHELLS or name in ("eval", "source", "."):
        return judge_script(name, rest, command, world, background=background, depth=depth)
    if name in ("tmux", "screen", "su", "script", "ssh-agent", "systemd-run", "at", "batch"):
        texts = [w for w in rest if " " in w] + [" ".join(rest)]
        return strongest([not_simple(judge_shell(text, world, background=True, depth=depth + 1)) for text in texts])
    if name == "find":
        parts = executed_by_find(rest)
        return strongest([judge_words(p, command, world, background=background, depth=depth + 1) for p in parts])
    if name in ("pytest", "py.test"):
        return judge_pytest(rest, command, world)
    if is_python(name):
        return judge_python(words, command, world, depth=depth)
    if name == "uv":
        return judge_uv(words, command, world, background=background, depth=depth)
    if name in RUNNERS:
        return judge_runner(words, command, world, background=background, depth=depth)
    if name in ("git", "gh", "hub", "glab"):
        return strongest([judge_git(name, rest), judge_tree(name, rest, command, world)])
    if name in ("pip", "pip3") or name.startswith("pip3."):
        return judge_pip(rest)
    if name == "vllm":
        return judge_vllm(words)
    if name in ("torchrun", "accelerate", "deepspeed"):
        return outside_the_lock(words, command, f"{name} starts Spyre-backed processes")
    if name == "coverage" and rest[:1] == ["run"]:
        return judge_python(
            ["python", *(w for w in rest[1:] if not w.startswith("-") or w == "-m")], command, world, depth=depth
        )
    return judge_plain(name, words, command, world, depth=depth)


def not_simple(finding: Finding) -> Finding:
    """The same judgement, but never an allowance."""
    return NOTHING if finding.verdict == ALLOW else finding


def is_python(name: str) -> bool:
    """python, python3, python3.12 and the like."""
    return name.startswith("python") and all(c.isdigit() or c in ".t" for c in name[6:])


def judge_wrapper(
    name: str, rest: list[str], command: Command, world: World, *, background: bool, depth: int
) -> Finding:
    """timeout, env, xargs and their like: skip their own words, judge what they run."""
    if name == "command" and rest[:1] and rest[0] in ("-v", "-V"):
        return NOTHING
    inner, left = list(rest), POSITIONALS.get(name, 0)
    while inner:
        word = inner[0]
        if word == "--":
            inner.pop(0)
        elif name == "env" and word in ("-S", "--split-string") and len(inner) > 1:
            return not_simple(judge_shell(" ".join(inner[1:]), world, background=background, depth=depth + 1))
        elif name == "flock" and word in ("-c", "--command") and len(inner) > 1:
            return not_simple(judge_shell(inner[1], world, background=background, depth=depth + 1))
        elif word in WRAPPERS[name] and len(inner) > 1:
            del inner[:2]
        elif word.startswith("-") and len(word) > 1:
            inner.pop(0)
        elif name in ("env", "sudo", "doas") and word.partition("=")[1] and word.partition("=")[0].isidentifier():
            command.assigns.append((word.partition("=")[0], word.partition("=")[2]))
            inner.pop(0)
        elif left:
            left -= 1
            inner.pop(0)
            if name == "flock" and inner[:1] == ["-c"] and len(inner) > 1:
                return not_simple(judge_shell(inner[1], world, background=background, depth=depth + 1))
        else:
            break
    if name == "parallel" and ":::" in inner:
        inner = inner[: inner.index(":::")]
    if len(inner) == 1 and " " in inner[0]:
        return not_simple(judge_shell(inner[0], world, background=background, depth=depth + 1))
    return not_simple(judge_words(inner, command, world, background=background, depth=depth + 1))


def executed_by_find(words: list[str]) -> list[list[str]]:
    """The commands after -exec and -ok."""
    found, at = [], 0
    while at < len(words):
        if words[at] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = at + 1
            while end < len(words) and words[end] not in (";", "+"):
                end += 1
            found.append(words[at + 1 : end])
            at = end
        at += 1
    return found


def judge_script(
    name: str, rest: list[str], command: Command, world: World, *, background: bool, depth: int
) -> Finding:
    """A shell that gets its text by -c, from a file or from stdin."""
    if name == "eval":
        return not_simple(judge_shell(" ".join(rest), world, background=background, depth=depth + 1))
    at = 0
    while at < len(rest) and rest[at].startswith("-") and len(rest[at]) > 1:
        if not rest[at].startswith("--") and "c" in rest[at] and at + 1 < len(rest):
            return not_simple(judge_shell(rest[at + 1], world, background=background, depth=depth + 1))
        at += 2 if rest[at] in ("-o", "-O", "--rcfile", "--init-file") else 1
    text = fed_to(command, world) if at >= len(rest) else world.read(rest[at])
    return not_simple(judge_shell(text, world, background=background, depth=depth + 1)) if text else NOTHING


def fed_to(command: Command, world: World) -> str | None:
    """The text on the command's stdin: a here-document, an echo before the pipe, a file."""
    if command.stdin is not None:
        return command.stdin
    for operator, target in command.redirects:
        if operator == "<":
            return world.read(target)
    source = command.source
    if source is not None and source.words:
        name = os.path.basename(source.words[0])
        if name in ("echo", "printf"):
            return " ".join(w for w in source.words[1:] if not w.startswith("-")).replace("\\n", "\n")
        if name == "cat":
            return source.stdin if source.stdin is not None else world.read(source.words[-1])
    return None


# -- the card


def with_env(command: Command) -> list[str]:
    """The command's environment overrides as our flags."""
    found = []
    for name, value in command.assigns:
        if name.isupper() or "_" in name:
            found += ["--env", f"{name}={value}"]
    return found


def run_name(command: Command) -> list[str]:
    """--as NAME where the output was to go to a file of that name."""
    texts = [target for _, target in command.redirects] + list(command.words)
    for text in texts:
        stem = os.path.basename(text).partition(".")[0]
        if stem in RUN_NAMES:
            return ["--as", stem]
    return []


def judge_pytest(arguments: list[str], command: Command, world: World) -> Finding:
    """H1 (and R3, R4): pytest runs under the lock."""
    if not world.is_spyre_place() or is_harmless_pytest(arguments):
        return parallel(arguments) if world.is_spyre_place() else NOTHING
    bad = judge_selection(arguments)
    session = world.has_open_session()
    kept = clean_arguments(arguments)
    overrides = with_env(command)
    verb = "run" if session or overrides else "triage"
    ours = [NAME, verb, *(run_name(command) if session else []), *overrides, *kept]
    line = " ".join(quote(w) for w in ours)
    if bad.verdict:
        return Finding(DENY, bad.rule, f"{bad.reason}. And pytest meets the card, so it runs under the lock: {line}")
    return Finding(
        DENY,
        "H1",
        f"pytest meets the card, which takes one process at a time. Under the lock, with its output kept: {line}",
    )


def is_harmless_pytest(arguments: list[str]) -> bool:
    """Forms that run no test."""
    return any(
        w in ("--collect-only", "--co", "--version", "-V", "--help", "-h", "--fixtures", "--markers") for w in arguments
    )


def clean_arguments(arguments: list[str]) -> list[str]:
    """The arguments of pytest without what our command adds itself or refuses."""
    kept, at = [], 0
    while at < len(arguments):
        word, following = arguments[at], arguments[at + 1 : at + 2]
        if (word == "-m" and following == ["not upstream"]) or word in ("-n", "--numprocesses", "--dist"):
            at += 2
        elif (word.startswith("-n") and not word.startswith("-no")) or word.startswith(("--numprocesses=", "--dist=")):
            at += 1
        elif word in ("-W", "--pythonwarnings") and following and is_broad_filter(following[0]):
            kept.append("--fallback-as-error")
            at += 2
        elif word in ("-k", "--keyword") and following and not is_plain(following[0]):
            at += 2
        else:
            kept.append(word)
            at += 1
    return kept


def is_plain(expression: str) -> bool:
    """A -k expression without the characters that pytest can't take."""
    return not any(c in expression for c in "(=,[)]")


def is_broad_filter(text: str) -> bool:
    """A filter that makes an error of every user warning, or of every warning of a wide class."""
    action, _, rest = text.replace(" ", "").partition(":")
    category = [*rest.split(":"), "", ""][1]
    return action == "error" and category in ("UserWarning", "Warning", "builtins.UserWarning")


def parallel(arguments: list[str]) -> Finding:
    """H1: no xdist."""
    for at, word in enumerate(arguments):
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        count = (
            following
            if word in ("-n", "--numprocesses")
            else word[2:]
            if word.startswith("-n") and word[2:3].isalnum()
            else ""
        )
        count = word.partition("=")[2] if word.startswith("--numprocesses=") else count
        if (count and count != "0" and (count.isdigit() or count in ("auto", "logical"))) or word.startswith("--dist"):
            if word.startswith("--dist") and (following == "no" or word == "--dist=no"):
                continue
            return Finding(
                DENY,
                "H1",
                f"xdist starts several processes on one card; run serially: {NAME} run {' '.join(quote(w) for w in clean_arguments(arguments))}",
            )
    return NOTHING


def judge_selection(arguments: list[str]) -> Finding:
    """R3, R4 and xdist: arguments that our own command refuses too."""
    for at, word in enumerate(arguments):
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        expression = following if word in ("-k", "--keyword") else word[2:] if word.startswith("-k") else ""
        if expression and not is_plain(expression):
            return Finding(
                DENY,
                "R3",
                f"-k can't take ( = , or brackets ({expression!r}): list full node ids with {NAME} run --collect-only -q FILE and pass the ones you mean, in 'single quotes'",
            )
        given = following if word in ("-W", "--pythonwarnings") else word[2:] if word.startswith("-W") else ""
        if given and is_broad_filter(given):
            return Finding(
                DENY,
                "R4",
                f"-W {given} catches unrelated warnings too; the exact filter of the installed torch-spyre is: {NAME} run --fallback-as-error {' '.join(quote(w) for w in clean_arguments(arguments) if w != '--fallback-as-error')}",
            )
    return parallel(arguments)


def outside_the_lock(words: list[str], command: Command, why: str) -> Finding:
    """H1: any other command that meets the card."""
    line = " ".join(quote(w) for w in [NAME, "exec", *with_env(command), "--", *words])
    return Finding(
        DENY, "H1", f"{why}, and the card takes one process at a time. Under the lock, with its output kept: {line}"
    )


def judge_python(words: list[str], command: Command, world: World, *, depth: int) -> Finding:
    """A Python with -m, -c, a script, or a program on stdin."""
    rest, at = words[1:], 0
    while at < len(rest) and rest[at].startswith("-") and rest[at] != "-":
        option = rest[at]
        if option == "-m" and at + 1 < len(rest):
            return judge_module(rest[at + 1], rest[at + 2 :], words, command, world, depth=depth)
        if option == "-c" and at + 1 < len(rest):
            return judge_program(rest[at + 1], "this program", words, command)
        at += 2 if option in ("-W", "-X") else 1
    if at < len(rest) and rest[at] != "-":
        if os.path.basename(rest[at]) in ("pytest", "py.test"):
            return judge_pytest(rest[at + 1 :], command, world)
        return judge_program(world.read(rest[at]), rest[at], words, command)
    return judge_program(fed_to(command, world), "this program", words, command)


def judge_module(
    module: str, arguments: list[str], words: list[str], command: Command, world: World, *, depth: int
) -> Finding:
    """A Python module that is run."""
    root = module.partition(".")[0]
    if module in ("pytest", "py.test"):
        return judge_pytest(arguments, command, world)
    if root == "pip":
        return judge_pip(arguments)
    if root == "uv":
        return judge_uv(["uv", *arguments], command, world, background=False, depth=depth)
    if root == "coverage" and arguments[:1] == ["run"]:
        return judge_python(
            ["python", *(w for w in arguments[1:] if not w.startswith("-") or w == "-m")], command, world, depth=depth
        )
    if root in SPYRE_MODULES or module.startswith("torch.distributed"):
        return outside_the_lock(words, command, f"{module} meets the card")
    return NOTHING


def judge_program(text: str | None, what: str, words: list[str], command: Command) -> Finding:
    """Python source: does it reach for the card, or write into the environment?"""
    if text is None:
        return NOTHING
    if "site-packages" in text and (".write" in text or "write_text" in text):
        return Finding(
            ASK, "P5", f"{what} seems to write inside an installed environment; write a standalone script instead"
        )
    reached = reaches_card(text)
    if reached is None:
        return NOTHING
    if what == "this program":
        told = f"{NAME} save NAME.py <<'EOF' ... EOF, then {NAME} exec -- python PATH"
        return Finding(
            DENY,
            "H1",
            f"{what} {reached}, and the card takes one process at a time. Keep it and run it under the lock: {told}",
        )
    return outside_the_lock(words, command, f"{what} {reached}")


def reaches_card(text: str) -> str | None:
    """In words why this source is Spyre-backed, None where nothing says so."""
    for line in text.splitlines() if "\n" in text else text.split(";"):
        bare = line.strip().partition("#")[0]
        if (
            bare.startswith(("import ", "from "))
            or "; import" in bare
            or "__import__" in bare
            or "import_module" in bare
        ):
            for module in SPYRE_MODULES:
                if (
                    module
                    in bare.replace(",", " ")
                    .replace(".", " ")
                    .replace("'", " ")
                    .replace('"', " ")
                    .replace("(", " ")
                    .split()
                ):
                    return f"imports {module}"
    if any(mark in text for mark in SPYRE_DEVICE) and "torch" in text:
        return "uses the spyre device"
    return None


def judge_vllm(words: list[str]) -> Finding:
    """The commands serve, bench and the rest that load a model."""
    if len(words) > 1 and words[1] in ("serve", "bench", "chat", "complete", "run-batch"):
        return outside_the_lock(words, Command(), f"vllm {words[1]} meets the card")
    return NOTHING


# -- a person's decisions


def judge_git(name: str, rest: list[str]) -> Finding:
    """P3: commits, pushes and pull requests."""
    words: list[str] = []
    at = 0
    while at < len(rest):
        if rest[at] in ("-C", "-c", "--git-dir", "--work-tree", "-R", "--repo", "--namespace") and not words:
            at += 2
            continue
        if not rest[at].startswith("-") or words:
            words.append(rest[at])
        at += 1
    if not words:
        return NOTHING
    if (
        name == "git"
        and words[0] in ("commit", "push", "send-pack")
        and "--dry-run" not in words
        and "--help" not in words
    ):
        return Finding(ASK, "P3", f"a person confirms git {words[0]}")
    if name in ("gh", "glab") and words[0] in ("pr", "mr") and words[1:2] and words[1] in ("create", "merge", "new"):
        return Finding(ASK, "P3", f"a person confirms {name} {words[0]} {words[1]}")
    if name in ("gh", "glab") and words[0] == "api" and is_pull_call(words):
        return Finding(ASK, "P3", "a person confirms creating or merging a pull request")
    if name == "hub" and words[0] in ("pull-request", "push", "commit", "merge"):
        return Finding(ASK, "P3", f"a person confirms hub {words[0]}")
    return NOTHING


GIT_VALUED = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source", "--super-prefix")
)
MOVING = frozenset(("checkout", "switch", "rebase", "pull", "merge", "cherry-pick", "revert", "am", "bisect"))
HALF_WAY = frozenset(("--abort", "--quit", "--continue", "--skip"))


def judge_tree(name: str, rest: list[str], command: Command, world: World) -> Finding:
    """P6: while a session is open, git neither takes edits out of its tree nor puts other files under it."""
    place, words = git_place(rest, command)
    if name in ("gh", "glab"):
        moves = len(words) > 1 and words[0] in ("pr", "mr") and words[1] == "checkout"
    else:
        moves = bool(words) and takes_edits(words[0], words[1:])
    if not moves or any(word in ("-h", "--help") for word in words[1:3]):
        return NOTHING
    if not world.is_here(place) or not world.has_open_session():
        return NOTHING
    said = " ".join([name, *words[: 2 if name in ("gh", "glab") or words[0] == "stash" else 1]])
    ends = next((word for word in words[1:] if word in HALF_WAY), "")
    if words[0] in MOVING and ends:
        return Finding(ASK, "P6", f"a person confirms {said} {ends}: it changes files under an open session")
    return Finding(
        DENY,
        "P6",
        f"a session is open, and {said} would take its edits or the person's own out of the tree, or put other files under them. Back to what the tree was at open, the patch saved first: {NAME} revert (that patch goes on again by git apply). To look at another commit: git show COMMIT:PATH, or git worktree add DIR COMMIT",
    )


def git_place(rest: list[str], command: Command) -> tuple[str, list[str]]:
    """The folder that git works on, and its words from the subcommand on."""
    place, tree, at = ".", dict(command.assigns).get("GIT_WORK_TREE", ""), 0
    while at < len(rest) and rest[at].startswith("-"):
        option, equals, value = rest[at].partition("=")
        if not equals and option in GIT_VALUED and at + 1 < len(rest):
            at += 1
            value = rest[at]
        if option == "-C":
            place = os.path.join(place, os.path.expanduser(value))
        elif option == "--work-tree":
            tree = value
        at += 1
    return os.path.join(place, tree) if tree else place, rest[at:]


def takes_edits(verb: str, words: list[str]) -> bool:
    """Whether this subcommand of git changes files that may hold edits, or puts edits away."""
    if verb == "stash":
        return words[:1] not in (["list"], ["show"], ["create"], ["store"])
    if verb == "reset":
        return any(is_short_for(word, ("--hard", "--merge", "--keep")) for word in words)
    if verb == "restore":
        index_only = any(word in ("-S", "--staged") for word in words)
        return not index_only or any(w in ("-W", "-SW", "-WS") or is_short_for(w, ("--worktree",)) for w in words)
    if verb == "clean":
        return not any(is_dry(word) for word in words)
    if verb in ("checkout", "switch"):
        return not is_new_branch(verb, words)
    if verb == "bisect":
        return words[:1] not in ([], ["log"], ["view"], ["visualize"], ["terms"], ["help"])
    return verb in MOVING and "--dry-run" not in words and "--show-current-patch" not in words


def is_short_for(word: str, options: tuple[str, ...]) -> bool:
    """One of the options, or a beginning of it that git takes for it."""
    return len(word) > 3 and any(option.startswith(word) for option in options)


def is_dry(word: str) -> bool:
    """The -n of git clean, alone or among other letters; what follows an e is a pattern."""
    if word.startswith("--"):
        return word == "--dry-run"
    return word.startswith("-") and "n" in word.partition("e")[0]


def is_new_branch(verb: str, words: list[str]) -> bool:
    """No commit is asked for: nothing at all, or a new branch where HEAD is. Edits stay as they are."""
    making = ("-b", "-B") if verb == "checkout" else ("-c", "-C", "--create", "--force-create")
    left = [word for word in words if word not in ("-q", "--quiet", "--no-track")]
    if len(left) > 1 and left[0] in making:
        return left[2:] in ([], ["HEAD"], ["@"])
    return not left


def is_pull_call(words: list[str]) -> bool:
    """A call of the forge's interface that creates or merges a pull request."""
    writes = ("-f", "-F", "--field", "--raw-field", "--input", "POST", "PUT", "-XPOST", "-XPUT")
    return any("/pulls" in w or "merge" in w for w in words) and any(w in writes for w in words)


INSTALLS = frozenset(("install", "uninstall", "sync", "add", "remove", "update", "upgrade", "lock", "tree-install"))


def judge_pip(rest: list[str]) -> Finding:
    """P4: pip."""
    verb = next((w for w in rest if not w.startswith("-")), "")
    if verb in ("install", "uninstall", "sync") and "--dry-run" not in rest and "--help" not in rest:
        return Finding(ASK, "P4", f"a person confirms changes of the environment (pip {verb})")
    return NOTHING


def judge_uv(words: list[str], command: Command, world: World, *, background: bool, depth: int) -> Finding:
    """L1 and P4: uv."""
    rest, at = words[1:], 0
    while at < len(rest) and rest[at].startswith("-"):
        at += 2 if rest[at] in UV_VALUED else 1
    verb, after = (rest[at], rest[at + 1 :]) if at < len(rest) else ("", [])
    if verb == "pip":
        return judge_pip(after)
    if verb == "sync":
        local = world.local_build()
        if local and "--dry-run" not in after:
            return Finding(
                DENY,
                "L1",
                f"{local}; uv sync would replace it with the pinned one. Without a sync: uv run --no-sync COMMAND",
            )
        return (
            NOTHING
            if "--dry-run" in after
            else Finding(ASK, "P4", "a person confirms changes of the environment (uv sync)")
        )
    if verb in ("add", "remove", "lock"):
        return (
            NOTHING
            if "--dry-run" in after or "--check" in after
            else Finding(ASK, "P4", f"a person confirms changes of pyproject.toml and uv.lock (uv {verb})")
        )
    if verb == "run":
        return judge_uv_run(words[: at + 2], after, command, world, background=background, depth=depth)
    return NOTHING


def judge_uv_run(
    head: list[str], after: list[str], command: Command, world: World, *, background: bool, depth: int
) -> Finding:
    """What `uv run` runs comes first; then whether it would undo a local build."""
    at, module = 0, False
    while at < len(after) and after[at].startswith("-") and after[at] not in ("-", "--"):
        if after[at] in ("-m", "--module"):
            module = True
            at += 1
            break
        at += 2 if after[at] in UV_VALUED else 1
    inner = after[at + 1 :] if after[at : at + 1] == ["--"] else after[at:]
    if inner and not module and inner[0].endswith(".py"):
        inner = ["python", *inner]
    inner = ["python", "-m", *inner] if module else inner
    options = head + after[:at]
    found = judge_words(inner, command, world, background=background, depth=depth + 1) if inner else NOTHING
    if found.verdict in (DENY, ASK):
        return found
    spared = (
        any(w in options for w in ("--no-sync", "--no-project", "--isolated")) or ("UV_NO_SYNC", "1") in command.assigns
    )
    local = None if spared else world.local_build()
    if local:
        line = " ".join(quote(w) for w in [*head, "--no-sync", *after])
        return Finding(DENY, "L1", f"{local}; a plain uv run replaces it with the pinned one in silence. Use: {line}")
    if any(w.startswith(("--with", "--reinstall", "--upgrade")) or w in ("-w", "-U") for w in options):
        return Finding(ASK, "P4", "a person confirms installing packages (uv run --with)")
    return not_simple(found)


def judge_runner(words: list[str], command: Command, world: World, *, background: bool, depth: int) -> Finding:
    """Runners such as poetry run and the like; their installs."""
    verbs = [w for w in words[1:] if not w.startswith("-")]
    verb = verbs[0] if verbs else ""
    if verb in INSTALLS or words[1:3] == ["env", "update"]:
        return Finding(ASK, "P4", f"a person confirms changes of the environment ({words[0]} {verb})")
    if verb == "run":
        inner = words[words.index("run") + 1 :]
        while inner and inner[0].startswith("-"):
            inner = inner[2:] if inner[0] in ("-n", "-p", "--name", "--prefix") else inner[1:]
        return not_simple(judge_words(inner, command, world, background=background, depth=depth + 1))
    return NOTHING


SYSTEM_INSTALLERS = frozenset(
    ("apt", "apt-get", "dnf", "yum", "microdnf", "zypper", "apk", "npm", "pnpm", "yarn", "easy_install", "pipx")
)
WRITERS = frozenset(
    (
        "tee",
        "cp",
        "mv",
        "rm",
        "ln",
        "install",
        "touch",
        "patch",
        "truncate",
        "rsync",
        "mkdir",
        "chmod",
        "dd",
        "unzip",
        "tar",
    )
)


def edits_in_place(option: str) -> bool:
    """The -i of sed and perl, alone or among other letters."""
    if option.startswith("--"):
        return option.startswith("--in-place")
    return option.startswith("-") and "i" in option.partition("=")[0][1:5]


def judge_plain(name: str, words: list[str], command: Command, world: World, *, depth: int) -> Finding:
    """Everything else: installers, writers into kept files, and scripts by path."""
    rest = words[1:]
    if name in SYSTEM_INSTALLERS:
        verb = next((w for w in rest if not w.startswith("-")), "")
        if verb in ("install", "remove", "upgrade", "update", "add", "uninstall", "purge", "i") and (
            name,
            verb,
        ) not in (("apt", "update"), ("apt-get", "update")):
            return Finding(ASK, "P4", f"a person confirms installing packages ({name} {verb})")
        return NOTHING
    changes = rest if name in WRITERS else []
    if name in ("sed", "perl", "ruby") and any(edits_in_place(w) for w in rest):
        changes = rest
    if name in ("cp", "install", "rsync"):
        changes = rest[-1:]
    for path in changes:
        kept = kept_file(path.partition("of=")[2] if path.startswith("of=") else path, world)
        if not path.startswith("-") and kept.verdict:
            return kept
    if "/" in words[0]:
        text = world.read(words[0])
        if text and text.startswith("#!"):
            first = text.splitlines()[0]
            if "python" in first:
                return judge_program(text, words[0], words, command)
            if any(shell in first for shell in SHELLS):
                return not_simple(judge_shell(text, world, depth=depth + 1))
    return NOTHING


# -- our own command


EXPERIMENTS = frozenset(("uv", "vllm", "torchrun", "pytest", "py.test"))
LOOKS = frozenset(
    (
        "ls",
        "cat",
        "grep",
        "head",
        "tail",
        "echo",
        "true",
        "false",
        "sleep",
        "wc",
        "date",
        "env",
        "printenv",
        "lspci",
        "nproc",
        "uname",
        "pwd",
        "which",
        "diff",
        "cmp",
        "test",
        "id",
    )
)


def judge_own(words: list[str], command: Command, world: World, *, background: bool, depth: int) -> Finding:
    """Our command: allowed, but for a person's decisions and what exec and lock would run."""
    verb, rest = (words[1], words[2:]) if len(words) > 1 else ("", [])
    for name, _ in command.assigns:
        if name.startswith(LOCK_ENV):
            return Finding(DENY, "H1", f"{name} for one command would leave the shared lock; drop it")
    own = rest
    inner: list[str] = []
    if verb in ("exec", "lock"):
        own, inner = split_inner(rest)
    for word in own:
        if word.partition("=")[0].startswith(PERSON_FLAGS):
            return Finding(ASK, "P6" if word.startswith("--patch") else "gate", f"{word} is a person's decision")
    if verb == "install" and not any(w in own for w in ("--dry-run", "--print-permissions", "--help", "-h")):
        return Finding(ASK, "P1", "install writes into the client's folder; a person confirms it")
    if inner:
        judged = judge_inner(inner, command, world, depth=depth)
        if judged.verdict != ALLOW:
            return judged
    if verb in PYTEST_VERBS:
        bad = judge_selection(rest)
        addopts = next((value for name, value in command.assigns if name == "PYTEST_ADDOPTS"), "")
        bad = bad if bad.verdict else judge_selection(addopts.split())
        if bad.verdict:
            return bad
    if background and is_card_call(verb, rest, inner):
        limit = ["--foreground", "570"] if verb in FOLLOWING_VERBS and "--foreground" not in rest else []
        line = " ".join(quote(w) for w in [NAME, verb, *limit, *rest])
        later = f"; at status 79: {NAME} wait" if verb in FOLLOWING_VERBS else ""
        return Finding(
            DENY,
            "H1",
            f"no background start: the job outlives the shell by itself. In the foreground with a shell timeout of 600000 ms: {line}{later}",
        )
    return Finding(ALLOW, "P2", "debug-spyre itself")


def is_card_call(verb: str, rest: list[str], inner: list[str]) -> bool:
    """The call meets the card."""
    if verb == "lock":
        return bool(inner)
    if verb == "triage":
        return "--from" not in rest and "--last" not in rest
    return (
        verb in CARD_VERBS
        or (verb in ("limits", "doctor") and "--probe" in rest)
        or (verb == "op" and "--exact" in rest)
    )


def split_inner(rest: list[str]) -> tuple[list[str], list[str]]:
    """Our flags, and the command after `--` (or, where that is missing, from the first word that is none of ours)."""
    if "--" in rest:
        at = rest.index("--")
        return rest[:at], rest[at + 1 :]
    valued = ("--as", "--hypothesis", "--env", "--session", "--timeout", "--stall", "--foreground", "--wait", "--cards")
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        at += 2 if rest[at] in valued else 1
    return rest[:at], rest[at:]


def judge_inner(inner: list[str], command: Command, world: World, *, depth: int) -> Finding:
    """The command inside exec and lock: like any other, but the lock is held."""
    bare = Command()
    bare.words, bare.stdin, bare.redirects = list(inner), command.stdin, []
    found = judge_words(list(inner), bare, world, background=False, depth=depth + 1)
    if found.verdict == ASK or (found.verdict == DENY and found.rule != "H1"):
        return found
    name = os.path.basename(inner[0])
    arguments = inner[inner.index("pytest") + 1 :] if "pytest" in inner else []
    bad = judge_selection(arguments) if arguments else NOTHING
    if bad.verdict:
        return bad
    script = next((w for w in inner if w.endswith((".py", ".sh"))), "")
    if (
        script.startswith(TEMPORARY)
        and world.has_open_session()
        and not world.real(script).startswith(os.path.realpath(world.logs()))
    ):
        told = f"{NAME} save {quote(os.path.basename(script))} < {quote(script)}"
        return Finding(
            DENY,
            "G2",
            f"artifacts live in the session's folder, not in /tmp: {told}, then exec the path that it prints",
        )
    if (
        found.verdict == DENY
        or is_python(name)
        or name in EXPERIMENTS
        or name in LOOKS
        or name in SHELLS
        or world.is_ours(inner[0])
    ):
        return Finding(ALLOW)
    if name in WRAPPERS or name == "make" or "/" in inner[0]:
        return Finding(ALLOW) if not is_destructive(inner) else Finding(ASK, "P2", f"a person confirms {name}")
    return Finding(ASK, "P2", f"exec of {name} is no experiment that the guard knows; a person confirms it")


def is_destructive(words: list[str]) -> bool:
    """Words that remove, overwrite or fetch."""
    return any(
        os.path.basename(w)
        in ("rm", "mv", "dd", "curl", "wget", "chmod", "chown", "kill", "pkill", "killall", "shutdown", "reboot")
        for w in words
    )


# ---------------------------------------------------------------------------------------------------------------
# JSON by the interpreter's own C parts: importing json (and with it re) would double the start-up, measured


class _Strict:
    """How the scanner reads."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def parse_json(text: str) -> object:
    """The value in the text.

    Raises:
        ValueError: it is no JSON.
    """
    text = text.strip(" \t\r\n")  # what JSON calls white space
    try:
        from _json import make_scanner

        value, end = make_scanner(_Strict)(text, 0)  # type: ignore[arg-type]
        if end == len(text):
            return value
    except (ImportError, StopIteration, SystemError, ValueError):
        pass
    import json  # says what is wrong, or reads it where the C part is not there

    return json.loads(text)


def to_json(value: object) -> str:
    """What the hooks answer, texts escaped to ASCII."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_json(str(key))}: {to_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_json, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        import json

        return json.dumps(str(value))
    return str(encode_basestring_ascii(str(value)))


# ---------------------------------------------------------------------------------------------------------------
# Sessions, read from their journals without the package


def live_journals(logs: str) -> list[tuple[str, bytes]]:
    """(folder, bytes) of the sessions that are investigating and were touched within a day, oldest first."""
    import time

    found = []
    for name in _listed(logs):
        folder = os.path.join(logs, name)
        path = os.path.join(folder, "journal.jsonl")
        if not name.startswith("debug-"):
            continue
        try:
            if time.time() - os.stat(path).st_mtime > FRESH_SECONDS:
                continue
            with open(path, "rb") as stream:
                data = stream.read()
        except OSError:
            continue
        if data.rfind(b'"kind":"session_closed"') <= data.rfind(b'"kind":"session_reopened"'):
            found.append((folder, data))
    return found


def client_of(data: bytes) -> str | None:
    """The client session that opened it."""
    for event in events_of(data.partition(b"\n")[0]):
        client = event.get("client")
        return client if isinstance(client, str) else None
    return None


def events_of(data: bytes) -> list[dict[str, object]]:
    """The journal's events; what can't be read is left out."""
    found = []
    for line in data.split(b"\n"):
        try:
            event = parse_json(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("kind"), str):
            found.append(event)
    return found


class State:
    """What the hooks need to know of a session: its rows, its run in flight, where it stands."""

    def __init__(self, folder: str, data: bytes) -> None:
        self.folder = folder
        self.stem = os.path.basename(folder)
        self.rows: dict[object, dict[str, object]] = {}
        self.running: dict[object, object] = {}
        self.runs: dict[object, dict[str, object]] = {}
        self.slug = self.symptom = ""
        self.probe: object = None
        self.members = 0
        self.summary = ""
        self.mark = 0  # number of the last event that is no mere progress
        for event in events_of(data):
            self._take(event)

    def _take(self, event: dict[str, object]) -> None:
        kind, number, run = event["kind"], event.get("number"), event.get("run")
        if kind != "run_progressed" and isinstance(event.get("seq"), int):
            self.mark = event["seq"]  # type: ignore[assignment]
        if kind == "session_opened":
            self.slug, self.symptom = str(event.get("slug") or ""), str(event.get("symptom") or "")
            self.probe = event.get("probe")
            members = event.get("members")
            self.members = len(members) if isinstance(members, list) else 0
        elif kind == "hypothesis_added":
            self.rows[number] = {"status": "queued", "text": event.get("text"), "test": event.get("test")}
        elif kind == "hypothesis_started" and number in self.rows:
            self.rows[number].update(status="in-progress", command=event.get("command"))
        elif kind == "hypothesis_concluded" and number in self.rows:
            self.rows[number].update(status=event.get("verdict"), outcome=event.get("sentence"))
        elif kind == "hypothesis_dropped" and number in self.rows:
            self.rows[number].update(status="dropped", outcome=event.get("reason"))
        elif kind == "run_started":
            self.running[run] = event.get("supervisor")
            self.runs[run] = {"name": event.get("name"), "verb": event.get("verb")}
        elif kind == "run_finished":
            self.running.pop(run, None)
            self.runs.setdefault(run, {}).update(status=event.get("status"), digest=event.get("digest"))
        elif kind == "summary_noted":
            self.summary = str(event.get("text") or "")
        elif kind == "probe_chosen":
            self.probe = event.get("nodeid")

    def with_status(self, status: str) -> list[object]:
        """Numbers of the rows in that status."""
        return [number for number, row in self.rows.items() if row["status"] == status]

    def in_flight(self) -> list[object]:
        """Runs whose supervisor still lives."""
        return [run for run, pid in self.running.items() if _lives(pid)]


def _lives(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return True  # not known yet: the run has only just begun
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def current_state(world: World, *, any_client: bool) -> State | None:
    """The session of this client; else, where the skill itself is in use, the only live one."""
    live = live_journals(world.logs())
    own = [pair for pair in live if world.client and client_of(pair[1]) == world.client]
    if own:
        return State(*own[-1])
    return State(*live[0]) if any_client and len(live) == 1 else None


PAUSE_WORDS = (
    "pause",
    "paused",
    "halt",
    "hold on",
    "hold off",
    "stand by",
    "stop here",
    "stop now",
    "stop it",
    "stop for",
    "please stop",
    "enough for",
    "that's enough",
    "take a break",
    "break off",
    "wait for me",
    "leave it",
)


def asked_to_pause(text: str) -> bool:
    """The person's last words ask for a pause; a long text or a slash command does not."""
    low = " " + " ".join(text.lower().replace(".", " ").replace(",", " ").replace("!", " ").split()) + " "
    if not low.strip() or len(low) > 300 or low.strip().startswith("/"):
        return False
    return low.strip() == "stop" or any(f" {word} " in low for word in PAUSE_WORDS)


def last_request(transcript: str) -> str:
    """The last thing that a person typed, from the client's transcript; empty where it can't be read."""
    for line in reversed(tail_of(transcript).split(b"\n")):
        if b'"user"' not in line:
            continue
        try:
            entry = parse_json(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if (
            not isinstance(entry, dict)
            or entry.get("type") != "user"
            or entry.get("isMeta")
            or entry.get("isSidechain")
        ):
            continue
        content = (entry.get("message") or {}).get("content")
        if isinstance(content, list):
            if any(isinstance(part, dict) and part.get("type") == "tool_result" for part in content):
                continue
            content = " ".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
        if isinstance(content, str) and content.strip() and not content.lstrip().startswith("<"):
            return content
    return ""


def judge_stop(event: dict[str, object], world: World, *, any_client: bool) -> str | None:
    """Q7: what remains, in words, if the agent may not stop yet; None lets it stop."""
    if event.get("permission_mode") == "plan" or has_background_work(event.get("background_tasks")):
        return None
    state = current_state(world, any_client=any_client)
    if state is None or state.in_flight() or asked_to_pause(last_request(str(event.get("transcript_path") or ""))):
        return None
    queued, busy = state.with_status("queued"), state.with_status("in-progress")
    ours = NAME
    if busy:
        left = f"row {busy[0]} is in progress: run its command, then {ours} hypothesis conclude {busy[0]} ..."
    elif queued:
        row = state.rows[queued[0]]
        left = f"{len(queued)} row{'s' if len(queued) > 1 else ''} queued (next: {queued[0]}, {str(row['text'])[:120]}): {ours} hypothesis start {queued[0]}"
    elif not state.rows:
        left = f"no hypothesis is queued: {ours} hypothesis seed"
    else:
        left = f"every row has a verdict: {ours} validate if the probe is cleared, else the next tier of experiments or {ours} close blocked with a concrete next action"
    if not may_hold(state, stop_hook_active=bool(event.get("stop_hook_active"))):
        return None
    return f"The session {state.stem} is still investigating and no run is in flight; {left}. (Rule Q7; a person who wants a pause says so.)"


def has_background_work(tasks: object) -> bool:
    """A command still runs in the client's background: its end wakes the agent by itself."""
    ended = ("completed", "failed", "killed", "stopped")
    return isinstance(tasks, list) and any(not (isinstance(t, dict) and t.get("status") in ended) for t in tasks)


def may_hold(state: State, *, stop_hook_active: bool) -> bool:
    """At most twice per state of the session, and only where that can be remembered."""
    path = os.path.join(state.folder, ".stop-holds")
    key = str(state.mark)
    try:
        with open(path, encoding="utf-8") as stream:
            known, _, count = stream.read().strip().partition(" ")
    except OSError:
        known, count = "", "0"
    used = int(count) if known == key and count.isdigit() else 0
    if used >= MOST_HOLDS:
        return False
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(f"{key} {used + 1}\n")
    except OSError:
        return not stop_hook_active
    return True


def facts(world: World, *, any_client: bool) -> str | None:
    """The state of the session as facts, for a client that has just compacted its context."""
    state = current_state(world, any_client=any_client)
    if state is None:
        return None
    return said_by_launcher(state, world) or said_by_guard(state)


def facts_once_after_compaction(event: dict[str, object], world: World, *, any_client: bool) -> str | None:
    """The same facts at the first tool call after a compaction: hooks of a skill aren't told of it, measured.

    The transcript's last boundary tells; which one was answered is remembered in the session's folder.
    """
    boundary = last_boundary(str(event.get("transcript_path") or ""))
    if not boundary:
        return None
    state = current_state(world, any_client=any_client)
    if state is None:
        return None
    path = os.path.join(state.folder, ".compaction-seen")
    try:
        with open(path, encoding="utf-8") as stream:
            if stream.read() == boundary:
                return None
    except OSError:
        pass
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(boundary)
    except OSError:
        return None
    return said_by_launcher(state, world) or said_by_guard(state)


def last_boundary(transcript: str) -> str:
    """What tells the last compaction from others; empty where there was none lately."""
    data = tail_of(transcript)
    at = data.rfind(b'"compact_boundary"')
    if at < 0:
        return ""
    line = data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at)]
    mark = line.find(b'"timestamp"')
    return line[mark : mark + 60].decode("utf-8", "replace") if mark >= 0 else str(len(line))


def tail_of(path: str) -> bytes:
    """The last part of a file, empty where it can't be read."""
    try:
        with open(path, "rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - TAIL))
            return stream.read()
    except OSError:
        return b""


def said_by_launcher(state: State, world: World) -> str | None:
    """What `status --brief` says."""
    import subprocess

    try:
        done = subprocess.run(
            [world.launcher, "status", "--brief", "--session", state.stem],
            capture_output=True, text=True, timeout=10, cwd=world.project or world.cwd, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    text = done.stdout.strip()
    return (
        f"debug-spyre session in progress (its command is {NAME}):\n{text}" if done.returncode == 0 and text else None
    )


def said_by_guard(state: State) -> str:
    """The same from the journal alone."""
    lines = [f"debug-spyre session {state.stem} is investigating."]
    lines.append(f"Cluster: {state.slug} ({state.members} members), {state.symptom}. Probe: {state.probe}.")
    if state.summary:
        lines.append(f"Summary: {state.summary[:400]}")
    for number, row in state.rows.items():
        lines.append(
            f"#{number} {row['status']}: {str(row['text'])[:120]}"
            + (f" -> {str(row['outcome'])[:120]}" if row.get("outcome") else "")
        )
    lines += [f"Run {run} is in flight: {NAME} wait {run}" for run in state.in_flight()]
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------------------
# The hooks


def answer(event: dict[str, object], world: World, *, project_wide: bool) -> dict[str, object] | None:
    """What the hook prints for this event; None prints nothing."""
    name = event.get("hook_event_name")
    if name == "PreToolUse":
        given = event.get("tool_input")
        found = decide(str(event.get("tool_name")), given if isinstance(given, dict) else {}, world)
        reason = f"debug-spyre {found.rule}: {found.reason}" if found.rule else found.reason
        said = _permission(found.verdict, reason) if found.verdict else None
        if found.command and isinstance(given, dict):
            said = _permission(ALLOW, reason, {**given, "command": found.command})
        context = facts_once_after_compaction(event, world, any_client=not project_wide)
        return _with_context(said, context) if context else said
    if name == "Stop":
        left = judge_stop(event, world, any_client=not project_wide)
        return {"decision": "block", "reason": left} if left else None
    if name == "SessionStart":
        text = facts(world, any_client=not project_wide)
        return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}} if text else None
    return None


def _with_context(said: dict[str, object] | None, context: str) -> dict[str, object]:
    given = said.get("hookSpecificOutput") if said else None
    inner = given if isinstance(given, dict) else {"hookEventName": "PreToolUse"}
    return {"hookSpecificOutput": {**inner, "additionalContext": context}}


def _permission(verdict: str, reason: str, updated: dict[str, object] | None = None) -> dict[str, object]:
    said: dict[str, object] = {
        "hookEventName": "PreToolUse",
        "permissionDecision": verdict,
        "permissionDecisionReason": reason,
    }
    if updated is not None:
        said["updatedInput"] = updated
    return {"hookSpecificOutput": said}


def launcher_path() -> str:
    """The debug-spyre beside this file, spelled as the skill spells it."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "debug-spyre")


def main() -> int:
    """Read one hook event on stdin, print the answer. Never fails: what goes wrong inside is asked and said."""
    event: dict[str, object] = {}
    try:
        read = parse_json(sys.stdin.buffer.read().decode("utf-8", "replace"))
        event = read if isinstance(read, dict) else {}
        client = event.get("session_id")
        world = World(
            cwd=str(event.get("cwd") or os.getcwd()),
            project=os.environ.get("CLAUDE_PROJECT_DIR") or None,
            launcher=launcher_path(),
            client=client if isinstance(client, str) else None,
        )
        said = answer(event, world, project_wide="--project" in sys.argv[1:])
    except Exception as error:  # noqa: BLE001  a guard that fails inside says so
        why = f"the debug-spyre guard failed inside ({type(error).__name__}: {error}); no rule was checked"
        silent = event.get("hook_event_name") in ("Stop", "SessionStart")
        said = {"systemMessage": why} if silent else _permission(ASK, why)
    if said is not None:
        sys.stdout.write(to_json(said) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
