"""The console as a person uses it: what it shows, and what keys do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calls import Cache
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

PATIENCE = 20
PANELS = ("summary", "traffic", "latency", "similarity", "misses", "graph", "entries")


@dataclass(frozen=True)
class Page:
    browser: Any

    def open(self, base: str, cache: Cache | None = None) -> Page:
        self.browser.get(f"{base}/console" + (f"?cache={cache.name}" if cache else ""))
        return self

    def loaded(self) -> Page:
        """Wait until every panel has something to say."""
        for panel in PANELS:
            self.until(lambda panel=panel: self.find(f"#{panel}").get_attribute("aria-busy") == "false")
        return self

    def find(self, selector: str) -> Any:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return list(self.browser.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector: str) -> str:
        """What stands in an element, read at once, since panels are made anew."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def until(self, condition: Any) -> Any:
        """Wait for it; what the page draws anew while it is read is read again."""
        wait = WebDriverWait(self.browser, PATIENCE, 0.05, [StaleElementReferenceException])
        return wait.until(lambda _: condition())

    def shows(self, selector: str, *words: str) -> None:
        """Wait until an element shows these words."""
        try:
            self.until(lambda: all(word in self.text(selector) for word in words))
        except Exception:
            raise AssertionError(f"{selector} shows {self.text(selector)!r}, not {words}") from None

    def press(self, name: str) -> None:
        """Press the visible button of this name with the keyboard."""
        button = next(b for b in self.all("button") if b.is_displayed() and b.text == name)
        self.run("arguments[0].focus()", button)
        self.keys("\ue007")

    def keys(self, *keys: str) -> None:
        """Type into what has the focus."""
        for key in keys:
            self.browser.switch_to.active_element.send_keys(key)
