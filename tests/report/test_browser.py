"""The page in a real browser: it draws, answers to pointer and keys, and stays silent."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import NAMES, bare_record, long_record, run_record
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from test_page import hostile_record

from muxgcl.report import RunRecord, compare, write_report
from muxgcl.report import node_map as nodes
from muxgcl.report import project as layout

MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
FLAGS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync window-size=1280,1400 allow-file-access-from-files"
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in FLAGS.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(shutil.which("chromedriver"))))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """A browser in which no test may leave a word on the console, nor ask anything of a network."""
    yield chromium
    asked = chromium.execute_script("return performance.getEntriesByType('resource').length")
    assert (chromium.get_log("browser"), asked) == ([], 0)


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return run_record()


@pytest.fixture(scope="module")
def report(record: RunRecord, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(record, path)
    return path


def show(browser: webdriver.Chrome, path: Path) -> None:
    browser.get(path.as_uri())
    still(browser)


def still(browser: webdriver.Chrome) -> None:
    """Wait until nodes have glided to their places and the picture is drawn."""
    quiet = (
        "const m = document.querySelector('canvas')?.nodeMap; return !m || !(m.frame || m.gliding)"
    )
    WebDriverWait(browser, 60).until(lambda b: b.execute_script(quiet))


def on_map(browser: webdriver.Chrome, script: str, *arguments: Any) -> Any:
    """Run a script with `map` at hand."""
    find = "const map = document.querySelector('canvas').nodeMap;"
    return browser.execute_script(find + script, *arguments)


def pointer(browser: webdriver.Chrome, node: int, *, click: bool = False) -> None:
    """Move the pointer onto a node, and press."""
    canvas = browser.find_element(By.TAG_NAME, "canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    x, y = on_map(browser, "return map.screen(arguments[0])", node)
    middle = canvas.size["width"] / 2, canvas.size["height"] / 2
    actions = webdriver.ActionChains(browser, duration=0)
    actions.move_to_element_with_offset(canvas, round(x - middle[0]), round(y - middle[1]))
    (actions.click() if click else actions).perform()


def alone(browser: webdriver.Chrome) -> int:
    """A node on the map that no other comes near."""
    script = """
    let best = -1, most = 0;
    for (let i = 0; i < map.n; i++) {
      const [x, y] = map.screen(i);
      if (x < 20 || y < 20 || x > map.width - 60 || y > map.height - 20) continue;
      let least = 1e9;
      for (let j = 0; j < map.n; j++) {
        const [u, v] = map.screen(j);
        if (j !== i) least = Math.min(least, Math.hypot(x - u, y - v));
      }
      if (least > most) { most = least; best = i; }
    }
    return best;"""
    return int(on_map(browser, script))


def text(browser: webdriver.Chrome, name: str) -> str:
    return browser.find_element(By.ID, name).text


def pixels(browser: webdriver.Chrome) -> np.ndarray:
    """The canvas as [pixels, red green blue]."""
    script = (
        "return Array.from(map.pen.getImageData(0, 0, map.canvas.width, map.canvas.height).data)"
    )
    return np.array(on_map(browser, script)).reshape(-1, 4)[:, :3]


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


def test_colour_by_likeness_follows_the_chosen_node(
    browser: webdriver.Chrome, report: Path
) -> None:
    show(browser, report)
    browser.find_element(By.CSS_SELECTOR, "#colour option[value='likeness']").click()
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


@contextmanager
def screen(browser: webdriver.Chrome, width: int) -> Iterator[None]:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


OVERLAPS = """
const boxes = [...document.querySelectorAll(arguments[0])].filter((e) => e.textContent.trim())
  .map((e) => [e.textContent.trim(), e.getBoundingClientRect()]).filter(([, r]) => r.width);
const found = [];
boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
  const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
  const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
  if (across > 1 && down > 3) found.push([a, b]);
}));
return found;"""


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
            ".filter((e) => /[A-Z]/.test(e.textContent))"
            ".map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)"
        )
        assert len(sizes) >= classes
        if classes > 8:  # few classes have slanted names, whose boxes say nothing
            assert min(sizes) >= 9
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
