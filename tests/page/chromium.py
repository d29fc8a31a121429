"""A headless Chromium driven over its pipe, with the standard library only: load a page, ask it, look at it."""

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --disable-dev-shm-usage --hide-scrollbars "
    "--force-color-profile=srgb --font-render-hinting=none --remote-debugging-pipe about:blank"
).split()
SCREEN = {"mobile": False, "deviceScaleFactor": 1}


def find_chromium():
    """The browser's path, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One browser process with a profile of its own."""

    def __init__(self, path):
        self._profile = tempfile.mkdtemp(prefix="chromium-profile-")
        ours, theirs = os.pipe(), os.pipe()
        self._read, self._write = theirs[0], ours[1]
        words = [path, *FLAGS, f"--user-data-dir={self._profile}"]
        script = f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        environment = {**os.environ, "HOME": self._profile, "LANG": "C.UTF-8", "TZ": "UTC"}
        self._process = subprocess.Popen(
            ["bash", "-c", script, "chromium", *words],
            pass_fds=(ours[0], theirs[1]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events = []
        self.call("Browser.getVersion")

    def close(self):
        """End the browser's process group."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method, session=None, timeout=150, **params):
        """One command; returns its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        end = time.monotonic() + timeout
        while True:
            answer = self._next(end)
            if answer is None:
                raise TimeoutError(f"{method} gave no answer in {timeout} s")
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self, end):
        """The next message; events are kept. None when the time is over."""
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                return None
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has gone")
            self._buffer += chunk
        raw, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(raw)
        if "method" in message:
            self.events.append(message)
        return message

    def pump(self, seconds):
        """Take in events for a while."""
        end = time.monotonic() + seconds
        while self._next(end) is not None:
            pass

    def open(self, address, **more):
        """A tab on that address, loaded."""
        return Tab(self, address, **more)


class Tab:
    """One tab. `requests`: addresses asked for; `errors`: what the console and scripts complained about."""

    def __init__(self, browser, address, *, width=1400, height=900, dark=False, scripts=True, media=None):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM", "CSS", "Accessibility"):
            self.call(f"{domain}.enable")
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.size(width, height)
        self.look(dark=dark, media=media)
        self.go(address)

    def call(self, method, **params):
        """One command to this tab."""
        return self.browser.call(method, session=self.session, **params)

    def size(self, width, height):
        """Set the window's inner size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, **SCREEN)

    def look(self, *, dark=False, media=None, forced=False):
        """Colour scheme and medium."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        features.append({"name": "forced-colors", "value": "active" if forced else "none"})
        self.call("Emulation.setEmulatedMedia", media=media or "", features=features)

    def go(self, address):
        """Load an address and wait until it is loaded."""
        seen = len(self._events("Page.loadEventFired"))
        self.call("Page.navigate", url=str(address))
        self.wait(lambda: len(self._events("Page.loadEventFired")) > seen)

    def wait(self, test, seconds=90):
        """Until the test holds.

        Raises:
            TimeoutError: it doesn't in that time.
        """
        end = time.monotonic() + seconds
        while not self._holds(test):
            if time.monotonic() > end:
                raise TimeoutError("it did not come true")
            self.browser.pump(0.05)

    def _holds(self, test):
        try:
            return test()
        except RuntimeError as error:  # the page was exchanged while it was asked
            if "navigated" in str(error) or "context" in str(error):
                return False
            raise

    def ask(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def _events(self, method):
        return [
            e["params"] for e in self.browser.events if e["method"] == method and e.get("sessionId") == self.session
        ]

    @property
    def loads(self):
        """How often a page was loaded here."""
        return len(self._events("Page.loadEventFired"))

    @property
    def requests(self):
        """All addresses that were asked for."""
        return [e["request"]["url"] for e in self._events("Network.requestWillBeSent")]

    @property
    def errors(self):
        """Exceptions, console errors, security complaints."""
        found = [e["exceptionDetails"] for e in self._events("Runtime.exceptionThrown")]
        found += [e for e in self._events("Runtime.consoleAPICalled") if e["type"] in {"error", "assert", "warning"}]
        return found + [
            e["entry"] for e in self._events("Log.entryAdded") if e["entry"]["level"] in {"error", "warning"}
        ]

    @property
    def dialogs(self):
        """alert() and friends."""
        return self._events("Page.javascriptDialogOpening")

    def shoot(self, path, *, whole=False):
        """A screenshot."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))
        return path

    def close(self):
        """Close the tab."""
        self.browser.call("Target.closeTarget", targetId=self.target)
