"""Drives the real Claude Code client against a stand-in for the model on loopback, which replays scripted tool calls.

The client comes from npm into a folder outside git; nothing but the loopback address is reached while it runs.
"""

import json
import os
import shlex
import shutil
import subprocess
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "@anthropic-ai/claude-code"
DONE = "That was all."
WAITING = "Waiting for the background command."
SUMMARISE = "create a detailed summary"  # in what the client asks when it compacts


class NoClientError(Exception):
    """The client can't be had here; the text says why."""


def find_client() -> Path:
    """The client's binary, fetched from npm once.

    Raises:
        NoClientError: no npm, or the registry can't be reached.
    """
    given = os.environ.get("DEBUG_SPYRE_CLIENT")
    if given:
        if not os.access(given, os.X_OK):
            raise NoClientError(f"DEBUG_SPYRE_CLIENT={given} can't be run")
        return Path(given)
    folder = Path(os.environ.get("DEBUG_SPYRE_CLIENT_DIR") or ROOT / ".work/claude-client")
    found = _binary(folder)
    if found is None:
        _fetch(folder)
        found = _binary(folder)
    if found is None:
        raise NoClientError(f"npm brought no client for this machine into {folder}")
    return found


def _binary(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("node_modules/@anthropic-ai/claude-code-*/claude"))), None)


def _fetch(folder: Path) -> None:
    if shutil.which("npm") is None:
        raise NoClientError("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=folder)
    except subprocess.TimeoutExpired as error:
        raise NoClientError("npm did not answer within 240 s") from error
    if done.returncode:
        raise NoClientError(f"npm can't be reached: {(done.stderr or done.stdout).strip()[-300:]}")


class Model(ThreadingHTTPServer):
    """Answers each request of the main conversation with the next scripted step.

    A step is (tool, input), a list of such pairs, or a text, which ends the turn. After the last step the turn ends.
    """

    daemon_threads = True

    def __init__(self, steps):
        self.steps = list(steps)
        self.compactions = 0
        self.taken = 0
        self.requests = []
        self.guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_step(self, request):
        names = {tool.get("name") for tool in request.get("tools") or ()}
        if "Bash" not in names:
            return "ok"
        if SUMMARISE in json.dumps(request["messages"][-3:]):
            self.compactions += 1
            return "<summary>An investigation is under way.</summary>"
        with self.guard:
            self.requests.append(request)
            if self.taken >= len(self.steps):
                return DONE
            step = self.steps[self.taken]
            self.taken += 1
        return step(request) if callable(step) else step


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = json.loads(body or b"{}")
        if "count_tokens" in self.path:
            return self._json({"input_tokens": 10})
        if not self.path.startswith("/v1/messages"):
            return self._json({})
        step = self.server.next_step(request)
        calls = [] if isinstance(step, str) else step if isinstance(step, list) else [step]
        text = step if isinstance(step, str) else None
        if request.get("stream"):
            return self._stream(request, calls, text)
        content = [{"type": "text", "text": text or "ok"}]
        return self._json(_message(self.server, request, content, "end_turn"))

    def _json(self, data):
        payload = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _stream(self, request, calls, text):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self._event("message_start", message=_message(self.server, request, [], None))
        blocks = []
        if text is not None:
            blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": text}))
        for number, (tool, given) in enumerate(calls):
            head = {"type": "tool_use", "id": f"toolu_{self.server.taken:03d}_{number}", "name": tool, "input": {}}
            blocks.append((head, {"type": "input_json_delta", "partial_json": json.dumps(given)}))
        for index, (head, delta) in enumerate(blocks):
            self._event("content_block_start", index=index, content_block=head)
            self._event("content_block_delta", index=index, delta=delta)
            self._event("content_block_stop", index=index)
        reason = "tool_use" if calls else "end_turn"
        self._event(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"input_tokens": 10, "output_tokens": 5},
        )
        self._event("message_stop")
        self.close_connection = True

    def _event(self, kind, **fields):
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())
        self.wfile.flush()


def _message(server, request, content, stop):
    return {
        "id": f"msg_{len(server.requests)}_{uuid.uuid4().hex[:8]}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "m"),
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }


class Outcome:
    """What one run of the client showed: every tool call with its answer, and what it was refused."""

    def __init__(self, events, model, stderr, code):
        self.events = events
        self.requests, self.compactions = model.requests, model.compactions
        self.stderr = stderr
        self.code = code
        self.calls, self.results = [], {}
        for event in events:
            for part in _parts(event):
                if part.get("type") == "tool_use":
                    self.calls.append((part["id"], part["name"], part["input"]))
                elif part.get("type") == "tool_result":
                    self.results[part["tool_use_id"]] = _text(part.get("content"))
        self.final = next((e for e in reversed(events) if e.get("type") == "result"), {})
        self.denials = [d["tool_use_id"] for e in events for d in e.get("permission_denials") or ()]
        self.refused = self._refused()

    def _refused(self):
        """Calls whose hook answered deny; hook events stand between the call and its result."""
        found, current = set(), None
        for event in self.events:
            for part in _parts(event):
                if part.get("type") == "tool_use":
                    current = part["id"]
            if event.get("subtype") == "hook_response" and '"permissionDecision": "deny"' in str(event.get("output")):
                found.add(current)
        return found

    def result(self, number):
        return self.results.get(self.calls[number][0], "")

    def verdict(self, number):
        """What the person would see: it ran, the client asked (and nobody was there to answer), or our hook refused."""
        call = self.calls[number][0]
        if call not in self.denials:
            return "ran"
        return "refused" if call in self.refused else "asked"

    def texts(self):
        """All text that the model was given in the last request."""
        return json.dumps(self.requests[-1]["messages"], ensure_ascii=False) if self.requests else ""


def _parts(event):
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []


def _text(content):
    if isinstance(content, list):
        return "\n".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return str(content or "")


class Client:
    """The client with a HOME of its own, in one checkout."""

    def __init__(self, binary, home, checkout):
        self.binary, self.home, self.checkout = binary, Path(home), Path(checkout)
        self.home.mkdir(parents=True, exist_ok=True)
        self.config = self.home / ".claude"
        self.config.mkdir(exist_ok=True)
        self.user = None

    def environment(self, model, extra):
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "NO_PROXY": "127.0.0.1",
            **(extra or {}),
        }

    def run(self, prompt, steps, *, mode="default", env=None, args=(), timeout=240, prefix=()):
        """One headless conversation with these scripted steps."""
        return self.talk([prompt], steps, mode=mode, env=env, args=args, timeout=timeout, prefix=prefix)

    def talk(self, prompts, steps, *, mode="default", env=None, args=(), timeout=240, prefix=()):
        """One conversation in one process; each prompt is typed when the one before was answered."""
        model = Model(steps)
        command = [*prefix, str(self.binary), "-p", "--input-format", "stream-json", "--output-format", "stream-json"]
        command += ["--verbose", "--permission-mode", mode, "--include-hook-events", *args]
        client = subprocess.Popen(
            command,
            cwd=self.checkout,
            env=self.environment(model, env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        errors = []
        reader = threading.Thread(target=lambda: errors.append(client.stderr.read()), daemon=True)
        reader.start()
        limit = threading.Timer(timeout, client.kill)
        limit.start()
        try:
            events = list(self._follow(client, list(prompts)))
            code = client.wait()
        finally:
            limit.cancel()
            client.kill()
            client.wait()
            model.shutdown()
            model.server_close()
        reader.join(5)
        return Outcome(events, model, "".join(errors), code)

    def _follow(self, client, prompts):
        self._type(client, prompts.pop(0))
        for line in client.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            yield event
            if event.get("type") == "result" and not self._is_waiting(event):
                if prompts:
                    self._type(client, prompts.pop(0))
                elif not client.stdin.closed:
                    client.stdin.close()

    @staticmethod
    def _is_waiting(event):
        return event.get("result") == WAITING  # a background command will wake the client

    @staticmethod
    def _type(client, prompt):
        line = {"type": "user", "message": {"role": "user", "content": prompt}}
        client.stdin.write(json.dumps(line) + "\n")
        client.stdin.flush()


def last_result(request):
    """The text of the newest tool result that the model was given."""
    for message in reversed(request["messages"]):
        if message.get("role") == "user" and isinstance(message["content"], list):
            for part in reversed(message["content"]):
                if part.get("type") == "tool_result":
                    return _text(part.get("content"))
    return ""


def bash(command, **more):
    """One Bash call."""
    return ("Bash", {"command": command, "description": "a step", **more})


QUICK = {
    "spyre_inference/__init__.py": "",
    "spyre_inference/reduce.py": '"""A stand-in for a layer: the reduction stops early."""\n\nLIMIT = 64\n\n\n'
    "def total(values):\n    return sum(values[:LIMIT])\n",
    "tests/test_reduce.py": "import pytest\n\nfrom spyre_inference.reduce import total\n\n\n"
    '@pytest.mark.parametrize("width", [16, 64, 128, 256], ids=lambda w: f"sum(q=1,kv={w})")\n'
    "def test_sum(width):\n    assert total([1] * width) == width\n",
    "conftest.py": "",
    "pyproject.toml": '[project]\nname = "spyre-inference"\nversion = "0"\n\n[tool.pytest.ini_options]\nmarkers = ["upstream: x"]\n',
    "CLAUDE.md": "# A plugin\n",
    ".gitignore": ".venv/\n__pycache__/\n.pytest_cache/\n",
    ".venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py": "aten = None\nregister_torch_compile_kernel([aten.mm])\n",
}
PROBE = "tests/test_reduce.py::test_sum[sum(q=1,kv=128)]"


def make_checkout(top: Path) -> Path:
    """A small plugin repo whose tests need no torch: a reduction that stops at 64."""
    for name, text in QUICK.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    run = ["git", "-c", "user.name=x", "-c", "user.email=x@example.invalid", "-C", str(top)]
    subprocess.run([*run[:1], "init", "-q", str(top)], check=True)
    subprocess.run([*run, "add", "-A"], check=True)
    subprocess.run([*run, "commit", "-qm", "start"], check=True)
    return top


def investigation(top: Path, ours: str):
    """The steps of one ordinary investigation, as an agent takes them; a callable sees what the step before printed."""
    source = top / "spyre_inference/reduce.py"
    return [
        bash(f"{ours} doctor"),
        bash(f"{ours} triage tests/test_reduce.py"),
        bash(f"{ours} open --cluster c1"),
        ("Read", {"file_path": str(top / "tests/test_reduce.py")}),
        ("Read", {"file_path": str(source)}),
        bash(f"{ours} run --as baseline '{PROBE}'"),
        bash(f"{ours} run --as baseline --members"),
        ("Read", {"file_path": str(top / ".venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py")}),
        bash("grep -n 'aten.mm' .venv/lib/python3.12/site-packages/torch_spyre/ops/eager.py | head -5"),
        bash(f"{ours} op aten.mm --package .venv/lib/python3.12/site-packages/torch_spyre"),
        bash(f"{ours} hypothesis seed"),
        bash(f"{ours} hypothesis add 'the sum stops at 64' --test 'a script' --confidence high --cost 5"),
        _start_added(ours),
        bash(
            f"{ours} save repro.py <<'EOF'\nimport sys\nsys.path.insert(0, '.')\n"
            "from spyre_inference.reduce import total\nprint(total([1] * 128))  # `$(x)`\nEOF"
        ),
        lambda request: bash(f"{ours} exec --as cpu-control -- python {shlex.quote(_saved(request))}"),
        bash(f"{ours} run --as verbose --verbose-backend '{PROBE}' -s"),
        ("Edit", {"file_path": str(source), "old_string": "LIMIT = 64", "new_string": "LIMIT = 1024"}),
        bash(f"{ours} run '{PROBE}'"),
        _conclude_added(ours),
        bash(f"{ours} note summary 'the `reduction` stops at 64; $LIMIT is too small & nothing else'"),
        bash("git diff --stat && git status --short"),
        bash(f"{ours} validate --foreground 570", timeout=600000),
        bash(f"{ours} revert"),
        bash(f"{ours} status"),
        bash(f"{ours} close blocked --next 'a person decides on the new limit'"),
    ]


def _saved(request):
    return next(line.split(" ", 1)[1] for line in last_result(request).splitlines() if line.startswith("saved "))


def _number_of_added(request):
    """The number that `hypothesis add` gave."""
    text = json.dumps(request["messages"])
    import re

    found = re.findall(r"#?(\d+)[^\\\"]{0,12}the sum stops at 64", text)
    return found[-1] if found else "1"


def _start_added(ours):
    return lambda request: bash(f"{ours} hypothesis start {_number_of_added(request)} --command 'the script repro.py'")


def _conclude_added(ours):
    return lambda request: bash(
        f"{ours} hypothesis conclude {_number_of_added(request)} confirmed 'with a limit of 1024 the probe passes'"
    )


BUDGET = {"calls": 25, "typed": 1_800, "read": 10_700, "prompts": 0}  # 25, 1,443, 8,554 and 0 measured with 0.2.0
HANDS = ("Bash", "Edit", "Write")  # the tools by which an agent acts; what Read shows counts as read


def figures(outcome):
    """Characters that the agent typed and was shown, its calls, and how many of them the client asked about."""
    return {
        "calls": len(outcome.calls),
        "typed": sum(len(str(v)) for _, tool, given in outcome.calls if tool in HANDS for k, v in given.items() if k != "description"),
        "read": sum(len(text) for text in outcome.results.values()),
        "prompts": len(outcome.denials),
    }  # fmt: skip
