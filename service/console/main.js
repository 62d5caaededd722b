// The page: which cache and window are shown, and asking again while somebody looks.

import { call, useKey } from "./api.js";
import { h } from "./dom.js";
import { openEntries, openEntry, panel as entries } from "./entries.js";
import { panel as graph, showGraph } from "./graph.js";
import { forgetThreshold, panel as similarity, showSimilarity } from "./similarity.js";
import { panels, showHeld, showTraffic } from "./traffic.js";

const MINUTE = 60_000;
const WINDOWS = ["15", "60", "360", "1440"];
const LOOKS = 180; // in the time that a window is long: 15 minutes are looked at each 5 seconds
const REST = 9; // times what a look took, so that an open page costs the database a tenth of one connection at most
const SLOW = 12; // looks in which the slow figures are asked for once

const view = document.getElementById("view");
const status = document.getElementById("status");
const keyDialog = document.getElementById("key");
const address = new URLSearchParams(location.search);

let begun = false;
let timer = 0;
let looks = 0;
let asking = new AbortController();

const watched = [...panels, similarity, graph];
const windowMillis = () => Number(view.elements.window.value) * MINUTE;

/** Begin: which caches are there, and everything of the one that the address names. */
async function start() {
  stop();
  try {
    const caches = await allCaches();
    const names = caches.map(({ cacheId }) => cacheId);
    const shown = [address.get("cache"), "default", names[0]].find((name) => names.includes(name));
    const options = names.map((name) => h("option", { value: name, selected: name === shown }, name));
    view.elements.cache.replaceChildren(...options);
    view.elements.cache.disabled = false;
    begun = true;
    open();
  } catch (problem) {
    entries.age();
    fail(problem);
  }
}

async function allCaches() {
  const caches = [];
  let cursor = null;
  do {
    const page = await call("GET", [], { query: { cursor } });
    caches.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor);
  return caches;
}

/** Show the chosen cache from its beginning. */
function open() {
  watched.forEach((panel) => panel.wait());
  forgetThreshold();
  openEntries(view.elements.cache.value, askForKey);
  look(true);
}

async function look(anew = false) {
  if (!begun) return start();
  stop();
  asking = new AbortController();
  const { signal } = asking;
  const cache = view.elements.cache.value;
  const query = { windowMillis: windowMillis() };
  const asked = Date.now();
  try {
    if (anew || looks++ % SLOW === 0) {
      const since = new Date(Date.now() - windowMillis()).toISOString();
      const [stats] = await Promise.all([
        call("GET", [cache, "stats"], { query: { since }, signal }),
        showGraph(cache, openEntry, signal),
      ]);
      showHeld(stats);
    }
    const [policy, traffic, near] = await Promise.all([
      call("GET", [cache], { signal }),
      call("GET", [cache, "stats", "traffic"], { query, signal }),
      call("GET", [cache, "stats", "similarity"], { query, signal }),
    ]);
    showTraffic(traffic);
    showSimilarity(policy, near, () => look());
    if (status.dataset.kind === "bad" && !entries.body.childElementCount) openEntries(cache, askForKey);
    tell("Live", "good");
    timer = setTimeout(look, Math.max(windowMillis() / LOOKS, REST * (Date.now() - asked)));
  } catch (problem) {
    if (problem.name === "AbortError") return;
    fail(problem);
  }
}

function stop() {
  clearTimeout(timer);
  asking.abort();
}

/** No figures: what is shown is old until they come again. */
function fail(problem) {
  watched.forEach((panel) => panel.age());
  if (problem.code === "unauthenticated") return askForKey(problem.message);
  if (problem.code === "cache_not_found") return start();
  tell(`${problem.message} Trying again.`, "bad");
  stop();
  timer = setTimeout(look, MINUTE / 12);
}

function tell(text, kind) {
  if (status.textContent !== text) status.textContent = text;
  status.dataset.kind = kind;
}

function askForKey(reason = "") {
  stop();
  tell("Waits for a key", "bad");
  keyDialog.querySelector(".problem").textContent = reason;
  keyDialog.returnValue = "";
  if (!keyDialog.open) keyDialog.showModal();
}

function remember() {
  address.set("cache", view.elements.cache.value);
  address.set("window", view.elements.window.value);
  history.replaceState(null, "", `?${address}`);
}

view.elements.window.value = WINDOWS.find((minutes) => minutes === address.get("window")) ?? WINDOWS[0];
view.elements.cache.addEventListener("change", () => (remember(), open()));
view.addEventListener("submit", (event) => event.preventDefault());
for (const choice of view.elements.window) choice.addEventListener("change", () => (remember(), look(true)));
document.getElementById("change-key").addEventListener("click", () => askForKey());
keyDialog.addEventListener("close", () => {
  const given = keyDialog.querySelector("input");
  const wanted = keyDialog.returnValue === "use";
  if (wanted) useKey(given.value.trim());
  given.value = "";
  if (wanted) start();
  else if (begun) look();
});
document.addEventListener("visibilitychange", () => (document.hidden ? stop() : look()));

start();
