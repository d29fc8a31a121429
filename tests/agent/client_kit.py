"""Drives the real Claude Code client against a stand-in for the model on loopback, which replays scripted tool calls.

The client comes from npm into a folder outside git; nothing but the loopback address is reached while it runs.
"""

import json
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "@anthropic-ai/claude-code"
DONE = "That was all."


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
        return self._json(_message(request, content, "end_turn"))

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
        self._event("message_start", message=_message(request, [], None))
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
        self._event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 5})
        self._event("message_stop")
        self.close_connection = True

    def _event(self, kind, **fields):
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())
        self.wfile.flush()


def _message(request, content, stop):
    return {
        "id": "msg_1",
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

    def __init__(self, events, requests, stderr, code):
        self.events = events
        self.requests = requests
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
        self.denials = [d["tool_use_id"] for d in self.final.get("permission_denials") or ()]

    def result(self, number):
        return self.results.get(self.calls[number][0], "")

    def verdict(self, number):
        """What the person would see: ran, or the client asked (and nobody was there), or the rule refused."""
        call = self.calls[number][0]
        text = self.results.get(call, "")
        if (
            "debug-spyre " in text
            and ("hook" in text.lower() or text.startswith("debug-spyre "))
            and call in self.denials
        ):
            return "denied"
        return "asked" if call in self.denials else "ran"

    def texts(self):
        """All text that the model was given in the last request."""
        return json.dumps(self.requests[-1]["messages"], ensure_ascii=False) if self.requests else ""


def _parts(event):
    content = (event.get("message") or {}).get("content")
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
        model = Model(steps)
        command = [*prefix, str(self.binary), "-p", prompt, "--output-format", "stream-json", "--verbose"]
        command += ["--permission-mode", mode, "--include-hook-events", *args]
        try:
            done = subprocess.run(
                command,
                cwd=self.checkout,
                env=self.environment(model, env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        finally:
            model.shutdown()
            model.server_close()
        events = []
        for line in done.stdout.splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                continue
        return Outcome(events, model.requests, done.stderr, done.returncode)
