"""A headless Chromium and a service for it to look at; both are shared, and each test has a cache of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from calls import Cache, new_cache
from running import Service

Open = Callable[..., Any]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """The browser. Debian's packages are chromium and chromium-driver."""
    webdriver = pytest.importorskip("selenium.webdriver")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (binary and driver):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield running
    running.quit()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """The browser at a desktop's width, in light colours, without keys; it must not have complained afterwards."""
    look(chromium)
    chromium.get_log("browser")
    yield chromium
    complaints = [
        entry["message"] for entry in chromium.get_log("browser") if "the server responded" not in entry["message"]
    ]
    chromium.get("about:blank")
    assert complaints == []


@pytest.fixture
def cache(shared_service: Service) -> Cache:
    return new_cache(shared_service.http)


def look(browser: Any, width: int = 1280, scheme: str = "light") -> None:
    """Set the width of the window and the colour scheme that the person prefers."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preference = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})
