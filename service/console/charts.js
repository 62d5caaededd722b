// Small charts as SVG that stretches with its box. Words stand beside them in HTML, where they do not stretch.

import { h, svg } from "./dom.js";

const HEIGHT = 100;

/** Places are 0 to `last`, from the left edge to the right one, as a slider below has them. */
function frame(last, label, ...marks) {
  const attributes = {
    viewBox: `0 0 ${last} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label,
  };
  return svg("svg", attributes, marks);
}

/** Stacked columns. `columns`: lists of {kind, value}, the lowest first; heights are shares of the highest column.
    `left`: where a column begins, seen from its place. */
export function stacks(columns, label, left) {
  const total = (column) => column.reduce((sum, part) => sum + part.value, 0);
  const scale = HEIGHT / Math.max(1, ...columns.map(total));
  const bars = columns.map((column, x) => {
    let y = HEIGHT;
    return svg(
      "g",
      {},
      column
        .filter((part) => part.value > 0)
        .map(({ kind, value }) => {
          y -= value * scale;
          return svg("rect", { class: kind, x: x + left + 0.1, y, width: 0.8, height: value * scale });
        }),
    );
  });
  return frame(columns.length - 1, label, bars);
}

/** Lines over the same places. `lines`: {kind, values}, where null breaks a line; `top` is the value at the top. */
export function lines(series, top, label) {
  const last = series[0].values.length - 1;
  const marks = series.map(({ kind, values }) => {
    const at = (value) => HEIGHT - (HEIGHT * value) / (top || 1);
    let drawing = false;
    const path = values.map((value, x) => {
      if (value === null) return (drawing = false) || "";
      const step = drawing ? `L${x},${at(value)}` : `M${x - 0.3},${at(value)}H${x}`;
      drawing = true;
      return step;
    });
    return svg("path", { class: kind, d: path.join("") });
  });
  return frame(last, label, marks);
}

/** A chart with a pointer under it: a slider of the browser's own, so that keys, touch and screen readers work.
    `move(value)` returns what the value means, in words; it is called at once, and whenever the pointer moves. */
export function pointed({ charts, label, min, max, step, value, move, axis }) {
  const cursor = h("div", { class: "cursor" });
  const slider = h("input", { type: "range", min, max, step, "aria-label": label });
  slider.value = value;
  const plot = h("div", { class: "plot" }, charts, cursor);
  const settle = () => {
    const at = Number(slider.value);
    plot.style.setProperty("--at", (at - min) / (max - min));
    slider.setAttribute("aria-valuetext", move(at));
  };
  slider.addEventListener("input", settle);
  settle();
  return h(
    "div",
    { class: "pointed" },
    plot,
    slider,
    h(
      "p",
      { class: "axis", "aria-hidden": "true" },
      axis.map((text) => h("span", {}, text)),
    ),
  );
}

export function legend(...kinds) {
  return h(
    "ul",
    { class: "legend" },
    kinds.map(([kind, text]) => h("li", {}, h("i", { class: kind }), text)),
  );
}
