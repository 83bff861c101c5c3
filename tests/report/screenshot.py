"""A picture of a run's report, as for a README: python -m tests.report.screenshot RUN OUT.png [SELECTOR] [dark]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal

from selenium.webdriver.common.by import By

from emu.report import write_report
from tests.report.browser import Scheme, chromium, look, picture, visit

WAYS: dict[str, Literal["light", "dark"]] = {"light": "light", "dark": "dark"}


def screenshot(run: Path, out: Path, selector: str = "#fabric", scheme: Scheme = "light") -> Path:
    """Write a PNG of a part of a run's report, the fabric in its last step."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        look(browser, scheme)
        visit(browser, write_report([run], Path(folder) / "report.html"))
        browser.execute_script("document.getElementById('scheme').scrollIntoView()")
        last = int(browser.find_element(By.ID, "step").get_attribute("max") or 0)
        for _ in range(last):
            browser.find_element(By.ID, "step-on").click()
        browser.execute_async_script("setTimeout(arguments[0], 1200)")  # until new circuits have appeared
        return picture(browser, out, selector)


if __name__ == "__main__":
    run, out, *more = sys.argv[1:]
    wanted = next((WAYS[word] for word in more if word in WAYS), "light")
    screenshot(Path(run), Path(out), next((word for word in more if word not in WAYS), "#fabric"), wanted)
