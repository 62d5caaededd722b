"""The console in a real browser, over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from calls import Cache, new_cache
from console.conftest import look
from console.page import Page
from graphs import lead
from processes import run
from running import Service

STORED, NEAR, OTHER = "How do I rewire a lamp?", "How can I rewire a lamp?", "How do I rewire 2 lamps?"
RIGHT, ENTER, SPACE, ESCAPE = "\ue014", "\ue007", " ", "\ue00c"
HOSTILE = [
    '<img src=x onerror="window.hacked = 1"> and <b>bold</b>',
    '"><script>window.hacked = 1</script>',
    "</pre><svg onload='window.hacked = 1'>",
    "javascript:window.hacked=1//",
]


@pytest.fixture
def used(cache: Cache) -> Cache:
    """Two exact hits, one near one, one that a guard keeps back, and one far away."""
    cache.store(STORED, "Unplug it first.", scope={})
    for prompt in (STORED, STORED, NEAR, OTHER, "Who wrote this song?"):
        cache.look(prompt)
    return cache


@pytest.fixture
def page(browser: Any) -> Page:
    return Page(browser)


@pytest.fixture
def shown(page: Page, used: Cache, shared_service: Service) -> Page:
    return page.open(shared_service.base, used).loaded()


def test_it_shows_how_a_cache_serves(shown: Page) -> None:
    shown.shows("#summary", "Hit rate\n60.0 %", "Same request\n40.0 %", "Near request\n20.0 %", "Requests\n5")
    shown.shows("#latency", "From memory", "Same request", "Near request", "Miss")
    shown.shows("#misses", "below threshold")
    shown.shows("#similarity", "The cache has 0.95, deciding by threshold")
    assert len(shown.all("#traffic rect")) >= 2
    assert len(shown.all("#similarity rect")) >= 1


def test_it_looks_again_by_itself(shown: Page, used: Cache) -> None:
    used.look(STORED)
    shown.shows("#summary", "Requests\n6")


def test_an_empty_cache_says_what_to_do(page: Page, cache: Cache, shared_service: Service) -> None:
    page.open(shared_service.base, cache).loaded()
    page.shows("#traffic", "No request in this window")
    page.shows("#entries", "Nothing is stored in this cache yet")


def test_the_threshold_moves_by_keys_and_tells_what_it_would_serve(shown: Page, used: Cache) -> None:
    shown.run("document.querySelector('#similarity input').focus()")
    shown.shows("#similarity", "Hit rate at most 60.0 % (as now)", "no verdict was drawn at random")
    shown.keys(*[RIGHT] * 10)
    shown.shows("#similarity", "Hit rate at most 40.0 % (−20.0 points)", "Set 1.000 for this cache")
    assert used.http.get(used.path).json()["policy"]["similarityThreshold"] == 0.95, "moving changes nothing"
    shown.run("document.querySelector('#similarity button').focus()")
    used.look(STORED)
    shown.shows("#similarity", "Hit rate at most 50.0 %")
    assert shown.run("return document.activeElement.textContent") == "Set 1.000 for this cache"
    shown.press("Set 1.000 for this cache")
    shown.browser.switch_to.alert.accept()
    shown.shows("#similarity", "The cache has 1, deciding by threshold")
    assert used.http.get(used.path).json()["policy"]["similarityThreshold"] == 1


def test_the_moment_moves_by_keys(shown: Page) -> None:
    shown.run("document.querySelector('#traffic input').focus()")
    shown.keys("\ue011")
    first = shown.text("#traffic .readout")
    assert "no request" in first
    shown.keys(RIGHT)
    assert shown.text("#traffic .readout") != first


def test_an_entry_is_looked_at_pinned_quarantined_and_deleted_by_keys(shown: Page, used: Cache) -> None:
    entry = used.listed()[0]["id"]
    shown.run("document.querySelector('.entries button').focus()")
    shown.keys(ENTER)
    shown.shows("#entry", STORED, "Unplug it first.", entry, "SHA-256")
    shown.press("Pin")
    shown.shows("#entry", "Unpin")
    assert used.read(entry)["pinned"]
    shown.press("Quarantine")
    shown.shows("#entry", "Release")
    assert used.read(entry)["quarantined"]
    assert used.responses(STORED) == []
    shown.press("Delete")
    assert used.listed(), "one press deletes nothing"
    shown.press("Delete for good")
    shown.until(lambda: not shown.all("dialog[open]"))
    assert used.listed() == []


def test_the_graph_tells_what_follows_what_and_opens_entries(shown: Page, used: Cache, shared_service: Service) -> None:
    shown.shows("#graph", "No sessions yet")
    used.store(OTHER, "Both.")
    lead(shared_service.runtime.db.url, used.name, STORED, OTHER)
    shown.open(shared_service.base, used).loaded()
    shown.shows("#graph li.lit", OTHER, "4.0 a day")
    shown.run("document.querySelector('#graph li:last-child button').focus()")
    shown.shows("#graph .readout", f"Then: {OTHER} (50.0 %)")
    assert len(shown.all("#graph path.lit")) == 1
    shown.keys(ENTER)
    shown.shows("#entry", "Unplug it first.")
    shown.keys(ESCAPE)
    shown.find("#graph select").send_keys("B")
    shown.shows("#graph li:first-child", STORED)


def test_pinned_and_quarantined_entries_are_listed_by_themselves(shown: Page, used: Cache) -> None:
    pinned, quarantined = used.store("Which way is up?", "That one."), used.store("Which way is down?", "The other.")
    for entry, change in ((pinned, {"pinned": True}), (quarantined, {"quarantined": True})):
        assert used.send("PATCH", f"entries/{entry}", change).status_code == 200
    shown.run("document.querySelector('#state input').focus()")
    shown.keys(RIGHT)
    shown.until(lambda: [row.text for row in shown.all(".entries .prompt")] == ["Which way is up?"])
    shown.keys(RIGHT)
    shown.until(lambda: [row.text for row in shown.all(".entries .prompt")] == ["Which way is down?"])


def test_a_dialog_closes_by_escape_and_gives_the_focus_back(shown: Page) -> None:
    shown.run("document.querySelector('.entries button').focus()")
    shown.keys(ENTER)
    shown.shows("#entry", "Unplug it first.")
    shown.keys(ESCAPE)
    shown.until(lambda: not shown.all("dialog[open]"))
    assert shown.run("return document.activeElement.matches('.entries button')")


def test_a_prompt_is_explained_as_a_caller_would_ask_it(shown: Page) -> None:
    shown.find("#ask input").send_keys(OTHER, ENTER)
    shown.shows("#verdict", "Miss", "threshold of 0.95")
    shown.shows("#entries .entries", STORED, "guard")
    shown.run("document.querySelector('.entries button').click()")
    shown.shows("#entry", "Guards that object", "number")
    shown.keys(ESCAPE)
    shown.run("document.querySelector('#ask details').open = true")
    shown.find("#ask textarea").send_keys("{")
    shown.press("Explain")
    shown.shows("#entries .note", "The scope must be JSON")


def test_an_entry_lends_its_scope_to_a_question(page: Page, cache: Cache, shared_service: Service) -> None:
    scope = {"model": "small", "chatTemplate": "v2", "sampling": {"temperature": 0}}
    cache.store(STORED, "Unplug it first.", scope=scope)
    page.open(shared_service.base, cache).loaded()
    page.find("#ask input").send_keys(NEAR, ENTER)
    page.shows("#verdict", "Miss", "other scope (differs in model.name, model.chat_template, sampling)")
    page.until(lambda: not page.find("#state").is_displayed())
    page.run("document.querySelector('.entries button').click()")
    page.shows("#entry", STORED)
    page.press("Ask in its scope")
    page.until(lambda: not page.all("dialog[open]"))
    page.press("Explain")
    page.shows("#verdict", "Semantic hit")


def test_a_button_that_can_be_pressed_does_not_look_as_one_that_cannot(shown: Page, used: Cache) -> None:
    shown.run("document.querySelector('.entries button').click()")
    shown.shows("#entry", "Quarantine")
    enabled = "[...document.querySelectorAll('.actions button:enabled:not(.danger)')]"
    text = shown.run("return getComputedStyle(document.body).color")
    assert {*shown.run(f"return {enabled}.map((button) => getComputedStyle(button).color)")} == {text}


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_are_never_markup(page: Page, cache: Cache, shared_service: Service, text: str) -> None:
    cache.store(text, text, tags=[text], attributes={"a": text}, scope={"model": text})
    page.open(shared_service.base, cache).loaded()
    page.shows(".entries", text)
    page.run("document.querySelector('.entries button').click()")
    page.shows("#entry", f"Prompt\n{text}", f"Answer\n{text}", f"Tags\n{text}", f"a: {text}", f"name: {text}")
    page.keys(ESCAPE)
    page.find("#ask input").send_keys(text, ENTER)
    page.shows("#verdict", "threshold")
    assert page.run("return window.hacked") is None
    assert page.all("main img, main script, dialog img, dialog script, pre svg, pre b") == []


def test_markup_that_is_made_of_text_is_refused_by_the_browser(shown: Page) -> None:
    refused = "try { document.body.innerHTML = '<b>'; return false } catch (error) { return error.name }"
    assert shown.run(refused) == "TypeError"
    shown.browser.get_log("browser")


def test_nothing_is_loaded_from_elsewhere(shown: Page, shared_service: Service) -> None:
    loaded = shown.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert len(loaded) > 8
    assert [address for address in loaded if not address.startswith(shared_service.base)] == []


def test_a_key_is_asked_for_kept_in_the_tab_and_opens_its_tenant_alone(page: Page, service: Service) -> None:
    url = service.runtime.db.url
    status, key, err = run("pgsemcache", "keys", "create", "--tenant", "north", "--database-url", url)
    assert status == 0, err
    service.http.headers["authorization"] = f"Bearer {key.strip()}"
    mine = new_cache(service.http)
    page.open(service.base)
    page.shows("#key", "A key opens the caches of its tenant", "Authorization")
    page.find("#key input").send_keys("nobody's", ENTER)
    page.until(lambda: not page.run("return document.querySelector('#key input').value"))
    page.shows("#status", "Waits for a key")
    page.until(lambda: page.all("#key[open]"))
    page.find("#key input").send_keys(key.strip(), ENTER)
    page.loaded()
    page.shows("#status", "Live")
    assert [option.text for option in page.all("#view option")] == ["default", mine.name]
    kept = "return [Object.values(sessionStorage).join(), localStorage.length, document.cookie, location.href]"
    session, local, cookies, address = page.run(kept)
    assert (session, local, cookies) == (key.strip(), 0, "")
    assert key.strip() not in address
    page.run("sessionStorage.clear()")


def test_it_says_that_nobody_answers_keeps_what_it_showed_and_recovers(shown: Page) -> None:
    shown.browser.execute_cdp_cmd("Network.enable", {})
    shown.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/v1/*"]})
    shown.shows("#status", "The service does not answer. Trying again.")
    shown.shows("#summary", "Hit rate\n60.0 %")
    pale = "return getComputedStyle(document.querySelector('#summary .body')).opacity !== '1'"
    shown.until(lambda: shown.run(pale))  # which it becomes gradually
    shown.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    shown.shows("#status", "Live")
    shown.until(lambda: shown.run("return document.querySelector('#summary').dataset.kind") == "")
    shown.browser.get_log("browser")


def test_it_begins_once_somebody_answers(page: Page, used: Cache, shared_service: Service) -> None:
    page.browser.execute_cdp_cmd("Network.enable", {})
    page.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/v1/*"]})
    page.open(shared_service.base, used)
    page.shows("#status", "The service does not answer. Trying again.")
    page.shows("#traffic", "Nothing is known yet.")
    page.browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    page.loaded()
    page.shows("#entries", STORED)
    page.browser.get_log("browser")


LOWEST = """
const shade = (colour) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return { opaque: a === 255, light: 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b) };
};
const behind = (element) => {
  for (; element; element = element.parentElement) {
    const found = shade(getComputedStyle(element).backgroundColor);
    if (found.opaque) return found.light;
  }
};
const says = ({ childNodes }) => [...childNodes].some((node) => node.nodeType === 3 && node.data.trim());
const shown = (element) => element.checkVisibility() && !element.disabled && says(element);
return [...document.querySelectorAll("body *")].filter(shown).map((element) => {
  const [a, b] = [shade(getComputedStyle(element).color).light, behind(element)].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), element.outerHTML.slice(0, 80)];
}).sort(([a], [b]) => a - b)[0];
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_width_and_scheme_is_readable(shown: Page, scheme: str, width: int) -> None:
    look(shown.browser, width, scheme)
    assert shown.run("return document.documentElement.scrollWidth") <= width, "nothing scrolls sideways"
    contrast, element = shown.run(LOWEST)
    assert contrast >= 4.5, element
    shown.run("document.querySelector('.entries button').click()")
    shown.shows("#entry", "Unplug it first.")
    contrast, element = shown.run(LOWEST)
    assert contrast >= 4.5, element


def test_nothing_jumps_while_it_loads_and_looks_again(shown: Page, used: Cache) -> None:
    used.look(STORED)
    shown.shows("#summary", "Requests\n6")
    shifts = """
    const done = arguments[0];
    const total = (list) => list.getEntries().reduce((sum, { value }) => sum + value, 0);
    const observer = new PerformanceObserver((list) => done(total(list)));
    observer.observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(0), 500);
    """
    assert shown.browser.execute_async_script(shifts) < 0.02


def test_motion_is_kept_off_for_those_who_want_none(shown: Page) -> None:
    reduced = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    duration = "return getComputedStyle(document.querySelector('.body')).transitionDuration"
    assert shown.run(duration) != "0s"
    shown.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", reduced)
    assert shown.run(duration) == "0s"
