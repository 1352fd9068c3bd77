"""A real headless Chromium, driven over the DevTools protocol: pages from disk, real pointer and keyboard events."""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


def executable() -> str | None:
    """Chromium as Debian and others name it."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


class Page:
    """One tab. Everything waits until the page's own next frame was drawn."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.requests: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        """Remembers errors of the page and what it asked of the network."""
        method, told = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.problems.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> None:
        """Until the expression is true; fails, with what the page complained of, when it never is."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}; the page says: {self.problems}"
            time.sleep(0.02)

    def open(self, path: Path, fragment: str = "") -> None:
        """Loads a file and waits until all of it was drawn."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.as_uri() + fragment)
        self.wait("document.documentElement?.dataset.drawn === 'all'")
        self.settle()

    def settle(self) -> None:
        """Two screen frames and whatever they queued."""
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20))))"
        )

    def place(self, selector: str, across: float = 0.5, up: float = 0.5) -> tuple[float, float]:
        """Scrolls an element into sight; a point in it, as shares of its width and height from the lower left."""
        box = self.evaluate(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center", behavior: "instant"}}); const b = e.getBoundingClientRect();
            return [b.left, b.top, b.width, b.height]; }})()""")
        left, top, width, height = box
        return left + width * across, top + height * (1 - up)

    def pointer(self, kind: str, x: float, y: float, pressed: bool = False, clicks: int = 1) -> None:
        self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button="left" if kind != "mouseMoved" or pressed else "none",
            buttons=int(pressed),
            clickCount=clicks,
        )

    def move(self, selector: str, across: float, up: float) -> None:
        self.pointer("mouseMoved", *self.place(selector, across, up))
        self.settle()

    def click(self, selector: str, across: float = 0.5, up: float = 0.5, clicks: int = 1) -> None:
        x, y = self.place(selector, across, up)
        self.pointer("mouseMoved", x, y)
        for click in range(1, clicks + 1):
            self.pointer("mousePressed", x, y, True, click)
            self.pointer("mouseReleased", x, y, False, click)
        self.settle()

    def drag(self, selector: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """From one point of an element to another, as shares from its lower left."""
        (x0, y0), (x1, y1) = self.place(selector, *start), self.place(selector, *end)
        self.pointer("mouseMoved", x0, y0)
        self.pointer("mousePressed", x0, y0, True)
        for step in range(1, 9):
            self.pointer("mouseMoved", x0 + (x1 - x0) * step / 8, y0 + (y1 - y0) * step / 8, True)
        self.pointer("mouseReleased", x1, y1)
        self.settle()

    def pinch(self, selector: str, before: tuple[float, float], after: tuple[float, float]) -> None:
        """Two fingers from two places to two others, as shares of an element's width."""
        for step in range(9):
            places = [self.place(selector, b + (a - b) * step / 8) for b, a in zip(before, after, strict=True)]
            self.call(
                "Input.dispatchTouchEvent",
                type="touchMove" if step else "touchStart",
                touchPoints=[{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)],
            )
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def wheel(self, selector: str, across: float, delta: float) -> None:
        x, y = self.place(selector, across)
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)
        self.settle()

    def press(self, *keys: str) -> None:
        for key in keys:
            text = key if len(key) == 1 else "\r" if key == "Enter" else ""
            code = _KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.settle()

    def size(self, width: int, height: int, *, phone: bool = False, ratio: float = 1.0) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=phone
        )
        self.settle()

    def theme(self, name: str) -> None:
        """`light` or `dark`, as the system would ask for."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.settle()

    def sight(self, deficiency: str) -> None:
        """How colour-blind eyes see: `none`, `achromatopsia`, `deuteranopia`, ..."""
        self.call("Emulation.setEmulatedVisionDeficiency", type=deficiency)
        self.settle()

    def screenshot(self, target: Path, *, whole: bool = True) -> None:
        self.evaluate("scrollTo(0, 0)")
        self.settle()
        target.parent.mkdir(parents=True, exist_ok=True)
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        target.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def chromium(program: str) -> Iterator[Page]:
    """A browser of its own, with its own empty profile and no network to reach."""
    with tempfile.TemporaryDirectory(prefix="blockyard-chromium-", ignore_cleanup_errors=True) as profile:
        # As root, and in most containers, Chromium's own sandbox can't be set up.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            [
                program,
                "--headless=new",
                *sandbox,
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--mute-audio",
                "--disable-dev-shm-usage",
                "--proxy-server=127.0.0.1:9",
                "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                "--window-size=1440,1000",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with connect(
                _address(Path(profile) / "DevToolsActivePort", process), max_size=None, compression=None
            ) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(file: Path, process: subprocess.Popen) -> str:
    end = time.monotonic() + 60
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < end:
        assert process.poll() is None, f"Chromium ended at once with code {process.returncode}"
        with contextlib.suppress(OSError, ValueError, IndexError):
            port = int(file.read_text().split()[0])
            with direct.open(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            return tabs[0]["webSocketDebuggerUrl"]
        time.sleep(0.05)
    raise AssertionError("Chromium did not open its debugging port within a minute")
