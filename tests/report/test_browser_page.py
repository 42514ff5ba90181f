"""Whole pages in a real browser: themes, narrow screens, long and hostile names, many nodes."""

from pathlib import Path

import numpy as np
import pytest
from browser_cases import OVERLAPS, needs_browser, on_map, pixels, pointer, screen, show, still
from report_cases import bare_record, hostile_record, long_record, run_record
from selenium import webdriver
from selenium.webdriver.common.by import By

from muxgcl.report import compare, write_report
from muxgcl.report import node_map as nodes
from muxgcl.report import project as layout

pytestmark = [pytest.mark.browser, needs_browser]


def test_the_theme_follows_the_system_and_the_button(
    browser: webdriver.Chrome, report: Path
) -> None:
    def light() -> list[bool]:
        still(browser)
        body = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        corner = "return Array.from(map.picture.data.slice(0, 3))"
        return [sum(on_map(browser, script)) > 380 for script in (body, corner)]

    for scheme, other in (("light", "Dark"), ("dark", "Light")):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        show(browser, report)
        assert light() == [scheme == "light"] * 2
        button = browser.find_element(By.ID, "theme")
        assert button.text == other
        button.click()
        assert light() == [scheme == "dark"] * 2
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_hostile_names_stay_names(browser: webdriver.Chrome, tmp_path: Path) -> None:
    write_report(hostile_record(), tmp_path / "report.html")
    show(browser, tmp_path / "report.html")
    on_map(browser, "map.on.choose(3); map.hover(3)")
    box = browser.find_element(By.ID, "search")
    box.send_keys("</script><img")
    for option in browser.find_elements(By.CSS_SELECTOR, "#colour option")[:-1]:
        option.click()
    assert browser.execute_script("return typeof hacked") == "undefined"
    assert browser.find_elements(By.TAG_NAME, "img") == []
    # asked there: the driver cannot carry half a character
    chosen = "return document.querySelector('.chosen .name').textContent.startsWith(arguments[0])"
    assert browser.execute_script(chosen, '</script><img src=x onerror="hacked=1">')


@pytest.mark.parametrize("width", [420, 1280])
def test_nothing_is_wider_than_the_screen(
    width: int, browser: webdriver.Chrome, report: Path, tmp_path: Path
) -> None:
    compare([run_record(), run_record(seed=1)], tmp_path / "compare.html")
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    for path in (report, tmp_path / "compare.html"):
        show(browser, path)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("classes", [4, 15, 40])
def test_labels_of_a_confusion_matrix_can_be_read(
    width: int, classes: int, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    write_report(long_record(classes), tmp_path / "report.html")
    with screen(browser, width):
        show(browser, tmp_path / "report.html")
        sizes = browser.execute_script(
            "return [...document.querySelectorAll('#confusion text')]"
            ".filter((e) => /[A-Z0-9]/.test(e.textContent))"
            ".map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)"
        )
        assert len(sizes) >= classes
        if classes > 8:  # few classes have slanted names, whose boxes say nothing
            assert min(sizes) >= 8
            assert browser.execute_script(OVERLAPS, "#confusion text") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_of_columns_leave_room_for_their_values(
    width: int, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    write_report(long_record(), tmp_path / "report.html")
    with screen(browser, width):
        show(browser, tmp_path / "report.html")
        on_map(browser, "map.on.choose(5)")
        every = (
            "return [...document.querySelectorAll('%s')].map((e) => e.getBoundingClientRect().%s)"
        )
        assert min(browser.execute_script(every % ("#chosen dd", "width"))) >= 100
        assert browser.execute_script(OVERLAPS, "#chosen dt, #chosen dd") == []
        beside = "const s = document.querySelector('.side'); return s.scrollWidth - s.clientWidth"
        assert browser.execute_script(beside) <= 0
        counts = browser.execute_script(every % (".legend small", "right"))
        assert max(counts) <= max(browser.execute_script(every % (".side", "right")))


def test_a_bare_report_opens(browser: webdriver.Chrome, tmp_path: Path) -> None:
    write_report(bare_record(), tmp_path / "report.html")
    show(browser, tmp_path / "report.html")
    assert browser.find_element(By.ID, "left-out").is_displayed()


def test_twenty_thousand_nodes_are_drawn(
    browser: webdriver.Chrome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = np.random.default_rng(0).random((20_000, 2), np.float32)
    monkeypatch.setattr(nodes, "maps", lambda rows: [layout.Map("PCA", "", places)])
    write_report(run_record(20_000, 32), tmp_path / "report.html")
    show(browser, tmp_path / "report.html")
    seen = pixels(browser)
    assert (np.abs(seen - seen[0]).max(1) > 20).sum() > 100_000
    node = int(on_map(browser, "return map.at(map.width / 2, map.height / 2)"))
    assert node >= 0
    pointer(browser, node, click=True)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".near li")) == 10
