"""The map of a report in a real browser: it draws, and answers to pointer and keys."""

from pathlib import Path

import numpy as np
import pytest
from browser_cases import alone, needs_browser, on_map, pixels, pointer, show, still, text
from report_cases import NAMES, run_record
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from muxgcl.report import RunRecord, compare
from muxgcl.report import node_map as nodes

pytestmark = [pytest.mark.browser, needs_browser]


def test_the_map_draws_dots_of_every_label(browser: webdriver.Chrome, report: Path) -> None:
    show(browser, report)
    seen = pixels(browser)
    background = seen[0]
    dots = seen[(np.abs(seen - background) > 40).any(1)]
    assert 240 * 5 < len(dots) < 240 * 120  # 240 dots of a few pixels each
    for colour in ((0x44, 0x88, 0xCC), (0xEE, 0xAA, 0x11), (0x11, 0x99, 0x66), (0xDD, 0x11, 0x44)):
        blended = 0.85 * np.array(colour) + 0.15 * background
        assert (np.abs(dots - blended).max(1) < 6).sum() > 100


def test_hover_names_the_node_and_leaving_takes_it_back(
    browser: webdriver.Chrome, report: Path, record: RunRecord
) -> None:
    show(browser, report)
    node = alone(browser)
    pointer(browser, node)
    assert text(browser, "tip").splitlines()[:2] == [
        f"n{node}",
        f"label: {NAMES[record.labels[node]]}",
    ]
    webdriver.ActionChains(browser).move_to_element(
        browser.find_element(By.TAG_NAME, "h1")
    ).perform()
    assert not browser.find_element(By.ID, "tip").is_displayed()


def test_the_node_under_the_pointer_is_the_nearest_one(
    browser: webdriver.Chrome, report: Path
) -> None:
    show(browser, report)
    script = """
    map.zoomBy(1.7, 200, 300);
    const wrong = [];
    for (let k = 0; k < 500; k++) {
      const x = (k * 131) % map.width, y = (k * 197) % map.height;
      let best = -1, least = 12;
      for (let i = 0; i < map.n; i++) {
        const [u, v] = map.screen(i), d = Math.hypot(x - u, y - v);
        if (d < least) { least = d; best = i; }
      }
      const found = map.at(x, y);
      if (found !== best) wrong.push([k, found, best]);
    }
    return wrong;"""
    assert on_map(browser, script) == []


def test_click_lists_the_ten_most_similar_nodes(
    browser: webdriver.Chrome, report: Path, record: RunRecord
) -> None:
    show(browser, report)
    node = alone(browser)
    pointer(browser, node, click=True)
    unit = record.embedding / np.linalg.norm(record.embedding, axis=1, keepdims=True)
    cosine = unit @ unit[node]
    cosine[node] = -2
    listed = browser.find_elements(By.CSS_SELECTOR, ".near .id")
    found = [int(element.text[1:]) for element in listed]
    assert len(found) == len(set(found)) == 10
    assert min(cosine[found]) >= np.sort(cosine)[-10] - 0.02  # 8 bits a number
    shown = [float(e.text) for e in browser.find_elements(By.CSS_SELECTOR, ".near small")]
    np.testing.assert_allclose(shown, cosine[found], atol=0.02)
    linked = {b if a == node else a for a, b in record.edge_index.T.tolist() if node in (a, b)}
    assert set(on_map(browser, "return map.links")) == linked
    assert f"to its {len(linked)} neighbours" in text(browser, "chosen")
    listed[0].click()  # walk on to the nearest
    assert text(browser, "chosen").startswith(f"n{found[0]}\n")


def test_search_finds_a_node_by_its_id_and_brings_it_into_the_middle(
    browser: webdriver.Chrome, report: Path
) -> None:
    show(browser, report)
    box = browser.find_element(By.ID, "search")
    box.send_keys("N17")
    hits = [element.text for element in browser.find_elements(By.CSS_SELECTOR, "#hits li")]
    assert hits == ["n17", *(f"n17{k}" for k in range(7))]  # the id itself comes first
    box.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert text(browser, "chosen").startswith("n170\n")
    assert on_map(
        browser, "const [x, y] = map.screen(170); return [x / map.width, y / map.height]"
    ) == [
        pytest.approx(0.5),
        pytest.approx(0.5),
    ]
    box.clear()
    box.send_keys("no such node")
    assert text(browser, "hits") == "No node has this in its id."


def test_colour_by_a_column_and_show_one_group_alone(
    browser: webdriver.Chrome, report: Path, record: RunRecord
) -> None:
    show(browser, report)
    legend = browser.find_elements(By.CSS_SELECTOR, "#legend button")
    counts = np.bincount(record.labels)
    assert [e.text.split("\n") for e in legend] == [
        [name, str(count)] for name, count in zip(NAMES, counts, strict=True)
    ]
    legend[2].click()
    alone = "return Array.from({length: map.n}, (_, i) => i).filter((i) => map.isFocus(i))"
    assert on_map(browser, alone) == (record.labels == 2).nonzero()[0].tolist()
    browser.find_element(By.CSS_SELECTOR, "#colour option[value='3']").click()
    assert text(browser, "legend-title") == "year"
    assert on_map(browser, "return map.isFocus") is None
    shade = on_map(browser, "return Array.from(map.colourOf)")
    order = np.argsort(record.columns["year"], kind="stable")
    assert (np.diff(np.array(shade)[order]) >= 0).all()
    assert max(shade) - min(shade) == 31


def test_colour_by_similarity_follows_the_chosen_node(
    browser: webdriver.Chrome, report: Path
) -> None:
    show(browser, report)
    browser.find_element(By.CSS_SELECTOR, "#colour option[value='similarity']").click()
    assert "Choose a node first" in text(browser, "legend")
    on_map(browser, "map.on.choose(5)")
    assert on_map(browser, "return map.colourOf[5]") == 31  # the far end of the ramp
    assert on_map(browser, "return Math.min(...map.near.map((i) => map.colourOf[i]))") > 25


def test_the_other_map_moves_every_node_to_its_place(
    browser: webdriver.Chrome, report: Path, record: RunRecord
) -> None:
    show(browser, report)
    for button, found in zip(("PCA", "t-SNE"), nodes.shown(record).maps, strict=True):
        browser.find_element(By.XPATH, f"//button[text()='{button}']").click()
        still(browser)
        places = np.array(on_map(browser, "return Array.from(map.places)")).reshape(-1, 2)
        np.testing.assert_allclose(places, found.places, atol=1e-4)
        assert text(browser, "layout-note") == found.note


def test_drag_zoom_and_keys_move_the_map(browser: webdriver.Chrome, report: Path) -> None:
    show(browser, report)
    canvas = browser.find_element(By.ID, "map")
    before = on_map(browser, "return map.screen(0)")
    actions = webdriver.ActionChains(browser, duration=0).move_to_element(canvas)
    actions.click_and_hold().move_by_offset(40, 25).release().perform()
    assert on_map(browser, "return map.screen(0)") == pytest.approx(
        [before[0] + 40, before[1] + 25]
    )
    assert "Click a node" in text(browser, "chosen")  # a drag is no click
    canvas.send_keys("+")
    assert on_map(browser, "return map.view.zoom") == pytest.approx(1.4)
    fixed = on_map(browser, "map.zoomBy(3, 100, 80); return map.plane(100, 80)")
    assert on_map(browser, "map.zoomBy(0.5, 100, 80); return map.plane(100, 80)") == pytest.approx(
        fixed
    )
    canvas.send_keys("0")
    assert on_map(browser, "return map.view") == {"x": 0.5, "y": 0.5, "zoom": 1}


def test_a_comparison_rings_the_node_on_every_map(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    compare([run_record(), run_record(seed=1)], tmp_path / "compare.html")
    show(browser, tmp_path / "compare.html")
    node = alone(browser)
    pointer(browser, node)
    every = "return [...document.querySelectorAll('canvas')].map((c) => c.nodeMap.hovered)"
    assert browser.execute_script(every) == [node, node]
    tip, other = browser.find_elements(By.CLASS_NAME, "tip")
    assert tip.text.startswith(f"n{node}\n")
    assert not other.is_displayed()
