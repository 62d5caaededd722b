// The request graph: the most central requests, with arcs to what follows them in a session.

import { call } from "./api.js";
import { Panel, h, svg } from "./dom.js";
import { percent } from "./format.js";

const ROW = 10; // of the drawing; the rows beside it have one height too

export const panel = new Panel("graph");
const measure = document.querySelector("#graph select");

let again = () => {};
measure.addEventListener("change", () => again());

/** Ask for the graph of a cache and show it; `open(id)` shows an entry. Raises Problem. */
export async function showGraph(cache, open, signal) {
  again = () => showGraph(cache, open).catch((problem) => panel.fail(problem));
  const { nodes, edges } = await call("GET", [cache, "stats", "graph"], { query: { measure: measure.value }, signal });
  if (!nodes.length) {
    return panel.say(
      "No sessions yet. Requests that follow one another in a session become a graph once a worker has read them.",
    );
  }
  const place = new Map(nodes.map(({ nodeId }, i) => [nodeId, i]));
  const arcs = edges.map((edge) => arc(place.get(edge.fromNode), place.get(edge.toNode), nodes.length, edge.share));
  const readout = h("p", { class: "readout" });
  const follow = (node) => {
    edges.forEach(({ fromNode }, i) => arcs[i].classList.toggle("lit", fromNode === node.nodeId));
    rows.forEach((item, i) => item.classList.toggle("lit", nodes[i] === node));
    readout.textContent = following(node, edges, nodes);
  };
  const rows = nodes.map((node) => row(node, nodes[0].score, follow, open));
  const drawing = svg(
    "svg",
    { viewBox: `0 0 100 ${ROW * nodes.length}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    arcs,
  );
  const focused = document.activeElement?.closest("#graph li")?.dataset.node;
  follow(nodes[0]);
  panel.show(readout, h("div", { class: "graph" }, drawing, h("ol", {}, rows)));
  if (focused) panel.body.querySelector(`[data-node="${focused}"] button`)?.focus();
}

function arc(from, to, rows, share) {
  const [start, end] = [from, to].map((place) => (place + 0.5) * ROW);
  const reach = 96 - (90 * Math.abs(from - to)) / rows;
  const path = svg("path", { d: `M100,${start}C${reach},${start} ${reach},${end} 100,${end}` });
  path.style.setProperty("stroke-width", 1 + 4 * share);
  return path;
}

function row(node, top, follow, open) {
  const bar = h("div", { class: "bar" });
  bar.style.setProperty("--share", top ? node.score / top : 0);
  const facts = [`${node.timesADay.toFixed(1)} a day`, node.answer === "living" ? null : `answer: ${node.answer}`];
  const show = () => (node.entryId && node.answer !== "dead" ? open(node.entryId) : null);
  return h(
    "li",
    { "data-node": node.nodeId },
    h(
      "button",
      { type: "button", class: "row", onclick: show, onfocus: () => follow(node), onpointerenter: () => follow(node) },
      h("span", { class: "one-line" }, node.prompt ?? "(its text is stored no more)"),
      h("span", { class: "facts" }, facts.filter(Boolean).join(" · ")),
      bar,
    ),
  );
}

function following(node, edges, nodes) {
  const next = edges.filter(({ fromNode }) => fromNode === node.nodeId);
  if (!next.length) return "None of these follows it.";
  const name = ({ toNode, share }) =>
    `${nodes.find(({ nodeId }) => nodeId === toNode).prompt ?? "…"} (${percent(share)})`;
  return `Then: ${next.slice(0, 3).map(name).join(" · ")}`;
}
