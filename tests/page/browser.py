"""A headless Chromium of Debian's, driven by Playwright: pages from disk, real pointer and keyboard events."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright


def executable() -> str | None:
    """Chromium as Debian and others name it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Page:
    """One tab. Everything waits until the page's own next frame was drawn; places are shares of an element's width and
    height from its lower left."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._devtools = tab.context.new_cdp_session(tab)
        self.call = lambda method, **given: self._devtools.send(method, given)
        self.problems: list[str] = []
        self.requests: list[str] = []
        tab.set_default_timeout(60_000)
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        tab.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        tab.on("request", lambda request: self.requests.append(request.url))

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        return self._tab.evaluate(expression)

    def wait(self, expression: str) -> None:
        """Until the expression is true; fails when it never is."""
        self._tab.wait_for_function(expression)

    def open(self, path: Path, fragment: str = "") -> None:
        """Loads a file and waits until all of it was drawn."""
        self._tab.goto("about:blank")
        self._tab.goto(path.as_uri() + fragment)
        self.wait("document.documentElement?.dataset.drawn === 'all'")
        self.settle()

    def settle(self) -> None:
        """Two screen frames and whatever they queued."""
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20))))"
        )

    def place(self, selector: str, across: float = 0.5, up: float = 0.5) -> tuple[float, float]:
        """Scrolls an element into sight; a point in it."""
        left, top, width, height = self._tab.eval_on_selector(
            selector,
            """e => { e.scrollIntoView({block: "center", behavior: "instant"}); const b = e.getBoundingClientRect();
            return [b.left, b.top, b.width, b.height]; }""",
        )
        return left + width * across, top + height * (1 - up)

    def move(self, selector: str, across: float, up: float) -> None:
        self._tab.mouse.move(*self.place(selector, across, up))
        self.settle()

    def click(self, selector: str, across: float = 0.5, up: float = 0.5, clicks: int = 1) -> None:
        self._tab.mouse.click(*self.place(selector, across, up), click_count=clicks)
        self.settle()

    def drag(self, selector: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        begin, target = self.place(selector, *start), self.place(selector, *end)
        mouse = self._tab.mouse
        mouse.move(*begin)
        mouse.down()
        mouse.move(*target, steps=8)
        mouse.up()
        self.settle()

    def pinch(self, selector: str, before: tuple[float, float], after: tuple[float, float]) -> None:
        """Two fingers from two places to two others."""
        for step in range(9):
            places = [self.place(selector, b + (a - b) * step / 8) for b, a in zip(before, after, strict=True)]
            touches = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
            kind = "touchMove" if step else "touchStart"
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=touches)
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def wheel(self, selector: str, across: float, delta: float) -> None:
        self._tab.mouse.move(*self.place(selector, across))
        self._tab.mouse.wheel(0, delta)
        self.settle()

    def focus(self, selector: str) -> None:
        self._tab.focus(selector)
        self.settle()

    def fill(self, name: str, value: object) -> None:
        """The field of this id, as who writes, or picks the first choice that begins so."""
        self.evaluate(f"""(() => {{ const field = document.getElementById('{name}'), choices = field.options;
            field.value = choices ? [...choices].find(one => one.value.startsWith('{value}')).value : '{value}';
            field.dispatchEvent(new Event(choices ? 'change' : 'input')); }})()""")
        self.settle()

    def text(self, name: str) -> str:
        """Of the element with this id."""
        return self.evaluate(f"document.getElementById('{name}').textContent")

    def picture(self, selector: str) -> str:
        """The pixels of a chart."""
        return self.evaluate(f"document.querySelector('{selector}').toDataURL()")

    def link(self) -> str:
        """To what is shown, which the page writes a moment later."""
        return self.evaluate("new Promise(done => setTimeout(() => done(location.hash), 300))")

    def press(self, *keys: str) -> None:
        for key in keys:
            self._tab.keyboard.press(key)
        self.settle()

    def size(self, width: int, height: int, *, phone: bool = False, ratio: float = 1.0) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.settle()

    def theme(self, name: str) -> None:
        """`light` or `dark`, as the system would ask for."""
        self._tab.emulate_media(color_scheme=name)
        self.settle()

    def sight(self, deficiency: str) -> None:
        """How colour-blind eyes see: `none`, `achromatopsia`, `deuteranopia`, ..."""
        self.call("Emulation.setEmulatedVisionDeficiency", type=deficiency)
        self.settle()

    def screenshot(self, target: Path, *, whole: bool = True) -> None:
        self.evaluate("scrollTo(0, 0)")
        self.settle()
        self._tab.screenshot(path=target, full_page=whole)


@contextlib.contextmanager
def chromium(program: str) -> Iterator[Page]:
    """A browser of its own, with its own empty profile and no network to reach."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--disable-gpu", "--hide-scrollbars"], proxy={"server": "127.0.0.1:9"}
        )
        may = ["clipboard-read", "clipboard-write"]
        yield Page(browser.new_page(viewport={"width": 1440, "height": 1000}, permissions=may))
        browser.close()
