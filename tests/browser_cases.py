"""A real browser, and hands to use a report in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
FLAGS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync window-size=1280,1400 allow-file-access-from-files"
)


needs_browser = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@contextmanager
def opened(profile: Path) -> Iterator[webdriver.Chrome]:
    """Chromium without a window, with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in FLAGS.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(shutil.which("chromedriver"))))
    try:
        yield driver
    finally:
        driver.quit()


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
