// What the cache holds: page by page, or what is near a prompt; each entry to look at, pin, quarantine, delete.

import { Problem, call } from "./api.js";
import { Panel, h } from "./dom.js";
import { ago, count, plural, similarity, when, words } from "./format.js";

const PAGE = 25;
const EMPTY = {
  "": "Nothing is stored in this cache yet.",
  pinned: "No entry is pinned. Pinned ones are never evicted.",
  quarantined: "No entry is quarantined. Quarantined ones are kept and not served.",
};

export const panel = new Panel("entries");
const ask = document.getElementById("ask");
const back = document.getElementById("back");
const more = document.getElementById("more");
const verdict = document.getElementById("verdict");
const state = document.getElementById("state");
const dialog = document.getElementById("entry");

let cache = null;
let cursor = null;
let list = null;
let locked = () => {};

/** Show another cache's entries, newest first. `onLocked` hears why where a key is wanted. */
export function openEntries(name, onLocked) {
  [cache, locked] = [name, onLocked];
  ask.reset();
  return showNewest();
}

const chosen = () => state.querySelector(":checked").value;

async function showNewest() {
  back.hidden = true;
  state.hidden = false;
  verdict.replaceChildren();
  cursor = null;
  list = h("ul", { class: "entries" });
  panel.wait();
  await attempt(nextPage);
}

async function nextPage() {
  const query = { order: "newest", state: chosen() || null, limit: PAGE, cursor };
  const page = await call("GET", [cache, "entries"], { query });
  cursor = page.nextCursor;
  list.append(...page.data.map((entry) => row(entry, `${plural(entry.hits, "hit")} · stored ${ago(entry.createdAt)}`)));
  more.hidden = !cursor;
  if (list.childElementCount) panel.show(list);
  else panel.say(EMPTY[chosen()]);
}

async function explain() {
  const prompt = ask.elements.prompt.value;
  if (!prompt.trim()) return showNewest();
  panel.wait();
  const told = await call("POST", [cache, "explain"], { body: { prompt, limit: 16, scope: askedScope() } });
  back.hidden = false;
  state.hidden = true;
  more.hidden = true;
  verdict.replaceChildren(
    h(
      "p",
      {},
      h("strong", {}, told.outcome === "miss" ? "Miss" : told.outcome === "hit" ? "Hit" : "Semantic hit"),
      `, ${words(told.reason)}, at a threshold of ${told.threshold}. ${told.wouldChange}`,
    ),
  );
  const rows = told.neighbours.map((near) =>
    row(near, [similarity(near.similarity), ...near.obstacles.map(words)].join(" · "), near),
  );
  if (rows.length) panel.show(h("ul", { class: "entries" }, rows));
  else panel.say("Nothing in this cache is near.");
}

function askedScope() {
  const text = ask.elements.scope.value.trim();
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    throw new Problem(
      "invalid_data",
      'The scope must be JSON, as {"model": "llama-3.1-8b", "system": "Answer briefly."}.',
    );
  }
}

/** Ask in the scope of an entry, as far as it can be read: of texts, as a system prompt, only hashes are kept. */
function askInScope({ model: { name, ...known }, sampling }) {
  const fields = Object.entries(known).map(([key, value]) => [key.replace(/_./g, ([, c]) => c.toUpperCase()), value]);
  ask.elements.scope.value = JSON.stringify({ model: name, ...Object.fromEntries(fields), sampling });
  ask.querySelector("details").open = true;
  dialog.close();
  ask.elements.prompt.focus();
}

/** Show one entry; `judged`: what explain said of it. */
export const openEntry = (id, judged) =>
  attempt(async () => showEntry(await call("GET", [cache, "entries", id]), judged));

function row(entry, facts, judged) {
  return h(
    "li",
    { "data-id": entry.id },
    h(
      "button",
      { type: "button", class: "row", onclick: () => openEntry(entry.id, judged) },
      h("span", { class: "prompt" }, entry.prompt),
      h("span", { class: "facts" }, marks(entry), facts),
    ),
  );
}

const marks = ({ pinned, quarantined }) => [
  pinned && h("b", { class: "mark" }, "pinned"),
  quarantined && h("b", { class: "mark bad" }, "quarantined"),
];

function showEntry(entry, judged) {
  const change = (body) =>
    attempt(async () => {
      const changed = await call("PATCH", [cache, "entries", entry.id], { body });
      showEntry(changed, judged);
      refreshRow(changed);
    });
  const remove = ({ currentTarget: button }) => {
    if (button.dataset.sure) return attempt(() => deleteEntry(entry.id));
    button.dataset.sure = "yes";
    button.textContent = "Delete for good";
  };
  dialog
    .querySelector("article")
    .replaceChildren(
      h(
        "header",
        {},
        h("h2", { id: "entry-title" }, "Entry"),
        marks(entry),
        h("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close"),
      ),
      h("h3", {}, "Prompt"),
      h("pre", { tabindex: 0 }, entry.prompt),
      h("h3", {}, "Answer"),
      h("pre", { tabindex: 0 }, entry.response || "(no text: tool calls or another form)"),
      judged ? judgement(judged) : "",
      h("h3", {}, "Facts"),
      facts(entry),
      h("h3", {}, "Scope"),
      scope(entry.scope),
      h("p", { class: "problem", role: "alert" }),
      h(
        "footer",
        { class: "actions" },
        h(
          "button",
          { type: "button", onclick: () => change({ pinned: !entry.pinned }) },
          entry.pinned ? "Unpin" : "Pin",
        ),
        h(
          "button",
          { type: "button", onclick: () => change({ quarantined: !entry.quarantined }) },
          entry.quarantined ? "Release" : "Quarantine",
        ),
        h("button", { type: "button", onclick: () => askInScope(entry.scope) }, "Ask in its scope"),
        h("button", { type: "button", class: "danger", onclick: remove }, "Delete"),
      ),
    );
  if (!dialog.open) dialog.showModal();
}

async function deleteEntry(id) {
  await call("DELETE", [cache, "entries", id]);
  dialog.close();
  panel.body.querySelector(`[data-id="${id}"]`)?.remove();
}

function refreshRow(entry) {
  const shown = panel.body.querySelector(`[data-id="${entry.id}"] .facts`);
  shown?.querySelectorAll(".mark").forEach((mark) => mark.remove());
  shown?.prepend(...marks(entry).filter(Boolean));
}

function judgement({ similarity: near, obstacles, scopeDiffersIn, guards }) {
  const fired = guards.filter(({ outcome }) => outcome !== "pass");
  return h(
    "section",
    {},
    h("h3", {}, "Against the prompt asked"),
    definitions([
      ["Similarity", similarity(near)],
      ["In the way", obstacles.map(words).join(", ") || "nothing"],
      ["Scope differs in", scopeDiffersIn.join(", ") || "nothing"],
      ["Guards that object", fired.map(({ guard, evidence }) => `${words(guard)}: ${evidence}`).join("\n") || "none"],
    ]),
  );
}

function facts(entry) {
  const tokens = [entry.promptTokens, entry.completionTokens].map((number) => (number === null ? "?" : count(number)));
  return definitions([
    ["Id", entry.id],
    ["Stored", `${when(entry.createdAt)}, by ${entry.provenance}`],
    ["Expires", when(entry.expiresAt)],
    ["Served", entry.hits ? `${plural(entry.hits, "time")}, last ${ago(entry.lastHitAt)}` : "never"],
    ["Tokens", `${tokens[0]} in, ${tokens[1]} out`],
    ["Tags", entry.tags.join(", ") || "none"],
    ["Attributes", pairs(entry.attributes) || "none"],
  ]);
}

function scope({ model, sampling, parts }) {
  return definitions([
    ["Model", pairs(model)],
    ["Sampling", pairs(sampling) || "the server's defaults"],
    ...Object.entries(parts).map(([name, hash]) => [words(name), `SHA-256 ${hash.slice(0, 16)}…`]),
  ]);
}

const pairs = (values) =>
  Object.entries(values)
    .map(([name, value]) => `${name}: ${(typeof value === "string" && value) || JSON.stringify(value)}`)
    .join("\n");

const definitions = (rows) =>
  h(
    "dl",
    { class: "facts" },
    rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );

/** Tell a failure where the eye is: in the open dialog, else in the panel. */
async function attempt(work) {
  try {
    return await work();
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (dialog.open) dialog.querySelector("[role=alert]").textContent = problem.message;
    else panel.fail(problem);
    if (problem.code === "unauthenticated") locked(problem.message);
  }
}

ask.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(explain);
});
back.addEventListener("click", () => {
  ask.reset();
  showNewest();
});
state.addEventListener("change", showNewest);
more.addEventListener("click", () => attempt(nextPage));
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});
