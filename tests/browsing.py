"""A real Chromium, and all that a page says and asks in it."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from attrs import field, frozen
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, sync_playwright

Scheme = Literal["light", "dark"]

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
_LIMIT_MS = 20_000
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


@frozen(kw_only=True)
class Shown:
    """A page that is open. `requests`: every address it asked for. `complaints`: dialogs, errors and warnings."""

    page: Page
    requests: list[str] = field(factory=list[str])
    complaints: list[str] = field(factory=list[str])

    @property
    def violations(self) -> list[str]:
        """The directives of the page's policy that something ran against."""
        found: list[str] = self.page.evaluate("window.violations")
        return found

    def text(self, selector: str) -> str:
        """The text of an element as it is in the page, seen or not."""
        return self.page.locator(selector).text_content() or ""

    @property
    def chosen(self) -> str:
        """The line of the list that is chosen."""
        return " ".join(self.page.locator(".row.chosen span").all_text_contents())

    @property
    def state(self) -> str | None:
        """The state that is lit in the diagram."""
        return self.page.locator("#machine svg rect.here").get_attribute("data-state")

    def wait(self, condition: str) -> None:
        """Wait until a condition in JavaScript holds; after 20 seconds it fails."""
        self.page.evaluate(
            """([given, limit]) => new Promise((done, fail) => {
              const holds = eval(`() => ${given}`);
              setTimeout(() => fail(new Error(`it never came to hold that ${given}`)), limit);
              const look = () => (holds() ? done() : setTimeout(look, 20));
              look();
            })""",
            [condition, _LIMIT_MS],
        )

    def settle(self) -> None:
        """Let what was asked for be drawn."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is, and let the page be drawn."""
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()


@contextmanager
def browser() -> Generator[Browser]:
    """A Chromium without a window. Where there is none the test is skipped; in CI it fails."""
    found = next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium is installed: apt-get install chromium")
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def context(browser: Browser, *, width: int = 1400, scheme: Scheme = "light") -> Generator[BrowserContext]:
    """A fresh profile, with a window of `width` pixels and a colour scheme."""
    opened = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened.set_default_timeout(_LIMIT_MS)
    try:
        yield opened
    finally:
        opened.close()


def show(context: BrowserContext, address: str | Path) -> Shown:
    """Open a page, and wait until it can be used."""
    shown = Shown(page=context.new_page())
    page = shown.page
    page.add_init_script(_WATCH)

    def on_dialog(dialog: Dialog) -> None:
        shown.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            shown.complaints.append(f"{message.type}: {message.text}")

    page.on("request", lambda request: shown.requests.append(request.url))
    page.on("dialog", on_dialog)
    page.on("console", on_console)
    page.on("pageerror", lambda error: shown.complaints.append(f"exception: {error}"))
    page.on("popup", lambda opened: shown.complaints.append(f"popup: {opened.url}"))
    page.goto(address.as_uri() if isinstance(address, Path) else address)
    page.wait_for_selector("body[data-ready]")
    shown.settle()
    return shown
