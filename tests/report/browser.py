"""A real headless Chromium without a network, that keeps what a page asks for and complains of."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

Scheme = Literal["light", "dark"]


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Debian's Chromium, driven by the chromedriver that belongs to it."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert program, "install Debian's chromium"
    assert driver, "install Debian's chromium-driver"
    options = ChromeOptions()
    options.binary_location = program
    offline = "--host-resolver-rules=MAP * ~NOTFOUND"
    for argument in (
        offline,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()


def look(browser: Chrome, scheme: Scheme = "light", width: int = 1280, height: int = 900) -> None:
    """Give the browser's window a size in CSS pixels, and its pages a colour scheme."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def visit(browser: Chrome, page: Path, seconds: float = 60) -> None:
    """Open a report and wait until it says that all is drawn."""
    browser.get_log("performance")  # what earlier pages asked for
    browser.get_log("browser")
    browser.get(page.resolve().as_uri())
    WebDriverWait(browser, seconds, 0.1).until(
        lambda it: it.execute_script("return document.documentElement.dataset.ready")
    )


def complaints(browser: Chrome) -> list[str]:
    """What the console of the page has said."""
    return [entry["message"] for entry in browser.get_log("browser")]


def requests(browser: Chrome) -> list[str]:
    """Every address that was asked for since the last visit, other than data that the page holds itself."""
    events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [url for url in asked if not url.startswith(("data:", "blob:"))]


def picture(browser: Chrome, out: Path, selector: str = "") -> Path:
    """Write a PNG of the whole page, or of the first element that a CSS selector finds."""
    clip: dict[str, Any] = browser.execute_script(
        "const chosen = arguments[0] ? document.querySelector(arguments[0]) : document.documentElement;"
        "const box = chosen.getBoundingClientRect();"
        "return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height, scale: 1};",
        selector,
    )
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    out.write_bytes(base64.b64decode(shot["data"]))
    return out
