"""The system's Chromium for tests of pages: what a page says, asks for and does wrong.

Where there is none a test is skipped and says so; with OVERSMOOTHING_NEEDS_CHROMIUM, as in
`.ci/run`, it fails instead. axe-core, the accessibility rules, comes inside axe-playwright-python.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DESKTOP, PHONE = (1280, 900), (390, 844)
# Of every picture whether it is there and has words in its place.
LOADED = "() => Array.from(document.images).map((x) => x.naturalWidth > 0 && x.alt.length > 20)"
every_screen = pytest.mark.parametrize("screen", [
    pytest.param({"size": size, "color_scheme": scheme}, id=f"{scheme}-{name}")
    for scheme in ("light", "dark") for name, size in (("desktop", DESKTOP), ("phone", PHONE))
])  # fmt: skip


def chromium() -> str:
    """Its path. Skips the test where there is none, or fails it where one is needed."""
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    said = f"NOT TESTED: no Chromium on PATH ({', '.join(NAMES)}); Debian: apt-get install chromium"
    if os.environ.get("OVERSMOOTHING_NEEDS_CHROMIUM"):
        pytest.fail(said)
    pytest.skip(said)


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    path = chromium()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path)
        try:
            yield launched
        finally:
            launched.close()


@dataclass
class Opened:
    """A page in work, and what went wrong or was asked for while it was."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def faults(self) -> list[str]:
        """Serious and critical faults of accessibility that axe-core finds, with their places."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{rule['id']}: {rule['help']}: {node['html'][:160]}"
            for rule in found
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]

    def readable(self) -> None:
        """No serious fault, nothing wider than the screen, no complaint, no request outside."""
        assert not self.faults()
        width = self.page.evaluate("() => document.documentElement.scrollWidth")
        assert width <= self.page.viewport_size["width"]
        assert not self.complaints and not self.outside()

    def outside(self) -> list[str]:
        """Requests that leave the machine."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]


@contextmanager
def opened(
    chromium: Browser, path: Path, link: str = "", size: tuple[int, int] = DESKTOP, **settings: Any
) -> Iterator[Opened]:
    """The page of a file; motion is reduced unless the settings of the context say otherwise."""
    width, height = size
    context = chromium.new_context(
        viewport={"width": width, "height": height}, **{"reduced_motion": "reduce"} | settings
    )
    page = context.new_page()
    work = Opened(page)
    page.on("console", lambda message: message.type in ("error", "warning")
            and work.complaints.append(message.text))  # fmt: skip
    page.on("pageerror", lambda error: work.complaints.append(str(error)))
    page.on("request", lambda request: work.requests.append(request.url))
    page.on("requestfailed", lambda request: work.complaints.append(f"failed: {request.url}"))
    try:
        page.goto(path.resolve().as_uri() + link)
        yield work
    finally:
        context.close()
