"""Reports in a real browser: no complaint, no request, every view drawn, steps that step, zooming that zooms."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from emu.report import write_report
from tests.report import examples
from tests.report.browser import chromium, complaints, look, picture, requests, visit

MAX_BYTES = 12_000_000
BARS = "#timeline-plot .bars .point"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def optical(folder: Path) -> Path:
    """A page on a run with circuits and collectives, two repeats, and its run directory beside it."""
    return write_report([examples.optical(folder)], folder / "optical.html")


@pytest.fixture(scope="module")
def many(folder: Path) -> Path:
    return write_report([examples.many(folder)], folder / "many.html")


def count(browser: Chrome, selector: str) -> int:
    return len(browser.find_elements(By.CSS_SELECTOR, selector))


def run(browser: Chrome, script: str) -> Any:  # noqa: ANN401 - whatever the script returns
    return browser.execute_script(f"return {script}")


def press(browser: Chrome, box: str, label: str) -> None:
    """Press the button of that label in a group of choices."""
    buttons = browser.find_elements(By.CSS_SELECTOR, f"{box} button")
    button = next(each for each in buttons if each.text == label)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", button)


def step_to(browser: Chrome, step: int) -> None:
    browser.execute_script(
        "const slider = document.getElementById('step'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input'))",
        step,
    )


def circuits(browser: Chrome) -> set[str]:
    """The circuits that are drawn as lit."""
    arcs = browser.find_elements(By.CSS_SELECTOR, "#drawing .circuit:not(.dark)")
    return {str(arc.get_attribute("data-circuit")) for arc in arcs}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_loads_without_complaint_or_request(browser: Chrome, optical: Path, scheme: Any) -> None:  # noqa: ANN401
    look(browser, scheme)
    visit(browser, optical)
    assert complaints(browser) == []
    assert requests(browser) == [optical.resolve().as_uri()]
    light = run(browser, "getComputedStyle(document.body).backgroundColor") == "rgb(247, 248, 250)"
    assert light == (scheme == "light")


def test_every_view_draws(browser: Chrome, optical: Path) -> None:
    look(browser)
    visit(browser, optical)
    assert browser.find_element(By.CSS_SELECTOR, "#verdict h1").text == "VALID"
    assert count(browser, "#verdict .card") == 2
    assert count(browser, "#drawing .node.host") == 16
    assert count(browser, "#drawing .node.ocs .port") == 8
    assert count(browser, "#drawing .cable") == 2 * (16 + 8)
    assert count(browser, BARS) > 500
    assert count(browser, "#phases .bullet .measured") == 4
    assert count(browser, "#fct-plot .scatterlayer .trace") == 2
    assert count(browser, "#slowdown-plot .scatterlayer .trace") == 4
    assert count(browser, "#sweep-plot .scatterlayer .trace") == 2
    assert count(browser, "#links-plot .point") == 2 * (16 + 16 + 16) + 2 * (16 + 8)
    assert count(browser, "#dark-plot .point") == 4 * 2
    assert count(browser, "#collectives-table tbody tr") == 10
    assert count(browser, "#circuits-table tbody tr") == 28


def test_steps_change_the_circuits(browser: Chrome, optical: Path) -> None:
    """Whole run, epoch 0, the change, epoch 1: a ring of four pods, then a line; t0-t1 is kept."""
    look(browser)
    visit(browser, optical)
    found = []
    for step in range(4):
        step_to(browser, step)
        label = browser.find_element(By.ID, "step-label").text
        found.append((label, len(circuits(browser)), count(browser, "#drawing .circuit.dark")))
    assert found == [("whole run", 12, 0), ("epoch 0", 8, 0), ("change to epoch 1", 2, 6), ("epoch 1", 6, 0)]
    assert count(browser, "#drawing .circuit.new") == 4  # those that the change left dark appear


def test_steps_change_the_load_of_links(browser: Chrome, optical: Path) -> None:
    look(browser)
    visit(browser, optical)
    colours = "[...document.querySelectorAll('#drawing .cable')].map((line) => line.style.stroke).join()"
    seen = set()
    for step in (0, 1, 3):
        step_to(browser, step)
        seen.add(run(browser, colours))
    assert len(seen) == 3


def test_buttons_and_play_step_too(browser: Chrome, optical: Path) -> None:
    look(browser)
    visit(browser, optical)
    browser.find_element(By.ID, "step-on").click()
    assert browser.find_element(By.ID, "step-label").text == "epoch 0"
    browser.find_element(By.ID, "step-play").click()
    WebDriverWait(browser, 20, 0.1).until(lambda it: it.find_element(By.ID, "step-label").text == "epoch 1")
    press(browser, "#fabric-groups", "By phase")
    assert browser.find_element(By.ID, "step-label").text == "whole run"
    assert run(browser, "document.getElementById('step').max") == "2"


def test_another_fabric_or_repeat_is_drawn_when_it_is_chosen(browser: Chrome, optical: Path) -> None:
    look(browser)
    visit(browser, optical)
    press(browser, "[data-views=fabric]", "fat-tree, repeat 2")
    assert count(browser, "#drawing .node.ocs") == 0
    assert count(browser, "#drawing .node") == 36
    before = count(browser, BARS)
    press(browser, "[data-views=timeline]", "fat-tree, repeat 1")
    WebDriverWait(browser, 20, 0.1).until(lambda it: count(it, BARS) != before)


def test_the_timeline_zooms(browser: Chrome, optical: Path) -> None:
    look(browser)
    visit(browser, optical)
    plot = browser.find_element(By.CSS_SELECTOR, "#timeline-plot .nsewdrag")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    script = "document.getElementById('timeline-plot').layout.xaxis.range"
    whole = run(browser, script)
    actions = ActionChains(browser)
    actions.move_to_element_with_offset(plot, -200, 0).click_and_hold().move_by_offset(120, 0).release().perform()
    WebDriverWait(browser, 20, 0.1).until(lambda it: run(it, script)[1] < whole[1])
    low, high = run(browser, script)
    assert whole[0] < low < high < whole[1]


def test_flows_are_shown_by_phase(browser: Chrome, optical: Path) -> None:
    look(browser)
    visit(browser, optical)
    everything = browser.find_element(By.ID, "flow-facts").text
    press(browser, "#flow-phases", "training")
    assert browser.find_element(By.ID, "flow-facts").text != everything


def test_tables_sort_by_number(browser: Chrome, optical: Path) -> None:
    look(browser)
    visit(browser, optical)
    press(browser, "#collectives-table", "size")
    sizes = [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, "#collectives-table td:nth-child(5)")]
    assert sizes == ["20 GiB"] * 2 + ["8 GiB"] * 2 + ["4 GiB"] * 2 + ["2 GiB"] * 2 + ["1 GiB"] * 2
    press(browser, "#collectives-table", "size")
    assert browser.find_element(By.CSS_SELECTOR, "#collectives-table td:nth-child(5)").text == "1 GiB"


def test_the_scheme_can_be_chosen(browser: Chrome, optical: Path) -> None:
    look(browser, "light")
    visit(browser, optical)
    button, ground = browser.find_element(By.ID, "scheme"), "getComputedStyle(document.body).backgroundColor"
    grounds = [run(browser, ground)]
    for _ in range(3):
        button.click()
        grounds.append(run(browser, ground))
    light, dark = "rgb(247, 248, 250)", "rgb(13, 17, 23)"
    assert grounds == [light, light, dark, light]


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_nothing_is_wider_than_the_window(browser: Chrome, optical: Path, width: int) -> None:
    look(browser, width=width)
    visit(browser, optical)
    assert run(browser, "document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("make", [examples.flows_only, examples.electrical, examples.nothing, examples.doubtful])
def test_runs_that_lack_something_have_a_page_that_works(browser: Chrome, folder: Path, make: Any) -> None:  # noqa: ANN401
    look(browser)
    visit(browser, write_report([make(folder)], folder / f"{make.__name__}.html"))
    assert complaints(browser) == []
    assert len(requests(browser)) == 1
    assert "undefined" not in browser.find_element(By.TAG_NAME, "main").text
    assert "NaN" not in browser.find_element(By.TAG_NAME, "main").text


def test_runs_are_compared_on_one_page(browser: Chrome, optical: Path, folder: Path) -> None:
    runs = [optical.with_suffix(""), examples.optical(folder, "second")]
    look(browser)
    visit(browser, write_report(runs, folder / "comparison.html"))
    assert complaints(browser) == []
    assert browser.title.startswith("comparison of 2 runs")
    assert count(browser, "#verdict .card") == 4
    assert count(browser, "#phases .bullet .measured") == 2 * 4
    assert count(browser, "#fct-plot .scatterlayer .trace") == 4


# -- 100 000 flows ---------------------------------------------------------------------------------------------------


def test_a_hundred_thousand_flows_still_answer(browser: Chrome, many: Path) -> None:
    """The bounds are generous, since others may use the machine; none is near the minute that a naive page takes."""
    assert many.stat().st_size < MAX_BYTES
    look(browser)
    began = time.monotonic()
    visit(browser, many)
    assert time.monotonic() - began < 30
    assert complaints(browser) == []
    assert count(browser, "#timeline-plot .heatmaplayer image") == 1
    assert "100000 flows are too many to draw" in browser.find_element(By.ID, "timeline-note").text
    assert count(browser, "#drawing .node.hosts") == 32
    began = time.monotonic()
    step_to(browser, 1)
    browser.execute_script("Plotly.relayout('timeline-plot', {'xaxis.range': [0.1, 0.2]})")
    press(browser, "#flow-phases", "generation")
    assert browser.find_element(By.ID, "step-label").text == "generation"
    assert time.monotonic() - began < 10


def test_a_picture_can_be_taken(browser: Chrome, optical: Path, tmp_path: Path) -> None:
    look(browser)
    visit(browser, optical)
    assert picture(browser, tmp_path / "fabric.png", "#fabric").read_bytes().startswith(b"\x89PNG")
