// How near neighbours were, with a threshold to move: what it would have served, and how often wrongly.

import { call } from "./api.js";
import { legend, pointed, stacks } from "./charts.js";
import { Panel, h } from "./dom.js";
import { count, percent, plural } from "./format.js";

const WIDTH = 0.005;

export const panel = new Panel("similarity");

let chosen = null;

/** Forget a threshold that was moved to: another cache is shown. */
export function forgetThreshold() {
  chosen = null;
}

/** `cache` as the API shows it, `told` its similarity figures; `changed` is called when the threshold was set. */
export function showSimilarity(cache, told, changed) {
  if (panel.held) return;
  if (!told.requests) return panel.say("No request in this window.");
  const { similarityThreshold: current, decision } = cache.policy;
  const steps = told.thresholds.map(({ threshold }) => threshold);
  const nearest = told.nearest.filter(({ similarity }) => similarity >= told.floor - WIDTH / 2);
  const columns = steps.map((step) =>
    columnOf(nearest.find(({ similarity }) => Math.abs(similarity - step) < WIDTH / 2)),
  );
  const figures = h("div", { class: "verdicts" });
  const button = h("button", { type: "button", onclick: () => setThreshold(cache, chosen, changed) });
  const at = (threshold) => told.thresholds[Math.max(0, Math.round((threshold - told.floor) / WIDTH))];
  const move = (threshold) => {
    chosen = threshold;
    const said = consequences(at(threshold), at(current), told);
    figures.replaceChildren(...said.map((line) => h("p", {}, line)));
    button.textContent = `Set ${threshold.toFixed(3)} for this cache`;
    button.disabled = Math.abs(threshold - current) < WIDTH / 2;
    return `${threshold.toFixed(3)}: ${said[0]}`;
  };
  const below = told.requests - told.exactHits - nearest.reduce((sum, { requests }) => sum + requests, 0);
  panel.show(
    pointed({
      charts: [
        h(
          "p",
          { class: "scale" },
          `Similarity of the nearest entry · ${plural(below, "request")} below ${told.floor} or without`,
        ),
        h("div", { class: "strip tall" }, stacks(columns, "Requests by similarity of the nearest entry", 0)),
      ],
      label: "Threshold",
      min: steps[0],
      max: 1,
      step: WIDTH,
      value: chosen ?? current,
      move,
      axis: [told.floor.toFixed(1), ((1 + told.floor) / 2).toFixed(1), "1.0"],
    }),
    legend(["semantic", "served"], ["other", "below the threshold"], ["held", "kept back by a guard or the policy"]),
    figures,
    h("p", { class: "actions" }, button, h("span", {}, `The cache has ${current}, deciding by ${decision}.`)),
  );
}

function columnOf(near) {
  if (!near) return [];
  const { requests, semanticHits, belowThreshold } = near;
  return [
    { kind: "semantic", value: semanticHits },
    { kind: "other", value: belowThreshold },
    { kind: "held", value: requests - semanticHits - belowThreshold },
  ];
}

function consequences(row, now, { verdicts }) {
  const change = 100 * (row.hitRate - now.hitRate);
  const by = Math.abs(change) < 0.05 ? "as now" : `${change > 0 ? "+" : "−"}${Math.abs(change).toFixed(1)} points`;
  const rate = `Hit rate at most ${percent(row.hitRate)} (${by}), with ${plural(row.semanticHits, "near request")} served.`;
  const drawn =
    row.falseHits === null
      ? "False hits unknown: no verdict was drawn at random from here up."
      : `False hits ${percent(row.falseHits)} of them, between ${percent(row.low)} and ${percent(row.high)} ` +
        `(95 %), from ${plural(row.drawn, "verdict")} drawn at random in 30 days.`;
  const reported = verdicts.reported
    ? `Callers reported ${count(verdicts.reported)}, ${count(verdicts.reportedWrong)} of them wrong; no rate follows from reports.`
    : null;
  return [rate, drawn, reported].filter(Boolean);
}

async function setThreshold(cache, threshold, changed) {
  const question = `Serve near requests of “${cache.name}” from ${threshold.toFixed(3)} on, instead of ${cache.policy.similarityThreshold}?`;
  if (!window.confirm(question)) return;
  try {
    await call("PATCH", [cache.cacheId], { body: { policy: { similarityThreshold: threshold } } });
    chosen = null;
    changed();
  } catch (problem) {
    panel.fail(problem);
  }
}
