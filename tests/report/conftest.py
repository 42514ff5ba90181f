"""The browser that tests of pages share, and a report to look at."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from report_cases import run_record

from muxgcl.report import RunRecord, write_report

if TYPE_CHECKING:
    from selenium import webdriver


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator["webdriver.Chrome"]:
    from browser_cases import opened  # where Chromium is not asked for, Selenium need not be there

    with opened(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def browser(chromium: "webdriver.Chrome") -> Iterator["webdriver.Chrome"]:
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
