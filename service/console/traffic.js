// How the cache served of late: at a glance, step by step, by tier, and why not.

import { legend, lines, pointed, stacks } from "./charts.js";
import { Panel, h } from "./dom.js";
import { count, milliseconds, percent, plural, time, words } from "./format.js";

const EXACT = ["memory", "exact", "coalesced", "stale"];
const SERVED = [...EXACT, "semantic"];
const TIERS = [...SERVED, "miss", "refresh", "bypass", "error", "shadow"];
const NAMES = {
  memory: "From memory",
  exact: "Same request",
  semantic: "Near request",
  coalesced: "Joined a call",
  stale: "Expired",
  miss: "Miss",
  refresh: "Refresh asked for",
  bypass: "Bypass",
  error: "Cache failed",
  shadow: "Shadow hit",
};

const summary = new Panel("summary");
const traffic = new Panel("traffic");
const latency = new Panel("latency");
const misses = new Panel("misses");
export const panels = [traffic, latency, misses, summary];

let pointedAt = null;

export function showTraffic(told) {
  const steps = stepsOf(told);
  const whole = { requests: 0, exact: 0, semantic: 0 };
  for (const step of steps) for (const name of Object.keys(whole)) whole[name] += step[name];
  showSummary(told, whole);
  if (!whole.requests) {
    traffic.say("No request in this window. What is asked through the proxy or searched shows here within seconds.");
    latency.say("Nothing to time yet.");
    misses.say("Nothing missed.");
    return;
  }
  showSteps(told, steps);
  showLatency(told, steps);
  showMisses(told.missReasons);
}

/** What a cache holds; it changes slowly and is asked for rarely. */
let held = null;
export function showHeld(stats) {
  held = stats;
}

function stepsOf({ since, until, stepMillis, tiers }) {
  const start = Date.parse(since);
  const empty = (_, i) => ({
    at: new Date(start + i * stepMillis),
    requests: 0,
    exact: 0,
    semantic: 0,
    p50: {},
    p95: {},
  });
  const steps = Array.from({ length: Math.ceil((Date.parse(until) - start) / stepMillis) }, empty);
  for (const { tier, steps: told } of tiers) {
    for (const { step, requests, p50Ms, p95Ms } of told) {
      const place = steps[Math.round((Date.parse(step) - start) / stepMillis)];
      if (!place) continue;
      place.requests += requests;
      if (EXACT.includes(tier)) place.exact += requests;
      if (tier === "semantic") place.semantic += requests;
      place.p50[tier] = p50Ms;
      place.p95[tier] = p95Ms;
    }
  }
  return steps;
}

const rate = ({ requests, exact, semantic }) => (requests ? (exact + semantic) / requests : null);

function showSummary(told, whole) {
  const share = (part) => (whole.requests ? percent(part / whole.requests) : "–");
  const figures = [
    ["Hit rate", percent(rate(whole))],
    ["Same request", share(whole.exact)],
    ["Near request", share(whole.semantic)],
    ["Requests", count(whole.requests)],
    ["Tokens saved", held ? count(held.tokensSaved) : "–"],
    ["Entries", held ? count(held.entries) : "–"],
  ];
  summary.show(
    h(
      "dl",
      { class: "figures" },
      figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
  );
}

function showSteps({ stepMillis }, steps) {
  if (traffic.held) return;
  const last = steps.length - 1;
  const whole = Math.max(0, last - 1); // the newest step that is over
  const readout = h("p", { class: "readout" });
  const columns = steps.map(({ requests, exact, semantic }) => [
    { kind: "exact", value: exact },
    { kind: "semantic", value: semantic },
    { kind: "other", value: requests - exact - semantic },
  ]);
  const most = Math.max(...steps.map(({ requests }) => requests));
  const move = (at) => {
    pointedAt = at === whole ? null : steps[at].at.getTime();
    const { requests, exact, semantic } = steps[at];
    const said = requests
      ? `${plural(requests, "request")}, ${percent(rate(steps[at]))} served: ${count(exact)} same, ${count(semantic)} near`
      : "no request";
    readout.textContent = `${time(steps[at].at)} · ${said}`;
    return readout.textContent;
  };
  const found = pointedAt === null ? -1 : steps.findIndex(({ at }) => at.getTime() >= pointedAt);
  traffic.show(
    readout,
    pointed({
      charts: [
        h("p", { class: "scale" }, "Hit rate, to 100 %"),
        h("div", { class: "strip" }, lines([{ kind: "line", values: steps.map(rate) }], 1, "Hit rate over time")),
        h("p", { class: "scale" }, `Requests, to ${count(most)} in ${stepMillis / 1000} s`),
        h("div", { class: "strip tall" }, stacks(columns, "Requests over time", -0.5)),
      ],
      label: "Moment",
      min: 0,
      max: last,
      step: 1,
      value: found < 0 ? whole : found,
      move,
      axis: [time(steps[0].at), time(steps[Math.round(last / 2)].at), "now"],
    }),
    legend(["exact", "same request"], ["semantic", "near request"], ["other", "not served"]),
  );
}

function showLatency({ tiers }, steps) {
  const known = TIERS.map((name) => tiers.find(({ tier }) => tier === name)).filter(Boolean);
  const rows = known.map(({ tier, requests, p50Ms, p95Ms }) => {
    const series = ["p95", "p50"].map((name) => ({
      kind: name,
      values: steps.map((step) => step[name][tier] ?? null),
    }));
    const top = Math.max(...series.flatMap(({ values }) => values));
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, NAMES[tier], h("small", {}, plural(requests, "request"))),
      h("td", {}, milliseconds(p50Ms)),
      h("td", {}, milliseconds(p95Ms)),
      h("td", { class: "spark" }, lines(series, top, `Up to ${milliseconds(top)}`)),
    );
  });
  const head = ["Tier", "p50", "p95", "over time"].map((name) => h("th", { scope: "col" }, name));
  latency.show(h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}

function showMisses(reasons) {
  const total = Object.values(reasons).reduce((sum, requests) => sum + requests, 0);
  if (!total) return misses.say("Every request was served.");
  const rows = Object.entries(reasons).map(([reason, requests]) => {
    const bar = h("div", { class: "bar" });
    bar.style.setProperty("--share", requests / total);
    return h("li", {}, h("span", {}, words(reason)), h("span", { class: "number" }, count(requests)), bar);
  });
  misses.show(h("ol", { class: "reasons" }, rows));
}
